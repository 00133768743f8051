"""Detection of truncated JPEGs: the format has no checksum, and Pillow does not report them.

Where the data of a scan end before the image does, libjpeg fills in gray. Bytes that follow a complete scan
do not change its pixels. So a suspicious image is decoded a second time, with other bytes after each scan,
and must stay the same. Sequential images with a corner as flat as such a filling, and all progressive images,
are suspicious. Restart markers are counted. (If a sequential image ends inside its very last block, that
block may come out wrong.)
"""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

_JUNK = bytes(range(17, 113, 5)) * 8
_SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)

_RESTART = re.compile(rb"\xff[\xd0-\xd7]")

_HUFFMAN = {0xC0: False, 0xC1: False, 0xC2: True}  # start-of-frame marker: whether the JPEG is progressive
_SCAN, _END, _INTERVAL = 0xDA, 0xD9, 0xDD


@dataclass
class _Scans:
    """Headers of a JPEG, and the same file with junk behind each scan."""

    progressive: bool | None = None  # None for a kind of JPEG that is not examined
    longer: bytes = b""
    size: tuple[int, int] = (0, 0)  # width, height
    height_at: int = 0  # where the file has its height
    #: Where the data of the last scan that was read end, and how many components it has.
    end: int = 0
    components: int = 0
    #: Horizontal and vertical sampling of each component.
    sampling: dict[int, tuple[int, int]] = field(default_factory=dict)
    interval: int = 0  # blocks between restart markers
    restarts_missing: bool = False
    #: The lowest bit that any scan has sent, for each component and frequency; 16 where no scan has sent one.
    lowest: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def all_sent(self) -> bool:
        return all((bits == 0).all() for bits in self.lowest.values())


def ends_early(raw: bytes, image: Image.Image) -> bool:
    corner = np.asarray(image.crop((max(image.width - 3, 0), max(image.height - 3, 0), *image.size)))
    values = corner.reshape(corner.shape[0] * corner.shape[1], -1).astype(int)
    flat = bool(np.ptp(values, axis=0).max() <= 2)
    scans = _read(raw, all_scans=flat)
    if scans.progressive is None:
        return False
    if scans.restarts_missing or not scans.all_sent:
        return True
    if not scans.progressive and not flat:
        return False
    again = JpegImageFile(io.BytesIO(scans.longer))
    again.load()
    return again.tobytes() != image.tobytes()


def _read(raw: bytes, all_scans: bool, only_first: bool = False) -> _Scans:
    """Read the headers of a JPEG, and insert junk behind each scan.

    Unless ``all_scans``, stop once a sequential image without restart markers has sent everything. With
    ``only_first``, stop behind the first scan.
    """
    scans = _Scans()
    parts, start, at = [], 0, 2
    while at + 4 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # a fill byte between segments
            at += 1
            continue
        body = at + 4
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
        if marker in _HUFFMAN:
            scans.progressive = _HUFFMAN[marker]
            height, width = struct.unpack_from(">HH", raw, body + 1)
            scans.size, scans.height_at = (width, height), body + 1
            scans.sampling = {raw[i]: divmod(raw[i + 1], 16) for i in range(body + 6, at, 3)}
            scans.lowest = {c: np.full(64, 16) for c in scans.sampling}
        if marker == _INTERVAL:
            scans.interval = int.from_bytes(raw[body:at], "big")
        if marker != _SCAN:
            continue
        header = raw[body:at]
        count = header[0]
        first, last, precision = 0, 63, 0
        if scans.progressive:
            first, last, precision = header[1 + 2 * count :][:3]
        for component in header[1 : 1 + 2 * count : 2]:
            if component in scans.lowest:
                scans.lowest[component][first : last + 1] = precision & 15
        if not (all_scans or scans.progressive or scans.interval) and scans.all_sent:
            return scans
        end = _SCAN_END.search(raw, at)
        scans.end, scans.components = end.start() if end else len(raw), count
        if end is None or only_first:
            break
        if scans.interval:
            restarts = len(_RESTART.findall(raw, at, end.start()))
            wanted = (_blocks(scans, raw[body:at]) - 1) // scans.interval
            scans.restarts_missing |= restarts < wanted
        parts += [raw[start : end.start()], _JUNK]
        start = at = end.start()
        if raw[at + 1] == _END:
            break
    scans.longer = b"".join([*parts, raw[start:]])
    return scans


def rows_above(raw: bytes, bottom: int) -> bytes:
    """Return a sequential JPEG cut below the rows of blocks that its pixels above ``bottom`` need.

    What is wrong with the data below is then not seen. Files of other kinds, and those that are needed as a
    whole, are returned as they are.
    """
    scans = _read(raw, all_scans=True, only_first=True)
    height, rows_of_each = scans.size[1], [y for _, y in scans.sampling.values()]
    if scans.progressive is not False or bottom >= height or not 0 < len(rows_of_each) <= scans.components:
        return raw
    most_y = max(rows_of_each) if scans.components > 1 else 1
    # Colors of fewer rows than the luma are interpolated between rows of blocks.
    needed = bottom + most_y if most_y > 1 else bottom
    height, at = min(8 * most_y * ceil(needed / (8 * most_y)), height), scans.height_at
    return b"".join(
        [raw[:at], height.to_bytes(2, "big"), raw[at + 2 : scans.end].rstrip(b"\xff"), b"\xff\xd9"]
    )


def _blocks(scans: _Scans, header: bytes) -> int:
    """Return the number of units in a scan: MCUs of all its components, or blocks of its only one."""
    width, height = scans.size
    most_x = max(x for x, _ in scans.sampling.values())
    most_y = max(y for _, y in scans.sampling.values())
    if header[0] > 1:
        return ceil(width / (8 * most_x)) * ceil(height / (8 * most_y))
    x, y = scans.sampling[header[1]]
    return ceil(ceil(width * x / most_x) / 8) * ceil(ceil(height * y / most_y) / 8)
