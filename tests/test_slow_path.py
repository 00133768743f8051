"""Nothing is slow in silence: there is one warning per process, and ``show_config`` says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import imgops
from imgops.__main__ import run
from imgops._common import compare
from imgops.kernels.cpu import _libjpeg, native
from tests.specs.geometry import OPENCV_IS_EXACT
from tests.tiers import nightly

#: OpenCV 4 rounds the positions of a warp to 1/32 pixel, but imgops' own kernel does not.
DIFFERENT = [] if OPENCV_IS_EXACT else ["warp_affine"]
ROOT = Path(__file__).parent.parent
WITHOUT_MODULE = "import sys; sys.modules['imgops.kernels.cpu._native'] = None\n"
CALLS = """
import torch, imgops
image = torch.zeros(3, 32, 32, dtype=torch.uint8)
for size in range(4, 9): imgops.resize(image, (size, size)); imgops.adjust_hue(image, 0.1)
"""
FILTER = "import warnings, imgops; warnings.simplefilter({!r}, imgops.SlowPathWarning)\n"
#: Programs, and how often each warns.
PROGRAMS = [
    (WITHOUT_MODULE + CALLS, 1),
    (CALLS, 0),
    (WITHOUT_MODULE + "import imgops", 0),
    (WITHOUT_MODULE + "import os; os.environ['IMGOPS_QUIET'] = '1'" + CALLS, 0),
    (WITHOUT_MODULE + FILTER.format("ignore") + CALLS, 0),
    (WITHOUT_MODULE + FILTER.format("error") + CALLS, 1),
]


@nightly
@pytest.mark.needs("native")
@pytest.mark.parametrize(("program", "count"), PROGRAMS)
def test_warnings_of_a_process(program: str, count: int) -> None:
    """There is one warning per process, of a class that filters name, unless it is silenced."""
    inherited = {k: v for k, v in os.environ.items() if k != "IMGOPS_QUIET"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=inherited)
    assert done.stderr.count("SlowPathWarning: ") == count, done.stderr
    assert bool(done.returncode) == ("error" in program), done.stderr


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return the messages of the slow path's warnings, as in a process that has not warned yet."""
    monkeypatch.setattr(compare, "_warned", False)
    monkeypatch.setattr(compare, "comparisons", {})
    monkeypatch.setattr(compare, "results", {})
    monkeypatch.delenv("IMGOPS_QUIET", raising=False)
    caught = warnings.catch_warnings(record=True)
    records = caught.__enter__()
    warnings.simplefilter("always")
    yield lambda: [str(r.message) for r in records if r.category is imgops.SlowPathWarning]
    caught.__exit__(None, None, None)


def test_one_warning_without_the_module(
    fresh: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "module", None)
    assert not any(native.is_built() for _ in range(3))  # which each call asks
    (said,) = fresh()
    assert "its native module was not built" in said and "IMGOPS_QUIET=1" in said
    assert "python -m imgops info" in said


def test_a_library_with_other_pixels_is_told(fresh: Callable[[], list[str]]) -> None:
    asked = []

    @compare.comparison("one filter", "Pillow")
    def differs() -> bool:
        asked.append("one")
        return False

    @compare.comparison("another filter", "OpenCV")
    def agrees() -> bool:
        return True

    assert not differs() and not differs() and agrees() and asked == ["one"]
    (said,) = fresh()
    assert "its own one filter would have other pixels than the installed Pillow" in said
    assert list(compare.comparisons) == ["one filter", "another filter"]


def test_every_comparison_holds_here() -> None:
    """With the libraries installed for the tests, each kernel has the pixels of the one that it replaces."""
    compared = imgops.show_config("dicts")["compared with the installed library"]
    assert len(compared) >= 5
    others = [name for name, found in compared.items() if not found.startswith("the ")]
    assert others == [name for name in DIFFERENT if native.module is not None]


def test_show_config(capsys: pytest.CaptureFixture[str]) -> None:
    config = imgops.show_config("dicts")
    assert config["versions"]["torch"] == torch.__version__
    built = native.module is not None
    assert config["native module"] == {"built": built, "SIMD level": config["native module"]["SIMD level"]}
    expected = len(DIFFERENT) * built + (not built) + (_libjpeg.module is None)
    assert config["OpenCV"]["wheel"].startswith("opencv") and len(config["slow paths"]) == expected
    assert imgops.show_config() is None and run(["info"]) == 0
    shown = capsys.readouterr().out
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    for title in config:
        assert f"\n{title}:" in f"\n{shown}"
    with pytest.raises(ValueError, match="show_config: mode must be 'stdout' or 'dicts', got 'json'"):
        imgops.show_config("json")


def test_show_config_without_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "module", None)
    monkeypatch.setattr(compare, "_warned", False)
    monkeypatch.setattr(compare, "results", {})
    # Those of transforms compare objects of other tests, which may have changed since.
    known = {name: pair for name, pair in compare.comparisons.items() if not name.endswith("'s draws")}
    monkeypatch.setattr(compare, "comparisons", known)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = imgops.show_config("dicts")
    assert config["native module"] == {"built": False, "SIMD level": "none"}
    assert "the native module was not built" in config["slow paths"][0]
    compared = config["compared with the installed library"]
    assert compared["adjust_hue"] == "the pixels of Pillow" and not set(compared) & native.compared


@pytest.mark.needs("native", "libjpeg")
def test_show_config_in_a_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After ``pip install .``, Python imports the folder of the clone, which has no compiled modules."""
    files = {
        "imgops-0.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: imgops\nVersion: 0.1.0\n",
        "imgops/kernels/cpu/_native.abi3.so": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert not any("clone" in reason for reason in imgops.show_config("dicts")["slow paths"])
    monkeypatch.setattr(native, "module", None)
    monkeypatch.setattr(_libjpeg, "module", None)
    (reason,) = imgops.show_config("dicts")["slow paths"]
    assert reason.startswith("you are in the clone: ") and f"not {tmp_path / 'imgops'};" in reason


def test_show_config_without_libjpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_libjpeg, "module", None)
    config = imgops.show_config("dicts")
    assert config["JPEG decoder"]["decoder"] == "Pillow"
    assert any("Pillow decodes JPEGs: install libjpeg-turbo" in path for path in config["slow paths"])
    assert "libjpeg-turbo" not in config["compared with the installed library"]


def test_every_test_of_the_module_says_so() -> None:
    """Code that checks ``native.module is None`` without a warning would be a silent slow path."""
    package = ROOT / "imgops"
    allowed = {package / "kernels" / "configuration.py", package / "kernels/cpu/native.py"}
    for path in package.rglob("*.py"):
        assert path in allowed or "native.module" not in path.read_text(), path
    text = (package / "kernels/cpu/native.py").read_text()
    assert text.count("module is None") == 1 and text.count("module is not None") == 1
