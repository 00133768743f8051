"""The warps, flip and rotate90."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

import imgops
from imgops import remap, warp_affine, warp_perspective
from tests.specs import _benchmarks as bench
from tests.specs._libraries import (
    BORDERS,
    FLAGS,
    Array,
    by_opencv,
    by_pil_planes,
    chw,
    is_interleaved,
    photo_frame,
    photo_pil,
    to_pil,
)
from tests.specs._maker import ANY_DTYPE, FLOATS, LEVELS_AND_FLOATS, Maker, parameter
from tests.specs._spec import CLOSE, LEVEL, REAL, Benchmark, OpSpec, Refused, Sample, Tolerance, merged

ones, ops = torch.ones, torch.ops.imgops
#: True from OpenCV 5 on; before, positions are rounded to 1/32 pixel.
OPENCV_IS_EXACT = int(cv2.__version__.split(".")[0]) >= 5

_TURN = torch.tensor([[0.9, -0.35, 1.3], [0.31, 0.8, -0.4]], dtype=torch.float64)
_TILT = torch.tensor([[0.9, -0.35, 1.3], [0.31, 0.8, -0.4], [0.02, -0.03, 1.1]], dtype=torch.float64)
#: OpenCV computes its own dtypes; for double precision its float32 result is the closest reference.
_TOLERANCE = {torch.float64: Tolerance(2e-4 if OPENCV_IS_EXACT else 0.2)}
_BORDER = "``padding_mode``: constant with ``fill``, edge, reflect, symmetric, wrap"


# -- warp_affine -------------------------------------------------------------------------------------


def _nearest(name: str) -> dict[str, Any]:
    return {"dtypes": ANY_DTYPE, "decomposed": {}} if name == "nearest" else {}


def _warp(
    id: str, matrix: Tensor, *rest: Any, shape: Any = (3, 7, 9), each: bool = False, **options: Any
) -> Sample:
    """Make a sample with one matrix, or with ``each`` one matrix per sample, each slightly different."""

    def arguments(m: Maker) -> tuple[Any, ...]:
        value = matrix * m.per_sample(1, 0.9, 1.07).detach()[..., None, None] if each else matrix
        return m.image(*shape), parameter(m, value), *rest

    keywords = {"fill": options.pop("fill")} if "fill" in options else {}
    name = rest[1] if len(rest) > 1 else "bilinear"
    return Sample(id, arguments, keywords, **(_nearest(name) | options))


def _sampled(image: Array, fill: Array | None, interpolation: str, call: Callable[..., Array]) -> Array:
    """Run ``call(array, flags, value)`` of OpenCV for its dtypes; for others, move the pixels' indices with it."""
    channels = len(image)
    fills = np.zeros(channels) if fill is None else np.broadcast_to(fill, channels)
    flags = FLAGS[interpolation]
    if image.dtype in (np.uint8, np.uint16, np.float32):
        if is_interleaved(image) and channels in (3, 4):
            value = (*fills.tolist(), *(0.0,) * (4 - channels))
            return by_opencv(image, lambda a: call(a, flags, value))
        planes = np.ascontiguousarray(image)
        return np.stack([call(p, flags, (float(v),) * 4) for p, v in zip(planes, fills)])
    if interpolation != "nearest":
        return _sampled(image.astype(np.float32), fill, interpolation, call).astype(image.dtype)
    numbers = np.arange(1, image[0].size + 1, dtype=np.float32).reshape(image.shape[1:])
    taken = call(numbers, flags, 0.0).astype(np.int64)
    moved = image.reshape(channels, -1)[:, taken.clip(1) - 1]
    values = [bool(v) if image.dtype == bool else v for v in fills.tolist()]
    return np.where(taken > 0, moved, np.array(values).astype(image.dtype)[:, None, None])


def warp_affine_reference(
    image: Array, matrix: Array, fill: Any, height: int, width: int, interpolation: str, padding_mode: str
) -> Array:
    def call(array: Array, flags: int, value: Any) -> Array:
        how = {"flags": flags, "borderMode": BORDERS[padding_mode], "borderValue": value}
        return cv2.warpAffine(array, matrix.astype(np.float64), (width, height), **how)

    return _sampled(image, fill, interpolation, call)


