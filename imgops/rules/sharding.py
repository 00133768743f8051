"""DTensor rules: which dimensions of an operator's tensors may be sharded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from imgops._common import check

__all__ = ["leading", "whole"]


def leading(*core: int, outputs: int = 1) -> Callable[..., list[tuple[list[Any], list[Any]]]]:
    """Return the sharding rule of an operator whose tensors have ``core`` trailing dimensions each.

    Leading dimensions of the first tensor may be sharded. Other tensors with 3 core dimensions have the same
    leading dimensions; parameters, with fewer core dimensions, broadcast against them from the right.
    ``outputs`` is the number of tensors that the operator returns, each with all leading dimensions.
    ``rule.core`` holds ``core``.
    """
    check.cores("sharding.leading", core)

    def rule(*specs: Any) -> list[tuple[list[Any], list[Any]]]:
        from torch.distributed.tensor import Replicate, Shard

        batch = specs[0].ndim - core[0]

        def placement(i: int, spec: Any, dim: int) -> Any:
            if spec is None:
                return None
            own = dim - (batch - (spec.ndim - core[i]))
            there = own >= 0 and (core[i] == 3 or spec.shape[own] != 1)
            return Shard(own) if there else Replicate()

        tensors = specs[: len(core)]
        rest = [None] * (len(specs) - len(core))
        rules: list[tuple[list[Any], list[Any]]] = [
            ([Replicate()] * outputs, [None if s is None else Replicate() for s in tensors] + rest)
        ]
        for dim in range(batch):
            placements = [placement(i, s, dim) for i, s in enumerate(tensors)]
            rules.append(([Shard(dim)] * outputs, placements + rest))
        return rules

    rule.core = core  # type: ignore[attr-defined]
    return rule


def whole(*specs: Any) -> list[tuple[list[Any], list[Any]]]:
    """Replicate every tensor, for an operator that mixes all of its input: each rank computes all of it."""
    from torch.distributed.tensor import Replicate

    return [([Replicate()], [Replicate() if hasattr(s, "placements") else None for s in specs])]
