"""Random sizes, formats, dtypes and arguments of every operator, against the real library and the decomposition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from imgops.extend.testing import Call
from tests.specs import OPERATORS, OpSpec
from tests.specs._draw import Draw
from tests.specs._spec import EXACT, Tolerance
from tests.test_reference import per_image

#: For each operator that its spec draws, and for each other one.
CALLS = 60
FROM_SAMPLES = 10
DRAWN = [name for name, spec in OPERATORS.items() if callable(spec.reference)]


def arguments_of(spec: OpSpec, draw: Draw) -> tuple[Any, ...]:
    """Return random arguments of the operator: those that its spec draws, or a sample's in other sizes."""
    if spec.draw is not None:
        return spec.draw(draw)
    sample = draw.choice(*spec.samples)
    halves = (torch.float16, torch.bfloat16)  # test_reference.py has them
    return Call(*sample.call(draw.maker(tuple(d for d in sample.dtypes if d not in halves)))).op_args


def near(tolerance: Tolerance, found: Tensor, wanted: Tensor) -> None:
    """Check, where a single value is a large share of a small image."""
    tolerance = replace(tolerance, share=1.0) if found.numel() < 500 else tolerance
    tolerance.check(found, wanted.to(found.dtype) if found.is_floating_point() else wanted)


@pytest.mark.parametrize("name", DRAWN)
def test_random_calls(name: str, whole: bool) -> None:
    spec, compared = OPERATORS[name], 0
    count = (CALLS if spec.draw else FROM_SAMPLES) if whole else 3
    for seed in range(count):
        draw = Draw(seed)
        try:
            args = arguments_of(spec, draw)
            out = getattr(torch.ops.imgops, name)(*args)
        except ValueError:
            assert spec.draw is None  # a sample that does not fit another size
            continue
        try:
            for one in per_image(args, spec.operator.vmap.core):
                wanted = torch.from_numpy(np.ascontiguousarray(spec.reference(*one)))
                near(spec.tolerance.get(out.dtype, EXACT), out, wanted)
            if spec.operator.decomposition is not None:
                tolerance = spec.drawn.get(out.dtype) or spec.decomposed.get(out.dtype, EXACT)
                near(tolerance, spec.operator.decomposition(*args), out)
        except AssertionError as error:
            shapes = [tuple(a.shape) if isinstance(a, Tensor) else a for a in args]
            raise AssertionError(f"seed {seed}, {draw.dtype}, {shapes}: {error}") from error
        compared += 1
    assert not whole or compared > count // 3


def test_no_operator_is_left_out() -> None:
    """An operator that is not drawn here is compared with a library elsewhere; its spec says where."""
    assert {*OPERATORS} - {*DRAWN} == {n for n, spec in OPERATORS.items() if isinstance(spec.reference, str)}
