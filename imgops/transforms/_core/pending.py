"""Images whose transforms are collected, so that the native module runs all of them in one call."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torchvision import tv_tensors

import imgops
from imgops._common import layout
from imgops._common.torch_private import is_eager
from imgops._operator import subclass
from imgops._operator.declare import operator
from imgops.kernels.cpu._resample import FILTERS
from imgops.kernels.cpu.native import ALL_STEPS, BORDERS, BOX_FORMS, STEP_KINDS, WARPS
from imgops.kernels.cpu.program import ImageProgram, NativeSteps, accepts, accepts_in_graph
from imgops.rules import vmap
from imgops.transforms._core import operators, pil_images, programs
from imgops.transforms._core.base import NOTHING, OperatorTransform, RandomTransform
from imgops.transforms._core.batches import Windows
from imgops.transforms._core.origin import has_hooks
from imgops.transforms._core.parameters import Params, spread
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.functional import _dispatch


class PendingImage:
    """An image, and the transforms that are applied to it when its result is needed.

    ``kind`` is the class of the result: Tensor, ``tv_tensors.Image`` or PIL's. Without a program, which a
    large image alone does not have, each transform is applied at once.
    """

    __slots__ = ("image", "info", "kind", "program", "shown", "transforms", "windows")

    def __init__(self, image: Tensor, can_begin: bool, kind: type = Tensor, info: Any = None) -> None:
        self.image = self.shown = image
        self.kind, self.info = kind, info
        self.program = ImageProgram(image) if can_begin else None
        self.transforms: list[tuple[Any, Params, type]] = []
        #: The windows of images of different sizes that the image stands for.
        self.windows: Windows | None = None

    @classmethod
    def of(cls, image: Any) -> Any:
        """Return a tensor or an Image as pending, and any other input as it is."""
        kind = type(image)
        if kind is Tensor:
            return cls(image, True) if _can_begin(image) else image
        if kind is tv_tensors.Image and is_eager() and not _dispatch.has_users_kernel(kind):
            plain = subclass.plain(image)
            return cls(plain, True, kind) if _can_begin(plain) else image
        return image

    @classmethod
    def of_windows(cls, windows: Windows) -> Any:
        """Return the windows of images of different sizes as pending, or as a tensor without a program."""
        if not windows.can_begin():
            return cls.of(windows.result())
        # The values and strides of this tensor are not read.
        pending = cls(torch.empty((), dtype=torch.uint8, device="cpu").expand(windows.shape), True)
        pending.windows = windows
        if pending.program is not None:
            pending.program.interleaved = windows.interleaved
        return pending

    @classmethod
    def of_pil(cls, image: PIL.Image.Image) -> PendingImage:
        # PIL's functions keep the information of an image, such as its color profile.
        pixels = pil_images.to_tensor(image)
        return cls(pixels, _can_begin(pixels), PIL.Image.Image, image.info.copy())

    def stand_in(self) -> Tensor:
        """Return a tensor of the shape that the result will have, to sample parameters from."""
        if self.program is None:
            return self.image
        size = self.program.height, self.program.width
        if not _are_equal(self.shown.shape[-2:], size):
            shape = (*self.image.shape[:-2], *size)
            self.shown = torch.empty(shape, dtype=self.image.dtype, device="meta")
        return self.shown

    def take(self, transform: Any, sampler: ParameterSampler) -> PendingImage | None:
        """Sample the parameters of a transform, and return the image after it.

        None means that nothing was done, because the transform needs another path.
        """
        gate, shown = sampler.gate, self.stand_in()
        if not has_usual_path(transform) or not transform._may_add:
            return None
        if transform._converts_to is not None:
            return self._become(transform) if gate is None else None
        if not transform._supports(shown) or (gate is not None and sampler.path not in sampler.ready):
            return None
        if self.kind is PIL.Image.Image and not transform._has_pils_pixels:
            return None
        transform.check_inputs([shown])
        params: Any = NOTHING
        if isinstance(transform, RandomTransform):
            params = transform._sample_params([shown], sampler)
            if params is None:
                return self
        if self.program is not None:
            before = self.program.state()
            taken = transform._add_to(self.program, params, self.kind)
            if taken and (gate is None or _are_equal(self.program.state()[2:4], before[2:4])):
                self.transforms.append((transform, params, self.kind))
                return self
            self.program.forget(before)
        if gate is not None:  # the numbers are still those that were sampled ahead
            return None
        changed = _change(self.pixels(), transform, params, self.kind)
        return PendingImage(changed, _can_begin(changed), self.kind, self.info)

    def _become(self, transform: Any) -> PendingImage | None:
        """Convert the result to another class, which is all that the transform does."""
        kind = transform._converts_to
        if kind is tv_tensors.Image and _dispatch.has_users_kernel(kind):
            return None
        if self.kind is PIL.Image.Image and transform._makes_planar:
            if self.program is None or not self.program.planar():
                planar = operators.as_planar(self.pixels())
                return PendingImage(planar, _can_begin(planar), kind)
        elif self.kind is tv_tensors.Image and not transform._unwraps:
            return self
        self.kind = kind
        return self

    def pixels(self, tables: Tensor | None = None) -> Tensor:
        """Return the image after all transforms, with ``tables`` looked up in them, float32 ``(C, 256)``."""
        out = None
        program = self.program
        if self.windows is not None:
            out = self.windows.run(program, tables)
        elif program is not None and program.steps and len(self.transforms) + (tables is not None) > 1:
            out = program.run(tables) if is_eager() else _as_operator(program, tables)
        if out is None:
            out = self.image if self.windows is None else self.windows.result()
            for transform, params, kind in self.transforms:
                out = _change(out, transform, params, kind)
            out = out if tables is None else imgops.lut(out, tables)
        return out

    def result(self, tables: Tensor | None = None) -> Any:
        """Return ``pixels`` in the class of the result."""
        pixels = self.pixels(tables)
        if self.kind is tv_tensors.Image:
            return tv_tensors.Image(pixels)
        if self.kind is Tensor:
            return pixels
        image = pil_images.to_pil(pixels)
        image.info = self.info or {}
        return image


def _change(image: Tensor, transform: Any, params: Params, kind: type) -> Tensor:
    work = transform._image if kind is PIL.Image.Image else transform._transform_image
    return work(image, params, kind)  # type: ignore[no-any-return]


def _are_equal(size: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two sizes are equal, as far as a compiler knows without a guard."""
    return all(statically_known_true(a == b) for a, b in zip(size, other, strict=True))


