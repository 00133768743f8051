"""The kinds of files that decode_image reads: they are recognized, opened by Pillow and checked here.

``Image.open`` is not used: it gives the bytes to every registered decoder, and some of them start programs.
Its limit of pixels is a setting of the whole process.
"""

from __future__ import annotations

import io
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image, features
from PIL import TiffImagePlugin as tiff
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from imgops.kernels.cpu import _damaged_png, _truncated_jpeg

ANY = "JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 or HEIF"

_TIFF = (b"II*\0", b"MM\0*", b"II\0*", b"MM*\0", b"II+\0", b"MM\0+")
_AVIF = {b"avif", b"avis"}
_HEIF = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}
_CONTAINERS = {b"mif1", b"msf1"}  # of images in either coding
#: The pixels of a tile of a TIFF that any file may have, because common ones have as many.
_COMMON_TILE = 1 << 20
#: Compressions of a TIFF whose decoders fill what is missing, and do not say so.
_FILLS = ("jpeg", "tiff_jpeg", "group3", "group4", "tiff_ccitt", "tiff_raw_16")
#: Where the codestream of a JPEG 2000 begins: at once, or in its box, whose length may have 64 bits.
_CODESTREAM = re.compile(rb"(?:\A|jp2c(?:.{8})?)\xff\x4f\xff\x51", re.DOTALL)


#: Where a TIFF lists the places of its tiles and their lengths, or those of its strips.
_PLACES = {
    True: (tiff.TILEOFFSETS, tiff.TILEBYTECOUNTS),
    False: (tiff.STRIPOFFSETS, tiff.STRIPBYTECOUNTS),
}


class DataError(Exception):
    """Refusal of a file: what its data must be, and what they were instead."""


def incomplete(got: str) -> DataError:
    """Return the refusal of a file whose pixels are not all there, or not those that the file means."""
    return DataError("data must be a complete image", got)


def ending_early(format: str) -> DataError:
    return incomplete(f"a {format} whose data end early")


