"""The table of the converter: classes and pipelines of other libraries, with arguments, and inputs to compare them on."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data
from torch import Tensor
from torchvision import models, tv_tensors
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, v2


def photo(width: int = 97, height: int = 75, mode: str = "RGB") -> Image.Image:
    image = Image.fromarray(data.astronaut()).resize((width, height))
    return image.convert("RGBA").convert(mode) if mode == "LA" else image.convert(mode)


PHOTO, LARGE, GRAY = photo(), photo(300, 201), photo(mode="L")
OF_MODES = [photo(mode=mode) for mode in ("L", "LA", "RGB", "RGBA", "CMYK", "P")]
LEVELS = v1.functional.pil_to_tensor(PHOTO)
FLOATS = v1.functional.to_tensor(PHOTO)


class Inputs(tuple[Any, ...]):
    """The arguments of one call, where it takes several."""


def seed(number: int) -> None:
    torch.random.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def state() -> Any:
    numpys = np.random.get_state()
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), numpys[1].tobytes(), numpys[2:]


def attempt(call: Callable[..., Any], inpt: Any, number: int = 0) -> Any:
    """Return the result of a call with a copy of its input under a seed, or the error that it raises."""
    inpt = copy.deepcopy(inpt)
    seed(number)
    try:
        return call(*inpt) if isinstance(inpt, Inputs) else call(inpt)
    except Exception as error:
        return error


def levels_apart(found: Any, wanted: Any) -> float:
    """Return the greatest difference of two results; infinity where they differ in anything but numbers."""
    if isinstance(found, Exception):
        raise found
    if isinstance(found, Tensor) and isinstance(wanted, Image.Image):  # a tensor in the place of a PIL image
        found = found.permute(1, 2, 0).squeeze(-1).numpy()
    elif type(found) is not type(wanted):
        return float("inf")
    if isinstance(wanted, dict):
        return levels_apart([*found.values()], [*wanted.values()]) if [*found] == [*wanted] else float("inf")
    if isinstance(wanted, (tuple, list)):
        return max((levels_apart(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)
    if isinstance(found, Image.Image) and found.mode != wanted.mode:
        return float("inf")
    a, b = (np.asarray(x.detach() if isinstance(x, Tensor) else x) for x in (found, wanted))
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.dtype.kind in "OU":
        return 0.0 if found == wanted else float("inf")
    return float(np.abs(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) - b).max(initial=0))


@dataclass(frozen=True)
class Row:
    """A class or a pipeline of another library with its arguments, and the inputs on which it is compared."""

    name: str
    make: Callable[[], Any]
    inputs: Sequence[Any] | Callable[[], Sequence[Any]] = (PHOTO,)
    seeds: int = 4
    #: The most that levels of the inputs may be apart.
    apart: float = 0.0
    #: Whether ``convert`` warns that pixels differ on tensors or on PIL images; None if few seeds show it.
    differs: bool | None = False
    #: Whether a uint8 tensor takes the place of a PIL image, and gives its pixels.
    tensors: bool = True
    #: "one" if a graph is compared, "each" if also a batch with draws for each sample, "sizes" if this is refused.
    graph: str = ""

    def on(self, *inputs: Any, **more: Any) -> Row:
        return replace(self, inputs=inputs, **more)

    def forms(self, inpt: Any) -> list[Any]:
        """Return an input, and the tensor that stands for it."""
        if not self.tensors or not isinstance(inpt, Image.Image) or inpt.mode == "P":
            return [inpt]
        return [inpt, v1.functional.pil_to_tensor(inpt)]


def of(module: str, name: str, *args: Any, **keywords: Any) -> Row:
    """Return a row for a class or a function of a module, which may be missing."""
    library = "v2" if module.endswith("v2") else module.partition(".")[0].replace("torchvision", "v1")
    return Row(f"{library}.{name}", lambda: getattr(pytest.importorskip(module), name)(*args, **keywords))


def is_quick(name: str) -> bool:
    """Return whether ``make test`` runs a row: the first of its class, and one of each kind of view."""
    is_view = name[:8] == "lightly." and name[8 : -len("Transform-0")] in VIEWS.split()
    return name.endswith("-0") and (not is_view or name.startswith(("lightly.DINO", "lightly.SMoG")))


# -- torchvision -----------------------------------------------------------------------------------------

BICUBIC, BILINEAR = InterpolationMode.BICUBIC, InterpolationMode.BILINEAR
CIFAR10 = v1.AutoAugmentPolicy.CIFAR10
#: Name and arguments of a class that both versions have, and whether its pixels differ.
BOTH: list[tuple[str, dict[str, Any], bool | None]] = [
    ("Resize", {"size": 50}, False),
    ("Resize", {"size": (40, 60), "interpolation": BICUBIC}, False),
    ("Resize", {"size": 40, "max_size": 45}, False),
    ("Resize", {"size": (50, 77), "interpolation": InterpolationMode.NEAREST}, False),
    ("Resize", {"size": 30, "antialias": False}, False),
    ("Resize", {"size": 30, "interpolation": InterpolationMode.LANCZOS, "antialias": None}, False),
    ("CenterCrop", {"size": 60}, False),
    ("CenterCrop", {"size": 120}, False),
    ("Pad", {"padding": (3, 4), "padding_mode": "reflect"}, False),
    ("Pad", {"padding": 5, "fill": (1, 2, 3)}, False),
    ("RandomCrop", {"size": 50, "padding": 4}, False),
    ("RandomCrop", {"size": (75, 50)}, False),
    ("RandomCrop", {"size": (75, 97)}, False),
    ("RandomCrop", {"size": (50, 130), "pad_if_needed": True}, False),
    ("RandomCrop", {"size": 84, "padding": 4, "pad_if_needed": True, "padding_mode": "reflect"}, False),
    ("RandomHorizontalFlip", {}, False),
    ("RandomVerticalFlip", {}, False),
    ("RandomResizedCrop", {"size": 40}, False),
    ("RandomResizedCrop", {"size": 40, "scale": (2, 3), "interpolation": BICUBIC}, False),
    ("FiveCrop", {"size": 30}, False),
    ("TenCrop", {"size": 30}, False),
    ("ColorJitter", {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}, False),
    ("ColorJitter", {"contrast": 0.4}, False),
    ("ColorJitter", {"hue": 0.1}, False),
    ("RandomRotation", {"degrees": 30}, True),
    ("RandomRotation", {"degrees": 30, "interpolation": BILINEAR, "expand": True, "fill": 3}, True),
    ("RandomRotation", {"degrees": (0, 0)}, False),
    ("RandomRotation", {"degrees": (180, 180)}, False),
    ("RandomAffine", {"degrees": 30, "translate": (0.1, 0.2), "scale": (0.8, 1.2), "shear": 10}, True),
    ("RandomAffine", {"degrees": 10, "shear": (1, 2, 3, 4), "interpolation": BICUBIC, "fill": 9}, True),
    ("RandomAffine", {"degrees": 0, "translate": (0.2, 0.3)}, False),
    ("RandomAffine", {"degrees": 0, "scale": (0.8, 1.1), "interpolation": BILINEAR}, True),
    ("RandomAffine", {"degrees": (5, 6), "shear": 10, "interpolation": BILINEAR}, True),
    ("RandomPerspective", {"p": 0.7}, True),
    ("RandomPerspective", {"p": 0.0}, False),
    ("RandomPerspective", {"p": 1.0, "distortion_scale": 0.0}, True),
    ("Grayscale", {"num_output_channels": 3}, False),
    ("Grayscale", {}, False),
    ("RandomGrayscale", {"p": 0.5}, False),
    ("GaussianBlur", {"kernel_size": 5}, True),
    ("GaussianBlur", {"kernel_size": 1}, False),
    ("RandomInvert", {}, False),
    ("RandomPosterize", {"bits": 3}, False),
    ("RandomSolarize", {"threshold": 100}, False),
    ("RandomAdjustSharpness", {"sharpness_factor": 2}, False),
    ("RandomAutocontrast", {}, False),
    ("RandomEqualize", {}, False),
    ("ElasticTransform", {}, True),
    ("AutoAugment", {}, True),
    ("AutoAugment", {"policy": CIFAR10, "fill": 128}, None),
    ("RandAugment", {}, True),
    ("RandAugment", {"num_ops": 4, "magnitude": 12, "interpolation": BILINEAR, "fill": (1, 2, 3)}, True),
    ("RandAugment", {"magnitude": 0}, False),
    ("RandAugment", {"num_ops": 0}, False),
    ("TrivialAugmentWide", {}, True),
    ("AugMix", {}, True),
    ("ToTensor", {}, False),
    ("PILToTensor", {}, False),
]
#: The most that the levels of PIL images may differ.
DIFFERENCES = {"GaussianBlur": 1, "ElasticTransform": 1, "AugMix": 255}
VERSIONS = {"v1": v1, "v2": v2}


def both(version: Any) -> list[Row]:
    return [
        replace(
            of(version.__name__, name, **how),
            # The two versions differ in the last bit of the matrix of a shear.
            apart=DIFFERENCES.get(name, float((version, name) == (v1, "RandomAffine"))),
            differs=differs,
            tensors=(version, name) != (v2, "ToTensor"),  # which leaves tensors alone
            seeds=24,
        )
        for name, how, differs in BOTH
    ]


def of_floats(version: Any) -> list[Row]:
    matrix = torch.rand(12, 12, generator=torch.Generator().manual_seed(0))
    this = partial(of, version.__name__)
    small = v1.functional.to_tensor(photo(2, 2))
    return [
        this("RandomErasing", 0.8).on(FLOATS),
        this("RandomErasing", 1.0, value="random").on(FLOATS),
        this("RandomErasing", 1.0, value=(1, 2, 3)).on(FLOATS),
        this("Normalize", [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]).on(FLOATS),
        this("ConvertImageDtype", torch.float64).on(FLOATS),
        this("LinearTransformation", matrix, matrix[0]).on(small),
        this("Lambda", lambda x: x + 1).on(FLOATS),
    ]


def containers(version: Any) -> Iterator[Row]:
    steps = [version.RandomInvert(1), version.RandomPosterize(2, 1), version.RandomSolarize(10, 1)]
    this = partial(of, version.__name__)
    choice = version.RandomChoice([version.Compose(steps[:2]), steps[2]])
    for row in (
        this("RandomApply", steps, 0.5),
        this("RandomChoice", steps),
        this("RandomChoice", steps, p=[0.2, 0.3, 0.6]),
        this("RandomOrder", steps),
        this("Compose", [choice, version.RandomOrder(steps)]),
    ):
        yield replace(row, seeds=8)


def sums(crops: Any) -> Tensor:
    return torch.stack([v1.functional.to_tensor(crop) for crop in crops])


def composed() -> list[Row]:
    """Return pipelines of torchvision in which functions, conversions and crops meet."""
    to_tensor, normalize = v1.ToTensor(), v1.Normalize([0.5] * 3, [0.5] * 3)
    choice = v1.RandomChoice([v1.RandomInvert(1), v1.RandomHorizontalFlip()])
    order = v1.RandomOrder([v1.ColorJitter(0.3), v1.AutoAugment()])
    whole = [v1.RandomResizedCrop(32), choice, v1.RandAugment(), to_tensor, normalize]
    learned = v1.Normalize(torch.nn.Parameter(torch.full((3,), 0.5)), [0.5] * 3)
    first = partial(of, "torchvision.transforms", "Compose")
    second = partial(of, "torchvision.transforms.v2", "Compose")
    return [
        replace(first(whole), differs=None, graph="each"),
        replace(first([v1.RandomCrop(40), order]), differs=None, graph="each"),
        first([v1.Resize(40), v1.CenterCrop(32), to_tensor, normalize]),
        first([v1.RandomCrop(32, 4), v1.RandomHorizontalFlip(), to_tensor]),
        first([to_tensor, v1.RandomHorizontalFlip(1.0), v1.RandomErasing(1.0)]),
        replace(
            first([v1.PILToTensor(), v1.ConvertImageDtype(torch.float32), v1.Resize(20), normalize]),
            apart=2e-6,
        ),
        second([v2.ToImage(), v2.Pad(2), v2.ToDtype(torch.float32, scale=True)]),
        replace(first([v1.FiveCrop(20), v1.Lambda(sums)]), tensors=False),
        replace(first([v1.Lambda(np.array), v1.ToTensor()]), tensors=False),
        first([v1.Lambda(lambda x: (x, x)), v1.Lambda(lambda pair: pair[1]), v1.ToTensor()]),
        first([v1.PILToTensor(), v1.ConvertImageDtype(torch.int16)]),
        first([]),
        first([learned]).on(FLOATS),
        *(
            first([v1.Normalize(mean, 0.25 if isinstance(mean, float) else mean)]).on(FLOATS, apart=1e-6)
            for mean in (0.5, np.float32(0.5), [0.5] * 3, np.full(3, 0.5), torch.full((3,), 0.5))
        ),
    ]


def weights() -> Iterator[Row]:
    """Yield what the weights of torchvision are used with, each once."""
    known = set()
    for name in models.list_models():
        for each in models.get_model_weights(name):
            given = each.transforms()
            if repr(given) in known:
                continue
            known.add(repr(given))
            row = Row(f"weights.{type(given).__name__}-{each}", each.transforms)
            if type(given).__name__ == "VideoClassification":
                row = row.on(torch.stack([LEVELS] * 2), apart=1.01 / 255 / min(given.std), differs=True)
            elif type(given).__name__ == "OpticalFlow":
                row = row.on(Inputs((PHOTO, PHOTO)), Inputs((LARGE, LARGE)))
            else:
                row = row.on(PHOTO, photo(300, 401))
            yield replace(row, seeds=1)


# -- timm ------------------------------------------------------------------------------------------------

sizes = partial(of, "timm.data.transforms")
naflex = partial(of, "timm.data.naflex_transforms")
pipeline = partial(of, "timm.data", "create_transform")
training = partial(pipeline, 64, is_training=True)
RANDOM: dict[str, Any] = {"random_scale_prob": 0.7, "random_aspect_prob": 0.7}
TIMM: list[Row] = [
    sizes("RandomResizedCropAndInterpolation", 64, interpolation="bicubic"),
    sizes("RandomResizedCropAndInterpolation", (64, 50), interpolation="random"),
    sizes("ResizeKeepRatio", 100, **RANDOM),
    sizes("ResizeKeepRatio", 100, 1, "random", random_scale_prob=0.7, random_scale_area=True),
    sizes("CenterCropOrPad", 120, fill=(1, 2, 3)),
    sizes("CenterCropOrPad", (90, 301)),
    sizes("ToNumpy"),
    naflex("ResizeToSequence", 16, 256),
    naflex("ResizeToSequence", (8, 16), 100, interpolation="bilinear", divisible_by_patch=False),
    sizes("TrimBorder", 20),
    sizes("TrimBorder", 0),
    sizes("RandomCropOrPad", 120, fill=(1, 2, 3)),
    sizes("RandomCropOrPad", (90, 301), padding_mode="reflect"),
    sizes("RandomCropOrPad", (60, 97), padding_mode="edge"),
    sizes("RandomPad", (130, 240), fill=(9, 8, 7)),
    sizes("RandomPad", (40, 310)),
    naflex("ResizeToSequence", 16, 40, interpolation="random"),
    naflex("CenterCropToSequence", (16, 8), 30, fill=(4, 5, 6)),
    naflex("CenterCropToSequence", 16, 300, padding_mode="symmetric"),
    naflex("RandomCropToSequence", 16, 40, fill=(4, 5, 6)),
    naflex("RandomCropToSequence", (8, 20), 500, divisible_by_patch=False, padding_mode="reflect"),
    naflex("ResizeKeepRatioToSequence", 16, 40),
    naflex("ResizeKeepRatioToSequence", (8, 16), 60, False, 0.3, "random"),
    naflex("ResizeKeepRatioToSequence", 16, 50, True, 1, "random", random_scale_area=True, **RANDOM),
    naflex("RandomResizedCropToSequence", 16, 40),
    naflex(
        "RandomResizedCropToSequence", (8, 16), 60, (0.3, 1), (0.7, 1.4), "random", False, 1.0, (0.4, 1.0)
    ),
    naflex("RandomResizedCropToSequence", 16, 70, (2, 3), interpolation="bilinear"),
]
#: Arguments of create_transform, for training.
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
    {"color_jitter": (0.4, 0.4, 0.4, 0.1)},
    {"train_crop_mode": "rkrc", "vflip": 0.5},
    {"train_crop_mode": "rkrr", "auto_augment": "rand-m9-mstd0.5-inc1"},
    {"naflex": True, "patch_size": 8, "max_seq_len": 60},
    {"naflex": True, "max_seq_len": 20, "auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 0.5},
    {"no_aug": True},
]
#: Policies on gray images, which take a border of one value: timm makes it of the mean of a gray model.
ON_GRAY = "rand-m9-mstd0.5-inc1 rand-m9-n3-p0.7 v0r-mstd0.5 originalr 3a rand-m7-t3aw-n4 augmix-m5-w4-d2 augmix-m3-b1"


def evaluations() -> Iterator[Row]:
    """Yield the pipelines of timm's pretrained models, each once, by the first model's name."""
    timm = pytest.importorskip("timm")
    known = set()
    for i, name in enumerate(timm.list_models(pretrained=True)):
        config = timm.get_pretrained_cfg(name).to_dict()
        settings = timm.data.resolve_data_config(pretrained_cfg=config, verbose=False)
        text = json.dumps(settings, sort_keys=True, default=str)
        if text not in known:
            known.add(text)
            yield replace(pipeline(**settings), name=name, seeds=1).on((PHOTO, photo(300, 401))[i % 2])


def operation(name: str, /, *args: Any, **attributes: Any) -> Row:
    """Return a row for one operation of timm's policies, some of whose attributes were changed."""

    def make() -> Any:
        auto = pytest.importorskip("timm.data.auto_augment")
        op = auto.AugmentOp(name, *args)
        named = {k: getattr(auto, v) if "_fn" in k and v else v for k, v in attributes.items()}
        vars(op).update(named)
        return v1.Compose([op])

    return Row("timm.AugmentOp", make)


