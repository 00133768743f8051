"""Brightness, contrast, saturation, hue, grayscale, color_matrix and color_sequence."""

from __future__ import annotations

import colorsys
import inspect
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import Tensor
from torchvision.transforms.v2 import functional as tv

import imgops
from tests.specs import _benchmarks as bench
from tests.specs import filter, histograms, levels
from tests.specs._libraries import Array, chw, mixed, of_pil, photo_frame, photo_pil, to_pil
from tests.specs._maker import LEVELS_AND_FLOATS, Maker, parameter
from tests.specs._spec import LEVEL, REAL, Benchmark, ErrorInput, OpSpec, Sample, Tolerance

ones = torch.ones


def unit(m: Maker, channels: int = 3, height: int = 5, width: int = 6) -> Tensor:
    """Make values inside of [0, 1], where no result is clamped by chance."""
    return m.image(channels, height, width, 0.05, 0.95)


def luma_of(x: Array) -> Array:
    if x.dtype == np.uint16 and len(x) == 3 and x.size:
        return cv2.cvtColor(np.ascontiguousarray(x.transpose(1, 2, 0)), cv2.COLOR_RGB2GRAY)[None]
    return np.tensordot([0.299, 0.587, 0.114], x, 1)[None] if len(x) == 3 else x


def blended(start: Any, end: Array, factor: float) -> Array:
    return np.clip(start + factor * (end - start), 0, 1)


def enhanced(kind: str, start: Callable[[Array], Any]) -> Callable[[Array, float], Array]:
    """Return PIL's ImageEnhance on uint8; on floats, the same blend with the image that ``start`` computes.

    For another number of channels than 1 and 3, PIL gets one gray image of all of them.
    """

    def reference(image: Array, factor: float) -> Array:
        if image.dtype == np.uint16:
            return mixed(start(image), image, factor) if image.size else image
        if image.dtype != np.uint8:
            x = image.astype(np.float64)
            return blended(start(x), x, factor)
        if not image.size:  # Pillow before 12 divides by the number of pixels
            return image
        call = lambda p: getattr(ImageEnhance, kind)(p).enhance(factor)
        if len(image) in (1, 3):
            return of_pil(call(to_pil(image)))
        return of_pil(call(to_pil(image.reshape(1, -1, image.shape[2])))).reshape(image.shape)

    return reference


def factors(*values: tuple[str, float]) -> tuple[Sample, ...]:
    return (
        *(Sample(id, lambda m, f=f: (unit(m), f)) for id, f in values),
        Sample("each", lambda m: (unit(m), m.per_sample(0.4, 1.3, 0.9))),
        Sample("one-row", lambda m: (unit(m, 3, 1, 4), 0.4), edge=True),
        Sample("of-nothing", lambda m: (unit(m, 3, 0, 4), 0.4), edge=True, differentiable=False),
    )


GRAY = Sample("gray", lambda m: (unit(m, 1), 0.4))
BANDS = Sample("bands", lambda m: (unit(m, 5), m.per_sample(0.4, 1.3)))
FACTORS = (("less", 0.3), ("more", 1.7), ("none", 0), ("same", 1.0), ("beyond", -0.4))
_BLEND = r"y = b + \alpha\,(x - b)"
NO_BORDER = "no pixel looks at another"


