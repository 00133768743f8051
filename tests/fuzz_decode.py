"""Hostile files: ``python -m tests.fuzz_decode 100000`` decodes that many mutated files.

Every function that reads files must give the pixels of Pillow, bit for bit, or one ValueError that begins with its
name: with libjpeg-turbo as without it, of a box those of a crop, and of frames those of Pillow. A crash ends the
process; any other failure is shrunk by hypothesis and printed as bytes, to be kept in ``tests/files.py``.
"""

from __future__ import annotations

import io
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile
from torch import Tensor

import imgops
from imgops.kernels.cpu import _libjpeg
from tests import files
from tests.native_program import load

MAX_PIXELS = 1 << 18
OUTCOMES: Counter[str] = Counter()
Box = tuple[int, int, int, int]


# -- mutations ---------------------------------------------------------------------------------------


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    number = lambda low, high: draw(st.integers(low, high))
    several = lambda least, most: draw(st.binary(min_size=least, max_size=most))
    seed = st.sampled_from(tuple(files.kinds().values()))
    raw = draw(seed)
    for _ in range(number(1, 4)):
        at = number(0, max(len(raw), 1) - 1)
        end = at + number(1, 40)
        left, part, right = raw[:at], raw[at:end], raw[end:]
        kind = draw(st.sampled_from(("flip", "set", "number", "delete", "insert", "repeat", "splice", "end")))
        if kind == "flip":
            raw = left + bytes(b ^ 1 << number(0, 7) for b in part[:1]) + part[1:] + right
        elif kind == "set":
            raw = left + several(1, 8) + right
        elif kind == "number":
            width, order = number(1, 2) * 2, draw(st.sampled_from(("big", "little")))
            value = draw(st.sampled_from((0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)))
            raw = left + (value % 2 ** (8 * width)).to_bytes(width, order) + raw[at + width :]
        elif kind == "delete":
            raw = left + right
        elif kind == "insert":
            raw = left + several(1, 16) + part + right
        elif kind == "repeat":
            raw = left + part * number(2, 5) + right
        elif kind == "splice":
            other = draw(seed)
            raw = left + other[number(0, len(other) - 1) :]
        else:  # cut, or closed as if it were complete
            raw = left + draw(st.sampled_from((b"", b"\xff\xd9")))
    return _with_checksums(raw) if draw(st.booleans()) else raw


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


# -- the readers -------------------------------------------------------------------------------------


def readers(raw: bytes, mode: str, **how: Any) -> dict[str, Callable[[Box | None], Tensor]]:
    """Return every function that reads one image, of a file and a box or None."""
    data, unchanged = files.tensor(raw), mode == "unchanged"
    batch = [data] if unchanged else [files.tensor(files.kinds()["JPEG"]), data]

    def one(box: Box | None) -> Tensor:
        image = imgops.EncodedImage(data, mode, **how)
        out = image.decode(box)
        assert box or (image.shape, image.dtype) == (out.shape, out.dtype)
        return out

    def several(box: Box | None) -> Tensor:
        images = imgops.EncodedImages(batch, mode, **how)
        boxes = [(0, 0, 17, 23), box][-len(batch) :]
        out = images.decode(torch.tensor(boxes) if box else None)[-1]
        assert box or images.sizes[-1].tolist() == [*out.shape[1:]]
        return out

    interleaved = {"memory_format": torch.channels_last}
    return {
        "decode_image": lambda box: imgops.decode_image(data, mode, box=box, **how),
        "decode_image, last": lambda box: imgops.decode_image(data, mode, box=box, **interleaved, **how),
        "decode_images": lambda box: imgops.decode_images([raw], mode, box=box, **how)[0],
        "EncodedImage": one,
        "EncodedImages": several,
    }


#: How the error of each reader begins, before what must be true of the file.
_BEGINS = re.compile(r"(?:decode_(?:image|frames): (?:data|frames)|decode_images: files\[\d\]) (?=must )")


def outcome(read: Callable[[Box | None], Tensor], box: Box | None = None) -> Tensor | str:
    """Return the pixels, or what a ValueError says about the file."""
    try:
        return read(box)
    except ValueError as error:
        begins = _BEGINS.match(str(error))
        if begins is None:
            raise
        return str(error)[begins.end() :]


@contextmanager
def _without_libjpeg() -> Iterator[None]:
    module, _libjpeg.module = _libjpeg.module, None
    try:
        yield
    finally:
        _libjpeg.module = module


