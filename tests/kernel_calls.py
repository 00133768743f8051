"""Calls of kernels for CUDA: their arguments and results, and samples that are larger than those of the specs.

Triton's interpreter runs the kernels where there is no GPU; ``tests/ptx`` runs the compiled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops._operator.record import Contract, Operator
from imgops.extend.testing import cuda_kernel
from imgops.fake.color_space import CHANNELS, CODES
from tests.specs import OPERATORS, SAMPLES, SPECS, Sample
from tests.specs._maker import Maker, formatted, rows
from tests.specs._spec import EXACT, Tolerance
from tests.test_reference import compare

KERNELS = [s for s in SAMPLES if OPERATORS[s.op].operator.cuda is not None]
#: The conversions that OpenCV leaves to another library, or to tables that are not known to the last bit.
NEARLY = ("rgb2luv", "bgr2luv", "hsv_full2rgb", "hsv_full2bgr")
LEVELS = (torch.uint8,)
FLOATS = (torch.float32,)


def operator_of(sample: Sample) -> Operator:
    return OPERATORS[sample.op].operator


def arguments(sample: Sample, maker: Maker | None = None) -> list[Any]:
    """Return the operator's arguments; by default of interleaved images of float32, if the sample has them."""
    dtype = torch.float32 if torch.float32 in sample.dtypes else sample.dtypes[0]
    call = sample.checked(maker or Maker(dtype, "interleaved", (2,)))
    return [*call.op_args, *call.op_keywords.values()]


def moved(
    sample: Sample, args: Sequence[Any], image: Callable[[Tensor], Any], parameter: Callable[[Tensor], Any]
) -> list[Any]:
    """Return the arguments with one function called for each image, and another one for each parameter."""
    cores = getattr(operator_of(sample).vmap, "core", ())
    move = [image if i >= len(cores) or cores[i] == 3 else parameter for i in range(len(args))]
    return [m(a) if isinstance(a, Tensor) else a for m, a in zip(move, args, strict=True)]


def without_data(device: str) -> Callable[[Tensor], Tensor]:
    """Return a function that makes a tensor of the same shape and strides on a device."""
    return lambda x: torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=device)


def _own(operator: Operator, args: Iterable[Any]) -> list[Any]:
    return [a.clone() if i in operator.mutated_indices else a for i, a in enumerate(args)]


def by_kernel(operator: Operator, args: Sequence[Any]) -> Tensor:
    return cuda_kernel(operator.qualified)(*_own(operator, args))


def by_host(operator: Operator, args: Sequence[Any], kernel: Callable[..., Any] | None = None) -> Tensor:
    """Return the result of the CPU's kernel, or of another one that fills its first argument."""
    mine, run = _own(operator, args), kernel or operator.kernel
    if operator.contract is not Contract.FUNCTIONAL:
        run(*mine)
        return mine[operator.mutated_indices[0]]
    out = operator.fake(*args)
    run(out, *args)
    return out


def check_kernel(sample: Sample, maker: Maker) -> None:
    """Compare with the real library, if it has a function of arrays; if it is no exact one, with the CPU's kernel.

    That has the same bits on uint8, but for color_matrix, because OpenCV's own vector code rounds differently from
    machine to machine. A GPU runs the public function.
    """
    spec, operator = SPECS[sample.op], operator_of(sample)
    if sample in COMPILED and sample.id.startswith(NEARLY):
        spec = replace(spec, tolerance={torch.uint8: Tolerance(levels=1, share=3e-5)})
    if callable(spec.reference):
        compare(spec, sample, maker, None if maker.device == "cuda" else cuda_kernel(operator.qualified))
        if (
            maker.dtype != torch.uint8
            or {*SPECS[sample.op].tolerance}.isdisjoint(LEVELS)
            or maker.device == "cuda"
        ):
            return
    args = arguments(sample, maker)
    found, wanted = by_kernel(operator, args), by_host(operator, args)
    assert found.stride() == wanted.stride() or operator.contract is not Contract.FUNCTIONAL
    is_exact = maker.dtype == torch.uint8 and sample.op != "color_matrix"
    (EXACT if is_exact else tolerance(operator.name, found.dtype)).check(found, wanted)


