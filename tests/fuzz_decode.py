"""Hostile files: ``python -m tests.fuzz_decode 100000`` decodes that many mutated files.

Each must give the same pixels as Pillow, bit for bit, or one ValueError that begins with the operator's name, with
libjpeg-turbo as without it; and a box of it the pixels of a crop. A crash
ends the process; any other failure is shrunk by hypothesis and printed as bytes, to be kept in
``tests/hostile.py``.
"""

from __future__ import annotations

import io
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import cv2
import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

import imgops
from imgops.kernels.cpu import _libjpeg
from tests.native_program import load

MAX_PIXELS = 1 << 18
OUTCOMES: Counter[str] = Counter()


@cache
def seeds() -> tuple[bytes, ...]:
    """Return a small valid file of each kind that the three formats have."""
    noise = np.random.default_rng(0).integers(0, 256, (23, 17, 4), dtype=np.uint8)
    smooth = np.linspace(0, 255, 23 * 17 * 3).reshape(23, 17, 3).astype(np.uint8)
    rgba, rgb, gray = Image.fromarray(noise), Image.fromarray(smooth), Image.fromarray(noise[..., 0])
    large = Image.fromarray(smooth).resize((97, 71), Image.Resampling.BICUBIC)
    exif = Image.Exif()
    exif[0x0112] = 6
    files: list[tuple[Image.Image, str, dict[str, object]]] = [
        (rgb, "JPEG", {}),
        (rgb, "JPEG", {"progressive": True, "exif": exif}),
        (rgb, "JPEG", {"subsampling": 0, "restart_marker_blocks": 2}),
        (gray, "JPEG", {"quality": 10}),
        (rgb.convert("CMYK"), "JPEG", {}),
        (large, "JPEG", {"quality": 40}),  # of several blocks each way, so that a region skips some
        (large, "JPEG", {"quality": 40, "subsampling": 1, "restart_marker_rows": 1}),
        (large, "JPEG", {"quality": 30, "progressive": True}),
        (rgba, "PNG", {}),
        (gray.convert("1"), "PNG", {}),
        (rgb.quantize(8), "PNG", {"transparency": 3, "exif": exif}),
        (Image.fromarray(noise[..., 0].astype(np.uint16) * 257), "PNG", {}),
        (rgba.convert("LA"), "PNG", {}),
        (rgb, "WEBP", {"exif": exif}),
        (rgba, "WEBP", {"lossless": True}),
        (rgb, "WEBP", {"save_all": True, "append_images": [rgb.rotate(180)]}),
    ]
    deep = noise[..., :3].astype(np.uint16) * 251  # 16 bits of color, which Pillow cannot write
    made = []
    for image, format, keywords in files:
        file = io.BytesIO()
        image.save(file, format, **keywords)
        made.append(file.getvalue())
    return (*made, cv2.imencode(".png", deep)[1].tobytes())


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


