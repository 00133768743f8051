"""Values at the edge: gradients at black, white and gray pixels, ranges that are as wide as may be, inputs of two sizes."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops import transforms as ours
from imgops._operator.record import Contract
from imgops.extend.testing._call import leaves, several
from tests.added_cases import ROWS
from tests.checks import bits_equal
from tests.groups import groups
from tests.specs import SPECS, Sample
from tests.specs._maker import Maker
from tests.tiers import every_night, nightly
from tests.transform_cases import CASES, seeded


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


FIRST = [s for s in DIFFERENTIABLE if s is SPECS[s.op].samples[0]]


@pytest.mark.parametrize(
    "samples",
    [*groups(FIRST, 40), *groups((s for s in DIFFERENTIABLE if s not in FIRST), 40, marks=nightly)],
)
def test_gradients_of_operators_are_finite(samples: list[Sample]) -> None:
    """Gradients of first and second order, for images and for continuous parameters."""
    for sample in samples:
        dtype = torch.float64 if torch.float64 in sample.dtypes else torch.float32
        maker = EdgeMaker(dtype, batch=(5,), grad=not SPECS[sample.op].is_operator)
        if SPECS[sample.op].is_operator:
            call = sample.checked(maker)
            function, given = leaves(call, call.differentiable)
        else:
            function, tensors = sample.of_tensors(maker)
            given = tuple(t.detach().requires_grad_(t.requires_grad) for t in tensors)
        live = [t for t in given if t.requires_grad]
        outs = [out for out in several(function(*given)) if out.requires_grad]
        try:
            check_finite(outs, live, 2 if outs else 0)
        except AssertionError as error:
            raise AssertionError(f"{sample}: {error}") from None


@pytest.mark.parametrize("dtype", [torch.float64, *every_night(torch.float32)])
def test_nan_stays_in_its_image(dtype: torch.dtype) -> None:
    """The gradient of another image of the batch is the same."""
    compared = 0
    for sample in DIFFERENTIABLE:
        operator = SPECS[sample.op].operator if SPECS[sample.op].is_operator else None
        if operator is None or operator.contract is not Contract.FUNCTIONAL or dtype not in sample.dtypes:
            continue
        function, given = leaves(call := sample.checked(Maker(dtype, batch=(2,))), call.differentiable)
        image, *others = (t.detach() for t in given)
        if call.differentiable[:1] != call.names[:1] or image.ndim < 4 or not image.numel():
            continue
        found = []
        for value in (0.5, math.nan):
            image[1, ..., image.shape[-2] // 2, image.shape[-1] // 2] = value
            out = function(own := image.clone().requires_grad_(), *others)
            found.append(torch.autograd.grad(out.sum(), own)[0][0] if out.requires_grad else own[0])
        assert bits_equal(*found), sample
        compared += 1
    assert compared > 100


def applied(transform: Any) -> Any:
    """Return a transform that no draw leaves out."""
    if isinstance(getattr(transform, "p", None), float):
        transform.p = 1.0
    return transform


def transforms(per_sample: bool, rows: Sequence[Any] = (*CASES, *ROWS)) -> Iterator[tuple[Any, Any]]:
    """Yield rows of the tables with their transforms, always applied; per sample, those that draw for each image."""
    more = {"per_sample": True} if per_sample else {}
    return ((row, applied(row.make(**more))) for row in rows if row.draws or not per_sample)


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


@pytest.mark.parametrize("mode", ["eager", *every_night("compiled"), "per sample"])
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


#: The widest ranges, or the most extreme numbers, of torchvision's random transforms.
WIDEST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("RandomCrop", {"size": (3, 2), "padding": 5}),
    ("RandomCrop", {"size": 4, "pad_if_needed": True}),
    ("RandomResizedCrop", {"size": 1, "scale": (0.0, 1.0), "ratio": (1e-3, 1e3)}),
    ("RandomResizedCrop", {"size": 5, "scale": (0.0, 100.0), "ratio": (1e-6, 1e6)}),
    ("RandomRotation", {"degrees": (-1e6, 1e6), "interpolation": InterpolationMode.BILINEAR}),
    ("RandomRotation", {"degrees": 360, "expand": True}),
    ("RandomRotation", {"degrees": 45, "center": (1e6, -1e6)}),
    (
        "RandomAffine",
        {"degrees": 180, "translate": (1, 1), "scale": (1e-9, 1e9), "shear": [-90, 90, -90, 90]},
    ),
    ("RandomAffine", {"degrees": 0, "scale": (1e-40, 1e-40), "shear": (90, 90)}),
    ("RandomPerspective", {"distortion_scale": 1.0, "p": 1.0}),
    ("ColorJitter", {"brightness": (0, 1e6), "contrast": (0, 1e6), "saturation": (0, 1e6), "hue": 0.5}),
    (
        "RandomPhotometricDistort",
        {"brightness": (0, 1e6), "contrast": (0, 1e6), "hue": (-0.5, 0.5), "p": 1.0},
    ),
    ("RandomPosterize", {"bits": 0, "p": 1.0}),
    ("RandomSolarize", {"threshold": -1, "p": 1.0}),
    ("RandomAdjustSharpness", {"sharpness_factor": 1e6, "p": 1.0}),
    ("RandomAutocontrast", {"p": 1.0}),
    ("RandomEqualize", {"p": 1.0}),
    ("GaussianBlur", {"kernel_size": (1, 3), "sigma": (1e-9, 1e9)}),
    ("GaussianNoise", {"mean": 1e6, "sigma": 1e6}),
    ("RandomErasing", {"p": 1.0, "scale": (0.0, 1.0), "ratio": (1e-3, 1e3)}),
    ("ElasticTransform", {"alpha": 1e6, "sigma": 0.0}),
    ("RandomZoomOut", {"side_range": (1.0, 20.0), "p": 1.0}),
    ("RandomResize", {"min_size": 1, "max_size": 3}),
    ("RandomShortestSize", {"min_size": [1, 70], "max_size": 71}),
    ("ScaleJitter", {"target_size": (1, 70), "scale_range": (0.01, 3.0)}),
    ("RandAugment", {"num_ops": 4, "magnitude": 30}),
    ("TrivialAugmentWide", {"num_magnitude_bins": 2}),
    ("AugMix", {"severity": 10, "alpha": 1e-3}),
)
SIZES = ((1, 1), (2, 3), (5, 5), (32, 32))


def shape_or_error(transform: Any, image: Tensor) -> Any:
    try:
        out = transform(image)
    except Exception as error:
        return error
    assert not out.is_floating_point() or out.isfinite().all()
    return out.shape


def is_own_error(found: Any) -> bool:
    """Return whether something is an error that names who raises it, and what was given."""
    return isinstance(found, (TypeError, ValueError)) and re.match(r"\w+: .*, got ", str(found)) is not None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "how"), WIDEST)
def test_every_draw_of_the_widest_range_has_a_result(name: str, how: dict[str, Any], whole: bool) -> None:
    """Its shape is torchvision's; where torchvision raises an error, ours names the transform or operator."""
    mine, theirs = getattr(ours, name)(**how), getattr(v2, name)(**how)
    for size in SIZES:
        image = torch.arange(3 * size[0] * size[1], dtype=torch.uint8).reshape(3, *size)
        many = 500 if (name, size) == ("RandomPerspective", (32, 32)) else 40
        for seed in range(many if whole else many // 10):
            found, wanted = (seeded(seed, shape_or_error, t, image) for t in (mine, theirs))
            if isinstance(wanted, Exception):
                assert type(found) is type(wanted) or is_own_error(found) or isinstance(found, torch.Size), (
                    found
                )
            else:
                assert found == wanted, (size, seed)


def widest(cls: type, given: dict[str, Any]) -> Any:
    """Return a transform whose every range is the widest of some numbers that its constructor takes."""

    def made(how: dict[str, Any]) -> Any:
        try:
            return cls(**how)
        except (TypeError, ValueError):
            return None

    how = dict(given)
    for name, parameter in inspect.signature(cls).parameters.items():
        first = parameter.default[0] if isinstance(parameter.default, tuple) else parameter.default
        if type(first) not in (int, float) or name in ("p", "fill"):
            continue
        numbers = (0, 1, 2, 3, 7) if type(first) is int else (-1e3, -1.0, -0.99, 0.0, 1e-9, 0.5, 1.0, 1e3)
        taken = [n for n in numbers if made({**how, name: n}) or made({**how, name: (n, n)})]
        forms = ((taken[0], taken[-1]), taken[-1], how.get(name, parameter.default)) if taken else ()
        how[name] = next((f for f in forms if made({**how, name: f})), parameter.default)
    return applied(cls(**how))


@pytest.mark.filterwarnings("ignore")
def test_every_draw_of_the_widest_range_of_an_added_transform_has_a_result(whole: bool) -> None:
    rows = {row.name: row for row in ROWS}
    for name, row in rows.items():
        transform = widest(getattr(ours, name), row.options)
        for size in SIZES:
            levels = torch.arange(3 * size[0] * size[1], dtype=torch.uint8).reshape(3, *size)
            for image in (levels, levels / 255):
                for seed in range(5 if whole else 1):
                    found = seeded(seed, shape_or_error, transform, image)
                    assert isinstance(found, torch.Size) or is_own_error(found), (
                        transform,
                        size,
                        seed,
                        found,
                    )
