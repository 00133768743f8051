"""A gradient derived from a decomposition: its vector-Jacobian product, in an operator of its own.

A compiler sees two opaque calls, forward and backward; PyTorch differentiates the decomposition inside the
second one. Beyond the first order the decomposition itself is differentiated in the open. Forward mode is
refused: it would have to run inside a transform of torch.func, which can start no other there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import torch
from torch import Tensor


class Derived:
    """The gradient of one operator; ``backward_operator`` is set once it is registered."""

    def __init__(self, decomposition: Callable[..., Tensor], tensors: int) -> None:
        self.decomposition = decomposition
        self.tensors = tensors
        self.backward_operator: Any = None

    # The operator itself.

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[: self.tensors])
        ctx.rest = inputs[self.tensors :]

    def backward(self, ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[: self.tensors]) if needed]
        flat = self.backward_operator(grad, *ctx.saved_tensors, *ctx.rest, wanted)
        inputs = [ctx.saved_tensors[i] for i in wanted]
        parts = flat.split([x.numel() for x in inputs])
        found = [p.reshape(x.shape).to(x.dtype) for p, x in zip(parts, inputs, strict=True)]
        return _placed(found, wanted, self.tensors + len(ctx.rest))

    # Its backward operator: (grad, *inputs, wanted) to all gradients in one flat tensor. (Of several tensors
    # PyTorch could not compute batched gradients.)

    def backward_kernel(self, grad: Tensor, *args: Any) -> Tensor:
        *inputs, wanted = args
        return self._pulled(grad, inputs, wanted)

    def backward_fake(self, grad: Tensor, *args: Any) -> Tensor:
        *inputs, wanted = args
        size = sum(inputs[i].numel() for i in wanted)
        return grad.new_empty((size,), dtype=_widest([inputs[i] for i in wanted]))

    def backward_setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        grad, *arguments, ctx.wanted = inputs
        ctx.save_for_backward(grad, *arguments[: self.tensors])
        ctx.rest = arguments[self.tensors :]

    def backward_backward(self, ctx: Any, cotangent: Tensor) -> tuple[Any, ...]:
        at = [i for i, needed in enumerate(ctx.needs_input_grad[: self.tensors + 1]) if needed]
        pulled, primals = self._pulled_of(ctx, at)
        found = torch.func.vjp(pulled, *primals)[1](cotangent)
        return _placed(found, at, 1 + self.tensors + len(ctx.rest) + 1)

    def backward_vmap(
        self, op: Any, info: Any, in_dims: tuple[int | None, ...], *args: Any
    ) -> tuple[Tensor, int]:
        """Sample by sample: no transform of torch.func can be started inside of another's rule."""
        at = [i for i, dim in enumerate(in_dims[: self.tensors + 1]) if dim is not None]
        rows = []
        for i in range(info.batch_size):
            rows.append(op(*_replaced(args, at, [args[j].select(in_dims[j], i) for j in at])))
        if rows:
            return torch.stack(rows), 0
        size = 0
        for i in args[-1]:
            sample = [n for d, n in enumerate(args[i + 1].shape) if d != in_dims[i + 1]]
            size += prod(sample)
        return args[0].new_empty((0, size), dtype=_widest([args[i + 1] for i in args[-1]])), 0

    def _pulled_of(self, ctx: Any, at: Sequence[int]) -> tuple[Callable[..., Tensor], list[Tensor]]:
        """The backward as a function of some of its tensors, and these."""
        every = ctx.saved_tensors

        def pulled(*chosen: Tensor) -> Tensor:
            grad, *inputs = _replaced(every, at, chosen)
            return self._pulled(grad, [*inputs, *ctx.rest], ctx.wanted)

        return pulled, [every[i] for i in at]

    def _pulled(self, grad: Tensor, inputs: Sequence[Any], wanted: Sequence[int]) -> Tensor:
        function, primals = self._of(wanted, inputs)
        found = torch.func.vjp(function, *primals)[1](grad)
        dtype = _widest(primals)
        return torch.cat([g.reshape(-1).to(dtype) for g in found])

    def _of(self, at: Sequence[int], inputs: Sequence[Any]) -> tuple[Callable[..., Tensor], list[Tensor]]:
        """The decomposition as a function of some of its tensors, and these."""

        def function(*chosen: Tensor) -> Tensor:
            return self.decomposition(*_replaced(inputs, at, chosen))

        return function, [inputs[i] for i in at]


def _placed(values: Sequence[Any], at: Sequence[int], size: int) -> tuple[Any, ...]:
    found = dict(zip(at, values, strict=True))
    return tuple(found.get(i) for i in range(size))


def _replaced(values: Sequence[Any], at: Sequence[int], chosen: Sequence[Any]) -> list[Any]:
    filled = list(values)
    for i, value in zip(at, chosen, strict=True):
        filled[i] = value
    return filled


def _widest(tensors: Sequence[Tensor]) -> torch.dtype:
    return reduce(torch.promote_types, [t.dtype for t in tensors])