def warp_perspective_reference(
    image: Array, matrix: Array, fill: Any, height: int, width: int, interpolation: str, padding_mode: str
) -> Array:
    def call(array: Array, flags: int, value: Any) -> Array:
        how = {"flags": flags, "borderMode": BORDERS[padding_mode], "borderValue": value}
        return cv2.warpPerspective(array, matrix.astype(np.float64), (width, height), **how)

    return _sampled(image, fill, interpolation, call)


def _photo_warp(ours: Any, theirs: Any, matrix: Array) -> tuple[Any, Any]:
    size = (300, 400)
    return (
        lambda x: ours(x, torch.from_numpy(matrix), size, "bilinear"),
        lambda x: chw(theirs(photo_frame(x), matrix, size[::-1], flags=cv2.INTER_LINEAR)),
    )


_PHOTO_TURN = np.array([[0.9, -0.3, 60.0], [0.2, 1.1, -40.0]])
_PHOTO_TILT = np.array([[0.9, -0.3, 60.0], [0.2, 1.1, -40.0], [2e-4, -1e-4, 1.0]])
_BENCH_TURN = np.array([[0.9, -0.2, 40.0], [0.15, 0.95, -20.0]])
_BENCH_TILT = np.array([[0.9, -0.2, 40.0], [0.15, 0.95, -20.0], [1e-4, 5e-5, 1.0]])


def _affine_calls(name: str) -> Callable[[Any], bench.Calls]:
    def calls(case: Any) -> bench.Calls:
        import kornia.geometry.transform as kornia
        from torchvision.transforms import InterpolationMode

        x, v2, arrays, size = case.image(), bench.functional(), case.arrays(case.image()), case.size
        matrix, mode = torch.from_numpy(_BENCH_TURN), InterpolationMode(name)
        return (
            lambda: warp_affine(x, matrix, interpolation=name),
            lambda: [cv2.warpAffine(a, _BENCH_TURN, (size, size), flags=FLAGS[name]) for a in arrays],
            lambda: v2.affine(x, 12.0, [10, -5], 0.95, [0.0, 0.0], interpolation=mode),
            bench.of_floats(
                x, lambda y: kornia.warp_affine(y, matrix[None].float(), (size, size), mode=name)
            ),
        )

    return calls


def _perspective_calls(case: Any) -> bench.Calls:
    import kornia.geometry.transform as kornia

    x, v2, arrays, size = case.image(), bench.functional(), case.arrays(case.image()), case.size
    matrix = torch.from_numpy(_BENCH_TILT)
    start = [[0, 0], [size, 0], [size, size], [0, size]]
    end = [[20, 10], [size - 9, 5], [size - 20, size - 3], [4, size - 30]]
    return (
        lambda: warp_perspective(x, matrix),
        lambda: [cv2.warpPerspective(a, _BENCH_TILT, (size, size)) for a in arrays],
        lambda: v2.perspective(x, start, end),
        bench.of_floats(x, lambda y: kornia.warp_perspective(y, matrix[None].float(), (size, size))),
    )


_SHARED: dict[str, Any] = {
    # Changed matrices and maps may have no inverse, or positions that are infinite.
    "comparable": lambda args, changed: not {"1", "map", "matrix"} & {*changed},
    "tolerance": _TOLERANCE,
    "decomposed": LEVEL,
    "dtypes": LEVELS_AND_FLOATS,
    "dtype_names": "uint8, uint16, floats; nearest: all",
    "decomposed_difference": "1 level; floats 1e-5",
    "section": "Warps",
    "border": _BORDER,
}

