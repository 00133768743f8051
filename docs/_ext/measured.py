"""Measure how far each operator is from its reference on one photograph, when the pages are built."""

from __future__ import annotations

from functools import cache

import torch
from skimage import data
from torch import Tensor

from tests.specs import SPECS


@cache
def difference(name: str) -> str:
    """Return in words the largest difference in levels, and the share of values that differ."""
    spec = SPECS[name]
    if spec.photo is None:
        return "in the tests"
    ours, theirs = spec.photo
    photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1)
    found, wanted = ours(photo), theirs(photo)
    if not isinstance(wanted, Tensor):  # torchvision returned a PIL image, because it was given one
        from tests.specs._libraries import chw

        wanted = chw(wanted)
    if found.shape != wanted.shape:
        raise AssertionError(f"{name}: {tuple(found.shape)} is not {tuple(wanted.shape)}")
    apart = (found.int() - wanted.int()).abs()
    most, share = int(apart.max()), float((apart > 0).double().mean())
    return "0" if most == 0 else f"{most} level{'s' * (most > 1)} in {100 * share:.2f} % of the values"
