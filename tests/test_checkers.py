"""Tests of the checkers: each one fails on an operator with the fault that it looks for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torchvision import tv_tensors

import imgops
from imgops._operator.record import Contract
from imgops.extend.testing import Call, _checks, _func
from tests.checks import (
    bits_equal,
    check_adjoint,
    check_format,
    check_raises,
    check_untouched,
    check_vmap,
    difference,
    same_metadata,
)
from tests.specs import OPERATORS
from tests.specs._maker import Maker, formatted
from tests.specs._spec import EXACT, Tolerance


@torch.library.custom_op("imgops_wrong::transposed", mutates_args=())
def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


@torch.library.custom_op("imgops_wrong::cast", mutates_args=())
def cast(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.library.custom_op("imgops_wrong::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


transposed.register_fake(lambda x: torch.empty_like(x, memory_format=torch.contiguous_format))
cast.register_autocast("cpu", torch.float32)
double.register_vmap(lambda info, dims, x: (double(x) + 1, dims[0]))


class HalfGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, g):
        return 1.5 * g


def stub(name: str) -> Any:
    """Return a call of an operator with a fault that imgops would refuse."""
    operator = SimpleNamespace(contract=Contract.FUNCTIONAL, autocast=None)
    overload = getattr(torch.ops.imgops_wrong, name).default
    return SimpleNamespace(operator=operator, overload=overload, op_args=(PLANAR,))


PLANAR = torch.zeros(3, 4, 5)
LAST = formatted(PLANAR, "interleaved")
#: A check of something wrong, and the error.
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: same_metadata(LAST, PLANAR), "strides"),
    (lambda: same_metadata(PLANAR, PLANAR[:2]), "shape"),
    (lambda: same_metadata(PLANAR.double(), PLANAR), "float64"),
    (lambda: check_format(torch.zeros(3, 4, 5), LAST), "interleaved image"),
    (lambda: check_format(LAST, PLANAR), "planar image"),
    (lambda: check_format(PLANAR[:2], PLANAR), "alias"),
    (lambda: check_untouched(lambda x: x.add_(1), torch.zeros(3)), "written to"),
    (lambda: check_untouched(lambda x: x.zero_(), torch.tensor([float("nan")])), "written to"),
    (lambda: check_adjoint(HalfGradient.apply, torch.rand(4, dtype=torch.float64)), "<Ax, y>"),
    (lambda: check_vmap(double, (torch.rand(2, 3),), (0,)), "Tensor-likes are not close"),
    (lambda: _checks.fake(stub("transposed")), "strides"),
    (lambda: _checks.autocast(stub("cast")), "autocast region"),
]


@pytest.mark.parametrize(("check", "text"), WRONG)
def test_each_check_sees_its_fault(check: Callable[[], Any], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        check()


def test_func_check_sees_a_silent_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call(imgops.crop, (torch.rand(1, 3, 3), (0, 0, 2, 2)))
    _func.func(call)
    monkeypatch.setattr(
        torch.func, "jvp", lambda f, primals, tangents: (f(*primals), torch.zeros(4).double())
    )
    with pytest.raises(AssertionError, match=r"torch\.func\.jvp"):
        _func.func(call)


def test_memory_check_sees_a_silent_write(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call(imgops.paste_, (torch.rand(1, 3, 3), torch.zeros(1, 1, 1), (0, 0)))
    _checks.memory(call)
    with monkeypatch.context() as patch:
        patch.setattr(call, "function", lambda image, source, position: image)
        with pytest.raises(AssertionError, match="its version stays"):
            _checks.memory(call)
    with monkeypatch.context() as patch:
        patch.setattr(call, "function", lambda image, source, position: (image.add_(1), source.add_(1))[0])
        with pytest.raises(AssertionError, match="source was written to"):
            _checks.memory(call)


def test_bits_equal_sees_one_value() -> None:
    x = torch.rand(100)
    y = x.clone()
    assert bits_equal(x, y)
    y[37] = torch.nextafter(y[37], torch.tensor(2.0))
    assert not bits_equal(x, y)
    assert not bits_equal(x, x.double()) and not bits_equal(x, x[:99])
    assert bits_equal(torch.tensor([float("nan"), -0.0]), torch.tensor([float("nan"), 0.0]))
    assert not bits_equal(torch.tensor([float("nan")]), torch.tensor([1.0]))


def test_raises_check_sees_silence_and_other_words() -> None:
    def fail() -> None:
        raise ValueError("crop: box must be small, got large")

    check_raises(fail, ValueError, "crop: box must be small, got large")
    with pytest.raises(AssertionError):
        check_raises(fail, ValueError, "crop: box must be small, got huge")
    with pytest.raises(pytest.fail.Exception):
        check_raises(lambda: None, ValueError, "anything")
    with pytest.raises(ValueError):
        check_raises(fail, TypeError, "crop: box must be small, got large")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_tolerances_see_two_levels_and_a_float_error(dtype: torch.dtype) -> None:
    x = (250 * torch.rand(3, 4, 4)).to(dtype)
    for spec in OPERATORS.values():
        tolerance = spec.tolerance.get(dtype, EXACT)
        tolerance.check(x, x.clone())
        y = x.clone()
        y[1, 2, 3] += 2 if dtype == torch.uint8 else 3 * tolerance.real * (1 + x[1, 2, 3]) + 1e-4
        with pytest.raises(AssertionError):
            tolerance.check(y, x)


def test_tolerances_see_shapes_types_and_shares() -> None:
    x = torch.zeros(1, 4, 4, dtype=torch.uint8)
    y = x.clone()
    y[0, 0] = 1
    Tolerance(levels=1, share=0.3).check(y, x)
    for found in (y, y[:, :2], y.int()):
        with pytest.raises(AssertionError):
            Tolerance(levels=1, share=0.2).check(found, x)


def test_every_format_is_what_it_says() -> None:
    def made(format: str) -> torch.Tensor:
        return Maker(format=format).image(3, 4, 5)

    assert made("planar").is_contiguous()
    assert made("interleaved").stride() == (1, 15, 3)
    assert made("expanded").stride()[0] == 0
    for format in ("sliced", "transposed", "rows"):
        x = made(format)
        assert not x.is_contiguous() and not x.movedim(0, -1).is_contiguous()
    for format in ("interleaved", "sliced", "transposed", "rows"):
        assert bits_equal(made(format), made("planar"))


def test_difference_sees_number_class_metadata_and_values() -> None:
    x, canvas = torch.zeros(1, 2), {"canvas_size": (4, 5)}
    points = tv_tensors.KeyPoints(x, **canvas)
    others = (x, x.double(), x[0], x + 1e-6, tv_tensors.KeyPoints(x, canvas_size=(4, 6)))
    for wrong in (*others, points + 1e-6, [points] * 2, None):
        assert difference(wrong, points), wrong
    for levels, right in ((0, x + 1e-6), (0, x), (2, x)):
        assert not difference(
            [right, 3 + levels * torch.ones(1, dtype=torch.uint8)], [x, torch.tensor([3]).byte()], 1e-5, 2
        )
    assert not difference(x * torch.nan, x * torch.nan)
    assert difference(np.zeros(2), np.ones(2)) and difference({"a": 1}, {"a": 2})