WARP_AFFINE = OpSpec(
    "warp_affine",
    samples=(
        *(
            _warp(f"{name}-{padding_mode}", _TURN, None, name, padding_mode)
            for name, padding_mode in (
                ("nearest", "constant"),
                ("bilinear", "constant"),
                ("bicubic", "constant"),
                ("nearest", "wrap"),
                ("bilinear", "edge"),
                ("bicubic", "reflect"),
                ("bilinear", "symmetric"),
            )
        ),
        _warp("larger", _TURN, (9, 12), "bilinear", fill=0.5),
        _warp("each-fills", _TURN, (5, 6), "bilinear", fill=(1, 0, 2), each=True),
        Sample("identity", lambda m: (m.image(3, 7, 9), torch.eye(3)[:2].long())),
        _warp("one-pixel", _TURN, (2, 3), shape=(1, 1, 1), edge=True),
        _warp(
            "five-channels",
            _TURN,
            (4, 3),
            shape=(5, 6, 7),
            fill=(1, 2, 3, 4, 5),
            edge=True,
            differentiable=False,
        ),
        _warp("singular", 0 * _TURN, edge=True, differentiable=False),
    ),
    refused={
        ValueError: {
            "matrix must have shape (2, 3), or shape (2, 2, 3), one for each image, got shape (3, 3)": lambda x: (
                warp_affine(x, ones(3, 3))
            ),
            "interpolation must be one of 'nearest', 'bilinear', 'bicubic', got 'area'": lambda x: (
                warp_affine(x, ones(2, 3), interpolation="area")
            ),
            "fill must be one value or one for each of 3 channels, got shape (2,)": lambda x: warp_affine(
                x, ones(2, 3), fill=(1, 2)
            ),
            "image must have at least one pixel, got shape (2, 3, 0, 6)": lambda x: warp_affine(
                x[..., :0, :], ones(2, 3)
            ),
        }
    },
    of_number=lambda x, v: imgops.warp_affine(x, [[1.0, v, 0.5], [0.0, 1.0, v]], fill=v),
    reference=warp_affine_reference,
    reference_name="`cv2.warpAffine`",
    formula=r"y(p) = \sum_q k\big(M^{-1} p - q\big)\, x_q",
    transforms=(
        "RandomAffine",
        "RandomRotation",
        "affine",
        "rotate",
        "AugMix",
        "AutoAugment",
        "RandAugment",
        "TrivialAugmentWide",
        "PixMix",
    ),
    photo=_photo_warp(warp_affine, cv2.warpAffine, _PHOTO_TURN),
    picture=lambda x: imgops.warp_affine(x, torch.tensor([[0.9, -0.4, 50], [0.3, 0.8, -20]])),
    benchmarks=tuple(
        Benchmark(f"affine {name}", "cv2.warpAffine", _affine_calls(name)) for name in ("nearest", "bilinear")
    ),
    **_SHARED,
)


# -- warp_perspective --------------------------------------------------------------------------------

WARP_PERSPECTIVE = OpSpec(
    "warp_perspective",
    samples=(
        *(
            _warp(f"{name}-{padding_mode}", _TILT, None, name, padding_mode)
            for name, padding_mode in (("nearest", "edge"), ("bilinear", "constant"), ("bicubic", "constant"))
        ),
        _warp("each-fill", _TILT, (5, 6), "bilinear", "constant", 2, each=True),
    ),
    refused={
        ValueError: {
            "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'zero'": lambda x: (
                warp_perspective(x, ones(3, 3), padding_mode="zero")
            ),
            "size must be at least (1, 1), got (0, 3)": lambda x: warp_perspective(x, ones(3, 3), (0, 3)),
        }
    },
    of_number=lambda x, v: imgops.warp_perspective(
        x, [[1.0, v, 0.5], [0.0, 1.0, v], [0.0, 0.0, 1.0]], fill=v
    ),
    reference=warp_perspective_reference,
    reference_name="`cv2.warpPerspective`",
    formula=r"y(p) = \sum_q k\big(\pi(M^{-1} [p, 1]) - q\big)\, x_q,\quad \pi(u, v, w) = (u/w, v/w)",
    transforms=("RandomPerspective", "perspective"),
    photo=_photo_warp(warp_perspective, cv2.warpPerspective, _PHOTO_TILT),
    picture=lambda x: imgops.warp_perspective(
        x, torch.tensor([[0.9, 0.3, -10], [-0.1, 1.1, 20], [-0.0004, 0.0012, 1]])
    ),
    benchmarks=(Benchmark("perspective", "cv2.warpPerspective", _perspective_calls),),
    **_SHARED,
)


# -- flip --------------------------------------------------------------------------------------------


def _flip_calls(case: Any) -> bench.Calls:
    import kornia.geometry.transform as kornia

    x, v2, arrays = case.image(), bench.functional(), case.arrays(case.image())
    return (
        lambda: imgops.flip(x),
        lambda: [cv2.flip(a, 1) for a in arrays],
        lambda: v2.horizontal_flip(x),
        bench.of_floats(x, kornia.hflip),
    )


_MOVES: dict[str, Any] = {"dtypes": ANY_DTYPE, "section": "Movement", "border": "no pixel looks at another"}


