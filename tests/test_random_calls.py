"""Random sizes, formats, dtypes and arguments of operators over OpenCV, against OpenCV itself and the decomposition."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from imgops.fake.color_space import CODES
from tests.specs import SPECS
from tests.specs._spec import EXACT, Tolerance

BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap")
KINDS = ("binary", "binary_inv", "trunc", "tozero", "tozero_inv")
FROM_RGB = [c for c in CODES if c.startswith(("rgb2", "bgr2"))]
CALLS = 60


class Draw:
    """The random size, dtype, format and arguments of one call."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = self.choice(torch.uint8, torch.float32, torch.float64)
        self.size = self.whole(1, 40), self.whole(1, 40)
        self.channels, self.interleaved = self.whole(1, 6), self.whole(0, 1)
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
        return image.permute(1, 2, 0).contiguous().permute(2, 0, 1) if self.interleaved else image

    def levels(self, channels: int = 0) -> Tensor:
        return self.image(channels, torch.uint8)

    def element(self) -> Tensor:
        size = self.whole(1, 6), self.whole(1, 6)
        element = torch.randint(0, 2, size, generator=self.generator)
        element[0, 0] = 1
        return element

    def padding_mode(self) -> str:
        return self.choice(*BORDERS)


ARGUMENTS: dict[str, Callable[[Draw], tuple[Any, ...]]] = {
    "erode": lambda d: (d.image(), d.element(), d.padding_mode()),
    "dilate": lambda d: (d.image(), d.element(), d.padding_mode()),
    "hit_or_miss": lambda d: (
        d.levels(),
        d.element() - d.choice(0, 2) * d.element()[:1, :1],
        d.padding_mode(),
    ),
    "sobel": lambda d: (
        d.image(),
        *d.choice((1, 0), (0, 1), (1, 1), (2, 0)),
        d.choice(3, 5, 7),
        d.padding_mode(),
    ),
    "scharr": lambda d: (d.image(), *d.choice((1, 0), (0, 1)), d.padding_mode()),
    "laplacian": lambda d: (d.image(), d.choice(1, 3, 5, 7), d.padding_mode()),
    "canny": lambda d: (
        d.levels(d.choice(1, 3)),
        d.number(0, 400),
        d.number(0, 900),
        d.choice(3, 5, 7),
        d.choice(True, False),
    ),
    "box_blur": lambda d: (d.image(), d.whole(1, 9), d.whole(1, 9), d.padding_mode()),
    "bilateral_filter": lambda d: (
        d.image(d.choice(1, 3)),
        d.number(0.1 * d.white, d.white),
        d.number(0.5, 4),
        d.whole(1, 9),
        d.padding_mode(),
    ),
    "unsharp_mask": lambda d: (d.image(), d.number(0, 9), d.number(0, 300), d.number(0, 20)),
    "pyr_down": lambda d: (d.image(),),
    "pyr_up": lambda d: (d.image(),),
    "threshold": lambda d: (
        d.image(),
        d.number(0, d.white),
        d.number(0, d.white),
        d.choice(*KINDS, *(("otsu", "triangle") if d.dtype == torch.uint8 else ())),
    ),
    "adaptive_threshold": lambda d: (
        d.levels(),
        d.number(0, 300),
        d.number(-5, 5),
        d.choice(3, 5, 7, 9, 13),
        d.choice("mean", "gaussian"),
        d.choice("binary", "binary_inv"),
    ),
    "cvt_color": lambda d: (d.image(3), d.choice(*FROM_RGB)),
    "clahe": lambda d: (d.image(1), d.number(0, 10), d.whole(1, 9), d.whole(1, 9)),
    "match_histograms": lambda d: (d.image(), d.image(size=(d.whole(1, 30), d.whole(1, 30)))),
    "distance_transform": lambda d: (
        d.levels() // d.choice(1, 100, 200),
        d.choice(0, 3, 5),
        d.choice("l1", "l2", "c"),
    ),
    "component_labels": lambda d: (d.levels() // d.choice(1, 100, 130, 200), d.choice(4, 8)),
    "add_weighted": lambda d: (d.image(), d.image(), d.number(-1, 2), d.number(-1, 2), d.number(0, d.white)),
    "alpha_composite": lambda d: (d.image(4), d.image(4)),
    "downscale": lambda d: (
        d.image(),
        d.number(0.02, 1),
        d.choice("area", "nearest", "bilinear"),
        d.choice("bilinear", "nearest", "bicubic"),
    ),
}
#: Tolerances where values of some thousands cancel, and where a mean at a half decides.
LOOSER = {
    ("sobel", torch.float32): Tolerance(1e-3),
    ("laplacian", torch.float32): Tolerance(1e-3),
    ("adaptive_threshold", torch.uint8): Tolerance(levels=255, share=0.05),
}


def plain(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.numpy() if value.ndim else value.item()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_random_calls(name: str) -> None:
    spec = SPECS[name]
    for seed in range(CALLS):
        draw = Draw(seed)
        args = ARGUMENTS[name](draw)
        if name == "hit_or_miss" and not args[1].any():
            continue
        out = getattr(torch.ops.imgops, name)(*args)
        wanted = torch.from_numpy(np.ascontiguousarray(spec.reference(*map(plain, args))))  # type: ignore[operator]
        found = spec.operator.decomposition(*args)  # type: ignore[misc]
        try:
            wanted = wanted.to(out.dtype) if out.is_floating_point() else wanted
            spec.tolerance.get(out.dtype, EXACT).check(out, wanted)
            if name != "cvt_color":  # its tolerances depend on the code
                tolerance = LOOSER.get((name, out.dtype), spec.decomposed.get(out.dtype, EXACT))
                tolerance.check(found, out)
        except AssertionError as error:
            shapes = [tuple(a.shape) if isinstance(a, Tensor) else a for a in args]
            raise AssertionError(f"seed {seed}, {draw.dtype}, {shapes}: {error}") from error
