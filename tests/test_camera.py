"""Cameras, flows, disparities and normals follow: checked by projected points and by the pixels."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from added_cases import ROWS
from test_modes import every_transform
from torch import Tensor
from torch._dynamo.testing import CompileCounter
from torch.utils.data import DataLoader
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2
from transform_cases import CASES, picture

import imgops
from imgops import transforms as ours
from imgops.transforms._core import projections, torchvision_private
from imgops.transforms.annotations import Camera, Disparity, Flow, Normals

HEIGHT = WIDTH = 48
BILINEAR = InterpolationMode.BILINEAR


def places(height: int, width: int) -> Tensor:
    """Return the positions of the centers of all pixels, x and y, and where the image is."""
    x = (torch.arange(width) + 0.5).expand(height, width)
    y = (torch.arange(height) + 0.5)[:, None].expand(height, width)
    return torch.stack([x, y, torch.ones(height, width)])


def known_flow(places: Tensor) -> Tensor:
    """Return a flow (x, y) that is linear in the position, which no interpolation changes."""
    x, y = places[..., 0, :, :], places[..., 1, :, :]
    return torch.stack([3 + 0.05 * x - 0.1 * y, -2 + 0.08 * x + 0.04 * y], -3)


def known_disparity(places: Tensor) -> Tensor:
    x, y = places[..., 0, :, :], places[..., 1, :, :]
    return (2 + 0.05 * x - 0.03 * y).unsqueeze(-3)


def known_normals(places: Tensor) -> Tensor:
    """Return normals that turn slowly from one pixel to the next."""
    x, y = places[..., 0, :, :], places[..., 1, :, :]
    raw = torch.stack([0.5 - 0.01 * x, 0.008 * y - 0.3, 0.004 * x - 1], -3)
    return torch.nn.functional.normalize(raw, dim=-3)


def fields(maps: int, image: Tensor) -> dict[str, Any]:
    """Return what an image of positions has, of the classes that follow a kind of map."""
    out: dict[str, Any] = {}
    if maps <= projections.KEEPS_ROWS:
        out["disparity"] = Disparity(known_disparity(plain(image)))
    if maps <= projections.AFFINE:
        out["normals"] = Normals(known_normals(plain(image)))
    return out


def turn_of(matrix: Tensor) -> Tensor:
    """Return how a camera with square pixels must turn, so that its image is mapped by an affine matrix.

    The new intrinsic matrix times the turn is the matrix times the old one: NumPy's QR of the flipped
    transpose is that RQ decomposition, with signs that make the diagonal of the intrinsic matrix positive.
    """
    camera = np.array([[50.0, 0, 20], [0, 50, 31], [0, 0, 1]])
    q, r = np.linalg.qr((matrix.numpy() @ camera)[::-1].T)
    triangle, turn = r.T[::-1, ::-1], q.T[::-1]
    signs = np.sign(np.diag(triangle))
    assert np.allclose(np.tril(triangle, -1), 0)
    return torch.from_numpy(signs[:, None] * turn)


def intrinsics(seed: int = 0) -> Tensor:
    values = torch.rand(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    fx, fy, x, y, skew = (
        values * torch.tensor([9.0, 9, 4, 4, 1]) + torch.tensor([30.0, 40, 20, 22, 0])
    ).tolist()
    return torch.tensor([[fx, skew, x], [0, fy, y], [0, 0, 1]], dtype=torch.float64)


def scene(seed: int = 1) -> Tensor:
    """Return points (X, Y, Z) in front of the camera, ``(n, 3)``, inside and outside of the image."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(9, 3, generator=generator, dtype=torch.float64) + torch.tensor([-0.5, -0.5, 1])


def project(camera: Tensor, points: Tensor) -> Tensor:
    u = points @ camera.mT
    return u[..., :2] / u[..., 2:]


def sample(height: int = HEIGHT, width: int = WIDTH, seed: int = 0, offset: float = 0.0) -> dict[str, Any]:
    """Return an image whose values are positions, a camera, what it sees, and a flow to the same image."""
    camera, image = intrinsics(seed), places(height, width)
    canvas = {"canvas_size": (height, width)}
    return {
        "image": tv_tensors.Image(image),
        "points": tv_tensors.KeyPoints(project(camera, scene()) - offset, **canvas),
        "camera": Camera(camera, **canvas),
        "flow": Flow(known_flow(image)),
    }


