"""The pictures of the pages: every operator and transform has one, which shows something."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from transform_cases import picture

import imgops
from imgops import transforms

sys.path.append(str(Path(__file__).parents[1] / "docs" / "_ext"))

import show

from tests.tiers import nightly


def test_everything_has_a_picture_or_is_named() -> None:
    functions = {n for n in imgops.__all__ if callable(getattr(imgops, n))}
    every = functions | set(transforms.OURS) | set(transforms.ADDED)
    assert set(show.EXAMPLES) | show.NOT_PICTURED == every and not set(show.EXAMPLES) & show.NOT_PICTURED


@nightly
def test_every_picture_shows_something() -> None:
    scene = show.sample(show.fit_photo(picture(height=300, width=420) // 2 + 60))
    before = scene["image"].permute(1, 2, 0).numpy().astype(float)
    assert before.shape == (240, 336, 3)
    for name in show.EXAMPLES:
        after = show.draw(name, scene)
        assert after.mode == "RGB" and after.tobytes() == show.draw(name, scene).tobytes(), name
        if (after.height, after.width) == before.shape[:2]:
            assert np.abs(np.asarray(after) - before).mean() > 1, name