def tolerance(name: str, dtype: torch.dtype) -> Tolerance:
    """Return how far a kernel may be from the CPU's."""
    spec = SPECS.get("grayscale" if name == "gray_chosen" else name)
    return EXACT if spec is None else spec.decomposed.get(dtype, EXACT)


# -- images that are larger than a tile, and values that the samples of the specs do not have -----------


def _sample(
    op: str, id: Any, call: Callable[[Maker], tuple[Any, ...]], dtypes: Any = LEVELS, **keywords: Any
) -> Sample:
    return Sample(str(id).replace(" ", ""), call, keywords, dtypes, op=op)


def _two_groups(m: Maker, height: int, width: int) -> Tensor:
    """Return images with two groups of levels, which differ from channel to channel."""
    rng = np.random.default_rng(3)
    middle = np.array([60, 120, 190])[:, None, None] + rng.choice([-30, 30], (*m.batch, 1, height, width))
    return formatted(torch.from_numpy(rng.normal(middle, 12).clip(0, 255).astype(np.uint8)), m.format)


def _space(m: Maker, code: str, height: int, width: int) -> Tensor:
    """Return images of the space that a conversion begins with; OpenCV knows hues up to 179."""
    source = code.split("2")[0]
    image = m.image(CHANNELS[source], height, width)
    if source in ("hsv", "hls"):
        image[:, 0] %= 180
    return image


def _file(kind: str, channels: int, height: int, width: int, *qualities: int) -> Sample:
    """Return a call of jpeg with images of noise, of its extremes, or smooth ones."""

    def call(m: Maker) -> tuple[Any, ...]:
        image = m.image(channels, height, width)
        if kind == "extremes":
            image = (image > 127).to(torch.uint8) * 255
        if kind == "smooth":
            coarse = m.image(channels, 3, 3).double()
            image = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear").to(torch.uint8)
        return formatted(image, m.format), torch.tensor(qualities)

    return _sample("jpeg", f"{kind} {channels}x{height}x{width}", call)


def _sequence(names: str, limit: float, dtypes: tuple[torch.dtype, ...]) -> Sample:
    """Return a call with an order for each image, skipped steps, and one used twice."""
    steps = names.split(",")
    order = torch.tensor([[1, 3, 1, 9], [8, 4, -1, 5]]).clamp(max=len(steps) - 1)
    amounts = torch.tensor([0.7, 1.6, 0.4, 0.13, 1.8, 5.0, limit, 1.0, 1.0, 1.0], dtype=torch.float64)
    call = lambda m: (m.image(3, 70, 75, 0, 1), order, amounts[: len(steps)], steps)
    return _sample("color_sequence", f"{len(steps)} steps", call, dtypes)