def plain(value: Tensor) -> Tensor:
    return value.detach().as_subclass(Tensor)


def check(out: dict[str, Any], before: Tensor, offset: float = 0.0) -> None:
    """Compare a moved camera and a moved flow with the keypoints and the pixels that have moved with them."""
    image, camera, flow = (plain(out[name]) for name in ("image", "camera", "flow"))
    height, width = image.shape[-2:]
    assert out["camera"].canvas_size == (height, width)
    assert type(out["camera"]) is Camera and type(out["flow"]) is Flow and flow.shape[-2:] == (height, width)
    if "points" in out:
        points = plain(out["points"]) + offset
        assert torch.allclose(project(camera, scene()), points, rtol=0, atol=2e-4)
    # Where a pixel of the output comes from, by the camera and by the image itself.
    matrix = camera @ before.inverse()
    centers = places(height, width).double()
    back = (matrix.inverse() @ centers.flatten(1)).unflatten(1, (height, width))
    source = back[:2] / back[2]
    inside = ((source > 2.5) & (source < torch.tensor([WIDTH, HEIGHT])[:, None, None] - 2.5)).all(0)
    inside &= torch.nn.functional.pad(torch.ones(height - 4, width - 4, dtype=torch.bool), (2,) * 4)
    inside &= image[2] > 0.9999  # not cut off by the first of several steps
    assert inside.sum() > 50
    far = (image[:2] - source).abs()[:, inside]
    # PIL's weights for a smaller image, and OpenCV's fractions of 1/32, are not those of a ramp to the last bit.
    assert far.max() < 0.2 and far.mean() < 0.06
    shift = (image[:2] - source)[:, inside].mean(1).abs().max()
    assert shift < 0.01
    # The flow leads to the pixel of the same scene, where the second image shows a place that is known, too.
    target = centers[:2] + flow
    where = torch.cat([source + known_flow(source), torch.ones(1, height, width)]).double()
    wanted = (matrix @ where.flatten(1)).unflatten(1, (height, width))
    missed = (target - wanted[:2] / wanted[2]).abs()[:, inside]
    assert missed.max() < 0.02
    if "disparity" in out:
        there = torch.cat(
            [source - known_disparity(source) * torch.tensor([1.0, 0])[:, None, None], where[2:]]
        )
        other = (matrix @ there.double().flatten(1)).unflatten(1, (height, width))
        wanted = centers[:2] - other[:2]
        assert wanted[1].abs().max() < 1e-9  # still in the same row
        disparity = out["disparity"]
        assert type(disparity) is Disparity and disparity.shape == (1, height, width)
        assert (plain(disparity) - wanted[:1]).abs()[:, inside].max() < 0.02
    if "normals" in out:
        assert type(out["normals"]) is Normals
        normals = plain(out["normals"])[:, inside]
        wanted = turn_of(matrix) @ known_normals(source)[:, inside]
        assert (normals - wanted).abs().max() < 0.02 and (normals.norm(dim=0) - 1).abs().max() < 1e-5


def bilinear(transform: Any) -> Any:
    if hasattr(transform, "interpolation"):
        transform.interpolation = BILINEAR
    return transform


def moving() -> list[Any]:
    """Return all transforms of the tables that move the pixels of one image by one matrix."""
    cases = [c.make(ours) for c in CASES if not c.boxes] + [r.make() for r in ROWS]
    found = [t for t in cases if t._moves and t._kind_of_map < projections.OTHER]
    for t in found:
        if hasattr(t, "p"):
            t.p = 1.0
    return [bilinear(t) for t in found]


def offset_of(transform: Any) -> float:
    """Return 0.5 for torchvision's flips, which take the centers of pixels in keypoints to be whole numbers."""
    return 0.5 if isinstance(transform, (v2.RandomHorizontalFlip, v2.RandomVerticalFlip)) else 0.0


