"""Pictures of what each operator and each transform does to a photograph."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torchvision import tv_tensors

from imgops import transforms
from show import _scene
from show._transforms import ARGUMENTS
from tests.specs import SPECS

Draw = Callable[[dict[str, Any]], Image.Image]

#: torchvision's transforms, with the arguments of their pictures.
OF_TORCHVISION: dict[str, dict[str, Any]] = {
    "AugMix": {"severity": 8},
    "AutoAugment": {},
    "CenterCrop": {"size": (150, 220)},
    "ColorJitter": {"brightness": 0.6, "contrast": 0.6, "saturation": 0.8, "hue": 0.4},
    "ElasticTransform": {"alpha": 350.0, "sigma": 7.0},
    "GaussianBlur": {"kernel_size": 21, "sigma": (5.0, 5.0)},
    "GaussianNoise": {"sigma": 0.2},
    "Grayscale": {"num_output_channels": 3},
    "JPEG": {"quality": (4, 4)},
    "Pad": {"padding": 40, "fill": {tv_tensors.Image: 128, "others": 0}},
    "RandAugment": {"magnitude": 20},
    "RandomAdjustSharpness": {"sharpness_factor": 9.0, "p": 1.0},
    "RandomAffine": {"degrees": 35, "translate": (0.1, 0.1), "scale": (0.6, 0.9), "shear": 15},
    "RandomAutocontrast": {"p": 1.0},
    "RandomChannelPermutation": {},
    "RandomCrop": {"size": (160, 200)},
    "RandomEqualize": {"p": 1.0},
    "RandomErasing": {"p": 1.0},
    "RandomGrayscale": {"p": 1.0},
    "RandomHorizontalFlip": {"p": 1.0},
    "RandomInvert": {"p": 1.0},
    "RandomIoUCrop": {"max_scale": 0.7},
    "RandomPerspective": {"distortion_scale": 0.6, "p": 1.0},
    "RandomPhotometricDistort": {"p": 1.0},
    "RandomPosterize": {"bits": 2, "p": 1.0},
    "RandomResize": {"min_size": 90, "max_size": 160},
    "RandomResizedCrop": {"size": (180, 240), "scale": (0.2, 0.4)},
    "RandomRotation": {"degrees": (25, 40)},
    "RandomShortestSize": {"min_size": 120},
    "RandomSolarize": {"threshold": 100.0, "p": 1.0},
    "RandomVerticalFlip": {"p": 1.0},
    "RandomZoomOut": {"p": 1.0, "side_range": (1.5, 2.0)},
    "Resize": {"size": (110, 240)},
    "ScaleJitter": {"target_size": (200, 200), "scale_range": (0.4, 0.7)},
    "TrivialAugmentWide": {},
}
#: The public names that make no image from a photograph, and the transforms that change no pixels themselves.
NOT_PICTURED = {
    *(
        "adjoint",
        "decompositions",
        "inverse",
        "show_config",
        "NothingChangesWarning",
        "SlowPathWarning",
        "ConnectedComponents",
    ),
    *("EncodedImage", "EncodedImages", "PackedImages", "decode_images"),
    *(
        "Compose",
        "FiveCrop",
        "TenCrop",
        "RandomApply",
        "RandomChoice",
        "RandomOrder",
        "Identity",
        "Lambda",
        "RGB",
    ),
    *("ClampBoundingBoxes", "ClampKeyPoints", "ConvertBoundingBoxFormat", "SanitizeBoundingBoxes"),
    *("SanitizeKeyPoints", "SetClampingMode", "ConvertImageDtype", "LinearTransformation", "Normalize"),
    *(
        "PILToTensor",
        "ToDtype",
        "ToImage",
        "ToPILImage",
        "ToPureTensor",
        "ToTensor",
        "UniformTemporalSubsample",
    ),
}


#: Seeds with which these transforms draw parameters that have a visible effect.
SEEDS = {"AugMix": 20, "PixMix": 5, "TrivialAugmentWide": 6, "RandomIoUCrop": 9}


def _of_operator(function: Callable[[Tensor], Tensor]) -> Draw:
    return lambda scene: _scene.picture(function(scene["image"].as_subclass(Tensor)))


def _of_transform(name: str, options: dict[str, Any]) -> Draw:
    def draw(scene: dict[str, Any]) -> Image.Image:
        given = {k: v(scene["image"]) if k == "references" else v for k, v in options.items()}
        transform = getattr(transforms, name)(**given)
        if getattr(transform, "_moves", False):  # masks, boxes and keypoints move with the image
            return _scene.draw_annotated(transform(scene))
        return _scene.picture(transform(scene["image"]))

    return draw


def _of_batch(name: str) -> Draw:
    """Return a function that draws MixUp or CutMix of the photograph with its mirrored negative."""

    def draw(scene: dict[str, Any]) -> Image.Image:
        image = scene["image"].as_subclass(Tensor)
        batch = torch.stack([image, 255 - image.flip(-1)])
        mixed, _ = getattr(transforms, name)(alpha=4.0, num_classes=2)(
            batch, torch.tensor([0, 1], dtype=torch.int64, device="cpu")
        )
        return _scene.picture(mixed[0])

    return draw


def _of_samples(name: str, options: dict[str, Any]) -> Draw:
    """Return a function that draws Mosaic or CopyPaste with mirrored and inverted photographs."""

    def draw(scene: dict[str, Any]) -> Image.Image:
        mirrored = transforms.RandomHorizontalFlip(1.0)(scene)
        inverted = {**scene, "image": transforms.RandomInvert(1.0)(scene["image"])}
        flipped = transforms.RandomVerticalFlip(1.0)(inverted)
        samples = [scene, mirrored, flipped, inverted] if name == "Mosaic" else [scene, flipped]
        return _scene.draw_annotated(getattr(transforms, name)(**options)(samples))

    return draw


def _with_tight_boxes(scene: dict[str, Any]) -> Image.Image:
    """Draw the scene after a rotation, which makes boxes larger than their objects, and BoxesFromMasks."""
    turned = transforms.RandomRotation((30, 30))(scene)
    return _scene.draw_annotated(transforms.BoxesFromMasks()(turned))


def _all() -> dict[str, Draw]:
    found = {name: _of_operator(spec.pictured) for name, spec in SPECS.items() if spec.is_public}
    for name, options in OF_TORCHVISION.items():
        found[name] = _of_transform(name, options)
    found |= {name: _of_batch(name) for name in ("CutMix", "MixUp")}
    for name in transforms.ADDED:
        cls = getattr(transforms, name)
        several, draws = hasattr(cls, "_join"), "p" in signature(cls).parameters
        options = {**({"p": 1.0} if draws and not several else {}), **ARGUMENTS.get(name, {})}
        found[name] = _of_samples(name, options) if several else _of_transform(name, options)
    found["BoxesFromMasks"] = _with_tight_boxes
    return dict(sorted(found.items(), key=lambda item: (item[0][0].isupper(), item[0].lower())))


#: For each name, the function that draws its picture from a scene. Operators come first, then transforms.
EXAMPLES: dict[str, Draw] = _all()


def draw(name: str, scene: dict[str, Any]) -> Image.Image:
    """Draw the picture of an operator or a transform; equal photographs give equal pictures."""
    state = torch.get_rng_state()
    torch.manual_seed(SEEDS.get(name, zlib.crc32(name.encode()) % 1000))
    try:
        return EXAMPLES[name](scene)
    finally:
        torch.set_rng_state(state)
