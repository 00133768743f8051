"""Calls of kernels for CUDA: their arguments and results, and samples that are larger than those of the specs.

Triton's interpreter runs the kernels where there is no GPU; ``tests/ptx`` runs the compiled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops._operator.record import Contract, Operator
from imgops.extend.testing import cuda_kernel
from imgops.fake.color_space import CHANNELS, CODES
from tests.specs import OPERATORS, SAMPLES, SPECS, Sample
from tests.specs._maker import Maker, formatted
from tests.specs._spec import EXACT, Tolerance, Tolerances
from tests.test_reference import compare

KERNELS = [s for s in SAMPLES if OPERATORS[s.op].operator.cuda is not None]
#: The conversions that OpenCV leaves to another library, or to tables that are not known to the last bit.
NEARLY = ("rgb2luv", "bgr2luv", "hsv_full2rgb", "hsv_full2bgr")
LEVELS = (torch.uint8,)
BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap")


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
    if callable(spec.reference):
        nearly = {torch.uint8: Tolerance(levels=1, share=3e-5)} if sample.id.startswith(NEARLY) else {}
        near = replace(spec, tolerance={**spec.tolerance, **nearly})
        compare(near, sample, maker, None if maker.device == "cuda" else cuda_kernel(operator.qualified))
        if maker.dtype != torch.uint8 or torch.uint8 not in spec.tolerance or maker.device == "cuda":
            return
    args = arguments(sample, maker)
    found, wanted = by_kernel(operator, args), by_host(operator, args)
    assert found.stride() == wanted.stride() or operator.contract is not Contract.FUNCTIONAL
    is_exact = maker.dtype == torch.uint8 and sample.op != "color_matrix"
    (EXACT if is_exact else tolerance(operator.name, found.dtype)).check(found, wanted)


def tolerance(name: str, dtype: torch.dtype, of_sample: Tolerances | None = None) -> Tolerance:
    """Return how far a kernel may be from the CPU's: as its spec says, or the sample."""
    spec = SPECS.get("grayscale" if name == "gray_chosen" else name)
    of_spec = {} if spec is None else spec.decomposed
    return (of_spec if of_sample is None else of_sample).get(dtype, EXACT)


# -- images that are larger than a tile, and values that the samples of the specs do not have -----------

_BOXES = torch.tensor([[3.25, 2.0, 80.5, 60.75], [40.0, 5.5, 52.0, 33.0]], dtype=torch.float64)
_JITTER = "brightness,contrast,saturation,hue"
_MORE = f"{_JITTER},sharpness,posterize,solarize,invert,autocontrast,equalize"
_FILTER = torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, (3, 5)).astype(np.float32))


def _sample(op: str, id: str, call: Any, dtypes: Any = LEVELS, **keywords: Any) -> Sample:
    return Sample(id.replace(" ", ""), call, keywords, dtypes, op=op)


def _rows() -> Iterator[Sample]:
    for how in ("bilinear", "lanczos", "box", "hamming", "bicubic", "nearest"):
        # PIL chooses the nearest pixel by another rule in mode I;16.
        dtypes = (torch.uint8, torch.uint16) if how == "nearest" else LEVELS
        call = lambda m, how=how: (m.image(3, 61, 90), (19, 47), how)
        yield _sample("resize", f"{how} boxes", call, dtypes, box=_BOXES)
    for size in ((8, 40), (31, 33)):  # Pillow 13 resizes the height first where a crop loses many more rows
        boxes = torch.tensor([[5, 3, 55, 69], [0, 0, 60, 20], [10, 10, 10 + size[1], 10 + size[0]]])
        images = lambda m: replace(m, batch=(3,)).image(1, 70, 60)
        crop = lambda m, s=size, boxes=boxes, images=images: (images(m), boxes, s, "bicubic")
        yield _sample("resized_crop", f"passes {size}", crop)
    for how, size in product(
        ("nearest", "bilinear", "lanczos", "area"), ((17, 31), (60, 131), (30, 35), (20, 14))
    ):
        plain = lambda m, how=how, size=size: (m.image(3, 60, 70), size, how)
        yield _sample("resize", f"plain {how} {size}", plain, antialias=False)
    yield _sample("gaussian_blur", "wide", lambda m: (m.image(1, 45, 150), (23, 9), (1.3, 0.7)))
    yield _sample("filter2d", "wide", lambda m: (m.image(1, 45, 150), _FILTER, "symmetric"))
    for names, dtype in ((_MORE, torch.uint8), (_JITTER, torch.uint8), (_JITTER, torch.float32)):
        yield _sequence(names.split(","), dtype)
    for how in ("binary", "binary_inv", "trunc", "tozero", "tozero_inv", "otsu", "triangle"):
        for size in ((70, 64), (5, 7)):  # of whole words, and more pixels than a program counts
            limits = lambda m: (m.per_sample(100.9, -3.5), m.per_sample(200.5, 300.0))
            groups = lambda m, how=how, size=size: (_two_groups(m, *size), *limits(m), how)
            yield _sample("threshold", f"{how} {size}", groups)
    for how, levels in product(("otsu", "triangle"), ([9] * 4, [10, 10, 200, 200], [0, 100, 155, 255])):
        # One level; levels without pixels between two groups; and a histogram that is its own mirror image.
        image = torch.tensor(levels, dtype=torch.uint8).reshape(1, 2, 2)
        yield _sample(
            "threshold", f"{how} {levels}", lambda m, x=image, how=how: (x.to(m.device), 0, 255, how)
        )
    # Blocks in part outside of the image, chroma of one and of two columns, and rows of whole words.
    for size, channels in product(((17, 32), (3, 4), (9, 5), (1, 1), (16, 35)), (1, 3)):
        yield _file("noise", channels, *size, 3, 88)
    yield _file("smooth", 3, 50, 60, 75, 75)
    # Pixels outside of OpenCV's vectors in each row, and images of whole words and others.
    for code, height in product(CODES, (3, 4)):
        if not code.startswith("bgr"):
            yield _colors(code, height, 37)
    none = lambda m: (replace(m, batch=(0,)).image(1, 3, 2), torch.zeros(0))
    yield _sample("adjust_gamma", "no images", none)


