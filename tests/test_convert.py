"""Converted pipelines of torchvision and timm: the same draws under the same seeds, and the same pixels."""

from __future__ import annotations

import importlib.util
import itertools
import json
import pickle
import pkgutil
import random
import re
import textwrap
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from skimage import data
from torch import Tensor
from torchvision import models, tv_tensors
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, _presets, v2

from imgops import transforms as ours
from imgops.integrations._reader import LIBRARIES, MAKERS
from imgops.integrations.torchvision.first_version import share_of_white
from imgops.transforms._core import origin
from tests.tiers import every_night, nightly, nightly_unless
from tests.transform_cases import CASES, Case

for _library in LIBRARIES:  # whose counterparts are loaded when the library is met
    import_module(f"imgops.integrations.{_library}")

pytestmark = pytest.mark.filterwarnings("ignore:convert. these come near", "ignore:The transform `ToTensor")


def photo(width: int = 97, height: int = 75) -> Image.Image:
    return Image.fromarray(data.astronaut()).resize((width, height))


def seed(number: int) -> None:
    torch.random.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def state() -> Any:
    numpys = np.random.get_state()
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), numpys[1].tobytes(), numpys[2:]


def values(out: Any) -> list[np.ndarray]:
    if isinstance(out, (tuple, list)):
        return [v for each in out for v in values(each)]
    return [np.asarray(out)]


def levels_apart(found: Any, wanted: Any) -> float:
    """Return the greatest difference of what two pipelines return; infinity where the shapes differ."""
    pairs = list(zip(values(found), values(wanted), strict=True))
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
        return float("inf")
    return max(float(np.abs(a.astype(np.float64) - b).max(initial=0)) for a, b in pairs)


BICUBIC, BILINEAR = InterpolationMode.BICUBIC, InterpolationMode.BILINEAR
CIFAR10 = v1.AutoAugmentPolicy.CIFAR10
#: Name and arguments of a class that both versions have; several where its code has branches.
BOTH: list[tuple[str, dict[str, Any]]] = [
    ("Resize", {"size": 50}),
    ("Resize", {"size": (40, 60), "interpolation": BICUBIC}),
    ("Resize", {"size": 40, "max_size": 45}),
    ("CenterCrop", {"size": 60}),
    ("CenterCrop", {"size": 120}),
    ("Pad", {"padding": (3, 4), "padding_mode": "reflect"}),
    ("Pad", {"padding": 5, "fill": (1, 2, 3)}),
    ("RandomCrop", {"size": 50, "padding": 4}),
    ("RandomCrop", {"size": (75, 50)}),
    ("RandomCrop", {"size": (75, 97)}),
    ("RandomCrop", {"size": (50, 130), "pad_if_needed": True}),
    ("RandomCrop", {"size": 84, "padding": 4, "pad_if_needed": True, "padding_mode": "reflect"}),
    ("RandomHorizontalFlip", {}),
    ("RandomVerticalFlip", {}),
    ("RandomResizedCrop", {"size": 40}),
    ("RandomResizedCrop", {"size": 40, "scale": (2, 3), "interpolation": BICUBIC}),
    ("FiveCrop", {"size": 30}),
    ("TenCrop", {"size": 30}),
    ("ColorJitter", {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}),
    ("ColorJitter", {"contrast": 0.4}),
    ("RandomRotation", {"degrees": 30}),
    ("RandomRotation", {"degrees": 30, "interpolation": BILINEAR, "expand": True, "fill": 3}),
    ("RandomAffine", {"degrees": 30, "translate": (0.1, 0.2), "scale": (0.8, 1.2), "shear": 10}),
    ("RandomAffine", {"degrees": 10, "shear": (1, 2, 3, 4), "interpolation": BICUBIC, "fill": 9}),
    ("Grayscale", {"num_output_channels": 3}),
    ("Grayscale", {}),
    ("RandomGrayscale", {"p": 0.5}),
    ("RandomPerspective", {"p": 0.7}),
    ("GaussianBlur", {"kernel_size": 5}),
    ("RandomInvert", {}),
    ("RandomPosterize", {"bits": 3}),
    ("RandomSolarize", {"threshold": 100}),
    ("RandomAdjustSharpness", {"sharpness_factor": 2}),
    ("RandomAutocontrast", {}),
    ("RandomEqualize", {}),
    ("ElasticTransform", {}),
    ("AutoAugment", {}),
    ("AutoAugment", {"policy": CIFAR10, "fill": 128}),
    ("RandAugment", {}),
    ("RandAugment", {"num_ops": 4, "magnitude": 12, "interpolation": BILINEAR, "fill": (1, 2, 3)}),
    ("TrivialAugmentWide", {}),
    ("AugMix", {}),
    ("ToTensor", {}),
    ("PILToTensor", {}),
]
#: The most that the levels may differ: convert warns about these.
DIFFERENCES = {"GaussianBlur": 1, "ElasticTransform": 1, "AugMix": 255}


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize(("name", "arguments"), BOTH, ids=[f"{n}{i}" for i, (n, _) in enumerate(BOTH)])
def test_classes_of_torchvision(name: str, arguments: dict[str, Any], version: Any) -> None:
    given = getattr(version, name)(**arguments)
    converted = ours.convert(given)
    for number in range(6):
        seed(number)
        wanted = given(photo())
        after = state()
        seed(number)
        assert levels_apart(converted(photo()), wanted) <= DIFFERENCES.get(name, 0)
        assert state() == after


