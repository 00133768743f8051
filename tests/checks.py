"""The shared checkers. Each has a test in test_checkers.py that shows it fails when it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class _Capture(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "imgops":
            self.calls.append((func, args))
        return func(*args, **(kwargs or {}))


def captured(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
    """The operator call that a public function makes."""
    with _Capture() as mode, torch.no_grad():
        function(*args, **kwargs)
    (call,) = mode.calls
    return call


def through_dispatcher(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """The call without the fast path of the public function."""
    with _Capture():
        return function(*args, **kwargs)


def tree_tensors(args: Any) -> list[Tensor]:
    return [a for a in torch.utils._pytree.tree_leaves(args) if isinstance(a, Tensor)]


def same_metadata(real: Tensor, fake: Tensor) -> None:
    """Shape, dtype and strides; opcheck compares strides only from torch 2.13 on."""
    assert real.shape == fake.shape, f"shape {tuple(real.shape)} but the fake has {tuple(fake.shape)}"
    assert real.dtype == fake.dtype, f"{real.dtype} but the fake has {fake.dtype}"
    assert real.stride() == fake.stride(), f"strides {real.stride()} but the fake has {fake.stride()}"
    assert real.storage_offset() == fake.storage_offset()


def check_fake(op: Any, args: tuple[Any, ...]) -> None:
    """The fake's strides against the real output's, under FakeTensorMode."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = op(*args)
    with FakeTensorMode() as mode:
        fake = op(*torch.utils._pytree.tree_map_only(Tensor, mode.from_tensor, args))
    same_metadata(real, fake)


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


def bits_equal(a: Tensor, b: Tensor) -> bool:
    """Equality in which NaN equals itself."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = a.detach().cpu().contiguous(), b.detach().cpu().contiguous()
    size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    same = a.view(size) == b.view(size)
    if a.dtype.is_floating_point:
        same |= (a == b) | (a.isnan() & b.isnan())  # -0.0 and 0.0, any two NaNs
    return bool(same.all())


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


def check_vmap(
    function: Callable[..., Tensor], args: tuple[Any, ...], in_dims: tuple[Any, ...], out_dims: int = 0
) -> None:
    """vmap against a loop."""
    batched = torch.vmap(function, in_dims, out_dims)(*args)
    size = next(a.shape[d] for a, d in zip(args, in_dims, strict=True) if d is not None)
    rows = [
        function(*(a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)))
        for i in range(size)
    ]
    looped = torch.stack(rows, out_dims)
    torch.testing.assert_close(batched, looped, rtol=0, atol=1e-12 if looped.dtype == torch.float64 else 1e-6)


def check_raises(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Exactly this error and, up to what a compiler adds around it, exactly this message."""
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