def _adjust(
    name: str, kind: str, start: Callable[[Array], Any], formula: str, kornia: str, **options: Any
) -> OpSpec:
    """Build the spec of brightness, contrast or saturation."""
    ours = getattr(imgops, f"adjust_{name}")

    def calls(case: Any) -> bench.Calls:
        from kornia import enhance

        x, v2 = case.image(), bench.functional()
        return (
            lambda: ours(x, 1.3),
            case.by_pil(x, lambda p: getattr(ImageEnhance, kind)(p).enhance(1.3)),
            lambda: getattr(v2, f"adjust_{name}")(x, 1.3),
            bench.of_floats(x, lambda y: getattr(enhance, kornia)(y, 1.3)),
        )

    return OpSpec(
        f"adjust_{name}",
        reference=enhanced(kind, start),
        dtypes=LEVELS_AND_FLOATS,
        dtype_names="uint8, uint16, floats",
        tolerance=REAL,
        of_number=ours,
        neutral=1,
        reference_name=f"`PIL.ImageEnhance.{kind}`",
        difference="uint8, uint16 0; floats 1e-5",
        decomposed_difference="uint8, uint16 0; floats 1e-5",
        section="Color",
        formula=formula,
        border=NO_BORDER,
        photo=(lambda x: ours(x, 1.4), lambda x: chw(getattr(ImageEnhance, kind)(photo_pil(x)).enhance(1.4))),
        benchmarks=(Benchmark(name, f"PIL.ImageEnhance.{kind} (uint8)", calls),),
        **options,
    )


ADJUST_BRIGHTNESS = _adjust(
    "brightness",
    "Brightness",
    lambda x: 0,
    _BLEND + r",\quad b = 0",
    "adjust_brightness",
    transforms=("PixMix",),
    picture=lambda x: imgops.adjust_brightness(x, 1.7),
    samples=factors(*FACTORS),
    refused={
        TypeError: {
            "image must be a Tensor, got list": lambda x: imgops.adjust_brightness([1], 1),
            "factor must be a number, a sequence of numbers or a Tensor, got str": lambda x: (
                imgops.adjust_brightness(x, "a")
            ),
        },
        ValueError: {
            "factor must have one value, or 2 values, one for each image, got shape (3,)": lambda x: (
                imgops.adjust_brightness(x, ones(3))
            )
        },
    },
)

ADJUST_CONTRAST = _adjust(
    "contrast",
    "Contrast",
    lambda x: luma_of(x).mean(),
    _BLEND + r",\quad b = \operatorname{mean} L(x)",
    "adjust_contrast",
    transforms=("PixMix",),
    picture=lambda x: imgops.adjust_contrast(x, 2.2),
    samples=(*factors(*FACTORS), GRAY, BANDS),
)

ADJUST_SATURATION = _adjust(
    "saturation",
    "Color",
    luma_of,
    _BLEND + r",\quad b = L(x)",
    "adjust_saturation",
    picture=lambda x: imgops.adjust_saturation(x, 3.0),
    samples=(*factors(*FACTORS), GRAY),
    refused={
        ValueError: {
            "image must have 1 or 3 channels, because saturation is a property of RGB colors, got 2": lambda x: (
                imgops.adjust_saturation(x[:, :2], 1)
            )
        }
    },
    transforms=("RandomGrayscale", "PixMix"),
)


# -- hue -------------------------------------------------------------------------------------------


def _turned(image: Image.Image, turn: float) -> Image.Image:
    """Turn the hue as torchvision does for PIL images, by any part of the circle."""
    hue, saturation, value = image.convert("HSV").split()
    levels = np.asarray(hue) + np.int32(turn * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(levels), saturation, value)).convert("RGB")


def hue_reference(image: Array, turn: float) -> Array:
    """Turn the hue in PIL's mode HSV; on floats with Python's own HSV, pixel by pixel."""
    if len(image) == 1 or not image.size:
        return image
    if image.dtype == np.uint8:
        return of_pil(_turned(to_pil(image), turn))
    if image.dtype == np.uint16:
        return (np.clip(hue_reference(image / 65535, turn), 0, 1) * 65535.999).astype(np.uint16)
    x = image.astype(np.float64)
    out = np.empty_like(x)
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            h, s, v = colorsys.rgb_to_hsv(*x[:, i, j].tolist())
            out[:, i, j] = colorsys.hsv_to_rgb((h + turn) % 1.0, s, v)
    return out


def _hue_calls(case: Any) -> bench.Calls:
    from kornia import enhance

    x, v2 = case.image(), bench.functional()
    return (
        lambda: imgops.adjust_hue(x, 0.1),
        case.by_pil(x, lambda p: tv.adjust_hue(p, 0.1)),
        lambda: v2.adjust_hue(x, 0.1),
        bench.of_floats(x, lambda y: enhance.adjust_hue(y, 0.6)),
    )


