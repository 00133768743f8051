"""The recipes of public training code, beside that code or its results."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
import PIL.ImageFilter
import PIL.ImageOps
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import transforms as v1
from torchvision import tv_tensors

import imgops.transforms as ours
from imgops import PackedImages
from imgops.transforms import recipes
from tests.checks import bits_equal
from tests.tiers import nightly_unless
from tests.transform_cases import check_refusals, picture, seeded

YOLO = np.load(Path(__file__).with_name("data") / "yolo.npz")


# -- DINO --------------------------------------------------------------------------------------------------


def test_dino_crops_are_dinov2s() -> None:
    """PIL images under the same seeds: at most a level apart, where torchvision's blur rounds otherwise."""
    data = pytest.importorskip("dinov2.data")
    image = PIL.Image.fromarray(picture(height=90, width=120).permute(1, 2, 0).numpy())
    how: Any = ((0.32, 1.0), (0.05, 0.32), 4, 48, 32)
    theirs, mine = data.DataAugmentationDINO(*how), recipes.DINOCrops(*how)
    for seed in range(12):
        wanted, found = (seeded(seed, f, image) for f in (theirs, mine))
        assert set(wanted) == set(found) and found["offsets"] == ()
        for name in ("global_crops", "global_crops_teacher", "local_crops"):
            assert len(found[name]) == len(wanted[name])
            for a, b in zip(found[name], wanted[name]):
                levels = (a.as_subclass(Tensor) - b).abs() * 0.229 * 255
                assert a.shape == b.shape and levels.max() < 2.1 and (levels > 1.1).double().mean() < 0.02


# -- all recipes ---------------------------------------------------------------------------------------------


def crops(**mode: Any) -> Callable[..., Any]:
    how: Any = {"local_crops_number": 2, "global_crops_size": 48, "local_crops_size": 32, **mode}
    return partial(recipes.DINOCrops, **how)


#: Recipes of one image, which take batches with draws for each sample.
RECIPES: dict[str, Callable[..., Any]] = {
    "DINO": crops(),
    "DINO, one jitter": crops(share_color_jitter=True, teacher_no_color_jitter=True),
    "DINO, Gram": crops(gram_teacher_crops_size=56, gram_teacher_no_distortions=True),
    "DINO, small Gram": crops(gram_teacher_crops_size=40),
    "DINO, inside": crops(local_crops_subset_of_global_crops=True, patch_size=4),
    "3-Augment": partial(recipes.three_augment, 32),
}


