"""Dtypes and ranges beyond the samples: values that do not fit, wide integers, complex images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import bits_equal
from PIL import Image

import imgops


@pytest.mark.parametrize("value", [300, -7, 255.5, 1e30])
def test_erase_saturates_as_pil_and_pad_do(value: float) -> None:
    image = torch.full((3, 4, 5), 9, dtype=torch.uint8)
    erased = imgops.erase(image, (1, 1, 3, 3), value)
    assert bits_equal(erased[:, 1:3, 1:3], imgops.pad(image[:, :0, :0], (0, 0, 2, 2), fill=value))
    canvas = Image.new("L", (5, 4), 9)
    if value == 300:
        canvas.paste(value, (1, 1, 3, 3))
        assert np.array_equal(erased[0].numpy(), np.asarray(canvas))


def test_erase_keeps_every_bit_of_an_int64() -> None:
    image, big = torch.zeros(1, 2, 2, dtype=torch.int64), 2**62 + 1
    assert imgops.erase(image, (0, 0, 1, 1), big)[0, 0, 0] == big
    assert imgops.erase(image, (0, 0, 2, 2), torch.full_like(image, big)).eq(big).all()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_images_move(dtype: torch.dtype) -> None:
    image = torch.randn(2, 5, 6, dtype=dtype)
    array = image.numpy()
    mask = torch.zeros(1, 2, 3, dtype=torch.bool)
    mask[0, 1, 1:] = True
    assert np.array_equal(
        imgops.pad(image, 2, "reflect").numpy(), np.pad(array, [(0, 0), (2, 2), (2, 2)], "reflect")
    )
    assert np.array_equal(imgops.crop(image, (1, 1, 4, 4)).numpy(), array[:, 1:4, 1:4])
    pasted, erased = array.copy(), array.copy()
    pasted[:, 3:5, 2:5] = np.where(mask.numpy(), array[:, :2, :3], pasted[:, 3:5, 2:5])
    erased[:, 1:3, 1:4] = 2
    assert np.array_equal(imgops.paste(image, image[:, :2, :3], (2, 3), mask).numpy(), pasted)
    assert np.array_equal(imgops.erase(image, (1, 1, 4, 3), 2).numpy(), erased)