def check(raw: bytes, mode: str = "RGB", turned: bool = False, part: float = 0.5) -> str:
    """Read one file, whole and a box of it, in every way; return the outcome."""
    ways = readers(raw, mode, apply_exif_orientation=turned, max_pixels=MAX_PIXELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = outcome(ways["decode_image"])
        with _without_libjpeg():
            by_pillow = outcome(ways["decode_image"])
            batch = outcome(ways["EncodedImages"])
        if isinstance(ours, str):
            assert ours == by_pillow, f"not Pillow's verdict: {by_pillow}"
            assert isinstance(batch, str), "not Pillow's verdict on a batch"
            for name, read in ways.items():  # a header of numbers is refused before their pixels are read
                found = outcome(read)
                same = found == ours if name.startswith("decode") else isinstance(found, str)
                assert same, f"another verdict of {name}: {found}"
            _check_part_of_refused(raw, part)
            return "refused"
        assert not isinstance(by_pillow, str) and torch.equal(ours, by_pillow), "not Pillow's verdict"
        if ours.dtype not in (torch.int32, torch.float32):
            assert not isinstance(batch, str) and torch.equal(ours, batch), "not Pillow's verdict on a batch"
        else:
            ways = {name: read for name, read in ways.items() if name.startswith("decode")}
        left, top, right, bottom = box = _box(*ours.shape[1:], part)
        for name, read in ways.items():
            whole, crop = read(None), read(box)
            assert torch.equal(whole, ours), f"other pixels of {name}"
            assert torch.equal(crop, ours[:, top:bottom, left:right]), f"other pixels of {name} in {box}"
            for found in (whole, crop):
                assert (found.movedim(0, 2) if name.endswith("last") else found).is_contiguous(), name
        assert ours.numel() <= MAX_PIXELS * len(ours)
        _check_pixels(raw, ours, mode, turned)
    return "unchanged" if mode == "unchanged" else "turned" if turned else "decoded"


def _check_pixels(raw: bytes, ours: Tensor, mode: str, turned: bool) -> None:
    if ours.dtype in (torch.int32, torch.float32):
        wanted = files.planar(files.opened(raw))
        assert turned or torch.equal(ours.nan_to_num(), wanted.nan_to_num()), "other numbers than Pillow's"
        return
    stored = ("L", "LA", "RGB", "RGBA")[len(ours) - 1] if mode == "unchanged" else mode
    try:
        wanted = files.shown(raw, stored, turned)
    except Exception:  # EXIF data that are damaged
        if not turned:
            raise
        return
    levels = (ours.int() >> 8).byte() if ours.dtype == torch.uint16 else ours
    assert torch.equal(levels, wanted), "other pixels than Pillow's"


def _box(height: int, width: int, part: float) -> Box:
    """Return a box that depends on a number from 0 to 1."""
    left, top = int(part * (width - 1)), int((part * 7919) % 1 * (height - 1))
    return left, top, left + 1 + int((part * 31) % 1 * (width - 1 - left)), top + 1 + (height - 1 - top) // 2


def _check_part_of_refused(raw: bytes, part: float) -> None:
    """Check a box of a file that is refused as a whole: it has the pixels that Pillow has when it goes on at errors."""
    try:
        image = Image.open(io.BytesIO(raw))
        if image.format != "JPEG" or image.width * image.height > MAX_PIXELS:
            return
        box = _box(image.height, image.width, part)
    except Exception:
        return
    read = readers(raw, "RGB", max_pixels=MAX_PIXELS)["decode_image"]
    ours = outcome(read, box)
    with _without_libjpeg():
        by_pillow = outcome(read, box)
    if isinstance(ours, str):
        assert ours == by_pillow, f"not Pillow's verdict on {box}: {by_pillow}"
        return
    assert not isinstance(by_pillow, str) and torch.equal(ours, by_pillow), f"not Pillow's verdict on {box}"
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        expected = files.planar(image.convert("RGB").crop(box))
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    assert torch.equal(ours, expected), f"other pixels in {box} of a damaged file"
    OUTCOMES["a box of a damaged file"] += 1


def check_frames(raw: bytes, mode: str, frames: Any) -> str:
    """Decode frames of one file, each of which must be Pillow's; return the outcome."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ours = imgops.decode_frames(raw, frames, mode, max_pixels=MAX_PIXELS)
        except ValueError as error:
            if not str(error).startswith("decode_frames: "):
                raise
            return "refused frames"
        assert ours.numel() <= MAX_PIXELS * ours.shape[1]
        count = files.count_frames(raw)
        chosen = range(count)[frames] if isinstance(frames, slice) else [i % count for i in frames]
        assert len(chosen) == len(ours)
        shown = {index: files.shown(raw, mode, frame=index) for index in chosen}
        for index, frame in zip(chosen, ours, strict=True):
            assert torch.equal(frame, shown[index]), f"another frame {index}"
    return "frames"


def run(count: int) -> Counter[str]:
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(mutated(), st.sampled_from((*files.MODES, "unchanged")), st.booleans(), st.floats(0, 1))
    def decode(raw: bytes, mode: str, turned: bool, part: float) -> None:
        OUTCOMES[check(raw, mode, turned, part)] += 1
        if mode != "unchanged":
            index = int(part * 31) % 4
            OUTCOMES[check_frames(raw, mode, [index, 0] if turned else slice(0, None, index + 1))] += 1

    decode()
    return OUTCOMES


if __name__ == "__main__":
    if sys.argv[2:]:  # a module that was built with sanitizers
        _libjpeg.module = load(sys.argv[2], "_native_jpeg")
    print(dict(run(int(sys.argv[1]))))
