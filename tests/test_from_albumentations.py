"""Pipelines of albumentations 2.0.8, converted: its draws under its seeds, its pixels, masks, boxes, keypoints and labels.

What is wanted is always what albumentations itself returns.
"""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision import tv_tensors
from transform_cases import picture, seeded

from imgops import transforms as ours
from imgops.integrations.albumentations import convert as table
from imgops.integrations.albumentations import host, moves, rules, values
from tests.tiers import every_night, nightly

A = pytest.importorskip("albumentations", "2.0.8")

IMAGE = picture(height=64, width=80)
FRAME = IMAGE.permute(1, 2, 0).contiguous().numpy()


def converted(given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ours.from_albumentations(given)


def pixels(image: Any) -> np.ndarray:
    return image.as_subclass(Tensor).permute(1, 2, 0).numpy()


def equal(found: Any, wanted: Any) -> None:
    """Check that two arrays, or lists of them, are equal to the bit."""
    assert type(found) is type(wanted)
    for a, b in zip(found, wanted, strict=True) if isinstance(found, list) else [(found, wanted)]:
        assert a.dtype == b.dtype and a.shape == b.shape
        assert (a == b).all()


HEIGHT, WIDTH = 61, 83


def _scene() -> np.ndarray:
    """Make a scene that is not square, with odd sides, smooth ramps and textures, so that any wrong turn or motion shows."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    ramps = np.stack([x * 3 % 256, y * 4 % 256, (x * 2 + y) % 256], -1) / 2
    noise = np.random.default_rng(0).uniform(0, 256, (HEIGHT, WIDTH, 3)).astype(np.float32)
    return np.clip(ramps + (cv2.GaussianBlur(noise, (0, 0), 3) - 128) * 4 + 90, 0, 255).astype(np.uint8)


SCENE = _scene()
OTHER = np.ascontiguousarray(SCENE[::-1, ::-1] // 2 + 40)
MASK = (SCENE[..., 0] // 60).astype(np.uint8)
#: Coordinates between whole pixels, because float32 arithmetic cannot decide ties.
BOXES = [
    [10.5, 8.5, 30.5, 25.5],
    [40.5, 20.5, 75.5, 55.5],
    [0, 0, 12.5, 10.5],
    [60.5, 40.5, 83, 61],
    [33.5, 3.5, 37.5, 7.5],
]
POINTS = [[12.0, 9], [50, 30], [5, 50], [80, 3], [41.25, 33.5]]


def composed(*transforms: Any, points: bool = True, **rules: Any) -> Any:
    return A.Compose(
        list(transforms),
        bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"], **rules),
        keypoint_params=A.KeypointParams("xy", label_fields=["tags"]) if points else None,
    )


def theirs(pipeline: Any, **more: Any) -> dict[str, Any]:
    sample = {"image": SCENE, "mask": MASK, "bboxes": BOXES, "labels": list(range(len(BOXES)))}
    if "keypoints" in pipeline.processors:
        sample |= {"keypoints": POINTS, "tags": list(range(len(POINTS)))}
    return pipeline(**(sample | more))


def sample_here(**more: Any) -> dict[str, Any]:
    canvas = (HEIGHT, WIDTH)
    sample = {
        "image": tv_tensors.Image(torch.from_numpy(SCENE).permute(2, 0, 1).contiguous()),
        "mask": tv_tensors.Mask(torch.from_numpy(MASK)),
        "bboxes": tv_tensors.BoundingBoxes(BOXES, format="XYXY", canvas_size=canvas),
        "labels": torch.arange(len(BOXES)),
        "keypoints": tv_tensors.KeyPoints(POINTS, canvas_size=canvas),
        "tags": [str(i) for i in range(len(POINTS))],
    }
    return sample | more


def assert_same(mine: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Check that images, masks, boxes, keypoints and labels are equal."""
    equal(pixels(mine["image"]), wanted["image"])
    if "mask" in wanted:
        equal(mine["mask"].numpy(), wanted["mask"])
    if "bboxes" in wanted:
        assert mine["labels"].tolist() == [int(n) for n in wanted["labels"]]
        boxes = np.array(wanted["bboxes"]).reshape(-1, 4)
        np.testing.assert_allclose(mine["bboxes"].numpy(), boxes, rtol=0, atol=2e-3)
    if "keypoints" in wanted:
        assert mine["tags"] == [str(int(n)) for n in wanted["tags"]]
        points = np.array(wanted["keypoints"]).reshape(-1, 2)
        np.testing.assert_allclose(mine["keypoints"].numpy(), points, rtol=0, atol=2e-3)


def _names() -> list[str]:
    """Return the transforms of albumentations that have counterparts, as the library itself lists them."""
    kinds = {n: getattr(A, n) for n in dir(A) if isinstance(getattr(A, n), type)}
    bases = {"BasicTransform", "DualTransform", "ImageOnlyTransform", "Transform3D"}
    found = {n for n, kind in kinds.items() if issubclass(kind, A.BasicTransform) and n not in bases}
    return sorted(found - set(table.WITHOUT))


OTHER = np.ascontiguousarray(SCENE[::-1, ::-1] // 2 + 40)


def itself(reference: Any) -> Any:
    return reference


def inverted(image: Any, **params: Any) -> Any:
    return 255 - image


REFERENCES = {"reference_images": [OTHER], "read_fn": itself}
#: The metadata without which albumentations does not apply a transform, though it has references.
METADATA = {
    "HistogramMatching": "hm_metadata",
    "FDA": "fda_metadata",
    "PixelDistributionAdaptation": "pda_metadata",
}
#: The required arguments of a transform.
NEEDED: dict[str, dict[str, Any]] = {
    "AtLeastOneBBoxRandomCrop": {"height": 30, "width": 34},
    "CenterCrop": {"height": 40, "width": 51},
    "ConstrainedCoarseDropout": {"mask_indices": [1, 2]},
    "Crop": {"x_min": 1, "y_min": 2, "x_max": 30, "y_max": 41},
    "CropAndPad": {"percent": (-0.1, 0.2)},
    "CropNonEmptyMaskIfExists": {"height": 30, "width": 34},
    **dict.fromkeys(METADATA, REFERENCES),
    "FrequencyMasking": {"freq_mask_range": (5, 20)},
    "FromFloat": {"dtype": "uint8"},
    "GridElasticDeform": {"num_grid_xy": (4, 4), "magnitude": 5},
    "Lambda": {"image": inverted},
    "LongestMaxSize": {"max_size": 50},
    "Pad": {"padding": (3, 5, 2, 1)},
    "PadIfNeeded": {"min_height": 70, "min_width": 90},
    "RandomCrop": {"height": 40, "width": 51},
    "RandomResizedCrop": {"size": (40, 51)},
    "RandomSizedBBoxSafeCrop": {"height": 40, "width": 51},
    "RandomSizedCrop": {"min_max_height": (20, 45), "size": (30, 37)},
    "Resize": {"height": 40, "width": 51},
    "SmallestMaxSize": {"max_size": 50},
    "TimeMasking": {"time_mask_range": (5, 20)},
    "XYMasking": {
        "num_masks_x": (1, 2),
        "num_masks_y": (1, 2),
        "mask_x_length": (3, 9),
        "mask_y_length": (3, 9),
    },
}
#: Further arguments with which a transform computes something else, or changes the size.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "Affine": [
        {
            "rotate": (-70, 70),
            "shear": (-10, 10),
            "translate_percent": (-0.2, 0.1),
            "fill": 7,
            "fill_mask": 3,
        },
        {"scale": (0.6, 1.5), "interpolation": 0, "border_mode": 1, "keep_ratio": True},
        {"rotate": (-40, 40), "fit_output": True},
        {"rotate": (-40, 40), "mask_interpolation": 1, "interpolation": 2, "border_mode": 3},
    ],
    "AutoContrast": [{"method": "pil"}],
    "CenterCrop": [{"height": 70, "width": 51, "pad_if_needed": True, "fill": 9, "fill_mask": 2}],
    "CoarseDropout": [{"fill": "random"}, {"fill": (1, 2, 3), "fill_mask": 4, "num_holes_range": (9, 20)}],
    "ColorJitter": [{"hue": (0, 0)}],
    "CropAndPad": [{"percent": None, "px": (-9, 9), "keep_size": False}],
    "D4": [{}],
    "ElasticTransform": [{"alpha": 300, "sigma": 6}, {"same_dxdy": True, "approximate": True, "alpha": 99}],
    "Equalize": [{"mode": "pil", "by_channels": False}],
    "GaussNoise": [{"per_channel": True, "noise_scale_factor": 0.5}],
    "GridDistortion": [{"distort_limit": 0.5, "num_steps": 3, "normalized": False}],
    "ImageCompression": [{"compression_type": "webp"}],
    "LongestMaxSize": [{"max_size": [30, 50, 99]}, {"max_size": None, "max_size_hw": (100, 90)}]
    + [{"interpolation": 4}, {"area_for_downscale": "image_mask"}],
    "MultiplicativeNoise": [{"elementwise": True}, {"per_channel": True}],
    "OpticalDistortion": [{"distort_limit": (-0.4, 0.4), "mode": "fisheye"}],
    "Pad": [{"padding": 4, "border_mode": 1}, {"padding": 4, "border_mode": 3}],
    "PadIfNeeded": [
        {"min_height": None, "min_width": None, "pad_height_divisor": 16, "pad_width_divisor": 32},
        {"position": "random", "fill": 7},
        {"position": "top_right", "border_mode": 1},
    ],
    "Perspective": [{"scale": (0.05, 0.3), "border_mode": 1}, {"keep_size": False}, {"fit_output": True}],
    "PixelDropout": [{"per_channel": True}, {"drop_value": None, "dropout_prob": 0.3}],
    "RGBShift": [{"r_shift_limit": 99}],
    "RandomBrightnessContrast": [{"brightness_by_max": False, "ensure_safe_range": True}],
    "RandomCrop": [{"height": 70, "width": 51, "pad_if_needed": True, "pad_position": "top_left"}],
    "RandomRain": [{"rain_type": "heavy"}],
    "RandomResizedCrop": [
        {"interpolation": 3},
        {"scale": (0.9, 1), "interpolation": 2},
        {"interpolation": 0},
    ],
    "RandomScale": [{"scale_limit": 0.5, "interpolation": 0}],
    "RandomSnow": [{"method": "texture"}],
    "RandomSunFlare": [{"src_radius": 30, "method": "physics_based"}],
    "Resize": [{"interpolation": 0}, {"interpolation": 3}, {"interpolation": 6}, {"mask_interpolation": 1}],
    "Rotate": [{"crop_border": True}, {"fill": 5, "fill_mask": 1, "rotate_method": "ellipse"}],
    "Sharpen": [{"method": "gaussian"}],
    "Solarize": [{"threshold_range": (0.1, 0.9)}],
    "Spatter": [{"mode": "mud"}],
    "ToGray": [{"method": "pca"}, {"method": "max"}],
    "XYMasking": [{"fill": "random"}],
}


