"""resized_crop and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from imgops import resized_crop
from tests.specs import _benchmarks as bench
from tests.specs import _plain as plain
from tests.specs._libraries import Array, chw, photo_pil
from tests.specs._maker import ANY_DTYPE, FLOATS, Maker, boxes
from tests.specs._spec import (
    CLOSE,
    LEVEL,
    Benchmark,
    ErrorInput,
    OpSpec,
    Plain,
    Sample,
)
from tests.specs.resize import _TOLERANCE, _transposed, resize_reference

ops = torch.ops.imgops


def resized_crop_reference(
    image: Array, box: Array, height: int, width: int, interpolation: str, antialias: bool
) -> Array:
    left, top, right, bottom = box.tolist()
    part = image[:, top:bottom, left:right]
    if part.shape[1:] == (height, width):
        return part
    interleaved = not image.flags.c_contiguous and image.transpose(1, 2, 0).flags.c_contiguous
    part = np.ascontiguousarray(part.transpose(1, 2, 0)).transpose(2, 0, 1) if interleaved else part.copy()
    return resize_reference(part, None, height, width, interpolation, antialias)


def _crop(
    id: str, name: str = "bilinear", antialias: bool = True, each: Any = None, size: Any = (5, 4)
) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        return m.image(3, 7, 9), torch.tensor([2, 1, 8, 5]) if each is None else boxes(m, *each), size, name

    nearest = name == "nearest"
    return Sample(
        id,
        arguments,
        {"antialias": antialias},
        linear=True,
        dtypes=ANY_DTYPE if nearest else (),
        decomposed={} if nearest else LEVEL if not antialias else CLOSE,
    )


RESIZED_CROP = OpSpec(
    "resized_crop",
    samples=(
        *(
            _crop(f"{name}{'' if antialias else '-plain'}", name, antialias)
            for antialias in (True, False)
            for name in ("bilinear", "bicubic", "nearest")
        ),
        _crop("each", each=((2, 1, 8, 5), (0, 0, 9, 7), (3, 6, 4, 7))),
        _crop("each-nearest-same-size", "nearest", each=((2, 1, 6, 6), (0, 0, 4, 5))),
    ),
    errors=(
        ErrorInput(
            ValueError,
            "resized_crop: boxes must satisfy 0 <= left < right <= 6 and 0 <= top < bottom <= 5, got (0, 0, 0, 2)",
            lambda x: resized_crop(x, (0, 0, 0, 2), (2, 2)),
        ),
        ErrorInput(
            TypeError,
            "resized_crop: boxes must be int64, got torch.float32",
            lambda x: resized_crop(x, torch.ones(4), (2, 2)),
        ),
        ErrorInput(
            ValueError,
            "resized_crop: interpolation must not be 'area', which knows no boxes, got 'area'",
            lambda x: resized_crop(x, (0, 0, 2, 2), (2, 2), "area", antialias=False),
        ),
    ),
    reference=resized_crop_reference,
    tolerance=_TOLERANCE,
    plain=Plain(
        lambda x: resized_crop(x, torch.tensor([1, 1, 5, 4]), (4, 7)),
        lambda x: plain.resize(x[..., 1:4, 1:5], (4, 7)),
        (plain.rand(3, 5, 6),),
    ),
    reference_name="`Image.crop(box).resize`, `cv2.resize` of a slice",
    difference="as resize",
    dtype_names="as resize",
    decomposed_difference="PIL 0, OpenCV 1 level; floats 1e-5",
    section="Resizing",
    formula=r"y^{(n)} = R\, x^{(n)}_{\mathrm{box}_n}\, C^\top",
    border="the crop's own border: nothing around it is seen",
    transforms=("RandomResizedCrop",),
    photo=(
        lambda x: resized_crop(x, (30, 40, 400, 380), (224, 224)),
        lambda x: chw(photo_pil(x).crop((30, 40, 400, 380)).resize((224, 224), Image.Resampling.BILINEAR)),
    ),
    benchmarks=(Benchmark("crop-resize", "PIL crop and resize (uint8)", lambda case: _crop_resize(case)),),
)


def _crop_resize(case: Any) -> bench.Calls:
    x, n, v2 = case.image(), case.size, bench.functional()
    left, top, right, bottom = box = (50, 30, n - 60, n - 20)
    out = (224, 224)
    return (
        lambda: resized_crop(x, box, out),
        case.by_pil(x, lambda p: p.crop(box).resize(out, Image.Resampling.BILINEAR)),
        lambda: v2.resized_crop(x, top, left, bottom - top, right - left, list(out)),
        None,
    )


def resized_crop_adjoint_reference(
    grad: Array, box: Array, height: int, width: int, interpolation: str, antialias: bool
) -> Array:
    size = grad.shape[1:]
    out = _transposed(
        grad, lambda b: resized_crop_reference(b, box, *size, interpolation, antialias), height, width
    )
    return out.astype(grad.dtype)


RESIZED_CROP_ADJOINT = OpSpec(
    "resized_crop_adjoint",
    samples=(
        Sample(
            "bicubic",
            lambda m: (m.image(3, 5, 4), torch.tensor([2, 1, 8, 5]), 7, 9, "bicubic", True),
            linear=True,
        ),
        Sample(
            "each-nearest",
            lambda m: (m.image(3, 5, 4), boxes(m, (2, 1, 8, 5), (0, 0, 9, 7)), 7, 9, "nearest", True),
            linear=True,
        ),
    ),
    reference=resized_crop_adjoint_reference,
    tolerance=_TOLERANCE,
    dtypes=FLOATS[1:],
    plain=Plain(
        lambda g: ops.resized_crop_adjoint(g, torch.tensor([1, 1, 5, 4]), 5, 6, "bilinear", True),
        lambda g: F.pad(
            plain.pulled(lambda x: plain.resize(x, (4, 4)), plain.zeros(3, 3, 4), g), (1, 1, 1, 1)
        ),
        (plain.rand(3, 4, 4),),
    ),
    reference_name="transpose of resized_crop",
    difference="1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


SPECS = (RESIZED_CROP, RESIZED_CROP_ADJOINT)
