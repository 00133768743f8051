"""The most memory that a call takes beside its input, in multiples of the input: ``python -m tests.memory_program``.

The input is a photograph of 12 megapixels in uint8, 36 MB, or a batch or file of as many pixels. The peak of the process is read
from the kernel, which resets it before each call; the libraries are loaded by a small call first. tests/test_limits.py compares
the numbers with the table of docs/security.rst.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops import transforms as v2
from imgops.transforms import recipes

HEIGHT, WIDTH = 3000, 4000


def calls() -> dict[str, Callable[[Tensor], Any]]:
    """Return calls by the names that the table has."""
    small = torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8)
    grown = v2.PixMix([small], p=1.0)
    files: dict[int, Tensor] = {}

    def decode(x: Tensor) -> Tensor:
        return imgops.decode_image(files.setdefault(x.shape[-1], imgops.encode_image(x, "jpeg")))

    def packed(x: Tensor) -> Any:
        return imgops.resize(imgops.PackedImages.of(list(x.split(x.shape[-2] // 4, -2))), (224, 224))

    return {
        "``crop``, ``pad``, ``flip``, ``paste``": lambda x: imgops.pad(x, 8),
        "``resize`` to the same size or smaller": lambda x: imgops.resize(
            x, (x.shape[-2] - 8, x.shape[-1] - 8)
        ),
        "``resize`` to 224 × 224": lambda x: imgops.resize(x, (224, 224)),
        "``warp_affine``": lambda x: imgops.warp_affine(x, torch.tensor([[0.9, 0.1, 3.0], [-0.1, 0.9, 2.0]])),
        "color and levels": lambda x: imgops.adjust_hue(imgops.adjust_contrast(x, 1.2), 0.1),
        "``gaussian_blur``, ``median_blur``": lambda x: imgops.median_blur(
            imgops.gaussian_blur(x, 9, 2.0), 5
        ),
        "``bilateral_filter``": lambda x: imgops.bilateral_filter(x, 5, 30.0, 3.0),
        "``clahe``, ``equalize``": lambda x: imgops.clahe(imgops.equalize(x), 2.0, 8),
        "``erode``, ``sobel``": lambda x: imgops.erode(x, torch.ones(3, 3)),
        "``jpeg``": lambda x: imgops.jpeg(x, 80),
        "``decode_image`` of a JPEG": decode,
        "``resize`` of packed images": packed,
        "``RandomElastic``, the other distortions": lambda x: v2.RandomElastic(p=1.0)(x),
        "``Mosaic`` of four": lambda x: v2.Mosaic((x.shape[-2] // 2, x.shape[-1] // 2))([x] * 4),
        "``PixMix``": grown,
        "``recipes.DINOCrops``": recipes.DINOCrops(),
        **{
            f"``Corruption('{name}')``": v2.Corruption(name, 3)
            for name in ("gaussian_noise", "fog", "glass_blur", "frost")
        },
        "any other ``Corruption``": _others,
    }


def _others(x: Tensor) -> None:
    known = {"gaussian_noise", "fog", "glass_blur", "frost"}
    for name in (*v2.Corruption.COMMON, *v2.Corruption.VALIDATION):
        if name not in known:
            v2.Corruption(name, 3)(x)


def _status(key: str) -> int:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(key))
    return int(line.split()[1]) << 10


def peak(call: Callable[[Tensor], Any], image: Tensor) -> float:
    """Return the most memory that a call takes, in multiples of the image."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    call(image)
    return (_status("VmHWM") - before) / image.nbytes


def main() -> None:
    torch.set_num_threads(1)
    photograph = torch.randint(0, 256, (3, HEIGHT // 20, WIDTH // 20), dtype=torch.uint8)
    photograph = imgops.resize(photograph, (HEIGHT, WIDTH), "bicubic")
    found = {}
    for name, call in calls().items():
        call(photograph[:, :400, :400].contiguous())
        found[name] = peak(call, photograph)
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
