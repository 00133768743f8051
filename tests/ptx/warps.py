"""``python -m tests.ptx.warps``: the compiled warps are compared with OpenCV itself, to the bit.

``--quick`` takes two borders and one interpolation.

Triton's interpreter does not fuse a product and a sum, as OpenCV and the compiled kernels do.
"""

from __future__ import annotations

import os
import sys

os.environ["TRITON_INTERPRET"] = "0"

from typing import Any

import cv2
import numpy as np
import torch

from imgops.extend.testing import cuda_kernel
from tests.ptx.machine import on_ptx

BORDERS = {"constant": 0, "edge": 1, "symmetric": 2, "wrap": 3, "reflect": 4}


def main() -> None:
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 90, 110), dtype=np.uint8))
    turn = np.array([[0.83, -0.41, 21.7], [0.37, 0.91, -13.3]])
    tilt = np.array([*turn, [6e-4, -4e-4, 1.1]])
    y, x = torch.meshgrid(torch.arange(97.0), torch.arange(128.0), indexing="ij")
    map = torch.stack([x * 0.9 + y * 0.2 - 11.3, y * 0.87 - x * 0.11 + 7.9])
    differ = calls = 0
    quick = "--quick" in sys.argv
    for border in ("constant", "wrap") if quick else BORDERS:
        mode = BORDERS[border]
        how: Any = {"borderMode": mode, "borderValue": (9.0,) * 4}
        for flags, name in list(enumerate(("nearest", "bilinear")))[1 if quick else 0 :]:
            plane, size, rest = image[0].numpy(), (128, 97), (torch.tensor(9.0), 97, 128, name, border)
            pairs = [
                (
                    "warp_affine",
                    (torch.from_numpy(turn), *rest),
                    cv2.warpAffine(plane, turn, size, flags=flags, **how),
                ),
                (
                    "warp_perspective",
                    (torch.from_numpy(tilt), *rest),
                    cv2.warpPerspective(plane, tilt, size, flags=flags, **how),
                ),
                ("remap", (map, rest[0], name, border), cv2.remap(plane, *map.numpy(), flags, **how)),
            ]
            for operator, arguments, wanted in pairs:
                with on_ptx(90):
                    found = cuda_kernel(f"imgops::{operator}")(image, *arguments)
                differ += int((found[0] != torch.from_numpy(wanted)).sum())
                calls += 1
    print(f"{differ} values of {calls} calls differ")


if __name__ == "__main__":
    main()
