"""Every code of cvt_color against OpenCV, in both formats; float64 against the formulas; the decomposition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check_format

import imgops
from imgops.decomposition import color_space as formula
from imgops.fake.color_space import CODES
from tests.specs._maker import Maker
from tests.specs._spec import EXACT, Tolerance
from tests.specs.color_space import cvt_reference, space_image, tolerances


@pytest.mark.parametrize("code", CODES)
def test_every_code(code: str) -> None:
    for dtype in (torch.uint8, torch.float32, torch.float64):
        for format in ("planar", "interleaved"):
            image = space_image(Maker(dtype, format), code.partition("2")[0])
            found = imgops.cvt_color(image, code)
            check_format(found, image)
            wanted = torch.from_numpy(np.ascontiguousarray(cvt_reference(image.numpy(), code)))
            (Tolerance(1e-9) if dtype == torch.float64 else EXACT).check(found, wanted.to(dtype))
            tolerances(code).get(dtype, EXACT).check(formula.cvt_color(image, code), found)


def test_there_and_back() -> None:
    image = torch.rand(3, 9, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for space in ("hsv", "hsv_full", "hls", "lab", "luv", "ycrcb", "yuv", "xyz"):
        back = imgops.cvt_color(imgops.cvt_color(image, f"bgr2{space}"), f"{space}2bgr")
        assert (back - image).abs().max() < 5e-3, space
    assert torch.equal(imgops.cvt_color(imgops.cvt_color(image, "rgb2bgra"), "bgra2rgb"), image)


def test_hue_of_a_gray_pixel_has_no_gradient() -> None:
    gray = torch.full((3, 1, 1), 0.5, dtype=torch.float64, requires_grad=True)
    hue, _, value = imgops.cvt_color(gray, "rgb2hsv")
    (grad,) = torch.autograd.grad(hue.sum(), gray, retain_graph=True)
    assert not grad.any()
    (grad,) = torch.autograd.grad(value.sum(), gray)
    assert grad.sum() == 1


def test_the_case_of_a_code_is_free() -> None:
    image = torch.rand(3, 4, 5)
    assert torch.equal(imgops.cvt_color(image, "RGB2HSV_FULL"), imgops.cvt_color(image, "rgb2hsv_full"))