def kind_of(raw: bytes) -> str | None:
    """Return the kind of a file by its first bytes, None if it is not one of those that are read."""
    if raw.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if raw.startswith(_damaged_png.MAGIC):
        return "PNG"
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "WebP"
    if raw.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if raw.startswith(b"BM"):
        return "BMP"
    if raw.startswith(_TIFF):
        return "TIFF"
    if raw.startswith((b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  \r\n\x87\n")):
        return "JPEG 2000"
    if raw[4:8] == b"ftyp":
        brand, end = raw[8:12], min(int.from_bytes(raw[:4], "big"), 1 << 10)
        others = {raw[at : at + 4] for at in range(16, end, 4)}
        if brand in _AVIF or (brand in _CONTAINERS and others & _AVIF):
            return "AVIF"
        return "HEIF" if brand in _HEIF or brand in _CONTAINERS else None
    return None


def opened(raw: bytes, max_pixels: int) -> Any:
    """Open a file, read its header, and check the number of its pixels."""
    kind = kind_of(raw)
    if kind is None:
        got = f"{len(raw)} bytes that begin with {raw[:12]!r}" if raw else "0 bytes"
        raise DataError(f"data must be a {ANY} file", got)
    if kind == "PNG":
        wrong = _damaged_png.wrong_chunk(raw)
        if wrong == b"IEND":
            raise ending_early("PNG")
        if wrong is not None:
            raise DataError("data must have the checksums of a PNG", f"a wrong one in its chunk {wrong!r}")
    if kind == "WebP" and raw[12:16] == b"VP8X":  # Pillow allocates as soon as it opens the file
        width, height = (1 + int.from_bytes(raw[at : at + 3], "little") for at in (24, 27))
        check_pixels((width, height), max_pixels)
    if kind == "GIF":
        check_pixels(_canvas(raw, 0), max_pixels)
    image = _reader(kind)(io.BytesIO(raw))
    check_pixels(image.size, max_pixels)
    check_tiff(raw, image, max_pixels)
    return image


_READERS: dict[str, Callable[..., Any]] = {
    "JPEG": JpegImageFile,
    "PNG": PngImageFile,
    "WebP": WebPImageFile,
    "GIF": GifImageFile,
    "BMP": BmpImageFile,
    "TIFF": TiffImageFile,
    "JPEG 2000": Jpeg2KImageFile,
}
#: The kinds that Pillow may lack, by its own names for what it was built with.
_FEATURES = {"WebP": "webp", "AVIF": "avif", "JPEG 2000": "jpg_2000"}


def has(feature: str) -> bool:
    """Return whether Pillow was built with a codec; one that is too old does not know all of them."""
    is_known = feature in features.modules or feature in features.codecs
    return is_known and bool(features.check(feature))


def _reader(kind: str) -> Callable[..., Any]:
    must = "data must be a file of a kind that Pillow reads"
    if kind == "HEIF":
        if "HEIF" not in Image.OPEN:
            got = "a HEIF file, for which pillow_heif.register_heif_opener() must be called"
            raise DataError(must, got)
        return Image.OPEN["HEIF"][0]
    if kind in _FEATURES and not has(_FEATURES[kind]):
        raise DataError(must, f"a file of {kind}, without which the installed Pillow was built")
    if kind == "AVIF":
        from PIL.AvifImagePlugin import AvifImageFile  # from Pillow 11.3

        return AvifImageFile
    return _READERS[kind]


def check_pixels(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        must = f"data must be an image of at most {max_pixels} pixels (max_pixels)"
        raise DataError(must, f"{height} x {width}")


def check_tiff(raw: bytes, image: Any, max_pixels: int) -> None:
    """Check the page of a TIFF to which Pillow has gone; other files pass.

    A decoder would allocate its tiles, which may be larger than the page, and fill those that are missing.
    """
    if image.format != "TIFF":
        return
    tags = image.tag_v2
    width, height = tags[tiff.IMAGEWIDTH], tags[tiff.IMAGELENGTH]
    in_tiles = tiff.TILEOFFSETS in tags and tiff.STRIPOFFSETS not in tags
    if in_tiles:
        tile_width, tile_height = tags.get(tiff.TILEWIDTH, width), tags.get(tiff.TILELENGTH, height)
    else:  # a strip is a tile of the whole width, and the last one may be lower
        tile_width, tile_height = width, min(tags.get(tiff.ROWSPERSTRIP, height), height)
    if min(width, height, tile_width, tile_height) < 1:
        raise DataError(
            "data must be a TIFF with pixels", f"{height} x {width} in {tile_height} x {tile_width}"
        )
    if tile_width * tile_height > max(max_pixels, _COMMON_TILE):
        must = f"data must be a TIFF whose tiles have at most {max_pixels} pixels (max_pixels)"
        raise DataError(must, f"{tile_height} x {tile_width}")
    offsets, lengths = (tags.get(key, ()) for key in _PLACES[in_tiles])
    planes = tags.get(tiff.SAMPLESPERPIXEL, 1) if tags.get(tiff.PLANAR_CONFIGURATION, 1) == 2 else 1
    wanted = -(-width // tile_width) * -(-height // tile_height) * planes
    ends_early = len(offsets) < wanted
    if image.info.get("compression") in _FILLS:
        ends_early |= any(
            offset + length > len(raw) for offset, length in zip(offsets, lengths, strict=False)
        )
    if ends_early:
        raise ending_early("TIFF")
    _check_planes(image)


def _check_planes(image: Any) -> None:
    """Refuse an uncompressed TIFF that stores its channels one after the other if Pillow would misread it.

    Pillow reads each of its planes in a mode of one letter, which stands for 8 bits, or for 32 bits in the
    order of the machine, whatever the file says.
    """
    tags = image.tag_v2
    if tags.get(tiff.PLANAR_CONFIGURATION, 1) != 2 or image.info.get("compression") != "raw":
        return
    bits, (kind, *_) = set(tags.get(tiff.BITSPERSAMPLE, (1,))), image.tile[0][3]
    is_plain = tags.get(tiff.FILLORDER, 1) == 1 and tags.get(tiff.PHOTOMETRIC_INTERPRETATION, 0) != 0
    is_read = bits == {{"I": 32, "F": 32, "1": 1}.get(kind, 8)} and is_plain
    is_native = tags.prefix == (b"II" if sys.byteorder == "little" else b"MM")
    if not is_read or (bits == {32} and not is_native):
        must = "data must be a TIFF that is compressed, has 8 bits, or interleaves its channels"
        raise DataError(f"{must} (PlanarConfiguration 1)", f"planes of {max(bits)} bits")


#: Pillow's raw modes for numbers of a TIFF, and those for numbers in the order of the machine.
_NATIVE = {
    **dict.fromkeys(("I;16S", "I;16BS"), "I;16NS"),
    **dict.fromkeys(("I;32S", "I;32BS"), "I;32NS"),
    **dict.fromkeys(("F;32F", "F;32BF"), "F;32NF"),
}


def load(raw: bytes, image: Any, page: int) -> None:
    """Decode the page of a file to which Pillow has gone."""
    is_new = bool(image.tile)  # not decoded yet
    if is_new and image.format == "TIFF":
        _load_tiff(raw, image, page)
    elif is_new and image.format == "PNG" and image.is_animated and image._prev_im is not None:
        # The next frame may begin with the pixels below this one, onto which Pillow decodes it.
        below = image._prev_im.copy()
        image.load()
        image._prev_im = below
    else:
        image.load()


def _load_tiff(raw: bytes, image: Any, page: int) -> None:
    """Decode a page of a TIFF.

    Pillow says nothing if libtiff refuses to go to a page: its memory, here zeros, is then what it was. It
    takes numbers from libtiff, which are in the order of the machine, as in the order of the file.
    """
    image.tile = [
        tile._replace(args=(_NATIVE.get(tile[3][0], tile[3][0]), *tile[3][1:]))
        if tile[0] == "libtiff"
        else tile
        for tile in image.tile
    ]
    if page > 0:
        offset = image.tag_v2.offset
        size = image.tag_v2[tiff.IMAGEWIDTH], image.tag_v2[tiff.IMAGELENGTH]
        image.im = Image.new(image.mode, size).im
    image.load()
    if page > 0 and not np.asarray(image).any():
        start, stop = (4, 8) if raw[2:4] in (b"*\0", b"\0*") else (8, 16)
        where = offset.to_bytes(stop - start, "little" if raw[:2] == b"II" else "big")
        TiffImageFile(io.BytesIO(raw[:start] + where + raw[stop:])).load()  # the page as the first one
    _correct_numbers(image)


def _correct_numbers(image: Any) -> None:
    """Scale 12 bits to 16, as OpenCV does, and refuse numbers that Pillow has wrapped around."""
    bits = set(image.tag_v2.get(tiff.BITSPERSAMPLE, (1,)))
    formats = set(image.tag_v2.get(tiff.SAMPLEFORMAT, (1,)))
    if bits == {12} and image.mode == "I;16":
        image.im = Image.fromarray(np.asarray(image) << 4).im
    must = "data must be a TIFF of levels, or of numbers that int32 or float32 has"
    if bits == {8} and formats == {2} and image.mode == "L" and (np.asarray(image) > 127).any():
        raise DataError(must, "int8 below 0")
    if bits == {32} and formats == {1} and image.mode == "I" and (np.asarray(image) < 0).any():
        raise DataError(must, "uint32 above 2147483647")


def check_whole(raw: bytes, image: Any) -> None:
    """Check that the data of a decoded image did not end early, where Pillow does not."""
    if image.format == "JPEG":
        ends_early = _truncated_jpeg.ends_early(raw, image)
    elif image.format == "PNG":
        last_row = image.crop((0, image.height - 1, image.width, image.height)).tobytes()
        ends_early = _damaged_png.ends_early(raw, last_row)
    else:
        ends_early = image.format == "JPEG2000" and _lacks_tiles(raw)
    if ends_early:
        raise ending_early(image.format)


def _lacks_tiles(raw: bytes) -> bool:
    """Return whether a JPEG 2000 lacks a tile, or the mark of its end."""
    start = _CODESTREAM.search(raw)
    if start is None:
        return True
    at = start.end() - 4
    width, height, tile_width, tile_height, tile_left, tile_top = (
        int.from_bytes(raw[at + i : at + i + 4], "big") for i in (8, 12, 24, 28, 32, 36)
    )
    wanted = -((tile_left - width) // tile_width) * -((tile_top - height) // tile_height)
    found, at = set(), at + 2
    while raw[at : at + 2] not in (b"\xff\xd9", b""):
        length, part = int.from_bytes(raw[at + 2 : at + 4], "big"), 0
        if raw[at : at + 2] == b"\xff\x90":  # the start of a part of a tile: its index, its length
            found.add(raw[at + 4 : at + 6])
            part = int.from_bytes(raw[at + 6 : at + 10], "big")
            if part == 0:  # it ends with the file
                at = len(raw) - 2
                break
        at += part or 2 + length
    return len(found) < wanted or raw[at : at + 2] != b"\xff\xd9"


def check_frames(raw: bytes, image: Any, last: int, max_pixels: int) -> None:
    """Check the frames of an animation up to one of them, as far as Pillow does not.

    Each frame of a GIF may enlarge the image, and Pillow allocates it when it goes to the frame.
    """
    if image.format == "GIF":
        check_pixels(_canvas(raw, last), max_pixels)
    if image.format == "PNG" and _damaged_png.frame_ends_early(raw, last):
        raise ending_early("PNG")


def _canvas(raw: bytes, last: int) -> tuple[int, int]:
    """Return the width and height that a GIF has from one of its frames on."""
    width, height = (int.from_bytes(raw[at : at + 2], "little") for at in (6, 8))
    for right, bottom in itertools.islice(_corners(raw), last + 1):
        width, height = max(width, right), max(height, bottom)
    return width, height


def _corners(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield the right and bottom of each frame of a GIF, as Pillow finds the frames."""
    at = 13 + _palette(raw[10:11])
    while at < len(raw) and raw[at] != 0x3B:
        kind = raw[at]
        if kind == 0x2C:
            left, top, width, height = (
                int.from_bytes(raw[i : i + 2], "little") for i in range(at + 1, at + 9, 2)
            )
            yield left + width, top + height
            at += 11 + _palette(raw[at + 9 : at + 10])
        elif kind == 0x21:
            at += 2
        else:
            at += 1
            continue
        while at < len(raw) and raw[at]:
            at += 1 + raw[at]
        at += 1


def _palette(flags: bytes) -> int:
    """Return the number of bytes of a palette that follows its flags."""
    return 3 << (flags[0] & 7) + 1 if flags and flags[0] & 128 else 0
