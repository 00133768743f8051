"""Values at the edge: gradients at black, white and gray pixels; inputs of two sizes."""

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
from torchvision import tv_tensors
from torchvision.transforms import v2
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


def applied(transform: Any) -> Any:
    """Return a transform that no draw leaves out."""
    if isinstance(getattr(transform, "p", None), float):
        transform.p = 1.0
    return transform


def transforms(per_sample: bool, rows: Sequence[Any] = (*CASES, *ROWS)) -> Iterator[tuple[Any, Any]]:
    """Yield rows of the tables with their transforms; per sample, those that draw for each image."""
    more = {"per_sample": True} if per_sample else {}
    for row in rows:
        if row.draws if row in CASES else (row.per_sample or not per_sample):
            yield row, applied(row.make(ours, **more) if row in CASES else row.make(**more))


@pytest.mark.parametrize("per_sample", [False, True])
def test_gradients_of_transforms_are_finite(per_sample: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(1, 3, 32, 32, generator=generator)
    count = 0
    for row, transform in transforms(per_sample):
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
            raise AssertionError(f"{row}: {error}") from None
    assert count > 80, count


def of_two_sizes(*batch: int) -> tuple[Tensor, Tensor]:
    """Return an image, and a mask of half its sides with one object in the middle."""
    mask = torch.zeros(*batch, 1, 100, 130)
    mask[..., 40:60, 50:75] = 1
    return tv_tensors.Image(torch.zeros(*batch, 3, 200, 260, dtype=torch.uint8)), tv_tensors.Mask(mask)


ONE_SIZE = "the inputs of a call must have one height and width, got 200 x 260 and 100 x 130"


@pytest.mark.parametrize("mode", ["eager", "compiled", "per sample"])
def test_inputs_of_two_sizes_are_refused_where_torchvision_refuses_them(mode: str) -> None:
    """In each mode, because the numbers that these transforms draw count pixels."""
    refused = set()
    batch = (2,) if mode == "per sample" else ()
    for case, transform in transforms(mode == "per sample", CASES):
        try:
            applied(case.make(v2))(*of_two_sizes())
            continue
        except (TypeError, ValueError) as error:
            if "multiple HxW" not in str(error):
                continue
        call = torch.compile(transform, fullgraph=True, backend="eager") if mode == "compiled" else transform
        with pytest.raises(Exception) as caught:
            call(*of_two_sizes(*batch))
        if "samples of different sizes cannot form a batch" not in str(caught.value):
            assert ONE_SIZE in str(caught.value), case
            refused.add(case.name)
    assert len(refused) == (5 if mode == "per sample" else 8), refused


def test_objects_stay_together_in_inputs_of_two_sizes() -> None:
    """Each transform moves a mask of another size as it moves the keypoints of the image, or refuses it."""
    refused = set()
    holes = [
        (n, getattr(ours, n)(mask_fill=3, p=1.0)) for n in ("CoarseDropout", "GridDropout", "PixelDropout")
    ]
    for row, transform in (*transforms(False, [row for row in ROWS if row.moves]), *holes):
        for seed in range(5):
            image, mask = of_two_sizes()
            points = tv_tensors.KeyPoints([[124.5, 99.5]], canvas_size=(200, 260))
            torch.manual_seed(seed)
            try:
                _, mask, points = transform(image, mask, points)
            except (TypeError, ValueError) as error:
                refused |= {str(row)} if ONE_SIZE in str(error) else set()
                break
            (height, width), (rows, columns) = points.canvas_size, mask.shape[-2:]
            y, x = ((at.double().mean() + 0.5) for at in (mask[0] == 1).nonzero(as_tuple=True))
            moved = torch.stack([x / columns * width, y / rows * height]) - 0.5
            assert (points[0] - moved).abs().max() < 5, f"{row}, seed {seed}: {points} for {moved}"
    assert refused == {"RandomElastic", *(name for name, _ in holes)}
