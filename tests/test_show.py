"""``python -m imgops show``: pictures of operators and transforms, and one line for an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transform_cases import picture

import imgops
from imgops import show, transforms
from imgops.__main__ import run
from imgops.show._examples import NOT_PICTURED

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("show") / "photo.png"
    pale = picture(height=300, width=420) // 2 + 60
    Image.fromarray(pale.permute(1, 2, 0).numpy()).save(path)
    return path


def test_everything_has_a_picture_or_is_named() -> None:
    functions = {n for n in imgops.__all__ if callable(getattr(imgops, n))}
    every = functions | set(transforms.OURS) | set(transforms.ADDED)
    assert set(show.EXAMPLES) | NOT_PICTURED == every and not set(show.EXAMPLES) & NOT_PICTURED


def test_every_picture_shows_something(photo: Path) -> None:
    scene = show.sample(show.load(photo))
    before = scene["image"].permute(1, 2, 0).numpy().astype(float)
    assert before.shape == (240, 336, 3)
    for name in show.EXAMPLES:
        after = show.draw(name, scene)
        assert after.mode == "RGB" and after.tobytes() == show.draw(name, scene).tobytes(), name
        if (after.height, after.width) == before.shape[:2]:
            assert np.abs(np.asarray(after) - before).mean() > 1, name


def test_sheet(photo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out, state = tmp_path / "sheet.png", torch.get_rng_state()
    assert run(["show", str(photo), "clahe", "RandomFog", "Mosaic", "--out", str(out)]) == 0
    streams = capfd.readouterr()
    assert "3/3" in streams.err and streams.out == f"Picture: {out}\n"
    assert torch.equal(torch.get_rng_state(), state)
    with Image.open(out) as page:
        assert page.format == "PNG" and page.width == 4 * (216 + 10) + 10
        assert np.asarray(page.convert("L")).std() > 30


def test_command(photo: Path, tmp_path: Path) -> None:
    """It shows all of them, in a separate process, and says where."""
    command = [sys.executable, "-m", "imgops", "show", str(photo)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0 and f"{len(show.EXAMPLES)}/{len(show.EXAMPLES)}" in done.stderr
    assert done.stdout == "Picture: sheet.png\n"
    with Image.open(tmp_path / "sheet.png") as page:
        assert page.height > 4000


def test_without_a_photograph_the_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show"]) == 0
    told = capsys.readouterr().out
    words = set(told.replace(",", " ").split())
    assert set(show.EXAMPLES) <= words and {"Operators:", "Transforms:"} <= words
    assert told.index("clahe") < told.index("Transforms:") < told.index("RandomFog")
    assert told.count("\n") < 40 and max(map(len, told.splitlines())) <= 100
    with pytest.raises(SystemExit):
        run(["show", "--help"])
    assert "show [-h] [--out OUT] [PHOTO] [NAME ...]" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["name", "names", "far", "photo", "out"])
def test_what_is_wrong_is_one_line(
    bad: str, photo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "name": [str(photo), "gausian_blur"],
        "names": [str(photo), "clahe", "Randomfog", "randomrian"],
        "far": [str(photo), "xyzzy"],
        "photo": [str(tmp_path / "missing.jpg")],
        "out": [str(photo), "clahe", "--out", str(tmp_path / "no" / "sheet.png")],
    }
    told = {
        "name": "show: NAME must be an operator or a transform, got 'gausian_blur' (near: gaussian_blur, GaussianBlur",
        "names": "got 'Randomfog' (near: RandomFog",
        "far": "show: NAME must be an operator or a transform, got 'xyzzy'",
        "photo": "show: PHOTO must be a complete image file, got",
        "out": "show: --out must be a file in a folder that can be written, got",
    }
    assert run(["show", *arguments[bad]]) == 2
    error = capsys.readouterr().err
    assert told[bad] in error and error.count("\n") == 1
    assert bad != "names" or "'randomrian' (near: RandomRain" in error
