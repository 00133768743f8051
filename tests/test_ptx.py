"""The compiled CUDA kernels, run on the CPU from their PTX: tests/ptx.

They run in processes of their own, because the other tests run Triton's interpreter in this one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tiers import nightly

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or shutil.which("gcc") is None or sys.platform != "linux",
    reason="Triton compiles the kernels, and gcc what their PTX becomes",
)


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_compiled_kernels() -> None:
    """They equal the CPU's kernels, access no memory that is not theirs, and write all of their results.

    test_offsets_beyond_32_bits compiles a kernel of each module, test_every_sample each kernel every night, and Triton's
    interpreter runs all samples.
    """
    (line,) = re.findall(
        r"^(\d+) equal, (\d+) left to ATen, 0 differ, (\d+) launches$", run("tests.ptx", "--sizes"), re.M
    )
    equal, left, launches = map(int, line)
    assert equal >= 20 and left <= 2 and launches >= equal


@nightly
@pytest.mark.parametrize("capability", ["80", "90"])
@pytest.mark.parametrize("part", [f"{i}/8" for i in range(8)])
def test_every_sample(part: str, capability: str) -> None:
    assert "0 differ" in run("tests.ptx", "--all", "--part", part, "--capability", capability)


@nightly
@pytest.mark.parametrize("part", ["0/8", "4/8"])
def test_budgets(part: str) -> None:
    """They execute no more than tests/ptx/budgets.json allows, and spill no registers: each row in a dtype and layout."""
    out = run("tests.ptx.count", "--quick", "--part", part)
    assert re.search(r"^\d\d rows, 0 exceed their budget$", out, re.M)


@nightly
@pytest.mark.parametrize("part", [f"{i}/8" for i in range(8)])
def test_every_budget(part: str) -> None:
    assert "rows, 0 exceed their budget" in run("tests.ptx.count", "--part", part)


@nightly
@pytest.mark.parametrize("part", [f"{i}/4" for i in range(4)])
def test_every_budget_of_packed_images(part: str) -> None:
    assert "rows, 0 exceed their budget" in run("tests.ptx.count", "--packed", "--part", part)


def test_warps_are_opencv(whole: bool) -> None:
    out = run("tests.ptx.warps", *(() if whole else ("--quick",)))
    assert f"0 values of {30 if whole else 6} calls differ" in out


def test_faults_are_seen() -> None:
    out = run("tests.ptx.faults")
    assert re.findall(r"^(.+?): (.*)$", out, re.M) == [
        ("equal", "fine True"),
        ("last launch", re.findall(r"last launch: (.*)", out)[0]),
        ("beyond the image", "_copy: a read outside of its tensors"),
        ("beyond the result", "_copy: a write outside of its tensors"),
        ("a part of a tensor", "fine"),
        ("sum", "fine 2016"),
        ("bytes as words", "_as_words: a misaligned access"),
    ]
    assert re.search(r"last launch: \{'_copy': [1-9]\d+\} 256 256$", out, re.M)
