"""erase and blend."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs import _plain as plain
from tests.specs._libraries import Array, chw, of_pil, photo_pil, to_pil
from tests.specs._maker import ANY_DTYPE, boxes
from tests.specs._spec import Benchmark, ErrorInput, OpSpec, Plain, Sample, Tolerance, number

_UNIT, _OTHER = plain.rand(3, 5, 6), plain.rand(3, 5, 6)
_INSIDE = torch.zeros(5, 6, dtype=torch.bool)
_INSIDE[1:4, 1:5] = True


def erase_reference(image: Array, value: Array, box: Array) -> Array:
    """PIL's paste of the other image's box, plane by plane; other types by NumPy's slices."""
    left, top, right, bottom = box.tolist()
    pixels = np.broadcast_to(value, image.shape)
    inside = 0 <= left <= right <= image.shape[2] and 0 <= top <= bottom <= image.shape[1]
    if image.dtype == np.uint8 and inside and right > left and bottom > top:
        planes = []
        for plane, other in zip(image, pixels):
            canvas = to_pil(plane[None])
            canvas.paste(to_pil(other[None]).crop((left, top, right, bottom)), (left, top))
            planes.append(of_pil(canvas))
        return np.concatenate(planes)
    out = image.copy()
    rows, columns = slice(max(top, 0), max(bottom, 0)), slice(max(left, 0), max(right, 0))
    out[:, rows, columns] = pixels[:, rows, columns]
    return out


def _erased_photo(x: Tensor) -> Image.Image:
    canvas = photo_pil(x)
    canvas.paste((0, 0, 0), (30, 40, 200, 220))
    return canvas


def _erase_calls(case: Any) -> bench.Calls:
    x, v2, arrays, half = case.image(), bench.functional(), case.arrays(case.image()), case.size // 2
    value = torch.zeros(3, 1, 1, dtype=x.dtype)

    def raw() -> Any:
        out = [a.copy() for a in arrays]
        for a in out:
            a[20:half, 20:half] = 0
        return out

    return (
        lambda: imgops.erase(x, (20, 20, half, half)),
        raw,
        lambda: v2.erase(x, 20, 20, half - 20, half - 20, value),
        None,
    )


ERASE = OpSpec(
    "erase",
    samples=(
        Sample("zero", lambda m: (m.image(3, 5, 6), (1, 2, 4, 5))),
        Sample("clipped-color", lambda m: (m.image(3, 5, 6), (-3, 2, 2, 9), (1, 0, 1))),
        Sample("empty", lambda m: (m.image(3, 5, 6), (3, 3, 3, 3), 1)),
        Sample("pixels", lambda m: (m.image(3, 5, 6), (1, 2, 4, 5), m.image(3, 5, 6))),
        Sample("each", lambda m: (m.image(3, 5, 6), boxes(m, (1, 2, 4, 5), (0, 0, 0, 0)), m.image(3, 5, 6))),
    ),
    errors=(
        ErrorInput(
            ValueError,
            "erase: value must have one number, or one for each of 3 channels, got 2",
            lambda x: imgops.erase(x, (0, 0, 1, 1), (1, 2)),
        ),
        ErrorInput(
            TypeError,
            "erase: value must be a number or one per channel, got str",
            lambda x: imgops.erase(x, (0, 0, 1, 1), "red"),
        ),
        ErrorInput(
            TypeError,
            "erase: boxes must be int64, got torch.float32",
            lambda x: imgops.erase(x, torch.ones(4)),
        ),
    ),
    of_number=lambda x, v: imgops.erase(x, (3, 3, 9, 9), v),
    reference=erase_reference,
    decomposed={},
    dtypes=ANY_DTYPE,
    plain=Plain(
        lambda x, o: imgops.erase(x, torch.tensor([1, 1, 5, 4]), o),
        lambda x, o: torch.where(_INSIDE, o, x),
        (_UNIT, _OTHER),
    ),
    reference_name="`PIL.Image.paste`",
    dtype_names="all",
    decomposed_difference="0",
    section="Movement",
    formula=r"y_p = v_p \text{ inside the box},\ x_p \text{ elsewhere}",
    border="the box is clipped",
    transforms=("RandomErasing", "CutMix"),
    photo=(lambda x: imgops.erase(x, (30, 40, 200, 220)), lambda x: chw(_erased_photo(x))),
    benchmarks=(Benchmark("erase", "NumPy slice", _erase_calls),),
)


def blend_reference(image: Array, other: Array, weight: float) -> Array:
    if image.dtype == np.uint8:
        return np.concatenate(
            [of_pil(Image.blend(to_pil(p[None]), to_pil(q[None]), weight)) for p, q in zip(image, other)]
        )
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
    errors=(
        ErrorInput(
            ValueError,
            "blend: other must have the shape of image (2, 3, 5, 6), got (2, 3, 5, 5)",
            lambda x: imgops.blend(x, x[..., :5], 0.5),
        ),
    ),
    of_number=lambda x, v: imgops.blend(x, x.flip(-1), v),
    reference=blend_reference,
    tolerance={
        torch.float16: Tolerance(1e-3),
        torch.bfloat16: Tolerance(8e-3),
        torch.float32: Tolerance(1e-6),
        torch.float64: Tolerance(1e-6),
    },
    plain=Plain(imgops.blend, lambda a, b, w: a + w * (b - a), (_UNIT, _OTHER, number(0.3))),
    reference_name="`PIL.Image.blend`",
    difference="uint8 0; floats 1e-6",
    decomposed_difference="uint8 0; floats 1e-5",
    section="Color",
    formula=r"y = (1 - w)\, a + w\, b",
    border="no pixel looks at another",
    transforms=("MixUp",),
    photo=(
        lambda x: imgops.blend(x, imgops.flip(x), 0.3),
        lambda x: chw(Image.blend(photo_pil(x), ImageOps.mirror(photo_pil(x)), 0.3)),
    ),
    benchmarks=(Benchmark("blend", "cv2.addWeighted", _blend_calls),),
)

SPECS = (ERASE, BLEND)
