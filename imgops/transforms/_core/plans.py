"""Whole pipelines, prepared for images of one shape: native code draws all numbers and runs all steps.

A plan is made when a pipeline meets a shape for the second time, and is used as long as nothing has changed:
no attribute of a transform, no list of a container, no hook.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops.kernels.cpu.program import ImageProgram, PreparedProgram
from imgops.transforms._core import programs
from imgops.transforms._core.origin import has_hooks
from imgops.transforms._core.parameters import Key
from imgops.transforms._core.programs import SamplingProgram
from imgops.transforms._core.sampling import ParameterSampler

#: The most shapes for which a pipeline keeps a plan, or notes that it met them.
MOST = 16


def _changeable(part: Any) -> list[tuple[str, list[Any]]]:
    """Return the arguments of a transform that are lists or dicts."""
    given = {name: value for name, value in vars(part).items() if not name.startswith("_")}
    values = [v for value in given.values() for v in _inside(value)]
    if any(isinstance(value, (Tensor, np.ndarray)) for value in values):
        raise TypeError("an argument may change in place unseen")  # there is no plan
    return [(n, v) for n, v in given.items() if isinstance(v, (list, dict)) and n != "transforms"]


def _inside(value: Any) -> Any:
    return value if isinstance(value, list) else value.values() if isinstance(value, dict) else [value]


class Plan:
    """A pipeline for images of one shape: what is drawn, and the steps that read the drawn numbers.

    ``tables`` are the floats of each level at the end, if there are any, and ``parts`` the transforms.
    ``copying`` lists, for each transform that never returns its input, the columns that say whether it is
    applied.
    """

    def __init__(
        self,
        sampling: SamplingProgram,
        program: ImageProgram,
        tables: Tensor | None,
        parts: list[Any],
        copying: list[tuple[int, ...]],
    ) -> None:
        self.is_each, self.keys, self.sizes = bool(sampling.is_per_sample), sampling.keys, sampling.sizes
        self.columns = max(sum(self.sizes), 1)
        self.sampling = programs.prepared(sampling.text, *sampling.lists) if self.sizes else None
        self.program, self.copying = PreparedProgram(program, tables), copying
        self.may_share = () not in copying and (program.image.ndim == 3 or not self.is_each)
        self.watched = [(part, part._version) for part in parts]
        self.lists = [(part, tuple(part.transforms)) for part in parts if hasattr(part, "transforms")]
        #: The arguments that may be changed in place, and their values.
        self.values = [(part, name, deepcopy(value)) for part in parts for name, value in _changeable(part)]

    def is_valid(self) -> bool:
        """Return whether no transform has changed since the plan was made."""
        return (
            all(
                part._version == version and part._runs_own_forward() and not has_hooks(part)
                for part, version in self.watched
            )
            and all(tuple(part.transforms) == listed for part, listed in self.lists)
            and all(part.__dict__.get(name) == value for part, name, value in self.values)
        )

    def run(self, owner: Any, image: Tensor) -> Any:
        """Draw the numbers, and return the image after all steps."""
        rows = np.empty((image.shape[0] if self.is_each else 1, self.columns))
        if self.sampling is not None:
            programs.sample_rows(self.sampling, rows)
        shares = self.may_share and not any((rows[0, list(columns)] > 0).all() for columns in self.copying)
        out = self.program.run(image, rows, shares)
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
        return owner._run((image,), sampler)