def _can_begin(image: Tensor) -> bool:
    return accepts(image) if is_eager() else accepts_in_graph(image)


def _as_operator(program: ImageProgram, tables: Tensor | None) -> Tensor:
    """Return the result of a program as one operator of a graph."""
    numbers = [x for x in program.numbers if isinstance(x, Tensor)]
    if not numbers:
        rows = torch.zeros((1, 1), dtype=torch.float64, device="cpu")
    else:
        most = max(len(x) for x in numbers)
        rows = torch.cat([x.expand(most, -1) for x in numbers], -1)
    return run_program(program.image, rows, tables, [n for step in program.steps for n in step])


# -- the operator of a graph -------------------------------------------------------------------------


#: The numbers of a step: its kind, the column of its numbers, the height and width of its result, arguments.
_FIELDS = 7


def _steps_of(flat: Sequence[int]) -> list[Sequence[int]]:
    return [flat[i : i + _FIELDS] for i in range(0, len(flat), _FIELDS)]


def _by_operators(image: Tensor, numbers: Tensor, tables: Tensor | None, steps: Sequence[int]) -> Tensor:
    """Run the steps one by one, by the operators that they stand for."""
    if numbers.ndim == 2:
        numbers = numbers[0] if len(numbers) == 1 else spread(numbers, image)
    listed = _steps_of(steps)
    ends = [*(step[1] for step in listed[1:]), numbers.shape[-1]]
    for (kind, column, height, width, *how), end in zip(listed, ends, strict=True):
        image = _OPERATORS[STEP_KINDS[kind]](image, numbers[..., column:end], (height, width), *how)
    return image if tables is None else imgops.lut(image, tables)


def _resize(image: Tensor, numbers: Tensor, size: Any, which: int, form: int, _: int) -> Tensor:
    name, how, box = list(FILTERS)[which], BOX_FORMS[form], numbers.long()
    if how == "whole":
        return imgops.resize(image, size, name, antialias=True)
    if how != "edges":
        corner = box[..., [1, 0]]
        sides = box[..., [3, 2]] if how == "sides" else box.new_tensor(size[::-1]).expand_as(corner)
        box = torch.cat([corner, corner + sides], -1)
    return imgops.resized_crop(image, box, size, name, antialias=True)


def _colors(image: Tensor, numbers: Tensor, size: Any, length: int, kinds: int, _: int) -> Tensor:
    names = [ALL_STEPS[k] for i in range(15) if (k := kinds >> 4 * i & 15) < len(ALL_STEPS)]
    length &= (1 << 16) - 1
    order, amounts = numbers[..., :length].long(), numbers[..., length:]
    amounts = amounts.expand(*amounts.shape[:-1], len(names))  # one may be that of all names
    return imgops.color_sequence(image, order, amounts, names)


