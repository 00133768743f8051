"""Images whose transforms are collected, so that the native module runs all of them in one call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import imgops
from imgops.kernels.cpu.program import ImageProgram
from imgops.transforms._core.base import NOTHING, OperatorTransform, RandomTransform
from imgops.transforms._core.origin import has_hooks
from imgops.transforms._core.parameters import Params
from imgops.transforms._core.sampling import ParameterSampler


class PendingImage:
    """An image, and the transforms that are applied to it when its result is needed."""

    __slots__ = ("image", "program", "shown", "transforms")

    def __init__(self, image: Tensor) -> None:
        self.image = image
        self.program = ImageProgram(image)
        self.transforms: list[tuple[OperatorTransform, Params]] = []
        self.shown = image

    def stand_in(self) -> Tensor:
        """Return a tensor of the shape that the result will have, to sample parameters from."""
        size = self.program.height, self.program.width
        if self.shown.shape[-2:] != size:
            shape = (*self.image.shape[:-2], *size)
            self.shown = torch.empty(shape, dtype=self.image.dtype, device="meta")
        return self.shown

    def take(self, transform: OperatorTransform, sampler: ParameterSampler) -> Any:
        """Sample the parameters of a transform, and return the image after it.

        This is ``self`` if a program can have the transform, and a tensor if the transform had to be applied
        after the earlier ones. None means that nothing was done, because the transform needs another path.
        """
        gate, shown = sampler.gate, self.stand_in()
        if not _has_usual_path(transform) or not transform._supports(shown):
            return None
        if gate is not None and sampler.path not in sampler.ready:
            return None
        transform.check_inputs([shown])  # type: ignore[attr-defined]
        params: Any = NOTHING
        if isinstance(transform, RandomTransform):
            params = transform._sample_params([shown], sampler)
            if params is None:
                return self
        before = self.program.state()
        taken = transform._add_to(self.program, params)
        if taken and (gate is None or (self.program.height, self.program.width) == before[2:4]):
            self.transforms.append((transform, params))
            return self
        self.program.forget(before)
        if gate is not None:  # the numbers are still those that were sampled ahead
            return None
        return transform._transform_image(self.result(), params, Tensor)

    def result(self, tables: Tensor | None = None) -> Any:
        """Return the image after all transforms, with ``tables`` looked up in them, float32 ``(C, 256)``."""
        out = None
        if len(self.transforms) + (tables is not None) > 1 and self.program.steps:
            out = self.program.run(tables)
        if out is None:
            out = self.image
            for transform, params in self.transforms:
                out = transform._transform_image(out, params, Tensor)
            out = out if tables is None else imgops.lut(out, tables)
        return out


def _has_usual_path(transform: Any) -> bool:
    """Return whether calls of a transform do what its steps say: a user may have overridden methods."""
    return (
        isinstance(transform, OperatorTransform)
        and transform._has_own_forward
        and transform._is_pure
        and bool(transform._description)
        and not has_hooks(transform)
    )
