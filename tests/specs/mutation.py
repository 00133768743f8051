"""paste_, paste_out and accumulate: operators that write to the caller's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from imgops import accumulate, paste_, paste_out
from tests.specs._libraries import chw
from tests.specs._maker import ANY_DTYPE, FLOATS, Maker
from tests.specs._spec import OpSpec, Sample
from tests.specs.movement import _PASTED, _pasted_photo

X = torch.rand(2, 3, 5, 6)
S = torch.rand(3, 2, 2)
HALF = torch.rand(2, 3, 5, 6).half()
PLACES = (("inside", (2, 1)), ("clipped", (-2, 5)), ("outside", (30, 0)))


def written(function: Callable[..., Any], *mutated: int) -> Callable[..., Any]:
    """Turn a mutating function into one that returns the tensors that it wrote to."""

    def call(*args: Any) -> Any:
        copies = [a.clone() if i in mutated else a for i, a in enumerate(args)]
        function(*copies)
        out = tuple(copies[i] for i in mutated)
        return out if len(out) > 1 else out[0]

    return call


def _pasted(id: str, position: tuple[int, int], mask: str | torch.dtype = "", *, out: bool = False) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        image, patch = m.image(3, 7, 9), m.image(3, 4, 5)
        weight = (m.mask(4, 5, None if isinstance(mask, str) else mask),) if mask else ()
        return image, patch, position, *weight, *(({"out": m.image(3, 7, 9)},) if out else ())

    return Sample(id, arguments, dtypes=FLOATS if mask and mask != torch.bool else ())


def _each(out: bool = False) -> tuple[Sample, ...]:
    return tuple(
        _pasted(f"{id}{'-mask' if mask else ''}", position, mask, out=out)
        for id, position in PLACES
        for mask in ("", "own")
    )


PASTE_ = OpSpec(
    "paste_",
    samples=(
        *_each(),
        _pasted("mask-bool", (2, 1), torch.bool),
        _pasted("mask-uint8", (2, 1), torch.uint8),
    ),
    refused={
        ValueError: {
            "image must not overlap source in memory, got overlapping tensors": lambda x: paste_(
                x, x[..., 1:3, 1:3], (0, 0)
            ),
            "source must have the leading dimensions of image (), got (2,)": lambda x: paste_(
                x[0], X, (0, 0)
            ),
            "mask must be (..., 1, 2, 2) as source is, got (2, 1, 5, 6)": lambda x: paste_(
                x, S, (0, 0), X[:, :1]
            ),
        },
        TypeError: {
            "source must have the dtype of image (torch.float32), got torch.float16": lambda x: paste_(
                x, HALF, (0, 0)
            ),
            "image must be a Tensor, got list": lambda x: paste_([1], S, (0, 0)),
        },
    },
    reference="tests/test_mutation.py::test_paste_in_place_is_pils",
    dtypes=ANY_DTYPE,
    reference_name="`paste`, in place",
    dtype_names="all",
    section="Into existing memory",
    formula=rf"x_p \leftarrow {_PASTED}",
    border="what lies outside of the image is clipped",
    transforms=("Mosaic",),
    photo=(lambda x: paste_(x.clone(), x[:, :90, :120], (-20, 250)), lambda x: chw(_pasted_photo(x))),
    picture=lambda x: paste_(x.clone(), x[:, ::3, ::3].contiguous(), (20, 20)),
)

PASTE_OUT = OpSpec(
    "paste_out",
    samples=_each(out=True),
    refused={
        ValueError: {
            "out must have shape (2, 3, 5, 6), got (3, 5, 6)": lambda x: paste_out(X, S, (0, 0), out=x[0]),
            "out must be on the device of image (cpu), got meta": lambda x: paste_out(
                X, S, (0, 0), out=X.to("meta")
            ),
            "out must not overlap image in memory, got overlapping tensors": (
                lambda x: paste_out(x, S, (0, 0), out=x),
                lambda x: paste_out(x[0, :, :4], S, (0, 0), out=x[0, :, 1:]),
            ),
            "out must not overlap source in memory, got overlapping tensors": lambda x: paste_out(
                X, x[..., :2, :2], (0, 0), out=x
            ),
            "out must have memory for each element, got strides (0, 30, 6, 1)": lambda x: paste_out(
                X, S, (0, 0), out=x[:1].expand(2, 3, 5, 6)
            ),
            "source must have the channels of image (3), got 1": lambda x: paste_out(X, S[:1], (0, 0), out=x),
        },
        TypeError: {
            "out must have the dtype of image (torch.float32), got torch.float16": lambda x: paste_out(
                X, S, (0, 0), out=HALF
            ),
        },
    },
    reference="tests/test_mutation.py::test_out_of_any_strides_gets_the_same_bits",
    dtypes=ANY_DTYPE,
    reference_name="`paste`, into `out`",
    dtype_names="all",
    section="Into existing memory",
    formula=rf"\mathrm{{out}}_p = {_PASTED}",
    border="what lies outside of the image is clipped",
    photo=(
        lambda x: paste_out(x, x[:, :90, :120], (-20, 250), out=torch.empty_like(x)),
        lambda x: chw(_pasted_photo(x)),
    ),
    picture=lambda x: paste_out(x, 255 - x[:, ::2, ::2], (40, 60), out=torch.empty_like(x)),
)


def _added(id: str, position: tuple[int, int], weighted: bool) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        weight = (m.mask(4, 5),) if weighted else ()
        return m.image(3, 7, 9), m.image(1, 7, 9, 0, 1), m.image(3, 4, 5), position, *weight

    return Sample(id, arguments)


def _mean_of_tiles(x: Tensor) -> Tensor:
    """Return the mean of two overlapping parts of a picture."""
    total, count = torch.zeros(x.shape), torch.zeros(1, *x.shape[-2:])
    for left, part in ((0, x.float()), (60, x.float()[..., :-60])):
        accumulate(total, count, part, (left, 0))
    return total / count


ACCUMULATE = OpSpec(
    "accumulate",
    samples=tuple(
        _added(f"{id}{'-mask' if weighted else ''}", position, weighted)
        for id, position in PLACES
        for weighted in (False, True)
    ),
    refused={
        ValueError: {
            "count must be (..., 1, 5, 6) as total is, got (2, 3, 5, 6)": lambda x: accumulate(
                x, X, S, (0, 0)
            ),
            "total must not overlap count in memory, got overlapping tensors": lambda x: accumulate(
                x, x[:, :1], S, (0, 0)
            ),
            "weight must be (..., 1, 2, 2) as source is, got (2, 1, 5, 6)": lambda x: accumulate(
                x, torch.zeros(2, 1, 5, 6), S, (0, 0), X[:, :1]
            ),
        },
        TypeError: {
            "total must be float32 or float64, got torch.float16": lambda x: accumulate(
                HALF, HALF[:, :1], HALF, (0, 0)
            ),
        },
    },
    reference="tests/test_mutation.py::test_accumulate_is_opencvs",
    dtypes=(torch.float32, torch.float64),
    reference_name="`cv2.accumulate`, `accumulateProduct`",
    dtype_names="float32, float64",
    section="Into existing memory",
    words="``total``, ``count``, ``weight``",
    formula=(
        r"t_{p+(\mathrm{left},\mathrm{top})} \mathrel{+}= w_p\, s_p,\qquad "
        r"n_{p+(\mathrm{left},\mathrm{top})} \mathrel{+}= w_p"
    ),
    border="what lies outside of the buffers is clipped",
    picture=_mean_of_tiles,
)

SPECS = (PASTE_, PASTE_OUT, ACCUMULATE)
