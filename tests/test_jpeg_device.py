"""jpeg's CUDA kernel beside Pillow itself: Triton's interpreter runs a few images, ``python -m tests.test_jpeg_device`` more.

As a program it runs the compiled kernel's PTX on the CPU (tests/ptx), which is fast enough for hundreds of images.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from imgops._common import compare
from imgops._operator.record import operators
from imgops.extend.testing import cuda_kernel
from imgops.kernels import cuda
from tests.tiers import nightly

interpreted = pytest.mark.skipif(
    not cuda.runs_on(torch.device("cpu")), reason="Triton was imported without its interpreter"
)


def by_pillow(image: Tensor, quality: int) -> Tensor:
    pixels = image[0] if len(image) == 1 else image.permute(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(pixels.contiguous().numpy()).save(file, "JPEG", quality=quality)
    found = torch.from_numpy(np.array(Image.open(file)))
    return found[None] if found.ndim == 2 else found.permute(2, 0, 1)


def images(kind: str, channels: int, height: int, width: int, interleaved: bool, seed: int) -> Tensor:
    """Return two images, of noise, of its extremes, or smooth."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (2, height, width, channels), dtype=np.uint8)
    if kind == "extremes":
        noise = np.where(noise > 127, 255, 0).astype(np.uint8)
    if kind == "smooth":
        coarse = rng.integers(0, 256, (2, 3, 3, channels), dtype=np.uint8)
        noise = np.stack([_enlarged(one, width, height) for one in coarse])
    found = torch.from_numpy(noise).permute(0, 3, 1, 2)
    return found if interleaved else found.contiguous()


def _enlarged(coarse: np.ndarray, width: int, height: int) -> np.ndarray:
    planes = [Image.fromarray(plane).resize((width, height), 3) for plane in coarse.transpose(2, 0, 1).copy()]
    return np.stack([np.array(plane) for plane in planes], -1)


def differences(image: Tensor, qualities: list[int]) -> list[str]:
    """Return in which images the kernel and Pillow differ."""
    found = cuda_kernel("imgops::jpeg")(image, torch.tensor(qualities))
    wanted = [by_pillow(one, q) for one, q in zip(image, qualities, strict=True)]
    return [
        f"{tuple(image.shape)} {image.stride()} quality {q}: {int((one != other).sum())} values differ"
        for one, other, q in zip(found, wanted, qualities, strict=True)
        if not torch.equal(one, other)
    ]


@interpreted
@pytest.mark.parametrize(
    ("size", "interleaved"),
    [((17, 32), True), ((3, 4), False), ((9, 5), True), ((1, 1), False), ((16, 35), False)],
)
def test_pixels_are_pillows(size: tuple[int, int], interleaved: bool) -> None:
    """Blocks in part outside of the image, chroma of one and of two columns, and rows of whole words are among them."""
    for channels in (1, 3):
        assert not differences(images("noise", channels, *size, interleaved, 0), [3, 88])


@interpreted
def test_a_photograph(photograph: Tensor) -> None:
    part = photograph[:, 100:150, 200:260]
    assert not differences(part[None], [75])


@interpreted
def test_qualities_on_the_device_are_not_refused() -> None:
    """They cannot be read, so that the kernel takes the nearest quality, or leaves the image as it is."""
    image, kernel = images("noise", 3, 9, 12, False, 1).repeat(3, 1, 1, 1), operators()["jpeg"].cuda
    qualities = torch.tensor([float("nan"), -5.0, float("inf"), 70.9, 1e30, 0.5], dtype=torch.float64)
    out = torch.empty_like(image)
    assert kernel(out, image, qualities) is None
    wanted = [image[0], image[1], by_pillow(image[2], 100), by_pillow(image[3], 70)]
    assert torch.equal(out, torch.stack([*wanted, by_pillow(image[4], 100), image[5]]))


@interpreted
def test_another_jpeg_library_of_pillow_is_called_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from imgops.kernels.cuda import codec

    monkeypatch.setenv("IMGOPS_QUIET", "1")
    image, quality = images("noise", 3, 9, 12, False, 1), torch.tensor(70)
    for features in ({"libjpeg_turbo": False}, {"libjpeg_turbo": True, "mozjpeg": True}):
        compare.results.clear()
        monkeypatch.setattr(codec.features, "check_feature", lambda name, f=features: f.get(name, False))
        assert codec.jpeg(torch.empty_like(image), image, quality) is NotImplemented
    compare.results.clear()


@nightly
def test_the_compiled_kernel() -> None:
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_jpeg_device"],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"TRITON_INTERPRET": "0", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.endswith("0 differ\n")


def cases() -> Iterator[tuple[Tensor, list[int]]]:
    """Yield images of every size from 1 x 1 to 20 x 20 and some larger ones, with qualities from 1 to 100."""
    sizes = [(height, width) for height in range(1, 21) for width in range(1, 21)]
    sizes += [(31, 64), (64, 33), (47, 100), (100, 47), (50, 51)]
    kinds = ("noise", "extremes", "smooth")
    for i, size in enumerate(sizes):
        for channels in (1, 3):
            yield images(kinds[i % 3], channels, *size, i % 2 == 0, i), [1 + i % 100, 1 + i * 37 % 100]


def main() -> int:
    from tests.ptx.machine import on_ptx

    torch.use_deterministic_algorithms(True)  # fills empty tensors with the largest integers
    with on_ptx(90):
        found = [(len(image), differences(image, qualities)) for image, qualities in cases()]
    faults = [fault for _, each in found for fault in each]
    print(*faults, f"{sum(count for count, _ in found)} images, {len(faults)} differ", sep="\n")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