ADJUST_HUE = OpSpec(
    "adjust_hue",
    samples=(*factors(("on", 0.21), ("back", -0.4)), GRAY),
    of_number=lambda x, v: imgops.adjust_hue(x, v / 4),
    refused={
        TypeError: {
            "image must be uint8, uint16 or floating point, got torch.int64": lambda x: imgops.adjust_hue(
                x.long(), 1
            )
        },
        ValueError: {
            "image must have 1 or 3 channels, because hue is a property of RGB colors, got 2": lambda x: (
                imgops.adjust_hue(x[:, :2], 1)
            )
        },
    },
    reference=hue_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance=REAL,
    smooth_on_gray=False,
    reference_name="torchvision's `adjust_hue` of a PIL image",
    difference="uint8, uint16 0; floats 1e-5",
    decomposed_difference="uint8, uint16 0; floats 1e-5",
    section="Color",
    formula=r"(h, s, v) \mapsto \big((h + \varphi) \bmod 1,\ s,\ v\big)",
    border=NO_BORDER,
    photo=(lambda x: imgops.adjust_hue(x, 0.2), lambda x: chw(tv.adjust_hue(photo_pil(x), 0.2))),
    picture=lambda x: imgops.adjust_hue(x, 0.4),
    benchmarks=(Benchmark("hue", "torchvision's of PIL images (uint8)", _hue_calls),),
)


# -- grayscale and matrices --------------------------------------------------------------------------


def grayscale_reference(image: Array, channels: int) -> Array:
    if image.dtype == np.uint8:
        gray = of_pil(to_pil(image).convert("L"))
    else:
        gray = luma_of(image if image.dtype == np.uint16 else image.astype(np.float64))
    return np.repeat(gray, channels, 0)


def _gray_calls(case: Any) -> bench.Calls:
    from kornia import color

    x, v2 = case.image(), bench.functional()
    return (
        lambda: imgops.grayscale(x),
        case.by_pil(x, lambda p: p.convert("L")),
        lambda: v2.rgb_to_grayscale(x),
        bench.of_floats(x, color.rgb_to_grayscale),
    )


GRAYSCALE = OpSpec(
    "grayscale",
    samples=(
        Sample("one", lambda m: (unit(m),)),
        Sample("three", lambda m: (unit(m), 3)),
        Sample("gray-three", lambda m: (unit(m, 1), 3)),
    ),
    refused={ValueError: {"num_output_channels must be 1 or 3, got 2": lambda x: imgops.grayscale(x, 2)}},
    reference=grayscale_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance={**REAL, torch.float32: Tolerance(1e-6)},
    reference_name='`Image.convert("L")`; `cv2.cvtColor` of uint16',
    difference="uint8, uint16 0; floats 1e-6",
    decomposed_difference="uint8, uint16 0; floats 1e-5",
    section="Color",
    formula=r"L(x) = 0.299\, r + 0.587\, g + 0.114\, b",
    border=NO_BORDER,
    transforms=("Grayscale", "RGB", "grayscale_to_rgb", "rgb_to_grayscale"),
    photo=(imgops.grayscale, lambda x: chw(photo_pil(x).convert("L"))),
    benchmarks=(Benchmark("grayscale", "PIL.Image.convert (uint8)", _gray_calls),),
)

_MIX = torch.tensor([[0.2, 0.5, -0.3], [0.9, 0.1, 0.3], [-0.4, 1.5, 0.7]], dtype=torch.float64)
_OFFSET = torch.tensor([[0.2, 0.5, 0.3, 0.1], [0.9, -0.1, 0.3, -0.2]], dtype=torch.float64)
_PHOTO_MIX = np.array([[0.5, 0.3, 0.2], [-0.1, 1.0, 0.1], [0.2, 0.2, 0.6]], np.float32)


