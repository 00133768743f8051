"""Sizes that could kill a process, with a limit of memory: each call must return or raise, and the process must survive.

``python -m tests.limits_program GIGABYTES``, run by tests/test_limits.py.
"""

from __future__ import annotations

import resource
import sys
import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops import transforms as v2
from tests import files
from tests.fuzz_values import kind_of
from tests.specs import SPECS
from tests.specs._maker import Maker

LONG = 10**6


def png(width: int, height: int) -> Tensor:
    """Return a file of some kilobytes whose header says how large its image is; its rows are zeros."""

    rows = zlib.compressobj(9)
    data = b"".join(rows.compress(bytes(1 << 20)) for _ in range(32)) + rows.flush()
    return files.tensor(files.png(files.png_header(width, height), (b"IDAT", data), (b"IEND", b"")))


def huge() -> dict[str, Callable[[], Any]]:
    """Return calls with more pixels than 32 bits can count, or than memory can hold."""
    image, side = torch.zeros(3, 8, 9, dtype=torch.uint8), 2**20
    return {
        "decode a bomb": lambda: imgops.decode_image(png(60_000, 60_000)),
        "decode a bomb that is allowed": lambda: imgops.decode_image(png(60_000, 60_000), max_pixels=2**40),
        "decode 2**31 rows": lambda: imgops.decode_image(png(1, 2**31 - 1), max_pixels=2**40),
        "resize": lambda: imgops.resize(image, (side, side)),
        "resize to 2**31": lambda: imgops.resize(image, (2**31, 1)),
        "resize to 2**31 - 1": lambda: imgops.resize(image, (2**31 - 1, 8)),
        "resize to 2**62": lambda: imgops.resize(image, (2**62, 2**62)),
        "pad": lambda: imgops.pad(image, 2**30),
        "crop": lambda: imgops.crop(image, (0, 0, 2**31 - 1, 2**31 - 1)),
        "crop far": lambda: imgops.crop(image, (2**40, 0, 2**40 + 3, 3)),
        "warp": lambda: imgops.warp_affine(image, torch.eye(2, 3), (side, side)),
        "clahe": lambda: imgops.clahe(image[:1].to(torch.uint16), 2.0, 4096),
        "fit": lambda: imgops.fit(image, (side, side)),
        "cover": lambda: imgops.cover(image, (2**31 - 1, 8)),
        "paste": lambda: imgops.paste(image, image, (2**62, 0)),
        "Resize": lambda: v2.Resize((side, side))(image),
        "Pad": lambda: v2.Pad(2**30)(image),
        "RandomCrop": lambda: v2.RandomCrop(side, pad_if_needed=True)(image),
        "LetterBox": lambda: v2.LetterBox((side, side))(image),
    }


def long_images() -> dict[str, Callable[[], Any]]:
    """Return calls of each function on an image of one row of a million pixels, and of one column."""
    calls: dict[str, Callable[[], Any]] = {}
    for name, spec in SPECS.items():
        if not spec.is_public or not spec.samples:
            continue
        function, args, keywords = spec.samples[0].call(Maker(spec.samples[0].dtypes[0]))
        first = args[0]
        if not isinstance(first, Tensor) or first.ndim < 3 or "out" in keywords:
            continue
        for size in ((1, LONG), (LONG, 1)):
            made = [_long(a, size) if _is_like(a, first) else a for a in args]
            calls[f"{name} {size}"] = lambda f=function, a=made, k=keywords: f(*a, **k)  # type: ignore[misc]
    return calls


def _is_like(value: Any, first: Tensor) -> bool:
    return isinstance(value, Tensor) and value.ndim >= 3 and value.shape[-2:] == first.shape[-2:]


def _long(image: Tensor, size: tuple[int, int]) -> Tensor:
    steps = (torch.arange(LONG) % 251).reshape(size).to(image.dtype)
    return steps.expand(*image.shape[:-2], *size).clone()


def outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        kind = kind_of(error)
        return kind if kind in ("error", "memory") else f"WRONG {type(error).__name__}: {error}"
    return "returned"


if __name__ == "__main__":
    limit = int(sys.argv[1]) << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for name, call in (huge() if sys.argv[2] == "huge" else long_images()).items():
        print(f"{name}: {outcome(call)}", flush=True)
    print("alive")
