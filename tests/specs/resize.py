"""resize, its adjoint, and resize_out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image

from imgops import resize, resize_out, resized_crop
from tests.specs import _benchmarks as bench
from tests.specs._draw import Draw
from tests.specs._libraries import FILTERS, FLAGS, Array, by_opencv, by_pil_planes, chw, photo_pil
from tests.specs._maker import ANY_DTYPE, FLOATS, LEVELS_AND_FLOATS, Maker, rows
from tests.specs._spec import CLOSE, EXACT, LEVEL, ROUNDED, Benchmark, ErrorInput, OpSpec, Sample, Tolerance

ops = torch.ops.imgops
X = torch.rand(2, 3, 5, 6)


# -- resize ------------------------------------------------------------------------------------------


def _resize(
    id: str,
    size: tuple[int, int],
    name: str = "bilinear",
    *,
    shape: tuple[int, ...] = (3, 7, 9),
    antialias: bool = True,
    box: tuple[float, ...] | None = None,
    **options: Any,
) -> Sample:
    keywords: dict[str, Any] = {} if antialias else {"antialias": False}
    if box is not None:
        keywords["box"] = box
    if name.endswith("nearest"):
        options |= {"dtypes": ANY_DTYPE, "decomposed": {}}
    elif not antialias and name in ("bicubic", "area"):
        options["decomposed"] = LEVEL
    return Sample(id, lambda m: (m.image(*shape), size, name), keywords, linear=True, **options)


def _scaled(id: str, scale: tuple[float, float], name: str = "bilinear", **options: Any) -> Sample:
    made = _resize(id, (1, 1), name, antialias=False, **options)
    keywords = {"antialias": False, "interpolation": name, "scale": scale}
    return replace(made, arguments=lambda m: (m.image(3, 7, 9),), keywords=keywords)


def resize_reference(
    image: Array,
    box: Array | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Any = None,
) -> Array:
    region = None if box is None else tuple(box.tolist())
    if image.size == 0:
        return np.zeros((len(image), height, width), image.dtype)
    if interpolation == "torch_nearest":
        return _torch_nearest(image, (height, width))
    if interpolation == "nearest":
        return _nearest(image, (height, width), antialias, region, scale)
    if antialias:
        carrier = image.astype(np.float32) if image.dtype == np.float64 else image
        out = by_pil_planes(carrier, lambda p: p.resize((width, height), FILTERS[interpolation], box=region))
        return out.astype(image.dtype)
    counts = range(5 if interpolation == "area" else 129)
    return by_opencv(image, lambda a: _of_opencv(a, (height, width), interpolation, scale), counts)


def _of_opencv(image: Array, size: tuple[int, int], interpolation: str, scale: Any) -> Array:
    if scale is None:
        return cv2.resize(image, size[::-1], interpolation=FLAGS[interpolation])
    return cv2.resize(image, None, fx=scale[0], fy=scale[1], interpolation=FLAGS[interpolation])


def _torch_nearest(image: Array, size: tuple[int, int]) -> Array:
    """Resize the pixels' indices by PyTorch, then look them up."""
    rows, columns = image.shape[-2:]
    ramp = torch.arange(rows * columns, dtype=torch.float64).reshape(1, 1, rows, columns)
    taken = torch.nn.functional.interpolate(ramp, size, mode="nearest").long().flatten().numpy()
    return image.reshape(len(image), rows * columns)[:, taken].reshape(len(image), *size)


def _nearest(image: Array, size: tuple[int, int], antialias: bool, box: Any, scale: Any) -> Array:
    """Resize the pixels' indices, then look them up, because the choice of a pixel does not depend on its value.

    PIL has other code in mode I;16.
    """
    if antialias and image.dtype == np.uint16:
        return by_pil_planes(image, lambda p: p.resize(size[::-1], Image.Resampling.NEAREST, box=box))
    rows, columns = image.shape[-2:]
    ramp = np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)
    if antialias:
        taken = np.array(Image.fromarray(ramp).resize(size[::-1], Image.Resampling.NEAREST, box=box))
    else:
        taken = _of_opencv(ramp, size, "nearest", scale)
    black = np.zeros((len(image), 1), image.dtype)  # PIL writes 0 for a position outside
    values = np.concatenate([black, image.reshape(len(image), rows * columns)], 1)
    return values[:, taken.astype(np.int64).reshape(-1)].reshape(len(image), *size)


