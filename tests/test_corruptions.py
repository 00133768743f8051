"""The corruptions of ImageNet-C, compared with results of imagecorruptions 1.1.2 for the same random numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from imgops.transforms.imagenet_c.formulas import FORMULAS, _fog_side, corrupted

DATA = np.load(Path(__file__).parent / "data" / "corruptions.npz")
NAMES = DATA["names"].tolist()
IMAGE = torch.from_numpy(DATA["image"]).permute(2, 0, 1).contiguous()
FROST = torch.from_numpy(DATA["frost"]).permute(2, 0, 1).contiguous()


def numbers_of(name: str, severity: int) -> tuple[Any, ...]:
    """Return what imagecorruptions drew for a result in the file (``tests/data/corruptions.py``)."""
    seed = 1000 * severity + NAMES.index(name)
    random, settings = np.random.RandomState(seed), FORMULAS[name].settings[severity - 1]
    height, width, channels = DATA["image"].shape
    pixels = (height, width, channels)

    def planes(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(values).astype(np.float32)).permute(2, 0, 1)

    if name in ("gaussian_noise", "speckle_noise"):
        return (planes(random.normal(size=pixels)),)
    if name == "shot_noise":
        return (planes(random.poisson(DATA["image"] / 255.0 * settings[0])),)
    if name == "impulse_noise":
        other = np.random.default_rng(seed)
        flipped, salt = (planes(other.random(pixels) <= share) > 0 for share in (settings[0], 0.5))
        return flipped, salt
    if name == "glass_blur":
        _, reach, times = settings
        moves = random.randint(-reach, reach, size=(times, height - 2 * reach, width - 2 * reach, 2))
        return (torch.from_numpy(moves),)
    if name == "motion_blur":
        return (random.uniform(-45, 45),)
    if name in ("snow", "spatter"):
        layer = planes(random.normal(size=(height, width))[..., None])
        return (layer, random.uniform(-135, -45)) if name == "snow" else (layer,)
    if name == "frost":
        which = random.randint(5)
        large = [int(np.ceil(side * 1.1)) for side in DATA["frost"].shape[:2]]
        down, right = random.randint(0, large[0] - height), random.randint(0, large[1] - width)
        return which / 5, (down + 0.5) / (large[0] - height), (right + 0.5) / (large[1] - width), [FROST] * 5
    if name == "fog":
        side = _fog_side(IMAGE)
        return (torch.from_numpy(random.uniform(-1, 1, side**2 - 1).astype(np.float32)),)
    if name == "elastic_transform":
        shifts = [random.uniform(-1, 1, (height, width)) for _ in range(2)]
        return (planes(np.stack(shifts, -1)),)
    return ()


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_of_imagecorruptions(name: str, severity: int) -> None:
    numbers = numbers_of(name, severity)
    wanted = torch.from_numpy(DATA["results"][NAMES.index(name), severity - 1]).permute(2, 0, 1).int()
    found = corrupted(name, severity, IMAGE, numbers).int()
    apart = (found - wanted).abs()
    print(name, severity, "max", apart.max().item(), "off", round((apart > 0).float().mean().item(), 4))
    assert apart.max() <= 1