def flip_reference(image: Array, direction: str = "horizontal") -> Array:
    """Run OpenCV for its dtypes; for others, reverse NumPy's axes."""
    axes, code = {"horizontal": (2, 1), "vertical": (1, 0), "both": ((1, 2), -1)}[direction]
    if image.dtype in (np.uint8, np.float32):
        return np.stack([cv2.flip(np.ascontiguousarray(plane), code) for plane in image])
    return np.flip(image, axes)


def rotate90_reference(image: Array, turns: int = 1) -> Array:
    """Run PIL on uint8; turn NumPy's axes for other dtypes."""
    if image.dtype == np.uint8 and turns % 4:
        way = getattr(Image.Transpose, f"ROTATE_{turns % 4 * 90}")
        return by_pil_planes(image, lambda plane: plane.transpose(way))
    return np.rot90(image, turns, (1, 2))


FLIP = OpSpec(
    "flip",
    samples=tuple(
        Sample(direction, lambda m, direction=direction: (m.image(3, 5, 6), direction), linear=True)
        for direction in ("horizontal", "vertical", "both")
    ),
    reference=flip_reference,
    refused={
        ValueError: {
            "direction must be one of 'horizontal', 'vertical', 'both', got 'up'": lambda x: imgops.flip(
                x, "up"
            )
        }
    },
    formula=r"y_{c,i,j} = x_{c,i,W-1-j}",
    transforms=(
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "horizontal_flip",
        "vertical_flip",
        "RandomTranspose",
    ),
    photo=(imgops.flip, lambda x: chw(cv2.flip(photo_frame(x), 1))),
    benchmarks=(Benchmark("flip", "cv2.flip", _flip_calls),),
    **_MOVES,
)


# -- rotate90 ----------------------------------------------------------------------------------------

ROTATE90 = OpSpec(
    "rotate90",
    samples=tuple(
        Sample(f"{turns}", lambda m, turns=turns: (m.image(3, 5, 6), turns), linear=True)
        for turns in (1, 2, -1, 4)
    ),
    reference=rotate90_reference,
    refused={TypeError: {"turns must be an integer, got float 1.5": lambda x: imgops.rotate90(x, 1.5)}},
    words="``turns``",
    formula=r"y_{c,i,j} = x_{c,j,W-1-i}\ \text{(once, counterclockwise)}",
    transforms=("RandomRotate90", "RandomTranspose"),
    photo=(imgops.rotate90, lambda x: chw(photo_pil(x).transpose(Image.Transpose.ROTATE_90))),
    **_MOVES,
)


# -- remap -------------------------------------------------------------------------------------------


def _positions(m: Maker, height: int, width: int) -> Tensor:
    """Make positions on both sides of the border, none of them near an integer."""
    made = replace(m, dtype=torch.float64, format="planar", grad=False).image(2, height, width, -3, 11)
    held = made.floor() + 0.1 + 0.8 * (made - made.floor())
    return held.to(torch.float64 if m.dtype == torch.float64 else torch.float32).requires_grad_(m.grad)


def remap_reference(image: Array, map: Array, fill: Any, interpolation: str, padding_mode: str) -> Array:
    x, y = map.astype(np.float32)

    def call(array: Array, flags: int, value: Any) -> Array:
        return cv2.remap(array, x, y, flags, borderMode=BORDERS[padding_mode], borderValue=value)

    return _sampled(image, fill, interpolation, call)


def _fills(m: Maker, *values: float) -> dict[str, Any]:
    return {"fill": torch.tensor(values, dtype=torch.float64).requires_grad_(m.grad)}


def _photo_map() -> tuple[Array, Array]:
    y, x = np.mgrid[0:300, 0:400].astype(np.float32)
    return x * 1.1 + 8 * np.sin(y / 20), y * 1.05 + 8 * np.cos(x / 25)


def _remap_calls(case: Any) -> bench.Calls:
    import kornia.geometry.transform as kornia

    x, arrays, size = case.image(), case.arrays(case.image()), case.size
    grid = np.stack(np.meshgrid(np.arange(size), np.arange(size))).astype(np.float32)
    at = grid + np.float32(2) * np.sin(grid[::-1] / 20)
    own = torch.from_numpy(at)
    return (
        lambda: remap(x, own),
        lambda: [cv2.remap(a, at[0], at[1], cv2.INTER_LINEAR) for a in arrays],
        None,
        bench.of_floats(x, lambda y: kornia.remap(y, own[:1], own[1:], align_corners=True)),
    )


