"""Programs: steps that the native module runs on each image of a batch before the next image begins.

The intermediate images stay in the cache of the processor, and a batch costs one call instead of one for each
step. The pixels are those of the operators called one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import has_static_value, statically_known_true

from imgops._common import layout, memory
from imgops._common.torch_private import constant_in_graphs, is_readable
from imgops.kernels.cpu import _pil, _resample, _threads, blur, geometry, native

#: The most steps of a program.
_MOST_STEPS = 256
#: The most pixels of a result, as of ``imgops.resize``.
_MOST_PIXELS = (1 << 31) - 1
#: The colors that mix channels, and so need one or three.
_MIXING = {"contrast", "saturation", "hue"}
#: The most names of a step of colors: four bits each say which colors they are.
_MOST_NAMES, _MOST_ORDER = 15, 64


def accepts(image: Any) -> bool:
    """Return whether programs can begin with an image: uint8 on the CPU, in one of the memory formats.

    A large image alone is left to the operators, which divide it among threads.
    """
    return (
        type(image) is Tensor
        and image.dtype == torch.uint8
        and image.ndim > 2
        and is_readable(image)
        and 0 < image.shape[-3] <= native.MOST_CHANNELS
        and image.numel() > 0
        and (image.ndim > 3 or _threads.is_small(image))
        and layout.is_dense(image)
        and native.is_built()
    )


def accepts_in_graph(image: Any) -> bool:
    """Return whether programs can begin with an image of a graph.

    Its number of channels is known, and it is no large image alone, as far as its size is known.
    """
    if type(image) is not Tensor or image.dtype != torch.uint8 or image.ndim < 3 or not image.is_cpu:
        return False
    sides = list(image.shape[-3:])
    if not has_static_value(sides[0]) or not 0 < sides[0] <= native.MOST_CHANNELS or not _is_built():
        return False
    if not layout.is_dense(image):
        return False
    if image.ndim > 3 or not all(map(has_static_value, sides)):
        return True
    channels, height, width = sides
    return _is_for_one_thread(channels * height * width)


@constant_in_graphs
def _is_built() -> bool:
    return native.is_built()


@constant_in_graphs
def _is_for_one_thread(values: int) -> bool:
    return _threads.is_for_one_thread(values)


class ImageProgram:
    """The steps for one tensor of images, and the numbers of each step.

    The methods that add a step return False if no program can have it. The numbers are a list if all images
    share them, else a tensor with a row for each sample. Numbers that no operator would take are refused by
    ``run``, which then returns None.
    """

    def __init__(self, image: Tensor) -> None:
        self.image = image
        self.channels, self.height, self.width = image.shape[-3:]
        self.interleaved = layout.is_interleaved(image)
        self.steps: list[tuple[int, ...]] = []
        self.numbers: list[Any] = []
        self.columns = 0

    # -- steps -------------------------------------------------------------------------------------

    def crop(self, left: int, top: int, height: int, width: int) -> bool:
        """Crop to a box of one place, with zeros outside of the image."""
        return self._add("crop", [], 0, a=left, b=top, size=(height, width))

    def pad(self, left: int, top: int, size: Sequence[int], padding_mode: str, levels: Sequence[int]) -> bool:
        """Pad to a size; ``levels`` are those of the channels of a constant border."""
        if padding_mode not in native.BORDERS:
            return False
        border = native.BORDERS.index(padding_mode) << 32 | native.color_of(levels)
        height, width = size
        return self._add("pad", [], 0, a=left, b=top, c=border, size=(height, width))

    def resized_crop(
        self, box: Any, size: Sequence[int], interpolation: str, antialias: bool, form: str = "edges"
    ) -> bool:
        """Crop to a box, and resize as PIL does.

        The box is left, top, right and bottom; with the form "sides" top, left, height and width; with
        "corner" the top and left of a box of the size of the result; with "whole" there are no numbers.
        """
        if not antialias or not _is_exact("resize", interpolation):
            return False
        which, how = list(_resample.FILTERS).index(interpolation), native.BOX_FORMS.index(form)
        count, (height, width) = {"whole": 0, "corner": 2}.get(form, 4), size
        return self._add("resize", box, count, a=which, b=how, size=(height, width))

    def resize(self, size: Sequence[int], interpolation: str, antialias: bool) -> bool:
        return self.resized_crop([], size, interpolation, antialias, "whole")

    def flip(self, chosen: Any, dim: int) -> bool:
        """Mirror the images whose number is above 0 along the last dimension or the one before."""
        if dim not in (-1, -2):
            return False
        return self._add("mirror" if dim == -1 else "flip", _first(chosen), 1)

    def colors(self, numbers: Any, length: int, names: Sequence[str]) -> bool:
        """Apply colors as ``color_sequence``: ``numbers`` are the order, then the amount of each name.

        One amount may stand for those of all names.
        """
        if not 0 < length <= _MOST_ORDER or (self.channels not in (1, 3) and not _MIXING.isdisjoint(names)):
            return False
        if not all(_is_exact(name) for name in names) or len(names) > _MOST_NAMES:
            return False
        kinds = [native.ALL_STEPS.index(name) for name in names] + [15] * (_MOST_NAMES - len(names))
        code = sum(kind << 4 * i for i, kind in enumerate(kinds))
        count = len(numbers) if isinstance(numbers, (list, tuple)) else numbers.shape[-1]
        has_one = count == length + 1 < length + len(names)
        return self._add("colors", numbers, count, a=length | has_one << 16, b=code)

    def gray(self, chosen: Any) -> bool:
        """Convert the images whose number is above 0 to gray of three channels."""
        return self.channels == 3 and _is_exact("grayscale") and self._add("gray", _first(chosen), 1)

    def gaussian_blur(self, sigmas: Any, kernel_size: Sequence[int]) -> bool:
        across, down = kernel_size
        return (
            all(0 < n < 258 and n % 2 for n in kernel_size)
            and _is_exact("gaussian_blur")
            and self._add("blur", sigmas, 2, a=across, b=down)
        )

    def warp(self, matrix: Any, interpolation: str, fill: Sequence[int]) -> bool:
        """Warp by an affine matrix; ``fill`` is the level of each channel outside of the image."""
        if interpolation == "nearest":
            has_step = self.channels == 3 and _is_exact("warp_affine")
        else:  # OpenCV warps two interleaved channels in another way
            has_step = interpolation == "bilinear" and not (self.interleaved and self.channels == 2)
            has_step = has_step and _is_exact("bilinear warp_affine")
        how = native.WARPS.index(interpolation) if has_step else 0
        return has_step and self._add("warp", matrix, 6, a=native.color_of(fill), b=how)

    def erase(self, boxes: Any, levels: Sequence[int]) -> bool:
        """Set a box, left, top, right and bottom, to the level of each channel."""
        return len(levels) == self.channels and self._add("erase", boxes, 4, a=native.color_of(levels))

    def planar(self) -> bool:
        """Convert interleaved images to planar ones."""
        if self.interleaved and self.channels == 3:
            self.interleaved = False
            return self._add("split", [], 0)
        return not self.interleaved

    def _add(
        self,
        kind: str,
        numbers: Any,
        count: int,
        *,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        size: tuple[int, int] | None = None,
    ) -> bool:
        if len(self.steps) == _MOST_STEPS or (isinstance(numbers, Tensor) and numbers.ndim > 2):
            return False
        if isinstance(numbers, Tensor) and numbers.ndim == 1:
            numbers = numbers[None]
        if size is not None:
            height, width = (int(n) if isinstance(n, np.integer) else n for n in size)
            for is_wrong in (height < 1, width < 1, height * width > _MOST_PIXELS):
                if statically_known_true(is_wrong):
                    return False
            self.height, self.width = height, width
        where = self.columns
        if isinstance(numbers, Columns):
            where, count = numbers.start, 0
        self.steps.append((native.STEP_KINDS.index(kind), where, self.height, self.width, a, b, c))
        self.numbers.append(numbers)
        self.columns += count
        return True

    def copies_from(self, step: int) -> bool:
        """Return whether any step from index ``step`` on always copies."""
        return any(_copies(*native_step) for native_step in self.steps[step:])

    # -- running -----------------------------------------------------------------------------------

    def state(self) -> tuple[Any, ...]:
        return len(self.steps), self.columns, self.height, self.width, self.interleaved

    def forget(self, state: tuple[Any, ...]) -> None:
        """Remove the steps that were added after an earlier ``state()``."""
        steps, self.columns, self.height, self.width, self.interleaved = state
        del self.steps[steps:], self.numbers[steps:]

    def rows(self) -> np.ndarray:
        """Return a row of numbers for each sample, or one for all."""
        samples = [len(x) for x in self.numbers if isinstance(x, Tensor)]
        if not samples:
            row = [float(n) for numbers in self.numbers for n in numbers]
            return np.array([row or [0.0]], np.float64)
        rows = np.empty((max(samples), max(self.columns, 1)), np.float64)
        ends = [*(step[1] for step in self.steps[1:]), self.columns]
        for step, end, numbers in zip(self.steps, ends, self.numbers, strict=True):
            rows[:, step[1] : end] = numbers.detach().numpy() if isinstance(numbers, Tensor) else numbers
        return rows

    def run(self, tables: Tensor | None = None) -> Tensor | None:
        """Return the images after all steps, or None if the program cannot run.

        With ``tables``, float32 ``(1 or C, 256)``, the result has the floats that they give for each level.
        """
        is_each = any(isinstance(numbers, Tensor) for numbers in self.numbers)
        shares = (self.image.ndim == 3 or not is_each) and not self.copies_from(0)
        return PreparedProgram(self, tables).run(self.image, self.rows(), shares)

    def write(self, out: Tensor) -> bool:
        """Write the images after all steps to ``out``; return False if the program cannot run."""
        return NativeSteps(self.steps).run(out, self.image, self.rows(), None) > 0


class NativeSteps:
    """Steps in the form that the native module takes."""

    def __init__(self, steps: Sequence[Sequence[int]]) -> None:
        self.array = np.array(steps, np.int64)
        #: The most pixels of a result.
        self.most = max(step[2] * step[3] for step in steps)

    def run(self, out: Tensor, image: Tensor, rows: np.ndarray, tables: Tensor | None) -> int:
        """Run the steps on each image, as ``native.run_program`` does, with a row for each of equal parts."""
        pixels = max(image.shape[-1] * image.shape[-2], self.most)
        floats = None if tables is None else tables.numpy()
        order = _resample.shrinks_rows_first()
        return native.run_program(out, image, self.array, pixels, rows, floats, order)


class PreparedProgram:
    """A program for images of one shape and memory format, whose numbers come in rows."""

    def __init__(self, program: ImageProgram, tables: Tensor | None) -> None:
        self.steps, self.tables = NativeSteps(program.steps), tables
        self.dtype = torch.uint8 if tables is None else torch.float32
        self.size = (*program.image.shape[:-2], program.height, program.width)
        strides = layout.interleaved_strides if program.interleaved else layout.planar_strides
        self.stride = tuple(strides(self.size))
        is_large = prod(self.size) * self.dtype.itemsize >= memory.LEAST
        # A default device may be another one.
        self.empty: Any = memory.empty_strided if is_large else partial(torch.empty_strided, device="cpu")

    def run(self, image: Tensor, rows: np.ndarray, shares: bool) -> Tensor | None:
        """Return the images after all steps, or None if a row has numbers that no operator would take.

        ``shares`` says whether to return the images themselves if no step changes them.
        """
        out: Tensor = self.empty(self.size, self.stride, dtype=self.dtype)
        done = self.steps.run(out, image, rows, self.tables)
        return (image if shares and done == native.UNCHANGED else out) if done else None


class Columns:
    """Columns of a table that a program reads, in the place of numbers, to make the program before them."""

    ndim = 2

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop

    @property
    def shape(self) -> tuple[int, int]:
        return 0, self.stop - self.start

    def __getitem__(self, index: Any) -> Columns:
        every, part = index
        if every is not Ellipsis or not isinstance(part, slice):
            raise TypeError(f"columns must be sliced, got {index}")
        start, stop, _ = part.indices(self.stop - self.start)
        return Columns(self.start + start, self.start + stop)


def _copies(kind: int, column: int, height: int, width: int, a: int, b: int, c: int) -> bool:
    """Return whether the operator of a step gives a new image even where it changes nothing."""
    name = native.STEP_KINDS[kind]
    return name in ("crop", "pad", "blur", "warp") or (name == "resize" and native.BOX_FORMS[b] != "whole")


def _first(numbers: Any) -> Any:
    """Return the first number of each sample, above 0 if it is chosen; one draw is always chosen."""
    return [1.0] if isinstance(numbers, (list, tuple)) else numbers[..., :1]


def can_resize(interpolation: str) -> bool:
    """Return whether programs can resize by a filter of PIL."""
    return _is_exact("resize", interpolation)


@constant_in_graphs
def _is_exact(name: str, interpolation: str = "bilinear") -> bool:
    """Return whether there is a native step with the bits of the installed PIL or OpenCV."""
    if not native.is_built():
        return False
    if name == "resize":
        return interpolation in _resample.FILTERS and _resample.pil_order() is not None
    if name == "gaussian_blur":
        return blur.native_agrees()
    if name == "warp_affine":
        return geometry.native_agrees()
    if name == "bilinear warp_affine":
        return geometry.blends_alike()
    return (name == "grayscale" or name in native.ALL_STEPS) and _pil.agrees(name)
