"""Images of different sizes in one buffer, which kernels take instead of a batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Packed:
    """Images in one buffer, which look like a batch ``(N, C, H, W)`` of the greatest height and width.

    The steps of such a batch are 0: a kernel with a constant ``PACKED`` gets the sizes and offsets of the images
    instead, and computes the position of each image.
    """

    def __init__(
        self, data: Tensor, sizes: Tensor, offsets: Tensor, shape: tuple[int, ...], interleaved: bool
    ) -> None:
        self.data, self.sizes, self.offsets, self.interleaved = data, sizes, offsets, interleaved
        self.shape, self.ndim = torch.Size(shape), 4
        self.dtype, self.device = data.dtype, data.device
        self.element_size, self.numel = data.element_size, data.numel

    def detach(self) -> Packed:
        return self

    def stride(self, dim: int = 0) -> Any:
        return (0, 0, 0, 0)

    def copy_(self, other: Packed) -> None:
        self.data.copy_(other.data)

    def with_values(self, data: Tensor) -> Packed:
        return Packed(data, self.sizes, self.offsets, self.shape, self.interleaved)

    @property
    def kind(self) -> str:
        """The memory format, in the form that kernels use."""
        return "interleaved" if self.interleaved else "planar"

    @property
    def place(self) -> dict[str, Any]:
        """The arguments with which a kernel finds the images."""
        return {"sizes": self.sizes, "starts": self.offsets, "PACKED": self.kind}
