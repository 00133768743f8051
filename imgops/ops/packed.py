"""The resize of packed images to sizes of their own, and to windows of one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import torch_private
from imgops._operator.declare import operator
from imgops.decomposition import packed as decomposition
from imgops.fake import packed as fake
from imgops.kernels.cpu import packed as cpu


@operator(
    "imgops_packed::resize_each",
    kernel=cpu.resize_packed,
    fake=fake.resize_packed,
    dynamic=True,
    no_gradient="the sizes of its images are data",
)
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
) -> Tensor: ...


def resize_each(
    images: Any, sizes: Tensor, interpolation: str, antialias: bool, scale: Sequence[float] | None = None
) -> Any:
    """Return packed images, each resized to its own height and width; ``sizes`` are int64 ``(N, 2)``."""
    data, own, offsets = images.data, images.sizes, images.offsets
    channels, interleaved = images.num_channels, images.interleaved
    if torch_private.is_eager() and (images.requires_grad or not data.is_cpu):
        how = channels, interpolation, antialias, scale, interleaved
        fake.resize_packed(lambda min, max: 0, data, own, offsets, sizes, *how)
        made = decomposition.resize_each(data, own, offsets, sizes, *how)
        return type(images).of(made, interleaved)
    out = resize_packed(data, own, offsets, sizes, channels, interpolation, antialias, scale, interleaved)
    ends = (sizes.prod(1) * channels).cumsum(0)
    return images.like(out, sizes, torch.cat([ends.new_zeros(1), ends]))


@operator(
    "imgops_packed::resize_windows",
    kernel=cpu.resize_windows,
    fake=fake.resize_windows,
    decomposition=decomposition.resize_windows,
)
def resize_windows(
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
) -> Tensor: ...