def _under_water(x: Tensor) -> Tensor:
    """Return a map of waves."""
    v, u = torch.meshgrid(torch.arange(x.shape[-2]), torch.arange(x.shape[-1]), indexing="ij")
    return torch.stack([u + 9 * (v / 11).sin(), v + 6 * (u / 17).sin()])


REMAP = OpSpec(
    "remap",
    samples=(
        *(
            Sample(
                f"{name}-{padding_mode}",
                lambda m, n=name, b=padding_mode: (m.image(3, 7, 9), _positions(m, 4, 5), n, b),
                **_nearest(name),
            )
            for name, padding_mode in (
                ("nearest", "reflect"),
                ("bilinear", "constant"),
                ("bicubic", "constant"),
                ("bilinear", "wrap"),
            )
        ),
        Sample(
            "fills",
            lambda m: (m.image(3, 7, 9), _positions(m, 4, 5), "bicubic", "constant", _fills(m, 1, 0, 2)),
        ),
    ),
    refused={
        ValueError: {
            "map must be (..., 2, H, W): x and y, got shape (2, 3, 5, 6)": lambda x: remap(x, x.float())
        },
        TypeError: {"map must be float32 or float64, got torch.int64": lambda x: remap(x, x[:, :2].long())},
    },
    of_number=lambda x, v: imgops.remap(x, torch.ones(2, 4, 5), fill=v),
    reference=remap_reference,
    reference_name="`cv2.remap`",
    formula=r"y(p) = \sum_q k\big(\mathrm{map}(p) - q\big)\, x_q",
    transforms=(
        "ElasticTransform",
        "elastic",
        "Corruption",
        "RandomElastic",
        "RandomGridDistortion",
        "RandomOpticalDistortion",
        "RandomThinPlateSpline",
    ),
    photo=(
        lambda x: remap(x, torch.from_numpy(np.stack(_photo_map())), "bilinear"),
        lambda x: chw(cv2.remap(photo_frame(x), *_photo_map(), cv2.INTER_LINEAR)),
    ),
    picture=lambda x: imgops.remap(x, _under_water(x)),
    benchmarks=(Benchmark("remap", "cv2.remap", _remap_calls),),
    **_SHARED,
)


# -- remap_adjoint -----------------------------------------------------------------------------------


def remap_adjoint_reference(
    grad: Array, map: Array, height: int, width: int, interpolation: str, padding_mode: str
) -> Array:
    """Apply the transpose of ``cv2.remap``, which is found by its result for every unit image."""
    basis = np.eye(height * width, dtype=np.float32).reshape(-1, 1, height, width)
    rows = np.stack([remap_reference(b, map, None, interpolation, padding_mode)[0].ravel() for b in basis])
    return (rows @ grad.reshape(len(grad), -1).T).T.reshape(len(grad), height, width)


_NEAR_OPENCV = {d: Tolerance(2e-3 if OPENCV_IS_EXACT else 0.5) for d in (torch.float32, torch.float64)} | {
    torch.float16: Tolerance(4e-3 if OPENCV_IS_EXACT else 0.5),
    torch.bfloat16: Tolerance(2e-2 if OPENCV_IS_EXACT else 0.5),
}