def close(found: Any, wanted: Any, tolerance: float = 0.0) -> None:
    for a, b in zip(*map(tree_leaves, (found, wanted)), strict=True):
        torch.testing.assert_close(*(x.as_subclass(Tensor) for x in (a, b)), rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", nightly_unless("DINO, inside".__eq__, RECIPES))
def test_samples_graphs_and_copies(name: str, whole: bool) -> None:
    """Each sample of a batch, with its offsets, is what a loop gives; so is a copy, and nightly a graph."""
    images = torch.stack([picture(height=64, width=80, seed=s) for s in range(3)])
    each, alone = RECIPES[name](per_sample=True), RECIPES[name]()
    found = seeded(5, each, images)
    loop = seeded(5, lambda: [tree_leaves(alone(x)) for x in images])
    close(found, [torch.stack(values) for values in zip(*loop, strict=True)], 2e-5)
    if "inside" in name:
        offsets = torch.stack(list(found["offsets"]))
        assert offsets.shape == (2, 3, 2) and len(offsets.unique()) > 2
    close(seeded(1, pickle.loads(pickle.dumps(alone)), images[0]), seeded(1, alone, images[0]))
    if "DINO" in name:
        params = seeded(1, alone.sample, images[0])
        close(alone.apply(images[0], params), seeded(1, alone, images[0]))
    for recipe, given in ((each, images), (alone, images[0])) if whole else ():
        torch._dynamo.reset()
        graph = torch.compile(recipe, fullgraph=True, backend="aot_eager")
        for seed in range(3):
            close(seeded(seed, graph, given), seeded(seed, recipe, given))


DINO, THREE = recipes.DINOCrops, recipes.three_augment
BOX, MOSAIC = recipes.yolo_letterbox, recipes.yolo_mosaic
SHAPE = "image must have the shape (..., 3, H, W)"
LEVELS_OR_PIL = "image must be uint8 or an RGB image of PIL"
FROM_1 = "must be an integer from 1"
#: Error -> the beginning of its text -> the calls that raise it.
REFUSED: dict[type[Exception], dict[str, list[Callable[[], Any]]]] = {
    ValueError: {
        "DINOCrops: global_crops_scale must be": [lambda: DINO(global_crops_scale=(0.5, 0.2))],
        "DINOCrops: blur must be 3 probabilities": [lambda: DINO(blur=(0.1, 0.2))],
        "DINOCrops: each blur must be a number from 0 to 1": [lambda: DINO(blur=(0.1, 0.2, 3))],
        f"DINOCrops: global_crops_size {FROM_1}": [lambda: DINO(global_crops_size=0)],
        "DINOCrops: mean must be 3 numbers": [lambda: DINO(mean=(1, 2))],
        "DINOCrops: each std must be a number from": [lambda: DINO(std=(1, 1, 0))],
        "DINOCrops: local crops inside of global ones must be an even number": [
            lambda: DINO(local_crops_number=3, local_crops_subset_of_global_crops=True)
        ],
        f"DINOCrops: {SHAPE}": [
            lambda: DINO()(PIL.Image.new("RGB", (0, 40))),
            lambda: DINO()(picture()[:1]),
            lambda: DINO()(picture()[0]),
            lambda: DINO(per_sample=True)(picture()[None, :, :0]),
        ],
        "three_augment: mean must be 3 numbers": [lambda: THREE(mean=0.5)],
        "three_augment: std must be 3 numbers": [lambda: THREE(std="abc")],
        f"three_augment: {SHAPE}": [lambda: THREE()(picture()[:, :0])],
        f"yolo_letterbox: stride {FROM_1}": [lambda: BOX(stride=0)],
        f"yolo_letterbox: size {FROM_1}": [lambda: BOX(size=0)],
        "yolo_letterbox: fill must be from 0 to 255 for torch.uint8, got 300": [
            lambda: BOX(size=8, fill=300)(picture())
        ],
        "yolo_letterbox: image must have at least one pixel": [lambda: BOX(size=8)(picture()[:, :0])],
        f"yolo_mosaic: size {FROM_1}": [lambda: MOSAIC(size=0)],
        "yolo_mosaic: inputs must be a list of 4 samples": [lambda: MOSAIC(size=8)([picture()])],
    },
    TypeError: {
        "DINOCrops: local_crops_scale must be": [lambda: DINO(local_crops_scale=None)],
        "DINOCrops: gram_teacher_crops_size must be": [lambda: DINO(gram_teacher_crops_size=1.5)],
        "DINOCrops: share_color_jitter must be a bool": [lambda: DINO(share_color_jitter="no")],
        "DINOCrops: image must be a Tensor or a PIL image, got dict": [lambda: DINO()({"image": picture()})],
        f"DINOCrops: {LEVELS_OR_PIL}": [lambda: DINO()(PIL.Image.new("RGBA", (40, 40)))],
        "DINOCrops: image must be a Tensor or a PIL image, got PackedImages": [
            lambda: DINO(per_sample=True)(PackedImages.of([picture()]))
        ],
        f"three_augment: {LEVELS_OR_PIL}, got images of different": [
            lambda: THREE(per_sample=True)(PackedImages.of([picture()]))
        ],
        "three_augment: src must be a bool, got 2": [lambda: THREE(src=2)],
        f"three_augment: {LEVELS_OR_PIL}, got torch.float32": [lambda: THREE()(picture() / 255)],
        f"yolo_letterbox: stride {FROM_1}": [lambda: BOX(stride=1.5)],
        "yolo_letterbox: auto must be a bool, got 1": [lambda: BOX(auto=1)],
        "yolo_letterbox: scaleup must be a bool, got 0": [lambda: BOX(scaleup=0)],
        "yolo_letterbox: fill must be a finite number": [lambda: BOX(fill="a")],
        "yolo_mosaic: fill must be a finite number": [lambda: MOSAIC(fill="a")],
    },
}


@pytest.mark.parametrize("error", REFUSED)
def test_refusals(error: type[Exception]) -> None:
    check_refusals(REFUSED[error], error)


def test_the_gray_of_yolo_suits_the_dtype() -> None:
    """A border is 114 of 255 levels; a value that is given is taken as it is."""
    for dtype in (torch.uint8, torch.float32, torch.float16):
        image = torch.zeros(3, 6, 12, dtype=dtype)
        gray = 114 if dtype == torch.uint8 else torch.tensor(114 / 255, dtype=dtype).item()
        box = recipes.yolo_letterbox(12)(image)
        assert box.unique().tolist() == [0, gray]
        assert recipes.yolo_mosaic(12)([image] * 4).unique().tolist() == [0, gray]
        torch._dynamo.reset()
        compiled = torch.compile(recipes.yolo_letterbox(12), fullgraph=True, backend="aot_eager")
        assert torch.equal(compiled(image), box)
        assert recipes.yolo_letterbox(12, fill=1)(image).unique().tolist() == [0, 1]
        assert recipes.yolo_mosaic(12, fill=1)([image] * 4).unique().tolist() == [0, 1]


def test_dino_crops_for_a_gram_teacher() -> None:
    image = picture(height=90, width=120)
    how: Any = {"global_crops_size": 48, "gram_teacher_crops_size": 64, "local_crops_number": 2}
    for clean in (False, True):
        out = seeded(
            1, recipes.DINOCrops(**how, gram_teacher_no_distortions=clean, local_crops_size=32), image
        )
        assert [x.shape[-1] for x in out["global_crops"] + out["gram_teacher_crops"]] == [48, 48, 64, 64]
        small = [ours.Resize(48, ours.InterpolationMode.BICUBIC)(x) for x in out["gram_teacher_crops"]]
        if not clean:  # both are the same picture
            assert (small[0] - out["global_crops"][0]).abs().max() < 1e-5
    out = seeded(2, recipes.DINOCrops(teacher_no_color_jitter=True, **how), image)
    assert not torch.equal(out["global_crops"][0], out["global_crops_teacher"][0])


def test_dino_local_crops_inside_of_global_ones() -> None:
    image = picture(height=90, width=120)
    how: Any = {"global_crops_size": 48, "local_crops_size": 16, "local_crops_number": 4, "patch_size": 8}
    quiet: Any = {"blur": (0.0, 0.0, 0.0), "share_color_jitter": True, "horizontal_flips": False}
    crops = recipes.DINOCrops(**how, **quiet, local_crops_subset_of_global_crops=True)
    crops.global_2.transforms = crops.global_1.transforms  # without solarizing
    out = seeded(3, crops, image)
    for i, (local, (top, left)) in enumerate(zip(out["local_crops"], out["offsets"])):
        whole = out["global_crops"][i // 2]
        assert top % 8 == left % 8 == 0
        assert bits_equal(local.contiguous(), whole[:, top : top + 16, left : left + 16].contiguous())


# -- 3-Augment ---------------------------------------------------------------------------------------------


def test_three_augment_is_deits_with_pil() -> None:
    """The steps by PIL and torchvision's first version with the same draws: equal, but for the jitter's level."""
    image = PIL.Image.fromarray(picture(height=70, width=90).permute(1, 2, 0).numpy())
    mine = recipes.three_augment(48)
    one, jitter = mine.transforms[3:5]
    assert [jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue] == [*[(0.7, 1.3)] * 3, None]
    chosen: set[int] = set()
    crop = v1.RandomResizedCrop(48, scale=(0.08, 1.0), interpolation=v1.InterpolationMode.BICUBIC)
    first = v1.Compose([crop, v1.RandomHorizontalFlip()])
    for seed in range(30):
        start = seeded(seed, first, image)
        state = torch.get_rng_state()
        choice = int(torch.multinomial(torch.full((3,), 1 / 3), 1))
        if choice == 0:
            changed = start.convert("L").convert("RGB")
        elif choice == 1:
            torch.rand(1)
            changed = PIL.ImageOps.solarize(start)
        else:
            params = one.transforms[2].sample(start)  # drawn from the same state
            radius = next(iter(params.values())).numbers[1]
            changed = start.filter(PIL.ImageFilter.GaussianBlur(radius))
        torch.set_rng_state(state)
        found = one(start)
        chosen.add(choice)
        assert np.array_equal(np.asarray(found), np.asarray(changed)), (seed, choice)
        whole = seeded(seed, mine, image)
        assert whole.shape == (3, 48, 48) and whole.dtype == torch.float32
    assert len(chosen) == 3
    simple = recipes.three_augment(32, src=True, color_jitter=0)
    names = [type(t).__name__ for t in simple.transforms[1:4]]
    assert names == ["Resize", "RandomCrop", "RandomHorizontalFlip"]
    assert simple.transforms[2].padding_mode == "reflect" and len(simple.transforms) == 8


# -- YOLO --------------------------------------------------------------------------------------------------


def image_of(name: str) -> Tensor:
    return torch.from_numpy(YOLO[name].copy()).permute(2, 0, 1)


@pytest.mark.parametrize("planar", [False, True])
def test_letterbox_is_ultralytics(planar: bool) -> None:
    how: dict[str, Any] = {"plain": {}, "auto": {"auto": True}, "down": {"scaleup": False}}
    for name, options in how.items():
        transform = recipes.yolo_letterbox(64, **options)
        for i in range(4):
            image = image_of(f"image_{i}")
            found = transform(image.contiguous() if planar else image)
            assert bits_equal(found.contiguous(), image_of(f"{name}_{i}").contiguous()), (name, i)
            picture = transform(PIL.Image.fromarray(YOLO[f"image_{i}"]))
            assert np.array_equal(np.asarray(picture), YOLO[f"{name}_{i}"]), (name, i)
    torch._dynamo.reset()
    compiled = torch.compile(recipes.yolo_letterbox(64, auto=True), fullgraph=True, backend="aot_eager")
    assert bits_equal(compiled(image_of("image_0")).contiguous(), image_of("auto_0").contiguous())


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_no_smoothing_of_pil_images(mode: str) -> None:
    """Pillow would smooth while shrinking."""
    channels = len(mode)
    image = seeded(1, torch.randint, 0, 256, (channels, 48, 64)).byte()
    picture = ours.functional.to_pil_image(image, mode)
    for transform in (
        ours.LetterBox(16, antialias=False),
        ours.LongestMaxSize(20, antialias=False),
        ours.SmallestMaxSize(20, antialias=False),
        ours.Compose([ours.LetterBox(16, antialias=False), ours.RandomHorizontalFlip(1.0)]),
    ):
        found = transform(picture)
        assert found.mode == mode
        assert torch.equal(ours.functional.pil_to_tensor(found), transform(image))
    wanted = cv2.resize(np.ascontiguousarray(np.asarray(picture)), (20, 15), interpolation=cv2.INTER_LINEAR)
    assert np.array_equal(np.asarray(ours.LongestMaxSize(20, antialias=False)(picture)), wanted)


def test_letterbox_moves_annotations() -> None:
    given = {
        "image": tv_tensors.Image(torch.zeros(3, 30, 60, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes([[6.0, 3, 12, 9]], format="XYXY", canvas_size=(30, 60)),
        "mask": tv_tensors.Mask(torch.ones(30, 60, dtype=torch.uint8)),
    }
    out = recipes.yolo_letterbox(64, auto=True, stride=16)(given)
    assert out["image"].shape == (3, 32, 64) and out["boxes"].canvas_size == (32, 64)
    assert out["image"].unique().tolist() == [0] and out["mask"].shape == (32, 64)
    out = recipes.yolo_letterbox(64)(given)
    assert out["image"].unique().tolist() == [0, 114] and out["mask"].unique().tolist() == [0, 1]
    torch.testing.assert_close(out["boxes"].as_subclass(Tensor), torch.tensor([[6.4, 19.2, 12.8, 25.6]]))


def test_mosaic_is_ultralytics(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = [[3.0, 4.0, 30.0, 20.0], [10.0, 5.0, 22.0, 23.0]]
    samples = []
    for i in range(4):
        image = tv_tensors.Image(image_of(f"image_{i}"))
        boxes = tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=tuple(image.shape[-2:]))
        samples.append({"image": image, "boxes": boxes, "labels": torch.arange(2)})
    mosaic = recipes.yolo_mosaic(64)
    for seed in range(4):
        monkeypatch.setattr(mosaic, "_middle", lambda params, s=seed: tuple(YOLO[f"middle_{s}"].tolist()))
        out = mosaic(samples)
        assert bits_equal(
            out["image"].as_subclass(Tensor).contiguous(), image_of(f"mosaic_{seed}").contiguous()
        )
        moved, wanted = out["boxes"].as_subclass(Tensor), torch.from_numpy(YOLO[f"boxes_{seed}"])
        left = moved[(moved[:, 2:] > moved[:, :2]).all(1)]  # ultralytics removes boxes without an area
        # The data has both sides of a box scaled like the width; heights are rounded up to whole pixels.
        assert left.shape == wanted.shape and (left - wanted).abs().max() < 1.1


def test_the_middle_of_the_mosaic() -> None:
    mosaic = recipes.yolo_mosaic(64)
    places = [mosaic._sampled_sizes(mosaic._draw([torch.zeros(3, 4, 4)]), 4, 4) for _ in range(300)]
    assert all(32 <= n <= 95 for place in places for n in place)
    assert min(map(min, places)) < 36 and max(map(max, places)) > 91


# -- PixMix ------------------------------------------------------------------------------------------------


def test_pixmix_has_the_numbers_of_its_paper() -> None:
    pictures = [picture(height=40, width=40, seed=9)]
    for make, beta, severity in ((recipes.pixmix_cifar, 3.0, 3.0), (recipes.pixmix_imagenet, 4.0, 1.0)):
        transform = make(pictures, p=0.5)
        found = transform.k, transform.beta, transform.severity, transform.all_ops, transform.p
        assert found == (4, beta, severity, False, 0.5)


def test_pixmix_draws_from_its_distributions() -> None:
    """Means of the weights are those of Beta(b, 1) and Beta(1, b); operations and their number are uniform."""
    transform = ours.PixMix([picture(height=40, width=40)], beta=3.0, all_ops=True)
    generator = torch.Generator().manual_seed(0)
    recipes_ = [transform._recipe(generator, 40, 40) for _ in range(4000)]
    counts = Counter(len(mixtures) for _, mixtures in recipes_)
    assert set(counts) == {0, 1, 2, 3, 4} and max(counts.values()) < 1.2 * min(counts.values())
    names = Counter(first[0] for first, _ in recipes_ if first)
    assert len(names) == 13 and 1850 < sum(names.values()) < 2150
    pairs = [(a, b) for _, mixtures in recipes_ for _, a, b, _ in mixtures]
    inside = np.array([p for p in pairs if p[1] >= 0])
    outside = np.array([p for p in pairs if p[1] < 0])
    assert np.abs(inside.mean(0) - (0.75, 0.25)).max() < 0.02 and 0.46 < len(inside) / len(pairs) < 0.54
    assert np.abs(outside.mean(0) - (1.25, -0.25)).max() < 0.02
