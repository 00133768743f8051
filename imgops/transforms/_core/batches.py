"""Images of different sizes while a pipeline gives them one size: what is to be resized, and what is kept.

A resize to sizes of their own and a crop to one size are done together, so that only the part that is kept is
computed, and only the pixels of a file that it needs are decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import imgops
from imgops import EncodedImages
from imgops._common import check, layout, memory
from imgops._common.torch_private import is_eager, raise_error
from imgops.batches.packed import PackedImages
from imgops.kernels.cpu import _resample, native
from imgops.kernels.cpu.program import ImageProgram, can_resize
from imgops.ops.packed import resize_windows
from imgops.transforms._core.dtypes import numbers_for, restore_dtype


class PendingBatch:
    """A batch of images of different sizes, and the resize that is to be applied to each of them.

    ``targets`` are the heights and widths after the resize, int64 ``(N, 2)``; None if there is none.
    """

    def __init__(
        self, images: PackedImages | EncodedImages, targets: Tensor | None = None, how: Any = None
    ) -> None:
        self.images, self.targets, self.how = images, targets, how
        self.num_channels = images.num_channels

    def __len__(self) -> int:
        return len(self.images)

    @property
    def sizes(self) -> Tensor:
        """The height and width of each image."""
        return self.images.sizes if self.targets is None else self.targets

    def resize(self, targets: Tensor, interpolation: str, antialias: bool) -> PendingBatch:
        """Resize each image to its own height and width."""
        images = self.images if self.targets is None else self.result()
        return PendingBatch(images, targets, (interpolation, antialias))

    def crop_and_resize(
        self, boxes: Tensor | None, size: Sequence[int], interpolation: str, antialias: bool
    ) -> Windows:
        """Crop a box of each image, left, top, right and bottom, and resize all of them to one size."""
        images = self.images if self.targets is None else self.result()
        return Windows(images, boxes, None, None, size, (interpolation, antialias), (0.0,))

    def crop(self, corners: Tensor, size: Sequence[int], fill: Any = 0, is_inside: bool = False) -> Windows:
        """Crop to one size from the left and top of each image on; outside of the image there is a color."""
        fill = fill if isinstance(fill, (list, tuple)) else [fill]
        if self.targets is not None:
            return Windows(self.images, None, self.targets, corners, size, self.how, fill)
        boxes = torch.cat([corners, corners + corners.new_tensor(size[::-1])], -1)
        if not is_inside and is_eager():
            is_inside = not ((corners < 0) | (boxes[:, 2:] > self.sizes.flip(-1))).any()
        if is_inside:  # such boxes are only copied
            return Windows(self.images, boxes, None, None, size, ("bilinear", True), fill)
        return Windows(self.images, None, self.images.sizes, corners, size, ("bilinear", True), fill)

    def result(self) -> PackedImages:
        images = _decoded(self.images)
        if self.targets is None:
            return images
        interpolation, antialias = self.how
        source = numbers_for(images, interpolation)
        out: Any = imgops.resize(source, self.targets, interpolation, antialias=antialias)
        return out.like(restore_dtype(out.data, images), out.sizes, out.offsets)  # type: ignore[no-any-return]


class Windows:
    """Parts of one size of images of different sizes.

    Either a box of each image is resized to this size, or the part of each image, after its own resize, that
    begins at ``corners`` is kept.
    """

    def __init__(
        self,
        images: PackedImages | EncodedImages,
        boxes: Tensor | None,
        targets: Tensor | None,
        corners: Tensor | None,
        size: Sequence[int],
        how: tuple[str, bool],
        fill: Sequence[float],
    ) -> None:
        if any(check.violates(side >= 1) for side in size):
            must = "resized_crop: size must be at least (1, 1)"
            raise_error(ValueError, f"{must}, got {check.numbers(*size)}")
        self.images, self.boxes, self.targets, self.corners = images, boxes, targets, corners
        self.size, self.how, self.fill = tuple(size), how, fill

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.images), self.images.num_channels, *self.size

    @property
    def interleaved(self) -> bool:
        return type(self.images) is PackedImages and self.images.interleaved

    def can_begin(self) -> bool:
        """Return whether a program can begin with the windows."""
        data, (interpolation, antialias) = self.images.data, self.how
        return (
            is_eager()
            and type(data) is Tensor
            and self.images.dtype == torch.uint8
            and data.is_cpu
            and len(self.images) > 0
            and self.images.num_channels <= native.MOST_CHANNELS
            and antialias
            and can_resize(interpolation)
            and native.levels_of(self.fill, self.images.num_channels) is not None
        )

    def result(self) -> Tensor:
        """Return the windows as a batch."""
        if self.can_begin():
            out = self.run(None, None)
            if out is not None:
                return out
        if self.targets is None or self.corners is None:
            return self._resized_boxes()
        images, targets, corners = self.images, self.targets, self.corners
        if type(images) is EncodedImages and targets is images.sizes:  # nothing is resized
            low = corners.clamp(min=0)
            high = (corners + corners.new_tensor(self.size[::-1])).minimum(targets.flip(-1))
            images, corners = images.decode(torch.cat([low, high], -1)), corners - low
            targets = images.sizes
        packed = _decoded(images)
        source = numbers_for(packed, self.how[0])
        where = source.data, packed.sizes, packed.offsets, targets, corners
        how: Any = packed.num_channels, *self.size, list(self.fill), *self.how, packed.interleaved
        return restore_dtype(resize_windows(*where, *how), packed)

    def _resized_boxes(self) -> Tensor:
        images, boxes, (interpolation, antialias) = self.images, self.boxes, self.how
        if type(images) is EncodedImages and boxes is not None:
            images, boxes = images.decode(boxes), boxes - boxes[:, [0, 1, 0, 1]]
        packed = _decoded(images)
        source = numbers_for(packed, interpolation)
        if boxes is None:
            out = imgops.resize(source, self.size, interpolation, antialias=antialias)
        else:
            out = imgops.resized_crop(source, boxes, self.size, interpolation, antialias=antialias)
        return restore_dtype(out, packed)

    def run(self, program: ImageProgram | None, tables: Tensor | None) -> Tensor | None:
        """Return the windows after the steps of a program and tables of floats; None if nothing was done."""
        (height, width), interleaved, images = self.size, self.interleaved, self.images
        color = native.color_of(native.levels_of(self.fill, images.num_channels) or [])
        steps = _resample.window_step(self.how[0], height, width, color)
        targets = self.size if self.targets is None else self.targets
        numbers = _resample.windows(images.sizes, self.boxes, targets, self.corners)
        if program is not None and program.steps:
            more = np.array(program.steps, np.int64)
            more[:, 1] += numbers.shape[1]
            steps = np.concatenate([steps, more])
            rows = program.rows()
            each = np.broadcast_to(rows[:, None], (len(rows), len(numbers) // len(rows), rows.shape[1]))
            numbers = np.concatenate([numbers, each.reshape(len(numbers), -1)], 1)
            height, width, interleaved = program.height, program.width, program.interleaved
        size = (*self.shape[:2], height, width)
        strides = layout.interleaved_strides if interleaved else layout.planar_strides
        dtype = torch.uint8 if tables is None else torch.float32
        out = memory.empty_strided(size, tuple(strides(size)), dtype=dtype)
        if isinstance(images, EncodedImages):
            done = images._run_program(out, steps, numbers, tables)
        else:
            facts = _resample.facts_of(images.sizes, images.offsets)
            how = facts, None, steps, numbers, tables, images.interleaved
            done = _resample.run_windows(out, images.data, *how) is not None
        return out if done else None


def _decoded(images: PackedImages | EncodedImages) -> PackedImages:
    return images.decode() if type(images) is EncodedImages else images  # type: ignore[return-value]
