"""pad and its adjoint."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F

from imgops import pad
from tests.specs import _benchmarks as bench
from tests.specs import _plain as plain
from tests.specs._libraries import BORDERS, Array, chw, photo_frame
from tests.specs._maker import ANY_DTYPE, FLOATS
from tests.specs._spec import REAL, Benchmark, ErrorInput, OpSpec, Plain, Sample
from tests.specs.movement import DIMENSIONS

ops = torch.ops.imgops


def _pad(
    id: str,
    padding: Any,
    shape: tuple[int, ...] = (3, 5, 6),
    *,
    mode: str = "constant",
    fill: Any = 0,
    **options: Any,
) -> Sample:
    keywords = {"mode": mode, "fill": fill}
    return Sample(id, lambda m: (m.image(*shape), padding), keywords, linear=fill == 0, **options)


def pad_reference(
    image: Array, fill: Array | None, left: int, top: int, right: int, bottom: int, mode: str
) -> Array:
    """OpenCV for what it has; other types as pixels that move, asked of ``cv2.borderInterpolate``."""
    channels = len(image)
    values = np.zeros(channels) if fill is None else np.broadcast_to(fill, channels)
    if image.dtype in (np.uint8, np.float32) and image.size:
        around = top, bottom, left, right
        planes = [
            cv2.copyMakeBorder(p, *around, BORDERS[mode], value=float(v))
            for p, v in zip(np.ascontiguousarray(image), values)
        ]
        return np.stack(planes)
    height, width = image.shape[1:]
    if mode == "constant":
        out = np.empty((channels, height + top + bottom, width + left + right), image.dtype)
        info = np.iinfo(image.dtype) if image.dtype.kind in "iu" else None
        low, high = (info.min, info.max) if info else (-np.inf, np.inf)
        held = [min(max(round(v), low), high) if info else v for v in values.tolist()]
        out[...] = np.array([bool(v) if image.dtype == bool else v for v in held], image.dtype)[:, None, None]
        out[:, top : top + height, left : left + width] = image
        return out

    def taken(before: int, size: int, after: int) -> list[int]:
        return [cv2.borderInterpolate(i, size, BORDERS[mode]) for i in range(-before, size + after)]

    return image[:, taken(top, height, bottom)][:, :, taken(left, width, right)]


_PADDING = "pad: padding must have 4 integers (left, top, right, bottom)"
_FILL = "pad: fill must be a number or one per channel"

PAD = OpSpec(
    "pad",
    samples=(
        _pad("all", 2),
        _pad("pair", (3, 1), fill=0.25),
        _pad("four", (1, 0, 4, 2), fill=(1, 0, 2)),
        _pad("none", 0),
        *(_pad(mode, (2, 3, 1, 0), mode=mode) for mode in ("edge", "reflect", "symmetric", "wrap")),
        *(_pad(f"{mode}-wide", 14, mode=mode) for mode in ("reflect", "symmetric", "wrap")),
        _pad("one-pixel", 2, (1, 1, 1), mode="reflect", edge=True),
        _pad("one-row", (1, 3), (3, 1, 4), mode="symmetric", edge=True),
        _pad("of-nothing", (1, 2), (2, 0, 4), fill=1, edge=True, differentiable=False),
        _pad("no-channels", 1, (0, 3, 3), mode="wrap", edge=True, differentiable=False),
        _pad("five-channels", (2, 1), (5, 4, 4), fill=(1, 2, 3, 4, 5), edge=True, differentiable=False),
        _pad("many-channels", (2, 1), (131, 4, 4), mode="wrap", edge=True, differentiable=False),
    ),
    errors=(
        ErrorInput(TypeError, "pad: image must be a Tensor, got NoneType", lambda x: pad(None, 1)),
        ErrorInput(ValueError, f"pad: image {DIMENSIONS}, got shape (5, 6)", lambda x: pad(x[0, 0], 1)),
        ErrorInput(
            ValueError, "pad: padding must not be negative, got (-1, -1, -1, -1)", lambda x: pad(x, -1)
        ),
        ErrorInput(ValueError, f"{_PADDING}, got 3", lambda x: pad(x, (1, 2, 3))),
        ErrorInput(TypeError, f"{_PADDING}, got float", lambda x: pad(x, 1.5)),
        ErrorInput(
            ValueError,
            "pad: mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'mirror'",
            lambda x: pad(x, 1, "mirror"),
        ),
        ErrorInput(
            ValueError,
            "pad: fill must be one value or one for each of 3 channels, got shape (2,)",
            lambda x: pad(x, 1, fill=(1, 2)),
        ),
        ErrorInput(TypeError, f"{_FILL}, got str", lambda x: pad(x, 1, fill="red")),
        ErrorInput(TypeError, f"{_FILL}, got NoneType", lambda x: pad(x, 1, fill=(1, None, 2))),
        ErrorInput(
            ValueError,
            "pad: fill must be finite for torch.uint8, got inf",
            lambda x: pad(x, 1, fill=float("inf")),
            torch.uint8,
        ),
        ErrorInput(
            ValueError,
            "pad: fill must be finite for torch.uint8, got nan",
            lambda x: pad(x, 1, fill=torch.tensor([float("nan")])),
            torch.uint8,
            reads_values=True,
        ),
        ErrorInput(
            TypeError,
            "pad: fill must be real, got torch.complex64",
            lambda x: pad(x, 1, fill=torch.tensor(1j)),
        ),
        ErrorInput(
            ValueError,
            "pad: image must have at least one pixel for mode 'edge', got shape (2, 3, 0, 6)",
            lambda x: pad(x[:, :, :0], 1, "edge"),
        ),
        ErrorInput(
            ValueError,
            "pad: padding must be 32-bit, got (4294967296, 0, 4294967296, 0)",
            lambda x: pad(x, (2**32, 0)),
        ),
        ErrorInput(
            ValueError,
            "pad: the padded image must span fewer than 2**31 pixels, got 65541 x 65542",
            lambda x: pad(x, 2**15),
        ),
    ),
    of_number=lambda x, v: pad(x, 2, fill=v),
    reference=pad_reference,
    decomposed={},
    dtypes=ANY_DTYPE,
    plain=Plain(lambda x: pad(x, 2, "reflect"), lambda x: plain.pad(x, 2, "reflect"), (plain.rand(3, 7, 9),)),
    reference_name="`cv2.copyMakeBorder`",
    dtype_names="all",
    decomposed_difference="0",
    section="Movement",
    formula=r"y_{c,i,j} = x_{c,\,b(i-\mathrm{top}),\,b(j-\mathrm{left})}",
    border="``mode`` is the function b: constant, edge, reflect, symmetric or wrap",
    transforms=("Pad", "RandomCrop", "RandomZoomOut"),
    photo=(
        lambda x: pad(x, (5, 9, 30, 2), "reflect"),
        lambda x: chw(cv2.copyMakeBorder(photo_frame(x), 9, 2, 5, 30, cv2.BORDER_REFLECT_101)),
    ),
    benchmarks=tuple(
        Benchmark(f"pad {mode}", "cv2.copyMakeBorder", bench.pad(mode), every_size=True)
        for mode in ("constant", "reflect")
    ),
)


def pad_adjoint_reference(grad: Array, left: int, top: int, right: int, bottom: int, mode: str) -> Array:
    """Every padded pixel is added to the pixel that ``cv2.borderInterpolate`` names; -1 is none."""
    height, width = grad.shape[1] - top - bottom, grad.shape[2] - left - right
    out = np.zeros((len(grad), height, width))
    for y in range(grad.shape[1]):
        for x in range(grad.shape[2]):
            i = cv2.borderInterpolate(y - top, height, BORDERS[mode])
            j = cv2.borderInterpolate(x - left, width, BORDERS[mode])
            if i >= 0 and j >= 0:
                out[:, i, j] += grad[:, y, x]
    return out.astype(grad.dtype)


PAD_ADJOINT = OpSpec(
    "pad_adjoint",
    samples=tuple(
        Sample(mode, lambda m, mode=mode: (m.image(3, 9, 8), 2, 3, 1, 0, mode), linear=True)
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    ),
    errors=(
        ErrorInput(
            TypeError,
            "pad_adjoint: grad must be floating point, got torch.int64",
            lambda x: ops.pad_adjoint(x, 1, 1, 1, 1, "edge"),
            torch.int64,
        ),
        ErrorInput(
            ValueError,
            "pad_adjoint: padding must leave a part of grad, got (3, 0, 3, 0) for shape (2, 3, 5, 6)",
            lambda x: ops.pad_adjoint(x, 3, 0, 3, 0, "edge"),
        ),
    ),
    reference=pad_adjoint_reference,
    tolerance=REAL,
    dtypes=FLOATS[1:],
    plain=Plain(
        lambda g: ops.pad_adjoint(g, 1, 2, 1, 0, "edge"),
        lambda g: plain.pulled(lambda x: F.pad(x, (1, 1, 2, 0), mode="replicate"), plain.zeros(3, 5, 7), g),
        (plain.rand(3, 7, 9),),
    ),
    reference_name="transpose of pad",
    difference="1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


SPECS = (PAD, PAD_ADJOINT)
