"""Detection of damaged and truncated PNGs.

Pillow checks neither the checksums of the pixel data nor the number of pixels.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

MAGIC = b"\x89PNG\r\n\x1a\n"

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by color type
#: Adam7: where each pass begins, and its steps (x, y, step x, step y).
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def _chunks(raw: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the type and the bytes of each chunk, up to the first incomplete one."""
    view, at = memoryview(raw), len(MAGIC)
    while at + 12 <= len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        if at + 12 + length > len(raw):
            return
        yield kind, view[at : at + 12 + length]
        if kind == b"IEND":
            return
        at += 12 + length


def wrong_chunk(raw: bytes) -> bytes | None:
    """Return the type of the first chunk with a wrong checksum; ``b"IEND"`` if that chunk is missing."""
    last = None
    for kind, chunk in _chunks(raw):
        if zlib.crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:], "big"):
            return kind
        last = kind
    return None if last == b"IEND" else b"IEND"


def _header(raw: bytes) -> tuple[int, ...]:
    """Return width, height, bits a value, color type, compression, filter and whether a PNG is interlaced."""
    kind, chunk = next(_chunks(raw))
    return struct.unpack(">IIBBBBB", chunk[8:-4]) if kind == b"IHDR" else (0,) * 7


def deep_channels(raw: bytes) -> int:
    """Return the number of channels of a PNG of 16 bits a value, 0 for other PNGs."""
    _, _, depth, color, *_ = _header(raw)
    return _CHANNELS.get(color, 0) if depth == 16 else 0


def only_pixels(raw: bytes) -> bytes:
    """Return a PNG without the chunks that a decoder does not need for the stored pixels."""
    needed = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
    return MAGIC + b"".join(chunk for kind, chunk in _chunks(raw) if kind in needed)


def ends_early(raw: bytes, last_row: bytes) -> bool:
    """Return whether the pixel data of a PNG end early, given the last row of the decoded image.

    Missing pixels are 0, so a complete image is recognized by a last row that is not 0. Other images, and
    interlaced ones, are decompressed a second time.
    """
    width, height, *_, interlaced = _header(raw)
    if not interlaced and any(last_row):
        return False
    return _is_short(raw, width, height, [chunk[8:-4] for kind, chunk in _chunks(raw) if kind == b"IDAT"])


def frame_ends_early(raw: bytes, last: int) -> bool:
    """Return whether the pixel data of a frame of an animated PNG end early, from the second to the last."""
    frames: list[tuple[int, int, list[memoryview]]] = []
    is_behind_first = False
    for kind, chunk in _chunks(raw):
        is_behind_first |= kind == b"IDAT"
        if kind == b"fcTL" and is_behind_first:
            if len(frames) == last:
                break
            width, height = struct.unpack_from(">II", chunk, 12)
            frames.append((width, height, []))
        if kind == b"fdAT" and frames:
            frames[-1][2].append(chunk[12:-4])
    return len(frames) < last or any(_is_short(raw, *frame) for frame in frames)


def _is_short(raw: bytes, width: int, height: int, parts: Iterable[memoryview]) -> bool:
    """Return whether compressed data have fewer bytes than an image of a size, in the format of a PNG."""
    _, _, depth, color, _, _, interlaced = _header(raw)
    bits = depth * _CHANNELS[color]
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    wanted = 0
    for x, y, step_x, step_y in passes:
        columns, rows = -((x - width) // step_x), -((y - height) // step_y)
        if columns > 0 and rows > 0:
            wanted += rows * (1 + (columns * bits + 7) // 8)
    inflate, found = zlib.decompressobj(), 0
    for part in parts:
        data = bytes(part)
        while data and found < wanted:
            found += len(inflate.decompress(data, 1 << 16))
            data = inflate.unconsumed_tail
    return found < wanted