def _levels(image: Tensor, color: int) -> list[int]:
    return [color >> 8 * i & 255 for i in range(image.shape[-3])]


def _pad(image: Tensor, _: Tensor, size: Any, left: int, top: int, border: int) -> Tensor:
    right, bottom = size[1] - left - image.shape[-1], size[0] - top - image.shape[-2]
    levels = _levels(image, border & 0xFFFFFFFF)
    return imgops.pad(image, (left, top, right, bottom), BORDERS[border >> 32], levels)


def _erase(image: Tensor, box: Tensor, size: Any, color: int, *_: int) -> Tensor:
    value = torch.tensor(_levels(image, color), dtype=image.dtype, device=image.device)
    return imgops.erase(image, box.long(), value[:, None, None])


#: The operator that each kind of step stands for.
_OPERATORS: dict[str, Callable[[Tensor, Tensor, Any, int, int, int], Tensor]] = {
    "crop": lambda x, n, size, a, b, c: imgops.crop(x, (a, b, a + size[1], b + size[0])),
    "resize": _resize,
    "mirror": lambda x, n, size, a, b, c: operators.flip_chosen(x, n[..., 0] > 0, -1),
    "flip": lambda x, n, size, a, b, c: operators.flip_chosen(x, n[..., 0] > 0, -2),
    "colors": _colors,
    "gray": lambda x, n, size, a, b, c: operators.gray_chosen(x, n[..., 0] > 0),
    "blur": lambda x, n, size, a, b, c: imgops.gaussian_blur(x, (a, b), n),
    "warp": lambda x, n, size, a, b, c: imgops.warp_affine(
        x, n.unflatten(-1, (2, 3)), None, WARPS[b], "constant", _levels(x, a)
    ),
    "erase": _erase,
    "split": lambda x, n, size, a, b, c: operators.as_planar(x),
    "pad": _pad,
}


def _program_fake(image: Tensor, numbers: Tensor, tables: Tensor | None, steps: Sequence[int]) -> Tensor:
    listed = _steps_of(steps)
    height, width = listed[-1][2:4]
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
    if not NativeSteps(_steps_of(steps)).run(out, image.detach(), rows.numpy(), tables):
        out.copy_(_by_operators(image, numbers, tables, steps))


@operator(
    "imgops_transforms::run_program",
    kernel=_program_kernel,
    fake=_program_fake,
    # Not the rule itself, by which the operator would be divided among threads: the program does this.
    vmap=lambda *args: vmap.leading(3, 1, 2)(*args),
    decomposition=_by_operators,
)
def run_program(image: Tensor, numbers: Tensor, tables: Tensor | None, steps: Sequence[int]) -> Tensor:
    """Run the steps of a program, ``kernels/cpu/program.py``, on each image of a batch."""


class _PlanOfGraph:
    """A plan that was written as JSON: the number of rows, what is drawn, and the steps."""

    def __init__(self, plan: str) -> None:
        self.count, text, lists, steps = json.loads(plan)
        self.sampling = programs.prepared(text, *lists) if lists[0] else None
        self.columns = max(sum(lists[0]), 1)
        self.flat, self.steps = [n for step in steps for n in step], NativeSteps(steps)


_read_plan = lru_cache(maxsize=64)(_PlanOfGraph)


def _pipeline_kernel(out: Tensor, image: Tensor, tables: Tensor | None, site: int, plan: str) -> None:
    known = _read_plan(plan)
    rows = np.zeros((known.count, known.columns))
    if known.sampling is not None:
        programs.sample_rows(known.sampling, rows)
    if not known.steps.run(out, image.detach(), rows, tables):
        out.copy_(_by_operators(image, torch.from_numpy(rows), tables, known.flat))


def _pipeline_fake(image: Tensor, tables: Tensor | None, site: int, plan: str) -> Tensor:
    *_, steps = json.loads(plan)  # nothing is drawn or compared here
    return _program_fake(image, image, tables, [n for step in steps for n in step])


@operator(
    "imgops_transforms::run_pipeline",
    kernel=_pipeline_kernel,
    fake=_pipeline_fake,
    random=True,
)
def run_pipeline(image: Tensor, tables: Tensor | None, site: int, plan: str) -> Tensor:
    """Draw the numbers of a pipeline, and run the steps that read them: ``sample`` and ``run_program``.

    The plan is the number of samples, the arguments of ``sample``, and the steps, as JSON.
    """


def has_usual_path(transform: Any) -> bool:
    """Return whether calls of a transform do what its steps say: a user may have overridden methods."""
    return (
        isinstance(transform, OperatorTransform)
        and transform._runs_own_forward()
        and transform._is_simple
        and transform._is_pure
        and bool(transform._description)
        and not has_hooks(transform)
    )
