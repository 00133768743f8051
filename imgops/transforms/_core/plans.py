"""Whole pipelines, prepared for images of one shape: native code draws all numbers and runs all steps.

A plan is made when a pipeline meets a shape for the second time, and is used as long as nothing has changed:
no attribute of a transform, no list of a container, no hook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops.kernels.cpu.program import ImageProgram
from imgops.transforms._core import programs
from imgops.transforms._core.origin import has_hooks
from imgops.transforms._core.parameters import Key
from imgops.transforms._core.programs import SamplingProgram
from imgops.transforms._core.sampling import ParameterSampler

#: The most shapes for which a pipeline keeps a plan, or notes that it met them.
MOST = 16


class Plan:
    """A pipeline for images of one shape: what is drawn, and the steps that read the drawn numbers.

    ``tables`` are the floats of each level at the end, if there are any, and ``parts`` the transforms.
    """

    def __init__(
        self,
        owner: Any,
        sampling: SamplingProgram,
        program: ImageProgram,
        tables: Tensor | None,
        parts: list[Any],
    ) -> None:
        self.owner_run: Callable[..., Any] = type(owner)._run
        self.is_each, self.keys, self.sizes = bool(sampling.is_per_sample), sampling.keys, sampling.sizes
        self.columns = max(sum(self.sizes), 1)
        self.sampling = programs.prepared(sampling.text, *sampling.lists) if self.sizes else None
        self.program, self.tables = program.prepared(tables), tables
        self.watched = [(part, part._version) for part in parts]
        self.lists = [(part, tuple(part.transforms)) for part in parts if hasattr(part, "transforms")]
        #: What an in-place change of a list in a Normalize would change.
        self.values = [(part, list(part.mean), list(part.std)) for part in parts if hasattr(part, "mean")]

    def is_valid(self) -> bool:
        """Return whether no transform has changed since the plan was made."""
        return (
            all(part._version == version and not has_hooks(part) for part, version in self.watched)
            and all(tuple(part.transforms) == listed for part, listed in self.lists)
            and all(part.mean == mean and part.std == std for part, mean, std in self.values)
        )

    def run(self, owner: Any, image: Tensor) -> Any:
        """Draw the numbers, and return the image after all steps."""
        rows = np.empty((image.shape[0] if self.is_each else 1, self.columns))
        if self.sampling is not None:
            programs.sample_rows(self.sampling, rows)
        out = self.program.run(image, rows)
        return self._one_by_one(owner, image, rows) if out is None else out

    def _one_by_one(self, owner: Any, image: Tensor, rows: np.ndarray) -> Any:
        """Run the transforms with the numbers that were drawn: one of them may refuse these numbers."""
        sampler = ParameterSampler()
        sampler.count = len(rows) if self.is_each else None
        sampler.collects, sampler.covered = False, True
        numbers = torch.from_numpy(rows if self.is_each else rows[0])
        each = numbers[..., : sum(self.sizes)].split(list(self.sizes), -1)
        sampler.ready = dict[Key, Tensor](zip(self.keys, each, strict=True))
        sampler.planned = set(self.keys)
        return self.owner_run(owner, (image,), sampler)
