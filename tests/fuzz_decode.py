"""Hostile files: ``python -m tests.fuzz_decode 100000`` decodes that many mutated files.

Each must give the same pixels as Pillow, bit for bit, or one ValueError that begins with the operator's name, with
libjpeg-turbo as without it; and a box of it the pixels of a crop, and its frames those of Pillow. A crash
ends the process; any other failure is shrunk by hypothesis and printed as bytes, to be kept in
``tests/hostile.py``.
"""

from __future__ import annotations

import io
import struct
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
import PIL
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, features

import imgops
from imgops.kernels.cpu import _libjpeg
from tests.native_program import load

MAX_PIXELS = 1 << 18
OUTCOMES: Counter[str] = Counter()


@cache
def seeds() -> tuple[bytes, ...]:
    """Return a small valid file of each kind that JPEG, PNG and WebP have."""
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


@cache
def other_seeds() -> dict[str, bytes]:
    """Return small valid files of the other formats, and animations, by names."""
    noise = np.random.default_rng(0).integers(0, 256, (23, 17, 4), dtype=np.uint8)
    smooth = np.linspace(0, 255, 23 * 17 * 3).reshape(23, 17, 3).astype(np.uint8)
    rgba, rgb, gray = Image.fromarray(noise), Image.fromarray(smooth), Image.fromarray(noise[..., 0])
    deep = Image.fromarray(noise[..., 0].astype(np.uint16) * 251)
    holes = Image.fromarray(np.where(noise[..., 3:] > 99, noise, 0).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    # Pillow 11 cannot write a frame whose pixels become the background.
    disposal = [1, 2 if int(PIL.__version__.split(".")[0]) > 11 else 3, 3, 1]
    several = {"save_all": True, "append_images": [rgb.rotate(180), rgb.rotate(90, expand=False)]}
    files: dict[str, tuple[Image.Image, str, dict[str, object]]] = {
        "TIFF RGB": (rgb, "TIFF", {"exif": exif}),
        "TIFF RGBA": (rgba, "TIFF", {"compression": "tiff_lzw"}),
        "TIFF LA": (rgba.convert("LA"), "TIFF", {}),
        "TIFF deflate": (rgb, "TIFF", {"compression": "tiff_adobe_deflate", "exif": exif}),
        "TIFF JPEG": (rgb, "TIFF", {"compression": "jpeg"}),
        "TIFF CMYK": (rgb.convert("CMYK"), "TIFF", {"compression": "packbits"}),
        "TIFF 1": (gray.convert("1"), "TIFF", {}),
        "TIFF group 4": (gray.convert("1"), "TIFF", {"compression": "group4"}),
        "TIFF palette": (rgb.quantize(8), "TIFF", {}),
        "TIFF YCbCr": (rgb.convert("YCbCr"), "TIFF", {"compression": "tiff_lzw"}),
        "TIFF 16": (deep, "TIFF", {"compression": "tiff_lzw"}),
        "TIFF 16 big-endian": (_big_endian(deep), "TIFF", {}),
        "TIFF int32": (gray.convert("I"), "TIFF", {}),
        "TIFF float32": (gray.convert("F"), "TIFF", {"compression": "tiff_adobe_deflate"}),
        "TIFF pages": (rgb, "TIFF", several),
        "TIFF pages LZW": (rgb, "TIFF", {**several, "compression": "tiff_lzw"}),
        "BigTIFF": (rgba, "TIFF", {"big_tiff": True}),
        "GIF": (rgb, "GIF", {}),
        "GIF gray": (gray, "GIF", {"interlace": 0}),
        "GIF gray with transparency": (gray, "GIF", {"transparency": 3}),
        "GIF with transparency": (holes, "GIF", {}),
        "GIF frames": (rgb, "GIF", several),
        "GIF frames with transparency": (
            holes,
            "GIF",
            {"save_all": True, "append_images": [holes.rotate(180), rgb, rgba], "disposal": disposal},
        ),
        "BMP 1": (gray.convert("1"), "BMP", {}),
        "BMP gray": (gray, "BMP", {}),
        "BMP palette": (rgb.quantize(8), "BMP", {}),
        "BMP RGB": (rgb, "BMP", {}),
        "BMP RGBA": (rgba, "BMP", {}),
        "PNG frames": (rgb, "PNG", several),
        "PNG frames of parts": (
            rgba,
            "PNG",
            {"save_all": True, "append_images": [holes, rgba], "disposal": 1, "blend": 1},
        ),
        "PNG frames with another default": (rgb, "PNG", {**several, "default_image": True}),
        "WebP frames": (rgba, "WEBP", {"save_all": True, "append_images": [holes, rgb], "lossless": True}),
        "AVIF": (rgb, "AVIF", {"exif": exif}),
        "AVIF RGBA": (rgba, "AVIF", {"quality": 90}),
        "AVIF gray": (gray, "AVIF", {}),
        "AVIF frames": (rgb, "AVIF", several),
        "JPEG 2000": (rgb, "JPEG2000", {}),
        "JPEG 2000 gray": (gray, "JPEG2000", {"no_jp2": True}),
        "JPEG 2000 RGBA": (rgba, "JPEG2000", {"irreversible": True, "tile_size": (16, 16)}),
        "JPEG 2000 16": (deep, "JPEG2000", {}),
    }
    made = {}
    for name, (image, format, keywords) in files.items():
        built = {"AVIF": "avif", "JPEG2000": "jpg_2000"}.get(format)
        if built is None or built in features.get_supported():
            file = io.BytesIO()
            image.save(file, format, **keywords)
            made[name] = file.getvalue()
    for channels in (3, 4):
        colors = noise[..., :channels].astype(np.uint16) * 251
        made[f"TIFF 16 of {channels}"] = cv2.imencode(".tiff", colors)[1].tobytes()
    made["BMP runs"] = _bmp_of_runs()
    made["TIFF tiles"] = _tiff_of_tiles(noise[:20, :, 0])
    return made


def _big_endian(image: Image.Image) -> Image.Image:
    return Image.frombytes("I;16B", image.size, np.asarray(image).astype(">u2").tobytes())


def _bmp_of_runs() -> bytes:
    """Return a BMP of 6 x 4 with runs of pixels and pixels one by one."""
    palette = b"".join(bytes([i, 255 - i, i // 2, 0]) for i in range(256))
    rows = b"\6\3\0\0" + b"\0\6\1\2\3\4\5\6\0\0" + b"\2\7\4\x09\0\0" + b"\6\xc8\0\1"
    header = struct.pack("<IiiHHIIiiII", 40, 6, 4, 1, 8, 1, len(rows), 0, 0, 256, 0)
    start = 14 + len(header) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + header + palette + rows


def tiff(tags: dict[int, tuple[str, list[int]]], data: bytes, at: int, order: str = "<") -> bytes:
    """Return a TIFF of one page: its tags with their types, and data whose places are the values of a tag."""
    codes, sizes = {"H": 3, "I": 4}, {"H": 2, "I": 4}
    entries, more, start = b"", b"", 8 + 2 + 12 * len(tags) + 4
    place = start + sum(len(v) * sizes[t] for t, v in tags.values() if len(v) * sizes[t] > 4)
    for key, (kind, values) in sorted(tags.items()):
        shifted = [v + place for v in values] if key == at else values
        packed = struct.pack(f"{order}{len(values)}{kind}", *shifted)
        entries += struct.pack(f"{order}HHI", key, codes[kind], len(values))
        if len(packed) > 4:
            entries += struct.pack(f"{order}I", start + len(more))
            more += packed
        else:
            entries += packed.ljust(4, b"\0")
    magic = b"II*\0\x08\0\0\0" if order == "<" else b"MM\0*\0\0\0\x08"
    return magic + struct.pack(f"{order}H", len(tags)) + entries + b"\0\0\0\0" + more + data


def _tiff_of_tiles(pixels: np.ndarray, tile: int = 16) -> bytes:
    """Return a gray TIFF of deflated tiles."""
    height, width = pixels.shape
    padded = np.pad(pixels, ((0, -height % tile), (0, -width % tile)))
    parts = [
        zlib.compress(padded[y : y + tile, x : x + tile].tobytes())
        for y in range(0, height, tile)
        for x in range(0, width, tile)
    ]
    starts = [sum(map(len, parts[:i])) for i in range(len(parts))]
    tags = {
        **dict.fromkeys((258, 259), ("H", [8])),
        **dict.fromkeys((262, 277), ("H", [1])),
        **dict.fromkeys((322, 323), ("I", [tile])),
        256: ("I", [width]),
        257: ("I", [height]),
        324: ("I", starts),
        325: ("I", [len(p) for p in parts]),
    }
    return tiff(tags, b"".join(parts), 324)


def _all_seeds() -> tuple[bytes, ...]:
    return (*seeds(), *other_seeds().values())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    raw = bytearray(draw(st.sampled_from(_all_seeds())))
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
            other = draw(st.sampled_from(_all_seeds()))
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
        if mode == "unchanged" and ours.dtype in (torch.int32, torch.float32):
            assert turned or np.array_equal(ours[0].numpy(), np.asarray(Image.open(io.BytesIO(raw))), True)
            return "unchanged"
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
    decode = lambda: _outcome(lambda: imgops.decode_image(data, "RGB", box=box, max_pixels=MAX_PIXELS))
    ours = decode()
    with _without_libjpeg():
        by_pillow = decode()
    if isinstance(ours, str):
        assert ours == by_pillow, f"not Pillow's verdict on {box}: {by_pillow}"
        return
    assert not isinstance(by_pillow, str) and torch.equal(ours, by_pillow), f"not Pillow's verdict on {box}"
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        expected = np.asarray(image.convert("RGB").crop(box)).transpose(2, 0, 1)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    assert np.array_equal(ours.numpy(), expected), f"other pixels in {box} of a damaged file"
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
        count = getattr(Image.open(io.BytesIO(raw)), "n_frames", 1)
        chosen = range(count)[frames] if isinstance(frames, slice) else [i % count for i in frames]
        assert len(chosen) == len(ours)
        for index, frame in zip(chosen, ours, strict=True):
            assert np.array_equal(frame.numpy(), _by_pillow(raw, mode, index)), f"another frame {index}"
    return "frames"


def _by_pillow(raw: bytes, mode: str, frame: int = 0) -> np.ndarray:
    theirs = Image.open(io.BytesIO(raw))
    if frame:
        theirs.seek(frame)
    if theirs.mode.startswith("I;16"):
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
        if mode != "unchanged":
            index = int(part * 31) % 4
            OUTCOMES[check_frames(raw, mode, [index, 0] if turned else slice(0, None, index + 1))] += 1

    decode()
    return OUTCOMES


if __name__ == "__main__":
    if sys.argv[2:]:  # a module that was built with sanitizers
        _libjpeg.module = load(sys.argv[2], "_native_jpeg")
    print(dict(run(int(sys.argv[1]))))