def erasing(mode: str, /, **attributes: Any) -> Row:
    def make() -> Any:
        made = pytest.importorskip("timm.data.random_erasing").RandomErasing(1.0, mode=mode, device="cpu")
        vars(made).update(attributes)
        return made

    return Row("timm.RandomErasing", make, [torch.stack([FLOATS, FLOATS.flip(-1)]), FLOATS], graph="one")


def bordered(fill: Any) -> Row:
    """Return a row for a policy with a border; timm refuses a color for a gray image."""

    def make() -> Any:
        auto = pytest.importorskip("timm.data.auto_augment")
        return auto.RandAugment([auto.AugmentOp("Rotate", 1.0, 9, {"img_mean": fill})], 1)

    return Row("timm.RandAugment", make, [GRAY, PHOTO], seeds=1)


def policy_with_changed_attributes() -> Any:
    made = training(auto_augment="rand-m9-n3").make()
    for op in next(t for t in made.transforms if type(t).__name__ == "RandAugment").ops:
        op.magnitude_std, op.magnitude_max, op.kwargs["resample"] = 3.0, 2.0, 0
    return made


def policies_of_a_user() -> Iterator[Row]:
    def operation() -> Any:
        op = pytest.importorskip("timm.data.auto_augment").AugmentOp("Invert", 1.0, 9)
        op.aug_fn = lambda image, *_, **__: image.rotate(90)
        return op

    for name, around in (("RandAugment", lambda op: [[op], 1]), ("AutoAugment", lambda op: [[[op]]])):
        whole = lambda n=name, a=around: of("timm.data.auto_augment", n, *a(operation())).make()
        make = lambda whole=whole: v1.Compose([whole()])
        yield Row(f"timm.{name}", make, tensors=False)
    yield Row("timm.AugmentOp", lambda: v1.Compose([operation()]), tensors=False)