def test_cameras_and_flows_follow_as_points_and_pixels_do() -> None:
    names = set()
    for transform in moving():
        offset, name = offset_of(transform), type(transform).__name__
        if "Dropout" in name:
            continue
        for seed in range(3):
            given = sample(seed=seed, offset=offset)
            if getattr(transform, "padding_mode", "constant") != "constant":
                del given["points"]  # torchvision refuses them, because they would be repeated
            given |= fields(transform._kind_of_map, given["image"])
            torch.manual_seed(seed)
            check(transform(given), intrinsics(seed), offset)
        names.add(name)
    boxed = ours.RandomIoUCrop()
    given = sample() | {
        "boxes": tv_tensors.BoundingBoxes([[9, 9, 40, 40]], format="XYXY", canvas_size=(48, 48))
    }
    for seed in range(6):
        torch.manual_seed(seed)
        check(boxed(given), intrinsics())
    geometry = {n for n in {*ours.OURS, *ours.ADDED} if getattr(getattr(ours, n), "_moves", False)}
    assert names | {"RandomIoUCrop", "CoarseDropout", "GridDropout", "PixelDropout"} == {
        n for n in geometry if getattr(ours, n)._kind_of_map is not projections.OTHER
    }


def batch(count: int, offset: float = 0.0) -> dict[str, Any]:
    """Return several samples in one: images, cameras, points and flows with a batch dimension."""
    each, canvas = [sample(seed=i, offset=offset) for i in range(count)], {"canvas_size": (HEIGHT, WIDTH)}
    joined = {name: torch.stack([plain(x[name]) for x in each]) for name in each[0]}
    return {
        "image": tv_tensors.Image(joined["image"]),
        "points": tv_tensors.KeyPoints(joined["points"], **canvas),
        "camera": Camera(joined["camera"], **canvas),
        "flow": Flow(joined["flow"]),
    }


def check_batch(out: dict[str, Any], offset: float = 0.0) -> None:
    canvas = {"canvas_size": out["camera"].canvas_size}
    for i in range(len(out["image"])):
        image, points, camera, flow = (out[name][i] for name in ("image", "points", "camera", "flow"))
        own = {
            n: k(plain(out[n])[i]) for n, k in (("disparity", Disparity), ("normals", Normals)) if n in out
        }
        kinds = {"points": tv_tensors.KeyPoints(points, **canvas), "camera": Camera(camera, **canvas)}
        check({"image": image, "flow": Flow(plain(flow)), **kinds, **own}, intrinsics(i), offset)


def test_samples_with_parameters_of_their_own() -> None:
    """A batch, a list of annotations, views of each sample, and a pipeline with steps that may be left out."""
    checked = set()
    for transform in moving():
        if not getattr(type(transform), "_has_own_forward", True) or not hasattr(transform, "per_sample"):
            continue
        if "Dropout" in type(transform).__name__ or transform._out_size(HEIGHT, WIDTH) is None:
            continue
        if getattr(transform, "padding_mode", "constant") != "constant":
            continue
        transform.per_sample, offset = True, offset_of(transform)
        given = batch(3, offset)
        given["each"] = [Camera(x, canvas_size=(HEIGHT, WIDTH)) for x in plain(given["camera"])]
        given["flows"] = [Flow(x) for x in plain(given["flow"])]
        given |= fields(transform._kind_of_map, given["image"])
        given["views"] = Camera(
            plain(given["camera"])[:, None].expand(3, 2, 3, 3), canvas_size=(HEIGHT, WIDTH)
        )
        torch.manual_seed(2)
        out = transform(given)
        check_batch(out, offset)
        assert torch.allclose(torch.stack(out["each"]), plain(out["camera"]), 1e-12)
        assert torch.allclose(torch.stack(out["flows"]), plain(out["flow"]), 1e-6)
        assert torch.equal(plain(out["views"])[:, 1], plain(out["camera"]))
        checked.add(type(transform).__name__)
    names = ("Affine", "Crop", "HorizontalFlip", "Perspective", "ResizedCrop", "Rotate90", "Rotation")
    assert checked == {f"Random{name}" for name in (*names, "Transpose", "VerticalFlip")}
    pipeline = ours.Compose(
        [
            ours.RandomApply([ours.RandomAffine(30, interpolation=BILINEAR)], 0.5),
            ours.RandomChoice([ours.RandomRotation(30, interpolation=BILINEAR), ours.RandomTranspose(0.5)]),
            ours.RandomPerspective(0.3, 0.5),
            ours.ColorJitter(hue=0.1),
            ours.RandomResizedCrop(40, (0.5, 1.0)),
        ],
        per_sample=True,
    )
    given = batch(4)
    out = pipeline(given)
    for i in range(4):  # the colors of the images are no positions any more
        points, camera = plain(out["points"])[i], plain(out["camera"])[i]
        assert torch.allclose(project(camera, scene()), points, rtol=0, atol=2e-4)
    with pytest.raises(ValueError, match=r"RandomCrop: Camera must be a batch of 4 .* got shape"):
        ours.RandomCrop(20, per_sample=True)({**batch(4), "camera": sample()["camera"]})


