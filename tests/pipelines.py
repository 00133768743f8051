"""Pipelines of public training and evaluation code, which tests compare over time.

Each makes a transform of imgops, directly or by conversion of another library's, from a PIL image or a tensor of
levels. The sizes are small, so that many calls are quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torchvision.transforms import InterpolationMode

from imgops import transforms as v2
from imgops.transforms import recipes

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BICUBIC = InterpolationMode.BICUBIC


def _normalized(*steps: Any, of: Any = v2) -> Any:
    """Return a pipeline that begins with a tensor and ends with ImageNet's normalization."""
    return of.Compose([of.ToImage(), *steps, of.ToDtype(torch.float32, scale=True), of.Normalize(MEAN, STD)])


def _contrastive(strength: float, *last: Any) -> list[Any]:
    """Return the random steps of SimCLR and its successors."""
    jitter = v2.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength)
    return [
        v2.RandomResizedCrop(48, scale=(0.08, 1.0), interpolation=BICUBIC),
        v2.RandomHorizontalFlip(),
        v2.RandomApply([jitter], p=0.8),
        v2.RandomGrayscale(0.2),
        *last,
    ]


def _detection(*steps: Any) -> Any:
    return v2.Compose([v2.ToImage(), *steps, v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()])


def _timm(**settings: Any) -> Any:
    from timm.data import create_transform

    return v2.convert(create_transform(48, **settings))


def _open_clip(**settings: Any) -> Any:
    from open_clip.transform import image_transform

    return v2.convert(image_transform(48, **settings))


def _lightly(name: str, **settings: Any) -> Any:
    import lightly.transforms

    return v2.convert(getattr(lightly.transforms, name)(**settings))


def _weights(name: str) -> Any:
    from torchvision.models import get_model_weights

    return v2.convert(get_model_weights(name).DEFAULT.transforms())


def _albumentations(*steps: tuple[str, dict[str, Any]]) -> Any:
    import albumentations

    given = albumentations.Compose([getattr(albumentations, name)(**settings) for name, settings in steps])
    given.set_random_seed(7)
    converted = v2.convert(given)
    return lambda image: converted(image=image)["image"]


_FRACTALS = (
    torch.arange(2 * 3 * 40 * 40).mul(2654435761).bitwise_right_shift(7).to(torch.uint8).reshape(2, 3, 40, 40)
)
_JITTER = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}

#: Name -> how the pipeline is made. Those whose names end in "arrays" take NumPy's arrays (H, W, C).
PIPELINES: dict[str, Callable[[], Any]] = {
    "torchvision: classification": lambda: _normalized(v2.RandomResizedCrop(48), v2.RandomHorizontalFlip()),
    "torchvision: AutoAugment": lambda: _normalized(
        v2.RandomResizedCrop(48), v2.RandomHorizontalFlip(), v2.AutoAugment(), v2.RandomErasing(0.5)
    ),
    "torchvision: RandAugment": lambda: _normalized(v2.RandomResizedCrop(48), v2.RandAugment(2, 9)),
    "torchvision: TrivialAugmentWide": lambda: _normalized(
        v2.RandomResizedCrop(48), v2.TrivialAugmentWide(interpolation=InterpolationMode.BILINEAR)
    ),
    "torchvision: AugMix": lambda: _normalized(v2.RandomResizedCrop(48), v2.AugMix()),
    "torchvision: evaluation": lambda: _normalized(v2.Resize(56), v2.CenterCrop(48)),
    "torchvision: CIFAR": lambda: _normalized(v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()),
    "torchvision: segmentation": lambda: _normalized(
        v2.RandomResize(30, 90), v2.RandomHorizontalFlip(), v2.RandomCrop(48, pad_if_needed=True)
    ),
    "torchvision: large-scale jitter": lambda: _detection(
        v2.ScaleJitter((64, 64)), v2.RandomCrop((64, 64), pad_if_needed=True), v2.RandomHorizontalFlip()
    ),
    "torchvision: multiscale": lambda: _detection(
        v2.RandomShortestSize([30, 40, 50], max_size=70), v2.RandomHorizontalFlip()
    ),
    "torchvision: SSD": lambda: _detection(v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=7)),
    "torchvision: weights of resnet50": lambda: _weights("resnet50"),
    "torchvision: weights of vit_b_16": lambda: _weights("vit_b_16"),
    "SimCLR": lambda: _normalized(*_contrastive(1.0, v2.GaussianBlur(5, (0.1, 2.0)))),
    "MoCo v2": lambda: _normalized(
        *_contrastive(0.5, v2.RandomApply([v2.GaussianBlur(9, (0.1, 2.0))], p=0.5))
    ),
    "BYOL": lambda: _normalized(*_contrastive(0.5, v2.GaussianBlur(9), v2.RandomSolarize(128, 0.2))),
    "MAE": lambda: _normalized(
        v2.RandomResizedCrop(48, scale=(0.2, 1.0), interpolation=BICUBIC), v2.RandomHorizontalFlip()
    ),
    "3-Augment": lambda: recipes.three_augment(48),
    "DINO": lambda: recipes.DINOCrops(global_crops_size=48, local_crops_size=24),
    "PixMix": lambda: v2.Compose([v2.ToImage(), v2.Resize((40, 40)), recipes.pixmix_cifar(_FRACTALS)]),
    "YOLO: letterbox": lambda: v2.Compose([v2.ToImage(), recipes.yolo_letterbox(64)]),
    "geometry": lambda: _normalized(
        v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10), v2.RandomPerspective(0.3), v2.RandomRotation(15)
    ),
    "tones": lambda: _normalized(
        v2.RandomEqualize(), v2.RandomAutocontrast(), v2.RandomPosterize(4), v2.RandomAdjustSharpness(2)
    ),
    "first version": lambda: v2.convert(_first_version()),
    "timm: evaluation": lambda: _timm(is_training=False),
    "timm: training": lambda: _timm(is_training=True, hflip=0.5),
    "timm: DeiT": lambda: _timm(
        is_training=True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel"
    ),
    "timm: AugMix": lambda: _timm(is_training=True, auto_augment="augmix-m5-w4-d2"),
    "timm: 3-Augment": lambda: _timm(is_training=True, auto_augment="3a", color_jitter=0.3),
    "open_clip: training": lambda: _open_clip(is_train=True),
    "open_clip: evaluation": lambda: _open_clip(is_train=False),
    "lightly: SimCLR": lambda: _lightly("SimCLRTransform", input_size=48),
    "lightly: DINO": lambda: _lightly("DINOTransform", global_crop_size=48, local_crop_size=24),
    "albumentations: classification, arrays": lambda: _albumentations(
        ("RandomResizedCrop", {"size": (48, 48)}),
        ("HorizontalFlip", {}),
        ("ColorJitter", _JITTER),
        ("Normalize", {}),
    ),
    "albumentations: strong, arrays": lambda: _albumentations(
        ("Affine", {"rotate": (-20, 20), "scale": (0.8, 1.2)}),
        ("GaussianBlur", {"p": 0.5}),
        ("RandomBrightnessContrast", {}),
        ("CLAHE", {}),
        ("CoarseDropout", {}),
    ),
}


def _first_version() -> Any:
    from torchvision import transforms as v1

    return v1.Compose(
        [
            v1.RandomResizedCrop(48),
            v1.RandomApply([v1.ColorJitter(**_JITTER)], p=0.8),
            v1.RandomGrayscale(0.2),
            v1.ToTensor(),
            v1.Normalize(MEAN, STD),
            v1.RandomErasing(),
        ]
    )
