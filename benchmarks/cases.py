"""The calls to time: each operator with imgops, the raw library, torchvision v2 and kornia.

The calls are in the operators' specs. Peers get the same tensor. A raw call gets the data in its library's
usual format, prepared outside the timed region: an HWC array or RGB image for an interleaved image, mapped
planes for a planar one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from tests.specs import SPECS
from tests.specs._spec import Benchmark

COLUMNS = ("imgops", "raw", "torchvision", "kornia", "scikit-image")
BENCHMARKS: dict[str, Benchmark] = {b.name: b for spec in SPECS.values() for b in spec.benchmarks}
#: The operators that are timed in every size and batch; the others are timed on one image of 512 x 512.
EVERY_SIZE = [name for name, b in BENCHMARKS.items() if b.every_size]


@dataclass(frozen=True)
class Case:
    operator: str
    dtype: torch.dtype
    layout: str  # "planar" or "interleaved"
    size: int
    batch: int

    def image(self, size: int | None = None, seed: int = 0) -> Tensor:
        size = size or self.size
        generator = torch.Generator().manual_seed(seed)
        shape = (self.batch, 3, size, size) if self.batch > 1 else (3, size, size)
        image = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        if self.dtype != torch.uint8:
            image = image.to(self.dtype).div_(255)
        if self.layout == "interleaved":
            image = image.movedim(-3, -1).contiguous().movedim(-1, -3)
        return image

    def arrays(self, image: Tensor, planar: bool = False) -> list[np.ndarray]:
        """Return an image in OpenCV's usual format: planes, or HWC frames."""
        if planar or self.layout == "planar":
            return list(image.contiguous().numpy().reshape(-1, *image.shape[-2:]))
        frames = image.movedim(-3, -1)
        return list(frames.numpy().reshape(-1, *frames.shape[-3:]))

    def pictures(self, image: Tensor, planar: bool = False) -> list[Image.Image]:
        """Return an image in PIL's usual format: an RGB image, or mapped planes; floats become mode F."""
        if not planar and self.layout == "interleaved" and image.dtype == torch.uint8:
            return [Image.fromarray(a) for a in self.arrays(image)]
        planes = self.arrays(image, planar=True)
        if image.dtype != torch.uint8:
            return [Image.fromarray(p) for p in planes]
        return [Image.frombuffer("L", p.shape[::-1], p, "raw", "L", 0, 1) for p in planes]

    def by_pil(self, image: Tensor, call: Callable[[Image.Image], Any]) -> Callable[[], Any] | None:
        """Return a ``call`` on one RGB image, or None if it is not uint8, as PIL's RGB images are."""
        if image.dtype != torch.uint8:
            return None
        picture = Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())
        return lambda: call(picture)

    def columns(self) -> dict[str, Callable[[], Any] | None]:
        """Return a call without arguments for each column, or None if the peer has no such operator."""
        calls = BENCHMARKS[self.operator].calls(self)
        return dict(zip_longest(COLUMNS, calls))
