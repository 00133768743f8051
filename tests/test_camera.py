"""Cameras, flows, disparities and normals: what is refused, fills, sizes, dtypes and gradients.

tests/test_followers.py checks where they go.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode

import imgops
from imgops import transforms as ours
from imgops.transforms._core import projections, torchvision_private
from imgops.transforms.annotations import Camera, Disparity, Flow, Normals
from tests.followers import flow_at, intrinsics, normals_at, plain, positions, raises_each, sample
from tests.test_followers import BACK, bilinear, made
from tests.test_modes import every_transform
from tests.tiers import nightly
from tests.transform_cases import picture, seeded

FIELDS: tuple[tuple[Any, int], ...] = ((Flow, 2), (Disparity, 1), (Normals, 3))
#: The most general map that a class follows, and the reason with which others are refused.
FOLLOWED = {
    "camera": (projections.PROJECTIVE, "a Camera or a Flow, because the transform is not one projective map"),
    "flow": (projections.PROJECTIVE, "a Camera or a Flow, because the transform is not one projective map"),
    "normals": (projections.AFFINE, "Normals, because the transform is not one affine map of the image"),
    "disparity": (
        projections.KEEPS_ROWS,
        "a Disparity, because the transform does not keep the rows of the image",
    ),
}


def eye(*canvas: int) -> Any:
    return Camera(torch.eye(3), canvas_size=canvas)


def test_each_follows_or_stays_or_is_refused() -> None:
    """No transform leaves a camera or a field behind in silence, also if the draw would happen to suit."""
    given, kept, refused = sample((40, 40)), set(), set()
    for name, transform in every_transform().items():
        if hasattr(transform, "transforms") or name in ("Lambda", "ToPureTensor"):
            continue
        image = torch.rand(3, 40, 40) if name == "Normalize" else picture(torch.uint8, 40, 40)
        maps, moves = getattr(transform, "_kind_of_map", 0), getattr(transform, "_moves", False)
        for key, (most, reason) in FOLLOWED.items():
            if maps > most:
                refused.add((name, key))
                with pytest.raises(NotImplementedError) as raised:
                    transform(image, given[key])
                text = str(raised.value)
                assert f"{type(transform).__name__}: inputs must not be {reason}" in text
                assert text.endswith(f"got {type(given[key]).__name__}")
            elif not moves:
                out = transform(image, given[key])[1]
                assert torch.equal(plain(out), plain(given[key])) and type(out) is type(given[key])
                kept.add(name)
    never = (
        *("ElasticTransform", "RandomElastic", "RandomGridDistortion", "RandomOpticalDistortion", "AugMix"),
        *("RandomThinPlateSpline", "AutoAugment", "RandAugment", "TrivialAugmentWide", "FiveCrop", "TenCrop"),
    )
    some = {("RandomPerspective", "normals"), ("RandomRotation", "disparity"), ("RandomAffine", "disparity")}
    assert refused >= {(name, key) for name in never for key in FOLLOWED} | some
    some = {("RandomPerspective", "flow"), ("RandomRotation", "normals"), ("Resize", "disparity")}
    assert not refused & some
    assert kept >= {"ColorJitter", "GaussianBlur", "RandomErasing", "ToDtype", "Normalize"}


def test_refusals_of_several_samples_and_in_a_graph() -> None:
    images, labels = torch.rand(4, 3, 48, 48), torch.arange(4) % 3
    flows, camera = Flow(torch.zeros(4, 2, 48, 48)), eye(48, 48)
    packed = imgops.PackedImages.of([torch.zeros(3, 40, 40, dtype=torch.uint8)] * 2)
    rows = ours.RandomAffine((0, 0), (0.1, 0.1), (0.5, 2), 9), ours.RandomAffine(0, shear=(0, 0, 1, 2))
    assert [t._kind_of_map for t in rows] == [projections.KEEPS_ROWS, projections.AFFINE]
    compiled = torch.compile(rows[1], backend="eager")
    raises_each(
        NotImplementedError,
        (lambda: ours.MixUp(num_classes=3)(images, labels, flows), "got Flow"),
        (lambda: ours.CutMix(num_classes=3)(images, labels, flows), "got Flow"),
        (lambda: ours.Mosaic(32)([(images[0], camera)] * 4), r"Mosaic: inputs .* got Camera"),
        (lambda: compiled(images[0], Disparity(torch.ones(1, 48, 48))), "RandomAffine: .* got Disparity"),
    )
    crop = ours.RandomResizedCrop(20, per_sample=True)
    each = ours.RandomCrop(20, per_sample=True)
    raises_each(TypeError, (lambda: crop(packed, camera), "got Camera"))
    raises_each(
        ValueError, (lambda: each(images, camera), r"RandomCrop: Camera must be a batch of 4 .* got shape")
    )


def test_the_classes_are_tv_tensors() -> None:
    camera, flow = (sample()[name] for name in ("camera", "flow"))
    same = [
        copy.deepcopy(camera),
        pickle.loads(pickle.dumps(camera)),
        camera.clone(),
        camera.to(torch.float64),
    ]
    same += [camera.detach(), Camera.wrap(plain(camera), camera)]
    for one in (*same, ours.ToDtype({Camera: torch.float64, "others": None})(camera)):
        assert type(one) is Camera and one.canvas_size == (48, 48) and torch.equal(plain(one), plain(camera))
    assert type(camera + 1) is Tensor and "canvas_size=(48, 48)" in repr(camera)
    assert type(copy.deepcopy(flow)) is type(pickle.loads(pickle.dumps(flow))) is Flow
    for workers in (0, 2):
        (loaded,) = DataLoader([{"camera": camera, "flow": flow}] * 4, batch_size=4, num_workers=workers)
        again = Camera(loaded["camera"], canvas_size=(48, 48))  # default_collate makes tensors of tv_tensors
        assert again.shape == (4, 3, 3) and Flow(loaded["flow"]).shape == (4, 2, 48, 48)
    shape = r"data must have the shape \(..., "
    whole = torch.ones(2, 4, 5, dtype=torch.int64)
    raises_each(
        ValueError,
        (lambda: Camera([1.0], canvas_size=(2, 2)), rf"Camera: {shape}3, 3\), got \(1,\)"),
        (lambda: Flow(torch.ones(3, 4, 5)), rf"Flow: {shape}2, H, W\), got \(3, 4, 5\)"),
        (lambda: Disparity(torch.ones(4, 5)), rf"Disparity: {shape}1, H, W\), got \(4, 5\)"),
        (lambda: Normals(torch.ones(2, 1, 4, 5)), rf"Normals: {shape}3, H, W\), got \(2, 1, 4, 5\)"),
        *(
            (lambda c=c: eye(*c), "must have 2 integers, the height and wid")
            for c in ("a", (5,), (5, 6, 7), (5.5, 6))
        ),
    )
    raises_each(
        TypeError,
        (lambda: Camera([[1, 0, 0]] * 3, canvas_size=(2, 2)), "Camera: data must be floating point"),
        (lambda: Flow(whole), "Flow: data must be floating point"),
        (lambda: ours.functional.hflip(camera), ""),  # as torchvision's functionals do for unknown classes
    )


# -- fills -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "channels"), FIELDS)
def test_fills_are_zero_unless_they_are_named(kind: Any, channels: int) -> None:
    values = kind(torch.ones(channels, 8, 8))
    for mode in ("constant", "edge", "reflect"):
        out = ours.Pad(2, fill=9, padding_mode=mode)(values)
        assert out.ne(0).sum() == channels * 64 and out[:, 2:-2, 2:-2].eq(1).all()
    named = {kind: 9, "others": 3}
    assert ours.Pad(2, fill=named)(values)[:, :2].eq(9).all()
    assert ours.LetterBox((16, 8), fill=named)(values)[:, 0].eq(9).all()
    assert ours.LetterBox((16, 8), fill=9)(values).ne(0).sum() == channels * 64
    camera = ours.Pad([2, 3, 4, 5], padding_mode="reflect")(eye(8, 8))
    assert camera[:2, 2].tolist() == [2, 3] and camera.canvas_size == (16, 14)
    count = max(channels - 1, 2) if channels != 2 else 3
    wrong = {kind: [1.0] * count, "others": 0}
    with pytest.raises(
        ValueError, match=rf"Pad: fill of {kind.__name__} must have 1 value or {channels}, got {count}"
    ):
        ours.Pad(1, fill=wrong)(values)


FILLING = {c.name: c for c in BACK if hasattr(made(c), "_fill")}.values()


@pytest.mark.parametrize("case", FILLING, ids=str)
def test_the_fill_of_a_flow_is_where_a_mask_shows_nothing(case: Any) -> None:
    """It is not turned or scaled with the vectors, and NaN does not spread to the pixels that show the flow."""
    transform, found = made(case), []
    given = tv_tensors.Image(torch.ones(1, 48, 40)), Flow(flow_at(positions(48, 40)))
    colors = [0.0, 0.0], [70.0, -3.0], [float("inf")] * 2, [float("nan")] * 2
    for color in colors:
        torchvision_private.set_fill(transform, {Flow: color, "others": 0})
        found.append([plain(x) for x in seeded(3, transform, *given)])
    (shown, zero), hidden = found[0], found[0][0][0] == 0
    assert hidden.any() or str(case) in ("RandomCrop", "RandomRotation-right", "RandomRotation-half")
    for (_, out), color in zip(found[1:], colors[1:], strict=True):
        wanted = torch.tensor(color)[:, None].expand(2, int(hidden.sum()))
        torch.testing.assert_close(out[:, hidden], wanted, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(out[:, shown[0] > 0.9999], zero[:, shown[0] > 0.9999])
    edge = (shown[0] > 0.01) & (shown[0] < 0.99)
    wanted = zero + torch.tensor(colors[1])[:, None, None] * (1 - shown)
    torch.testing.assert_close(found[1][1][:, edge], wanted[:, edge], rtol=1e-4, atol=1e-4)


def test_fills_are_not_turned() -> None:
    normals = Normals(torch.tensor([1.0, 0, 0])[:, None, None].expand(3, 8, 8))
    turned = ours.RandomAffine((45, 45), fill={Normals: (0, 0.6, -0.8), "others": 0})(normals)
    assert torch.equal(plain(turned)[:, 0, 0], torch.tensor([0, 0.6, -0.8]))


@nightly
def test_the_fill_of_a_flow_in_a_graph() -> None:
    affine = ours.RandomAffine((20, 20), fill={Flow: [70.0, -3.0], "others": 0})
    given = tv_tensors.Image(torch.ones(1, 48, 40)), Flow(flow_at(positions(48, 40)))
    found, wanted = (seeded(3, f, *given)[1] for f in (torch.compile(affine, backend="eager"), affine))
    assert torch.equal(plain(found), plain(wanted))


# -- sizes, dtypes and gradients ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "transform",
    [
        *(ours.RandomAffine(30, (0.1, 0.2)), ours.RandomPerspective(p=1.0), ours.RandomResizedCrop(24)),
        *(ours.RandomCrop(20), ours.RandomZoomOut(p=1.0)),
    ],
)
def test_the_size_of_their_image_is_that_of_the_sample(transform: Any) -> None:
    """Transforms that draw by the size take a camera or a flow alone, and raise if sizes differ."""
    given = sample((30, 40))
    image, camera, flow = given["image"], given["camera"], given["flow"]
    _, *moved = seeded(4, transform, image, camera, flow)
    for one, wanted in zip((camera, flow), moved, strict=True):
        assert torch.equal(plain(seeded(4, transform, one)), plain(wanted))
    for wrong in (eye(9, 40), Flow(torch.zeros(2, 30, 9))):
        with pytest.raises(ValueError, match="must have one height and width, got 30 x 40 and"):
            transform(image, wrong)


def test_dtypes_and_empty_batches() -> None:
    given, affine = sample(), bilinear(ours.RandomAffine(30))
    exact = seeded(0, affine, given["image"], Camera(plain(given["camera"]).double(), canvas_size=(48, 48)))[
        1
    ]
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        camera = Camera(plain(given["camera"]).to(torch.float64).to(dtype), canvas_size=(48, 48))
        wide = seeded(0, affine, given["image"], Camera(camera.double(), canvas_size=(48, 48)))[1]
        _, moved, flow = seeded(0, affine, given["image"], camera, Flow(given["flow"].to(dtype)))
        assert moved.dtype == flow.dtype == dtype and torch.equal(plain(moved), plain(wide).to(dtype))
    assert torch.equal(plain(exact), plain(wide))
    empty = ours.Resize(5)(Camera(torch.zeros(0, 3, 3), canvas_size=(9, 9)), Flow(torch.zeros(0, 2, 9, 9)))
    assert empty[0].shape == (0, 3, 3) and empty[1].shape == (0, 2, 5, 5)


def check_gradients(call: Any, *values: Tensor) -> None:
    values = tuple(v.double().requires_grad_() for v in values)
    assert torch.autograd.gradcheck(call, values, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, values, fast_mode=True)


@pytest.mark.parametrize("transform", [ours.RandomPerspective(0.3, 1.0), bilinear(ours.RandomRotation(30))])
def test_gradients(transform: Any) -> None:
    image = tv_tensors.Image(torch.rand(3, 9, 9, dtype=torch.float64))

    def move(k: Tensor, f: Tensor) -> list[Tensor]:
        out = seeded(1, transform, image, Camera(k, canvas_size=(9, 9)), Flow(f))
        return [x.as_subclass(Tensor) for x in out[1:]]

    check_gradients(move, intrinsics(), torch.rand(2, 9, 9))


def test_gradients_of_normals() -> None:
    """Normals of length 0 are not known; their gradients are finite, and the others' are those of the formula."""

    def shrink(n: Tensor, d: Tensor) -> list[Tensor]:
        return [x.as_subclass(Tensor) for x in ours.Resize((5, 4))(Normals(n), Disparity(d))]

    values = torch.randn(3, 9, 9), torch.rand(1, 9, 9)
    check_gradients(shrink, *values)
    values[0][:, :4, :4] = 0
    normals = values[0].requires_grad_()
    out = shrink(normals, values[1])[0]
    assert torch.autograd.grad(out.sum(), normals)[0].isfinite().all() and out[:, 0, 0].eq(0).all()


def test_normals_keep_their_bits_where_no_axis_turns() -> None:
    normals = normals_at(positions(48, 48)) * 1.25  # no length is corrected
    for transform in (ours.CenterCrop(20), ours.Pad(3), ours.Resize(24, InterpolationMode.NEAREST)):
        assert torch.equal(plain(transform(Normals(normals))), transform(normals))
    flipped = plain(ours.RandomHorizontalFlip(1.0)(Normals(normals)))
    assert torch.equal(flipped, normals.flip(-1) * torch.tensor([-1.0, 1, 1])[:, None, None])
    half = ours.Resize((24, 24))(Normals(normals.half()))
    assert half.dtype == torch.float16 and (plain(half).float().norm(dim=0) - 1).abs().max() < 2e-3