def check(raw: bytes, mode: str = "RGB", turned: bool = False, part: float = 0.5) -> str:
    """Decode one file, whole and a box of it, with libjpeg-turbo and without; return the outcome."""
    data = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
    keywords = {"apply_exif_orientation": turned, "max_pixels": MAX_PIXELS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = _outcome(lambda: imgops.decode_image(data, mode, **keywords))
        with _without_libjpeg():
            by_pillow = _outcome(lambda: imgops.decode_image(data, mode, **keywords))
        if isinstance(ours, str):
            assert ours == by_pillow, f"not Pillow's verdict: {by_pillow}"
            _check_part_of_refused(raw, data, part)
            return "refused"
        assert not isinstance(by_pillow, str) and torch.equal(ours, by_pillow), "not Pillow's verdict"
        _check_box(ours, part, lambda box: imgops.decode_image(data, mode, box=box, **keywords))
        if mode == "unchanged":
            high = (ours.int() >> 8).byte() if ours.dtype == torch.uint16 else ours
            expected = _by_pillow(raw, ("L", "LA", "RGB", "RGBA")[len(ours) - 1])
            assert turned or np.array_equal(high.numpy(), expected), "other pixels than Pillow's"
            return "unchanged"
        _check_box(ours, part, lambda box: _in_a_batch(data, mode, box, keywords))
        assert ours.numel() <= MAX_PIXELS * ours.shape[0]
        if turned:
            return "turned"
        expected = _by_pillow(raw, mode)
    assert np.array_equal(ours.numpy(), expected), "other pixels than Pillow's"
    return "decoded"


def _outcome(decode: Callable[[], torch.Tensor]) -> torch.Tensor | str:
    try:
        return decode()
    except ValueError as error:
        if not str(error).startswith("decode_image: "):
            raise
        return str(error)


@contextmanager
def _without_libjpeg() -> Iterator[None]:
    module, _libjpeg.module = _libjpeg.module, None
    try:
        yield
    finally:
        _libjpeg.module = module


def _box(height: int, width: int, part: float) -> tuple[int, int, int, int]:
    """Return a box that depends on a number from 0 to 1."""
    left, top = int(part * (width - 1)), int((part * 7919) % 1 * (height - 1))
    return left, top, left + 1 + int((part * 31) % 1 * (width - 1 - left)), top + 1 + (height - 1 - top) // 2


def _check_box(whole: torch.Tensor, part: float, decode: Callable[[Any], torch.Tensor]) -> None:
    left, top, right, bottom = box = _box(*whole.shape[1:], part)
    assert torch.equal(decode(box), whole[:, top:bottom, left:right]), f"other pixels in {box}"


def _in_a_batch(data: torch.Tensor, mode: str, box: Any, keywords: dict[str, Any]) -> torch.Tensor:
    """Decode a box of the last file of a batch, whose other file is fine."""
    fine = torch.frombuffer(bytearray(seeds()[0]), dtype=torch.uint8)
    images = imgops.EncodedImages([fine, data], mode, **keywords)
    return images.decode(torch.tensor([(0, 0, 17, 23), box]))[1]


def _check_part_of_refused(raw: bytes, data: torch.Tensor, part: float) -> None:
    """Check a box of a file that is refused as a whole: it has the pixels that Pillow has when it goes on at errors."""
    try:
        image = Image.open(io.BytesIO(raw))
        if image.format != "JPEG" or image.width * image.height > MAX_PIXELS:
            return
        box = _box(image.height, image.width, part)
    except Exception:
        return
    ours = _outcome(lambda: imgops.decode_image(data, "RGB", box=box, max_pixels=MAX_PIXELS))
    if isinstance(ours, str):
        return
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        expected = np.asarray(image.convert("RGB").crop(box)).transpose(2, 0, 1)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    assert np.array_equal(ours.numpy(), expected), f"other pixels in {box} of a damaged file"
    OUTCOMES["a box of a damaged file"] += 1


def _by_pillow(raw: bytes, mode: str) -> np.ndarray:
    theirs = Image.open(io.BytesIO(raw))
    if theirs.mode.startswith("I"):
        theirs = Image.fromarray((np.asarray(theirs).astype(np.uint16) >> 8).astype(np.uint8))
    pixels = np.asarray(theirs.convert(mode))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def run(count: int) -> Counter[str]:
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        mutated(), st.sampled_from(("RGB", "L", "LA", "RGBA", "unchanged")), st.booleans(), st.floats(0, 1)
    )
    def decode(raw: bytes, mode: str, turned: bool, part: float) -> None:
        OUTCOMES[check(raw, mode, turned, part)] += 1

    decode()
    return OUTCOMES


if __name__ == "__main__":
    if sys.argv[2:]:  # a module that was built with sanitizers
        _libjpeg.module = load(sys.argv[2], "_native_jpeg")
    print(dict(run(int(sys.argv[1]))))