REMAP_ADJOINT = OpSpec(
    "remap_adjoint",
    samples=tuple(
        Sample(f"{n}-{b}", lambda m, n=n, b=b: (m.image(3, 4, 5), _positions(m, 4, 5), 7, 9, n, b))
        for n, b in (("bilinear", "constant"), ("bicubic", "reflect"), ("nearest", "wrap"))
    ),
    refused={
        ValueError: {
            "grad must have the size of map (4, 6), got (5, 6)": lambda x: ops.remap_adjoint(
                x, x[:, :2, :4], 4, 4, "nearest", "edge"
            )
        }
    },
    reference=remap_adjoint_reference,
    tolerance=_NEAR_OPENCV,
    decomposed=CLOSE,
    dtypes=FLOATS[1:],
    reference_name="transpose of remap",
    difference="float64 1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


# -- remap_grad_map ----------------------------------------------------------------------------------

REMAP_GRAD_MAP = OpSpec(
    "remap_grad_map",
    samples=tuple(
        Sample(
            f"{n}-{b}",
            lambda m, n=n, b=b: (m.image(3, 4, 5), m.image(3, 7, 9), _positions(m, 4, 5), None, n, b),
        )
        for n, b in (("bilinear", "constant"), ("bicubic", "edge"))
    )
    + (
        Sample(
            "fill",
            lambda m: (
                m.image(3, 4, 5),
                m.image(3, 7, 9),
                _positions(m, 4, 5),
                torch.tensor([0.5, 0.0, -1.0], dtype=torch.float64),
                "bilinear",
                "constant",
            ),
        ),
    ),
    reference="tests/test_geometry.py::test_the_derivative_of_a_map_is_that_of_opencv",
    tolerance=REAL,
    dtypes=FLOATS[1:],
    reference_name="derivative of remap in its map",
    difference="float64 1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


# -- rotate and affine -------------------------------------------------------------------------------


def affine_reference(
    image: Array,
    angle: float = 0.0,
    translate: Any = (0.0, 0.0),
    scale: float = 1.0,
    shear: Any = (0.0, 0.0),
    interpolation: str = "bilinear",
    center: Any = None,
    fill: Any = 0,
    size: tuple[int, int] | None = None,
) -> Array:
    """Run OpenCV with the product of the matrices of the steps: center, shear, scale, turn, shift."""
    height, width = image.shape[-2:]
    x, y = (width / 2, height / 2) if center is None else center
    high, wide = size or (height, width)
    shears = shear if np.ndim(shear) else (shear, 0.0)
    turn, shear_x, shear_y = np.deg2rad([angle, *shears])
    rotated = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    sheared = np.array([[1, 0, 0], [-np.tan(shear_y), 1, 0], [0, 0, 1]]) @ np.array(
        [[1, -np.tan(shear_x), 0], [0, 1, 0], [0, 0, 1]]
    )
    whole = _shift((wide - width) / 2, (high - height) / 2)
    whole = whole @ _shift(x + translate[0] - 0.5, y + translate[1] - 0.5)
    whole = whole @ rotated @ np.diag([scale, scale, 1.0]) @ sheared @ _shift(0.5 - x, 0.5 - y)
    return warp_affine_reference(
        image, whole[:2], np.asarray(fill, float), high, wide, interpolation, "constant"
    )


def _shift(x: float, y: float) -> Array:
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]])


def rotate_reference(
    image: Array,
    angle: float,
    interpolation: str = "bilinear",
    expand: bool = False,
    center: Any = None,
    fill: Any = 0,
) -> Array:
    size = to_pil(image[:1]).rotate(angle, expand=True, center=center).size[::-1] if expand else None
    return affine_reference(image, -angle, interpolation=interpolation, center=center, fill=fill, size=size)


def _by_angle(name: str, samples: tuple[Sample, ...], refused: Refused, **facts: Any) -> OpSpec:
    call = getattr(imgops, name)
    return OpSpec(
        name,
        samples=samples,
        # The last bit of a matrix decides which of two pixels is the nearest.
        comparable=lambda args, changed: "nearest" not in args,
        refused=merged(
            refused,
            {
                TypeError: {
                    "image must be a Tensor, got int": lambda x: call(1, 30.0),
                    "center must be 2 numbers (x, y), got int": lambda x: call(x, 3, center=1),
                },
                ValueError: {
                    "image must have at least 3 dimensions (..., C, H, W), got shape (5, 6)": lambda x: call(
                        x[0, 0], 30.0
                    ),
                    "interpolation must be one of 'nearest', 'bilinear', 'bicubic', got 'area'": lambda x: (
                        call(x, 30.0, interpolation="area")
                    ),
                    "angle must have one value, or 2 values, one for each image, got shape (3,)": lambda x: (
                        call(x, torch.ones(3))
                    ),
                    "angle must be finite, got inf": lambda x: call(x, float("inf")),
                    "center must be 2 numbers (x, y), got 3": lambda x: call(x, 30.0, center=(1, 2, 3)),
                },
            },
        ),
        of_number=lambda x, v: call(x, v, center=(v, 2.0)),
        dtypes=LEVELS_AND_FLOATS,
        dtype_names="uint8, uint16, floats; nearest: all",
        section="Warps",
        border="``fill`` outside of the image",
        cores=(3, 0, 1, 0, 1, 0, 1, 0),
        **facts,
    )


