"""Every private PyTorch name that imgops needs, in one place.

Checked on torch 2.11, 2.13 and 2.15; ``tests/test_torch_private.py`` fails when one of them moves or
changes its meaning. Nothing else in imgops may reach below PyTorch's public names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
from torch import _C, Tensor
from torch._C._functorch import TransformType, maybe_current_level
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch._functorch.utils import enable_single_level_autograd_function
from torch._library.utils import fill_defaults
from torch.autograd import profiler
from torch.autograd.function import _SingleLevelFunction

_is_compiling = torch.compiler.is_compiling
_grad_enabled = torch.is_grad_enabled
_function_modes = _C._len_torch_function_stack
_dispatch_modes = _C._len_torch_dispatch_stack
_tracing_state = _C._get_tracing_state
_functorch_level = maybe_current_level


def nothing_watches() -> bool:
    """Whether no mode, transform, tracer or profiler would see an operator call.

    With plain CPU tensors that no gradient is wanted for, such a call may run the kernel directly and
    skip the dispatcher, which costs several times what the kernel of a small image does.
    """
    return (
        not _is_compiling()
        and not _dispatch_modes()
        and not _function_modes()
        and _functorch_level() is None
        and forward_ad._current_level < 0
        and _tracing_state() is None
        and not profiler._is_profiler_enabled
    )


def is_plain(x: Tensor | None) -> bool:
    """Whether ``x`` is None or an ordinary CPU tensor that no gradient is recorded for."""
    return x is None or (
        type(x) is Tensor
        and x.is_cpu
        and not (x.requires_grad and _grad_enabled())
        and not x.is_neg()
        and not x.is_conj()
    )


def register_gradient(
    opdef: Any,
    setup_context: Callable[..., None],
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None,
) -> None:
    """``opdef.register_autograd``, made right under torch.func and in forward mode.

    The stock Autograd kernel of a custom operator fails under ``torch.func.grad`` and gives a silent
    zero tangent in forward mode. This one records a single-level function at each functorch level,
    runs ``jvp``, and refuses what it cannot do.
    """
    opdef.register_autograd(backward, setup_context=setup_context)
    overload = opdef._opoverload
    schema = overload._schema

    def below(keyset: Any, inputs: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return overload.redispatch(keyset & _C._after_autograd_keyset, *inputs)

    def forward(ctx: Any, *args: Any) -> Any:
        *inputs, keyset = args
        if maybe_current_level() is None:
            out = below(keyset, inputs)
        else:  # inside torch.func the outer levels must still see a differentiable call
            with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
                out = below(keyset, inputs)
        with _C._AutoDispatchBelowAutograd():
            setup_context(ctx=ctx, inputs=fill_defaults(schema, inputs, {})[0], output=out)
        return out

    def run_backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (*backward(ctx, *grads), None)

    body: dict[str, Any] = {
        "forward": staticmethod(forward),
        "backward": staticmethod(run_backward),
    }
    if jvp is not None:
        body["jvp"] = staticmethod(lambda ctx, *tangents: jvp(ctx, *tangents[:-1]))
    function: Any = type(f"imgops_{opdef._name}", (_SingleLevelFunction,), body)

    def autograd_kernel(keyset: Any, *args: Any) -> Any:
        forward_mode = forward_ad._current_level >= 0
        if forward_mode and (jvp is None or _forward_levels() > 1):
            raise NotImplementedError(
                f"{opdef._name}: forward-mode AD must have a rule of this order, got none"
            )
        if forward_mode or (_grad_enabled() and _C._any_requires_grad(*args)):
            with enable_single_level_autograd_function():
                return function.apply(*args, keyset)
        return below(keyset, args)

    with warnings.catch_warnings():  # torch 2.11 warns of every override, wanted or not
        warnings.simplefilter("ignore")
        opdef._lib.impl(opdef._name, autograd_kernel, "Autograd", with_keyset=True, allow_override=True)


def _forward_levels() -> int:
    if maybe_current_level() is None:
        return 1
    return sum(i.key() == TransformType.Jvp for i in retrieve_all_functorch_interpreters())


def overload_of(opdef: Any) -> Any:
    return opdef._opoverload


def has_kernel(name: str, dispatch_key: str) -> bool:
    return _C._dispatch_has_kernel_for_dispatch_key(name, dispatch_key)


def graph_breaks() -> int:
    """How often dynamo has broken a graph in this process."""
    from torch._dynamo.utils import counters  # dynamo takes a second to import

    return sum(counters["graph_break"].values())


class CountingBackend:
    """A compiler backend that counts the graphs it is given."""

    def __init__(self, name: str) -> None:
        from torch._dynamo.backends.registry import lookup_backend

        self.compile = lookup_backend(name)
        self.count = 0

    def __call__(self, graph: Any, example_inputs: Any) -> Any:
        self.count += 1
        return self.compile(graph, example_inputs)
