"""vmap's ``randomness`` for operators that draw: PyTorch leaves it to the rule and does not enforce it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from imgops._torch_private import raise_error


def with_randomness(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a batching rule so that it obeys ``randomness``.

    With "different", ``rule`` runs and every sample draws for itself. With "same", all samples share one
    draw: the operator runs for each in the same state of the generator, or once if the rule says with
    ``is_draw_alone`` that the result does not depend on the samples. With "error", the wrapped rule raises.
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
        if torch.compiler.is_compiling():  # a graph would not hold the changes of the generator's state
            must = "randomness must be 'different' under vmap in a graph"
            raise NotImplementedError(f"{op.__name__.split('.')[0]}: {must}, got 'same'")
        state = torch.random.get_rng_state()
        outputs = []
        for i in range(info.batch_size):
            torch.random.set_rng_state(state)
            outputs.append(op(*(_sample(a, d, i) for a, d in zip(args, in_dims, strict=True))))
        return torch.stack(outputs), 0

    return draw_or_share


def _sample(value: Any, dim: int | None, index: int) -> Any:
    return value.select(dim, index) if isinstance(value, Tensor) and dim is not None else value
