"""Images of different sizes in one buffer: checks of its numbers, and the images as views of it."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check


def require_sizes(op: str, sizes: Tensor) -> None:
    """Check the dtype and shape of the sizes, without reading them."""
    check.dtype(op, "sizes", sizes, torch.int64)
    if sizes.ndim != 2 or sizes.shape[1] != 2:
        check.fail_shape(op, "sizes must have shape (N, 2), a height and width for each image", sizes)


def require_fit(op: str, data: Tensor, sizes: Tensor, offsets: Tensor, channels: int) -> None:
    """Check that every packed image has pixels, and that the images together fill the buffer."""
    if sizes.device.type != "cpu" or offsets.device.type != "cpu":
        check.fail(ValueError, op, "sizes and offsets must be on the CPU", sizes.device)
    if channels < 1:
        check.fail(ValueError, op, "channels must be at least 1", channels)
    numbers, ends = sizes.numpy(), offsets.numpy()
    if data.ndim != 1 or not data.is_contiguous():
        check.fail_shape(op, "data must be contiguous, of one dimension", data)
    most = max(data.numel(), 1)
    bad = (numbers < 1) | (numbers > most)
    if bad.any():
        height, width = numbers[bad.any(1)][0].tolist()
        must = "each image must have pixels and lie in data"
        check.fail(ValueError, op, must, f"a size of {height} x {width} for {data.numel()} values")
    # The product of two sides can overflow int64; Python's integers do not overflow.
    areas = numbers[:, 0].astype(object) * numbers[:, 1] * channels
    fits = len(ends) == len(numbers) + 1 and ends[0] == 0 and ends[-1] == data.numel()
    if not fits or (ends[1:] - ends[:-1] != areas).any():
        must = "sizes and offsets must be those of images that fill data"
        check.fail(ValueError, op, must, f"sizes of {sum(areas.tolist())} values for {data.numel()}")


def images_of(data: Tensor, sizes: Tensor, offsets: Tensor, channels: int, interleaved: bool) -> list[Tensor]:
    """Return the images of a buffer, ``(C, H, W)``, as views that gradients flow through."""
    parts = data.split((offsets[1:] - offsets[:-1]).tolist())
    each = zip(parts, sizes.tolist(), strict=True)
    if interleaved:
        return [part.view(high, wide, channels).permute(2, 0, 1) for part, (high, wide) in each]
    return [part.view(channels, high, wide) for part, (high, wide) in each]
