"""Cases for every transform that imgops has: its arguments, and how far it may be from torchvision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode

from imgops import transforms as ours
from tests.checks import same as same

#: Before torch 2.13 dynamo takes no tv_tensors.
HAS_CLASSES = hasattr(torch.Tag, "inplace")
needs_classes = pytest.mark.skipif(not HAS_CLASSES, reason="dynamo takes no tv_tensors")


@dataclass(frozen=True)
class Case:
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    moves: bool = False  # it only moves pixels: bit-exact
    edges: bool = False  # torchvision darkens edges twice (its issue 8083)
    sized: bool = False  # the size depends on the draws: no batches
    boxes: bool = False  # it needs boxes
    chain: float = (
        0.0  # the share of the pixels that may differ by more than a level, where steps follow steps
    )
    levels: bool = False  # torchvision takes uint8 alone
    hue: bool = False  # on uint8 the pixels are those of torchvision's PIL images, to the bit
    id: str = ""

    #: The size of an image that can also go into a batch and a graph.
    size = (40, 52)

    def make(self, module: Any = ours, **more: Any) -> Any:
        return getattr(module, self.name)(**self.options, **more)

    def applied(self, **more: Any) -> Any:
        """Return imgops' transform, as an added one that is always applied."""
        return self.make(**more)

    @property
    def policy(self) -> bool:
        return "Aug" in self.name

    @property
    def draws(self) -> bool:
        return hasattr(getattr(ours, self.name), "per_sample")

    @property
    def each(self) -> bool:
        """Whether it takes a batch with draws for each sample."""
        return self.draws and not (self.sized or self.boxes)

    @property
    def gradient(self) -> bool:
        levels = self.name in ("RandomPosterize", "RandomEqualize", "JPEG")
        return not (levels or self.policy or self.boxes)

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        return (torch.uint8,) if self.levels else (torch.uint8, torch.float32)

    def __str__(self) -> str:
        return self.name + (f"-{self.id}" if self.id else "")


JITTER = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}
AFFINE = {"degrees": 30, "translate": (0.1, 0.2), "scale": (0.7, 1.3), "shear": (-10, 10, -5, 5)}

CASES: tuple[Case, ...] = (
    Case("Resize", {"size": 25}),
    Case("Resize", {"size": (70, 30), "interpolation": InterpolationMode.BICUBIC}, id="bicubic"),
    Case("Resize", {"size": (70, 30), "interpolation": InterpolationMode.NEAREST}, moves=True, id="nearest"),
    Case("Resize", {"size": (21, 64), "antialias": False}, id="plain"),
    Case("CenterCrop", {"size": (30, 70)}, moves=True),
    Case("Pad", {"padding": [1, 2, 3, 4], "padding_mode": "reflect"}, moves=True),
    Case("Pad", {"padding": 3, "fill": 7}, moves=True, id="fill"),
    Case("RandomHorizontalFlip", moves=True),
    Case("RandomVerticalFlip", {"p": 0.3}, moves=True),
    Case("RandomCrop", {"size": 24}, moves=True),
    Case(
        "RandomCrop",
        {"size": (60, 40), "padding": 4, "pad_if_needed": True, "fill": 9},
        moves=True,
        id="pads",
    ),
    Case("RandomResizedCrop", {"size": 24}),
    Case(
        "RandomResizedCrop",
        {"size": (24, 30), "interpolation": InterpolationMode.NEAREST},
        moves=True,
        id="nearest",
    ),
    Case("RandomRotation", {"degrees": 40}),
    Case(
        "RandomRotation",
        {"degrees": 40, "interpolation": InterpolationMode.BILINEAR, "center": (5, 9)},
        edges=True,
        id="bilinear",
    ),
    Case("RandomAffine", AFFINE),
    Case("RandomAffine", {**AFFINE, "interpolation": InterpolationMode.BILINEAR}, edges=True, id="bilinear"),
    Case("RandomPerspective", {"p": 0.7}, edges=True),
    Case("ColorJitter", JITTER, chain=0.02, hue=True),
    Case("ColorJitter", {"hue": 0.3}, hue=True, id="hue"),
    Case("Grayscale", {"num_output_channels": 3}),
    Case("RandomGrayscale", {"p": 0.5}),
    Case("RandomInvert"),
    Case("RandomPosterize", {"bits": 3}),
    Case("RandomSolarize", {"threshold": 0.5}),
    Case("RandomAdjustSharpness", {"sharpness_factor": 1.7}),
    Case("RandomAutocontrast"),
    Case("RandomEqualize"),
    Case("GaussianBlur", {"kernel_size": 9, "sigma": (0.1, 2.0)}),
    Case("RandomErasing", {"p": 0.8}, moves=True),
    Case("RandomErasing", {"p": 0.8, "value": "random"}, moves=True, id="random"),
    Case("RandAugment", chain=0.01),
    Case("TrivialAugmentWide", chain=0.01),
    Case("AutoAugment", chain=0.02),
    Case("AugMix", chain=0.02),
    Case("ElasticTransform", {"alpha": 60.0}, edges=True),
    Case("RandomChannelPermutation", moves=True),
    Case("RandomPhotometricDistort", chain=0.03, hue=True),
    Case("JPEG", {"quality": (20, 80)}, levels=True),
    Case("GaussianNoise", {"sigma": 0.2}),
    Case("RandomZoomOut", {"p": 0.7, "fill": 5, "side_range": (1.0, 2.0)}, moves=True, sized=True),
    Case("RandomResize", {"min_size": 20, "max_size": 60}, sized=True),
    Case("RandomShortestSize", {"min_size": [20, 30, 41], "max_size": 70}, sized=True),
    Case("ScaleJitter", {"target_size": (60, 60)}, sized=True),
    Case("RandomIoUCrop", moves=True, sized=True, boxes=True),
    Case("RandomRotation", {"degrees": 40, "expand": True}, sized=True, id="expand"),
)


