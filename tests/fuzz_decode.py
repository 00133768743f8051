"""Hostile files: ``python -m tests.fuzz_decode 100000`` decodes that many mutated files.

Each must give the same pixels as Pillow, bit for bit, or one ValueError that begins with the operator's name. A crash
ends the process; any other failure is shrunk by hypothesis and printed as bytes, to be kept in
``tests/hostile.py``.
"""

from __future__ import annotations

import io
import sys
import warnings
import zlib
from collections import Counter
from functools import cache

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import imgops

MAX_PIXELS = 1 << 18
OUTCOMES: Counter[str] = Counter()


@cache
def seeds() -> tuple[bytes, ...]:
    """Return a small valid file of each kind that the three formats have."""
    noise = np.random.default_rng(0).integers(0, 256, (23, 17, 4), dtype=np.uint8)
    smooth = np.linspace(0, 255, 23 * 17 * 3).reshape(23, 17, 3).astype(np.uint8)
    rgba, rgb, gray = Image.fromarray(noise), Image.fromarray(smooth), Image.fromarray(noise[..., 0])
    exif = Image.Exif()
    exif[0x0112] = 6
    files: list[tuple[Image.Image, str, dict[str, object]]] = [
        (rgb, "JPEG", {}),
        (rgb, "JPEG", {"progressive": True, "exif": exif}),
        (rgb, "JPEG", {"subsampling": 0, "restart_marker_blocks": 2}),
        (gray, "JPEG", {"quality": 10}),
        (rgb.convert("CMYK"), "JPEG", {}),
        (rgba, "PNG", {}),
        (gray.convert("1"), "PNG", {}),
        (rgb.quantize(8), "PNG", {"transparency": 3, "exif": exif}),
        (Image.fromarray(noise[..., 0].astype(np.uint16) * 257), "PNG", {}),
        (rgba.convert("LA"), "PNG", {}),
        (rgb, "WEBP", {"exif": exif}),
        (rgba, "WEBP", {"lossless": True}),
        (rgb, "WEBP", {"save_all": True, "append_images": [rgb.rotate(180)]}),
    ]
    made = []
    for image, format, keywords in files:
        file = io.BytesIO()
        image.save(file, format, **keywords)
        made.append(file.getvalue())
    return tuple(made)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    raw = bytearray(draw(st.sampled_from(seeds())))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(
            st.sampled_from(("flip", "set", "number", "delete", "insert", "repeat", "cut", "splice", "tail"))
        )
        size = max(len(raw), 1)
        at = draw(st.integers(0, size - 1))
        end = min(at + draw(st.integers(1, 40)), size)
        if kind == "flip":
            raw[at : at + 1] = bytes(b ^ (1 << draw(st.integers(0, 7))) for b in raw[at : at + 1])
        elif kind == "set":
            raw[at:end] = draw(st.binary(min_size=1, max_size=8))
        elif kind == "number":
            value = draw(st.sampled_from((0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)))
            width = draw(st.sampled_from((2, 4)))
            raw[at : at + width] = (value % 2 ** (8 * width)).to_bytes(
                width, draw(st.sampled_from(("big", "little")))
            )
        elif kind == "delete":
            del raw[at:end]
        elif kind == "insert":
            raw[at:at] = draw(st.binary(min_size=1, max_size=16))
        elif kind == "repeat":
            raw[at:at] = raw[at:end] * draw(st.integers(1, 4))
        elif kind == "cut":
            del raw[at:]
        elif kind == "splice":
            other = draw(st.sampled_from(seeds()))
            raw[at:] = other[draw(st.integers(0, len(other) - 1)) :]
        else:  # cut, and closed as if it were complete
            raw[at:] = b"\xff\xd9"
    return _with_checksums(bytes(raw)) if draw(st.booleans()) else bytes(raw)


def _with_checksums(raw: bytes) -> bytes:
    """Return a PNG whose chunks have correct checksums again, so that decoding gets past them."""
    if not raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return raw
    out, at = bytearray(raw[:8]), 8
    while at + 12 <= len(raw):
        end = at + 8 + int.from_bytes(raw[at : at + 4], "big")
        if end + 4 > len(raw):
            break
        out += raw[at:end] + zlib.crc32(raw[at + 4 : end]).to_bytes(4, "big")
        at = end + 4
    return bytes(out + raw[at:])


def check(raw: bytes, mode: str = "RGB", turned: bool = False) -> str:
    """Decode one file, and return the outcome."""
    data = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = imgops.decode_image(data, mode, apply_exif_orientation=turned, max_pixels=MAX_PIXELS)
    except ValueError as error:
        if not str(error).startswith("decode_image: "):
            raise
        return "refused"
    assert ours.numel() <= MAX_PIXELS * ours.shape[0]
    if turned:
        return "turned"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Image.open(io.BytesIO(raw))
        if theirs.mode.startswith("I"):
            theirs = Image.fromarray((np.asarray(theirs).astype(np.uint16) >> 8).astype(np.uint8))
        pixels = np.asarray(theirs.convert(mode))
    expected = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    assert np.array_equal(ours.numpy(), expected), "other pixels than Pillow's"
    return "decoded"


def run(count: int) -> Counter[str]:
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(mutated(), st.sampled_from(("RGB", "L", "LA", "RGBA")), st.booleans())
    def decode(raw: bytes, mode: str, turned: bool) -> None:
        OUTCOMES[check(raw, mode, turned)] += 1

    decode()
    return OUTCOMES


if __name__ == "__main__":
    print(dict(run(int(sys.argv[1]))))