GRAPHS: dict[str, Any] = {
    "fixed": lambda: ours.Compose([ours.CenterCrop((40, 44)), ours.Resize((30, 36)), ours.Pad([1, 2, 3, 4])]),
    "fitted": lambda: ours.Compose([ours.LetterBox((30, 60)), ours.PadIfNeeded(64)]),
    "drawn": lambda: ours.Compose([ours.RandomCrop(40, padding=2), ours.RandomResizedCrop(32, (0.5, 1.0))]),
    "flips": lambda: ours.Compose([ours.RandomHorizontalFlip(), ours.RandomVerticalFlip()]),
    "warps": lambda: ours.Compose(
        [
            ours.RandomAffine(30, (0.1, 0.1), (0.9, 1.2), 9, interpolation=BILINEAR),
            ours.RandomRotation(30, interpolation=BILINEAR),
        ]
    ),
    "perspective": lambda: ours.Compose([ours.RandomPerspective(0.3, 1.0), ours.RandomTranspose(0.5)]),
    "turns": lambda: ours.Compose([ours.RandomRotate90(0.8)]),
}


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_one_graph(name: str, per_sample: bool) -> None:
    if per_sample and name in ("fixed", "fitted"):
        return
    transform = GRAPHS[name]()
    if per_sample:
        transform.per_sample = True
    offset = 0.5 if name == "flips" else 0.0
    maps = max(t._kind_of_map for t in transform.transforms)
    graphs = CompileCounter()
    compiled = torch.compile(lambda x: transform(x), fullgraph=True, backend=graphs)
    for seed in range(3):
        torch.manual_seed(seed)
        if per_sample:
            given = batch(3, offset)
            out = compiled(given | fields(maps, given["image"]))
            check_batch(out, offset)
        else:
            given = sample(seed=seed, offset=offset)
            out = compiled(given | fields(maps, given["image"]))
            check(out, intrinsics(seed), offset)
    assert graphs.frame_count == 1


def test_what_is_not_one_matrix_refuses() -> None:
    """No transform leaves a camera or a field behind in silence: it follows, or nothing moves, or it refuses."""
    kept, refused = set(), set()
    for name, transform in every_transform().items():
        moves = getattr(transform, "_moves", False) and transform._kind_of_map < projections.OTHER
        if moves or hasattr(transform, "transforms") or name in ("Lambda", "ToPureTensor"):
            continue
        for kind in ("camera", "flow"):
            image = torch.rand(3, 40, 40) if name == "Normalize" else picture(torch.uint8, 40, 40)
            given = sample()[kind]
            if getattr(transform, "_kind_of_map", 0) < projections.OTHER:
                out = transform(image, given)[1]
                assert torch.equal(plain(out), plain(given)) and type(out) is type(given)
                kept.add(name)
                continue
            refused.add(name)
            with pytest.raises(NotImplementedError) as raised:
                transform(image, given)
            text = "inputs must not be a Camera or a Flow, because the transform is not one projective map"
            assert text in str(raised.value) and str(raised.value).endswith(f"got {kind.capitalize()}")
    distortions = {"ElasticTransform", "RandomElastic", "RandomGridDistortion", "RandomOpticalDistortion"}
    policies = {"AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix"}
    assert refused >= {*distortions, *policies, "RandomThinPlateSpline", "FiveCrop", "TenCrop"}
    assert kept >= {"ColorJitter", "GaussianBlur", "RandomErasing", "ToDtype", "Normalize"}
    for joining in (ours.MixUp(num_classes=3), ours.CutMix(num_classes=3)):
        with pytest.raises(NotImplementedError, match="got Flow"):
            joining(torch.rand(4, 3, 48, 48), torch.arange(4) % 3, batch(4)["flow"])
    with pytest.raises(NotImplementedError, match=r"Mosaic: inputs .* got Camera"):
        ours.Mosaic(32)([(torch.rand(3, 48, 48), sample()["camera"]) for _ in range(4)])
    sizes = imgops.PackedImages.of([torch.zeros(3, 40, 40, dtype=torch.uint8)] * 2)
    with pytest.raises(TypeError, match="got Camera"):
        ours.RandomResizedCrop(20, per_sample=True)(sizes, sample()["camera"])


