"""Images whose transforms are collected, so that the native module runs all of them in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops._common import layout
from imgops._common.torch_private import is_eager
from imgops._operator.declare import operator
from imgops.kernels.cpu._resample import FILTERS
from imgops.kernels.cpu.native import ALL_STEPS, STEP_KINDS
from imgops.kernels.cpu.program import ImageProgram, run
from imgops.rules import vmap
from imgops.transforms._core import operators
from imgops.transforms._core.base import NOTHING, OperatorTransform, RandomTransform
from imgops.transforms._core.origin import has_hooks
from imgops.transforms._core.parameters import Params, spread
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
            out = self.program.run(tables) if is_eager() else self._in_graph(tables)
        if out is None:
            out = self.image
            for transform, params in self.transforms:
                out = transform._transform_image(out, params, Tensor)
            out = out if tables is None else imgops.lut(out, tables)
        return out

    def _in_graph(self, tables: Tensor | None) -> Tensor:
        """Return the result of one operator."""
        numbers = [x for x in self.program.numbers if isinstance(x, Tensor)]
        if not numbers:
            rows = torch.zeros((1, 1), dtype=torch.float64, device="cpu")
        else:
            most = max(len(x) for x in numbers)
            rows = torch.cat([x.expand(most, -1) for x in numbers], -1)
        return run_program(self.image, rows, tables, [n for step in self.program.steps for n in step])


# -- the operator of a graph -------------------------------------------------------------------------


def _steps_of(flat: Sequence[int]) -> list[Sequence[int]]:
    return [flat[i : i + 6] for i in range(0, len(flat), 6)]


def _by_operators(image: Tensor, numbers: Tensor, tables: Tensor | None, steps: Sequence[int]) -> Tensor:
    """Run the steps one by one, by the operators that they stand for."""
    if len(numbers) == 1 or numbers.ndim != 2:
        numbers = numbers[0] if numbers.ndim == 2 else numbers
    else:
        numbers = spread(numbers, image)
    listed = _steps_of(steps)
    ends = [*(step[1] for step in listed[1:]), numbers.shape[-1]]
    for (kind, column, height, width, a, b), end in zip(listed, ends, strict=True):
        image = _OPERATORS[STEP_KINDS[kind]](image, numbers[..., column:end], (height, width), a, b)
    return image if tables is None else imgops.lut(image, tables)


def _resize(image: Tensor, box: Tensor, size: Any, which: int, whole: int) -> Tensor:
    name = list(FILTERS)[which]
    if whole:
        return imgops.resize(image, size, name, antialias=True)
    return imgops.resized_crop(image, box.long(), size, name, antialias=True)


def _colors(image: Tensor, numbers: Tensor, size: Any, length: int, kinds: int) -> Tensor:
    names = [ALL_STEPS[k] for i in range(15) if (k := kinds >> 4 * i & 15) < len(ALL_STEPS)]
    return imgops.color_sequence(image, numbers[..., :length].long(), numbers[..., length:], names)


def _levels(image: Tensor, color: int) -> list[int]:
    return [color >> 8 * i & 255 for i in range(image.shape[-3])]


def _erase(image: Tensor, box: Tensor, size: Any, color: int, _: int) -> Tensor:
    value = torch.tensor(_levels(image, color), dtype=image.dtype, device=image.device)
    return imgops.erase(image, box.long(), value[:, None, None])


#: The operator that each kind of step stands for.
_OPERATORS: dict[str, Callable[[Tensor, Tensor, Any, int, int], Tensor]] = {
    "crop": lambda x, n, size, a, b: imgops.crop(x, (a, b, a + size[1], b + size[0])),
    "resize": _resize,
    "mirror": lambda x, n, size, a, b: operators.flip_chosen(x, n[..., 0] > 0, -1),
    "flip": lambda x, n, size, a, b: operators.flip_chosen(x, n[..., 0] > 0, -2),
    "colors": _colors,
    "gray": lambda x, n, size, a, b: operators.gray_chosen(x, n[..., 0] > 0),
    "blur": lambda x, n, size, a, b: imgops.gaussian_blur(x, (a, b), n),
    "warp": lambda x, n, size, a, b: imgops.warp_affine(
        x, n.unflatten(-1, (2, 3)), None, "nearest", "constant", _levels(x, a)
    ),
    "erase": _erase,
    "split": lambda x, n, size, a, b: operators.as_planar(x),
}


def _program_fake(image: Tensor, numbers: Tensor, tables: Tensor | None, steps: Sequence[int]) -> Tensor:
    *_, (_, _, height, width, _, _) = listed = _steps_of(steps)
    splits = any(step[0] == STEP_KINDS.index("split") for step in listed)
    interleaved = layout.is_interleaved(image) and not splits
    dtype = torch.uint8 if tables is None else torch.float32
    return layout.empty(image, height, width, interleaved=interleaved, dtype=dtype)


def _program_kernel(
    out: Tensor, image: Tensor, numbers: Tensor, tables: Tensor | None, steps: Sequence[int]
) -> None:
    rows = numbers.detach()
    if numbers.ndim > 2:  # with the dimensions of a batch
        rows = rows.expand(*image.shape[:-3], rows.shape[-1])
    rows = rows.reshape(-1, rows.shape[-1]).double().contiguous()
    if not run(out, image.detach(), _steps_of(steps), rows.numpy(), tables):
        out.copy_(_by_operators(image, numbers, tables, steps))


@operator(
    "imgops_transforms::run_program",
    kernel=_program_kernel,
    fake=_program_fake,
    vmap=vmap.leading(3, 1, 2),
    decomposition=_by_operators,
)
def run_program(image: Tensor, numbers: Tensor, tables: Tensor | None, steps: Sequence[int]) -> Tensor:
    """Run the steps of a program, ``kernels/cpu/program.py``, on each image of a batch."""


def _has_usual_path(transform: Any) -> bool:
    """Return whether calls of a transform do what its steps say: a user may have overridden methods."""
    return (
        isinstance(transform, OperatorTransform)
        and transform._has_own_forward
        and transform._is_pure
        and bool(transform._description)
        and not has_hooks(transform)
    )