def _drawn(d: Draw) -> tuple[Any, ...]:
    """Draw a call with one of PIL's filters, and at times a box, or with one of OpenCV's interpolations."""
    image, size, antialias = d.image(), (d.whole(1, 40), d.whole(1, 40)), d.choice(True, False)
    names = [*FILTERS] if antialias else [*FLAGS]
    box = None
    if antialias and d.choice(True, False):
        ends = [sorted(d.random.uniform(0, n) for _ in range(2)) for n in (image.shape[-1], image.shape[-2])]
        box = _float64(*(pair[i] for i in (0, 1) for pair in ends))
    return image, box, *size, d.choice(*names), antialias, None


#: PIL has no double precision, and OpenCV's weights are single: the exact test is in tests/test_values.py.
_TOLERANCE = {**ROUNDED, torch.float32: Tolerance(1e-5), torch.float64: Tolerance(1e-5)}
_SIZE = "size must have 2 integers (height, width)"
_BOX = "box must have 4 numbers (left, top, right, bottom)"
_REGION = "box must satisfy 0 <= left <= right <= 6 and 0 <= top <= bottom <= 5"
_PIL_FILTERS = "'nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos' with antialias=True"
_OPENCV_FILTERS = "'nearest', 'bilinear', 'bicubic', 'area', 'lanczos', 'torch_nearest' with antialias=False"


def _float64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


_SCALE = "scale must be 2 positive numbers (x, y)"


def _of_scale(x: torch.Tensor, **given: Any) -> torch.Tensor:
    return resize(x, **{"antialias": False, "scale": (0.5, 0.5)} | given)


