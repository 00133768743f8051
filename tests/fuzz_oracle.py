"""The reference of a call of tests/fuzz_calls.py: the real library, where it can compute the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops.extend.testing._call import Call
from tests.specs._draw import numbers_of
from tests.specs._spec import EXACT
from tests.test_reference import per_image


class Wrong(AssertionError):
    """A wrong result, which is then kept as a test."""


def are_colors(image: Tensor) -> bool:
    """Return whether all values are in [0, 1], and not so small that they have lost bits."""
    return not image.is_floating_point() or bool(((image == 0) | (image >= 1e-36) & (image <= 1)).all())


def is_comparable(fuzzed: Any) -> bool:
    """Return False where the documentation says that imgops differs from the library."""
    spec, args = fuzzed.spec, (*fuzzed.args, *fuzzed.keywords.values())
    numbers = [v for x in args[1:] for v in numbers_of(x)]
    if not all(abs(v) < 1e6 for v in numbers):  # this excludes numbers that are not finite, too
        return False
    changed = {c.partition(":")[0] for c in fuzzed.changes}
    colors = all(are_colors(args[i]) for i in spec.colors if str(i) in changed)
    return colors and spec.comparable(args, changed)


def largest(fuzzed: Any) -> list[float]:
    """Return the absolute values of the numbers among the arguments, because rounding errors grow with them."""
    small = (
        x
        for x in (*fuzzed.args[1:], *fuzzed.keywords.values())
        if isinstance(x, (int, float)) or (isinstance(x, Tensor) and x.is_floating_point() and x.numel() < 10)
    )
    return [abs(v) for x in small for v in numbers_of(x)]


def with_strides(value: Any) -> Any:
    """Copy an array with a stride of 0, because OpenCV misreads its strides."""
    return value.copy("C") if isinstance(value, np.ndarray) and 0 in value.strides else value


def beside_the_library(fuzzed: Any, out: Any) -> str:
    """Compare with the real library image by image, unless it has limits that imgops does not (channels, sizes)."""
    spec = fuzzed.spec
    if (
        not is_comparable(fuzzed)
        or not callable(spec.reference)
        or not isinstance(out, Tensor)
        or out.ndim < 3
        or not out.numel()
    ):
        return "returned"
    try:
        args, cores = tuple(fuzzed.args), spec.cores
        if spec.is_operator:
            if spec.operator.vmap is None:
                return "returned"
            args, cores = Call(fuzzed.function, args, fuzzed.keywords).op_args, spec.operator.vmap.core  # type: ignore[attr-defined]
        images = [tuple(map(with_strides, one)) for one in per_image(args, cores)]
        wanted = [torch.from_numpy(np.ascontiguousarray(spec.reference(*one))) for one in images]
    except Exception:  # the library may raise any error
        return "no reference"
    flat = out.detach().reshape(out.shape[:-3].numel(), *out.shape[-3:])
    tolerance = spec.tolerance.get(out.dtype, EXACT)
    if flat[:1].numel() < 500:  # a single value is a large share of a small image
        tolerance = replace(tolerance, share=1.0)
    for a, b in zip(flat, wanted, strict=True):
        try:
            if not (a.isfinite().all() and b.isfinite().all()):
                continue
            if out.dtype.is_floating_point and tolerance.real:  # the tolerance is for values up to 2
                most = max(float(b.double().abs().max()) / 2, 1, *largest(fuzzed))
                a, b = a.double() / most, b.to(out.dtype).double() / most
            if a.dtype != b.dtype and not a.dtype.is_floating_point:
                return "no reference"  # NumPy computes in another dtype
            tolerance.check(a, b.to(out.dtype) if out.dtype.is_floating_point and not tolerance.real else b)
        except AssertionError as error:
            raise Wrong(f"not the library's pixels: {error}") from None
    return "the library's pixels"
