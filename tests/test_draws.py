"""Draws by native code: the numbers of torchvision's code, and the generator's state after it, bit for bit."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms as ours
from imgops._common import compare
from imgops.transforms._core import draws, programs
from tests.added_cases import JOINING, REQUIRED, ROWS
from tests.transform_cases import CASES, containers, picture

native = pytest.mark.skipif(draws._draws is None, reason="the native module was not built")
pytestmark = native

#: The transforms that draw by a rule in every case of the tables.
RULED = {
    *("RandomHorizontalFlip", "RandomVerticalFlip", "RandomCrop", "RandomResizedCrop", "ColorJitter"),
    *("RandomGrayscale", "RandomInvert", "RandomPosterize", "RandomSolarize", "RandomAutocontrast"),
    *("RandomEqualize", "RandomAdjustSharpness", "GaussianBlur", "RandomAffine"),
    *("RandomPerspective", "RandomPhotometricDistort", "RandomChannelPermutation", "TrivialAugmentWide"),
    *("RandAugment", "RandomRotate90", "RandomRGBShift", "RandomHSV", "RandomMedianBlur"),
    *("RandomGamma", "RandomBrightnessContrast", "RandomElastic", "RandomOpticalDistortion"),
}
_KNOWN = {**{str(c): c for c in CASES}, **{str(r): r for r in ROWS}}
#: What makes each transform that draws numbers.
MAKERS: dict[str, Callable[..., Any]] = {
    name: lambda case=case, **more: getattr(ours, case.name)(**{**case.options, **more})  # type: ignore[misc]
    for name, case in _KNOWN.items()
    if case.name not in JOINING and hasattr(getattr(ours, case.name), "_draw_row")
}
SHAPE = (1, 3, 40, 40)


def by_python() -> Any:
    """Return a context in which torchvision's code draws."""
    return patch.object(draws, "can_draw", lambda: False)


def states() -> Iterator[Tensor]:
    """Yield states of a generator: new ones, near the end of its words, and with a number of a normal pair."""
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        if seed:
            for _ in range((seed * 101) % 619 if seed % 2 else 624 - seed // 2):
                torch.rand(1, generator=generator)
        if seed % 3 == 0:
            torch.randn(1, generator=generator)  # which keeps the second number of its pair
            torch.randn(1, generator=generator, dtype=torch.float64)
        yield generator.get_state()


def drawn(make: Callable[[], Any], state: Tensor) -> tuple[Any, Tensor]:
    torch.set_rng_state(state)
    out = make()
    return out, torch.get_rng_state()


def same(found: Any, wanted: Any) -> bool:
    """Return whether two results are equal, of equal types."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[k], v) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, Tensor):
        return type(found) is type(wanted) and found.dtype == wanted.dtype and torch.equal(found, wanted)
    if hasattr(wanted, "numbers"):
        return same(found.numbers, wanted.numbers)
    return type(found) is type(wanted) and found == wanted


def images(count: int = 5) -> Tensor:
    return torch.stack([picture(height=40, width=40, seed=i) for i in range(count)])


def check(sample: Callable[[], Any]) -> None:
    for state in states():
        found, after = drawn(sample, state)
        with by_python():
            wanted, after_wanted = drawn(sample, state)
        assert same(found, wanted)
        assert torch.equal(after, after_wanted)


@pytest.mark.parametrize("name", MAKERS)
def test_draws_are_torchvisions(name: str) -> None:
    """In a batch, for one image of both classes, and inside of containers."""
    make = MAKERS[name]
    one = make()
    for image in (images(1)[0], tv_tensors.Image(images(1)[0]), torch.rand(2, 3, 33, 41)):
        try:
            one.sample(image)
        except Exception:  # an image that the transform does not take
            continue
        check(lambda image=image: one.sample(image))
    try:
        each = make(per_sample=True)
        each.sample(images())
    except Exception:  # no parameters for each sample
        return
    check(lambda: each.sample(images()))
    nested = ours.Compose(
        [
            ours.RandomApply([make(), ours.RandomHorizontalFlip()], p=0.6),
            ours.RandomOrder([make(), ours.RandomInvert(), ours.RandomResizedCrop(40)]),
            make(),
        ],
        per_sample=True,
    )
    try:
        nested(images())
    except Exception:  # a change of size inside of a container
        return
    check(lambda: nested.sample(images()))


@pytest.mark.parametrize("name", containers(ours))
def test_draws_of_containers(name: str) -> None:
    each = containers(ours, per_sample=True)[name]
    check(lambda: each.sample(images()))
