"""The demonstration: what it prints is true, and a bad photograph gives one clear line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from examples import demo
from tests.tiers import nightly

ROOT = Path(__file__).parent.parent


@nightly
def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.utils.counters.clear()
    torch._dynamo.reset()
    monkeypatch.setattr(demo, "_has_compiler", lambda: False)
    out = tmp_path / "demo.png"
    story = demo.main(None, str(out), steps=25)
    told = capsys.readouterr().out
    assert re.findall(r"(\d+) of [\d,]+ values differ", told) == ["0"] * 7
    assert "graph breaks     0" in told and "recompiles       0 over 20 random boxes" in told
    assert "equal to eager   20 of 20" in told
    assert story.losses[-1] < story.losses[0] / 10
    with Image.open(out) as picture:
        assert picture.format == "PNG" and picture.width > 1000
        assert np.asarray(picture.convert("L")).std() > 30


@nightly
def test_command_with_inductor(tmp_path: Path) -> None:
    """The command of the README, compiled as far as this machine can."""
    out = tmp_path / "demo.png"
    command = [sys.executable, "-m", "examples.demo", "--out", str(out), "--steps", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "loss" in done.stderr and out.exists()
    # A log is not a terminal, so nothing is repainted.
    assert "\r" not in done.stderr and done.stderr.count("loss") <= 5


BAD = ("missing.jpg", "text.jpg", "cut.jpg", "cut.png", "empty.png", "folder")


def bad_files(folder: Path) -> dict[str, Path]:
    photo = folder / "photo.jpg"
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(photo)
    Image.fromarray(noise).save(folder / "photo.png")
    paths = {name: folder / name for name in BAD}
    paths["text.jpg"].write_text("not an image")
    paths["cut.jpg"].write_bytes(photo.read_bytes()[:700])
    paths["cut.png"].write_bytes((folder / "photo.png").read_bytes()[:900])
    paths["empty.png"].write_bytes(b"")
    paths["folder"].mkdir()
    return paths


@pytest.mark.parametrize("name", BAD)
def test_bad_photograph(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bad_files(tmp_path)[name]
    out = tmp_path / "out.png"
    with pytest.raises(SystemExit) as error:
        demo.main(str(path), str(out))
    assert capsys.readouterr().out == "" and not out.exists()
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"demo: PHOTO must be a complete image file, got {str(path)!r}")


def test_unwritable_out(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^demo: --out must be a file in a folder that can be written"):
        demo.main(None, str(tmp_path / "no" / "demo.png"))


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (900, 7), (2000, 1500)])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK", "1", "I;16"])
def test_any_photograph_loads(size: tuple[int, int], mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("photo.tif" if mode in ("CMYK", "I;16") else "photo.png")
    Image.new(mode, size).save(path)
    assert demo.load(str(path)).shape == (3, demo.HEIGHT, demo.WIDTH)


def test_orientation_is_honored(tmp_path: Path) -> None:
    picture = Image.new("RGB", (40, 40))
    picture.paste((255, 0, 0), (0, 0, 40, 20))
    exif = picture.getexif()
    exif[0x0112] = 3  # upside down
    picture.save(tmp_path / "turned.png", exif=exif)
    image = demo.load(str(tmp_path / "turned.png"))
    assert image[0, -10:].min() == 255 and image[0, :10].max() == 0


@nightly
def test_without_arguments_the_command_helps() -> None:
    done = subprocess.run([sys.executable, "-m", "imgops"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and "info" in done.stderr
