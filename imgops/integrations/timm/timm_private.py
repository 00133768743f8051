"""All uses of timm's private names, in one module; tried with timm 1.0.31.

``tests/test_integrations_private.py`` fails if one of them moves, or if another module uses one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch


def draw_mixup(settings: Mapping[str, Any], count: int | None) -> tuple[Any, Any]:
    """Draw the weight of Mixup and whether it pastes a box: one of each, or an array of ``count`` of each."""
    from timm.data.mixup import Mixup

    given = Mixup()
    given.__dict__.update(settings)
    return given._params_per_batch() if count is None else given._params_per_elem(count)


def blended_weights(weights: np.ndarray, m: float) -> np.ndarray:
    """Return the weights with which AugMixAugment blends one chain after the other into an image."""
    from timm.data.auto_augment import AugMixAugment

    return AugMixAugment([])._calc_blended_weights(weights, m)


def erase(settings: Mapping[str, Any], images: Sequence[Any], shape: Any, dtype: torch.dtype) -> None:
    """Let RandomErasing draw the blocks of images of a shape ``(C, H, W)``, and set items of ``images``."""
    from timm.data.random_erasing import RandomErasing

    given = RandomErasing(device="cpu")
    given.__dict__.update(settings)
    given.rand_color, given.per_pixel = given.mode == "rand", given.mode == "pixel"
    for image in images:
        given._erase(image, *shape, dtype)