def crop_in_a_choice() -> Any:
    crop = sizes("RandomResizedCropAndInterpolation", 20, interpolation="random").make()
    return v1.RandomChoice([crop, v1.CenterCrop(20)])


def mixtures() -> Iterator[Row]:
    images, labels = torch.rand(6, 3, 17, 23), torch.arange(6)
    boxes = {"mixup_alpha": 0, "cutmix_alpha": 1.0, "prob": 0.7}
    kinds: list[dict[str, Any]] = [{}, {"cutmix_alpha": 1.0}, boxes, {"cutmix_minmax": (0.2, 0.8)}]
    for mode, settings in product(("batch", "elem", "pair"), kinds):
        row = of("timm.data", "Mixup", num_classes=7, mode=mode, **settings)
        yield replace(row, seeds=6, graph="one" if mode == "elem" else "").on(Inputs((images, labels)))


def timm_rows() -> list[Row]:
    patches: dict[str, Any] = {"naflex": True, "patch_size": 16, "max_seq_len": 60, "patchify": True}
    gray = {"mean": (0.4,), "std": (0.2,)}
    drawn = {"auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 1.0}
    whole = {"interpolation": "random", "re_prob": 0.7, "re_mode": "pixel"}
    means: dict[str, Any] = {"img_mean": (1, 2, 3)}
    return [
        *(row.on(PHOTO, LARGE) for row in TIMM[:7]),
        *(row.on(PHOTO, LARGE, graph="each") for row in TIMM[7:23]),
        *(row.on(PHOTO, LARGE, graph="sizes") for row in TIMM[23:]),
        *(training(**how).on(photo(150, 112), seeds=8) for how in TRAINING),
        *(training(auto_augment=p, **gray).on(photo(150, 112, "L"), seeds=12) for p in ON_GRAY.split()),
        replace(pipeline(32, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", **whole), graph="each"),
        *(
            pipeline(224, crop_border_pixels=3, **patches, **more).on(PHOTO, photo(300, 401), seeds=1)
            for more in ({}, {"patchify_flatten": False}, {"patchify_channels_last": False})
        ),
        replace(training(**drawn, **{**patches, "patch_size": (16, 8), "max_seq_len": 20}), graph="one"),
        *(
            operation(name, 0.8, 7, {"magnitude_std": 0.5, "img_mean": (9,)}).on(GRAY, PHOTO)
            for name in ("Rotate", "GaussianBlurRand", "Desaturate", "ColorIncreasing", "ShearX")
        ),
        *(bordered(fill) for fill in (7, (7,), (7, 8, 9))),
        Row("timm.RandAugment", policy_with_changed_attributes),
        replace(operation("PosterizeOriginal", 1.0, 8, means, aug_fn="solarize"), tensors=False),
        operation("PosterizeOriginal", 1.0, 8, means, level_fn="_posterize_increasing_level_to_arg"),
        operation("PosterizeOriginal", 1.0, 8, means, aug_fn="invert", level_fn=None),
        operation("PosterizeOriginal", 1.0, 8, means, name="Invert"),
        erasing("const", per_pixel=True),
        erasing("pixel", mode="const"),
        erasing("rand", per_pixel=True),
        *policies_of_a_user(),
        Row("timm.RandomChoice", crop_in_a_choice, OF_MODES, 6),
        *mixtures(),
    ]


# -- open_clip and lightly ---------------------------------------------------------------------------------

JITTER = {"color_jitter": (0.4, 0.4, 0.4, 0.0), "color_jitter_prob": 0.8, "gray_scale_prob": 0.4}
BY_TIMM = {"use_timm": True, "scale": (0.3, 1.0), "color_jitter": 0.4, "re_prob": 0.5}
OPEN_CLIP: list[dict[str, Any]] = [
    {"is_train": False},
    {"is_train": False, "resize_mode": "longest", "fill_color": 7},
    {"is_train": False, "resize_mode": "squash", "interpolation": "bilinear"},
    {"is_train": False, "image_size": (100, 80)},
    {"is_train": True},
    {"is_train": True, "aug_cfg": JITTER},
    {"is_train": True, "aug_cfg": BY_TIMM},
]
#: Views of lightly, under the names of their papers.
VIEWS = (
    "AIM BYOL CAPI DINO DenseCL FastSiam IBOT MAE MMCR MSN MoCoV1 MoCoV2 SMoG SimCLR SimSiam SwaV TiCo VICRegLView "
    "VICReg WMSE PIRL VICRegL FDAView1 FDAView2 FDA"
)
lightly = partial(of, "lightly.transforms")
#: Arguments of views without the hue, which draws levels that NumPy rounds.
FDA: dict[str, Any] = {"cj_prob": 0.0, "gaussian_blur": 0.5, "solarization_prob": 0.5}
FDA |= {"ampl_rescale_prob": 0.5, "phase_shift_prob": 0.3, "rand_freq_mask_prob": 0.5, "gmm_prob": 0.3}
GRIDS: dict[str, Any] = {"n_global_views": 1, "n_local_views": 1, "vf_prob": 0.5, "global_grid_size": 3}
OF_MASKS: dict[str, Any] = {"gaussian_blur_t1": 0.0, "vf_prob": 0.5, "rr_prob": 0.5, "rr_degrees": 30.0}


def segments(image: Any) -> Tensor:
    """Return two segments of an image, without a dimension of channels."""
    height, width = v2.functional.get_size(image)
    return (torch.arange(height)[:, None] + torch.arange(width) > 90).to(torch.uint8)


def in_the_place_of_boxes() -> list[dict[str, Any]]:
    """Return samples with boxes in each format and in two dtypes, which a grid replaces."""
    return [
        {
            "image": PHOTO,
            "boxes": [
                tv_tensors.BoundingBoxes(torch.ones(2, 4, dtype=d), format=form, canvas_size=(31, 52))
                for d in (torch.float64, torch.int32)
            ],
            "mask": tv_tensors.Mask(torch.zeros(31, 52)),
        }
        for form in ("XYXY", "XYWH", "CXCYWH")
    ]


def lightly_rows() -> list[Row]:
    square, wide = photo(240, 240), photo(120, 100)
    images = torch.rand(3, 3, 31, 40, generator=torch.Generator().manual_seed(0))
    spectra = torch.fft.rfft2(images)
    grid = tv_tensors.BoundingBoxes(torch.ones(2, 4), format="XYWH", canvas_size=(75, 97))
    mask = Inputs((PHOTO, tv_tensors.Mask(torch.arange(75 * 97).reshape(1, 75, 97))))
    view = lambda **more: replace(
        lightly("DetConSTransform", input_size=40, cj_hue=0.0, **OF_MASKS, **more), differs=None
    )
    last = lambda: v2.Compose([lightly("GaussianBlur", prob=0.5).make(), lightly("ToTensor").make()])
    jigsaw = lambda: lightly("Jigsaw", 2, 61, 20, last()).make()
    return [
        *(lightly(f"{name}Transform").on(wide, seeds=2) for name in VIEWS.split()),
        of("lightly.transforms.ijepa_transform", "IJEPATransform").on(wide, seeds=2),
        lightly("DINOTransform", cj_prob=0.0, rr_prob=1.0).on(square, seeds=1, graph="each"),
        lightly("DINOTransform", cj_prob=0.0, rr_prob=0.5, rr_degrees=20.0, solarization_prob=0.5).on(
            square, seeds=1, graph="each", differs=None
        ),
        lightly("PIRLTransform", cj_prob=0.0, input_size=40, n_grid=2).on(wide, graph="each"),
        lightly("VICRegLTransform", cj_prob=0.0, global_crop_size=50, **GRIDS).on(wide, graph="each"),
        lightly("FDAView2Transform", input_size=64, gmm_num_gaussians=2, **FDA).on(PHOTO, seeds=6),
        lightly("AmplitudeRescaleTransform", (0.5, 2.0)).on(*spectra, graph="each"),
        lightly("PhaseShiftTransform").on(*spectra, graph="each"),
        lightly("PhaseShiftTransform", (0.1, 0.9), True, 0.3).on(*spectra, graph="each"),
        lightly("RandomFrequencyMaskTransform", (0.2, 0.5)).on(*spectra, graph="each"),
        lightly("GaussianMixtureMask", 3, (4, 9)).on(*spectra, graph="each"),
        lightly("RFFT2DTransform").on(*images, graph="each"),
        lightly("IRFFT2DTransform", (31, 40)).on(*spectra, graph="each"),
        Row("lightly.Jigsaw", jigsaw),
        *(view(**more).on(mask) for more in ({}, {"grid_size": (3, 7)})),
        view(mask_fn=segments).on(PHOTO),
        view(mask_fn=segments, cj_prob=0.0).on(PHOTO, graph="one"),
        lightly("AddGridTransform", 3, 5).on(*in_the_place_of_boxes(), seeds=1),
        lightly("AddGridTransform", 3, 7).on(Inputs((LEVELS, grid)), graph="one"),
        lightly("GaussianBlur", prob=0.8).on(*OF_MODES, seeds=2),
        *(
            lightly("RandomSolarization", *how).on(*OF_MODES, seeds=2)
            for how in ((0.8,), *((1.0, threshold) for threshold in (256, 0, -3, 127.5, 255)))
        ),
    ]


def rows() -> list[Row]:
    """Return all rows, under unique names."""
    clip = [
        of("open_clip.transform", "image_transform", **{"image_size": 64, **how}).on(PHOTO, LARGE, seeds=5)
        for how in OPEN_CLIP
    ]
    every = [row for v in (v1, v2) for row in (*both(v), *of_floats(v), *containers(v))]
    every += [*composed(), *weights(), *timm_rows(), *clip, *lightly_rows()]
    count: dict[str, int] = {}
    found = []
    for row in every:
        count[row.name] = count.get(row.name, -1) + 1
        found.append(replace(row, name=f"{row.name}-{count[row.name]}"))
    return found


ROWS = {row.name: row for row in rows()}