def test_a_map_that_is_too_general_is_refused_always() -> None:
    """A disparity needs rows that stay rows, normals an affine map: also if the draw would happen to suit."""
    image, counts = places(48, 48), {"disparity": 0, "normals": 0}
    reasons = {
        "disparity": "inputs must not be a Disparity, because the transform does not keep the rows of the image",
        "normals": "inputs must not be Normals, because the transform is not one affine map of the image",
    }
    given = fields(projections.KEEPS_ROWS, image)
    rows = [ours.RandomAffine(0, shear=(0, 0, 1, 2)), ours.RandomAffine((0, 0), (0.1, 0.1), (0.5, 2), 9)]
    for transform in [*moving(), *rows]:
        limits = {"disparity": projections.KEEPS_ROWS, "normals": projections.AFFINE}
        for name, most in limits.items():
            if transform._kind_of_map <= most:
                continue
            if hasattr(transform, "p"):
                transform.p = 0.0
            counts[name] += 1
            for call in (transform, torch.compile(transform, backend="eager")):
                with pytest.raises(NotImplementedError) as raised:
                    call(tv_tensors.Image(image), given[name])
                assert f"{type(transform).__name__}: {reasons[name]}, got" in str(raised.value)
    assert counts["disparity"] >= 6 and counts["normals"] >= 1
    assert rows[0]._kind_of_map == projections.AFFINE and rows[1]._kind_of_map == projections.KEEPS_ROWS
    for policy in (ours.RandAugment(), ours.ElasticTransform()):
        for name, reason in reasons.items():
            with pytest.raises(NotImplementedError, match=reason):
                policy(image, given[name])


def test_the_classes_are_tv_tensors() -> None:
    camera, flow = (sample()[name] for name in ("camera", "flow"))
    for made in (
        copy.deepcopy(camera),
        pickle.loads(pickle.dumps(camera)),
        camera.clone(),
        camera.to(torch.float64),
        camera.detach(),
        Camera.wrap(plain(camera), camera),
        ours.ToDtype({Camera: torch.float64, "others": None})(camera),
    ):
        assert (
            type(made) is Camera and made.canvas_size == (48, 48) and torch.equal(plain(made), plain(camera))
        )
    assert type(camera + 1) is Tensor and "canvas_size=(48, 48)" in repr(camera)
    assert type(copy.deepcopy(flow)) is type(pickle.loads(pickle.dumps(flow))) is Flow
    data = [{"camera": camera, "flow": flow}] * 4
    for workers in (0, 2):
        (loaded,) = DataLoader(data, batch_size=4, num_workers=workers)
        again = Camera(loaded["camera"], canvas_size=(48, 48))  # default_collate makes tensors of tv_tensors
        assert again.shape == (4, 3, 3) and Flow(loaded["flow"]).shape == (4, 2, 48, 48)
    for call, error, text in (
        (
            lambda: Camera([[1, 0, 0], [0, 1, 0], [0, 0, 1]], canvas_size=(2, 2)),
            TypeError,
            "Camera: data must be floating point",
        ),
        (
            lambda: Camera([1.0], canvas_size=(2, 2)),
            ValueError,
            "Camera: data must have the shape (..., 3, 3), got (1,)",
        ),
        (
            lambda: Flow(torch.ones(3, 4, 5)),
            ValueError,
            "Flow: data must have the shape (..., 2, H, W), got (3, 4, 5)",
        ),
        (
            lambda: Flow(torch.ones(2, 4, 5, dtype=torch.int64)),
            TypeError,
            "Flow: data must be floating point",
        ),
        (
            lambda: Disparity(torch.ones(4, 5)),
            ValueError,
            "Disparity: data must have the shape (..., 1, H, W), got (4, 5)",
        ),
        (
            lambda: Normals(torch.ones(2, 1, 4, 5)),
            ValueError,
            "Normals: data must have the shape (..., 3, H, W), got (2, 1, 4, 5)",
        ),
    ):
        with pytest.raises(error) as raised:
            call()
        assert text in str(raised.value)
    with pytest.raises(TypeError):  # as torchvision's functionals do for unknown classes
        ours.functional.hflip(camera)


