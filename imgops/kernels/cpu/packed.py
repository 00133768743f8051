"""CPU kernels of packed images: each thread computes some of the images by the operator's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, packing
from imgops._operator.record import Operator, Packed
from imgops.decomposition import packed as decomposition
from imgops.decomposition.packed import of_image
from imgops.kernels.cpu import _resample, _threads, native, resize


def run(operator: Operator, facet: Packed, out: Tensor, *args: Any) -> None:
    count = operator.tensors - 1
    data, sizes, offsets, *given = args[: 3 + count]
    channels, *rest, interleaved = args[3 + count :]
    parameters = [None if x is None else x.detach() for x in given]
    where = data.detach(), sizes, offsets
    if out.numel() == 0 or _by_native(facet, out, *where, parameters, rest, interleaved):
        return
    sources = packing.images_of(data.detach(), sizes, offsets, channels, interleaved)
    if facet.keeps_size:
        of_out = out.shape[0] // (data.shape[0] // channels)
        ends = offsets // channels * of_out
        targets = packing.images_of(out, sizes, ends, of_out, interleaved)
    else:
        targets = list(out)
    each = [of_image(operator, parameters, i) for i in range(len(sources))]
    for source, own in zip(sources, each, strict=True):  # errors come before anything is written
        operator.fake(source, *own, *rest)
        if operator.values is not None:
            operator.values(source, *own, *rest)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            operator.kernel(targets[i], sources[i], *each[i], *rest)

    _threads.split_evenly(offsets.numpy(), work)


def _by_native(
    facet: Packed,
    out: Tensor,
    data: Tensor,
    sizes: Tensor,
    offsets: Tensor,
    parameters: list[Tensor | None],
    rest: list[Any],
    interleaved: bool,
) -> bool:
    """Resize uint8 images as PIL does, in one native call; return False if nothing was done."""
    if not facet.has_box or data.dtype != torch.uint8:
        return False
    (box,), (_, _, interpolation, antialias, *_) = parameters, rest
    if not antialias or interpolation == "nearest":
        return False
    if box is not None:
        if box.dtype != torch.int64:
            return False
        box = box.expand(len(sizes), 4)
        bounds = sizes[:, [1, 0]]
        if not ((box[:, :2] >= 0) & (box[:, :2] < box[:, 2:]) & (box[:, 2:] <= bounds)).all():
            return False  # the call of that image raises
    return _resample.packed_by_native(out, data, sizes, offsets, box, interpolation, interleaved)


def _require_sizes(
    op: str, data: Tensor, sizes: Tensor, offsets: Tensor, targets: Tensor, channels: int
) -> None:
    packing.require_fit(op, data, sizes, offsets, channels)
    high, wide = targets.unbind(1)
    bad = (high < 1) | (wide < 1) | (high.double() * wide.double() >= 1 << 31)
    if bad.any():
        must = "size must be at least 1 pixel, and less than 2**31 pixels, for each image"
        check.fail(ValueError, op, must, tuple(targets[bad][0].tolist()))


def resize_packed(
    data: Tensor,
    sizes: Tensor,
    offsets: Tensor,
    targets: Tensor,
    channels: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
    interleaved: bool,
) -> Tensor:
    data = data.detach()
    _require_sizes("resize", data, sizes, offsets, targets, channels)
    areas = targets.prod(1)
    ends = torch.cat([areas.new_zeros(1), (areas * channels).cumsum(0)])
    out = data.new_empty((int(ends[-1]),))
    images = packing.images_of(data, sizes, offsets, channels, interleaved)
    made = packing.images_of(out, targets, ends, channels, interleaved)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            _, height, width = made[i].shape
            resize.resize(made[i], images[i], None, height, width, interpolation, antialias, scale)

    _threads.split_evenly(offsets.numpy(), work)
    return out


def resize_windows(
    out: Tensor,
    data: Tensor,
    sizes: Tensor,
    offsets: Tensor,
    targets: Tensor,
    corners: Tensor,
    channels: int,
    height: int,
    width: int,
    fill: Sequence[float],
    interpolation: str,
    antialias: bool,
    interleaved: bool,
) -> None:
    data = data.detach()
    _require_sizes("resize", data, sizes, offsets, targets, channels)
    if len(sizes) == 0:
        return
    levels = native.levels_of(fill, channels) if channels <= native.MOST_CHANNELS else None
    if data.dtype == torch.uint8 and antialias and interpolation in _resample.FILTERS and levels is not None:
        numbers = _resample.windows(sizes, None, targets, corners)
        steps = _resample.window_step(interpolation, height, width, native.color_of(levels))
        facts = _resample.facts_of(sizes, offsets)
        if _resample.run_windows(out, data, facts, None, steps, numbers, None, interleaved) is not None:
            return
    size = channels, height, width, fill, interpolation, antialias, interleaved
    out.copy_(decomposition.resize_windows(data, sizes, offsets, targets, corners, *size))
