"""The check of torch.func and forward mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor

from imgops._common.torch_private import tree_leaves
from imgops._operator.record import Contract
from imgops.extend.testing._call import Call, leaves, several


def func(call: Call) -> list[str]:
    """Check that torch.func and forward mode give the results of autograd, or raise NotImplementedError.

    They must never return zeros instead of raising. The result has the names of those that raise.
    """
    double = call.double()
    if double is None or call.operator.contract is Contract.OUT:
        return []
    names = double.differentiable
    function, tensors = leaves(double, names)
    count = range(len(tensors))

    def flat(*inputs: Tensor) -> Tensor:
        return torch.cat([o.reshape(-1) for o in several(function(*inputs))])

    def loss(*inputs: Tensor) -> Tensor:
        return flat(*inputs).sin().sum()

    if flat(*tensors).numel() == 0:
        return []
    refused: list[str] = []

    def close(name: str, compute: Callable[[], Any], wanted: Any) -> None:
        if not _close(name, compute, wanted):
            refused.append(name)

    wanted = torch.autograd.grad(loss(*tensors), tensors, materialize_grads=True)
    plain = tuple(t.detach() for t in tensors)
    everything = tuple(count)
    close("torch.func.grad", lambda: torch.func.grad(loss, everything)(*plain), wanted)
    weights = flat(*plain).cos()
    close("torch.func.vjp", lambda: torch.func.vjp(flat, *plain)[1](weights), wanted)

    few, parts = _of_few(flat, plain)
    rows = torch.autograd.functional.jacobian(few, parts)
    close("torch.func.jacrev", lambda: torch.func.jacrev(few, everything)(*parts), rows)
    tangents = tuple(torch.cos(t + 1) for t in parts)
    pushed = sum(r.flatten(1) @ t.flatten() for r, t in zip(rows, tangents, strict=True))
    close("torch.func.jvp", lambda: torch.func.jvp(few, parts, tangents)[1], pushed)
    close("torch.func.jacfwd", lambda: torch.func.jacfwd(few, everything)(*parts), rows)
    close("forward_ad", lambda: _dual(few, parts, tangents), pushed)

    def few_loss(*inputs: Tensor) -> Tensor:
        return few(*inputs).sin().sum()

    second = torch.autograd.functional.hessian(few_loss, parts)
    close("torch.func.hessian", lambda: torch.func.hessian(few_loss, everything)(*parts), second)
    close(
        "jacrev of grad",
        lambda: torch.func.jacrev(torch.func.grad(few_loss, everything), everything)(*parts),
        second,
    )

    if call.operator.vmap is not None:
        stacked = tuple(torch.stack([t, 0.5 * t]) for t in plain)
        samples = [tuple(t[i].detach().clone().requires_grad_() for t in stacked) for i in (0, 1)]
        each = [torch.autograd.grad(loss(*x), x, materialize_grads=True) for x in samples]
        per_sample = tuple(torch.stack(g) for g in zip(*each, strict=True))
        close("vmap of grad", lambda: torch.vmap(torch.func.grad(loss, everything))(*stacked), per_sample)
    return refused


def func_in_a_graph(*calls: Call) -> None:
    """Check that ``torch.func.grad`` of the calls has the same results in one graph and in eager mode."""
    losses, inputs = [], []
    for call in calls:
        double = call.double()
        if double is None or call.operator.contract is Contract.OUT:
            continue
        function, tensors = leaves(double, double.differentiable)
        losses.append(_loss(function))
        inputs.append(tuple(t.detach() for t in tensors))

    def run(inputs: Sequence[tuple[Tensor, ...]]) -> list[tuple[Tensor, ...]]:
        return [
            torch.func.grad(loss, tuple(range(len(x))))(*x) for loss, x in zip(losses, inputs, strict=True)
        ]

    if losses:
        graph = torch.compile(run, backend="aot_eager", fullgraph=True)
        _close("compiled torch.func.grad", lambda: graph(inputs), run(inputs))


def _loss(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda *inputs: torch.cat([o.reshape(-1) for o in several(function(*inputs))]).sin().sum()


def _of_few(
    function: Callable[..., Tensor], tensors: Sequence[Tensor]
) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """Restrict ``function`` to some elements of large tensors and of its output.

    A Jacobian has an entry for each pair of an input element and an output element. The result is the
    restricted function and its input elements.
    """
    steps = [_step(t.numel()) for t in tensors]

    def of_parts(*parts: Tensor) -> Tensor:
        whole = [
            torch.slice_scatter(t.flatten(), part, step=step).reshape(t.shape)
            for t, part, step in zip(tensors, parts, steps, strict=True)
        ]
        out = function(*whole)
        return out[:: _step(out.numel())]

    return of_parts, tuple(t.flatten()[::step] for t, step in zip(tensors, steps, strict=True))


def _step(count: int) -> int:
    """Return an odd step, which seldom divides an image's width, that leaves at most 31 elements."""
    return count // 16 | 1


def _dual(function: Callable[..., Tensor], primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> Tensor:
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(p, t) for p, t in zip(primals, tangents, strict=True)]
        tangent = forward_ad.unpack_dual(function(*duals)).tangent
        assert tangent is not None, "forward_ad: the tangent was lost"
        return tangent


def _close(name: str, compute: Callable[[], Any], wanted: Any) -> bool:
    """Compare what is computed; return False if it raises NotImplementedError."""
    try:
        found = compute()
    except NotImplementedError:
        return False
    pairs = zip(tree_leaves(found), tree_leaves(wanted), strict=True)
    for a, b in pairs:
        torch.testing.assert_close(a, b.detach(), rtol=1e-9, atol=1e-9, msg=lambda m: f"{name}: {m}")
    return True
