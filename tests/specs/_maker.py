"""Makers of images: the same call in every dtype, memory format, batch shape and device."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

#: The dtypes of operators that only move pixels.
ANY_DTYPE = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
)
#: uint8 and floating point.
FLOATS = (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)
#: uint8, uint16 and floating point.
LEVELS_AND_FLOATS = (torch.uint8, torch.uint16, *FLOATS[1:])
FORMATS = (
    *("planar", "interleaved", "window", "interleaved-window", "sliced", "interleaved-sliced"),
    *("transposed", "expanded", "rows"),
)
BATCHES: tuple[tuple[int, ...], ...] = ((), (2,), (2, 3), (0,), (1, 1))
DEVICES = ("cpu", *(("cuda",) if torch.cuda.is_available() else ()))


@dataclass(frozen=True)
class Maker:
    """A maker of the images of one call."""

    dtype: torch.dtype = torch.float32
    format: str = "planar"
    batch: tuple[int, ...] = ()
    device: str = "cpu"
    seed: int = 0
    grad: bool = False
    count: list[int] = field(default_factory=lambda: [0])

    def image(
        self,
        channels: int,
        height: int,
        width: int,
        low: float = -2,
        high: float = 2,
        snap: bool = False,
    ) -> Tensor:
        self.count[0] += 1
        generator = torch.Generator().manual_seed(1000 * self.seed + self.count[0])
        shape = (*self.batch, channels, height, width)
        dense = self._values(shape, generator, low, high)
        if snap and self.dtype.is_floating_point:
            dense = ((dense.double() * 64).floor() + 0.3).div(64).to(self.dtype)
        image = formatted(dense.to(self.device), self.format)
        return image.requires_grad_(self.grad and self.dtype.is_floating_point)

    def mask(self, height: int, width: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return a mask of a given dtype; by default that of a float image, else uint8."""
        own = dtype or (self.dtype if self.dtype.is_floating_point else torch.uint8)
        return replace(self, dtype=own).image(1, height, width, 0, 1)

    def per_sample(self, *values: float) -> Tensor:
        """Return a parameter for each sample, with the values in turn; without a batch, the first value."""
        count = max(torch.Size(self.batch).numel(), 0)
        each = torch.tensor([values[i % len(values)] for i in range(count)], dtype=torch.float64)
        return each.reshape(self.batch).requires_grad_(self.grad)

    def _values(self, shape: tuple[int, ...], generator: Any, low: float, high: float) -> Tensor:
        if self.dtype.is_floating_point:
            values = torch.rand(shape, generator=generator, dtype=torch.float64)
            return (values * (high - low) + low).to(self.dtype)
        if self.dtype == torch.bool:
            return torch.rand(shape, generator=generator) < 0.5
        info = torch.iinfo(self.dtype)
        high_int = min(info.max, 2**62)
        values = torch.randint(max(info.min, -(2**62)), high_int, shape, generator=generator)
        return values.to(self.dtype)


@dataclass(frozen=True)
class Counted(Maker):
    """A maker of images of another number of channels where a sample has three."""

    channels: int = 3

    def image(self, channels: int, *args: Any, **keywords: Any) -> Tensor:
        return super().image(self.channels if channels == 3 else channels, *args, **keywords)


def of_levels(maker: Maker) -> Maker:
    """Return a maker of uint8, or of uint16 if that is its dtype."""
    return maker if maker.dtype == torch.uint16 else replace(maker, dtype=torch.uint8)


def formatted(dense: Tensor, format: str) -> Tensor:
    """Return the same values in another memory format."""
    if format == "planar":
        return dense.contiguous()
    if format == "interleaved":
        return dense.movedim(-3, -1).contiguous().movedim(-1, -3)
    if format == "transposed":
        return dense.transpose(-1, -2).contiguous().transpose(-1, -2)
    if format == "rows":  # (H, C, W) in memory: dense, but neither planar nor interleaved
        return dense.movedim(-3, -2).contiguous().movedim(-2, -3)
    whole, _, cut = format.rpartition("-")
    if cut in ("window", "sliced"):  # a slice of a larger image; "sliced" takes every second column
        *lead, height, width = dense.shape
        step = 2 if cut == "sliced" else 1
        frame = dense.new_zeros((*lead, height + 2, step * width + 1))
        view = formatted(frame, whole or "planar")[..., 1 : height + 1, 1 : step * width + 1 : step]
        view.copy_(dense)
        return view
    if format == "expanded":  # all channels share memory
        return dense[..., :1, :, :].contiguous().expand(dense.shape)
    raise ValueError(format)


def parameter(m: Maker, value: Tensor) -> Tensor:
    """Return a parameter that requires a gradient if this maker's tensors do."""
    return value.clone().requires_grad_(m.grad and value.is_floating_point())


def rows(m: Maker, *each: tuple[int, ...]) -> Tensor:
    """Return a row of integers, such as a box, for each sample, with the given rows in turn."""
    count = torch.Size(m.batch).numel()
    return torch.tensor([each[i % len(each)] for i in range(count)]).reshape(*m.batch, len(each[0])).long()
