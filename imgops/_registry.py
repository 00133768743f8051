"""The only module that talks to torch.library: it joins the facets of an operator.

An operator is declared by a typed signature, which becomes its schema, and the list of facets it has::

    @operator(kernel=cpu.compose.crop, fake=fake.compose.crop, ...)
    def _crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor: ...

A fake validates and allocates; a kernel fills what the fake allocated: ``kernel(out, *args)``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from imgops import _torch_private
from imgops.kernels.cuda import host

NAMESPACE = "imgops"


@dataclass(frozen=True)
class Gradient:
    """The autograd facet: what the backward keeps, the backward, and the forward-mode rule."""

    setup_context: Callable[..., None]
    backward: Callable[..., tuple[Any, ...]]
    jvp: Callable[..., Tensor] | None = None


@dataclass(frozen=True)
class Operator:
    """The row of a registered operator: its signature and its facets; None where it has none."""

    name: str
    signature: inspect.Signature
    kernel: Callable[..., None]
    cuda: Callable[..., None] | None
    fake: Callable[..., Tensor]
    autograd: Gradient | None
    vmap: Callable[..., Any] | None
    adjoint: str | None
    overload: Any


_operators: dict[str, Operator] = {}


def operators() -> Mapping[str, Operator]:
    """Every registered operator by its name, in order of registration."""
    return dict(_operators)


def operator(
    *,
    kernel: Callable[..., None],
    fake: Callable[..., Tensor],
    cuda: Callable[..., None] | None = None,
    autograd: Gradient | None = None,
    vmap: Callable[..., Any] | None = None,
    adjoint: str | None = None,
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register the operator that the decorated signature ``_name`` describes as ``imgops::name``.

    The decorated name becomes the function that calls the operator: straight to the CPU kernel when
    nothing would see the difference, else through the dispatcher.

    Parameters
    ----------
    kernel
        ``kernel(out, *args)`` fills ``out`` on the CPU. Devices without a kernel of their own
        run it through the host.
    fake
        ``fake(*args)`` validates and returns an uninitialised output.
    cuda
        ``cuda(out, *args)``, a native CUDA kernel; None for the round trip through the host.
    autograd, vmap
        The gradient and the batching rule; None states that there is none.
    adjoint
        The name of the operator that is this one's transpose in its image, if it is linear.
    """

    def register(signature: Callable[..., Tensor]) -> Callable[..., Tensor]:
        name = signature.__name__.lstrip("_")
        if name in _operators:
            raise ValueError(f"operator: name must be new, got {name!r} a second time")
        overload = _register(name, signature, kernel, fake, cuda, autograd, vmap)
        parameters = inspect.signature(signature)
        _operators[name] = Operator(name, parameters, kernel, cuda, fake, autograd, vmap, adjoint, overload)
        tensors = sum("Tensor" in str(p.annotation) for p in parameters.parameters.values())
        return _fast(overload, kernel, fake, tensors)

    return register


def _register(
    name: str,
    signature: Callable[..., Tensor],
    kernel: Callable[..., None],
    fake: Callable[..., Tensor],
    cuda: Callable[..., None] | None,
    autograd: Gradient | None,
    vmap: Callable[..., Any] | None,
) -> Any:
    """Hand the facets to torch.library; return the overload."""
    through_host = host.round_trip(kernel)
    schema = torch.library.infer_schema(signature, mutates_args=())
    # A copy to the host cannot be captured into a CUDA graph; inductor splits the graph around it.
    tags = () if cuda else (torch.Tag.cudagraph_unsafe,)
    opdef = torch.library.custom_op(
        f"{NAMESPACE}::{name}", _filled(fake, through_host), mutates_args=(), schema=schema, tags=tags
    )
    # One device a call: a shared registration cannot be replaced for one device alone.
    opdef.register_kernel("cpu", _filled(fake, kernel))
    opdef.register_kernel("cuda", _filled(fake, cuda or through_host))
    opdef.register_fake(fake)
    if autograd is not None:
        _torch_private.register_gradient(opdef, autograd.setup_context, autograd.backward, autograd.jvp)
    if vmap is not None:
        opdef.register_vmap(vmap)

    return _torch_private.overload_of(opdef)


def _filled(fake: Callable[..., Tensor], kernel: Callable[..., None]) -> Callable[..., Tensor]:
    """What a device runs: the fake validates and allocates, the kernel fills."""

    def run(*args: Any) -> Tensor:
        out = fake(*args)
        kernel(out, *args)
        return out

    return run


def _fast(
    overload: Any, kernel: Callable[..., None], fake: Callable[..., Tensor], tensors: int
) -> Callable[..., Tensor]:
    """The operator as a function of Python; its first ``tensors`` arguments are tensors."""
    nothing_watches, is_plain = _torch_private.nothing_watches, _torch_private.is_plain

    def call(*args: Any) -> Tensor:
        if not nothing_watches() or not is_plain(args[0]):
            return overload(*args)
        for x in args[1:tensors]:
            if not is_plain(x):
                return overload(*args)
        out = fake(*args)
        kernel(out, *args)
        return out

    return call