RESIZE = OpSpec(
    "resize",
    samples=(
        _resize("bilinear-down", (3, 4)),
        *(
            _resize(f"{name}-{way}", size, name)
            for name in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
            for way, size in (("down", (3, 4)), ("up", (10, 13)))
            if (name, way) != ("bilinear", "down")
        ),
        *(
            _resize(f"plain-{name}-{way}", size, name, antialias=False)
            for name in ("nearest", "bilinear", "bicubic", "area", "lanczos", "torch_nearest")
            for way, size in (("down", (3, 4)), ("up", (10, 13)))
        ),
        *(
            _scaled(f"scale-{name}-{way}", scale, name)
            for name in ("nearest", "bilinear", "bicubic", "area", "lanczos")
            for way, scale in (("down", (0.61, 0.45)), ("up", (1.37, 1.6)))
        ),
        _scaled("scale-halves", (0.5, 0.5), decomposed=LEVEL),  # OpenCV takes "area", with another rounding
        _scaled("scale-area-halves", (0.5, 0.5), "area", edge=True),
        _scaled("scale-same", (1.01, 0.99), edge=True),
        _scaled("scale-one-side", (1.05, 0.5), "nearest", edge=True),
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
        _resize("no-channels", (3, 4), shape=(0, 5, 5), edge=True, differentiable=False),
        _resize("five-channels", (4, 3), shape=(5, 7, 9), edge=True, differentiable=False),
        _resize(
            "plain-many-channels",
            (4, 3),
            "area",
            antialias=False,
            shape=(131, 7, 9),
            edge=True,
            differentiable=False,
        ),
    ),
    refused={
        NotImplementedError: {
            "box must not require a gradient, which is not implemented, got a box with requires_grad=True": (
                lambda x: resize(x, (2, 2), box=_float64(0, 0, 4, 4).requires_grad_())
            ),
        },
        TypeError: {
            f"{_SCALE}, got str": partial(_of_scale, scale=(1.0, "a")),
            "image must be a Tensor, got str; imgops.decode_image(path) reads a file": lambda x: resize(
                "cat.png", (1, 1)
            ),
            f"{_SIZE}, got int": lambda x: resize(x, 3),
            f"{_SIZE}, got float 4.0": lambda x: resize(x, (3, 4.0)),
            "image must be uint8, uint16 or floating point for interpolation 'bilinear', got torch.int32": ErrorInput(
                lambda x: resize(x, (2, 2)), dtype=torch.int32
            ),
            "image must have at most 8 bytes a value, got torch.complex128": ErrorInput(
                lambda x: resize(x, (2, 2), "nearest"), dtype=torch.complex128
            ),
            f"{_SCALE}, got float": lambda x: resize(x, antialias=False, scale=0.5),  # type: ignore[arg-type]
            "antialias must be a bool, got 1": lambda x: resize(x, (2, 2), antialias=1),  # type: ignore[arg-type]
            f"{_BOX}, got set": lambda x: resize(x, (2, 2), box={0, 1, 2, 3}),
            f"{_BOX}, got float": lambda x: resize(x, (2, 2), box=1.0),
            f"{_BOX}, got str": lambda x: resize(x, (2, 2), box=(0, 0, 1, "a")),
            "box must be float64, got torch.float32": lambda x: resize(
                x, (2, 2), box=_float64(0, 0, 2, 2).float()
            ),
        },
        ValueError: {
            "image must have at least 3 dimensions (..., C, H, W), got shape (6,)": lambda x: resize(
                x[0, 0, 0], (1, 1)
            ),
            "size must be at least (1, 1), got (0, 3)": (
                lambda x: resize(x, (0, 3)),
                partial(_of_scale, scale=(0.5, 0.1)),
            ),
            f"{_SCALE}, got 1": partial(_of_scale, scale=(0.5,)),
            f"{_SCALE}, got (0.5, 0)": partial(_of_scale, scale=(0.5, 0)),
            "size must be None with scale, got tuple": partial(_of_scale, size=(2, 2)),
            "antialias must be False with scale, because PIL resizes to a size, got True": partial(
                _of_scale, antialias=True
            ),
            "scale must be None if the pixels are not OpenCV's, got 'torch_nearest'": partial(
                _of_scale, interpolation="torch_nearest"
            ),
            "size must be at least (1, 1), got (3, -1)": lambda x: resize(x, (3, -1)),
            f"{_SIZE}, got 3": lambda x: resize(x, (3, 4, 5)),
            "size must span fewer than 2**31 pixels, got 65536 x 32768": lambda x: resize(x, (2**16, 2**15)),
            "image must span fewer than 2**31 pixels, got 65536 x 32768": lambda x: resize(
                x[..., :1, :1].expand(2, 3, 2**16, 2**15), (2, 2)
            ),
            "image must have at least one pixel, got shape (2, 3, 5, 0)": lambda x: resize(
                x[..., :0], (2, 2)
            ),
            f"interpolation must be one of {_PIL_FILTERS}, got 'area'": lambda x: resize(x, (2, 2), "area"),
            f"interpolation must be one of {_OPENCV_FILTERS}, got 'hamming'": lambda x: resize(
                x, (2, 2), "hamming", antialias=False
            ),
            "box must be None with antialias=False, got a box": lambda x: resize(
                x, (2, 2), antialias=False, box=(0, 0, 2, 2)
            ),
            "size must be (4, 9) with scale, got (5, 9)": lambda x: ops.resize(
                x, None, 5, 9, "bilinear", False, (1.5, 0.8)
            ),
            f"{_BOX}, got 2": lambda x: resize(x, (2, 2), box=(0, 0)),
            f"{_REGION}, got (0.0, 0.0, 6.5, 5.0)": lambda x: resize(x, (2, 2), box=(0, 0, 6.5, 5)),
            f"{_REGION}, got (3.0, 0.0, 2.0, 5.0)": lambda x: resize(x, (2, 2), box=(3, 0, 2, 5)),
            f"{_REGION}, got (nan, 0.0, 2.0, 5.0)": lambda x: resize(x, (2, 2), box=(float("nan"), 0, 2, 5)),
            f"{_REGION}, got (0.0, 0.0, 7.0, 5.0)": ErrorInput(
                lambda x: resize(x, (2, 2), box=_float64(0, 0, 7, 5)), reads_values=True
            ),
            f"{_REGION}, got (0.0, 0.0, 8.0, 5.0)": ErrorInput(
                lambda x: resize(x, (2, 2), box=torch.stack([_float64(0, 0, 6, 5), _float64(0, 0, 8, 5)])),
                reads_values=True,
            ),
            f"{_BOX}, one box or one for each image, got shape (3, 4)": lambda x: resize(
                x, (2, 2), box=torch.zeros(3, 4, dtype=torch.float64)
            ),
        },
    },
    reference=resize_reference,
    draw=_drawn,
    drawn=LEVEL,
    tolerance=_TOLERANCE,
    dtypes=LEVELS_AND_FLOATS,
    reference_name="`PIL.Image.resize` (antialias), `cv2.resize` (not)",
    difference="uint8, uint16 0; float32 1e-5 (PIL), 0 (OpenCV)",
    dtype_names="uint8, uint16, floats; nearest: all",
    decomposed_difference="uint8 0, OpenCV's area and bicubic, and halves of odd sides, 1 level; uint16 1 level; floats 1e-5",
    section="Resizing",
    formula=(
        r"y = R\, x\, C^\top,\quad R_{i,k} = \frac{f\big((k + \tfrac12 - u_i)/s\big)}{\sum_l f\big((l + \tfrac12 - u_i)/s\big)},"
        r"\ u_i = (i+\tfrac12)\,\tfrac{H}{h},\ s = \max(\tfrac{H}{h}, 1)"
    ),
    border="the filter is cut off and its weights sum to 1 again (PIL); the border pixel repeats (OpenCV)",
    transforms=(
        "Resize",
        "RandomResize",
        "RandomShortestSize",
        "ScaleJitter",
        "LongestMaxSize",
        "SmallestMaxSize",
        "Corruption",
        "CopyPaste",
        "LetterBox",
        "Mosaic",
        "PixMix",
    ),
    photo=(
        lambda x: resize(x, (224, 180), "bicubic"),
        lambda x: chw(photo_pil(x).resize((180, 224), Image.Resampling.BICUBIC)),
    ),
    picture=lambda x: resize(x, (x.shape[-2] // 2, x.shape[-1])),
    benchmarks=(
        *(
            Benchmark(
                f"resize {n}", "PIL.Image.resize, mode RGB, L or F", bench.resize(n, True), every_size=True
            )
            for n in ("bilinear", "bicubic")
        ),
        *(
            Benchmark(f"resize plain {n}", "cv2.resize", bench.resize(n, False), every_size=True)
            for n in ("bilinear", "area")
        ),
    ),
)


# -- resize_adjoint ----------------------------------------------------------------------------------


def _transposed(grad: Array, forward: Any, height: int, width: int) -> Array:
    """``forward`` of every unit image gives the rows of the matrix that is to be transposed."""
    basis = np.eye(height * width, dtype=np.float64).reshape(height * width, 1, height, width)
    rows = np.stack([forward(b)[0].ravel() for b in basis])
    return (rows @ grad.reshape(len(grad), -1).astype(np.float64).T).T.reshape(len(grad), height, width)


def resize_adjoint_reference(
    grad: Array,
    box: Array | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Any,
) -> Array:
    size = grad.shape[1:]
    out = _transposed(
        grad, lambda b: resize_reference(b, box, *size, interpolation, antialias, scale), height, width
    )
    return out.astype(grad.dtype)


def _adjoint(
    id: str, *args: Any, shape: tuple[int, ...] = (3, 4, 11), box: Any = None, scale: Any = None
) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        region = None if box is None else torch.tensor(box, dtype=torch.float64)
        return m.image(*shape), region, 7, 9, *args, scale

    return Sample(id, arguments, linear=True)


RESIZE_ADJOINT = OpSpec(
    "resize_adjoint",
    samples=(
        *(_adjoint(f"{name}-True", name, True) for name in ("bilinear", "lanczos", "nearest")),
        *(_adjoint(f"{name}-False", name, False) for name in ("area", "nearest", "torch_nearest")),
        _adjoint("box-nearest-empty", "nearest", True, shape=(3, 4, 5), box=(9, 0, 9, 7)),
        _adjoint("box", "bicubic", True, shape=(3, 4, 5), box=(1.25, 0.5, 7.75, 6)),
        *(
            _adjoint(f"scale-{name}", name, False, shape=(3, 3, 12), scale=(1.37, 0.45))
            for name in ("nearest", "bilinear", "area")
        ),
    ),
    refused={
        TypeError: {
            "grad must be floating point, got torch.uint8": ErrorInput(
                lambda x: ops.resize_adjoint(x, None, 4, 4, "bilinear", True, None), dtype=torch.uint8
            ),
        },
        ValueError: {
            "size must be at least (1, 1), got (0, 4)": lambda x: ops.resize_adjoint(
                x, None, 0, 4, "bilinear", True, None
            ),
        },
    },
    reference=resize_adjoint_reference,
    tolerance=_TOLERANCE,
    dtypes=FLOATS[1:],
    reference_name="transpose of resize",
    difference="float32 1e-5, float64 1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


# -- resize_out --------------------------------------------------------------------------------------


def _out(id: str, name: str, **keywords: Any) -> Sample:
    return Sample(
        id,
        lambda m: (m.image(3, 7, 9), (4, 5), name, {"out": m.image(3, 4, 5)}),
        keywords,
        dtypes=ANY_DTYPE if name.endswith("nearest") else (),
    )


RESIZE_OUT = OpSpec(
    "resize_out",
    samples=(
        _out("bicubic", "bicubic"),
        _out("plain-bilinear", "bilinear", antialias=False),
        _out("nearest", "nearest"),
        _out("box", "lanczos", box=(1.25, 0.5, 7.75, 6.0)),
    ),
    refused={
        ValueError: {
            "out must have shape (2, 3, 4, 4), got (2, 3, 5, 6)": lambda x: resize_out(X, (4, 4), out=x),
            "out must not overlap image in memory, got overlapping tensors": lambda x: resize_out(
                x, (5, 6), out=x
            ),
            f"interpolation must be one of {_OPENCV_FILTERS}, got 'box'": lambda x: resize_out(
                X, (5, 6), "box", antialias=False, out=x
            ),
        },
    },
    reference="tests/test_mutation.py::test_out_of_any_strides_gets_the_same_bits",
    tolerance={torch.uint8: EXACT},
    dtypes=LEVELS_AND_FLOATS,
    reference_name="`resize`, into `out`",
    dtype_names="as resize",
    section="Into existing memory",
    formula=r"\mathrm{out} = R\, x\, C^\top",
    border="as :func:`imgops.resize`",
    photo=(
        lambda x: resize_out(x, (224, 180), "bicubic", out=torch.empty(3, 224, 180, dtype=x.dtype)),
        lambda x: chw(photo_pil(x).resize((180, 224), Image.Resampling.BICUBIC)),
    ),
    picture=lambda x: resize_out(
        x, (x.shape[-2], x.shape[-1] // 2), out=x.new_empty(3, x.shape[-2], x.shape[-1] // 2)
    ),
)


# -- resized_crop ------------------------------------------------------------------------------------


def resized_crop_reference(
    image: Array, box: Array, height: int, width: int, interpolation: str, antialias: bool
) -> Array:
    left, top, right, bottom = box.tolist()
    part = image[:, top:bottom, left:right]
    if part.shape[1:] == (height, width):
        return part
    return resize_reference(part, None, height, width, interpolation, antialias)


def _crop(
    id: str, name: str = "bilinear", antialias: bool = True, each: Any = None, size: Any = (5, 4)
) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        return m.image(3, 7, 9), torch.tensor([2, 1, 8, 5]) if each is None else rows(m, *each), size, name

    nearest = name.endswith("nearest")
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
        _crop("each-torch", "torch_nearest", False, each=((2, 1, 8, 5), (0, 0, 9, 7), (3, 6, 4, 7))),
        _crop("each", each=((2, 1, 8, 5), (0, 0, 9, 7), (3, 6, 4, 7))),
        _crop("each-nearest-same-size", "nearest", each=((2, 1, 6, 6), (0, 0, 4, 5))),
    ),
    refused={
        ValueError: {
            "box must satisfy 0 <= left < right <= 6 and 0 <= top < bottom <= 5, got (0, 0, 0, 2)": lambda x: (
                resized_crop(x, (0, 0, 0, 2), (2, 2))
            ),
            "interpolation must not be 'area', which takes no box, got 'area'": lambda x: resized_crop(
                x, (0, 0, 2, 2), (2, 2), "area", antialias=False
            ),
        },
        TypeError: {
            "box must be int64, got torch.float32": lambda x: resized_crop(x, torch.ones(4), (2, 2)),
        },
    },
    reference=resized_crop_reference,
    tolerance=_TOLERANCE,
    dtypes=LEVELS_AND_FLOATS,
    reference_name="`Image.crop(box).resize`, `cv2.resize` of a slice",
    difference="as resize",
    dtype_names="as resize",
    decomposed_difference="uint8 PIL 0, OpenCV 1 level; uint16 1 level; floats 1e-5",
    section="Resizing",
    formula=r"y^{(n)} = R\, x^{(n)}_{\mathrm{box}_n}\, C^\top",
    border="the crop's own border: nothing around it is seen",
    transforms=("RandomResizedCrop",),
    photo=(
        lambda x: resized_crop(x, (30, 40, 400, 380), (224, 224)),
        lambda x: chw(photo_pil(x).crop((30, 40, 400, 380)).resize((224, 224), Image.Resampling.BILINEAR)),
    ),
    picture=lambda x: resized_crop(
        x, (x.shape[-1] // 3, x.shape[-2] // 4, x.shape[-1] * 2 // 3, x.shape[-2] * 3 // 4), (200, 200)
    ),
    benchmarks=(Benchmark("crop-resize", "PIL crop and resize (uint8)", lambda case: _crop_resize(case)),),
)


# -- resized_crop_adjoint ----------------------------------------------------------------------------


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
            lambda m: (m.image(3, 5, 4), rows(m, (2, 1, 8, 5), (0, 0, 9, 7)), 7, 9, "nearest", True),
            linear=True,
        ),
    ),
    reference=resized_crop_adjoint_reference,
    tolerance=_TOLERANCE,
    dtypes=FLOATS[1:],
    reference_name="transpose of resized_crop",
    difference="float32 1e-5, float64 1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


SPECS = (RESIZE, RESIZE_ADJOINT, RESIZED_CROP, RESIZED_CROP_ADJOINT, RESIZE_OUT)