def made(name: str, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # albumentations warns of deprecations
        return getattr(A, name)(**(NEEDED.get(name, {}) | more))


def chance(name: str) -> float:
    return 1.0 if name == "ToTensorV2" else 0.8


def variants(name: str) -> list[dict[str, Any]]:
    return [{}, *VARIANTS.get(name, [])]


NAMES = _names()
#: Those that albumentations does not apply without a mask or boxes.
READS = {name for name in NAMES if host.reads_annotations(made(name))}


@pytest.mark.parametrize("name", NAMES)
def test_each_class(name: str, whole: bool) -> None:
    """Under one seed a class draws and gives what albumentations does, alone and with all that follows an image."""
    for arguments in variants(name):
        if name not in READS:
            given = A.Compose([made(name, p=chance(name), **arguments)], seed=1)
            mine = converted(given)
            for _ in range(12 if whole else 3):
                frame = SCENE / np.float32(255) if name == "FromFloat" else SCENE
                more = {METADATA[name]: [OTHER]} if name in METADATA else {}
                equal(mine(image=frame)["image"], given(image=frame, **more)["image"])
        if name in ("FromFloat", "RandomGridShuffle"):
            continue
        given = A.Compose(
            [made(name, p=chance(name), **arguments)],
            A.BboxParams("pascal_voc", label_fields=["labels"]),
            A.KeypointParams("xy", label_fields=["tags"]),
            seed=2,
        )
        mine = converted(given)
        for _ in range(12 if whole else 3):
            sample = {"image": SCENE, "mask": MASK, "bboxes": BOXES, "labels": list("abcde")}
            sample |= {"keypoints": POINTS, "tags": [5, 6, 7, 8, 9]}
            wanted = given(**sample, **({METADATA[name]: [OTHER]} if name in METADATA else {}))
            assert_called_alike(mine(**sample), wanted)


def assert_called_alike(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Check the results of two calls by keywords; boxes and points come by another route of float arithmetic."""
    assert found.keys() == wanted.keys() - set(METADATA.values())
    for key, value in found.items():
        if key in ("bboxes", "keypoints"):
            assert type(value) is type(wanted[key]) and len(value) == len(wanted[key])
            np.testing.assert_allclose(np.array(value), np.array(wanted[key]), rtol=0, atol=2e-3)
        elif isinstance(value, (np.ndarray, Tensor)) or key == "masks":
            equal(value, wanted[key])
        else:
            assert value == wanted[key], key


#: Transforms of all routes: imgops' own ones, operators, and albumentations' code.
SOME = ["Affine", "CoarseDropout", "ColorJitter", "D4", "GaussNoise", "GridDistortion", "HorizontalFlip"]
SOME += [
    "MaskDropout",
    "MotionBlur",
    "Normalize",
    "RandomBrightnessContrast",
    "RandomResizedCrop",
    "RandomScale",
]


def every_in_the_end(names: list[str]) -> Any:
    """Parametrize by all names before a release, by some in ``make test``."""
    return pytest.mark.parametrize(
        "name", [pytest.param(n, marks=[] if n in SOME else [nightly]) for n in names]
    )


SHAPES = [(61, 83), (61, 83, 1), (7, 90, 3), (1, 1, 3), (64, 64, 3), (33, 2, 1)]


@pytest.mark.parametrize("name", sorted(set(NAMES) - READS))
def test_shapes_and_dtypes(name: str) -> None:
    """What albumentations takes, it gives; where it raises, nothing comes back."""
    for shape in SHAPES:
        for dtype in (np.uint8, np.float32):
            levels = np.random.default_rng(sum(shape)).integers(0, 256, shape).astype(np.uint8)
            frame = levels if dtype is np.uint8 else levels / np.float32(255)
            given = A.Compose([made(name, p=1.0)], seed=3)
            mine = converted(given)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    wanted = given(image=frame, **({METADATA[name]: [OTHER]} if name in METADATA else {}))[
                        "image"
                    ]
                except Exception:
                    continue
                if wanted.ndim < 2 or (name == "FromFloat" and dtype is np.uint8):
                    continue  # one pixel that became a number, or levels that became float16
                found = mine(image=frame)["image"]
            if (
                name == "AutoContrast" and len(shape) == 2
            ):  # its levels depend on the axis of a single channel
                assert np.abs(found.astype(float) - wanted).max() <= 1
                continue
            if name == "Normalize" and dtype is np.float32:
                np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
                continue
            assert found.dtype == wanted.dtype and found.shape == wanted.shape, (shape, dtype)
            np.testing.assert_array_equal(found, wanted)


# -- containers ------------------------------------------------------------------------------------------


def steps() -> list[Any]:
    return [
        A.HorizontalFlip(p=0.5),
        A.RandomBrightnessContrast(p=0.7),
        A.Affine(rotate=30, p=0.6),
        A.Blur(p=0.5),
    ]


PARAMS: dict[str, Any] = {"label_fields": ["labels"], "min_area": 60, "min_visibility": 0.2}
CONTAINERS: dict[str, Callable[[], list[Any]]] = {
    "Compose": lambda: [A.Compose(steps(), p=0.4), *steps()],
    "OneOf": lambda: [A.OneOf(steps(), p=0.8), A.OneOf(steps(), p=1), A.OneOf([A.InvertImg(p=1)], p=0)],
    "OneOrOther": lambda: [A.OneOrOther(A.VerticalFlip(p=0.1), A.Transpose(), p=0.4)],
    "RandomOrder": lambda: [A.RandomOrder(steps(), n=4, p=0.8), A.RandomOrder(steps(), n=2, p=1)],
    "Sequential": lambda: [A.Sequential(steps(), p=0.5), A.OneOf([A.Sequential(steps(), p=0.3), A.CLAHE()])],
    "SomeOf": lambda: [A.SomeOf(steps(), n=2, p=0.8), A.SomeOf(steps(), n=3, replace=True, p=1)],
    "one in another": lambda: [outer([inner() for inner in INNER]) for outer in OUTER],
}
INNER: list[Callable[[], Any]] = [
    *(lambda: A.SomeOf(steps(), n=1, p=0.5), lambda: A.OneOf(steps(), p=0.1)),
    *(lambda: A.OneOrOther(A.VerticalFlip(), A.Transpose(), p=0.4), lambda: A.Sequential(steps(), p=0.7)),
    lambda: A.RandomOrder(steps(), n=2, p=0.6),
]
OUTER: list[Callable[[list[Any]], Any]] = [
    *(lambda t: A.OneOf(t, p=0.9), lambda t: A.SomeOf(t, n=2, p=0.9), lambda t: A.RandomOrder(t, n=2, p=0.9)),
    *(lambda t: A.OneOrOther(t[2], t[4]), lambda t: A.Sequential(t, p=0.9), lambda t: A.Compose(t, p=0.9)),
]


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("p", [1.0, 0.6])
def test_containers(name: str, p: float) -> None:
    given = A.Compose(CONTAINERS[name](), A.BboxParams("pascal_voc", **PARAMS), p=p, seed=5)
    mine = converted(given)
    for _ in range(12):
        sample = {"image": SCENE, "mask": MASK, "bboxes": BOXES, "labels": [1, 2, 3, 4, 5]}
        assert_called_alike(mine(**sample), given(**sample))


def test_containers_on_tensors() -> None:
    given = A.Compose(CONTAINERS["one in another"](), seed=7)
    mine = converted(given)
    for _ in range(12):
        equal(pixels(mine(image=IMAGE)["image"]), given(image=FRAME)["image"])


BOX_STEPS: list[Callable[[], Any]] = [
    *(lambda: A.RandomCrop(40, 50), lambda: A.HorizontalFlip(), lambda: A.LongestMaxSize(57), lambda: A.D4()),
    *(lambda: A.PadIfNeeded(90, 90), lambda: A.RandomResizedCrop((33, 47)), lambda: A.RandomRotate90()),
    *(
        lambda: A.CoarseDropout(p=0.8),
        lambda: A.GridDropout(),
        lambda: A.Erasing(p=0.8),
        lambda: A.RandomScale(),
    ),
    *(lambda: A.CropAndPad(percent=(-0.1, 0.1)), lambda: A.Resize(48, 61), lambda: A.PixelDropout(p=0.3)),
    *(lambda: A.RandomSizedBBoxSafeCrop(40, 40), lambda: A.Pad(7), lambda: A.Transpose(), lambda: A.Blur()),
]


def test_boxes_through_random_pipelines(whole: bool) -> None:
    """Cut edges, whole pixels and shares of them come out alike, whatever the order of the steps."""
    draws = np.random.default_rng(0)
    for number in range(200 if whole else 40):
        chosen = [BOX_STEPS[i]() for i in draws.integers(0, len(BOX_STEPS), draws.integers(1, 6))]
        rules = {"min_area": [0, 60][number % 2], "min_visibility": [0, 0.3][number // 2 % 2]}
        given = A.Compose(chosen, A.BboxParams("pascal_voc", ["labels"], **rules), seed=number)
        mine = converted(given)
        for _ in range(3):
            sample = {"image": SCENE, "mask": MASK, "bboxes": BOXES, "labels": list(range(5))}
            try:
                wanted = given(**sample)
            except Exception:  # the crop is larger than what is left
                with pytest.raises(Exception, match=r"must|rop"):
                    mine(**sample)
                break
            assert_called_alike(mine(**sample), wanted)


# -- draws -------------------------------------------------------------------------------------------------


def test_without_a_seed() -> None:
    """PyTorch's generator decides; the given pipeline, and the generators of the process, are left alone."""
    given = A.Compose([A.HorizontalFlip(), A.GaussNoise(p=0.7), A.OneOf(steps(), p=0.9)])
    states = np.random.get_state()[1].tolist(), given.transforms[1].random_generator.bit_generator.state
    mine = converted(given)
    first = [seeded(seed, mine, IMAGE) for seed in range(8)]
    assert all(torch.equal(a, seeded(seed, mine, IMAGE)) for seed, a in enumerate(first))
    assert len({tuple(a.flatten().tolist()) for a in first}) > 5
    assert states[0] == np.random.get_state()[1].tolist()
    assert states[1] == given.transforms[1].random_generator.bit_generator.state


def test_keys_stand_above_a_seed() -> None:
    mine = converted(A.Compose([A.GaussNoise(p=1), A.RandomRotate90(p=1), A.OneOf(steps(), p=0.9)], seed=3))
    square = IMAGE[:, :, :64].contiguous()
    both = [ours.seeded(mine, (0, name))(square) for name in "ab"]
    mine(square)
    assert not torch.equal(*both)
    assert all(
        torch.equal(ours.seeded(mine, (0, name))(square), x) for name, x in zip("ab", both, strict=True)
    )
    each = ours.seeded(ours.Compose([mine], per_sample=True), [(0, "a"), (0, "b")])(torch.stack([square] * 2))
    assert all(torch.equal(a, b) for a, b in zip(each, both, strict=True))


class Frames(torch.utils.data.Dataset[Tensor]):
    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        return self.transform(IMAGE)


@pytest.mark.parametrize("seed", [None, 4])
def test_workers_draw_differently(seed: int | None) -> None:
    mine = converted(A.Compose([A.GaussNoise(p=1)], seed=seed))
    torch.manual_seed(0)
    found = torch.cat(list(DataLoader(Frames(mine), num_workers=2)))
    assert len({tuple(x.flatten().tolist()) for x in found}) == len(found)


@every_in_the_end(sorted(set(NAMES) - {"FromFloat", "Lambda"}))
@pytest.mark.parametrize("seed", [*every_night(None), 6])
def test_graphs_samples_and_copies(name: str, seed: int | None) -> None:
    """A graph draws what eager mode does, a batch what a loop over it does, and a copy what its original does."""
    resizes = table._changes_size(made(name)) or name in ("Normalize", "ToFloat")
    mine = converted(A.Compose([made(name, p=1.0 if resizes else 0.7)], seed=seed))
    square = torch.from_numpy(SCENE[:60, :60]).permute(2, 0, 1).contiguous()
    here = {"image": tv_tensors.Image(square), "mask": tv_tensors.Mask(square[0] // 60)}
    here |= {"boxes": tv_tensors.BoundingBoxes([[5.0, 6, 40, 50]], format="XYXY", canvas_size=(60, 60))}
    torch.compiler.reset()
    graph = torch.compile(copy.deepcopy(mine), fullgraph=True, backend="aot_eager")
    again, eager = pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine)
    for number in range(3):
        wanted = seeded(number, eager, here)
        for found in (seeded(number, graph, here), seeded(number, again, here)):
            for key, value in wanted.items():
                torch.testing.assert_close(found[key], value, rtol=0, atol=1e-4)
    batch = torch.stack([square, square.flip(-1), 255 - square])
    each, loop = ours.Compose([copy.deepcopy(mine)], per_sample=True), copy.deepcopy(mine)
    if name in READS or host._ResizedByAlbumentations in map(type, mine.transforms):
        with pytest.raises(NotImplementedError, match=f"^{name}: per_sample must be False"):
            each(batch)
        return
    found = seeded(5, each, batch)
    torch.manual_seed(5)
    wanted = torch.stack([loop(x) for x in batch])
    assert torch.equal(found, wanted)


# -- gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*values.OPERATORS, *values.INEXACT} & set(NAMES)))
def test_operators_on_floats(name: str) -> None:
    """With a gradient, floats come within their last bits of what albumentations makes of them."""
    given = A.Compose([made(name, p=1.0)], seed=8)
    mine, again = converted(given), copy.deepcopy(given)
    scene = SCENE.clip(1, 254)  # a power has an infinite gradient at 0
    image = (torch.from_numpy(scene).permute(2, 0, 1) / 255).requires_grad_()
    own = values.INEXACT.get(name) or values.OPERATORS[name]
    params = host.sampled(again.transforms[0], {"image": scene / np.float32(255)})
    if own(image.detach(), again.transforms[0], params) is None:
        with pytest.raises(NotImplementedError, match=f"^{name}: image must not require a gradient"):
            mine(image)
        return
    found = mine(image)
    wanted = given(image=scene / np.float32(255))["image"]
    np.testing.assert_allclose(pixels(found.detach()), wanted, rtol=0, atol=2e-6)
    found.square().sum().backward()
    assert image.grad is not None and image.grad.abs().sum() > 0


def test_what_albumentations_computes_has_no_gradient() -> None:
    image = torch.rand(3, 20, 20).requires_grad_()
    with pytest.raises(NotImplementedError, match=r"^Spatter: image must not require a gradient, as .* got"):
        converted(A.Spatter(p=1))(image)


# -- calls by keywords ----------------------------------------------------------------------------------------


def detection(format: str = "pascal_voc", **more: Any) -> Any:
    return A.Compose([A.HorizontalFlip(p=1), A.RandomCrop(50, 60, p=1)], A.BboxParams(format, **more), seed=1)


CALLS: dict[str, tuple[Callable[[], Any], Callable[[], dict[str, Any]]]] = {
    "lists": (lambda: detection(label_fields=["cls"]), lambda: {"bboxes": BOXES, "cls": list("abcde")}),
    "arrays": (
        lambda: detection(label_fields=["cls", "scores"]),
        lambda: {"bboxes": np.array(BOXES), "cls": np.arange(5), "scores": np.linspace(0, 1, 5)},
    ),
    "columns": (lambda: detection(), lambda: {"bboxes": np.array([[*box, 7] for box in BOXES])}),
    "coco": (
        lambda: detection("coco", label_fields=["cls"], min_visibility=0.5),
        lambda: {"bboxes": [[3, 4, 20, 30], [50, 10, 20.5, 30]], "cls": [1, 2]},
    ),
    "yolo": (
        lambda: detection("yolo", label_fields=["cls"]),
        lambda: {"bboxes": [(0.5, 0.5, 0.2, 0.3), (0.1, 0.1, 0.1, 0.1)], "cls": ("x", "y")},
    ),
    "albumentations": (
        lambda: detection("albumentations", label_fields=["cls"]),
        lambda: {"bboxes": [(0.1, 0.2, 0.5, 0.6)], "cls": [True]},
    ),
    "no boxes": (lambda: detection(label_fields=["cls"]), lambda: {"bboxes": [], "cls": []}),
    "none left": (
        lambda: detection(label_fields=["cls"], min_area=1e6),
        lambda: {"bboxes": BOXES, "cls": list("abcde")},
    ),
    "points": (
        lambda: A.Compose([A.Affine(rotate=50, p=1)], keypoint_params=A.KeypointParams("yx"), seed=1),
        lambda: {"keypoints": [(9, 12), (30, 50), (0, 0)]},
    ),
    "points that stay": (
        lambda: A.Compose(
            [A.CenterCrop(30, 30)], keypoint_params=A.KeypointParams("xy", remove_invisible=False), seed=1
        ),
        lambda: {"keypoints": np.array(POINTS)},
    ),
    "masks": (lambda: A.Compose(steps(), seed=1), lambda: {"mask": MASK, "masks": [MASK, MASK // 2]}),
    "masks with channels": (
        lambda: A.Compose(steps(), seed=1),
        lambda: {"mask": np.dstack([MASK, MASK > 1]).astype(np.uint8), "masks": np.stack([MASK] * 3)},
    ),
    "no masks": (lambda: A.Compose(steps(), seed=1), lambda: {"masks": []}),
    "targets": (
        lambda: A.Compose(steps(), additional_targets={"right": "image", "depth": "mask"}, seed=1),
        lambda: {"right": OTHER, "depth": MASK.astype(np.float32)},
    ),
    "other keys": (
        lambda: A.Compose(steps(), seed=1),
        lambda: {"path": "a.jpg", "id": 5, "row": np.arange(3)},
    ),
    "tensors": (
        lambda: A.Compose([A.HorizontalFlip(p=1), A.Normalize(), A.ToTensorV2()]),
        lambda: {"mask": MASK, "masks": [MASK]},
    ),
    "transposed": (
        lambda: A.Compose([A.ToTensorV2(transpose_mask=True)]),
        lambda: {"mask": np.dstack([MASK, MASK])},
    ),
    "not transposed": (lambda: A.Compose([A.ToTensorV2()]), lambda: {"mask": np.dstack([MASK, MASK])}),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_by_keywords(name: str) -> None:
    make, more = CALLS[name]
    given, before = make(), more()
    mine, sample = converted(given), {"image": SCENE, **more()}
    for _ in range(4):
        assert_called_alike(mine(**sample), given(**copy.deepcopy(sample)))
    assert all(
        np.array_equal(sample[key], value) for key, value in before.items()
    )  # nothing is written to it


def test_several_images() -> None:
    given = A.Compose([A.RandomCrop(40, 40, p=1), A.GaussNoise(p=1)], seed=1)
    mine, images = converted(given), [SCENE, OTHER]
    equal(mine(images=images)["images"], given(images=images)["images"])
    equal(mine(images=np.stack(images))["images"], given(images=np.stack(images))["images"])


def test_tensors_by_keywords() -> None:
    """Tensors come back as tensors."""
    given = detection(label_fields=["labels"])
    wanted = copy.deepcopy(given)(image=SCENE, mask=MASK, bboxes=BOXES, labels=[1, 2, 3, 4, 5])
    image = torch.from_numpy(SCENE).permute(2, 0, 1)
    found = converted(given)(
        image=image, mask=torch.from_numpy(MASK), bboxes=torch.tensor(BOXES), labels=torch.arange(1, 6)
    )
    equal(pixels(found["image"]), wanted["image"])
    equal(found["mask"].numpy(), wanted["mask"])
    np.testing.assert_allclose(found["bboxes"].numpy(), np.array(wanted["bboxes"]), atol=2e-3)
    assert found["labels"].tolist() == wanted["labels"]


def test_a_pipeline_left_out() -> None:
    given = A.Compose(
        [A.InvertImg(p=1)], A.BboxParams("coco", label_fields=["cls"], min_area=1e6), p=0.5, seed=2
    )
    mine, sample = converted(given), {"image": SCENE, "bboxes": BOXES[:1], "cls": ["a"]}
    for _ in range(6):
        assert_called_alike(mine(**sample), given(**sample))


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no image": ({"mask": MASK}, ValueError, "keywords must have image or images, got mask"),
    "a volume": (
        {"image": SCENE, "volume": SCENE[None]},
        TypeError,
        "keywords must not be volumes, got volume",
    ),
    "boxes": (
        {"image": SCENE, "bboxes": BOXES},
        ValueError,
        "bboxes must come with bbox_params of the pipeline",
    ),
    "points": ({"image": SCENE, "keypoints": POINTS}, ValueError, "keypoints must come with keypoint_params"),
    "an image without a target": (
        {"image": SCENE, "right": SCENE},
        TypeError,
        "arrays must be named image, ",
    ),
    "a file": ({"image": "a.jpg"}, TypeError, "image must be a NumPy array or a tensor, got str"),
    "sizes": (
        {"image": SCENE, "mask": MASK[1:]},
        ValueError,
        "share a size, got image of 61 x 83, mask of 60 x",
    ),
    "no pixels": ({"image": SCENE[:0]}, ValueError, "image must have at least one pixel, got shape"),
    "a row": (
        {"image": SCENE[0, 0]},
        TypeError,
        r"image must be an array \(H, W\) or \(H, W, C\), got \(3,\)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name: str) -> None:
    sample, kind, text = WRONG[name]
    with pytest.raises(kind, match=f"^from_albumentations: .*{text}"):
        converted(A.Compose(steps()))(**sample)


def test_arrays_without_a_name() -> None:
    mine = converted(A.Compose(steps()))
    for wrong in (FRAME, {"image": FRAME}, {"image": IMAGE, "extra": [FRAME]}):
        with pytest.raises(TypeError, match="arrays must be given by keyword, as in pipeline"):
            mine(wrong)
    with pytest.raises(TypeError, match="inputs must be keywords or one structure of tensors, got both"):
        mine(IMAGE, image=FRAME)
    graph = torch.compile(mine, fullgraph=True, backend="eager")
    with pytest.raises(
        Exception, match="inputs must be one structure of tensors in a graph, got the keywords"
    ):
        graph(image=IMAGE)


# -- the page's pipelines ----------------------------------------------------------------------------------


#: Pipelines from public repositories: detection, segmentation, classification, forensics, medical images.
PUBLIC: dict[str, Callable[[], Any]] = {
    "yolo": lambda: A.Compose(
        [
            A.LongestMaxSize(max_size=64),
            A.PadIfNeeded(min_height=64, min_width=64, border_mode=cv2.BORDER_CONSTANT),
            A.RandomCrop(width=64, height=64),
            A.ColorJitter(brightness=0.6, contrast=0.6, saturation=0.6, hue=0.5, p=0.3),
            A.OneOf([A.ShiftScaleRotate(rotate_limit=10, p=0.3), A.Affine(shear=15, p=0.5)], p=0.3),
            A.HorizontalFlip(p=0.5),
            A.Blur(blur_limit=3, p=0.3),
            A.CLAHE(p=0.3),
            A.Posterize(p=0.3),
            A.ToGray(p=0.3),
            A.ChannelShuffle(p=0.3),
            A.Normalize(mean=[0.485, 0.456, 0.406], max_pixel_value=255, p=1.0),
            A.ToTensorV2(),
        ],
        bbox_params=A.BboxParams(format="yolo", min_visibility=0.4, label_fields=[]),
    ),
    "segmentation": lambda: A.Compose(
        [
            A.RandomResizedCrop((48, 48), scale=(0.75, 1.0), p=1.0),
            A.HorizontalFlip(p=0.5),
            A.VerticalFlip(p=0.2),
            A.RandomRotate90(p=0.3),
            A.ShiftScaleRotate(shift_limit=0.05, scale_limit=0.1, rotate_limit=20, p=0.5),
            A.RandomBrightnessContrast(0.15, 0.15, p=0.3),
            A.GaussNoise(p=0.15),
            A.GridDistortion(num_steps=4, distort_limit=0.04, p=0.2),
            A.Normalize(),
            A.ToTensorV2(),
        ]
    ),
    "introduction": lambda: A.Compose(
        [
            A.CLAHE(),
            A.RandomRotate90(),
            A.Transpose(),
            A.ShiftScaleRotate(shift_limit=0.0625, scale_limit=0.50, rotate_limit=45, p=0.75),
            A.Blur(blur_limit=3),
            A.OpticalDistortion(),
            A.GridDistortion(),
            A.HueSaturationValue(),
        ]
    ),
    "efficientdet": lambda: A.Compose(
        [
            *(A.Transpose(p=0.5), A.VerticalFlip(p=0.5), A.HorizontalFlip(p=0.5)),
            A.OneOf(
                [
                    A.CLAHE(p=1),
                    A.RandomBrightnessContrast(0.15, 0.15, p=1),
                    A.RandomGamma(p=1),
                    A.HueSaturationValue(p=1),
                ],
                p=0.8,
            ),
            A.OneOf([A.Blur(4, p=1), A.MotionBlur(5, p=1), A.Sharpen(p=1)], p=0.75),
            A.Normalize(),
        ],
        bbox_params=A.BboxParams(format="coco", label_fields=["category_ids"], min_visibility=0.2),
    ),
    "forensics": lambda: A.ReplayCompose(
        [
            A.HorizontalFlip(p=0.5),
            A.RandomBrightnessContrast(p=0.3),
            A.ImageCompression(quality_range=(40, 90), p=0.5),
            A.GaussNoise(p=0.3),
            A.CoarseDropout(
                num_holes_range=(1, 4), hole_height_range=(0.05, 0.15), hole_width_range=(0.05, 0.15), p=0.2
            ),
        ]
    ),
    "melanoma": lambda: A.Compose(
        [
            A.OneOf(
                [
                    A.MotionBlur(blur_limit=5),
                    A.MedianBlur(blur_limit=5),
                    A.GaussianBlur(blur_limit=5),
                    A.GaussNoise(),
                ],
                p=0.7,
            ),
            A.OneOf(
                [
                    A.OpticalDistortion(distort_limit=1.0),
                    A.GridDistortion(num_steps=5, distort_limit=1.0),
                    A.ElasticTransform(alpha=3),
                ],
                p=0.7,
            ),
            A.CLAHE(clip_limit=4.0, p=0.7),
            A.HueSaturationValue(hue_shift_limit=10, sat_shift_limit=20, val_shift_limit=10, p=0.7),
            A.ShiftScaleRotate(shift_limit=0.1, scale_limit=0.1, rotate_limit=15, border_mode=0, p=0.7),
            A.Resize(48, 48),
            A.CoarseDropout(
                num_holes_range=(1, 1), hole_height_range=(9, 18), hole_width_range=(9, 18), p=0.7
            ),
            A.Normalize(),
            A.ToTensorV2(),
        ],
        p=1.0,
    ),
    "signs": lambda: A.Compose(
        [
            A.Affine(
                scale=(0.85, 1.1),
                translate_percent=(-0.04, 0.04),
                rotate=(-22, 22),
                shear=(-7, 7),
                border_mode=cv2.BORDER_REPLICATE,
                p=0.95,
            ),
            A.Perspective(scale=(0.02, 0.08), border_mode=cv2.BORDER_REPLICATE, p=0.5),
            A.RandomBrightnessContrast(brightness_limit=0.35, contrast_limit=0.3, p=0.9),
            A.OneOf([A.MotionBlur(blur_limit=7), A.GaussianBlur(blur_limit=5)], p=0.4),
            *(A.GaussNoise(p=0.4), A.RandomShadow(p=0.3), A.CoarseDropout(p=0.4)),
        ],
        bbox_params=A.BboxParams(format="pascal_voc", label_fields=["cls"], min_visibility=0.35, min_area=64),
    ),
    "colors": lambda: A.Compose(
        [
            A.OneOf([A.Rotate(limit=45, p=0.5), A.HorizontalFlip(p=0.5)], p=1),
            A.OneOf(
                [A.RandomGamma(p=0.5), A.RandomBrightnessContrast(p=0.5), A.RGBShift(25, 25, 25, p=0.5)],
                p=0.7,
            ),
        ]
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_pipelines_of_public_repositories(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = PUBLIC[name]()
    given.set_random_seed(3)
    mine = converted(given)
    sample: dict[str, Any] = {"image": np.ascontiguousarray(FRAME[:, :64])}
    if "bboxes" in given.processors:
        fields = given.processors["bboxes"].params.label_fields or ()
        box = {"yolo": [0.4, 0.4, 0.5, 0.5], "coco": [9.0, 9, 31, 41]}.get(
            given.processors["bboxes"].params.format, [9.0, 9, 40, 50]
        )
        sample |= {"bboxes": [box], **{field: [1] for field in fields}}
    for _ in range(12):
        found, wanted = mine(**sample), given(**sample)
        np.testing.assert_equal(found.pop("replay", None), wanted.pop("replay", None))
        assert_called_alike(found, wanted)


@pytest.mark.parametrize("name", ["segmentation", "forensics"])
def test_one_graph_per_sample(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = ours.Compose([converted(PUBLIC[name]())], per_sample=True)
    images = torch.stack([picture(height=64, width=64, seed=s) for s in range(3)])
    torch.compiler.reset()
    graph = torch.compile(pipeline, fullgraph=True, backend="aot_eager")
    for seed in range(3):
        torch.testing.assert_close(
            seeded(seed, graph, images), seeded(seed, pipeline, images), rtol=0, atol=1e-5
        )


#: Pipelines with the rules by which boxes and keypoints are dropped.
RULES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: composed(A.Resize(31, 42)),
    "small boxes stay": lambda: composed(A.Resize(6, 8)),
    "width": lambda: composed(A.Resize(61, 83), min_width=13),
    "height": lambda: composed(A.Resize(61, 83), min_height=16),
    "both": lambda: composed(A.Resize(40, 83), min_height=14, min_width=15),
    "area": lambda: composed(A.CenterCrop(40, 40), min_area=200),
    "shape": lambda: composed(A.Resize(30, 100), max_accept_ratio=2.5),
    "visibility": lambda: composed(A.CenterCrop(45, 50), min_visibility=0.6),
    "visibility in two steps": lambda: composed(
        A.CenterCrop(50, 60), A.Rotate((10, 10), p=1), min_visibility=0.75
    ),
    "visibility in the end": lambda: composed(
        A.CenterCrop(50, 60), A.Rotate((10, 10), p=1), min_visibility=0.75, check_each_transform=False
    ),
    "cropped and padded": lambda: composed(
        A.CenterCrop(30, 30), A.PadIfNeeded(70, 90), A.HorizontalFlip(p=1)
    ),
    "cropped and padded, unchecked": lambda: composed(
        A.CenterCrop(30, 30), A.PadIfNeeded(70, 90), points=False, check_each_transform=False
    ),
    "area before a resize": lambda: composed(A.CenterCrop(40, 50), A.Resize(122, 166), min_area=150),
    "warped": lambda: composed(
        A.Affine(rotate=(35, 35), scale=(1.4, 1.4), p=1), A.Perspective((0, 0), p=1), A.Transpose(p=1)
    ),
    "inside": lambda: composed(
        A.Sequential([A.CenterCrop(40, 50), A.Pad(9)], p=1), A.OneOf([A.VerticalFlip(p=1)], p=1), min_area=90
    ),
    "clipped": lambda: A.Compose(
        [A.HorizontalFlip(p=1)], A.BboxParams("pascal_voc", label_fields=["labels"], clip=True, min_area=9)
    ),
    "invalid": lambda: A.Compose(
        [A.HorizontalFlip(p=1)],
        A.BboxParams("pascal_voc", label_fields=["labels"], filter_invalid_bboxes=True, clip=True),
    ),
    "without images moved": lambda: composed(A.InvertImg(p=1), min_area=200),
    "visible points stay": lambda: A.Compose(
        [A.CenterCrop(40, 50), A.Pad(30)],
        keypoint_params=A.KeypointParams("xy", label_fields=["tags"], remove_invisible=False),
    ),
    "never": lambda: A.Compose(
        [A.CenterCrop(9, 9)], A.BboxParams("pascal_voc", label_fields=["labels"], min_area=900), p=0
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_what_is_dropped(name: str) -> None:
    pipeline = RULES[name]()
    more: dict[str, Any] = {}
    if name in ("clipped", "invalid"):
        more = {"bboxes": [*BOXES[:4], [-5.0, 50, 20, 70] if name == "clipped" else [20.0, 50, 20, 60]]}
    if "bboxes" in pipeline.processors:
        wanted = theirs(pipeline, **more)
    else:
        wanted = pipeline(image=SCENE, mask=MASK, keypoints=POINTS, tags=list(range(len(POINTS))))
    here = sample_here()
    if more:
        here["bboxes"] = tv_tensors.BoundingBoxes(more["bboxes"], format="XYXY", canvas_size=(HEIGHT, WIDTH))
    assert_same(converted(pipeline)(here), wanted)


@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
def test_formats_of_boxes(format: str) -> None:
    pipeline = composed(A.CenterCrop(40, 50), A.Pad(5), min_area=150, points=False)
    wanted, here = theirs(pipeline), sample_here()
    convert = ours.ConvertBoundingBoxFormat(format)
    found = converted(pipeline)(here | {"bboxes": convert(here["bboxes"])})
    assert found["bboxes"].format.value == format and found["bboxes"].clamping_mode == "soft"
    assert_same(found | {"bboxes": ours.ConvertBoundingBoxFormat("XYXY")(found["bboxes"])}, wanted)


def test_boxes_in_a_graph() -> None:
    """Dropped boxes keep their place in the tensors, so that one graph holds the pipeline."""
    pipeline = composed(
        A.CenterCrop(40, 50),
        A.Affine(rotate=(20, 20), p=1),
        A.Sequential([A.VerticalFlip(p=1)], p=0.5),
        min_area=150,
    )
    convert, here = converted(pipeline), sample_here()
    here["tags"] = torch.arange(len(POINTS))
    torch.compiler.reset()
    graph = torch.compile(convert, fullgraph=True, backend="aot_eager")
    for seed in range(4):
        wanted, found = seeded(seed, convert, here), seeded(seed, graph, here)
        for key, value in wanted.items():
            torch.testing.assert_close(found[key], value, rtol=0, atol=1e-4)
        assert len(wanted["bboxes"]) == len(wanted["labels"]) < len(BOXES)


def test_labels_by_their_names() -> None:
    given = A.Compose([A.CenterCrop(30, 30)], A.BboxParams("coco", label_fields=["kinds", "scores"]))
    boxes = tv_tensors.BoundingBoxes([[0.0, 0, 9, 9], [30, 20, 20, 20]], format="XYWH", canvas_size=(64, 80))
    sample = {
        "image": tv_tensors.Image(IMAGE),
        "boxes": boxes,
        "kinds": ["a", "b"],
        "scores": torch.tensor([0.1, 0.2]),
    }
    found = converted(given)(sample)
    assert (
        found["kinds"] == ["b"]
        and found["scores"].tolist() == [torch.tensor(0.2).item()]
        and len(found["boxes"]) == 1
    )
    assert sample["kinds"] == ["a", "b"] and len(sample["boxes"]) == 2
    must = "inputs must be a dict with the label fields kinds, scores, got a dict of image, boxes, kinds"
    with pytest.raises(ValueError, match=f"^from_albumentations: {must}$"):
        converted(given)({k: v for k, v in sample.items() if k != "scores"})
    with pytest.raises(ValueError, match="kinds must be a tensor or a list of 2 labels, got 3 labels"):
        converted(given)(sample | {"kinds": [1, 2, 3]})
    assert converted(given)(IMAGE).shape == (3, 30, 30)


def test_a_crop_of_a_smaller_image() -> None:
    given = A.Compose([A.CenterCrop(100, 50)])
    with pytest.raises(Exception, match="Crop size"):
        given(image=FRAME)
    with pytest.raises(ValueError, match=r"^CenterCrop: image must be at least 100 x 50, got 64 x 80$"):
        converted(given)(IMAGE)


def test_a_batch_with_boxes() -> None:
    """Each sample of a batch has its own draws, boxes and labels."""
    pipeline = converted(
        A.Compose([A.Affine(rotate=(-40, 40), p=1)], A.BboxParams("coco", label_fields=["labels"]))
    )
    here = sample_here()
    images = torch.stack([here["image"].as_subclass(Tensor)] * 3)
    batch = {
        "image": tv_tensors.Image(images),
        "boxes": [here["bboxes"][:n].clone() for n in (2, 4, 5)],
        "labels": [here["labels"][:n] for n in (2, 4, 5)],
    }
    batch["boxes"] = [tv_tensors.wrap(b, like=here["bboxes"]) for b in batch["boxes"]]
    found = seeded(0, ours.Compose([pipeline], per_sample=True), batch)
    assert [len(b) for b in found["boxes"]] == [len(n) for n in found["labels"]]
    assert not torch.equal(found["image"][0], found["image"][1])


def test_mirrored_borders() -> None:
    mirrored = A.Affine(rotate=(20, 20), border_mode=cv2.BORDER_REFLECT_101, p=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.from_albumentations(A.Compose([mirrored, A.OpticalDistortion(), A.LongestMaxSize(9)]))
        ours.from_albumentations(composed(A.Affine(), points=False))
    with pytest.warns(
        UserWarning, match="Affine: boxes and keypoints are not repeated in a mirrored border$"
    ):
        mine = ours.from_albumentations(composed(mirrored, A.OpticalDistortion()))
    found, plain = mine(sample_here()), composed(A.Affine(rotate=(20, 20), p=1))
    wanted = theirs(plain)
    assert found["labels"].tolist() == [int(n) for n in wanted["labels"]]
    with pytest.warns(UserWarning, match="Pad: boxes"):
        mine = ours.from_albumentations(composed(A.Pad(30, border_mode=4)))
    found, wanted = mine(sample_here()), theirs(composed(A.Pad(30)))
    np.testing.assert_allclose(found["bboxes"].numpy(), np.array(wanted["bboxes"]), atol=2e-3)


class _Watched(dict[str, Any]):
    """Arguments that record which of them are read."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.unread = set(arguments)

    def __getitem__(self, name: str) -> Any:
        self.unread.discard(name)
        return super().__getitem__(name)


ONLY_FOR_A_PADDING = {"fill", "fill_mask", "border_mode", "pad_position"}
#: Arguments that only decide what albumentations draws, or have no effect there.
DRAWS = {
    "p",
    "erosion_factor",
    "erosion_rate",
    "scale",
    "ratio",
    "min_max_height",
    "w2h_ratio",
    "ignore_values",
    "ignore_channels",
}
PASSED_OVER = {
    "CenterCrop": ONLY_FOR_A_PADDING,
    "Crop": ONLY_FOR_A_PADDING,
    "LongestMaxSize": {"max_size_hw"},
    "PadIfNeeded": {"padding"},
    "RandomCrop": ONLY_FOR_A_PADDING,
    "RandomSizedBBoxSafeCrop": {"mask_interpolation"},
    "SmallestMaxSize": {"max_size_hw"},
}


@pytest.mark.parametrize("name", sorted(moves.MOVES))
def test_no_argument_is_passed_over(name: str) -> None:
    arguments = _Watched({**made(name, p=0.5).get_transform_init_args(), "p": 0.5})
    arguments["rule"] = rules.Rule()
    moves.MOVES[name](arguments)
    assert arguments.unread <= DRAWS | PASSED_OVER.get(name, set()) | {"rule"}


def test_what_has_no_counterpart_is_named() -> None:
    given = A.Compose(
        [
            A.SomeOf([A.Blur(), A.TextImage("a.ttf", p=1)], n=1),
            A.OneOf([A.ToTensor3D(), A.RandomCropNearBBox()]),
            A.RandomGridShuffle(),
            A.HistogramMatching(),
            A.SelectiveChannelTransform([A.Blur()]),
            A.Blur(),
        ],
        A.BboxParams("coco", label_fields=[]),
    )
    with pytest.raises(ValueError) as found:
        ours.from_albumentations(given)
    listed = [
        "TextImage (it takes other images or texts from the call)",
        "ToTensor3D (it takes volumes)",
        "RandomCropNearBBox (it takes a box from the call)",
        "RandomGridShuffle (it cuts boxes into several)",
        "HistogramMatching (metadata_key=hm_metadata)",
        "SelectiveChannelTransform (its transforms see a part of the channels)",
    ]
    assert (
        str(found.value)
        == f"from_albumentations: transforms must have a counterpart, got {', '.join(listed)}"
    )
    with pytest.raises(TypeError, match="compose must be a pipeline of albumentations, got RandomGamma"):
        ours.from_albumentations(ours.RandomGamma())


class Halved(A.ImageOnlyTransform):  # type: ignore[misc]
    """A user's own transform, with a draw of its own."""

    def apply(self, img: np.ndarray, shift: int, **params: Any) -> np.ndarray:
        return img // 2 + np.uint8(shift)

    def get_params(self) -> dict[str, Any]:
        return {"shift": self.py_random.randint(0, 99)}


class Enlarged(A.ImageOnlyTransform):  # type: ignore[misc]
    def apply(self, img: np.ndarray, **params: Any) -> np.ndarray:
        return np.repeat(img, 2, 0)


class Brightened(A.DualTransform):  # type: ignore[misc]
    """A user's own transform that reads the values of the image, also for masks."""

    def get_params_dependent_on_data(self, params: Any, data: Any) -> dict[str, Any]:
        return {"mean": int(data["image"].mean()), "share": self.random_generator.random()}

    def apply(self, img: np.ndarray, mean: int, share: float, **params: Any) -> np.ndarray:
        return (img * share + mean / 4).astype(np.uint8)

    def apply_to_mask(self, mask: np.ndarray, mean: int, **params: Any) -> np.ndarray:
        return (mask + mean).astype(mask.dtype)


def test_values_that_masks_depend_on() -> None:
    given = A.Compose([Brightened(p=1), A.Transpose(p=0.5)], seed=3)
    mine = converted(given)
    for sample in ({"image": SCENE, "mask": MASK}, {"mask": MASK, "image": SCENE}) * 2:
        assert_called_alike(mine(**sample), given(**sample))


def test_what_is_too_small_from_the_beginning() -> None:
    """albumentations checks boxes after the first transform, whatever it does, and so does its counterpart."""
    given = composed(A.InvertImg(p=1), A.Resize(122, 166), points=False, min_area=150)
    sample = {"image": SCENE, "mask": MASK, "bboxes": BOXES, "labels": list(range(5))}
    assert_called_alike(converted(given)(**sample), given(**sample))


def test_points_that_a_distortion_loses() -> None:
    params = A.KeypointParams("xy", remove_invisible=False)
    given = A.Compose([A.PiecewiseAffine(p=1)], keypoint_params=params, seed=1)
    mine = converted(given)
    for _ in range(6):
        sample = {"image": SCENE, "keypoints": POINTS}
        assert_called_alike(mine(**sample), given(**sample))


def test_one_transform_in_two_places() -> None:
    shared = A.RandomBrightnessContrast(p=0.7)
    given = A.Compose([shared, A.HorizontalFlip(), shared], seed=1)
    given(image=SCENE)  # a conversion goes on from the state of its original
    mine = converted(given)
    for _ in range(6):
        equal(mine(image=SCENE)["image"], given(image=SCENE)["image"])


def test_a_users_own_class() -> None:
    given = A.Compose([Halved(p=0.7), A.HorizontalFlip()], seed=1)
    mine = ours.convert(given)
    for _ in range(6):
        equal(mine(image=SCENE)["image"], given(image=SCENE)["image"])
    assert isinstance(ours.convert(Halved(p=1))(IMAGE), Tensor)
    with pytest.raises(ValueError, match=r"^Enlarged: image must keep its size 64 x 80, got 128 x 80$"):
        converted(Enlarged(p=1))(IMAGE)


@pytest.mark.parametrize(
    ("kind", "name"), [(A.HorizontalFlip, "apply"), (A.BasicTransform, "should_apply"), (A.OneOf, "__call__")]
)
def test_a_method_that_was_replaced(kind: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of a function decides whose it is, not the name that functools.wraps gives it."""

    @functools.wraps(getattr(kind, name))
    def own(self: Any, *args: Any, **keywords: Any) -> Any:
        return original(self, *args, **keywords)

    original = getattr(kind, name)
    given = A.OneOf([A.HorizontalFlip(p=0.5)], p=1)
    assert rules.changed_names(given.transforms[0]) | rules.changed_names(given) == set()
    monkeypatch.setattr(kind, name, own)
    assert rules.changed_names(given.transforms[0]) | rules.changed_names(given) == {name}


def test_every_class_is_listed() -> None:
    kinds = {n for n in dir(A) if isinstance(getattr(A, n), type)}
    assert {*moves.MOVES, *values.OPERATORS, *values.INEXACT, *table.WITHOUT, *VARIANTS, *NEEDED} <= kinds
    assert not set(NAMES) & set(table.WITHOUT)


@pytest.mark.parametrize("name", ["RandomRotate90", "D4", "HorizontalFlip", "VerticalFlip", "Transpose"])
def test_keypoints_of_right_angles(name: str) -> None:
    image = np.zeros((20, 30, 3), np.uint8)
    for seed in range(6):
        steps = [
            A.Compose([getattr(A, name)(p=1)], keypoint_params=A.KeypointParams("xy"), seed=seed)
            for _ in range(2)
        ]
        points = [(3.0, 4.0), (10.0, 12.0), (0.0, 19.0)]
        found, wanted = (
            run(image=image, keypoints=points)["keypoints"]
            for run in (ours.from_albumentations(steps[0]), steps[1])
        )
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted))