def _compiled() -> Iterator[Sample]:
    for call in product(("warp_affine", "warp_perspective", "remap"), ("nearest", "bilinear"), BORDERS):
        yield _warped(*call)
    for code, width in product(CODES, (1024, 1001)):
        yield _colors(code, 128, width)
    sizes = [*product(range(1, 21), range(1, 21)), (31, 64), (64, 33), (47, 100), (100, 47), (50, 51)]
    for i, (size, channels) in enumerate(product(sizes, (1, 3))):
        kind = ("noise", "extremes", "smooth")[i // 2 % 3]
        yield _file(kind, channels, *size, 1 + i // 2 % 100, 1 + i // 2 * 37 % 100)


def _sequence(steps: list[str], dtype: torch.dtype) -> Sample:
    """Return a call with an order for each image, skipped steps, and one used twice."""
    order = torch.tensor([[1, 3, 1, 9], [8, 4, -1, 5]]).clamp(max=len(steps) - 1)
    limit = 90.0 if dtype == torch.uint8 else 0.4
    amounts = torch.tensor([0.7, 1.6, 0.4, 0.13, 1.8, 5.0, limit, 1.0, 1.0, 1.0], dtype=torch.float64)
    call = lambda m: (m.image(3, 70, 75, 0, 1), order, amounts[: len(steps)], steps)
    return _sample("color_sequence", f"{len(steps)} steps", call, (dtype,))


def _two_groups(m: Maker, height: int, width: int) -> Tensor:
    """Return images with two groups of levels, which differ from channel to channel."""
    rng = np.random.default_rng(3)
    middle = np.array([60, 120, 190])[:, None, None] + rng.choice([-30, 30], (*m.batch, 1, height, width))
    values = torch.from_numpy(rng.normal(middle, 12).clip(0, 255).astype(np.uint8))
    return formatted(values.to(m.device), m.format)


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


def _colors(code: str, height: int, width: int) -> Sample:
    """Return a conversion of noise; OpenCV knows hues up to 179."""
    source = code.split("2")[0]

    def call(m: Maker) -> tuple[Any, ...]:
        image = m.image(CHANNELS[source], height, width)
        if source in ("hsv", "hls"):
            image[:, 0] %= 180
        return image, code

    return _sample("cvt_color", f"{code} {height}x{width}", call)


def _warped(op: str, interpolation: str, border: str) -> Sample:
    """Return a call whose width fills OpenCV's vectors; for the rest, OpenCV's compiler decides what is fused."""
    turn = torch.tensor([[0.83, -0.41, 21.7], [0.37, 0.91, -13.3]], dtype=torch.float64)
    tilt = torch.cat([turn, torch.tensor([[6e-4, -4e-4, 1.1]], dtype=torch.float64)])
    y, x = torch.meshgrid(torch.arange(97.0), torch.arange(128.0), indexing="ij")
    map = torch.stack([x * 0.9 + y * 0.2 - 11.3, y * 0.87 - x * 0.11 + 7.9])
    where = {"warp_affine": turn, "warp_perspective": tilt, "remap": map}[op]
    place = lambda m: (where.to(m.device),) if op == "remap" else (where, (97, 128))
    how = {"interpolation": interpolation, "padding_mode": border, "fill": 9.0}
    return _sample(op, f"{interpolation} {border}", lambda m: (m.image(1, 90, 110), *place(m)), **how)


#: What Triton's interpreter, the compiled kernels and a GPU run.
ROWS = [*_rows()]
#: What only the compiled kernels run. The interpreter does not fuse a product and a sum, as OpenCV and they do.
COMPILED = [*_compiled()]
