"""Who must not be bypassed: everything that watches an operator call still sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from checks import bits_equal
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import imgops
from imgops import _torch_private

X = torch.arange(48.0).reshape(3, 4, 4)
BOX = (1, 1, 3, 4)
OVERLOAD = "imgops.crop.default"


class Dispatches(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("context", [nullcontext, torch.no_grad, torch.inference_mode])
def test_plain_calls_take_the_kernel(context: Callable[[], Any]) -> None:
    with context():
        assert _torch_private.nothing_watches() and _torch_private.is_plain(X)
        assert bits_equal(imgops.crop(X, BOX), X[:, 1:4, 1:3])


def test_leaf_under_no_grad_takes_the_kernel() -> None:
    x = X.clone().requires_grad_()
    assert not _torch_private.is_plain(x)
    with torch.no_grad():
        assert _torch_private.is_plain(x)
        assert not imgops.crop(x, BOX).requires_grad


def test_dispatch_mode() -> None:
    with Dispatches() as mode:
        imgops.crop(X, BOX)
    assert OVERLOAD in mode.seen


def test_function_mode() -> None:
    with Functions() as mode:
        imgops.crop(X, BOX)
    assert any("crop" in name for name in mode.seen)


def test_default_device() -> None:
    with torch.device("meta"):
        out = imgops.pad(X, 1, fill=(1, 2, 3))
    assert out.device.type == "cpu" and out[2, 0, 0] == 3


def test_fake_mode() -> None:
    with FakeTensorMode() as mode:
        out = imgops.crop(mode.from_tensor(X), BOX)
    assert isinstance(out, torch._subclasses.FakeTensor)


def test_requires_grad() -> None:
    assert imgops.crop(X.clone().requires_grad_(), BOX).grad_fn is not None
    out = imgops.paste(X, X.clone().requires_grad_(), (0, 0))
    assert out.grad_fn is not None
    assert imgops.crop(torch.nn.Parameter(X.clone()), BOX).grad_fn is not None


def test_torch_func() -> None:
    loss = lambda x: imgops.crop(x, BOX).pow(2).sum()  # noqa: E731
    wanted = torch.zeros_like(X)
    wanted[:, 1:4, 1:3] = 2 * X[:, 1:4, 1:3]
    assert bits_equal(torch.func.grad(loss)(X), wanted)
    assert bits_equal(torch.vmap(torch.func.grad(loss))(torch.stack([X, X]))[1], wanted)
    _, pull = torch.func.vjp(lambda x: imgops.crop(x, BOX), X)
    assert pull(torch.ones(3, 3, 2))[0].sum() == 18
    assert torch.func.jacrev(lambda x: imgops.crop(x, BOX))(X).sum() == 18
    assert torch.func.jacfwd(lambda x: imgops.crop(x, BOX))(X).sum() == 18
    assert torch.func.hessian(loss)(X).sum() == 2 * 18


def test_forward_mode() -> None:
    _, tangent = torch.func.jvp(lambda x: imgops.resize(x, (2, 2)), (X,), (X,))
    assert bits_equal(tangent, imgops.resize(X, (2, 2)))
    with forward_ad.dual_level():
        out = imgops.crop(forward_ad.make_dual(X, X), BOX)
        assert bits_equal(forward_ad.unpack_dual(out).tangent, X[:, 1:4, 1:3])


def test_make_fx() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: imgops.crop(x, BOX))(X)
    assert OVERLOAD in [str(n.target) for n in graph.graph.nodes]


def test_compile_and_export() -> None:
    class Crop(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return imgops.crop(x, BOX)

    for strict in (False, True):
        program = torch.export.export(Crop(), (X,), strict=strict)
        assert OVERLOAD in [str(n.target) for n in program.graph.nodes]
    graphs: list[Any] = []
    torch.compile(Crop(), backend=lambda g, _: graphs.append(g) or g.forward, fullgraph=True)(X)
    assert any("crop" in str(n.target) for n in graphs[0].graph.nodes)


def test_profiler_shows_the_operator() -> None:
    with torch.profiler.profile() as profile:
        imgops.crop(X, BOX)
    assert "imgops::crop" in [e.name for e in profile.events()]


def test_subclasses() -> None:
    from torchvision import tv_tensors

    for x in (tv_tensors.Image(X), torch.nn.Parameter(X, requires_grad=False)):
        assert not _torch_private.is_plain(x)
        assert bits_equal(imgops.crop(x, BOX).as_subclass(torch.Tensor), X[:, 1:4, 1:3])


def test_negative_views() -> None:
    negative = torch.complex(X, X).conj().imag
    assert negative.is_neg() and not _torch_private.is_plain(negative)
    assert bits_equal(imgops.crop(negative, BOX), -X[:, 1:4, 1:3])
    recorded = torch.complex(X, X).requires_grad_()
    imgops.crop(recorded.conj().imag, BOX).sum().backward()
    assert recorded.grad.imag.sum() == -18


def test_autocast_changes_nothing() -> None:
    wanted = imgops.resize(X, (2, 2))
    with torch.autocast("cpu", torch.bfloat16):
        assert bits_equal(imgops.resize(X, (2, 2)), wanted)
        assert bits_equal(imgops.resize(X.clone().requires_grad_(), (2, 2)), wanted)


def test_jit_trace() -> None:
    traced = torch.jit.trace(lambda x: imgops.crop(x, BOX), (X,), check_trace=False)
    assert "imgops::crop" in str(traced.graph)


def test_checkpoint_and_hooks() -> None:
    x = X.clone().requires_grad_()
    out = torch.utils.checkpoint.checkpoint(lambda t: imgops.crop(t, BOX).sin(), x, use_reentrant=False)
    out.sum().backward()
    wanted = torch.zeros_like(X)
    wanted[:, 1:4, 1:3] = X[:, 1:4, 1:3].cos()
    torch.testing.assert_close(x.grad, wanted)