def color_matrix_reference(image: Array, matrix: Array) -> Array:
    """Run OpenCV on uint8; on floats, compute the product."""
    if image.dtype in (np.uint8, np.uint16):
        out = cv2.transform(np.ascontiguousarray(image.transpose(1, 2, 0)), matrix)
        return out.reshape(*out.shape[:2], -1).transpose(2, 0, 1)
    channels = len(image)
    product = np.tensordot(matrix[:, :channels], image.astype(np.float64), 1)
    return product + matrix[:, channels:].sum(1)[:, None, None]


def _matrix_calls(case: Any) -> bench.Calls:
    x = case.image()
    matrix = np.array([[0.4, 0.3, 0.2], [0.1, 0.8, 0.1], [0.0, 0.3, 0.6]])
    own, frame = torch.from_numpy(matrix), np.ascontiguousarray(x.permute(1, 2, 0).numpy())
    return lambda: imgops.color_matrix(x, own), lambda: cv2.transform(frame, matrix), None, None


COLOR_MATRIX = OpSpec(
    "color_matrix",
    samples=(
        Sample("square", lambda m: (m.image(3, 5, 6), parameter(m, _MIX))),
        Sample("offset", lambda m: (m.image(3, 5, 6), parameter(m, _OFFSET))),
        Sample("each", lambda m: (m.image(3, 5, 6), (_MIX * m.per_sample(1, 0.4)[..., None, None]).detach())),
        Sample("five-to-one", lambda m: (m.image(5, 4, 3), parameter(m, _MIX[:1, :1].expand(1, 5)))),
    ),
    refused={
        ValueError: {
            "matrix must have 3 or 4 columns, got shape (3, 2)": lambda x: imgops.color_matrix(x, ones(3, 2))
        }
    },
    reference=color_matrix_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance={**REAL, **dict.fromkeys((torch.uint8, torch.uint16), Tolerance(levels=1, share=0.05))},
    decomposed=LEVEL,
    reference_name="`cv2.transform`",
    difference="1 level; floats 1e-5",
    decomposed_difference="1 level; floats 1e-5",
    section="Color",
    formula=r"y_p = A\, x_p + b",
    border=NO_BORDER,
    photo=(
        lambda x: imgops.color_matrix(x, torch.from_numpy(_PHOTO_MIX)),
        lambda x: chw(cv2.transform(photo_frame(x), _PHOTO_MIX)),
    ),
    picture=lambda x: imgops.color_matrix(
        x, torch.tensor([[0.4, 0.8, 0.2], [0.35, 0.7, 0.17], [0.27, 0.53, 0.13]])
    ),
    benchmarks=(Benchmark("matrix", "cv2.transform of HWC", _matrix_calls),),
)


# -- sequences ---------------------------------------------------------------------------------------

#: The references of the steps, by the steps' names in a sequence.
_STEPS = {
    spec.name.removeprefix("adjust_"): spec.reference
    for spec in (
        *(ADJUST_BRIGHTNESS, ADJUST_CONTRAST, ADJUST_SATURATION, ADJUST_HUE),
        *filter.SPECS,
        *(histograms.AUTOCONTRAST, histograms.EQUALIZE, *levels.SPECS),
    )
}


def color_sequence_reference(image: Array, order: Array, amounts: Array, names: str) -> Array:
    steps = names.split(",")
    for which in order.tolist():
        if which >= 0:
            reference: Any = _STEPS[steps[which]]
            takes_amount = len(inspect.signature(reference).parameters) > 1
            image = reference(image, float(amounts[which])) if takes_amount else reference(image)
    return image


