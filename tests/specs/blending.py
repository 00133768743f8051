"""alpha_composite, add_weighted, blend, and composite, which is a paste."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array, chw, mixed, of_pil, photo_frame, photo_pil, to_pil
from tests.specs._maker import ANY_DTYPE, LEVELS_AND_FLOATS, Maker
from tests.specs._spec import LEVEL, ROUNDED, Benchmark, ErrorInput, OpSpec, Sample, Tolerance

# -- alpha_composite ---------------------------------------------------------------------------------


def alpha_reference(image: Array, over: Array) -> Array:
    if image.dtype == np.uint8:
        pair = (Image.fromarray(np.ascontiguousarray(x.transpose(1, 2, 0))) for x in (image, over))
        return of_pil(Image.alpha_composite(*pair))
    if image.dtype == np.uint16:
        unit = np.array([1, 1, 1, 65535.0])[:, None, None]
        made = alpha_reference(image.astype(np.float64) / unit, over.astype(np.float64) / unit)
        return np.rint(made * unit).astype(np.uint16)
    below, above = image.astype(np.float64), over.astype(np.float64)
    alpha = above[3] + below[3] * (1 - above[3])
    color = (above[:3] * above[3] + below[:3] * below[3] * (1 - above[3])) / np.where(alpha > 0, alpha, 1)
    return np.where(above[3] == 0, below, np.concatenate([color, alpha[None]]))


def _rgba(m: Maker) -> Tensor:
    return m.image(4, 6, 7, 0.05, 0.95)


def _alpha_calls(case: Any) -> bench.Calls:
    x = torch.cat([case.image()[..., :3, :, :], case.image(case.size, 1)[..., :1, :, :]], -3)
    x = x if x.dtype == torch.uint8 else (x * 255).to(torch.uint8)
    x = x.movedim(-3, -1).contiguous().movedim(-1, -3) if case.layout == "interleaved" else x.contiguous()
    y = x.flip(-1).clone(memory_format=torch.preserve_format)
    four = [v.reshape(-1, *v.shape[-3:]) for v in (x, y)]
    pairs = [[Image.fromarray(i.permute(1, 2, 0).contiguous().numpy()) for i in v] for v in four]
    return (
        lambda: imgops.alpha_composite(x, y),
        lambda: [Image.alpha_composite(a, b) for a, b in zip(*pairs, strict=True)],
        None,
        None,
    )


def _ramp_along_x(x: Tensor) -> Tensor:
    """Return a mask that goes from 0 to 255 along x."""
    return torch.linspace(0, 255, x.shape[-1]).byte().expand(1, *x.shape[-2:]).contiguous()


ALPHA_COMPOSITE = OpSpec(
    "alpha_composite",
    samples=(
        Sample("rgba", lambda m: (_rgba(m), _rgba(m))),
        Sample("clear", lambda m: (_rgba(m), torch.zeros_like(_rgba(m)).detach())),
        Sample("no-rows", lambda m: (m.image(4, 0, 3), m.image(4, 0, 3)), edge=True, differentiable=False),
    ),
    refused={
        ValueError: {
            "image must have 4 channels (RGBA), got 3": lambda x: imgops.alpha_composite(x, x),
            "other must have the shape of image (2, 4, 5, 6), got (2, 3, 5, 6)": lambda x: (
                imgops.alpha_composite(torch.cat([x, x[:, :1]], 1), x)
            ),
            "other must be on the device of image (cpu), got meta": lambda x: imgops.alpha_composite(
                torch.ones(4, 2, 2), torch.ones(4, 2, 2, device="meta")
            ),
        },
    },
    draw=lambda d: (d.image(4), d.image(4)),
    colors=(0, 1),
    reference=alpha_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance={**ROUNDED, torch.float32: Tolerance(1e-6), torch.float64: Tolerance(1e-12)},
    decomposed={**ROUNDED, torch.float32: Tolerance(1e-6)},
    reference_name="`PIL.Image.alpha_composite`",
    difference="uint8, uint16 0; floats 1e-6",
    decomposed_difference="uint8, uint16 0; floats 1e-6",
    section="Blending",
    formula=r"\alpha = \alpha_o + \alpha_x (1 - \alpha_o),\quad c = \frac{c_o\alpha_o + c_x\alpha_x(1-\alpha_o)}{\alpha}",
    border="none",
    picture=lambda x: imgops.alpha_composite(
        torch.cat([x, torch.full_like(x[:1], 255)]), torch.cat([255 - x, _ramp_along_x(x)])
    ),
    benchmarks=(Benchmark("alpha", "PIL.Image.alpha_composite (uint8)", _alpha_calls),),
)


# -- add_weighted ------------------------------------------------------------------------------------


def weighted_reference(image: Array, other: Array, alpha: float, beta: float, gamma: float) -> Array:
    if image.size == 0:
        return image
    pairs = (np.ascontiguousarray(x).reshape(1, -1) for x in (image, other))
    a, b = pairs
    return cv2.addWeighted(a, alpha, b, beta, gamma).reshape(image.shape)


def _weighted_calls(case: Any) -> bench.Calls:
    from kornia import enhance

    x, y = case.image(), case.image(case.size, 1)
    arrays, others = case.arrays(x), case.arrays(y)
    return (
        lambda: imgops.add_weighted(x, 0.7, y, 0.2, 3.0),
        lambda: [cv2.addWeighted(a, 0.7, b, 0.2, 3.0) for a, b in zip(arrays, others, strict=True)],
        None,
        bench.of_floats(x, lambda z: enhance.add_weighted(z, 0.7, z, 0.2, 0.01)),
    )


ADD_WEIGHTED = OpSpec(
    "add_weighted",
    samples=(
        Sample("two", lambda m: (m.image(3, 6, 7), 0.3, m.image(3, 6, 7), 0.8)),
        Sample("more", lambda m: (m.image(5, 6, 7), 1.5, m.image(5, 6, 7), -0.7, 2.5)),
        Sample(
            "each",
            lambda m: (
                m.image(2, 3, 4),
                m.per_sample(0.5, 0.1),
                m.image(2, 3, 4),
                m.per_sample(0.7, 2),
                m.per_sample(0, 0.3),
            ),
        ),
        Sample(
            "no-rows", lambda m: (m.image(3, 0, 3), 1, m.image(3, 0, 3), 1), edge=True, differentiable=False
        ),
    ),
    refused={
        ValueError: {
            "other must have the shape of image (2, 3, 5, 6), got (2, 3, 5, 5)": lambda x: (
                imgops.add_weighted(x, 1, x[..., 1:], 1)
            ),
            "gamma must be a number, got nan": ErrorInput(
                lambda x: imgops.add_weighted(x, 1, x, 1, float("nan")), reads_values=True
            ),
        },
        TypeError: {
            "beta must be a number, a sequence of numbers or a Tensor, got str": lambda x: (
                imgops.add_weighted(x, 1, x, "x")
            ),  # type: ignore[arg-type]
        },
    },
    of_number=lambda x, v: imgops.add_weighted(x, v, x, 0.2, v),
    draw=lambda d: (d.image(), d.image(), d.number(-1, 2), d.number(-1, 2), d.number(0, d.white)),
    reference=weighted_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    # Before OpenCV 5, its vector code fuses a product with the sum, and where vectors end depends on the shape.
    tolerance={torch.float64: Tolerance(1e-12)},
    decomposed=LEVEL,
    reference_name="`cv2.addWeighted`",
    difference="0; float64 1e-12",
    decomposed_difference="1 level; floats 1e-5",
    section="Blending",
    words="``beta``, ``gamma`` (OpenCV)",
    formula=r"y = \alpha x_1 + \beta x_2 + \gamma",
    border="none",
    transforms=("HistogramMatching",),
    photo=(
        lambda x: imgops.add_weighted(x, 0.7, x.flip(-1), 0.4, -10.0),
        lambda x: torch.from_numpy(
            cv2.addWeighted(photo_frame(x), 0.7, photo_frame(x.flip(-1)), 0.4, -10)
        ).permute(2, 0, 1),
    ),
    picture=lambda x: imgops.add_weighted(x, 0.6, x.flip(-1), 0.4),
    benchmarks=(Benchmark("add weighted", "cv2.addWeighted", _weighted_calls),),
)


# -- composite ---------------------------------------------------------------------------------------


def composite_reference(image: Array, other: Array, mask: Array) -> Array:
    if mask.dtype == bool and image.dtype != np.uint8:
        return np.where(mask, image, other)
    if image.dtype != np.uint8:
        mask = mask / 255 if mask.dtype == np.uint8 else mask.astype(np.float64)
        return other.astype(np.float64) * (1 - mask) + image.astype(np.float64) * mask
    level = to_pil(mask.astype(np.uint8) * 255 if mask.dtype == bool else mask)
    return np.concatenate(
        [
            of_pil(Image.composite(to_pil(a[None]), to_pil(b[None]), level))
            for a, b in zip(image, other, strict=True)
        ]
    )


COMPOSITE = OpSpec(
    "composite",
    samples=(
        Sample("mask", lambda m: (m.image(3, 6, 7), m.image(3, 6, 7), m.mask(6, 7))),
        Sample(
            "choice",
            lambda m: (m.image(3, 6, 7), m.image(3, 6, 7), m.mask(6, 7, torch.bool)),
            dtypes=ANY_DTYPE,
        ),
    ),
    refused={
        ValueError: {
            "image and other must have one shape, got two": lambda x: imgops.composite(x, x[0], x[:, :1]),
            "mask must be (..., 1, 5, 6) as image is, got (2, 2, 5, 6)": lambda x: imgops.composite(
                x, x, x[:, :2]
            ),
            "mask must have the leading dimensions of image (2,), got (3,)": lambda x: imgops.composite(
                x, x, torch.ones(3, 1, 5, 6, device=x.device)
            ),
        },
        TypeError: {
            "other must have the dtype of image (torch.float32), got torch.int16": lambda x: imgops.composite(
                x, x.short(), x[:, :1]
            ),
            "mask must be floating point, uint8 or bool, got torch.int16": lambda x: imgops.composite(
                x, x, x[:, :1].short()
            ),
        },
    },
    reference=composite_reference,
    cores=(3, 3, 3),
    tolerance={**ROUNDED, torch.float32: Tolerance(1e-6), torch.float64: Tolerance(1e-12)},
    reference_name="`PIL.Image.composite`",
    difference="uint8 0; floats 1e-6",
    section="Blending",
    formula=r"y = m\,x_1 + (1 - m)\,x_2",
    border="none",
    photo=(
        lambda x: imgops.composite(x, x.flip(-1), x[:1]),
        lambda x: torch.from_numpy(
            np.array(
                Image.composite(photo_pil(x), photo_pil(x.flip(-1)), Image.fromarray(x[0].numpy().copy()))
            )
        ).permute(2, 0, 1),
    ),
    picture=lambda x: imgops.composite(x, x.flip(-1), _ramp_along_x(x)),
)


# -- blend -------------------------------------------------------------------------------------------


def blend_reference(image: Array, other: Array, weight: float) -> Array:
    if image.dtype == np.uint8:
        return np.concatenate(
            [of_pil(Image.blend(to_pil(p[None]), to_pil(q[None]), weight)) for p, q in zip(image, other)]
        )
    if image.dtype == np.uint16:
        return mixed(image, other, weight)
    return image.astype(np.float64) * (1 - weight) + other.astype(np.float64) * weight


def _blend_calls(case: Any) -> bench.Calls:
    x, arrays = case.image(), case.arrays(case.image())
    other, others = x.flip(-1).clone(), [a[:, ::-1].copy() for a in arrays]
    return (
        lambda: imgops.blend(x, other, 0.3),
        lambda: [cv2.addWeighted(a, 0.7, b, 0.3, 0) for a, b in zip(arrays, others, strict=True)],
        None,
        None,
    )


BLEND = OpSpec(
    "blend",
    samples=(
        Sample("part", lambda m: (m.image(3, 5, 6), m.image(3, 5, 6), 0.3)),
        Sample("beyond", lambda m: (m.image(3, 5, 6), m.image(3, 5, 6), 1.4)),
        Sample("each", lambda m: (m.image(3, 5, 6), m.image(3, 5, 6), m.per_sample(0.0, 0.6, 1.0))),
    ),
    refused={
        ValueError: {
            "other must have the shape of image (2, 3, 5, 6), got (2, 3, 5, 5)": lambda x: imgops.blend(
                x, x[..., :5], 0.5
            ),
        },
    },
    of_number=lambda x, v: imgops.blend(x, x.flip(-1), v),
    reference=blend_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance={**ROUNDED, torch.float32: Tolerance(1e-6), torch.float64: Tolerance(1e-6)},
    reference_name="`PIL.Image.blend`",
    difference="uint8, uint16 0; floats 1e-6",
    decomposed_difference="uint8, uint16 0; floats 1e-5",
    section="Blending",
    formula=r"y = (1 - w)\, a + w\, b",
    border="no pixel looks at another",
    transforms=("MixUp",),
    photo=(
        lambda x: imgops.blend(x, imgops.flip(x), 0.3),
        lambda x: chw(Image.blend(photo_pil(x), ImageOps.mirror(photo_pil(x)), 0.3)),
    ),
    picture=lambda x: imgops.blend(x, x.flip(-2), 0.5),
    benchmarks=(Benchmark("blend", "cv2.addWeighted", _blend_calls),),
)


SPECS = (ALPHA_COMPOSITE, ADD_WEIGHTED, BLEND, COMPOSITE)
