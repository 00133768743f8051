"""Detection of damaged and truncated PNGs.

Pillow checks neither the checksums of the pixel data nor the number of pixels.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from PIL import Image

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


def ends_early(raw: bytes, image: Image.Image) -> bool:
    """Return whether the pixel data of a PNG end early.

    Missing pixels are 0, so a complete image is recognized by a last row that is not 0. Other images, and
    interlaced ones, are decompressed a second time.
    """
    bodies = [(kind, chunk[8:-4]) for kind, chunk in _chunks(raw)]
    width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", bodies[0][1])
    last_row = image.crop((0, image.height - 1, image.width, image.height))
    if not interlaced and any(last_row.tobytes()):
        return False
    bits = depth * _CHANNELS[color]
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    wanted = 0
    for x, y, step_x, step_y in passes:
        columns, rows = -((x - width) // step_x), -((y - height) // step_y)
        if columns > 0 and rows > 0:
            wanted += rows * (1 + (columns * bits + 7) // 8)
    inflate, found = zlib.decompressobj(), 0
    for kind, body in bodies:
        if kind == b"IDAT":
            data = bytes(body)
            while data and found < wanted:
                found += len(inflate.decompress(data, 1 << 16))
                data = inflate.unconsumed_tail
    return found < wanted
