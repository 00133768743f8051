"""A gradient derived from a decomposition: its vector-Jacobian product, in an operator of its own.

A compiler sees two opaque calls, forward and backward; PyTorch differentiates the decomposition inside the
second one. Beyond the first order the decomposition itself is differentiated in the open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        ctx.save_for_forward(*inputs[: self.tensors])
        ctx.rest = inputs[self.tensors :]

    def backward(self, ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[: self.tensors]) if needed]
        found = self.backward_operator(grad, *ctx.saved_tensors, *ctx.rest, wanted)
        return _placed(found, wanted, self.tensors + len(ctx.rest))

    def jvp(self, ctx: Any, *tangents: Tensor | None) -> Tensor:
        moving = [i for i, t in enumerate(tangents[: self.tensors]) if t is not None]
        function, primals = self._of(moving, (*ctx.saved_tensors, *ctx.rest))
        # The derivative of the pullback at any cotangent, along the tangents: linear, so exact.
        out, pull = torch.func.vjp(function, *primals)[:2]
        push = torch.func.vjp(pull, torch.zeros_like(out))[1]
        return push(tuple(tangents[i] for i in moving))[0]

    # Its backward operator: (grad, *inputs, wanted).

    def backward_kernel(self, grad: Tensor, *args: Any) -> list[Tensor]:
        *inputs, wanted = args
        return [g.contiguous().clone() for g in self._pulled(grad, inputs, wanted)]

    def backward_fake(self, grad: Tensor, *args: Any) -> list[Tensor]:
        *inputs, wanted = args
        return [inputs[i].new_empty(inputs[i].shape) for i in wanted]

    def backward_setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        grad, *arguments, ctx.wanted = inputs
        ctx.save_for_backward(grad, *arguments[: self.tensors])
        ctx.rest = arguments[self.tensors :]

    def backward_backward(self, ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        grad, *inputs = ctx.saved_tensors
        (given,) = cotangents if len(cotangents) == 1 else (cotangents,)
        given = list(given) if isinstance(given, (list, tuple)) else [given]
        at = [i for i, needed in enumerate(ctx.needs_input_grad[: self.tensors + 1]) if needed]
        every = [grad, *inputs]

        def pulled(*chosen: Tensor) -> list[Tensor]:
            filled = list(every)
            for i, value in zip(at, chosen, strict=True):
                filled[i] = value
            return self._pulled(filled[0], [*filled[1:], *ctx.rest], ctx.wanted)

        out, pull = torch.func.vjp(pulled, *(every[i] for i in at))[:2]
        given = [torch.zeros_like(o) if g is None else g for g, o in zip(given, out, strict=True)]
        return _placed(pull(given), at, 1 + self.tensors + len(ctx.rest) + 1)

    backward_jvp = None

    def _pulled(self, grad: Tensor, inputs: Sequence[Any], wanted: Sequence[int]) -> list[Tensor]:
        function, primals = self._of(wanted, inputs)
        return list(torch.func.vjp(function, *primals)[1](grad))

    def _of(self, at: Sequence[int], inputs: Sequence[Any]) -> tuple[Callable[..., Tensor], list[Tensor]]:
        """The decomposition as a function of some of its tensors, and these."""

        def function(*chosen: Tensor) -> Tensor:
            filled = list(inputs)
            for i, value in zip(at, chosen, strict=True):
                filled[i] = value
            return self.decomposition(*filled)

        return function, [inputs[i] for i in at]


def _placed(values: Sequence[Any], at: Sequence[int], size: int) -> tuple[Any, ...]:
    found = dict(zip(at, values, strict=True))
    return tuple(found.get(i) for i in range(size))
