"""Samples of the warps and of resized crops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from samples_maker import Maker, Sample, boxes, given
from torch import Tensor

_TURN = torch.tensor([[0.9, -0.35, 1.3], [0.31, 0.8, -0.4]], dtype=torch.float64)
_TILT = torch.tensor([[0.9, -0.35, 1.3], [0.31, 0.8, -0.4], [0.02, -0.03, 1.1]], dtype=torch.float64)


def _warp(op: str, id: str, matrix: Tensor, *rest: Any, shape: Any = (3, 7, 9), **options: Any) -> Sample:
    """One matrix; "each": one a sample, each a little farther."""

    def arguments(m: Maker) -> tuple[Any, ...]:
        value = matrix
        if "each" in id:
            value = matrix * m.amounts(1, 0.9, 1.07).detach()[..., None, None]
        return m.image(*shape), given(m, value), *rest

    edge = options.pop("edge", False)
    return Sample(op, id, arguments, options, edge=edge)


def _positions(m: Maker, height: int, width: int) -> Tensor:
    """Positions on both sides of the border, none of them near a whole number."""
    made = replace(m, dtype=torch.float64, format="planar", grad=False).image(2, height, width, -3, 11)
    held = made.floor() + 0.1 + 0.8 * (made - made.floor())
    return held.to(torch.float64 if m.dtype == torch.float64 else torch.float32).requires_grad_(m.grad)


def _fills(m: Maker, *values: float) -> dict[str, Any]:
    return {"fill": torch.tensor(values, dtype=torch.float64).requires_grad_(m.grad)}


GEOMETRY: tuple[Sample, ...] = (
    *(
        _warp("warp_affine", f"{name}-{border}", _TURN, None, name, border)
        for name, border in (
            ("nearest", "constant"),
            ("bilinear", "constant"),
            ("bicubic", "constant"),
            ("nearest", "wrap"),
            ("bilinear", "edge"),
            ("bicubic", "reflect"),
            ("bilinear", "symmetric"),
        )
    ),
    _warp("warp_affine", "larger", _TURN, (9, 12), "bilinear", fill=0.5),
    _warp("warp_affine", "each-fills", _TURN, (5, 6), "bilinear", fill=(1, 0, 2)),
    Sample("warp_affine", "identity", lambda m: (m.image(3, 7, 9), torch.eye(3)[:2].long())),
    _warp("warp_affine", "one-pixel", _TURN, (2, 3), shape=(1, 1, 1), edge=True),
    _warp("warp_affine", "five-channels", _TURN, (4, 3), shape=(5, 6, 7), fill=(1, 2, 3, 4, 5), edge=True),
    _warp("warp_affine", "singular", 0 * _TURN, edge=True),
    *(
        _warp("warp_perspective", f"{name}-{border}", _TILT, None, name, border)
        for name, border in (("nearest", "edge"), ("bilinear", "constant"), ("bicubic", "constant"))
    ),
    _warp("warp_perspective", "each-fill", _TILT, (5, 6), "bilinear", "constant", 2),
    *(
        Sample(
            "remap",
            f"{name}-{border}",
            lambda m, n=name, b=border: (m.image(3, 7, 9), _positions(m, 4, 5), n, b),
        )
        for name, border in (
            ("nearest", "reflect"),
            ("bilinear", "constant"),
            ("bicubic", "constant"),
            ("bilinear", "wrap"),
        )
    ),
    Sample(
        "remap",
        "fills",
        lambda m: (m.image(3, 7, 9), _positions(m, 4, 5), "bicubic", "constant", _fills(m, 1, 0, 2)),
    ),
    *(
        Sample(
            "resized_crop",
            f"{name}{'' if antialias else '-plain'}",
            lambda m, n=name, a=antialias: (m.image(3, 7, 9), torch.tensor([2, 1, 8, 5]), (5, 4), n),
            {"antialias": antialias},
            linear=True,
        )
        for name, antialias in (
            ("bilinear", True),
            ("bicubic", True),
            ("nearest", True),
            ("bilinear", False),
            ("bicubic", False),
            ("nearest", False),
        )
    ),
    Sample(
        "resized_crop",
        "each",
        lambda m: (m.image(3, 7, 9), boxes(m, (2, 1, 8, 5), (0, 0, 9, 7), (3, 6, 4, 7)), (5, 4)),
        linear=True,
    ),
    Sample(
        "resized_crop",
        "each-nearest-same-size",
        lambda m: (m.image(3, 7, 9), boxes(m, (2, 1, 6, 6), (0, 0, 4, 5)), (5, 4), "nearest"),
        linear=True,
    ),
)


WARP_ADJOINTS: tuple[Sample, ...] = (
    *(
        Sample(
            "remap_adjoint",
            f"{n}-{b}",
            lambda m, n=n, b=b: (m.image(3, 4, 5), _positions(m, 4, 5), 7, 9, n, b),
        )
        for n, b in (("bilinear", "constant"), ("bicubic", "reflect"), ("nearest", "wrap"))
    ),
    *(
        Sample(
            "remap_grad_map",
            f"{n}-{b}",
            lambda m, n=n, b=b: (m.image(3, 4, 5), m.image(3, 7, 9), _positions(m, 4, 5), None, n, b),
        )
        for n, b in (("bilinear", "constant"), ("bicubic", "edge"))
    ),
    Sample(
        "resized_crop_adjoint",
        "bicubic",
        lambda m: (m.image(3, 5, 4), torch.tensor([2, 1, 8, 5]), 7, 9, "bicubic", True),
        linear=True,
    ),
    Sample(
        "resized_crop_adjoint",
        "each-nearest",
        lambda m: (m.image(3, 5, 4), boxes(m, (2, 1, 8, 5), (0, 0, 9, 7)), 7, 9, "nearest", True),
        linear=True,
    ),
)
