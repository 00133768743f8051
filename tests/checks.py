"""The shared checkers. Each has a test in test_checkers.py that shows it fails when it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from imgops.testing import _call
from imgops.testing._call import bits_equal as bits_equal
from imgops.testing._call import through_dispatcher as through_dispatcher
from imgops.testing._checks import check_vmap as check_vmap
from imgops.testing._checks import same_metadata as same_metadata


def captured(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
    """The one operator call that a public function makes."""
    ((op, op_args, _),) = _call.captured(function, *args, **kwargs)
    return op, op_args


def tree_tensors(args: Any) -> list[Tensor]:
    return [a for a in torch.utils._pytree.tree_leaves(args) if isinstance(a, Tensor)]


def check_format(out: Tensor, image: Tensor) -> None:
    """Interleaved in, interleaved out; anything else comes out planar. Nothing aliases the input."""
    interleaved = not image.is_contiguous() and image.movedim(-3, -1).is_contiguous()
    if interleaved and out.numel():
        assert out.movedim(-3, -1).is_contiguous(), f"strides {out.stride()} of an interleaved image"
    else:
        assert out.is_contiguous() or not out.numel(), f"strides {out.stride()} of a planar image"
    if out.numel() and image.numel():
        assert out.untyped_storage().data_ptr() != image.untyped_storage().data_ptr(), "output aliases input"


def check_untouched(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> None:
    before = [t.detach().clone() for t in tree_tensors(args)]
    function(*args, **kwargs)
    for tensor, copy in zip(tree_tensors(args), before, strict=True):
        assert bits_equal(tensor, copy), "an input was written to"


def check_adjoint(forward: Callable[..., Tensor], *inputs: Tensor) -> None:
    """<A x, y> = <x, A^T y>, with A^T y from the backward; x may be several tensors."""
    inputs = tuple(x.detach().clone().requires_grad_() for x in inputs)
    out = forward(*inputs)
    y = torch.randn(out.shape, generator=torch.Generator().manual_seed(7), dtype=out.dtype).to(out.device)
    back = torch.autograd.grad(out, inputs, y)
    left = (out.detach() * y).sum()
    right = sum((x.detach() * b).sum() for x, b in zip(inputs, back, strict=True))
    size = (out.detach() * y).abs().sum() + 1e-300
    assert abs(left - right) <= 1e-12 * size, f"<Ax, y> = {left} but <x, A'y> = {right}"


def check_raises(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Exactly this error and, up to what a compiler adds around it, exactly this message."""
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
