"""Small files of every kind that is decoded, files that are refused, and what Pillow shows of them."""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import cv2
import numpy as np
import PIL
import torch
from PIL import Image, ImageOps, features
from torch import Tensor

MODES = ("RGB", "L", "LA", "RGBA")
#: Files whose pictures are numbers alone, without levels from black to white.
NUMBERS = ("TIFF I raw", "TIFF F tiff_adobe_deflate")


def tensor(raw: bytes) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)


def saved(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def oriented(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def opened(raw: bytes, frame: int = 0) -> Image.Image:
    image = Image.open(io.BytesIO(raw))
    if frame:
        image.seek(frame)
    image.load()
    return image


def planar(image: Image.Image | np.ndarray) -> Tensor:
    """Return the pixels of an image of Pillow, or of an array (H, W, C), as a tensor (C, H, W)."""
    pixels = np.asarray(image)
    return torch.from_numpy((pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)).copy())


def shown(raw: bytes, mode: str, turned: bool = False, frame: int = 0) -> Tensor:
    """Return Pillow's pixels; of 16 bits of gray the high byte."""
    image = opened(raw, frame)
    if turned:
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    return planar(image.convert(mode))


def count_frames(raw: bytes) -> int:
    return getattr(Image.open(io.BytesIO(raw)), "n_frames", 1)


def noise(height: int = 23, width: int = 17, channels: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


# -- valid files -------------------------------------------------------------------------------------


def _written(files: Mapping[str, tuple[Image.Image, dict[str, Any]]]) -> dict[str, bytes]:
    """Return the files by their names, whose first word is the format; without those that Pillow cannot write."""
    needed = {"AVIF": "avif", "JPEG2000": "jpg_2000"}
    formats = {name: name.split()[0] for name in files}
    known = [n for n, format in formats.items() if needed.get(format, "zlib") in features.get_supported()]
    return {name: saved(files[name][0], formats[name], **files[name][1]) for name in known}


@cache
def kinds() -> dict[str, bytes]:
    """Return a file of each kind."""
    smooth = np.linspace(0, 255, 23 * 17 * 3).reshape(23, 17, 3).astype(np.uint8)
    rgba, rgb, gray = (Image.fromarray(x) for x in (noise(), smooth, noise()[..., 0]))
    deep = Image.fromarray(noise()[..., 0].astype(np.uint16) * 251)
    holes = Image.fromarray(np.where(noise()[..., 3:] > 99, noise(), 0).astype(np.uint8))
    large = rgb.resize((97, 71), Image.Resampling.BICUBIC)  # several blocks each way: a region skips some
    big_endian = Image.frombytes("I;16B", deep.size, np.asarray(deep).astype(">u2").tobytes())
    of_modes = {mode: (rgba if mode == "RGBA" else rgb).convert(mode) for mode in MODES}
    of_modes |= {mode: rgb.convert(mode) for mode in ("CMYK", "YCbCr", "I", "F")}
    of_modes |= {"P": rgb.quantize(8), "1": gray.convert("1"), "I;16": deep}
    several = {"save_all": True, "append_images": [rgb.rotate(180), rgb.rotate(90, expand=False)]}
    with_holes = {"save_all": True, "append_images": [holes, rgba]}
    # Pillow 11 cannot write a frame whose pixels become the background.
    disposal = [1, 2 if int(PIL.__version__.split(".")[0]) > 11 else 3, 3]
    tiffs = [
        ("RGB", "raw"),
        ("RGBA", "tiff_lzw"),
        ("LA", "raw"),
        ("RGB", "tiff_adobe_deflate"),
        ("RGB", "jpeg"),
    ]
    tiffs += [("CMYK", "packbits"), ("1", "raw"), ("1", "group4"), ("P", "raw"), ("YCbCr", "tiff_lzw")]
    tiffs += [("I;16", "tiff_lzw"), ("I", "raw"), ("F", "tiff_adobe_deflate")]
    made = _written(
        {
            "JPEG": (rgb, {}),
            "JPEG progressive": (rgb, {"progressive": True, "exif": oriented(6)}),
            "JPEG restarts": (rgb, {"subsampling": 0, "restart_marker_blocks": 2}),
            "JPEG L": (gray, {"quality": 10}),
            "JPEG CMYK": (rgb.convert("CMYK"), {}),
            "JPEG large": (large, {"quality": 40}),
            "JPEG large restarts": (large, {"quality": 40, "subsampling": 1, "restart_marker_rows": 1}),
            "JPEG large progressive": (large, {"quality": 30, "progressive": True}),
            **{f"PNG {mode}": (of_modes[mode], {}) for mode in ("RGBA", "LA", "1", "I;16")},
            "PNG P": (of_modes["P"], {"transparency": 3, "exif": oriented(6)}),
            "PNG frames": (rgb, several),
            "PNG frames of parts": (rgba, {**with_holes, "disposal": 1, "blend": 1}),
            "PNG frames with another default": (rgb, {**several, "default_image": True}),
            "WEBP": (rgb, {}),
            "WEBP lossless": (rgba, {"lossless": True}),
            "WEBP frames": (rgba, {**with_holes, "lossless": True}),
            **{f"TIFF {mode} {c}": (of_modes[mode], {"compression": c}) for mode, c in tiffs},
            "TIFF 1 group3": (of_modes["1"], {"compression": "group3", "strip_size": 80}),
            "TIFF I;16B": (big_endian, {}),
            "TIFF frames": (rgb, several),
            "TIFF frames LZW": (rgb, {**several, "compression": "tiff_lzw"}),
            "TIFF big": (rgba, {"big_tiff": True}),
            "GIF": (rgb, {}),
            "GIF L": (gray, {"interlace": 0}),
            "GIF L with transparency": (gray, {"transparency": 3}),
            "GIF with transparency": (holes, {}),
            "GIF frames": (rgb, several),
            "GIF frames with transparency": (holes, {**with_holes, "disposal": disposal}),
            **{f"BMP {mode}": (of_modes[mode], {}) for mode in ("1", "L", "P", "RGB", "RGBA")},
            **{f"AVIF {mode}": (of_modes[mode], {"quality": 90}) for mode in ("L", "RGB", "RGBA")},
            "AVIF frames": (rgb, several),
            **{f"JPEG2000 {mode}": (of_modes[mode], {}) for mode in ("RGB", "I;16")},
            "JPEG2000 L": (gray, {"no_jp2": True}),
            "JPEG2000 RGBA": (rgba, {"irreversible": True, "tile_size": (16, 16)}),
        }
    )
    for channels, format in itertools.product((3, 4), ("PNG", "TIFF")):  # which Pillow cannot write
        colors = noise()[..., :channels].astype(np.uint16) * 251
        made[f"{format} ;16 of {channels}"] = cv2.imencode(f".{format.lower()}", colors)[1].tobytes()
    made["PNG ;16 of 2"] = deep_png(noise()[..., :2].astype(np.uint16) * 251)
    made["BMP runs"] = _bmp_of_runs()
    # Bytes that belong to nothing are allowed between the blocks of a GIF; a last tile without a length ends with the file.
    frames = made["GIF frames with transparency"]
    second = frames.rindex(b"!\xf9\4")
    made["GIF frames with a byte between"] = frames[:second] + b"\1" + frames[second:]
    if "JPEG2000 L" in made:
        tile = made["JPEG2000 L"].rindex(b"\xff\x90\0\x0a")
        made["JPEG2000 without a length"] = (
            made["JPEG2000 L"][: tile + 6] + bytes(4) + made["JPEG2000 L"][tile + 10 :]
        )
    made["TIFF tiles"] = tiff(noise()[:20, :, :1], tile=16, deflate=True)
    return made


@cache
def oriented_files() -> dict[str, bytes]:
    """Return files with each orientation in their EXIF data, and with two numbers that are none."""
    image = Image.fromarray(noise(13, 21, 3, seed=1))
    ways = [(f"{format} of orientation {n}", n, {}) for format in ("JPEG", "PNG", "WEBP") for n in range(10)]
    for n in range(1, 9):
        ways += [(f"{format} of orientation {n}", n, {}) for format in ("TIFF", "AVIF")]
        ways.append((f"TIFF LZW of orientation {n}", n, {"compression": "tiff_lzw"}))
    return _written({name: (image, {"exif": oriented(n), **way}) for name, n, way in ways})


@cache
def ordinary_jpegs(*sizes: tuple[int, int]) -> dict[str, bytes]:
    """Return every form of JPEG that libjpeg-turbo decodes here, in each size."""
    ways: list[tuple[str, dict[str, Any]]] = [
        *(("RGB", {"subsampling": s, "progressive": p}) for s in (0, 1, 2) for p in (False, True)),
        *(("L", {"progressive": p}) for p in (False, True)),
        *(("RGB", {"restart_marker_blocks": 5}), ("RGB", {"optimize": True, "quality": 95})),
    ]
    image = Image.fromarray(noise(9, 12, 3, seed=2)).resize((200, 160), Image.Resampling.BICUBIC)
    images = {(mode, size): image.resize(size).convert(mode) for mode in ("RGB", "L") for size in sizes}
    every = itertools.product(sizes, ways)
    return _written({f"JPEG {mode} {size} {way}": (images[mode, size], way) for size, (mode, way) in every})


def animation(seed: int) -> bytes:
    """Return a PNG of 6 frames, each of which changes a part, with random disposals and blends."""
    random = np.random.default_rng(seed)
    frames = [Image.fromarray(noise(16, 20, 4, seed + 9))]
    for _ in range(5):
        part = Image.fromarray(random.integers(0, 256, (7, 9, 4)).astype(np.uint8))
        frames.append(Image.new("RGBA", (20, 16)))
        frames[-1].paste(part, tuple(int(v) for v in random.integers(0, 8, 2)))
    disposal, blend = (random.integers(0, n, 6).tolist() if seed else n - 1 for n in (3, 2))
    return saved(frames[0], save_all=True, append_images=frames[1:], disposal=disposal, blend=blend)


@cache
def levelled() -> dict[str, bytes]:
    """Return every valid file above that has levels."""
    jpegs = ordinary_jpegs((131, 77), (16, 16), (1, 40), (33, 1))
    known = {name: raw for name, raw in kinds().items() if name not in NUMBERS}
    return known | oriented_files() | jpegs | looks_short()


# -- files that are made by hand ---------------------------------------------------------------------


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def png_header(width: int, height: int, depth: int = 8, color: int = 2, interlaced: bool = False) -> Any:
    return b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)


def deep_png(pixels: np.ndarray, *chunks: tuple[bytes, bytes]) -> bytes:
    """Write levels (H, W, C) of 16 bits, of 1 to 4 channels, by the words of PNG's standard."""
    height, width, channels = pixels.shape
    header = png_header(width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels])
    data = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    return png(header, *chunks, (b"IDAT", zlib.compress(data)), (b"IEND", b""))


