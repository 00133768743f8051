"""Batching rules for torch.vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from imgops._common import check
from imgops._common.torch_private import raise_error

__all__ = ["leading"]


def leading(*core: int, mutates: int = 0) -> Callable[..., tuple[Any, Any]]:
    """Return the batching rule of an operator whose tensors have ``core`` trailing dimensions each.

    In ``core``, 3 stands for an image, which must have all leading dimensions, and a smaller number for a
    parameter, which broadcasts against them. The first ``mutates`` tensors are written to. ``rule.core``
    holds ``core``.
    """
    check.cores("vmap.leading", core)

    def rule(op: Any, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        tensors = list(args[: len(core)])
        # The number of leading dimensions of one sample, read off the first image.
        ndim = tensors[0].ndim - core[0] - (in_dims[0] is not None)
        for i, (x, dim) in enumerate(zip(tensors, in_dims, strict=False)):
            if x is not None:
                tensors[i] = _with_batch_first(op, x, dim, info.batch_size, core[i], ndim, i < mutates)
        out = op(*tensors, *args[len(core) :])
        if mutates:
            return (None, None) if out is None else (args[0], in_dims[0])
        return out, 0

    rule.core = core  # type: ignore[attr-defined]
    return rule


def _with_batch_first(
    op: Any, x: Tensor, dim: int | None, size: int, core: int, ndim: int, written: bool
) -> Tensor:
    """Return ``x`` with the batch as its first dimension.

    A parameter without a batch is returned unchanged, because it broadcasts.
    """
    if dim is None:
        if written:
            name = op.__name__.split(".")[0]
            must = "a tensor that is written to must have the batch that the others have under vmap"
            raise ValueError(f"{name}: {must}, got one without")
        return x.expand(size, *x.shape) if core == 3 else x
    x = x.movedim(dim, 0)
    if core < 3:  # a parameter of one sample may have fewer leading dimensions than an image
        missing = ndim + core - (x.ndim - 1)
        x = x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
    return x


def with_randomness(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the batching rule of an operator that draws so that it obeys ``randomness``.

    PyTorch leaves this to the rule and does not enforce it.

    With "different", ``rule`` runs and every sample has a separate draw. With "same", all samples share
    one draw: the operator runs for each sample in the same state of the generator, or only once if
    ``rule.is_draw_alone`` says that the result does not depend on the samples. With "error", the wrapped rule
    raises.
    """

    def draw_or_share(op: Any, info: Any, in_dims: Any, *args: Any) -> Any:
        if info.randomness == "error":
            name = op.__name__.split(".")[0]
            must = "randomness must be 'same' or 'different' under vmap, because it draws random numbers"
            raise_error(RuntimeError, f"{name}: {must}, got 'error'")
        if info.randomness == "different":
            return rule(op, info, in_dims, *args)
        if getattr(rule, "is_draw_alone", False):
            out = op(*(_sample(a, d, 0) for a, d in zip(args, in_dims, strict=True)))
            return out.expand(info.batch_size, *out.shape), 0
        must = "randomness must be 'different' under vmap in a graph"
        # A graph would not hold the changes of the generator's state.
        check.refuse_in_graph(NotImplementedError, op.__name__.split(".")[0], must, "'same'")
        state = torch.random.get_rng_state()
        outputs = []
        for i in range(info.batch_size):
            torch.random.set_rng_state(state)
            outputs.append(op(*(_sample(a, d, i) for a, d in zip(args, in_dims, strict=True))))
        return torch.stack(outputs), 0

    return draw_or_share


def _sample(value: Any, dim: int | None, index: int) -> Any:
    return value.select(dim, index) if isinstance(value, Tensor) and dim is not None else value
