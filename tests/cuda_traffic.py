"""``python -m tests.cuda_traffic``: the memory traffic of the CUDA kernels, counted by Triton's interpreter.

For each row of the table, a kernel runs on a batch of 2 x 3 x 128 x 128. Loads and stores are counted in sectors of 32
bytes, the unit in which a GPU's caches communicate, once for each program that touches a sector: data that programs share
come from the second-level cache. They are divided by the minimum: each byte of the image that the result needs read once,
and each byte of the result written once. The page of benchmarks has this table; a test compares them.
"""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from triton.runtime import interpreter

from imgops.extend.testing import cuda_kernel

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.rst"
_MARKS = re.compile(r"(\.\. traffic: .*?\n\n)(.*?)(\.\. /traffic)", re.S)
_SECTOR = 32
SIDE = 128


class Counter:
    """A counter of the sectors that loads and stores touch, each once per program."""

    def __init__(self) -> None:
        self.launch = 0
        self.touched: dict[Any, list[np.ndarray]] = {}

    def count(self, kind: str, builder: Any, pointers: Any, mask: Any) -> None:
        addresses, chosen = np.broadcast_arrays(pointers.data, mask.data)
        sectors = np.unique(addresses[chosen] // _SECTOR)
        self.touched.setdefault((kind, self.launch, builder.grid_idx), []).append(sectors)

    def bytes(self, kind: str) -> int:
        parts = [each for (k, _, _), each in self.touched.items() if k == kind]
        return _SECTOR * sum(len(np.unique(np.concatenate(each))) for each in parts)


def counted(call: Callable[[], Tensor]) -> tuple[Tensor, int, int]:
    """Return the result of a call, and the bytes that its kernels read and write."""
    counter, builder = Counter(), interpreter.InterpreterBuilder
    load, store, start = builder.create_masked_load, builder.create_masked_store, builder.set_grid_dim

    def counting_load(self: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
        counter.count("read", self, pointers, mask)
        return load(self, pointers, mask, *rest)

    def counting_store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        counter.count("written", self, pointers, mask)
        return store(self, pointers, value, mask, *rest)

    def starting(self: Any, *sizes: Any) -> Any:
        counter.launch += 1
        return start(self, *sizes)

    replaced = {
        "create_masked_load": counting_load,
        "create_masked_store": counting_store,
        "set_grid_dim": starting,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, function in replaced.items():
            patch.setattr(builder, name, function)
        out = call()
    return out, counter.bytes("read"), counter.bytes("written")


def image(interleaved: bool) -> Tensor:
    values = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, SIDE, SIDE), dtype=np.uint8))
    # Clone, because NumPy's memory may begin inside a sector.
    return values.clone(memory_format=torch.channels_last if interleaved else torch.contiguous_format)


def _rows(x: Tensor) -> list[tuple[str, Callable[[], Any], float]]:
    """Return names, calls, and the share of the image that each call has to read."""

    def kernel(name: str, *args: Any) -> Callable[[], Any]:
        return lambda: cuda_kernel(f"imgops::{name}")(*args)

    two = torch.tensor([0.7, 1.2], dtype=torch.float64)
    boxes = torch.tensor([[9, 5, 105, 101], [20, 30, 116, 126]])
    order = torch.tensor([[0, 1, 2, 3], [3, 1, 0, 2]])
    amounts = torch.tensor([[0.8, 1.2, 0.7, 0.1], [1.3, 0.9, 1.1, -0.1]], dtype=torch.float64)
    jitter = "brightness,contrast,saturation,hue"
    turn = torch.tensor([[0.9, -0.3, 20.0], [0.3, 0.9, -10.0]], dtype=torch.float64)
    patch, mask = x[..., :64, :64].contiguous(), torch.full((2, 1, 64, 64), 90, dtype=torch.uint8)
    table = torch.arange(256, dtype=torch.float32).expand(3, 256)
    share = 96 * 96 / SIDE**2
    return [
        ("crop, 96 x 96", kernel("crop", x, 9, 5, 105, 101), share),
        ("pad by 16, reflect", kernel("pad", x, None, 16, 16, 16, 16, "reflect"), 1),
        ("paste with a mask", kernel("paste", x, patch, mask, 15, 20), 1 + 0.25 + 0.25 / 3),
        ("erase, a box each", kernel("erase", x, x[..., :1, :1].contiguous(), boxes), 1 - share),
        ("posterize, each", kernel("posterize", x, torch.tensor([3, 5])), 1),
        ("lut to float32", kernel("lut", x, table), 1),
        ("color jitter, each", kernel("color_sequence", x, order, amounts, jitter), 1),
        ("equalize", kernel("equalize", x), 1),
        ("resize to 56, bilinear", kernel("resize", x, None, 56, 56, "bilinear", True), 1),
        ("resize to 56, OpenCV's bilinear", kernel("resize", x, None, 56, 56, "bilinear", False), 1),
        ("resized crop to 56, a box each", kernel("resized_crop", x, boxes, 56, 56, "bilinear", True), share),
        ("affine, nearest", kernel("warp_affine", x, turn, None, SIDE, SIDE, "nearest", "edge"), 1),
        ("affine, bilinear", kernel("warp_affine", x, turn, None, SIDE, SIDE, "bilinear", "edge"), 1),
        ("gaussian blur, 9 x 9", kernel("gaussian_blur", x, two[:, None].expand(2, 2), 9, 9), 1),
        ("sharpness", kernel("adjust_sharpness", x, two), 1),
    ]


def measured() -> list[tuple[str, list[float]]]:
    """Return, for each kernel, the bytes read and written over the minimum, planar and interleaved."""
    found: dict[str, list[float]] = {}
    for interleaved in (False, True):
        x = image(interleaved)
        for name, call, part in _rows(x):
            out, read, written = counted(call)
            least = x.numel() * part, out.numel() * out.element_size()
            found.setdefault(name, []).extend((read / least[0], written / least[1]))
    return list(found.items())


def table() -> str:
    head = ["kernel, uint8", "planar: read", "written", "interleaved: read", "written"]
    lines = [".. list-table::", "   :header-rows: 1", "   :class: wide", ""]
    for row in [head, *([name, *(f"{v:.2f}" for v in values)] for name, values in measured())]:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n\n"


def current() -> str:
    found = _MARKS.search(PAGE.read_text())
    return found.group(2) if found else ""


if __name__ == "__main__":
    made = table()
    print(made)
    PAGE.write_text(_MARKS.sub(lambda m: m.group(1) + made + m.group(3), PAGE.read_text()))
