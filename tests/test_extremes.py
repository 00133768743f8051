"""Values at the edge: gradients at black, white and gray pixels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from added_cases import ROWS
from groups import groups
from test_compositions import call_of
from torch import Tensor
from torch.utils._pytree import tree_leaves
from transform_cases import CASES

from imgops import transforms as ours
from imgops._operator.record import Contract
from imgops.extend.testing._call import leaves, several
from tests.specs import SPECS, Sample
from tests.specs._maker import Maker


def at_the_edge(dense: Tensor) -> Tensor:
    """Return five images of the first one's values: black, white, gray, of equal channels, and of 0, 0.5 and 1."""
    constant = [torch.full_like(dense[0], value) for value in (0.0, 1.0, 0.5)]
    equal = dense[0][..., :1, :, :].clamp(0, 1).expand(dense[0].shape)
    return torch.stack([*constant, equal, (dense[0] * 2).round().clamp(0, 2) / 2])


class EdgeMaker(Maker):
    def _values(self, shape: tuple[int, ...], generator: Any, low: float, high: float) -> Tensor:
        values = super()._values(shape, generator, low, high)
        return at_the_edge(values) if self.dtype.is_floating_point else values


def check_finite(outs: Sequence[Tensor], given: Sequence[Tensor], order: int) -> None:
    """Check that the gradients of outputs are finite, up to an order."""
    if not order:
        return
    generator = torch.Generator().manual_seed(1)
    weights = [torch.rand(out.shape, generator=generator, dtype=out.dtype) for out in outs]
    how: dict[str, Any] = {"create_graph": order > 1, "allow_unused": True, "materialize_grads": True}
    grads = torch.autograd.grad(outs, given, weights, **how)
    assert all(g.isfinite().all() for g in grads), "a gradient is not finite"
    again = [g for g in grads if g.requires_grad]
    check_finite([(g * g).sum() for g in again], given, order - 1 if again else 0)


DIFFERENTIABLE = [
    s
    for spec in SPECS.values()
    for s in spec.samples
    if s.differentiable and not (spec.is_operator and spec.operator.contract is Contract.OUT)
]


@pytest.mark.parametrize("samples", groups(DIFFERENTIABLE, 40))
def test_gradients_of_operators_are_finite(samples: list[Sample]) -> None:
    """Gradients of first and second order, for images and for continuous parameters."""
    for sample in samples:
        dtype = torch.float64 if torch.float64 in sample.dtypes else torch.float32
        maker = EdgeMaker(dtype, batch=(5,), grad=not SPECS[sample.op].is_operator)
        if SPECS[sample.op].is_operator:
            call = sample.checked(maker)
            function, given = leaves(call, call.differentiable)
        else:
            function, tensors = call_of(sample, maker)
            given = tuple(t.detach().requires_grad_(t.requires_grad) for t in tensors)
        live = [t for t in given if t.requires_grad]
        outs = [out for out in several(function(*given)) if out.requires_grad]
        try:
            check_finite(outs, live, 2 if outs else 0)
        except AssertionError as error:
            raise AssertionError(f"{sample}: {error}") from None


def transforms(per_sample: bool) -> Iterator[tuple[str, Any]]:
    for row in (*CASES, *ROWS):
        more = {"per_sample": True} if per_sample else {}
        try:
            made = row.make(ours, **more) if row in CASES else row.make(**more)  # type: ignore[arg-type]
        except (TypeError, ValueError):  # it has no draws of its own for each image
            continue
        if isinstance(getattr(made, "p", None), float):
            made.p = 1.0
        yield str(row), made


@pytest.mark.parametrize("per_sample", [False, True])
def test_gradients_of_transforms_are_finite(per_sample: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(1, 3, 32, 32, generator=generator)
    count = 0
    for name, transform in transforms(per_sample):
        image = at_the_edge(dense).requires_grad_()
        torch.manual_seed(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out = transform(image)
        except (NotImplementedError, TypeError):  # sizes that differ, boxes that are missing
            continue
        outs = [o for o in tree_leaves(out) if isinstance(o, Tensor) and o.requires_grad]
        count += 1
        try:
            check_finite(outs, [image], 1)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    assert count > 80, count