def black_png(size: tuple[int, int], depth: int, color: int, interlaced: bool, lacking: int = 0) -> bytes:
    """Return a PNG of zeros, some of whose last bytes may be lacking."""
    (width, height), passes = size, [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)]
        passes += [(0, 1, 1, 2)]
    bits, count = depth * {0: 1, 2: 3, 3: 1, 6: 4}[color], 0
    for x, y, step_x, step_y in passes:
        columns, rows = len(range(x, width, step_x)), len(range(y, height, step_y))
        count += (1 + -(-columns * bits // 8)) * rows if columns else 0
    palette = [(b"PLTE", bytes(48))] if color == 3 else []
    pixels = b"IDAT", zlib.compress(bytes(count - lacking))
    return png(png_header(width, height, depth, color, interlaced), *palette, pixels, (b"IEND", b""))


#: Each black PNG: its size, the depth and the color type of its pixels, and whether it is interlaced.
BLACK = [
    (size, depth, color, interlaced)
    for size in ((1, 1), (3, 5), (8, 8), (13, 21))
    for depth, color in ((8, 2), (8, 6), (1, 0), (4, 3), (16, 2))
    for interlaced in (False, True)
]


@cache
def looks_short() -> dict[str, bytes]:
    """Return whole files that look like files without their last rows: black PNGs, JPEGs of one color."""
    files = {f"PNG black {way}": black_png(*way) for way in BLACK}
    for level, (mode, size), quality in itertools.product(
        (0, 128, 255), (("RGB", (1, 1)), ("RGB", (57, 40)), ("L", (16, 16))), (30, 95)
    ):
        image = Image.new("L", size, level).convert(mode)
        files[f"JPEG flat {level} {size} {quality}"] = saved(image, "JPEG", quality=quality)
    return files


def _bmp_of_runs() -> bytes:
    """Return a BMP of 6 x 4 with runs of pixels and pixels one by one."""
    palette = b"".join(bytes([i, 255 - i, i // 2, 0]) for i in range(256))
    rows = b"\6\3\0\0" + b"\0\6\1\2\3\4\5\6\0\0" + b"\2\7\4\x09\0\0" + b"\6\xc8\0\1"
    header = struct.pack("<IiiHHIIiiII", 40, 6, 4, 1, 8, 1, len(rows), 0, 0, 256, 0)
    start = 14 + len(header) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + header + palette + rows


#: The tags of a TIFF whose numbers have 32 bits: sizes, positions and lengths.
_LONG = (256, 257, 273, 278, 279, 322, 323, 324, 325)


def tiff(
    pixels: np.ndarray,
    order: str = "<",
    *,
    rows: int = 0,
    planes: bool = False,
    tile: int = 0,
    deflate: bool = False,
    tags: Mapping[int, Sequence[int]] | None = None,
) -> bytes:
    """Write numbers (H, W, C) by the words of TIFF's standard, in strips, planes or tiles.

    ``order`` is that of bytes; ``tags`` replace those that the numbers need, or add to them; an empty one removes a tag.
    """
    height, width, channels = pixels.shape
    stored = pixels.astype(pixels.dtype.newbyteorder(order))
    step = tile or rows or height
    if planes:
        blocks = list(stored.transpose(2, 0, 1))
    elif tile:
        padded = np.pad(stored, ((0, -height % tile), (0, -width % tile), (0, 0)))
        corners = itertools.product(range(0, height, tile), range(0, width, tile))
        blocks = [padded[y : y + tile, x : x + tile] for y, x in corners]
    else:
        blocks = [stored[y : y + step] for y in range(0, height, step)]
    parts = [zlib.compress(block.tobytes()) if deflate else block.tobytes() for block in blocks]
    starts, counts = (324, 325) if tile else (273, 279)
    known: dict[int, Sequence[int]] = {
        256: [width],
        257: [height],
        258: [8 * pixels.itemsize] * channels,
        259: [8 if deflate else 1],
        262: [2 if channels > 2 else 1],
        277: [channels],
        284: [1 + planes],
        338: [2] if channels == 4 else [],
        339: [{"u": 1, "i": 2, "f": 3}[pixels.dtype.kind]] * channels,
        278: [] if tile else [height if planes else step],
        322: [tile] if tile else [],
        323: [tile] if tile else [],
        starts: [8 + sum(map(len, parts[:i])) for i in range(len(parts))],
        counts: list(map(len, parts)),
        **(tags or {}),
    }
    known = {key: values for key, values in sorted(known.items()) if values}
    data = b"".join(parts)
    first = 8 + len(data) + len(data) % 2
    entries, more, after = b"", b"", first + 2 + 12 * len(known) + 4
    for key, values in known.items():
        letter, code = ("I", 4) if key in _LONG else ("H", 3)
        packed = struct.pack(f"{order}{len(values)}{letter}", *values)
        is_short = len(packed) <= 4
        entries += struct.pack(f"{order}HHI", key, code, len(values))
        entries += packed.ljust(4, b"\0") if is_short else struct.pack(f"{order}I", after + len(more))
        more += b"" if is_short else packed
    head = struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 42, first)
    return (
        head + data.ljust(first - 8, b"\0") + struct.pack(f"{order}H", len(known)) + entries + bytes(4) + more
    )


# -- files that are refused --------------------------------------------------------------------------


def _refused() -> dict[str, tuple[bytes, str]]:
    """Return files that are refused, each with what must be true of it."""
    kind = "must be a JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 or HEIF file, got "
    whole, end, few = "must be a complete ", (b"IEND", b""), (b"IDAT", zlib.compress(bytes(13 * 10)))
    checksum = bytearray(saved(Image.new("RGB", (9, 9))))
    checksum[checksum.index(b"IDAT") + 10] ^= 1
    others = (
        b"<html>404</html>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
        b"\xd7\xcd\xc6\x9a\0\0\0",
        b"SIMPLE  =",
        b"8BPS",
    )
    one_strip = tiff(noise(40, 64, 1), rows=20, tags={273: [8], 279: [1280]})
    files = {
        **{f"{raw!r}": (raw, f"{kind}{len(raw)} bytes that begin with {raw[:12]!r}") for raw in others},
        "nothing": (b"", f"{kind}0 bytes"),
        "GIF without a frame": (b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\4\1", whole),
        "JPEG alone": (b"\xff\xd8\xff", whole),
        "PNG alone": (b"\x89PNG\r\n\x1a\n", whole),
        "WebP alone": (b"RIFF\0\0\0\0WEBP", "must be a "),
        "PNG without pixels": (png(png_header(4, 4), end), whole),
        "PNG of few rows": (png(png_header(4, 400), few, end), whole),
        "PNG without a size": (png(png_header(0, 4), few, end), "must be a"),
        "PNG of junk": (png(png_header(4, 4), (b"IDAT", b"\x78\x9c" + b"\xaa" * 40), end), whole),
        "PNG of 60000": (png(png_header(60000, 60000), few, end), "must be an image of at most 262144 pix"),
        "checksum": (
            bytes(checksum),
            "must have the checksums of a PNG, got a wrong one in its chunk b'IDAT'",
        ),
        # Pillow fills up what the others lack.
        "TIFF of one strip": (one_strip, f"{whole}image, got a TIFF whose data end early"),
        **{f"PNG black {way}": (black_png(*way, lacking=1), "must be ") for way in BLACK},
    }
    if "jpg_2000" in features.get_supported():
        tiles = saved(Image.fromarray(noise(40, 64, 1)[..., 0]), "JPEG2000", tile_size=(16, 16), no_jp2=True)
        starts = [i for i in range(len(tiles)) if tiles[i : i + 2] == b"\xff\x90"]
        assert len(starts) >= 12
        for at, tail in itertools.product(starts[1:], (b"", b"\xff\xd9")):
            files[f"JPEG 2000 without tiles from {at} {tail}"] = tiles[:at] + tail, whole
    return files


REFUSED = _refused()


def bombs(side: int) -> dict[str, tuple[bytes, int]]:
    """Return files that are larger decoded, at least ``side`` pixels a side, each with ``max_pixels``."""
    flat, other = (Image.new("RGB", (side, side), color) for color in ((1, 2, 3), (4, 5, 6)))
    several = {"save_all": True, "append_images": [other]}
    ways: dict[str, dict[str, Any]] = {
        **{f"TIFF {c}": {"compression": c, **several} for c in ("tiff_lzw", "tiff_adobe_deflate", "jpeg")},
        "GIF": {},
        "GIF frames": several,
        "PNG frames": several,
        "AVIF": {"speed": 10},
        "JPEG2000": {},
        "WEBP frames": {"method": 0, **several},
    }
    limit, large = side * side // 6, side * side * 8
    files = {n: (raw, limit) for n, raw in _written({n: (flat, way) for n, way in ways.items()}).items()}
    fields = struct.pack("<HHBBB", 4, 4, 0x80, 0, 0) + bytes(6)
    frame = b"," + struct.pack("<HHHHB", 0, 0, 4, 4, 0) + b"\2\3\x44\x34\x05\0"
    huge = b"!\xf9\4\x08\0\0\0\0," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\2\3\x44\x34\x05\0"
    files["GIF of a large screen"] = b"GIF89a" + b"\xff" * 4 + fields[4:] + frame + b";", large
    files["GIF of a large frame"] = b"GIF89a" + fields + frame + huge + huge + b";", large
    zeros = np.zeros((8, 8, 1), np.uint8)
    files["TIFF of a large tile"] = tiff(zeros, tile=max(2048, 4 * side), deflate=True), large
    small = kinds()["BMP RGB"]
    files["BMP of a large header"] = small[:18] + struct.pack("<ii", 60000, 60000) + small[26:], large
    return files