_BOXES = torch.tensor([[3.25, 2.0, 80.5, 60.75], [40.0, 5.5, 52.0, 33.0]], dtype=torch.float64)
_JITTER = "brightness,contrast,saturation,hue"
_MORE = f"{_JITTER},sharpness,posterize,solarize,invert,autocontrast,equalize"
_FILTER = torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, (3, 5)).astype(np.float32))
THRESHOLDS = ("binary", "binary_inv", "trunc", "tozero", "tozero_inv", "otsu", "triangle")
#: What Triton's interpreter, the compiled kernels and a GPU run.
ROWS: list[Sample] = [
    *(
        _sample("resize", f"{n} boxes", lambda m, n=n: (m.image(3, 61, 90), (19, 47), n), dtypes, box=_BOXES)
        for n, dtypes in (
            *((n, LEVELS) for n in ("bilinear", "lanczos", "box", "hamming", "bicubic")),
            ("nearest", (torch.uint8, torch.uint16)),  # PIL has another rule in mode I;16
        )
    ),
    *(  # Pillow 13 resizes the height first where a crop loses many more rows than columns
        _sample(
            "resized_crop",
            f"passes {size}",
            lambda m, s=size: (
                m.image(1, 70, 60),
                rows(m, (5, 3, 55, 69), (0, 0, 60, 20), (10, 10, 10 + s[1], 10 + s[0])),
                s,
                "bicubic",
            ),
        )
        for size in ((8, 40), (31, 33))
    ),
    *(
        _sample("resize", f"plain {n} {s}", lambda m, s=s, n=n: (m.image(3, 60, 70), s, n), antialias=False)
        for n in ("nearest", "bilinear", "lanczos", "area")
        for s in ((17, 31), (60, 131), (30, 35), (20, 14))
    ),
    _sample("gaussian_blur", "wide", lambda m: (m.image(1, 45, 150), (23, 9), (1.3, 0.7))),
    _sample("filter2d", "wide", lambda m: (m.image(1, 45, 150), _FILTER, "symmetric")),
    *(_sequence(n, 90.0, LEVELS) for n in (_MORE, _JITTER)),
    _sequence(_JITTER, 0.4, FLOATS),
    *(  # the larger images are whole words, and more pixels than a program counts
        _sample(
            "threshold",
            f"{how} {size}",
            lambda m, s=size, h=how: (
                _two_groups(m, *s),
                m.per_sample(100.9, -3.5),
                m.per_sample(200.5, 300.0),
                h,
            ),
        )
        for how in THRESHOLDS
        for size in ((70, 64), (5, 7))
    ),
    *(  # an image of one level, levels without pixels between two groups, and a histogram that is its own mirror image
        _sample(
            "threshold",
            f"{how} {levels}",
            lambda m, levels=levels, how=how: (
                torch.tensor(levels, dtype=torch.uint8).reshape(1, 2, 2),
                0,
                255,
                how,
            ),
        )
        for levels in ([9] * 4, [10, 10, 200, 200], [0, 100, 155, 255])
        for how in ("otsu", "triangle")
    ),
    *(  # blocks in part outside of the image, chroma of one and of two columns, and rows of whole words
        _file("noise", channels, *size, 3, 88)
        for size in ((17, 32), (3, 4), (9, 5), (1, 1), (16, 35))
        for channels in (1, 3)
    ),
    *(  # pixels outside of OpenCV's vectors in each row, and images of whole words and others
        _sample("cvt_color", f"{code} {h}", lambda m, c=code, h=h: (_space(m, c, h, 37), c))
        for code in CODES
        for h in (3, 4)
        if not code.startswith("bgr")
    ),
    _sample("adjust_gamma", "no images", lambda m: (replace(m, batch=(0,)).image(1, 3, 2), torch.zeros(0))),
]


def _warped(op: str, interpolation: str, border: str) -> Sample:
    """Return a call whose width fills OpenCV's vectors; for the rest, OpenCV's compiler decides what is fused."""
    turn = torch.tensor([[0.83, -0.41, 21.7], [0.37, 0.91, -13.3]], dtype=torch.float64)
    tilt = torch.cat([turn, torch.tensor([[6e-4, -4e-4, 1.1]], dtype=torch.float64)])
    y, x = torch.meshgrid(torch.arange(97.0), torch.arange(128.0), indexing="ij")
    map = torch.stack([x * 0.9 + y * 0.2 - 11.3, y * 0.87 - x * 0.11 + 7.9])
    where = {"warp_affine": (turn, (97, 128)), "warp_perspective": (tilt, (97, 128)), "remap": (map,)}[op]
    how = {"interpolation": interpolation, "padding_mode": border, "fill": 9.0}
    return _sample(op, f"{interpolation} {border}", lambda m: (m.image(1, 90, 110), *where), **how)


#: What only the compiled kernels run. The interpreter does not fuse a product and a sum, as OpenCV and they do.
COMPILED: list[Sample] = [
    *(
        _warped(op, interpolation, border)
        for op in ("warp_affine", "warp_perspective", "remap")
        for interpolation in ("nearest", "bilinear")
        for border in ("constant", "edge", "reflect", "symmetric", "wrap")
    ),
    *(
        _sample("cvt_color", f"{code} {w}", lambda m, c=code, w=w: (_space(m, c, 128, w), c))
        for code in CODES
        for w in (1024, 1001)
    ),
    *(
        _file(("noise", "extremes", "smooth")[i % 3], channels, *size, 1 + i % 100, 1 + i * 37 % 100)
        for i, size in enumerate((height, width) for height in range(1, 21) for width in range(1, 21))
        for channels in (1, 3)
    ),
    *(_file("noise", 3, *size, 60, 95) for size in ((31, 64), (64, 33), (47, 100), (100, 47), (50, 51))),
]
