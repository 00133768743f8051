"""Random arguments of an operator: ``draw`` of its spec makes them, or its samples do, in other sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.specs._maker import FORMATS, Counted, Maker, formatted

BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap")


def numbers_of(value: Any) -> list[float]:
    """Return the numbers in an argument; for a tensor, its minimum and maximum."""
    if isinstance(value, (tuple, list)):
        return [v for x in value for v in numbers_of(x)]
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        value = value.detach().double().numpy() if isinstance(value, Tensor) else value
        return list(map(float, {value.min(), value.max()})) if value.size else []
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


class Draw:
    """The random size, dtype, format and arguments of one call."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = self.choice(torch.uint8, torch.float32, torch.float64)
        self.size = self.whole(1, 40), self.whole(1, 40)
        self.channels, self.format = self.whole(1, 6), self.choice(*FORMATS)
        self.white = 255 if self.dtype == torch.uint8 else 1

    def choice(self, *values: Any) -> Any:
        return self.random.choice(values)

    def whole(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def number(self, low: float, high: float) -> Tensor:
        return torch.tensor(self.random.uniform(low, high), dtype=torch.float64)

    def image(self, channels: int = 0, dtype: torch.dtype | None = None, size: Any = None) -> Tensor:
        shape = channels or self.channels, *(size or self.size)
        image = torch.randint(0, 256, shape, generator=self.generator, dtype=torch.uint8)
        dtype = dtype or self.dtype
        if dtype != torch.uint8:
            image = image.to(dtype) / 255
        return formatted(image, self.format)

    def levels(self, channels: int = 0) -> Tensor:
        return self.image(channels, torch.uint8)

    def element(self) -> Tensor:
        size = self.whole(1, 6), self.whole(1, 6)
        element = torch.randint(0, 2, size, generator=self.generator)
        element[0, 0] = 1
        return element

    def padding_mode(self) -> str:
        return self.choice(*BORDERS)

    def maker(self, dtypes: tuple[torch.dtype, ...]) -> Maker:
        """Return a maker of a sample's arguments whose images have other sizes and numbers of channels."""
        how = {
            "seed": self.whole(0, 999),
            "channels": self.choice(1, 2, 3, 3, 3, 4, 5),
            "random": self.random,
        }
        return OtherSizes(self.choice(*dtypes), self.format, **how)


@dataclass(frozen=True)
class OtherSizes(Counted):
    """A maker that has a random height or width for each one that a sample names; equal ones stay equal."""

    random: Random = field(default_factory=Random)
    sizes: dict[int, int] = field(default_factory=dict)

    def image(self, channels: int, height: int, width: int, *args: Any, **options: Any) -> Tensor:
        height, width = (self.sizes.setdefault(n, self.random.randint(1, 24)) for n in (height, width))
        return super().image(channels, height, width, *args, **options)
