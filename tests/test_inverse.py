"""Tests of adjoint and inverse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import imgops
from imgops._operator.record import operators
from tests.checks import bits_equal, check_raises
from tests.specs import SAMPLES, Sample
from tests.specs._maker import Maker

ops = torch.ops.imgops
X = torch.rand(2, 3, 8, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


#: Samples that are linear in their image alone.
LINEAR = [s for s in SAMPLES if s.linear and operators()[s.op].adjoint and "paste" not in s.op]


@pytest.mark.parametrize("sample", LINEAR, ids=str)
def test_adjoint(sample: Sample) -> None:
    function, (image, *args), keywords = sample.call(Maker(torch.float64))
    out = function(image, *args, **keywords)
    y = torch.cos(torch.arange(out.numel(), dtype=out.dtype)).reshape(out.shape)
    back = imgops.adjoint(function)(y, image, *args, **keywords)
    assert back.shape == image.shape
    torch.testing.assert_close((out * y).sum(), (image * back).sum(), rtol=1e-12, atol=1e-12)


def test_adjoint_of_paste_is_of_its_image() -> None:
    source = torch.ones(2, 3, 2, 3, dtype=torch.float64)
    back = imgops.adjoint(imgops.paste)(X, X, source, (1, 2))
    expected = X.clone()
    expected[..., 2:4, 1:4] = 0
    assert bits_equal(back, expected)


def test_adjoint_is_differentiable_and_compiles() -> None:
    transpose = imgops.adjoint(imgops.resize)
    y = torch.rand(3, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: transpose(y, X[0], (4, 5)), y)
    compiled = torch.compile(lambda y, x: transpose(y, x, (4, 5)), fullgraph=True, backend="aot_eager")
    assert bits_equal(compiled(y.detach(), X[0]), transpose(y.detach(), X[0], (4, 5)))


def test_adjoint_refuses() -> None:
    with pytest.raises(
        TypeError, match=r"adjoint: op must be an operator of imgops.extend.operator, got <built-in"
    ):
        imgops.adjoint(print)
    for op in (imgops.median_blur, imgops.paste_):
        with pytest.raises(NotImplementedError, match="adjoint must be a facet of imgops::"):
            imgops.adjoint(op)


BOX = (2, 1, 7, 6)
WINDOW = (..., slice(1, 6), slice(2, 7))


def test_undo_a_crop() -> None:
    undo = imgops.inverse(imgops.crop, X, BOX)
    part = imgops.crop(X, BOX)
    assert bits_equal(undo(part, X * 0 + 7)[WINDOW], part) and (undo(part, X * 0 + 7)[..., 0, :] == 7).all()
    assert bits_equal(undo(part, X), X)
    mask = part[:, :1] > 0.5  # a different number of channels and a different dtype
    back = undo(mask)
    assert back.shape == (2, 1, 8, 9) and back.dtype == torch.bool
    assert bits_equal(back[WINDOW], mask) and back.sum() == mask.sum()
    beyond = (-3, -2, 5, 20)
    again = imgops.inverse(imgops.crop, X, beyond)(imgops.crop(X, beyond))
    assert bits_equal(again[..., :5], X[..., :5]) and not again[..., 5:].any()


LABELS = torch.randint(0, 9, (2, 1, 8, 9))
#: Calls that keep all of their image, alone and after each other.
CHAINS: list[tuple[Tensor, list[tuple[Any, ...]]]] = [
    *((X, [(imgops.pad, padding)]) for padding in (2, (1, 3), (1, 2, 0, 4))),
    (X, [(imgops.pad, imgops.extend.config.Pad((1, 2, 0, 4), "edge"))]),
    (LABELS, [(imgops.resize, (16, 27), "nearest")]),
    (X, [(imgops.resize, (16, 18), "nearest"), (imgops.pad, 3, "reflect"), (imgops.crop, (1, 1, 22, 20))]),
]


def test_undo_what_loses_nothing() -> None:
    for image, steps in CHAINS:
        x, undos = image, []
        for op, *args in steps:
            undos.append(imgops.inverse(op, x, *args))
            x = op(x, *args)
        for undo in reversed(undos):
            x = undo(x)
        assert bits_equal(x, image), steps


def test_undo_a_paste_and_a_resize() -> None:
    source = torch.rand(3, 3, 4, dtype=torch.float64)
    out = imgops.paste(X, source, (2, 1))
    assert bits_equal(imgops.inverse(imgops.paste, X, source, (2, 1))(out), source.expand(2, 3, 3, 4))
    scores = torch.rand(2, 5, 16, 18, dtype=torch.float64)
    undo = imgops.inverse(imgops.resize, X, (16, 18), "bicubic", antialias=False)
    for name, how in (("bicubic", {}), ("nearest", {"interpolation": "nearest"})):
        assert bits_equal(undo(scores, **how), imgops.resize(scores, (8, 9), name, antialias=False))
    config = imgops.extend.config.Resize((16, 18))
    assert imgops.inverse(imgops.resize, X, config)(scores).shape == (2, 5, 8, 9)


def test_undo_is_differentiable_and_compiles() -> None:
    for op, *args in ((imgops.crop, BOX), (imgops.pad, 2), (imgops.resize, (4, 5))):
        undo = imgops.inverse(op, X[0], *args)
        result = op(X[0], *args).requires_grad_()
        assert torch.autograd.gradcheck(undo, result, fast_mode=True)

        def there_and_back(x: Tensor, op: Any = op, args: Any = tuple(args)) -> Tensor:
            return imgops.inverse(op, x, *args)(op(x, *args))

        compiled = torch.compile(there_and_back, fullgraph=True, backend="aot_eager")
        assert bits_equal(compiled(X), there_and_back(X))


def test_inverse_refuses() -> None:
    message = "inverse: op must be one of crop, paste, pad, resize, got median_blur"
    check_raises(lambda: imgops.inverse(imgops.median_blur, X), NotImplementedError, message)
    must = "inverse: result must be (..., 5, 5) as the call's is, got shape (2, 3, 8, 9)"
    check_raises(lambda: imgops.inverse(imgops.crop, X, BOX)(X), ValueError, must)
    message = "inverse: box of resize must be None, got a box"
    check_raises(
        lambda: imgops.inverse(imgops.resize, X, (2, 2), box=(0, 0, 2, 2)), NotImplementedError, message
    )
    with pytest.raises(ValueError, match="crop: box must have 4 integers"):
        imgops.inverse(imgops.crop, X, (1, 2))