ROTATE = _by_angle(
    "rotate",
    (
        Sample("bilinear", lambda m: (m.image(3, 7, 9), 30.0)),
        Sample("nearest", lambda m: (m.image(3, 7, 9), -71.5, "nearest", False, (2, 6.5), 1)),
        Sample("expand", lambda m: (m.image(3, 7, 9), 30, "bicubic", True)),
        Sample("each", lambda m: (m.image(3, 7, 9), m.per_sample(20.0, -130.0))),
    ),
    refused={
        TypeError: {
            "angle must be made of numbers with expand=True, got a Tensor": lambda x: imgops.rotate(
                x, torch.tensor(30.0), expand=True
            ),
            "expand must be a bool, got 1": lambda x: imgops.rotate(x, 30, expand=1),
        }
    },
    reference=rotate_reference,
    tolerance={**LEVEL, **_TOLERANCE},
    reference_name="`cv2.warpAffine` by the matrix of the angle",
    difference="1 level; floats 1e-5",
    words="``center``, ``expand`` (PIL)",
    formula=r"y(p) = x\big(c + R_{-\mathrm{angle}}\,(p - c)\big)",
    photo=(lambda x: imgops.rotate(x, 30.0), lambda x: _turned_by_opencv(x, 30.0)),
    benchmarks=(
        Benchmark(
            "rotate",
            "cv2.getRotationMatrix2D, cv2.warpAffine",
            bench.filters(lambda x: imgops.rotate(x, 30.0), lambda a: _turned(a, 30.0)),
        ),
    ),
)


def _turned(frame: Array, angle: float, scale: float = 1.0) -> Array:
    height, width = frame.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, scale)
    return cv2.warpAffine(frame, matrix, (width, height), flags=cv2.INTER_LINEAR)


def _turned_by_opencv(x: Tensor, angle: float, scale: float = 1.0) -> Array:
    return chw(_turned(photo_frame(x), angle, scale))


AFFINE = _by_angle(
    "affine",
    (
        Sample("bilinear", lambda m: (m.image(3, 7, 9), 20.0, (1.2, -0.7), 1.1, (8, -5))),
        Sample("nearest", lambda m: (m.image(3, 7, 9), -100, (2, 0), 0.8, 12.0, "nearest", (3, 2.5), 1)),
        Sample("each", lambda m: (m.image(3, 7, 9), m.per_sample(20.0, -130.0), (0.3, 0.4), 1.3)),
        Sample(
            "every",
            lambda m: (
                m.image(2, 6, 7),
                m.per_sample(10.3, -33.1),
                torch.stack([m.per_sample(1.02, -1.1), m.per_sample(2.3, 0.4)], -1),
                m.per_sample(1.2, 0.9),
                torch.stack([m.per_sample(5.0, 3.0), m.per_sample(-9.0, 2.0)], -1),
                "bilinear",
                torch.stack([m.per_sample(3.05), m.per_sample(4.2)], -1),
                parameter(m, torch.tensor(0.3).double()),
            ),
        ),
    ),
    refused={
        ValueError: {
            "scale must be positive, got 0": lambda x: imgops.affine(x, scale=0),
            "translate must be 2 numbers (x, y), got shape (2, 3)": lambda x: imgops.affine(
                x, translate=torch.ones(2, 3)
            ),
            "shear must have one value, or 2 values, one for each image, got shape (3,)": lambda x: (
                imgops.affine(x, shear=torch.ones(3, 2))
            ),
        }
    },
    reference=affine_reference,
    tolerance={**LEVEL, **_TOLERANCE},
    reference_name="`cv2.warpAffine` by the matrix of the numbers",
    difference="1 level; floats 1e-5",
    words="``center``, ``translate``, ``shear`` (torchvision)",
    formula=r"y(p) = x\big(c + (R\,S\,\mathrm{scale})^{-1} (p - c - \mathrm{translate})\big)",
    photo=(lambda x: imgops.affine(x, -30.0, scale=0.8), lambda x: _turned_by_opencv(x, 30.0, 0.8)),
    picture=lambda x: imgops.affine(x, 15.0, (20, -10), 0.8, (12, 0)),
    benchmarks=(
        Benchmark(
            "affine",
            "cv2.getRotationMatrix2D, cv2.warpAffine",
            bench.filters(lambda x: imgops.affine(x, -30.0, scale=0.8), lambda a: _turned(a, 30.0, 0.8)),
        ),
    ),
)


SPECS = (
    *(WARP_AFFINE, WARP_PERSPECTIVE, ROTATE, AFFINE, REMAP),
    *(REMAP_ADJOINT, REMAP_GRAD_MAP, FLIP, ROTATE90),
)
