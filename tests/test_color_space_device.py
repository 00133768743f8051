"""cvt_color's CUDA kernel beside OpenCV: Triton's interpreter runs a few pixels, ``python -m tests.test_color_space_device`` more.

As a program it runs the compiled kernels' PTX on the CPU (tests/ptx).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from imgops.extend.testing import cuda_kernel
from imgops.fake.color_space import CHANNELS, CODES
from imgops.kernels import cuda
from tests.tiers import nightly

interpreted = pytest.mark.skipif(
    not cuda.runs_on(torch.device("cpu")), reason="Triton was imported without its interpreter"
)
FROM_RGB = [code for code in CODES if not code.startswith("bgr")]
#: The conversions that OpenCV leaves to another library, or to tables that are not known to the last bit.
NEARLY = ("rgb2luv", "bgr2luv", "hsv_full2rgb", "hsv_full2bgr")


def noise(code: str, height: int, width: int, interleaved: bool) -> Tensor:
    """Return an image of the space that a conversion begins with; OpenCV knows hues up to 179."""
    source = code.split("2")[0]
    values = np.random.default_rng(7).integers(0, 256, (height, width, CHANNELS[source]), dtype=np.uint8)
    if source in ("hsv", "hls"):
        values[..., 0] %= 180
    image = torch.from_numpy(values).permute(2, 0, 1)
    return image if interleaved else image.contiguous()


def difference(code: str, image: Tensor) -> tuple[int, float]:
    """Return the greatest difference of the kernel and OpenCV, and the share of the values that differ."""
    found = cuda_kernel("imgops::cvt_color")(image, code)
    frame = np.ascontiguousarray(image.permute(1, 2, 0).numpy())
    wanted = cv2.cvtColor(frame, getattr(cv2, CODES[code])).reshape(*frame.shape[:2], -1)
    apart = np.abs(wanted.transpose(2, 0, 1).astype(int) - found.numpy())
    return int(apart.max()), float((apart > 0).mean())


@interpreted
@pytest.mark.parametrize("code", FROM_RGB)
def test_pixels_are_opencvs(code: str) -> None:
    """There are pixels outside of OpenCV's vectors in each row, and images of whole words and others."""
    for height, interleaved in ((4, len(code) % 2 == 0), (3, len(code) % 2 == 1)):
        assert difference(code, noise(code, height, 37, interleaved)) == (0, 0)


@interpreted
def test_nothing_else_is_computed() -> None:
    """Double precision is left to ATen, and no pixels are no launch."""
    kernel = cuda_kernel("imgops::cvt_color")
    assert kernel(torch.zeros(3, 0, 4), "rgb2gray").shape == (1, 0, 4)
    with pytest.raises(NotImplementedError, match="cvt_color leaves these arguments to its decomposition"):
        kernel(torch.zeros(3, 2, 4, dtype=torch.float64), "rgb2gray")


@nightly
def test_the_compiled_kernels() -> None:
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_color_space_device"],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"TRITON_INTERPRET": "0", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.endswith("0 differ\n")


def main() -> int:
    from tests.ptx.machine import on_ptx

    torch.use_deterministic_algorithms(True)  # fills empty tensors with the largest integers
    faults = 0
    with on_ptx(90):
        for i, code in enumerate(CODES):
            for width in (1024, 1001):
                apart, share = difference(code, noise(code, 128, width, (i + width) % 2 == 0))
                if apart > (code in NEARLY) or share > 3e-5:
                    faults += 1
                    print(f"{code}, {width} columns: {apart} levels apart in {share:.1e} of the values")
    print(f"{len(CODES)} conversions, {faults} differ")
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