def test_fills_of_flows_are_zero_unless_they_are_named() -> None:
    flow = Flow(torch.ones(2, 8, 8))
    for mode in ("constant", "edge", "reflect"):
        out = ours.Pad(2, fill=9, padding_mode=mode)(flow)
        assert out.sum() == 2 * 64 and out[:, 2:-2, 2:-2].eq(1).all()
    assert ours.Pad(2, fill={Flow: 9, "others": 3})(flow)[0, 0, 0] == 9
    for kind in (Disparity, Normals):
        values = kind(torch.ones(1 if kind is Disparity else 3, 8, 8))
        assert ours.Pad(2, fill=9, padding_mode="edge")(values)[:, :2].eq(0).all()
        assert ours.Pad(2, fill={kind: 9, "others": 3})(values)[:, :2].eq(9).all()
    box = ours.LetterBox((8, 16), fill=9)(flow)
    assert box.sum() == 2 * 64
    turned = ours.RandomAffine((45, 45), fill=9)(torch.ones(1, 8, 8), flow)[1]
    assert turned[0, 0, 0] == 0
    # The fill is not turned or scaled with the vectors: every transform that fills, at the pixels of a mask.
    filled = set()
    for transform in moving():
        if not hasattr(transform, "_fill") or "Dropout" in type(transform).__name__:
            continue
        given = (tv_tensors.Image(torch.ones(1, 48, 40)), Flow(known_flow(places(48, 40))))
        found = []
        for fill in (0.0, [70.0, -3.0], float("inf"), float("nan")):
            torchvision_private.set_fill(transform, {Flow: fill, "others": 0})
            torch.manual_seed(3)
            found.append([plain(x) for x in transform(*given)])
            torch._dynamo.reset()
            if fill == [70.0, -3.0] and "Affine" in type(transform).__name__:
                torch.manual_seed(3)
                compiled = torch.compile(transform, fullgraph=True, backend="aot_eager")(*given)
                assert torch.equal(plain(compiled[1]), found[-1][1])
        (shown, zero), *others = found
        hidden = shown[0] == 0
        if not hidden.any():
            continue
        filled.add(type(transform).__name__)
        for (_, out), color in zip(
            others, ([70.0, -3.0], [float("inf")] * 2, [float("nan")] * 2), strict=True
        ):
            at_hidden = torch.tensor(color)[:, None].expand(2, int(hidden.sum()))
            torch.testing.assert_close(out[:, hidden], at_hidden, rtol=0, atol=0, equal_nan=True)
            assert torch.equal(out[:, shown[0] > 0.9999], zero[:, shown[0] > 0.9999]), transform
        edge = (shown[0] > 0.01) & (shown[0] < 0.99)
        wanted = zero + torch.tensor([70.0, -3.0])[:, None, None] * (1 - shown)
        torch.testing.assert_close(others[0][1][:, edge], wanted[:, edge], rtol=1e-4, atol=1e-4)
    assert {"RandomAffine", "RandomPerspective", "RandomRotation", "LetterBox", "Pad"} <= filled
    normals = Normals(torch.tensor([1.0, 0, 0])[:, None, None].expand(3, 8, 8))
    turned = ours.RandomAffine((45, 45), fill={Normals: (0, 0.6, -0.8), "others": 0})(normals)
    assert torch.equal(plain(turned)[:, 0, 0], torch.tensor([0, 0.6, -0.8]))
    box = ours.LetterBox((16, 8), fill={Disparity: 5, "others": 0})(Disparity(torch.ones(1, 16, 16)))
    assert plain(box)[0, 0, 0] == 5 and plain(box)[0, 8, 4] == 0.5
    with pytest.raises(ValueError, match=r"Pad: fill of Flow must have 1 value or 2, got 3"):
        ours.Pad(1, fill={Flow: (1, 2, 3)})(flow)