def of_floats(version: Any) -> list[Any]:
    matrix = torch.rand(12, 12, generator=torch.Generator().manual_seed(0))
    return [
        version.RandomErasing(0.8),
        version.RandomErasing(1.0, value="random"),
        version.RandomErasing(1.0, value=(1, 2, 3)),
        version.Normalize([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
        version.ConvertImageDtype(torch.float64),
        version.LinearTransformation(matrix, matrix[0]),
        version.Lambda(lambda x: x + 1),
    ]


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("i", range(7))
def test_classes_that_take_floats(version: Any, i: int) -> None:
    given = of_floats(version)[i]
    image = v1.functional.to_tensor(photo(2, 2) if i == 5 else photo())
    for number in range(4):
        seed(number)
        wanted, after = given(image), state()
        seed(number)
        assert levels_apart(ours.convert(given)(image), wanted) == 0
        assert state() == after


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
def test_containers(version: Any) -> None:
    steps = [version.RandomInvert(1), version.RandomPosterize(2, 1), version.RandomSolarize(10, 1)]
    for given in (
        version.RandomApply(steps, 0.5),
        version.RandomChoice(steps),
        version.RandomChoice(steps, p=[0.2, 0.3, 0.6]),
        version.RandomOrder(steps),
        version.Compose(
            [version.RandomChoice([version.Compose(steps[:2]), steps[2]]), version.RandomOrder(steps)]
        ),
    ):
        converted = ours.convert(given)
        for number in range(8):
            seed(number)
            wanted, after = given(photo()), state()
            seed(number)
            assert levels_apart(converted(photo()), wanted) == 0
            assert state() == after


def test_every_class_has_a_counterpart() -> None:
    names = {*v1.transforms.__all__, *v1.autoaugment.__all__} - {"InterpolationMode", "AutoAugmentPolicy"}
    assert {f"torchvision.transforms.{m}.{n}" for m in ("transforms", "autoaugment") for n in names} & set(
        MAKERS
    ) == {f"torchvision.transforms.{getattr(v1, n).__module__.rpartition('.')[2]}.{n}" for n in names}
    second = {
        f"{c.__module__}.{n}"
        for n, c in vars(v2).items()
        if isinstance(c, type) and issubclass(c, v2.Transform)
    }
    assert second - {"torchvision.transforms.v2._transform.Transform"} <= set(MAKERS)


def presets() -> dict[str, Any]:
    """Return what the weights of torchvision are used with, each once."""
    found = {}
    for name in models.list_models():
        for weights in models.get_model_weights(name):
            found.setdefault(repr(weights.transforms()), (str(weights), weights.transforms()))
    return dict(found.values())


@pytest.mark.parametrize("name", presets())
def test_transforms_of_weights(name: str) -> None:
    given = presets()[name]
    converted = ours.convert(given)
    for image in (photo(), photo(300, 401)):
        kind = type(given).__name__
        if kind == "VideoClassification":
            video = torch.stack([v1.functional.pil_to_tensor(image)] * 2)
            assert levels_apart(converted(video), given(video)) <= 1.01 / 255 / min(given.std)
        elif kind == "OpticalFlow":
            assert levels_apart(converted(image, image), given(image, image)) == 0
        else:
            assert levels_apart(converted(image), given(image)) == 0
            assert levels_apart(converted(v1.functional.pil_to_tensor(image)), given(image)) == 0


@pytest.mark.parametrize("bins", [5, 10, 31, 77])
def test_levels_of_the_first_version(bins: int) -> None:
    for level in torch.linspace(255.0, 0.0, bins).tolist():
        assert share_of_white(level) * 255 == pytest.approx(level, abs=1e-12)
        assert np.ceil(share_of_white(level) * 255) == np.ceil(level)  # the same levels are inverted


# -- timm ----------------------------------------------------------------------------------------------


def evaluations() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the configurations of timm's pretrained models, each once, by the first model's name."""
    timm = pytest.importorskip("timm")
    found = {}
    for name in timm.list_models(pretrained=True):
        settings = timm.data.resolve_data_config(
            pretrained_cfg=timm.get_pretrained_cfg(name).to_dict(), verbose=False
        )
        found.setdefault(json.dumps(settings, sort_keys=True, default=str), (name, settings))
    return found


def test_evaluation_of_timms_models() -> None:
    timm = pytest.importorskip("timm")
    found = evaluations()
    assert len(found) > 100
    images = [photo(), photo(300, 401)]
    for i, (name, settings) in enumerate(found.values()):
        given = timm.data.create_transform(**settings)
        converted, image = ours.convert(given), images[i % 2]
        wanted = given(image)
        assert levels_apart(converted(image), wanted) == 0, name
        assert levels_apart(converted(v1.functional.pil_to_tensor(image)), wanted) == 0, name


def of_timm() -> list[Callable[[], Any]]:
    timm = pytest.importorskip("timm")
    t, n = timm.data.transforms, timm.data.naflex_transforms
    return [
        lambda: t.RandomResizedCropAndInterpolation(64, interpolation="bicubic"),
        lambda: t.RandomResizedCropAndInterpolation((64, 50), interpolation="random"),
        lambda: t.ResizeKeepRatio(100, random_scale_prob=0.7, random_aspect_prob=0.7),
        lambda: t.ResizeKeepRatio(100, 1, "random", random_scale_prob=0.7, random_scale_area=True),
        lambda: t.CenterCropOrPad(120, fill=(1, 2, 3)),
        lambda: t.CenterCropOrPad((90, 301)),
        lambda: t.ToNumpy(),
        lambda: n.ResizeToSequence(16, 256),
        lambda: n.ResizeToSequence((8, 16), 100, interpolation="bilinear", divisible_by_patch=False),
        lambda: t.TrimBorder(20),
        lambda: t.TrimBorder(0),
        lambda: t.RandomCropOrPad(120, fill=(1, 2, 3)),
        lambda: t.RandomCropOrPad((90, 301), padding_mode="reflect"),
        lambda: t.RandomCropOrPad((60, 97), padding_mode="edge"),
        lambda: t.RandomPad((130, 240), fill=(9, 8, 7)),
        lambda: t.RandomPad((40, 310)),
        lambda: n.ResizeToSequence(16, 40, interpolation="random"),
        lambda: n.CenterCropToSequence((16, 8), 30, fill=(4, 5, 6)),
        lambda: n.CenterCropToSequence(16, 300, padding_mode="symmetric"),
        lambda: n.RandomCropToSequence(16, 40, fill=(4, 5, 6)),
        lambda: n.RandomCropToSequence((8, 20), 500, divisible_by_patch=False, padding_mode="reflect"),
        lambda: n.ResizeKeepRatioToSequence(16, 40),
        lambda: n.ResizeKeepRatioToSequence((8, 16), 60, False, 0.3, "random"),
        lambda: n.ResizeKeepRatioToSequence(
            16, 50, True, 1, "random", random_scale_prob=0.7, random_scale_area=True, random_aspect_prob=0.7
        ),
        lambda: n.RandomResizedCropToSequence(16, 40),
        lambda: n.RandomResizedCropToSequence(
            (8, 16), 60, (0.3, 1), (0.7, 1.4), "random", False, 1.0, (0.4, 1.0)
        ),
        lambda: n.RandomResizedCropToSequence(16, 70, (2, 3), interpolation="bilinear"),
    ]


#: The places in ``of_timm`` of what draws a size, so that samples cannot form a batch.
DRAWS_SIZES = (2, 3, 23, 24, 25, 26)


@pytest.mark.parametrize("i", range(27))
def test_classes_of_timm(i: int) -> None:
    given = of_timm()[i]()
    converted = ours.convert(given)
    for image in (photo(), photo(300, 201)):
        for number in range(4):
            seed(number)
            wanted, after = given(image), state()
            seed(number)
            assert levels_apart(converted(image), wanted) == 0
            assert state() == after
            seed(number)
            found = converted(v1.functional.pil_to_tensor(image))
            if isinstance(found, Tensor):
                found = found.permute(1, 2, 0)
            assert levels_apart(found, wanted) == 0
            assert state() == after


@pytest.mark.parametrize("i", nightly_unless((12, 16, 18, 22, 25).__contains__, range(7, 27)))
def test_graphs_of_timms_classes(i: int) -> None:
    """One graph, with dynamic sizes where they are drawn; with draws for each image where they are not."""
    converted = ours.convert(of_timm()[i]())
    torch._dynamo.reset()
    graph = torch.compile(pickle.loads(pickle.dumps(converted)), fullgraph=True, backend="aot_eager")
    image = v1.functional.pil_to_tensor(photo())
    for number in range(3):
        seed(number)
        wanted, after = converted(image), state()
        seed(number)
        assert torch.equal(graph(image), wanted)
        assert state() == after
    each = ours.Compose(converted.transforms, per_sample=True)
    images = torch.stack([image, image.flip(-1), 255 - image])
    if i in DRAWS_SIZES:
        with pytest.raises(NotImplementedError, match="samples of different sizes cannot form a batch"):
            each(images)
        return
    seed(1)
    loop, after = torch.stack([converted(x) for x in images]), state()
    for call in (each, torch.compile(each, fullgraph=True, backend="aot_eager")):
        seed(1)
        assert torch.equal(call(images), loop)
        assert state() == after


#: Arguments of timm's create_transform, for training.
TRAINING: list[dict[str, Any]] = [
    {"auto_augment": "rand-m9-mstd0.5-inc1"},
    {"auto_augment": "rand-m9-n3-mstd101", "interpolation": "bicubic"},
    {"auto_augment": "rand-m5-inc1-tweights"},
    {"auto_augment": "rand-m9-p0.7-t3a"},
    {"auto_augment": "rand-m9-mstd0.5-inc1", "interpolation": "random", "re_prob": 0.5, "re_mode": "rand"},
    {"auto_augment": "v0"},
    {"auto_augment": "v0r-mstd0.5"},
    {"auto_augment": "original"},
    {"auto_augment": "originalr"},
    {"auto_augment": "3a", "color_jitter": 0.3},
    {"auto_augment": "augmix-m5-w4-d2"},
    {"auto_augment": "augmix-m3-b1"},
    {"re_prob": 1.0, "re_mode": "pixel"},
    {"re_prob": 0.7, "re_mode": "rand", "re_count": 3},
    {"re_prob": 0.8, "re_mode": "const"},
    {"color_jitter": 0.4, "color_jitter_prob": 0.8, "grayscale_prob": 0.2},
    {"train_crop_mode": "rkrc", "vflip": 0.5},
    {"train_crop_mode": "rkrr", "auto_augment": "rand-m9-mstd0.5-inc1"},
    {"naflex": True, "patch_size": 8, "max_seq_len": 60},
    {"naflex": True, "max_seq_len": 20, "auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 0.5},
    {"no_aug": True},
]


@pytest.mark.parametrize("i", range(len(TRAINING)))
def test_training_of_timm(i: int) -> None:
    timm = pytest.importorskip("timm")
    given = timm.data.create_transform(64, is_training=True, **TRAINING[i])
    converted, image = ours.convert(given), photo(150, 112)
    for number in range(8):
        seed(number)
        try:
            wanted, after = given(image), state()
        except ValueError:  # Pillow 13 refuses to keep no bits, which timm's posterize asks for
            continue
        for form in (image, v1.functional.pil_to_tensor(image)):
            seed(number)
            assert levels_apart(converted(form), wanted) == 0
            assert state() == after


@pytest.mark.parametrize(
    "policy",
    [
        "rand-m9-mstd0.5-inc1",
        "rand-m9-n3-p0.7",
        "v0r-mstd0.5",
        "originalr",
        "3a",
        "rand-m7-t3aw-n4",
        "augmix-m5-w4-d2",
        "augmix-m3-b1",
    ],
)
def test_policies_on_gray_images(policy: str) -> None:
    """A gray image takes a border of one value, which timm makes of the mean of a gray model."""
    timm = pytest.importorskip("timm")
    how = {"auto_augment": policy, "mean": (0.4,), "std": (0.2,)}
    given, image = timm.data.create_transform(64, is_training=True, **how), photo(150, 112).convert("L")
    converted = ours.convert(given)
    for number in range(12):
        seed(number)
        try:
            wanted, after = given(image), state()
        except ValueError:  # Pillow 13 refuses to keep no bits, which timm's posterize asks for
            continue
        for form in (image, v1.functional.pil_to_tensor(image)):
            seed(number)
            assert levels_apart(converted(form), wanted) == 0
            assert state() == after


@pytest.mark.parametrize("fill", [7, (7,), (7, 8, 9)])
def test_a_border_that_timm_does_not_take(fill: Any) -> None:
    """What timm refuses, we refuse: a color for a gray image, where a step moves pixels."""
    auto = pytest.importorskip("timm").data.auto_augment
    given = auto.RandAugment([auto.AugmentOp("Rotate", 1.0, 9, {"img_mean": fill})], 1)
    for mode in ("L", "RGB"):
        image = photo().convert(mode)
        seed(0)
        try:
            wanted = given(image)
        except TypeError:
            with pytest.raises(TypeError):
                ours.convert(given)(image)
        else:
            seed(0)
            assert levels_apart(ours.convert(given)(image), wanted) == 0


@pytest.mark.parametrize("name", ["Rotate", "GaussianBlurRand", "Desaturate", "ColorIncreasing", "ShearX"])
def test_one_operation_of_timm(name: str) -> None:
    auto = pytest.importorskip("timm").data.auto_augment
    given = auto.AugmentOp(name, 0.8, 7, {"magnitude_std": 0.5, "img_mean": (9,)})
    converted = ours.convert(given)
    for mode in ("L", "RGB"):
        for number in range(4):
            seed(number)
            wanted, after = given(photo().convert(mode)), state()
            seed(number)
            assert levels_apart(converted(photo().convert(mode)), wanted) == 0
            assert state() == after


@pytest.mark.parametrize("more", [{}, {"patchify_flatten": False}, {"patchify_channels_last": False}])
def test_naflex(more: dict[str, Any]) -> None:
    timm = pytest.importorskip("timm")
    how = {"naflex": True, "patch_size": 16, "max_seq_len": 60, "patchify": True, "crop_border_pixels": 3}
    given = timm.data.create_transform(224, **how, **more)
    converted = ours.convert(given)
    for image in (photo(), photo(300, 401)):
        wanted = given(image)
        for found in (converted(image), converted(v1.functional.pil_to_tensor(image))):
            assert found.keys() == wanted.keys()
            assert all(torch.equal(found[key], wanted[key]) for key in wanted)


def test_training_of_naflex_in_a_graph() -> None:
    timm = pytest.importorskip("timm")
    how = {"naflex": True, "patch_size": (16, 8), "max_seq_len": 20, "patchify": True, "re_prob": 1.0}
    given = timm.data.create_transform(64, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", **how)
    converted = ours.convert(given)
    graph = torch.compile(converted, fullgraph=True, backend="aot_eager")
    for number in range(4):
        seed(number)
        wanted, after = given(photo()), state()
        for call, form in (
            (converted, photo()),
            (converted, v1.functional.pil_to_tensor(photo())),
            (graph, v1.functional.pil_to_tensor(photo())),
        ):
            seed(number)
            found = call(form)
            assert found.keys() == wanted.keys()
            assert all(torch.equal(found[key], wanted[key]) for key in wanted)
            assert state() == after


def test_patches_of_a_batch() -> None:
    naflex = pytest.importorskip("timm").data.naflex_transforms
    images = torch.rand(3, 3, 33, 47)
    for settings in ({}, {"flatten_patches": False}, {"channels_last": False}):
        given = naflex.Patchify((16, 8), **settings)
        wanted = [given(image) for image in images]
        found = ours.convert(given)(images)
        assert all(torch.equal(found[key], torch.stack([one[key] for one in wanted])) for key in found)


@pytest.mark.parametrize("mode", ["batch", "elem", "pair"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cutmix_alpha": 1.0},
        {"mixup_alpha": 0, "cutmix_alpha": 1.0, "prob": 0.7},
        {"cutmix_minmax": (0.2, 0.8)},
    ],
)
def test_mixup_of_timm(settings: dict[str, Any], mode: str) -> None:
    timm = pytest.importorskip("timm")
    given = timm.data.Mixup(num_classes=7, mode=mode, **settings)
    converted = ours.convert(given)
    torch._dynamo.reset()
    graph = torch.compile(converted, fullgraph=True, backend="aot_eager") if mode == "elem" else converted
    for number in range(6):
        images, labels = torch.rand(6, 3, 17, 23), torch.randint(0, 7, (6,))
        seed(number)
        wanted, after = given(images.clone(), labels), state()
        for call in (converted, graph):
            seed(number)
            found = call(images, labels)
            assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
            assert state() == after
    for wrong, error, text in (
        (torch.rand(5, 3, 4, 4), ValueError, "Mixup: images must be even in number, got 5"),
        (torch.tensor(1.0), ValueError, "Mixup: images must be a batch"),
        (
            torch.ones(2, 3, 4, 4, dtype=torch.int32),
            TypeError,
            "Mixup: images must be floating point, got torch",
        ),
    ):
        if not (error is TypeError and mode == "batch" and settings.get("mixup_alpha") == 0):
            with pytest.raises(error, match=text):
                converted(wrong, labels)


DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.uint8, torch.int64)


@pytest.mark.parametrize("mode", ["batch", "elem", "pair"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mixup_of_every_dtype_and_shape(dtype: torch.dtype, mode: str) -> None:
    """What timm takes is taken, with equal images, labels and dtypes; integers only where none is a sum."""
    timm = pytest.importorskip("timm")
    kinds = ({}, {"cutmix_alpha": 1.0}, {"mixup_alpha": 0.0, "cutmix_alpha": 1.0, "label_smoothing": 0.0})
    shapes = ((4, 3, 9, 11), (4, 7), (4,), (4, 5, 6), (4, 3, 2, 5, 6))
    for settings, shape, is_enabled in itertools.product(kinds, shapes, (True, False)):
        given = timm.data.Mixup(num_classes=7, mode=mode, **settings)
        given.mixup_enabled = is_enabled
        converted, labels = ours.convert(given), torch.tensor([1, 2, 3, 4])
        for number in range(4):
            images = torch.rand(shape, generator=torch.Generator().manual_seed(0))
            images = images.to(dtype) if dtype.is_floating_point else (255 * images).to(dtype)
            seed(number)
            try:
                wanted, after = given(images.clone(), labels), state()
            except Exception:  # what timm raises is not ours to say
                continue
            seed(number)
            try:
                found = converted(images, labels)
            except (TypeError, ValueError):
                assert not dtype.is_floating_point or len(shape) != 4
                continue
            assert state() == after
            for a, b in zip(found, wanted, strict=True):
                assert a.dtype == b.dtype and torch.equal(a, b)


TIMM = "transforms naflex_transforms auto_augment random_erasing mixup naflex_mixup naflex_random_erasing"


def test_every_transform_of_timm_is_known() -> None:
    timm = pytest.importorskip("timm")
    assert classes_of(timm.data, TIMM) - set(MAKERS) == set()
    data = timm.data
    for given, text in (
        (data.FastCollateMixup(), "FastCollateMixup(a function that collates a batch: "),
        (data.naflex_mixup.NaFlexMixup(num_classes=3), "NaFlexMixup(images of different sizes "),
        (data.naflex_random_erasing.PatchRandomErasing(), "PatchRandomErasing(patches "),
        (data.random_erasing.RandomErasing(num_splits=2), "RandomErasing(num_splits=2, "),
        (data.naflex_transforms.ResizeToSequence(9, interpolation=(BICUBIC,)), "ResizeToSequence(an interp"),
    ):
        with pytest.raises(
            ValueError, match=re.escape(f"convert: transforms must have a counterpart, got {text}")
        ):
            ours.convert(given)


# -- open_clip -----------------------------------------------------------------------------------------

JITTER = {"color_jitter": (0.4, 0.4, 0.4, 0.0), "color_jitter_prob": 0.8, "gray_scale_prob": 0.4}


@pytest.mark.filterwarnings("ignore:Unused augmentation")
@pytest.mark.parametrize(
    "settings",
    [
        {"is_train": False},
        {"is_train": False, "resize_mode": "longest", "fill_color": 7},
        {"is_train": False, "resize_mode": "squash", "interpolation": "bilinear"},
        {"is_train": False, "image_size": (100, 80)},
        {"is_train": True},
        {"is_train": True, "aug_cfg": JITTER},
        {
            "is_train": True,
            "aug_cfg": {"use_timm": True, "scale": (0.3, 1.0), "color_jitter": 0.4, "re_prob": 0.5},
        },
    ],
)
def test_open_clip(settings: dict[str, Any]) -> None:
    transform = pytest.importorskip("open_clip").transform
    given = transform.image_transform(**{"image_size": 64, **settings})
    converted = ours.convert(given)
    for image in (photo(), photo(300, 201)):
        for number in range(5):
            seed(number)
            wanted, after = given(image), state()
            for form in (image, v1.functional.pil_to_tensor(image)):
                seed(number)
                assert levels_apart(converted(form), wanted) == 0
                assert state() == after


# -- lightly -------------------------------------------------------------------------------------------

LIGHTLY = (
    *(
        "AIMTransform",
        "BYOLTransform",
        "CAPITransform",
        "DINOTransform",
        "DenseCLTransform",
        "FastSiamTransform",
    ),
    *("IBOTTransform", "IJEPATransform", "MAETransform", "MMCRTransform", "MSNTransform", "MoCoV1Transform"),
    *(
        "MoCoV2Transform",
        "SMoGTransform",
        "SimCLRTransform",
        "SimSiamTransform",
        "SwaVTransform",
        "TiCoTransform",
    ),
    *("VICRegLViewTransform", "VICRegTransform", "WMSETransform", "PIRLTransform", "VICRegLTransform"),
    *("FDAView1Transform", "FDAView2Transform", "FDATransform"),
)


def of_lightly(name: str) -> Any:
    lightly = pytest.importorskip("lightly.transforms")
    if name == "IJEPATransform":
        from lightly.transforms.ijepa_transform import IJEPATransform

        return IJEPATransform
    return getattr(lightly, name)


@pytest.mark.parametrize("name", LIGHTLY)
def test_lightly(name: str) -> None:
    given = of_lightly(name)()
    converted, image = ours.convert(given), photo(120, 100)
    for number in range(2):
        seed(number)
        wanted, after = given(image), state()
        seed(number)
        found = converted(image)
        assert type(found) is type(wanted) and levels_apart(found, wanted) == 0
        assert state() == after


def classes_of(package: Any, modules: str = "") -> set[str]:
    """Return the full names of the public classes that the modules of a package define."""
    found = set()
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not modules or module.name.rpartition(".")[2] in modules.split():
            for name, cls in vars(importlib.import_module(module.name)).items():
                if isinstance(cls, type) and cls.__module__ == module.name and name[0] != "_":
                    found.add(f"{module.name}.{name}")
    return found


def test_every_transform_of_lightly_is_known() -> None:
    lightly = pytest.importorskip("lightly.transforms")
    assert classes_of(lightly) - set(MAKERS) == {
        "lightly.transforms.random_crop_and_flip_with_grid.Location",
        "lightly.transforms.torchvision_v2_compatibility.DeprecatedShim",
    }


@pytest.mark.parametrize(
    "arguments",
    [*every_night({"rr_prob": 1.0}), {"rr_prob": 0.5, "rr_degrees": 20.0, "solarization_prob": 0.5}],
)
def test_views_of_lightly(arguments: dict[str, Any]) -> None:
    """A rotation by a quarter and a view of a batch: draws as a loop, in a graph too."""
    from_lightly = of_lightly("DINOTransform")(cj_prob=0.0, **arguments)
    given = ours.convert(from_lightly)
    images = torch.stack([v1.functional.pil_to_tensor(photo(240, 240))] * 2)
    seed(3)
    loop = [given(image) for image in images]
    each = ours.Compose(given.transforms, per_sample=True)
    graph = torch.compile(each, fullgraph=True, backend="aot_eager")
    for call in (each, graph):
        seed(3)
        found = call(images)
        for i, view in enumerate(found):
            assert torch.allclose(view, torch.stack([one[i] for one in loop]), atol=1e-5)
    seed(3)
    wanted = from_lightly(photo(240, 240))
    seed(3)
    assert levels_apart(given(photo(240, 240)), wanted) == 0


def of_spectra() -> list[Any]:
    lightly = pytest.importorskip("lightly.transforms")
    return [
        lightly.AmplitudeRescaleTransform((0.5, 2.0)),
        lightly.PhaseShiftTransform(),
        lightly.PhaseShiftTransform((0.1, 0.9), True, 0.3),
        lightly.RandomFrequencyMaskTransform((0.2, 0.5)),
        lightly.GaussianMixtureMask(3, (4, 9)),
        lightly.RFFT2DTransform(),
        lightly.IRFFT2DTransform((31, 40)),
    ]


@pytest.mark.parametrize("i", range(7))
def test_spectra_of_lightly(i: int) -> None:
    given = of_spectra()[i]
    converted = pickle.loads(pickle.dumps(ours.convert(given)))
    images = torch.rand(3, 3, 31, 40)
    spectra = images if i == 5 else torch.fft.rfft2(images)
    for number, image in enumerate(spectra):
        seed(number)
        wanted, after = given(image), state()
        seed(number)
        assert torch.equal(converted(image), wanted)
        assert state() == after
    each = ours.Compose(converted.transforms, per_sample=True)
    seed(1)
    loop, after = torch.stack([given(image) for image in spectra]), state()
    for call in (each, torch.compile(each, fullgraph=True, backend="aot_eager")):
        seed(1)
        assert torch.allclose(call(spectra), loop, rtol=1e-4, atol=1e-4)
        assert state() == after
    with pytest.raises(TypeError, match=f"{type(given).__name__}: image must be a Tensor"):
        converted(photo())


FDA = {"input_size": 64, "cj_prob": 0.0, "gaussian_blur": 0.5, "solarization_prob": 0.5}
FDA |= {"ampl_rescale_prob": 0.5, "phase_shift_prob": 0.3, "rand_freq_mask_prob": 0.5, "gmm_prob": 0.3}


def test_spectra_in_views_of_lightly() -> None:
    """Levels that leave their range wrap around, as those of lightly do; on tensors and in a graph, too."""
    given = of_lightly("FDAView2Transform")(**FDA, gmm_num_gaussians=2)
    converted = ours.convert(given)
    images = torch.stack([v1.functional.pil_to_tensor(photo())] * 6)
    seed(1)
    wanted, after = [given(photo()) for _ in images], state()
    for form in (photo(), images[0]):
        seed(1)
        assert all(levels_apart(converted(form), one) == 0 for one in wanted)
        assert state() == after
    each = ours.Compose(converted.transforms, per_sample=True)
    for call in (each, torch.compile(each, fullgraph=True, backend="aot_eager")):
        seed(1)
        found = call(images)
        assert state() == after
        # PyTorch's cosines depend in their last bit on the place in a batch, and levels are cut off.
        assert (found != torch.stack(wanted)).double().mean() < 1e-3


PIECES: list[tuple[str, dict[str, Any]]] = [
    ("PIRLTransform", {"input_size": 40, "n_grid": 2}),
    (
        "VICRegLTransform",
        {
            "global_crop_size": 50,
            "n_global_views": 1,
            "n_local_views": 1,
            "vf_prob": 0.5,
            "global_grid_size": 3,
        },
    ),
]


@pytest.mark.parametrize(("name", "settings"), PIECES, ids=["PIRL", "VICRegL"])
def test_pieces_and_grids_in_a_graph(name: str, settings: dict[str, Any]) -> None:
    from_lightly = of_lightly(name)(cj_prob=0.0, **settings)
    given = ours.convert(from_lightly)
    images = torch.stack([v1.functional.pil_to_tensor(photo(120, 100))] * 3)
    each = ours.Compose(pickle.loads(pickle.dumps(given)).transforms, per_sample=True)
    seed(2)
    loop, after = [given(image) for image in images], state()
    for call in (each, torch.compile(each, fullgraph=True, backend="aot_eager")):
        seed(2)
        found = call(images)
        assert state() == after
        for i, view in enumerate(found):
            assert torch.allclose(view, torch.stack([one[i] for one in loop]), atol=1e-5)
    seed(2)
    assert levels_apart(loop, [from_lightly(photo(120, 100)) for _ in images]) == 0
    assert state() == after


def test_jigsaws_of_lightly() -> None:
    lightly = pytest.importorskip("lightly.transforms")
    steps = v2.Compose([lightly.GaussianBlur(prob=0.5), lightly.ToTensor()])
    given = lightly.Jigsaw(2, 61, 20, steps)
    converted = ours.convert(given)
    for number in range(4):
        seed(number)
        wanted, after = given(photo()), state()
        for form in (photo(), v1.functional.pil_to_tensor(photo())):
            seed(number)
            assert levels_apart(converted(form), wanted) == 0
            assert state() == after
    with pytest.raises(
        ValueError, match=re.escape("Jigsaw: sides of the image must be at least 60, got (59, 97)")
    ):
        converted(photo(97, 59))


def segments(image: Any) -> Tensor:
    """Return two segments of an image, without a dimension of channels."""
    height, width = v2.functional.get_size(image)
    return (torch.arange(height)[:, None] + torch.arange(width) > 90).to(torch.uint8)


@pytest.mark.parametrize("settings", [{}, {"grid_size": (3, 7)}, {"mask_fn": segments}])
def test_masks_of_lightly(settings: dict[str, Any]) -> None:
    how = {"gaussian_blur_t1": 0.0, "vf_prob": 0.5, "rr_prob": 0.5, "rr_degrees": 30.0, "cj_hue": 0.0}
    given = of_lightly("DetConSTransform")(input_size=40, **how, **settings)
    converted = ours.convert(given)
    mask = tv_tensors.Mask(torch.arange(75 * 97).reshape(1, 75, 97))
    more = () if "mask_fn" in settings else (mask,)
    for number in range(4):
        seed(number)
        wanted, after = given(photo(), *more), state()
        seed(number)
        found = converted(photo(), *more)
        assert levels_apart(found, wanted) == 0
        assert [type(x) for view in found for x in view] == [type(x) for view in wanted for x in view]
        assert state() == after


def test_masks_of_lightly_in_a_graph() -> None:
    how = {"cj_prob": 0.0, "gaussian_blur_t1": 0.0, "input_size": 40}
    converted = ours.convert(of_lightly("DetConSTransform")(mask_fn=segments, **how))
    image = v1.functional.pil_to_tensor(photo())
    grid = ours.convert(of_lightly("AddGridTransform")(3, 7))
    boxes = tv_tensors.BoundingBoxes(torch.ones(2, 4), format="XYWH", canvas_size=(75, 97))
    images = torch.stack([image] * 2)
    each = ours.Compose(
        ours.convert(of_lightly("DetConSTransform")((3, 2), **how)).transforms, per_sample=True
    )
    masks = tv_tensors.Mask(torch.zeros(2, 1, 75, 97))
    for given, inputs in ((converted, (image,)), (grid, (image, boxes)), (each, (images, masks))):
        seed(3)
        found = given(*inputs)
        seed(3)
        graph = torch.compile(pickle.loads(pickle.dumps(given)), fullgraph=True, backend="aot_eager")
        assert levels_apart(graph(*inputs), found) == 0


@pytest.mark.parametrize("form", ["XYXY", "XYWH", "CXCYWH"])
def test_grids_in_the_place_of_boxes(form: str) -> None:
    given = of_lightly("AddGridTransform")(3, 5)
    converted = ours.convert(given)
    how = {"format": form, "canvas_size": (31, 52)}
    boxes = [tv_tensors.BoundingBoxes(torch.ones(2, 4, dtype=d), **how) for d in (torch.float64, torch.int32)]
    inputs = {"image": photo(), "boxes": boxes, "mask": tv_tensors.Mask(torch.zeros(31, 52))}
    found, wanted = converted(inputs), given(inputs)
    assert levels_apart(list(found.values()), list(wanted.values())) == 0
    assert [type(x) for x in found["boxes"]] == [type(x) for x in wanted["boxes"]]
    assert [x.format for x in found["boxes"]] == [x.format for x in wanted["boxes"]]


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "CMYK", "P"])
def test_blurs_and_solarizations_of_other_modes(mode: str) -> None:
    """lightly hands every image to PIL, which decides what it takes."""
    lightly = pytest.importorskip("lightly.transforms")
    image = photo().convert("RGBA").convert(mode) if mode == "LA" else photo().convert(mode)
    for given in (
        *(
            lightly.GaussianBlur(prob=0.8),
            lightly.RandomSolarization(0.8),
            lightly.RandomSolarization(1.0, 256),
        ),
        *(lightly.RandomSolarization(1.0, threshold) for threshold in (0, -3, 127.5, 255)),
    ):
        for number in range(2):
            seed(number)
            try:
                wanted = given(image)
            except (OSError, ValueError) as error:
                seed(number)
                with pytest.raises(type(error), match=re.escape(str(error))):
                    ours.convert(given)(image)
                continue
            seed(number)
            found = ours.convert(given)(image)
            assert found.mode == mode and levels_apart(found, wanted) == 0
            if mode != "P":
                seed(number)
                levels = ours.convert(given)(v1.functional.pil_to_tensor(image))
                assert levels_apart(levels.permute(1, 2, 0).squeeze(-1), wanted) == 0


# -- what a converted pipeline can do ------------------------------------------------------------------


def pipelines() -> list[Any]:
    first = v1.Compose(
        [
            v1.RandomResizedCrop(32),
            v1.RandomChoice([v1.RandomInvert(1), v1.RandomHorizontalFlip()]),
            v1.RandAugment(),
            v1.ToTensor(),
            v1.Normalize([0.4] * 3, [0.2] * 3),
        ]
    )
    found = [first, v1.Compose([v1.RandomCrop(40), v1.RandomOrder([v1.ColorJitter(0.3), v1.AutoAugment()])])]
    try:
        import timm

        how = {
            "auto_augment": "rand-m9-mstd0.5-inc1",
            "interpolation": "random",
            "re_prob": 0.7,
            "re_mode": "pixel",
        }
        found.append(timm.data.create_transform(32, is_training=True, **how))
    except ImportError:
        pass
    return found


@pytest.mark.parametrize("i", [0, pytest.param(1, marks=nightly), 2])
def test_graphs_and_samples(i: int) -> None:
    """One graph with the draws of eager mode; with per_sample=True those of a loop; a key decides all draws."""
    given = pipelines()[i]
    converted = ours.convert(given)
    images = torch.stack([v1.functional.pil_to_tensor(photo())] * 4)
    each = ours.Compose(converted.transforms, per_sample=True)
    seed(3)
    wanted = torch.stack([converted(image) for image in images])
    seed(3)
    assert torch.allclose(each(images), wanted, atol=1e-6)
    seed(3)
    graph = torch.compile(each, fullgraph=True, backend="aot_eager")
    assert torch.allclose(graph(images), wanted, atol=1e-6)
    seed(1)
    keyed, before = ours.seeded(converted, "a key")(images[0]), state()
    seed(2)
    assert torch.equal(ours.seeded(converted, "a key")(images[0]), keyed)
    seed(1)
    assert state() == before
    assert torch.equal(ours.seeded(pickle.loads(pickle.dumps(converted)), "a key")(images[0]), keyed)


def test_what_has_no_counterpart() -> None:
    """One error names all, and says what to do; a pipeline must be a transform of a library."""
    data = pytest.importorskip("timm").data
    steps = [
        v1.Resize(9),
        data.FastCollateMixup(),
        v1.RandomApply([data.random_erasing.RandomErasing(num_splits=2)]),
    ]
    for given in (v1.Compose(steps), (v1.Resize(9), v1.Compose(steps))):
        with pytest.raises(
            ValueError, match=r"convert: transforms must have a counterpart, got .*; leave them out"
        ) as error:
            ours.convert(given)
        assert all(name in str(error.value) for name in ("FastCollateMixup", "num_splits=2"))
        assert "from imgops import transforms" in str(error.value)
    for own in (lambda image: image, Blur(), CropOfTheMiddle(3)):
        with pytest.raises(ValueError, match=f"convert: .* got {__name__}"):
            ours.convert(own)
    for wrong in (3, "crop", np.zeros(3), torch.zeros(3), [], (v1.Resize(9), 3), torch.nn.ReLU()):
        with pytest.raises(
            TypeError,
            match="convert: pipeline must be a transform of torchvision, timm, open_clip, lightly or",
        ):
            ours.convert(wrong)


# -- what a user puts into a pipeline ------------------------------------------------------------------


class Blur:
    """The class that many training scripts have."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Image.Image) -> Image.Image:
        assert isinstance(image, Image.Image)
        if random.random() > self.p:
            return image
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


class Sometimes(v1.RandomApply):
    """A subclass with a constructor alone."""

    def __init__(self, p: float) -> None:
        super().__init__([v1.GaussianBlur(9, (0.1, 2.0))], p=p)


class SecondSometimes(v2.RandomRotation):
    def __init__(self) -> None:
        super().__init__(degrees=20)
        self.name = "mine"


class CropOfTheMiddle(v1.CenterCrop):
    """A subclass that computes something else."""

    def forward(self, image: Any) -> Any:
        return v1.functional.crop(image, 1, 2, *self.size)


class Draws(v2.RandomHorizontalFlip):
    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return v2.functional.invert(inpt)


class OfFloats(torch.nn.Module):
    """A module that takes tensors, and does nothing in evaluation."""

    def forward(self, image: Tensor) -> Tensor:
        assert isinstance(image, Tensor) and image.is_floating_point()
        return image + torch.rand(1) if self.training else image


class Resize:
    """A class with the name of one of torchvision."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.rotate(90)


Resize.__module__ = v1.Resize.__module__


def with_its_own_method(transform: Any, name: str, method: Any) -> Any:
    setattr(transform, name, method)
    return transform


#: Steps of PIL images and steps of tensors that run code of a user.
USERS: dict[str, tuple[Callable[[], Any], str]] = {
    "a class": (lambda: Blur(), "pil"),
    "a function": (lambda: lambda image: image.rotate(random.randint(0, 90)), "pil"),
    "a method": (lambda: Blur(1.0).__call__, "pil"),
    "a constructor": (lambda: Sometimes(0.6), "pil"),
    "a constructor of the second version": (lambda: SecondSometimes(), "pil"),
    "another forward": (lambda: CropOfTheMiddle(30), "pil"),
    "other draws": (lambda: Draws(), "pil"),
    "a library's name": (lambda: Resize(3), "pil"),
    "a method of an object": (
        lambda: with_its_own_method(v1.CenterCrop(30), "forward", lambda image: image.rotate(90)),
        "pil",
    ),
    "draws of an object": (
        lambda: with_its_own_method(v1.RandomCrop(30), "get_params", lambda image, size: (1, 2, 30, 30)),
        "pil",
    ),
    "inside of a choice": (lambda: v1.RandomChoice([Blur(1.0), v1.RandomInvert(1.0)]), "pil"),
    "inside of an order": (
        lambda: v1.RandomOrder([Blur(1.0), v1.RandomInvert(1.0), v1.Compose([Blur()])]),
        "pil",
    ),
    "inside of a module": (lambda: v1.RandomApply(torch.nn.ModuleList([v1.RandomInvert(1.0)]), 0.5), "pil"),
    "a module": (lambda: OfFloats(), "tensor"),
    "a module in evaluation": (lambda: OfFloats().eval(), "tensor"),
    "a function of tensors": (lambda: torch.sqrt, "tensor"),
}


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("name", USERS)
def test_a_users_code_stays_in_its_pipeline(name: str, version: Any) -> None:
    """It gets what it gets without a conversion, and draws and returns the same."""
    make, kind = USERS[name]
    own = [make()]
    steps = [version.RandomResizedCrop(32), version.RandomApply([version.ColorJitter(0.4, 0.4)], p=0.8)]
    if version is v1:
        to_tensor = [v1.ToTensor()]
    else:
        to_tensor = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    last = version.Normalize([0.5] * 3, [0.5] * 3)
    given = version.Compose(
        [*steps, *own, *to_tensor, last] if kind == "pil" else [*steps, *to_tensor, *own, last]
    )
    for number in range(6):
        seed(number)
        wanted, after = given(photo()), state()
        seed(number)
        found = ours.convert(given)(photo())
        limit = 1 / 255 / 0.5 + 1e-6 if "constructor" in name else 0
        assert type(found) is type(wanted) and levels_apart(found, wanted) <= limit
        assert state() == after


def test_a_users_object_is_the_same_object() -> None:
    own, module = Blur(), OfFloats()
    converted = ours.convert(v1.Compose([v1.Resize(9), own, v1.ToTensor(), v1.RandomApply([module])]))
    assert own in converted.transforms and converted.transforms[-1].transforms == [module]


def test_a_method_of_a_class_that_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls, name in (
        (v1.CenterCrop, "forward"),
        (v2.CenterCrop, "transform"),
        (v1.RandomCrop, "get_params"),
    ):
        with monkeypatch.context() as patch:
            method = lambda *_: v1.functional.invert(photo(20, 20))
            patch.setattr(
                cls, name, staticmethod(lambda *_: (1, 2, 20, 20)) if name == "get_params" else method
            )
            given = v1.Compose([cls(20)])
            assert levels_apart(ours.convert(given)(photo()), given(photo())) == 0
        assert ours.convert(v1.Compose([cls(20)])).transforms[0] is not given.transforms[0]


class Inverter:
    def invert(self, *_: Any) -> Any:
        return v1.functional.invert(photo(20, 20))


@pytest.mark.parametrize("cls", [v1.CenterCrop, v1.GaussianBlur])
def test_a_method_of_a_users_object_in_a_class(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (Inverter().invert, staticmethod(Inverter().invert), partial(Inverter().invert)):
        monkeypatch.setattr(cls, "forward", value)
        given = v1.Compose([cls(21)])
        assert levels_apart(ours.convert(given)(photo()), given(photo())) == 0


def test_functions_of_a_user_in_a_policy_of_timm() -> None:
    auto = pytest.importorskip("timm").data.auto_augment
    op = auto.AugmentOp("Invert", 1.0, 9)
    op.aug_fn = lambda image, *_, **__: image.rotate(90)
    for given in (op, auto.RandAugment([op], 1), auto.AutoAugment([[op]])):
        given = v1.Compose([given])
        seed(0)
        wanted = given(photo())
        seed(0)
        assert levels_apart(ours.convert(given)(photo()), wanted) == 0


def test_every_class_of_a_library_is_its_own() -> None:
    """No class of a library looks as if a user had changed it."""
    for name in MAKERS:
        module, _, path = name.rpartition(".")
        if module.partition(".")[0] in ("torch", "torchvision") or importlib.util.find_spec(
            module.partition(".")[0]
        ):
            kind = getattr(importlib.import_module(module), path)
            assert origin.is_in_its_module(kind), name
            assert not isinstance(kind, type) or origin.has_own_methods(kind), name


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
def test_sequential(version: Any, nested: bool) -> None:
    steps: list[Any] = [version.RandomCrop(40), version.RandomHorizontalFlip()]
    steps = [torch.nn.Sequential(*steps)] if nested else steps
    given = torch.nn.Sequential(*steps, version.CenterCrop(24), version.ConvertImageDtype(torch.float32))
    image = v1.functional.pil_to_tensor(photo())
    seed(0)
    wanted = given(image)
    seed(0)
    assert levels_apart(ours.convert(given)(image), wanted) == 0
    own = torch.nn.Sequential(version.RandomCrop(40), torch.nn.Identity(), torch.nn.Dropout(0.5).eval())
    assert ours.convert(own).transforms[1:] == list(own)[1:]
    noisy = torch.nn.Sequential(version.RandomCrop(40), OfFloats())
    converted = ours.convert(noisy)
    assert not converted.eval().transforms[1].training and converted.train().transforms[1].training
    assert not ours.convert(version.Compose([noisy[0].eval()])).transforms[0].training
    learned = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.Identity())
    gated = version.RandomApply(torch.nn.ModuleList([torch.nn.Dropout(0.5), torch.nn.BatchNorm2d(3)]), 1.0)
    for given in (torch.nn.Sequential(version.RandomCrop(40), learned), torch.nn.Sequential(gated)):
        converted = ours.convert(given)
        assert list(converted.state_dict()) == list(given.state_dict())
        assert [*map(id, converted.parameters())] == [*map(id, given.parameters())]
        assert next(converted.double().parameters()).dtype == torch.float64
        assert not any(m.training for m in converted.eval().modules())


@pytest.mark.parametrize("draw", [0.0, 0.49, 0.5, 0.51])
@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
def test_a_draw_that_is_the_probability(version: Any, draw: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor([draw]))
    given = version.RandomApply([version.RandomInvert(1.0)], 0.5)
    assert levels_apart(ours.convert(given)(photo()), given(photo())) == 0


@pytest.mark.parametrize("how", [{}, {"auto_augment": "augmix-m5-w4-d2"}])
def test_parts_of_a_pipeline(how: dict[str, Any]) -> None:
    timm = pytest.importorskip("timm")
    given = timm.data.create_transform(32, **{"is_training": True, "separate": True, **how})
    found = ours.convert(given)
    assert type(found) is type(given) and len(found) == len(given)
    image = photo()
    for part, theirs in zip(found, given, strict=True):
        seed(1)
        wanted = theirs(image)
        seed(1)
        assert levels_apart(part(image), wanted) == 0
        image = wanted


def test_what_comes_near_is_said_once() -> None:
    given = v1.Compose([v1.GaussianBlur(3), v1.GaussianBlur(5), v1.RandomRotation(3), v1.ToTensor()])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours.convert(given)
    (warning,) = caught
    assert str(warning.message).count("GaussianBlur") == 1 and "RandomRotation" in str(warning.message)
    assert warning.filename == __file__


#: Arguments with which pixels differ on tensors or on PIL images, and those with which they do not.
WARNED: list[tuple[str, dict[str, Any], bool]] = [
    ("ColorJitter", {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4}, False),
    ("ColorJitter", {"hue": 0.1}, False),
    ("RandomRotation", {"degrees": 20}, True),
    ("RandomRotation", {"degrees": (0, 0)}, False),
    ("RandomRotation", {"degrees": (180, 180)}, False),
    ("RandomAffine", {"degrees": 0, "translate": (0.2, 0.3)}, False),
    ("RandomAffine", {"degrees": 0, "scale": (0.8, 1.1), "interpolation": BILINEAR}, True),
    ("RandomAffine", {"degrees": 0, "shear": 10, "interpolation": BILINEAR}, True),
    ("RandomPerspective", {"p": 1.0}, True),
    ("RandomPerspective", {"p": 0.0}, False),
    ("RandomPerspective", {"p": 1.0, "distortion_scale": 0.0}, True),
    ("GaussianBlur", {"kernel_size": 9}, True),
    ("GaussianBlur", {"kernel_size": 1}, False),
    ("ElasticTransform", {}, True),
    ("AutoAugment", {}, True),
    ("RandAugment", {}, True),
    ("RandAugment", {"magnitude": 0}, False),
    ("RandAugment", {"num_ops": 0}, False),
    ("TrivialAugmentWide", {}, True),
    ("Resize", {"size": 20}, False),
    ("RandomResizedCrop", {"size": 20}, False),
]


def warned(given: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours.convert(given)
    return "; ".join(str(w.message) for w in caught if "come near" in str(w.message))


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize(("name", "arguments", "differs"), WARNED)
def test_warnings_where_pixels_differ(
    name: str, arguments: dict[str, Any], differs: bool, version: Any
) -> None:
    given = getattr(version, name)(**arguments)
    assert (name in warned(given)) is differs
    assert warned(version.RandomApply([given], p=0.0)) == ""
    converted, image, apart = ours.convert(given), photo(90, 80), []
    for number in range(24):
        seed(number)
        wanted = given(image)
        for form in (image, v1.functional.pil_to_tensor(image)):
            seed(number)
            found = converted(form)
            apart.append(levels_apart(found.permute(1, 2, 0) if form is not image else found, wanted))
    assert (max(apart) > 0) is differs


def test_warnings_of_timms_recipes() -> None:
    timm = pytest.importorskip("timm")
    assert warned(timm.data.create_transform(224, is_training=True)) == ""
    hue = (0.4, 0.4, 0.4, 0.1)
    assert warned(timm.data.create_transform(224, is_training=True, color_jitter=hue)) == ""


def test_inputs_that_are_refused() -> None:
    converted = ours.convert(v1.Compose([v1.Resize(9), v1.ToTensor()]))
    for wrong in (np.zeros((5, 5, 3), np.uint8), "file.jpg", [], None):
        with pytest.raises(TypeError, match="convert: image must be a PIL image or a Tensor, got "):
            converted(wrong)
    after = ours.convert(v1.Compose([v1.Lambda(np.array), v1.Resize(9)]))
    with pytest.raises(TypeError, match="convert: image must be a PIL image or a Tensor, got ndarray"):
        after(photo())
    levels = torch.zeros(3, 5, 5, dtype=torch.int16)
    with pytest.raises(TypeError, match=r"ToTensor: image must be a PIL image, an array, .* torch\.int16"):
        converted(levels)
    timm = pytest.importorskip("timm")
    *_, last = timm.data.create_transform(224, is_training=True, separate=True)
    with pytest.raises(TypeError, match="convert: image must be a PIL image, an array or a Tensor, got str"):
        ours.convert(last)("file.jpg")


# -- whatever the given pipeline takes ------------------------------------------------------------------


def of_mode(mode: str) -> Image.Image:
    image = photo(30, 26)
    if mode in ("LA", "La", "RGBa"):
        image = image.convert("RGBA").convert("LA" if mode == "La" else mode)
    if mode == "LAB":
        return Image.merge("LAB", image.split())
    gray = np.asarray(image.convert("L"))
    if mode in ("I", "I;16", "I;16B"):
        if mode == "I;16B":
            return Image.frombytes(mode, image.size, (gray.astype(">u2") * 257).tobytes())
        return Image.fromarray(gray.astype({"I": np.int32, "I;16": np.uint16}[mode]) * 257)
    return image.convert("P").convert(mode) if mode == "PA" else image.convert(mode)


MODES = (
    *("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "I", "F"),
    *("I;16", "I;16B", "La", "RGBa"),
)


def arrays() -> dict[str, np.ndarray]:
    levels = np.array(photo(30, 26))
    floats = np.random.default_rng(0).random((26, 30, 3))
    gray = {f"gray {d}": levels[..., 0].astype(d) for d in ("uint8", "int16", "int32", "float32", "bool")}
    four = np.concatenate([levels, levels[..., :1]], -1)
    shapes = {
        "one": levels[..., :1],
        "two": levels[..., :2],
        "four": four,
        "five": np.dstack([four, levels[..., :1]]),
    }
    wrong = {"a batch": levels[None], "a row": levels[0, 0]}
    kinds = {
        d: (floats if "float" in d else levels).astype(d)
        for d in ("uint8", "uint16", "int32", "int64", "float16", "float32", "float64", "bool")
    }
    return {**kinds, **gray, **shapes, **wrong, "columns": np.asfortranarray(levels)}


def tensors() -> dict[str, Tensor]:
    floats = torch.rand(3, 26, 30, generator=torch.Generator().manual_seed(0))
    kinds = {str(d): floats.to(d) for d in (torch.float32, torch.float64, torch.float16)}
    whole = {str(d): (255 * floats).to(d) for d in (torch.int16, torch.int32, torch.int64)}
    return {**kinds, **whole, "a batch": torch.stack([floats] * 2), "bool": floats > 0.5}


INPUTS = {"PIL images": {mode: of_mode(mode) for mode in MODES}, "arrays": arrays(), "tensors": tensors()}


def of_libraries(library: str) -> list[Any]:
    """Return transforms, and pipelines that begin with conversions."""
    version = {"v1": v1, "v2": v2}.get(library)
    if version is not None:
        floats = [version.ConvertImageDtype(d) for d in (torch.float32, torch.int16, torch.uint8)]
        jitter, steps = (
            version.ColorJitter(0.3),
            [version.ToTensor(), version.Normalize([0.5] * 3, [0.5] * 3)],
        )
        found = [getattr(version, n)(**a) for n, a in BOTH] + of_floats(version) + floats
        found += [
            version.ToPILImage(),
            version.ToPILImage("RGB"),
            version.Compose([version.Resize(20), *steps]),
        ]
        found += [version.Compose([version.ToPILImage(), version.RandomCrop(20), jitter, *steps[:1]])]
        found += [
            version.RandomApply([version.ToTensor()]),
            version.Compose(steps),
            version.Compose(steps[::-1]),
        ]
        if version is v2:
            return [
                *found,
                v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
                v2.ToPureTensor(),
            ]
        small = {"resize_size": 24, "crop_size": 20}
        weights = [_presets.ObjectDetection(), _presets.SemanticSegmentation(resize_size=None)]
        weights += [_presets.ImageClassification(**small)]
        return [*found, *weights, v1.Compose([])]
    timm = pytest.importorskip("timm")
    data, auto = timm.data.transforms, timm.data.auto_augment
    found = [make() for make in of_timm()]
    found += [data.MaybeToTensor(), data.MaybePILToTensor(), data.ToTensor(), data.ToTensor(torch.float16)]
    found += [
        timm.data.random_erasing.RandomErasing(1.0, mode=m, device="cpu") for m in ("const", "pixel", "rand")
    ]
    how = [
        {},
        {"is_training": True},
        {"is_training": True, "auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 1.0},
    ]
    found += [timm.data.create_transform(24, **each) for each in how]
    return [*found, auto.AugmentOp("Rotate", 1.0, 7, {"img_mean": 9}), auto.AugmentOp("Invert", 1.0, 7)]


def attempt(call: Callable[[Any], Any], inpt: Any, number: int = 0) -> Any:
    seed(number)
    try:
        return call(inpt.copy() if hasattr(inpt, "copy") else inpt.clone())
    except Exception as error:  # what the library raises is not ours to say
        return error


def kinds_of(out: Any) -> Any:
    """Return the classes, modes, dtypes and shapes of what a pipeline returns."""
    if isinstance(out, (tuple, list)):
        return [kinds_of(each) for each in out]
    forms = [getattr(out, name, None) for name in ("mode", "size", "dtype", "shape")]
    return [type(out), *[None if callable(form) else form for form in forms]]


def is_of_16_bits(inpt: Any) -> bool:
    if isinstance(inpt, Image.Image):
        return inpt.mode.startswith("I;16")
    return isinstance(inpt, np.ndarray) and inpt.dtype == np.int16


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("library", ["v1", "v2", "timm"])
def test_inputs_of_every_kind(library: str, kind: str) -> None:
    """What the given transform takes, the converted one takes, with the same result; it refuses the rest.

    On tensors the pixels are imgops', which take more dtypes than the first version does.
    """
    for given in of_libraries(library):
        converted, shown = ours.convert(given), str(given)
        for name, inpt in INPUTS[kind].items():
            what = f"{shown}, {name}"
            wanted, after = attempt(given, inpt), state()
            found, moved = attempt(converted, inpt), state()
            if isinstance(wanted, Exception):
                # The policies of imgops take any number of channels.
                assert isinstance(found, Exception) or kind == "tensors" or "AugMix" in shown, what
                continue
            if is_of_16_bits(inpt) and (isinstance(found, Exception) or kinds_of(found)[3] == torch.uint16):
                continue  # torchvision has negative numbers here, or the lower half of the bits
            if isinstance(found, Exception):
                raise AssertionError(what) from found
            assert moved == after, what
            assert kinds_of(found) == kinds_of(wanted), what
            most = DIFFERENCES.get(type(given).__name__, 0)
            if isinstance(given, v2.RandomErasing) and given.value is None and isinstance(found, Image.Image):
                continue  # noise below 0 has no defined level
            assert kind == "tensors" or levels_apart(found, wanted) <= most, what


def memory(out: Any) -> list[Tensor]:
    return [x for x in out if isinstance(x, Tensor)] if isinstance(out, (tuple, list)) else [out]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_memory_is_planar_where_torchvisions_is(dtype: torch.dtype) -> None:
    """One interleaved image, as ToImage makes it of a PIL image: by each class, and by converted ones."""
    image = v2.functional.to_dtype(v2.functional.pil_to_tensor(photo(50, 40)), dtype, scale=True)
    assert not image.is_contiguous()
    large = [Case("CenterCrop", {"size": (60, 50)}), Case("ColorJitter", {"brightness": 0.3})]
    for case in (*CASES, *large):
        if not hasattr(v2, case.name) or case.boxes:
            continue
        calls: list[tuple[Any, Any]] = [(case.make(v2), case.make(ours)), (case.make(v2), None)]
        if hasattr(v1, case.name) and case.name not in ("AugMix", "ElasticTransform"):
            calls.append((getattr(v1, case.name)(**case.options), None))
        for given, found in calls:
            found = ours.convert(given) if found is None else found
            for inpt in (image, tv_tensors.Image(image)):
                wanted = attempt(given, inpt, 1)
                if not isinstance(wanted, Exception):
                    pairs = zip(memory(wanted), memory(attempt(found, inpt, 1)), strict=True)
                    assert all(b.is_contiguous() for a, b in pairs if a.is_contiguous()), case


@pytest.mark.parametrize("i", range(7))
def test_memory_of_converted_pipelines(i: int) -> None:
    timm = pytest.importorskip("timm")
    to_tensor, normalize = v1.ToTensor(), v1.Normalize([0.5] * 3, [0.5] * 3)
    given = (
        v1.Compose([v1.Resize(40), v1.CenterCrop(32), to_tensor, normalize]),
        v1.Compose([v1.RandomCrop(32, 4), v1.RandomHorizontalFlip(), to_tensor]),
        v1.Compose([to_tensor, v1.RandomHorizontalFlip(1.0), v1.RandomErasing(1.0)]),
        v1.Compose([v1.PILToTensor(), v1.ConvertImageDtype(torch.float32), v1.Resize(20), normalize]),
        v2.Compose([v2.ToImage(), v2.Pad(2), v2.ToDtype(torch.float32, scale=True)]),
        timm.data.create_transform((3, 32, 32), is_training=True),
        timm.data.create_transform((3, 32, 32), is_training=False),
    )[i]
    seed(0)
    wanted = given(photo())
    seed(0)
    assert ours.convert(given)(photo()).stride() == wanted.stride()


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_numbers_of_16_bits_are_not_negative(mode: str) -> None:
    levels = np.array([[0, 1, 32767, 32768, 40000, 65535]])
    image = Image.frombytes(mode, (6, 1), levels.astype(">u2" if mode == "I;16B" else "<u2").tobytes())
    calls = [ours.ToTensor(), ours.convert(v1.ToTensor()), ours.convert(v2.ToTensor())]
    calls += [ours.convert(v1.Compose([v1.RandomHorizontalFlip(0), v1.ToTensor()]))]
    calls += [] if mode == "I;16B" else [ours.PILToTensor(), ours.convert(v1.PILToTensor())]
    for call in calls:
        found = call(image)
        assert found.shape == (1, 1, 6) and found.flatten().tolist() == levels.flatten().tolist()


def test_the_dtype_of_floats_is_that_of_the_call() -> None:
    given = v1.Compose([v1.ToTensor(), v1.Normalize([0.5] * 3, [0.3] * 3)])
    converted = ours.convert(given)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(converted(photo()), given(photo())) and converted(photo()).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_annotations_that_would_not_follow() -> None:
    timm = pytest.importorskip("timm")
    converted = ours.convert(timm.data.create_transform(32, is_training=True, auto_augment="v0"))
    image = tv_tensors.Image(v1.functional.pil_to_tensor(photo()))
    with pytest.raises(
        TypeError, match="AutoAugment: inputs must not be masks, boxes or keypoints, got Mask"
    ):
        converted(image, tv_tensors.Mask(torch.zeros(75, 97)))
    with pytest.raises(
        TypeError, match=r"AutoAugment: image must be uint8 of 1 or 3 channels, got torch\.float32 of 3"
    ):
        converted(image / 255)


def sums(crops: Any) -> Tensor:
    return torch.stack([v1.functional.to_tensor(crop) for crop in crops])


@pytest.mark.parametrize(
    "given",
    [
        v1.Compose([v1.FiveCrop(20), v1.Lambda(sums)]),
        v1.Compose([v1.Lambda(np.array), v1.ToTensor()]),
        v1.Compose([v1.Lambda(lambda x: (x, x)), v1.Lambda(lambda pair: pair[1]), v1.ToTensor()]),
        v1.Compose([v1.PILToTensor(), v1.ConvertImageDtype(torch.int16)]),
        v1.Compose([]),
    ],
)
def test_functions_inside_of_the_first_version(given: Any) -> None:
    assert levels_apart(ours.convert(given)(photo()), given(photo())) == 0


@pytest.mark.parametrize(
    "given",
    [
        v1.Resize((50, 77), InterpolationMode.NEAREST),
        v1.Resize(30, antialias=False),
        v1.Resize(30, InterpolationMode.LANCZOS, antialias=None),
        v2.Resize(30, InterpolationMode.NEAREST),
        v2.Resize(30, antialias=False),
    ],
)
def test_tensors_have_the_pixels_of_pil(given: Any) -> None:
    found = ours.convert(given)(v1.functional.pil_to_tensor(photo()))
    assert levels_apart(found.permute(1, 2, 0), given(photo())) == 0


def test_attributes_that_were_changed() -> None:
    timm = pytest.importorskip("timm")
    given = timm.data.create_transform(32, is_training=True, auto_augment="rand-m9-n3")
    for op in next(t for t in given.transforms if type(t).__name__ == "RandAugment").ops:
        op.magnitude_std, op.magnitude_max, op.kwargs["resample"] = 3.0, 2.0, 0
    converted = ours.convert(given)
    for number in range(5):
        seed(number)
        wanted, after = given(photo()), state()
        seed(number)
        assert levels_apart(converted(photo()), wanted) == 0
        assert state() == after
    for hooked in (v1.CenterCrop(3), torch.nn.Sequential(v1.CenterCrop(3)), v2.Compose([v1.CenterCrop(3)])):
        hooked.register_forward_hook(lambda *_: None)
        with pytest.raises(ValueError, match=r"got \w+\(hooks\)"):
            ours.convert(hooked)
    for kind in ("forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"):
        hooked = v2.Normalize([0.5], [0.5])
        getattr(hooked, f"register_{kind}")(lambda *_: None)
        with pytest.raises(ValueError, match=r"got Normalize\(hooks\)"):
            ours.convert(hooked)


def test_attributes_that_timm_does_not_read() -> None:
    auto = pytest.importorskip("timm.data.auto_augment")
    how = {"img_mean": (1, 2, 3)}
    for changed in (
        {"aug_fn": auto.solarize},
        {"level_fn": auto._posterize_increasing_level_to_arg},
        {"aug_fn": auto.invert, "level_fn": None},
        {"name": "Invert"},
    ):
        op = auto.AugmentOp("PosterizeOriginal", 1.0, 8, how)
        vars(op).update(changed)
        given = v1.Compose([op])
        assert levels_apart(ours.convert(given)(photo()), given(photo())) == 0, changed
    for mode, changed in (
        ("const", {"per_pixel": True}),
        ("pixel", {"mode": "const"}),
        ("rand", {"per_pixel": True}),
    ):
        erasing = pytest.importorskip("timm.data.random_erasing").RandomErasing(1.0, mode=mode, device="cpu")
        vars(erasing).update(changed)
        image = torch.rand(3, 30, 40)
        seed(2)
        wanted = erasing(image.clone())
        seed(2)
        assert torch.equal(ours.convert(v1.Compose([erasing]))(image), wanted)


def test_numbers_of_a_normalization() -> None:
    """They may be numbers, arrays or tensors; those that are learned stay learned."""
    image = torch.rand(3, 4, 5)
    for mean in (0.5, np.float32(0.5), [0.5] * 3, np.full(3, 0.5), torch.full((3,), 0.5)):
        given = v1.Normalize(mean, 0.25 if isinstance(mean, float) else mean)
        torch.testing.assert_close(ours.convert(given)(image), given(image))
    learned = v1.Normalize(torch.nn.Parameter(torch.full((3,), 0.5)), [0.5] * 3)
    assert ours.convert(v1.Compose([learned]))(image).requires_grad


@pytest.mark.parametrize("module", [v1, v2, ours], ids=["v1", "v2", "imgops"])
def test_a_pipeline_keeps_the_profile_of_an_image(module: Any) -> None:
    given = module.Compose([module.Resize(40), module.RandomHorizontalFlip(1.0), module.RandomInvert(1.0)])
    image = photo()
    image.info = {"icc_profile": b"profile", "dpi": (72, 72)}
    for pipeline in (given, ours.convert(given)):
        assert pipeline(image).info == image.info


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_a_crop_in_a_random_interpolation_of_other_modes(mode: str) -> None:
    crops = pytest.importorskip("timm").data.transforms
    crop = crops.RandomResizedCropAndInterpolation(20, interpolation="random")
    given = v1.RandomChoice([crop, v1.CenterCrop(20)])
    for number in range(6):
        seed(number)
        wanted = given(photo().convert(mode))
        seed(number)
        assert levels_apart(ours.convert(given)(photo().convert(mode)), wanted) == 0


def test_a_pipeline_of_imgops_stays() -> None:
    given = ours.Compose([ours.RandomCrop(3)])
    assert ours.convert(given) is given
    mixed = ours.convert(v1.Compose([ours.RandomCrop(30), v1.ToTensor()]))
    assert mixed(photo()).shape == (3, 30, 30)


def test_albumentations() -> None:
    A = pytest.importorskip("albumentations", "2.0.8")
    assert repr(ours.convert(A.Compose([A.CLAHE(p=1.0)]))) == repr(
        ours.from_albumentations(A.Compose([A.CLAHE(p=1.0)]))
    )


@pytest.mark.parametrize("library", ["timm", "open_clip", "lightly"])
def test_the_example_of_its_page(library: str) -> None:
    pytest.importorskip(library)
    page = Path(__file__).parents[1] / "docs" / "migrating" / f"{library}.rst"
    (code,) = re.findall(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", page.read_text(), re.M)
    exec(textwrap.dedent(code), {})
