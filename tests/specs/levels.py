"""Operators that map each value on its own: gamma, posterize, solarize, invert, lut."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from PIL import ImageOps
from torch import Tensor
from torchvision.transforms.v2 import functional as tv

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._draw import numbers_of
from tests.specs._libraries import Array, by_pil_planes, chw, photo_frame, photo_pil
from tests.specs._maker import LEVELS_AND_FLOATS, Maker, of_levels
from tests.specs._spec import REAL, Benchmark, ErrorInput, OpSpec, Sample

NO_BORDER = "no pixel looks at another"
# -- adjust_gamma ------------------------------------------------------------------------------------


def unit_image(m: Maker, channels: int = 3, height: int = 5, width: int = 6) -> Tensor:
    return m.image(channels, height, width, 0.05, 0.95)


def benchmark_calls(name: str, *args: Any, floats: tuple[Any, ...] | None = None, kornia: str = "") -> Any:
    """Return the calls of the benchmark; ``floats`` are the arguments for a float image."""

    def calls(case: Any) -> bench.Calls:
        from kornia import enhance

        x, v2 = case.image(), bench.functional()
        own = args if floats is None or x.dtype == torch.uint8 else floats
        theirs = None
        if kornia:
            theirs = bench.of_floats(
                x, lambda y: getattr(enhance, kornia)(y, *(args if floats is None else floats))
            )
        return (
            lambda: getattr(imgops, name)(x, *own),
            case.by_pil(x, lambda p: getattr(ImageOps, name)(p, *args)),
            lambda: getattr(v2, name)(x, *own),
            theirs,
        )

    return calls


def spec_of_imageops(name: str, **fields: Any) -> OpSpec:
    """Build the spec of an operator that is a function of ``ImageOps``."""
    shared: dict[str, Any] = {
        "tolerance": REAL,
        "reference_name": f"`PIL.ImageOps.{name}`",
        "difference": "uint8, uint16 0; floats 1e-5",
        "decomposed_difference": "uint8, uint16 0; floats 1e-5",
        "section": "Levels",
        "border": NO_BORDER,
    }
    return OpSpec(name, **(shared | fields))


def gamma_reference(image: Array, gamma: float, gain: float) -> Array:
    if image.dtype == np.uint16:
        return np.clip((65535 + 1 - 1e-3) * gain * (image / 65535) ** gamma, 0, 65535).astype(np.uint16)
    if image.dtype != np.uint8:
        return np.clip(gain * image.astype(np.float64) ** gamma, 0, 1)
    table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)]
    return by_pil_planes(image, lambda p: p.point(table))


def _gamma_calls(case: Any) -> bench.Calls:
    from kornia import enhance

    x, v2, arrays = case.image(), bench.functional(), case.arrays(case.image())
    table = (255 * (np.arange(256) / 255) ** 1.7).astype(np.uint8)
    return (
        lambda: imgops.adjust_gamma(x, 1.7),
        (lambda: [cv2.LUT(a, table) for a in arrays]) if x.dtype == torch.uint8 else None,
        lambda: v2.adjust_gamma(x, 1.7),
        bench.of_floats(x, lambda y: enhance.adjust_gamma(y, 1.7)),
    )


ADJUST_GAMMA = OpSpec(
    "adjust_gamma",
    samples=(
        Sample("dark", lambda m: (unit_image(m), 2.2)),
        Sample("gain", lambda m: (unit_image(m), 0.45, 0.8)),
        Sample("each", lambda m: (unit_image(m), m.per_sample(0.7, 1.9, 1.0), m.per_sample(1.0, 0.6))),
    ),
    refused={
        TypeError: {
            "gamma must be real numbers, got torch.bool": lambda x: imgops.adjust_gamma(
                x, torch.tensor(True)
            ),
        },
    },
    of_number=imgops.adjust_gamma,
    neutral=1,
    reference=gamma_reference,
    tolerance=REAL,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    reference_name="`Image.point` with torchvision's table",
    difference="uint8, uint16 0; floats 1e-5",
    decomposed_difference="uint8 0; uint16 1 level; floats 1e-5",
    section="Levels",
    words="``gamma``, ``gain`` (torchvision)",
    formula=r"y = \operatorname{clip}(g\, x^\gamma, 0, 1)",
    border=NO_BORDER,
    transforms=("RandomGamma",),
    photo=(lambda x: imgops.adjust_gamma(x, 2.2), lambda x: tv.adjust_gamma(photo_pil(x), 2.2)),
    picture=lambda x: imgops.adjust_gamma(x, 2.5),
    benchmarks=(Benchmark("gamma", "cv2.LUT (uint8)", _gamma_calls),),
)


# -- posterize ---------------------------------------------------------------------------------------


def posterize_reference(image: Array, bits: float) -> Array:
    if image.dtype == np.uint8:
        if bits == 0:  # Pillow's range begins at 1, torchvision's at 0
            return np.zeros_like(image)
        return by_pil_planes(image, lambda p: ImageOps.posterize(p, int(bits)))
    if image.dtype == np.uint16:
        return np.bitwise_and(image, np.uint16(65536 - (65536 >> min(max(int(bits), 0), 16))))
    steps = 2 ** int(bits)
    return np.clip(np.floor(image.astype(np.float64) * steps), 0, steps - 1) / steps


POSTERIZE = spec_of_imageops(
    "posterize",
    samples=(
        *(Sample(str(bits), lambda m, bits=bits: (unit_image(m), bits)) for bits in (0, 1, 4, 8)),
        Sample("each", lambda m: (unit_image(m), m.per_sample(1, 4, 7).long())),
        Sample(
            "of-16-bits", lambda m: (unit_image(m), m.per_sample(11, 16, 20).long()), dtypes=(torch.uint16,)
        ),
    ),
    refused={
        ValueError: {
            "bits must be finite, got nan": ErrorInput(
                lambda x: imgops.posterize(x, float("nan")), reads_values=True
            ),
        },
    },
    comparable=lambda args, changed: all(
        0 <= v <= 8 for a in args[1:] for v in numbers_of(a)
    ),  # bits are clamped
    reference=posterize_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    neutral=8,
    words="``bits`` (PIL)",
    formula=r"y = \lfloor x\, 2^{b} \rfloor\, 2^{-b}",
    transforms=("RandomPosterize", "PixMix"),
    photo=(lambda x: imgops.posterize(x, 3), lambda x: chw(ImageOps.posterize(photo_pil(x), 3))),
    picture=lambda x: imgops.posterize(x, 2),
    benchmarks=(
        Benchmark(
            "posterize", "PIL.ImageOps.posterize (uint8)", benchmark_calls("posterize", 4, kornia="posterize")
        ),
    ),
)


# -- solarize ----------------------------------------------------------------------------------------


def solarize_reference(image: Array, threshold: float) -> Array:
    if image.dtype == np.uint8:
        return by_pil_planes(image, lambda p: ImageOps.solarize(p, threshold))
    if image.dtype == np.uint16:
        return np.where(image >= threshold, 65535 - image, image)
    x = image.astype(np.float64)
    return np.where(x >= threshold, 1 - x, x)


SOLARIZE = spec_of_imageops(
    "solarize",
    samples=(
        Sample("half", lambda m: (unit_image(m), 0.5 if m.dtype.is_floating_point else 128)),
        Sample("all", lambda m: (unit_image(m), 0)),
        Sample("each", lambda m: (unit_image(m), m.per_sample(0.2, 100, 0.7))),
        Sample("of-16-bits", lambda m: (unit_image(m), 30000.5), dtypes=(torch.uint16,)),
    ),
    reference=solarize_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    of_number=imgops.solarize,
    neutral=256,
    formula=r"y = x \text{ below the threshold},\ 1 - x \text{ from it on}",
    transforms=("RandomSolarize", "PixMix"),
    photo=(lambda x: imgops.solarize(x, 128), lambda x: chw(ImageOps.solarize(photo_pil(x), 128))),
    picture=lambda x: imgops.solarize(x, 110),
    benchmarks=(
        Benchmark(
            "solarize",
            "PIL.ImageOps.solarize (uint8)",
            benchmark_calls("solarize", 128, floats=(0.5,), kornia="solarize"),
        ),
    ),
)


# -- invert ------------------------------------------------------------------------------------------


def invert_reference(image: Array) -> Array:
    if image.dtype == np.uint16:
        return cv2.bitwise_not(image).reshape(image.shape)
    return by_pil_planes(image, ImageOps.invert) if image.dtype == np.uint8 else 1 - image.astype(np.float64)


def _invert_calls(case: Any) -> bench.Calls:
    from kornia import enhance

    x, v2, arrays, one = case.image(), bench.functional(), case.arrays(case.image()), np.float32(1)
    bitwise = x.dtype == torch.uint8
    return (
        lambda: imgops.invert(x),
        lambda: [cv2.bitwise_not(a) if bitwise else one - a for a in arrays],
        lambda: v2.invert(x),
        bench.of_floats(x, lambda y: enhance.invert(y)),
    )


INVERT = spec_of_imageops(
    "invert",
    samples=(Sample("rgb", lambda m: (unit_image(m),)), Sample("five", lambda m: (unit_image(m, 5, 4, 3),))),
    refused={
        TypeError: {
            "image must be uint8, uint16 or floating point, got torch.int64": lambda x: imgops.invert(
                x.long()
            ),
        },
    },
    reference=invert_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    formula=r"y = 255 - x\ \text{(uint8)},\quad 65535 - x\ \text{(uint16)},\quad 1 - x\ \text{(floats)}",
    transforms=("RandomInvert",),
    photo=(imgops.invert, lambda x: chw(ImageOps.invert(photo_pil(x)))),
    benchmarks=(Benchmark("invert", "cv2.bitwise_not (uint8), NumPy (float32)", _invert_calls),),
)


# -- lut ---------------------------------------------------------------------------------------------


def _table(m: Maker, *lead: int, dtype: torch.dtype = torch.float64) -> Tensor:
    entries = 65536 if m.dtype == torch.uint16 else 256
    values = torch.arange(torch.Size(lead).numel() * entries).reshape(*lead, entries) * 7 % 251
    return values.to(dtype).requires_grad_(m.grad and dtype.is_floating_point)


def _levels(m: Maker, channels: int = 3) -> Tensor:
    return of_levels(m).image(channels, 5, 6)


def lut_reference(image: Array, table: Array) -> Array:
    rows = np.broadcast_to(table, (len(image), table.shape[-1]))
    if table.dtype == np.int64 or image.dtype == np.uint16:  # OpenCV supports neither, in all its versions
        return np.stack([row[plane] for row, plane in zip(rows, image)])
    return np.stack([cv2.LUT(np.ascontiguousarray(p), r.copy()) for p, r in zip(image, rows)])


_PHOTO_TABLE = (np.arange(256) * 7 % 251).astype(np.uint8)

LUT = OpSpec(
    "lut",
    samples=(
        Sample("float", lambda m: (_levels(m), _table(m))),
        Sample("channels", lambda m: (_levels(m), _table(m, 3, dtype=torch.float32))),
        Sample("each", lambda m: (_levels(m), _table(m, *m.batch, 1, dtype=torch.uint8))),
        Sample("each-channel", lambda m: (_levels(m, 5), _table(m, *m.batch, 5, dtype=torch.int64))),
    ),
    refused={
        TypeError: {
            "image must be uint8 or uint16, got torch.float32": lambda x: imgops.lut(x, torch.ones(256)),
        },
        ValueError: {
            "table must have 65536 values, or (..., 1 or C, 65536), got shape (1, 256)": ErrorInput(
                lambda x: imgops.lut(x, torch.ones(256)), dtype=torch.uint16
            ),
        },
    },
    reference=lut_reference,
    dtypes=(torch.uint8, torch.uint16),
    decomposed={},
    reference_name="`cv2.LUT`; NumPy's indexing of uint16",
    dtype_names="uint8, uint16; table any",
    decomposed_difference="0",
    section="Levels",
    words="``table``",
    formula=r"y_{c,p} = T_c[x_{c,p}]",
    border=NO_BORDER,
    transforms=(
        "RandomBrightnessContrast",
        "RandomHSV",
        "RandomMultiplicativeNoise",
        "RandomRGBShift",
        "RandomTemperature",
        "RandomToneCurve",
    ),
    photo=(
        lambda x: imgops.lut(x, torch.from_numpy(_PHOTO_TABLE)),
        lambda x: chw(cv2.LUT(photo_frame(x), _PHOTO_TABLE)),
    ),
    picture=lambda x: imgops.lut(x, (torch.arange(256) * 5 % 256).byte()),
)

SPECS = (ADJUST_GAMMA, POSTERIZE, SOLARIZE, INVERT, LUT)
