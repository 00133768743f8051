"""The table of samples: every generic test runs over these calls.

A sample is one call of a public function (or of an adjoint operator, which has none). Its images are made
by a Maker, so that the same call can be had in every dtype, memory format, batch shape and device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from samples_color import COLORS as COLORS
from samples_color import FILTERS as FILTERS
from samples_color import MIXES as MIXES
from samples_geometry import GEOMETRY as GEOMETRY
from samples_geometry import WARP_ADJOINTS as WARP_ADJOINTS
from samples_maker import BATCHES as BATCHES
from samples_maker import DEVICES as DEVICES
from samples_maker import FORMATS as FORMATS
from samples_maker import MOVEMENT_DTYPES as MOVEMENT_DTYPES
from samples_maker import RESIZE_DTYPES as RESIZE_DTYPES
from samples_maker import Maker as Maker
from samples_maker import Sample as Sample
from samples_maker import formatted as formatted
from torch import Tensor

import imgops


def _crop(id: str, box: tuple[int, ...], shape: tuple[int, ...] = (3, 7, 9), edge: bool = False) -> Sample:
    return Sample("crop", id, lambda m: (m.image(*shape), box), linear=True, edge=edge)


def _paste(
    id: str,
    position: tuple[int, int],
    source: tuple[int, int] = (4, 5),
    shape: tuple[int, ...] = (3, 7, 9),
    mask: str | torch.dtype = "",
    edge: bool = False,
) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        image, patch = m.image(*shape), m.image(shape[0], *source)
        if not mask:
            return image, patch, position
        weight = m.mask(*source, None if mask == "own" else mask)
        return image, patch, position, weight

    return Sample("paste", id, arguments, linear=not mask, edge=edge)


def _pad(
    id: str, padding: Any, shape: tuple[int, ...] = (3, 5, 6), edge: bool = False, **keywords: Any
) -> Sample:
    linear = keywords.get("fill", 0) == 0
    return Sample("pad", id, lambda m: (m.image(*shape), padding), keywords, linear=linear, edge=edge)


def _resize(
    id: str,
    size: tuple[int, int],
    *filter: str,
    shape: tuple[int, ...] = (3, 7, 9),
    edge: bool = False,
    **keywords: Any,
) -> Sample:
    return Sample("resize", id, lambda m: (m.image(*shape), size, *filter), keywords, linear=True, edge=edge)


SAMPLES: tuple[Sample, ...] = (
    _crop("inside", (2, 1, 7, 5)),
    _crop("whole", (0, 0, 9, 7)),
    _crop("over-left-top", (-3, -2, 4, 4)),
    _crop("over-right-bottom", (5, 4, 12, 10)),
    _crop("around", (-2, -3, 12, 10)),
    _crop("outside", (20, -30, 25, -24)),
    _crop("empty", (3, 3, 3, 6)),
    _crop("empty-outside", (-4, 9, -4, 9)),
    _crop("one-pixel", (0, 0, 1, 1), (1, 1, 1), edge=True),
    _crop("one-row", (2, 0, 5, 1), (3, 1, 6), edge=True),
    _crop("one-column", (-1, 2, 3, 5), (3, 6, 1), edge=True),
    _crop("of-nothing", (-1, 0, 2, 2), (3, 0, 5), edge=True),
    _crop("no-channels", (1, 1, 3, 4), (0, 5, 5), edge=True),
    _crop("many-channels", (1, 1, 3, 4), (131, 5, 5), edge=True),
    _paste("inside", (2, 1)),
    _paste("clipped-left-top", (-2, -3)),
    _paste("clipped-right-bottom", (6, 5)),
    _paste("outside", (30, -20)),
    _paste("covers", (-1, -1), (10, 12)),
    _paste("mask", (2, 1), mask="own"),
    _paste("mask-clipped", (-2, -1), mask="own"),
    _paste("mask-clipped-right", (7, 4), mask="own"),
    _paste("mask-outside", (9, 0), mask="own"),
    _paste("mask-bool", (2, -1), mask=torch.bool),
    _paste("mask-uint8", (2, -1), mask=torch.uint8),
    _paste("mask-float", (2, -1), mask=torch.float32),
    _paste("empty-source", (2, 2), (0, 5), edge=True),
    _paste("one-pixel", (0, 0), (1, 1), (1, 1, 1), edge=True),
    _paste("mask-one-row", (2, 0), (1, 3), (3, 1, 6), mask="own", edge=True),
    _paste("mask-onto-nothing", (0, 0), (2, 2), (3, 0, 5), mask="own", edge=True),
    _pad("all", 2),
    _pad("pair", (3, 1), fill=0.25),
    _pad("four", (1, 0, 4, 2), fill=(1, 0, 2)),
    _pad("none", 0),
    _pad("edge", (2, 3, 1, 0), mode="edge"),
    _pad("reflect", (2, 3, 1, 0), mode="reflect"),
    _pad("symmetric", (2, 3, 1, 0), mode="symmetric"),
    _pad("wrap", (2, 3, 1, 0), mode="wrap"),
    _pad("reflect-wide", 14, mode="reflect"),
    _pad("symmetric-wide", 14, mode="symmetric"),
    _pad("wrap-wide", 14, mode="wrap"),
    _pad("one-pixel", 2, (1, 1, 1), mode="reflect", edge=True),
    _pad("one-row", (1, 3), (3, 1, 4), mode="symmetric", edge=True),
    _pad("of-nothing", (1, 2), (2, 0, 4), fill=1, edge=True),
    _pad("no-channels", 1, (0, 3, 3), mode="wrap", edge=True),
    _pad("five-channels", (2, 1), (5, 4, 4), fill=(1, 2, 3, 4, 5), edge=True),
    _pad("many-channels", (2, 1), (131, 4, 4), mode="wrap", edge=True),
    *(
        _resize(f"{name}-{way}", size, name)
        for name in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
        for way, size in (("down", (3, 4)), ("up", (10, 13)))
    ),
    *(
        _resize(f"plain-{name}-{way}", size, name, antialias=False)
        for name in ("nearest", "bilinear", "bicubic", "area", "lanczos")
        for way, size in (("down", (3, 4)), ("up", (10, 13)))
    ),
    _resize("mixed", (3, 20), "bicubic"),
    _resize("plain-area-mixed", (3, 20), "area", antialias=False),
    _resize("same", (7, 9)),
    _resize("rows-only", (4, 9)),
    _resize("columns-only", (7, 4)),
    _resize("box", (4, 5), box=(1.25, 0.5, 7.75, 6.0)),
    _resize("box-nearest", (4, 5), "nearest", box=(1.25, 0.5, 7.75, 6.0)),
    _resize("box-nearest-empty", (2, 3), "nearest", box=(9, 2, 9, 5)),
    _resize("box-empty", (2, 3), "bicubic", box=(3.5, 2, 3.5, 7)),
    _resize("box-lanczos-up", (14, 19), "lanczos", box=(2, 1, 5, 6)),
    _resize("one-pixel", (3, 4), shape=(1, 1, 1), edge=True),
    _resize("to-one-pixel", (1, 1), "lanczos", edge=True),
    _resize("one-row", (2, 3), "bicubic", shape=(3, 1, 6), edge=True),
    _resize("plain-one-column", (2, 3), "bicubic", antialias=False, shape=(3, 6, 1), edge=True),
    _resize("no-channels", (3, 4), shape=(0, 5, 5), edge=True),
    _resize("five-channels", (4, 3), shape=(5, 7, 9), edge=True),
    _resize("plain-many-channels", (4, 3), "area", antialias=False, shape=(131, 7, 9), edge=True),
)

ADJOINTS: tuple[Sample, ...] = (
    *(
        Sample("pad_adjoint", mode, lambda m, mode=mode: (m.image(3, 9, 8), 2, 3, 1, 0, mode), linear=True)
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    ),
    *(
        Sample(
            "resize_adjoint",
            f"{name}-{antialias}",
            lambda m, name=name, antialias=antialias: (m.image(3, 4, 11), None, 7, 9, name, antialias),
            linear=True,
        )
        for name, antialias in (
            ("bilinear", True),
            ("lanczos", True),
            ("nearest", True),
            ("area", False),
            ("nearest", False),
        )
    ),
    Sample(
        "resize_adjoint",
        "box-nearest-empty",
        lambda m: (
            m.image(3, 4, 5),
            torch.tensor([9.0, 0, 9, 7], dtype=torch.float64),
            7,
            9,
            "nearest",
            True,
        ),
        linear=True,
    ),
    Sample(
        "resize_adjoint",
        "box",
        lambda m: (
            m.image(3, 4, 5),
            torch.tensor([1.25, 0.5, 7.75, 6.0], dtype=torch.float64),
            7,
            9,
            "bicubic",
            True,
        ),
        linear=True,
    ),
)


def _pasted(op: str, id: str, position: tuple[int, int], mask: str | torch.dtype = "") -> Sample:
    """The operators that paste, or add, into memory of their own."""

    def arguments(m: Maker) -> tuple[Any, ...]:
        image, patch = m.image(3, 7, 9), m.image(3, 4, 5)
        weight = (m.mask(4, 5, None if mask == "own" else mask),) if mask else ()  # type: ignore[arg-type]
        if op == "accumulate":
            return image, m.image(1, 7, 9, 0, 1), patch, position, *weight
        return image, patch, position, *weight, *({"out": m.image(3, 7, 9)} for _ in range(op == "paste_out"))

    return Sample(op, id, arguments)


MUTATIONS: tuple[Sample, ...] = (
    *(
        _pasted(op, f"{id}{'-mask' if mask else ''}", position, mask)
        for op in ("paste_", "paste_out", "accumulate")
        for id, position in (("inside", (2, 1)), ("clipped", (-2, 5)), ("outside", (30, 0)))
        for mask in ("", "own")
    ),
    _pasted("paste_", "mask-bool", (2, 1), torch.bool),
    _pasted("paste_", "mask-uint8", (2, 1), torch.uint8),
    *(
        Sample(
            "resize_out",
            id,
            lambda m, filter=filter: (m.image(3, 7, 9), (4, 5), filter, {"out": m.image(3, 4, 5)}),
            keywords,
        )
        for id, filter, keywords in (
            ("bicubic", "bicubic", {}),
            ("plain-bilinear", "bilinear", {"antialias": False}),
            ("nearest", "nearest", {}),
            ("box", "lanczos", {"box": (1.25, 0.5, 7.75, 6.0)}),
        )
    ),
)


def _levels(m: Maker, channels: int) -> Tensor:
    return replace(m, dtype=torch.uint8, batch=(), grad=False).image(channels, 6, 7)


CODECS: tuple[Sample, ...] = (
    *(
        Sample("encode_image", f"{format}-{channels}", lambda m, f=format, c=channels: (_levels(m, c), f, 90))
        for format, channels in (("jpeg", 1), ("jpeg", 3), ("png", 1), ("png", 2), ("png", 4), ("webp", 3))
    ),
    *(
        Sample("decode_image", f"{format}-{mode}", lambda m, f=format, o=mode: (_encoded(m, f), o))
        for format, mode in (("jpeg", "RGB"), ("png", "L"), ("webp", "RGBA"), ("png", "LA"))
    ),
)


def _encoded(m: Maker, format: str) -> Tensor:
    return imgops.encode_image(_levels(replace(m, format="planar"), 3), format)


EVERY = SAMPLES + ADJOINTS + MUTATIONS + CODECS + COLORS + GEOMETRY + WARP_ADJOINTS + FILTERS + MIXES


def dtypes_of(sample: Sample) -> tuple[torch.dtype, ...]:
    """The dtypes that a sample's call is defined for."""
    if sample in CODECS or sample.op == "lut":
        return (torch.uint8,)
    if sample.op == "erase":
        return MOVEMENT_DTYPES
    if sample in COLORS or sample in FILTERS or sample in MIXES:
        return RESIZE_DTYPES
    if sample in GEOMETRY:
        return MOVEMENT_DTYPES if "nearest" in sample.id else RESIZE_DTYPES
    if sample.op == "accumulate":
        return (torch.float32, torch.float64)
    if sample.op.endswith("_adjoint") or sample.op == "remap_grad_map":
        return tuple(d for d in RESIZE_DTYPES if d.is_floating_point)
    if sample.op.startswith("resize"):
        _, args, _ = sample.call(Maker())
        return MOVEMENT_DTYPES if "nearest" in args else RESIZE_DTYPES
    if sample.op.startswith("paste") and "mask" in sample.id:
        if "bool" in sample.id:
            return MOVEMENT_DTYPES
        return RESIZE_DTYPES
    return MOVEMENT_DTYPES


def variants(sample: Sample, dtype: torch.dtype = torch.float32) -> list[Maker]:
    """One axis at a time: formats, batches and dtypes around a plain float image, on each device."""
    makers = [Maker(dtype=dtype, format=f) for f in FORMATS]
    makers += [Maker(dtype=dtype, batch=b) for b in BATCHES[1:]]
    makers += [Maker(dtype=dtype, batch=(2,), format="interleaved")]
    makers += [
        Maker(dtype=d)
        for d in dtypes_of(sample)
        if d not in (dtype, torch.uint16, torch.uint32, torch.uint64)
    ]
    return [replace(m, device=d, count=[0]) for d in DEVICES for m in makers]