def test_the_size_of_their_image_is_that_of_the_sample() -> None:
    """Transforms that draw by the size take a camera or a flow alone, and raise if sizes differ."""
    image, alone = tv_tensors.Image(torch.rand(3, 30, 40)), sample(30, 40)
    reads = [
        t for t in moving() if type(t).__name__ in ("RandomAffine", "RandomPerspective", "RandomResizedCrop")
    ]
    reads += [ours.RandomCrop(20), ours.RandomZoomOut(p=1.0)]
    assert len({type(t) for t in reads}) == 5
    for transform in reads:
        torch.manual_seed(4)
        _, camera, flow = transform(image, alone["camera"], alone["flow"])
        for one, wanted in ((alone["camera"], camera), (alone["flow"], flow)):
            torch.manual_seed(4)
            assert torch.equal(plain(transform(one)), plain(wanted)), transform
        for wrong in (Camera(torch.eye(3), canvas_size=(9, 40)), Flow(torch.zeros(2, 30, 9))):
            with pytest.raises(ValueError, match="must have one height and width, got 30 x 40 and"):
                transform(image, wrong)
    for canvas in ("ab", 5, (5,), (5, 6, 7), (5.5, 6), None):
        with pytest.raises(ValueError, match="Camera: canvas_size must have 2 integers, the height and wid"):
            Camera(torch.eye(3), canvas_size=canvas)


def test_dtypes_and_gradients() -> None:
    given = sample()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        camera = Camera(plain(given["camera"]).to(dtype), canvas_size=(48, 48))
        torch.manual_seed(0)
        _, moved, flow = ours.RandomAffine(30, interpolation=BILINEAR)(
            given["image"], camera, Flow(given["flow"].to(dtype))
        )
        assert moved.dtype == flow.dtype == dtype
        exact = (
            torch.manual_seed(0)
            and ours.RandomAffine(30)(given["image"], Camera(camera.double(), canvas_size=(48, 48)))[1]
        )
        assert torch.equal(plain(moved), plain(exact).to(dtype))
    image = torch.rand(3, 9, 9, dtype=torch.float64)
    for transform in (ours.RandomPerspective(0.3, 1.0), ours.RandomRotation(30, interpolation=BILINEAR)):

        def move(k: Tensor, f: Tensor, transform: Any = transform) -> tuple[Tensor, Tensor]:
            torch.manual_seed(1)
            out = transform(tv_tensors.Image(image), Camera(k, canvas_size=(9, 9)), Flow(f))
            return out[1].as_subclass(Tensor), out[2].as_subclass(Tensor)

        values = intrinsics().requires_grad_(), torch.rand(2, 9, 9, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(move, values) and torch.autograd.gradgradcheck(move, values)

    def shrink(n: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
        moved = ours.Resize((5, 4))(Normals(n), Disparity(d))
        return moved[0].as_subclass(Tensor), moved[1].as_subclass(Tensor)

    normals = torch.randn(3, 9, 9, dtype=torch.float64)
    normals[:, :4, :4] = 0  # not known: normalized pixels of zeros must have finite gradients
    values = normals.requires_grad_(), torch.rand(1, 9, 9, dtype=torch.float64).requires_grad_()
    out = shrink(*values)
    grads = torch.autograd.grad([x.sum() for x in out], values)
    assert all(g.isfinite().all() for g in grads) and out[0][:, 0, 0].eq(0).all()
    values = torch.randn(3, 9, 9, dtype=torch.float64).requires_grad_(), values[1]
    assert torch.autograd.gradcheck(shrink, values) and torch.autograd.gradgradcheck(shrink, values)
    empty = ours.Resize(5)(Camera(torch.zeros(0, 3, 3), canvas_size=(9, 9)), Flow(torch.zeros(0, 2, 9, 9)))
    assert empty[0].shape == (0, 3, 3) and empty[1].shape == (0, 2, 5, 5)


def test_normals_keep_their_bits_where_no_axis_turns() -> None:
    normals = torch.nn.functional.normalize(torch.randn(3, 48, 48), dim=-3) * 1.25  # no length is corrected
    for transform in (ours.CenterCrop(20), ours.Pad(3), ours.Resize(24, InterpolationMode.NEAREST)):
        assert torch.equal(plain(transform(Normals(normals))), transform(normals))
    flipped = plain(ours.RandomHorizontalFlip(1.0)(Normals(normals)))
    assert torch.equal(flipped, normals.flip(-1) * torch.tensor([-1.0, 1, 1])[:, None, None])
    half = ours.Resize((24, 24))(Normals(normals.half()))
    assert half.dtype == torch.float16 and (plain(half).float().norm(dim=0) - 1).abs().max() < 2e-3
