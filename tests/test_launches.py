"""Launches on a device, with a mocked driver: how many a call makes, and how many kernels changing sizes compile.

They run in a process of their own, because the other tests run Triton's interpreter in this one.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec

import pytest

from tests.test_ptx import run

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or sys.platform != "linux", reason="Triton compiles the kernels"
)

#: The most launches of a call after the first.
MOST = {
    **dict.fromkeys(("crop", "pad", "paste", "erase", "solarize", "color_matrix"), 1),
    **dict.fromkeys(("adjust_gamma", "adjust_sharpness", "resize", "warp_affine"), 2),
    **dict.fromkeys(("color_sequence", "equalize", "gaussian_blur"), 3),
    "resized_crop": 4,
}


def test_a_call_makes_few_launches() -> None:
    """Tables that depend on sizes alone are made once."""
    found = re.findall(r"^(\w+)[^:]*: \d+ us, (\d+) launches$", run("tests.ptx.launches"), re.M)
    assert {name for name, _ in found} == set(MOST)
    assert [(name, count) for name, count in found if int(count) > MOST[name]] == []


def test_changing_sizes_compile_few_kernels() -> None:
    (line,) = re.findall(
        r"^(\d+) kernels after 300 batches of 12 operators$", run("tests.ptx.launches", "--sizes"), re.M
    )
    assert int(line) <= 40
