"""PyTorch's private names: they exist, and mean what imgops takes them to mean."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch import _C
from torch._library.custom_ops import CustomOpDef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from imgops._common import torch_private as private


@pytest.mark.parametrize(
    "watch", [TorchDispatchMode, TorchFunctionMode, forward_ad.dual_level, torch.profiler.profile]
)
def test_what_watches_calls_is_seen(watch: Any) -> None:
    """Nothing does by default; tests/test_fast_path.py shows what each sees."""
    assert private.can_bypass_dispatcher() and forward_ad._current_level < 0
    with watch():
        assert not private.can_bypass_dispatcher()
    assert private.can_bypass_dispatcher()


@pytest.mark.parametrize("transform", [torch.func.grad, torch.vmap])
def test_transforms_of_functions_are_seen(transform: Any) -> None:
    seen = []
    transform(lambda x: (seen.append(private.can_bypass_dispatcher()), x.sum())[1])(torch.ones(2))
    assert seen == [False]


def test_samples_of_vmap_are_seen() -> None:
    seen = []
    torch.vmap(lambda x: (seen.append((private.in_vmap(), private.is_vmapped(x))), x)[1])(torch.ones(2))
    assert seen == [(True, True)]
    assert not private.in_vmap() and not private.is_vmapped(torch.ones(2))


def test_forward_levels() -> None:
    assert private._forward_levels() == 1
    seen = []
    call = lambda x: (seen.append(private._forward_levels()), x.sum())[1]
    x = torch.ones(2)
    torch.func.jvp(call, (x,), (x,))
    torch.func.jvp(lambda y: torch.func.jvp(call, (y,), (x,))[1], (x,), (x,))
    torch.func.grad(call)(x)
    assert seen == [1, 2, 0]


def test_second_forward_derivative_refuses() -> None:
    import imgops

    x = torch.ones(1, 4, 4)
    with pytest.raises(NotImplementedError, match="forward-mode AD of this order must have a rule"):
        torch.func.jacfwd(torch.func.jacfwd(lambda t: imgops.crop(t, (0, 0, 2, 2)).sum()))(x)


def test_schema_and_overload() -> None:
    assert str(torch.ops.imgops.crop.default._schema) == (
        "imgops::crop(Tensor image, SymInt left, SymInt top, SymInt right, SymInt bottom) -> Tensor"
    )
    assert "Tensor? mask" in str(torch.ops.imgops.paste.default._schema)


def test_custom_op_is_that_of_pytorch() -> None:
    """They have the same kernels, except for the Autograd kernel, which ``register_gradient`` adds."""
    ours = private.custom_op("imgops_tests::ours", torch.clone, schema="(Tensor x) -> Tensor")
    theirs = torch.library.custom_op(
        "imgops_tests::theirs", torch.clone, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    keys = ("CompositeExplicitAutograd", "CPU", "ADInplaceOrView", "Meta", "Autograd", "AutogradCPU")

    def kernels(opdef: Any) -> set[str]:
        return {k for k in keys if _C._dispatch_has_kernel_for_dispatch_key(opdef._qualname, k)}

    left_out = {"Autograd"} if hasattr(CustomOpDef, "_register_autograd_dispatcher_impl") else set()
    assert kernels(theirs) - kernels(ours) == left_out and kernels(ours) <= kernels(theirs)
    private.register_gradient(ours, lambda ctx, inputs, output: None, lambda ctx, g: (2 * g,), None)
    assert kernels(ours) == kernels(theirs)
    x = torch.ones(2, requires_grad=True)
    (gradient,) = torch.autograd.grad(ours(x).sum(), x)
    assert torch.equal(gradient, torch.full((2,), 2.0))


def test_single_level_functions_have_what_compiled_autograd_asks_for() -> None:
    out = torch.ops.imgops.crop(torch.ones(1, 2, 2, requires_grad=True), 0, 0, 1, 1)
    assert out.grad_fn._compiled_autograd_key() == (out.grad_fn._autograd_function_id,)


@pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="from torch 2.13 on")
def test_inputs_of_an_export_are_seen() -> None:
    class Sees(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            seen.update(private.real_inputs_of_export([3, y, x + 1, x]))
            return x + y

    seen: dict[int, torch.Tensor] = {}
    x, y = torch.ones(2), torch.zeros(2)
    torch.export.export(Sees(), (x, y), strict=False)
    assert seen.keys() == {1, 3} and seen[1] is y and seen[3] is x
    assert private.real_inputs_of_export([x]) == {}


def test_names_of_keys() -> None:
    for name in ("_after_autograd_keyset", "_AutoDispatchBelowAutograd", "_any_requires_grad"):
        assert hasattr(_C, name)
    for device in ("cpu", "cuda", "xpu", "mps"):
        assert hasattr(_C.DispatchKey, "Autocast" + _C._dispatch_key_for_device(device))


def test_a_kernel_runs_as_in_a_new_thread() -> None:
    """``default_dispatch_state``: even below autograd and in an autocast region, autograd records, and float32 stays."""
    seen: list[tuple[bool, torch.dtype]] = []

    def look() -> None:
        x = torch.ones(2, 2, requires_grad=True)
        y = x @ x
        seen.append((y.requires_grad, y.dtype))

    with torch._C._AutoDispatchBelowAutograd(), torch.autocast("cpu", torch.bfloat16):
        look()
        with private.default_dispatch_state(), torch.enable_grad():
            look()
        look()
    assert seen == [(False, torch.bfloat16), (True, torch.float32), (False, torch.bfloat16)]


def test_compiled_graphs_take_subclasses() -> None:
    """The first call of a graph looks for aliases, and torch 2.13 and 2.14 do so with a list of classes."""
    import torch._dynamo
    from torch._functorch._aot_autograd import runtime_wrappers
    from torchvision import tv_tensors

    from imgops import transforms

    class Handled(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    private.accept_subclasses()
    if hasattr(runtime_wrappers, "HANDLED_TYPES"):
        known = runtime_wrappers.HANDLED_TYPES
        private.accept_subclasses()
        assert runtime_wrappers.HANDLED_TYPES is known and torch.Tensor in known
        assert tv_tensors.Image in known and Handled not in known
    graph = torch.compile(transforms.RandomInvert(1.0), backend="aot_eager", fullgraph=True)
    assert graph(tv_tensors.Image(torch.zeros(3, 2, 2, dtype=torch.uint8))).min() == 255
