"""The fast path: every mode, transform, tracer and hook that observes an operator call still observes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import imgops
from imgops._common import torch_private
from tests.checks import bits_equal

X = torch.arange(48.0).reshape(3, 4, 4)
BOX = (1, 1, 3, 4)
OVERLOAD = "imgops.crop.default"


class Seen:
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def see(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Dispatches(Seen, TorchDispatchMode):
    __torch_dispatch__ = Seen.see


class Functions(Seen, TorchFunctionMode):
    __torch_function__ = Seen.see


@pytest.mark.parametrize("context", [nullcontext, torch.no_grad, torch.inference_mode])
def test_plain_calls_take_the_kernel(context: Callable[[], Any]) -> None:
    with context():
        assert torch_private.can_bypass_dispatcher() and torch_private.is_plain(X)
        assert bits_equal(imgops.crop(X, BOX), X[:, 1:4, 1:3])


def test_leaf_under_no_grad_takes_the_kernel() -> None:
    x = X.clone().requires_grad_()
    assert not torch_private.is_plain(x)
    with torch.no_grad():
        assert torch_private.is_plain(x)
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


def test_make_fx() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: imgops.crop(x, BOX))(X)
    assert OVERLOAD in [str(n.target) for n in graph.graph.nodes]


def test_profiler_shows_the_operator() -> None:
    with torch.profiler.profile() as profile:
        imgops.crop(X, BOX)
    assert "imgops::crop" in [e.name for e in profile.events()]


def test_subclasses() -> None:
    from torchvision import tv_tensors

    image, parameter = tv_tensors.Image(X), torch.nn.Parameter(X)
    assert not torch_private.is_plain(image) and not torch_private.is_plain(parameter)
    for x in (image, parameter, parameter.requires_grad_(False)):
        assert bits_equal(imgops.crop(x, BOX).as_subclass(torch.Tensor).detach(), X[:, 1:4, 1:3])
        assert (type(imgops.crop(x, BOX)) is torch.Tensor) is (x is parameter)


def test_gradients_with_and_without_the_dispatcher() -> None:
    """Both record one function, whose backward calls the same operators."""
    x = X.clone().requires_grad_()
    outs = [imgops.crop(x, BOX), torch.ops.imgops.crop(x, *BOX)]
    assert len({type(out.grad_fn) for out in outs}) == 1
    grads = [torch.autograd.grad(out.square().sum(), x, create_graph=True)[0] for out in outs]
    assert bits_equal(*(g.detach() for g in grads)) and all(g.requires_grad for g in grads)
    with torch.no_grad():
        assert not imgops.crop(x, BOX).requires_grad


def test_negative_views() -> None:
    negative = torch.complex(X, X).conj().imag
    assert negative.is_neg() and not torch_private.is_plain(negative)
    assert bits_equal(imgops.crop(negative, BOX), -X[:, 1:4, 1:3])
    recorded = torch.complex(X, X).requires_grad_()
    imgops.crop(recorded.conj().imag, BOX).sum().backward()
    assert recorded.grad.imag.sum() == -18


def test_gradients_of_a_batch_of_cotangents() -> None:
    """They come in a tensor of the older vmap, which looks like any other tensor."""
    seen: list[bool] = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            seen.append(torch_private.is_plain(grad))
            return imgops.pad(imgops.crop(grad, (0, 0, 4, 4)), 0) * 2

    x = X.clone().requires_grad_()
    out = Doubled.apply(x)
    cotangents = torch.stack([torch.ones_like(out), torch.zeros_like(out)])
    (grads,) = torch.autograd.grad(out, x, cotangents, is_grads_batched=True)
    assert (grads[0] == 2).all() and not grads[1].any() and seen == [False]


def test_dual_tensors_of_old_and_of_torch_func() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return imgops.pad(x, 1, "reflect")

    _, tangent = torch.autograd.functional.jvp(f, X, X)
    assert bits_equal(tangent, f(X))
    _, pushed = torch.func.linearize(f, X)
    assert bits_equal(pushed(X), f(X))
    jacobian = torch.autograd.functional.jacobian(lambda x: imgops.crop(x, BOX), X, vectorize=True)
    assert jacobian.sum() == 18


def test_functionalize() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return imgops.crop(imgops.pad(x, 1), BOX)

    assert bits_equal(torch.func.functionalize(f)(X), f(X))


def test_fx_symbolic_trace() -> None:
    with pytest.raises(TypeError, match="crop: image must be a Tensor, got Proxy"):
        torch.fx.symbolic_trace(lambda x: imgops.crop(x, BOX))


def test_dtensor_and_wrapper_classes() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    twice = TwoTensor(X, X + 1)
    out = imgops.crop(twice, BOX)
    assert isinstance(out, TwoTensor) and bits_equal(out.b, imgops.crop(X + 1, BOX))


def test_saved_tensor_hooks_and_anomaly_mode() -> None:
    packed: list[torch.Size] = []
    image, source, mask = X.clone().requires_grad_(), X[:, :2, :2].clone(), torch.full((1, 2, 2), 0.5)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t):
        out = imgops.paste(image, source, (1, 1), mask)
    with torch.autograd.set_detect_anomaly(True):
        out.sum().backward()
    assert packed and image.grad.sum() == 48 - 6


def test_multithreading_off_and_set_grad_enabled() -> None:
    x = X.clone().requires_grad_()
    with torch.autograd.set_multithreading_enabled(False), torch.set_grad_enabled(True):
        imgops.crop(x, BOX).sum().backward()
    assert x.grad.sum() == 18
    with torch.set_grad_enabled(False):
        assert imgops.crop(x, BOX).grad_fn is None


def test_deterministic_mode_fills_no_output_twice() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert bits_equal(imgops.crop(X, BOX), X[:, 1:4, 1:3])
    finally:
        torch.use_deterministic_algorithms(False)


def test_compiled_autograd() -> None:
    x = X.clone().requires_grad_()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
        imgops.resize(x, (2, 2)).sum().backward()
    wanted = torch.autograd.grad(imgops.resize(x, (2, 2)).sum(), x)[0]
    assert bits_equal(x.grad, wanted)


def test_what_a_fake_said_is_remembered_only_where_it_holds() -> None:
    """The same sizes with other strides, dtypes or arguments are different calls."""
    planar, last = torch.rand(2, 3, 4, 5), torch.rand(2, 4, 5, 3).permute(0, 3, 1, 2)
    for x in (planar, last, planar.double(), planar[:, :, ::2], planar):
        for args in (((1, 1, 3, 3),), ((0, 0, 2, 2),), ((1, 1, 3, 3),)):
            out = imgops.crop(x, *args)
            left, top, right, bottom = args[0]
            assert out.dtype == x.dtype and out.shape[-2:] == (2, 2)
            inside = x[..., top:bottom, left:right]
            assert out[..., : inside.shape[-2], :].equal(inside)
    for _ in range(2):
        with pytest.raises(ValueError, match="right >= left"):
            imgops.crop(planar, (3, 0, 1, 1))
    for i in range(1100):  # more than the cache holds
        assert imgops.crop(planar, (0, 0, i % 550, 1)).shape[-1] == i % 550


def test_jit_trace() -> None:
    traced = torch.jit.trace(lambda x: imgops.crop(x, BOX), (X,), check_trace=False)
    assert "imgops::crop" in str(traced.graph)
