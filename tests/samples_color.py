"""Samples of color and levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from samples_maker import Maker, Sample, boxes, given
from torch import Tensor


def _single(op: str, id: str, arguments: Callable[[Maker], tuple[Any, ...]], **options: Any) -> Sample:
    """An operator on the values of an image in [0, 1]."""
    return Sample(op, id, arguments, **options)


def _unit(m: Maker, channels: int = 3, height: int = 5, width: int = 6) -> Tensor:
    return m.image(channels, height, width, 0.05, 0.95)


def _levels_unit(m: Maker, *shape: int) -> Tensor:
    """Values inside their levels, where a step to the next one is far away."""
    return m.image(*shape, 0.05, 0.95, snap=True)


def _table(m: Maker, *lead: int, dtype: torch.dtype = torch.float64) -> Tensor:
    values = torch.arange(torch.Size(lead).numel() * 256).reshape(*lead, 256) * 7 % 251
    return values.to(dtype).requires_grad_(m.grad and dtype.is_floating_point)


def _levels_image(m: Maker, channels: int = 3) -> Tensor:
    return replace(m, dtype=torch.uint8).image(channels, 5, 6)


_MIRROR = torch.tensor([[0.2, 0.5, -0.3], [0.9, 0.1, 0.3], [-0.4, 1.5, 0.7]], dtype=torch.float64)
_OFFSET = torch.tensor([[0.2, 0.5, 0.3, 0.1], [0.9, -0.1, 0.3, -0.2]], dtype=torch.float64)


COLORS: tuple[Sample, ...] = (
    *(
        _single(f"adjust_{name}", id, lambda m, f=f: (_unit(m), f))
        for name in ("brightness", "contrast", "saturation")
        for id, f in (("less", 0.3), ("more", 1.7), ("none", 0), ("same", 1.0), ("beyond", -0.4))
    ),
    *(_single("adjust_hue", id, lambda m, f=f: (_unit(m), f)) for id, f in (("on", 0.21), ("back", -0.4))),
    *(
        _single(f"adjust_{name}", "each", lambda m: (_unit(m), m.amounts(0.4, 1.3, 0.9)))
        for name in ("brightness", "contrast", "saturation", "hue")
    ),
    *(
        _single(f"adjust_{name}", "gray", lambda m: (_unit(m, 1), 0.4))
        for name in ("contrast", "saturation", "hue")
    ),
    *(
        _single(f"adjust_{name}", "one-row", lambda m: (_unit(m, 3, 1, 4), 0.4), edge=True)
        for name in ("brightness", "contrast", "saturation", "hue")
    ),
    *(
        _single(f"adjust_{name}", "of-nothing", lambda m: (_unit(m, 3, 0, 4), 0.4), edge=True)
        for name in ("brightness", "contrast", "saturation", "hue")
    ),
    _single("grayscale", "one", lambda m: (_unit(m),)),
    _single("grayscale", "three", lambda m: (_unit(m), 3)),
    _single("grayscale", "gray-three", lambda m: (_unit(m, 1), 3)),
    _single("color_matrix", "square", lambda m: (m.image(3, 5, 6), given(m, _MIRROR))),
    _single("color_matrix", "offset", lambda m: (m.image(3, 5, 6), given(m, _OFFSET))),
    _single(
        "color_matrix",
        "each",
        lambda m: (m.image(3, 5, 6), (_MIRROR * m.amounts(1, 0.4)[..., None, None]).detach()),
    ),
    _single(
        "color_matrix", "five-to-one", lambda m: (m.image(5, 4, 3), given(m, _MIRROR[:1, :1].expand(1, 5)))
    ),
    _single(
        "color_sequence",
        "jitter",
        lambda m: (
            _unit(m),
            torch.tensor([2, 0, 3, 1]),
            given(m, torch.tensor([0.8, 1.2, 1.3, 0.1], dtype=torch.float64)),
            "brightness,contrast,saturation,hue",
        ),
    ),
    _single(
        "color_sequence",
        "each",
        lambda m: (
            _unit(m),
            torch.stack([m.amounts(1, -1, 0), m.amounts(0, -1, 1)], -1).long(),
            torch.stack([m.amounts(0.7, 1.2), m.amounts(0.3, 0.6)], -1).detach().requires_grad_(m.grad),
            "contrast,solarize",
        ),
    ),
    _single(
        "color_sequence",
        "levels",
        lambda m: (
            _unit(m),
            torch.tensor([3, 2, 1, 0]),
            torch.tensor([0.0, 0, 3.5, 0]),
            "equalize,invert,posterize,autocontrast",
        ),
    ),
    _single("adjust_gamma", "dark", lambda m: (_unit(m), 2.2)),
    _single("adjust_gamma", "gain", lambda m: (_unit(m), 0.45, 0.8)),
    _single("adjust_gamma", "each", lambda m: (_unit(m), m.amounts(0.7, 1.9, 1.0), m.amounts(1.0, 0.6))),
    *(_single("posterize", str(bits), lambda m, bits=bits: (_unit(m), bits)) for bits in (1, 4, 8)),
    _single("posterize", "each", lambda m: (_unit(m), m.amounts(1, 4, 7).long())),
    _single("solarize", "half", lambda m: (_unit(m), 0.5 if m.dtype.is_floating_point else 128)),
    _single("solarize", "all", lambda m: (_unit(m), 0)),
    _single("solarize", "each", lambda m: (_unit(m), m.amounts(0.2, 100, 0.7))),
    *(
        _single(op, id, lambda m, f=f, shape=shape: (f(m, *shape),), edge="-" in id)
        for op, f in (("autocontrast", _unit), ("equalize", _levels_unit))
        for id, shape in (
            ("rgb", (3, 20, 30)),
            ("five", (5, 4, 5)),
            ("one-pixel", (3, 1, 1)),
            ("no-rows", (3, 0, 4)),
        )
    ),
    _single("lut", "float", lambda m: (_levels_image(m), _table(m))),
    _single("lut", "channels", lambda m: (_levels_image(m), _table(m, 3, dtype=torch.float32))),
    _single("lut", "each", lambda m: (_levels_image(m), _table(m, *m.batch, 1, dtype=torch.uint8))),
    _single(
        "lut", "each-channel", lambda m: (_levels_image(m, 5), _table(m, *m.batch, 5, dtype=torch.int64))
    ),
)


def _two_sigmas(m: Maker) -> Tensor:
    return torch.stack([m.amounts(0.8, 1.5), m.amounts(1.1, 0.4)], -1).detach().requires_grad_(m.grad)


_EDGES = torch.tensor([[0.5, -1.0], [0.25, 0.75], [-0.3, 0.2]], dtype=torch.float64)

FILTERS: tuple[Sample, ...] = (
    _single("gaussian_blur", "five", lambda m: (m.image(3, 7, 6), 5)),
    _single("gaussian_blur", "wide", lambda m: (m.image(3, 4, 5), (9, 3), (2.0, 0.7))),
    _single(
        "gaussian_blur", "sigma", lambda m: (m.image(3, 7, 6), (3, 5), given(m, torch.tensor(0.9).double()))
    ),
    _single("gaussian_blur", "each", lambda m: (m.image(3, 7, 6), (3, 5), _two_sigmas(m))),
    _single("gaussian_blur", "none", lambda m: (m.image(3, 4, 5), 3, 0)),
    _single("gaussian_blur", "one-pixel", lambda m: (m.image(5, 1, 1), 3, 1.0), edge=True),
    *(
        _single("filter2d", border, lambda m, b=border: (m.image(3, 7, 6), given(m, _EDGES), b))
        for border in ("constant", "edge", "reflect", "symmetric", "wrap")
    ),
    _single(
        "filter2d",
        "each",
        lambda m: (
            m.image(3, 7, 6),
            (_EDGES * m.amounts(1, 0.4).detach()[..., None, None]).requires_grad_(m.grad),
        ),
    ),
    *(
        _single("adjust_sharpness", id, lambda m, f=f: (_unit(m, 3, 6, 7), f))
        for id, f in (("less", 0.3), ("more", 1.7), ("same", 1.0))
    ),
    _single("adjust_sharpness", "each", lambda m: (_unit(m, 5, 6, 7), m.amounts(0.4, 1.3, 0.9))),
    _single("adjust_sharpness", "one-row", lambda m: (_unit(m, 3, 1, 4), 0.4), edge=True),
)


MIXES: tuple[Sample, ...] = (
    _single("erase", "zero", lambda m: (m.image(3, 5, 6), (1, 2, 4, 5))),
    _single("erase", "clipped-color", lambda m: (m.image(3, 5, 6), (-3, 2, 2, 9), (1, 0, 1))),
    _single("erase", "empty", lambda m: (m.image(3, 5, 6), (3, 3, 3, 3), 1)),
    _single("erase", "pixels", lambda m: (m.image(3, 5, 6), (1, 2, 4, 5), m.image(3, 5, 6))),
    _single(
        "erase",
        "each",
        lambda m: (m.image(3, 5, 6), boxes(m, (1, 2, 4, 5), (0, 0, 0, 0)), m.image(3, 5, 6)),
    ),
    _single("blend", "part", lambda m: (m.image(3, 5, 6), m.image(3, 5, 6), 0.3)),
    _single("blend", "beyond", lambda m: (m.image(3, 5, 6), m.image(3, 5, 6), 1.4)),
    _single("blend", "each", lambda m: (m.image(3, 5, 6), m.image(3, 5, 6), m.amounts(0.0, 0.6, 1.0))),
)
