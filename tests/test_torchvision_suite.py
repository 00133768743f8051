"""The program that runs torchvision's own tests, on a small source tree with some tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import nightly
from tests.torchvision_suite import differences, judged, substituted

PROGRAM = Path(__file__).with_name("torchvision_suite.py")
SOURCE = """
import pytest
import torch
import torchvision.transforms.v2 as transforms
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2._utils import check_type
from torchvision.transforms.v2.functional._geometry import _get_perspective_coeffs

KERNELS = [F._geometry._resize_image_pil, F._color._invert_image_pil, F._augment._erase_image_pil,
           transforms.functional._geometry._crop_image_pil, v2._utils._setup_size]

@pytest.mark.parametrize("kernel", KERNELS)
def test_same_private_names(kernel):
    assert kernel.__module__.startswith("torchvision.") and check_type(3, (int,))

@pytest.mark.parametrize("interpolation", F._geometry._interpolation_modes_from_int(2) and [0, 2])
def test_same_public_names(interpolation):
    assert transforms.functional.resize is F.resize and F.__name__
    assert F.resize(torch.ones(1, 4, 4), [2, 2], interpolation=interpolation).shape == (1, 2, 2)

class TestFlip:
    def test_where_it_is_from(self):
        assert transforms.RandomHorizontalFlip.__module__.startswith("torchvision")

def test_fails_in_both():
    assert v2 is None
"""


def test_imports_are_substituted() -> None:
    """Public names are imgops', private ones stay torchvision's."""
    text = substituted(SOURCE)
    assert "import imgops.transforms as transforms" in text
    assert "from imgops import transforms as v2" in text
    assert "from imgops.transforms import functional as F" in text
    assert "from torchvision.transforms.v2._utils import check_type" in text
    assert "F._geometry" not in text and "transforms.functional._geometry._crop" not in text
    assert "F.resize(" in text and "F.__name__" in text


def test_differences_are_judged() -> None:
    stock = {"a::x": "passed", "a::y": "passed", "a::z": "failed", "a::w": "passed"}
    ours = {"a::x": "failed", "a::y": "passed", "a::z": "failed"}
    assert differences(stock, ours) == ["a::w", "a::x"]
    assert judged(["a::w", "a::x"], ours, {"a::x": "known", "a::y": "gone"}) == (["a::w"], ["a::y"])


def run(*options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, PROGRAM, *map(str, options)], capture_output=True, text=True)


@nightly
@pytest.mark.parametrize(("select", "passed", "differ"), [("same", 7, 0), ("where", 1, 1)])
def test_the_program(tmp_path: Path, select: str, passed: int, differ: int) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_transforms_v2.py").write_text(SOURCE)
    done = run(tmp_path, "-k", select, "-p", "no:xdist")
    assert done.returncode == differ, done.stdout + done.stderr
    assert f"{passed} tests pass with torchvision; {differ} of them do not with imgops" in done.stdout
    assert ("TestFlip::test_where_it_is_from" in done.stdout) == bool(differ)


@nightly
def test_a_path_without_tests_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 2 and "PATH must be a source tree of torchvision" in done.stderr