class Container(Case):
    """A container of transforms, which has a row in the tables of calls."""

    #: Its own draws may come from a generator, but not those of its transforms; tests/test_modes.py has its gradient.
    gradient = False

    def make(self, module: Any = ours, **more: Any) -> Any:
        return containers(module, **more)[self.id or self.name]


CONTAINERS = (
    *(Container(name) for name in ("RandomApply", "RandomChoice", "RandomOrder")),
    Container("RandomApply", id="Nested"),
)


def containers(module: Any, **more: Any) -> dict[str, Any]:
    """Return transforms of transforms."""
    flips = [module.RandomHorizontalFlip(), module.RandomVerticalFlip()]
    return {
        "RandomApply": module.RandomApply(
            [module.GaussianBlur(5), module.RandomHorizontalFlip()], p=0.6, **more
        ),
        "RandomChoice": module.RandomChoice([*flips, module.RandomInvert(1.0)], p=[1, 2, 1], **more),
        "RandomOrder": module.RandomOrder([module.RandomRotation(20), *flips], **more),
        "Nested": module.RandomApply(
            [module.RandomChoice([*flips]), module.RandomOrder(flips)], p=0.7, **more
        ),
    }


def picture(dtype: torch.dtype = torch.uint8, height: int = 40, width: int = 52, seed: int = 0) -> Tensor:
    """Make an image of smooth shapes with a little noise, like a photograph."""
    rng = np.random.default_rng(seed)
    frame = rng.integers(0, 256, (8, 10, 3)).astype(np.uint8)
    frame = cv2.resize(frame, (width, height), interpolation=cv2.INTER_CUBIC)
    frame = np.clip(frame + rng.normal(0, 4, frame.shape), 0, 255).astype(np.uint8)
    image = torch.from_numpy(frame).permute(2, 0, 1).contiguous()
    return image if dtype == torch.uint8 else image.to(dtype) / 255


def sample(image: Tensor) -> dict[str, Any]:
    """Return an image with masks, boxes, keypoints and a label."""
    height, width = image.shape[-2:]
    labels = (torch.arange(height)[:, None] // 5 * 7 + torch.arange(width) // 6) % 11
    boxes = torch.tensor([[3.0, 4, 20, 30], [10, 2, 50, 18]])
    return {
        "image": tv_tensors.Image(image),
        "mask": tv_tensors.Mask(labels[None].to(torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width)),
        "points": tv_tensors.KeyPoints(boxes[:, :2], canvas_size=(height, width)),
        "label": 3,
    }


def seeded(seed: int, function: Callable[..., Any], *args: Any) -> Any:
    torch.manual_seed(seed)
    return function(*args)


def outcome(seed: int, function: Callable[..., Any], *args: Any) -> tuple[Any, Tensor]:
    """Return a result and the next random number, which shows how many were drawn."""
    return seeded(seed, function, *args), torch.rand(1)


def check_refusals(refused: dict[str, list[Callable[[], Any]]], error: type[Exception]) -> None:
    """Check the beginnings of the texts of the errors that calls raise."""
    for text, calls in refused.items():
        for call in calls:
            with pytest.raises(error) as found:
                call()
            assert str(found.value).startswith(text), (text, str(found.value))