COLOR_SEQUENCE = OpSpec(
    "color_sequence",
    samples=(
        Sample(
            "jitter",
            lambda m: (
                unit(m),
                torch.tensor([2, 0, 3, 1]),
                parameter(m, torch.tensor([0.8, 1.2, 1.3, 0.1], dtype=torch.float64)),
                ["brightness", "contrast", "saturation", "hue"],
            ),
        ),
        Sample(
            "each",
            lambda m: (
                unit(m),
                torch.stack([m.per_sample(1, -1, 0), m.per_sample(0, -1, 1)], -1).long(),
                torch.stack([m.per_sample(0.7, 1.2), m.per_sample(0.3, 0.6)], -1)
                .detach()
                .requires_grad_(m.grad),
                ["contrast", levels.SOLARIZE.name],
            ),
        ),
        Sample(
            "levels",
            lambda m: (
                unit(m),
                torch.tensor([3, 2, 1, 0]),
                torch.tensor([0.0, 0, 3.5, 0]),
                [
                    s.name
                    for s in (histograms.EQUALIZE, levels.INVERT, levels.POSTERIZE, histograms.AUTOCONTRAST)
                ],
            ),
        ),
        Sample(
            "bands",
            lambda m: (
                unit(m, 5),
                torch.stack([m.per_sample(1, 2, 0), m.per_sample(0, 1, -1)], -1).long(),
                parameter(m, torch.tensor([0.4, 0, 1.2], dtype=torch.float64)),
                ["contrast", histograms.AUTOCONTRAST.name, "sharpness"],
            ),
        ),
        Sample(
            "one or none",
            lambda m: (
                unit(m),
                m.per_sample(1, -1, 0).long()[..., None],
                torch.zeros(2, dtype=torch.float64),
                [levels.INVERT.name, histograms.AUTOCONTRAST.name],
            ),
        ),
    ),
    refused={
        TypeError: {
            "order must be int64, got torch.float32": lambda x: imgops.color_sequence(
                x, ones(1), ones(1), ["hue"]
            ),
            "names must be a sequence of str, got NoneType": lambda x: imgops.color_sequence(
                x, torch.tensor([0]), ones(1), None
            ),  # type: ignore[arg-type]
        },
        ValueError: {
            "parameters must have shape (2,), or shape (2, 2), one for each image, got shape (1,)": lambda x: (
                imgops.color_sequence(x, torch.tensor([0]), ones(1), ["hue", "invert"])
            ),
            "image must have 1 or 3 channels, because saturation and hue are properties of RGB colors, "
            "got 2": lambda x: imgops.color_sequence(
                x[:, :2], torch.tensor([-1]), ones(2), ["hue", "saturation"]
            ),
            "parameters must be finite, got nan": ErrorInput(
                lambda x: imgops.color_sequence(x, torch.tensor([0]), ones(1) * torch.nan, ["posterize"]),
                reads_values=True,
            ),
        },
    },
    # The steps before it may round to either side of a level.
    comparable=lambda args, changed: (
        not (args[0].is_floating_point() and levels.POSTERIZE.name in str(args[-1]))
    ),
    reference=color_sequence_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance=REAL,
    smooth_on_gray=False,
    reference_name="the steps one after the other",
    difference="uint8, uint16 0; floats 1e-5",
    decomposed_difference="uint8, uint16 0; floats 1e-5",
    section="Color",
    words="``order``, ``parameters``, ``names``",
    formula=r"y = (f_{o_K} \circ \dots \circ f_{o_1})(x)",
    border="as the steps: only sharpness looks at neighbors",
    transforms=(
        *("ColorJitter", "RandomPhotometricDistort"),
        *("AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"),
    ),
    photo=(
        lambda x: imgops.color_sequence(
            x, torch.tensor([1, 0]), torch.tensor([0.7, 1.3]), ["brightness", "contrast"]
        ),
        lambda x: chw(ImageEnhance.Brightness(ImageEnhance.Contrast(photo_pil(x)).enhance(1.3)).enhance(0.7)),
    ),
    picture=lambda x: imgops.color_sequence(
        x, torch.tensor([1, 0]), torch.tensor([1.6, 2.0]), ["brightness", "saturation"]
    ),
)

SPECS = (
    ADJUST_BRIGHTNESS,
    ADJUST_CONTRAST,
    ADJUST_SATURATION,
    ADJUST_HUE,
    GRAYSCALE,
    COLOR_MATRIX,
    COLOR_SEQUENCE,
)
