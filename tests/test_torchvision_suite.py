"""The program that runs torchvision's own tests, on a small source tree with three of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torchvision_suite import differences, judged, substituted

from tests.tiers import every_night, nightly

PROGRAM = Path(__file__).with_name("torchvision_suite.py")
SOURCE = """
import torch
import torchvision.transforms.v2 as transforms
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2._utils import check_type

def test_same():
    assert F.horizontal_flip(torch.arange(2.).reshape(1, 1, 2)).flatten().tolist() == [1, 0]
    assert check_type(3, (int,))

class TestFlip:
    def test_where_it_is_from(self):
        assert transforms.RandomHorizontalFlip.__module__.startswith("torchvision")

def test_fails_in_both():
    assert v2 is None
"""


def test_imports_are_substituted() -> None:
    text = substituted(SOURCE)
    assert "import imgops.transforms as transforms" in text
    assert "from imgops import transforms as v2" in text
    assert "from imgops.transforms import functional as F" in text
    assert "from torchvision.transforms.v2._utils import check_type" in text


PRIVATE = """
import torch
import torchvision.transforms.v2 as transforms
import pytest
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional._geometry import _get_perspective_coeffs
from torchvision.transforms.v2.functional._utils import _get_kernel, _register_kernel_internal

KERNELS = [F._geometry._resize_image_pil, F._geometry._center_crop_image_pil, F._color._invert_image_pil,
           F._meta._get_size_image_pil, F._misc._gaussian_blur_image_pil, F._augment._erase_image_pil,
           transforms.functional._geometry._crop_image_pil, v2._utils._setup_size]

@pytest.mark.parametrize("kernel", KERNELS)
def test_private(kernel):
    assert kernel.__module__.startswith("torchvision.")

@pytest.mark.parametrize("interpolation", F._geometry._interpolation_modes_from_int(2) and [0, 2])
def test_public(interpolation):
    assert transforms.functional.resize is F.resize is not F._geometry.resize
    assert F.resize(torch.ones(1, 4, 4), [2, 2], interpolation=interpolation).shape == (1, 2, 2)
    assert transforms.Resize.__module__.split(".")[0] in ("imgops", "torchvision") and F.__name__
"""


@nightly
def test_private_modules_stay_torchvisions(tmp_path: Path) -> None:
    text = substituted(PRIVATE)
    assert "F._geometry" not in text and "transforms.functional._geometry._crop" not in text
    assert "F.resize(" in text and "F.__name__" in text
    (tmp_path / "test_private.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "."]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "10 passed" in done.stdout, done.stdout + done.stderr


def test_differences_are_judged() -> None:
    stock = {"a::x": "passed", "a::y": "passed", "a::z": "failed", "a::w": "passed"}
    ours = {"a::x": "failed", "a::y": "passed", "a::z": "failed"}
    assert differences(stock, ours) == ["a::w", "a::x"]
    assert judged(["a::w", "a::x"], ours, {"a::x": "known", "a::y": "gone"}) == (["a::w"], ["a::y"])


@pytest.mark.parametrize("select", every_night("same", "where"))
def test_the_program(tmp_path: Path, select: str) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_transforms_v2.py").write_text(SOURCE)
    command = [sys.executable, str(PROGRAM), str(tmp_path), "-k", select, "-p", "no:xdist"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    differs = select == "where"
    assert done.returncode == differs, done.stdout + done.stderr
    assert f"1 tests pass with torchvision; {int(differs)} of them do not with imgops" in done.stdout
    assert ("TestFlip::test_where_it_is_from" in done.stdout) == differs


@nightly
def test_a_path_without_tests_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 2 and "PATH must be a source tree of torchvision" in done.stderr
