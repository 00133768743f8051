"""Whether a JPEG holds all of its image: it has no checksum, and Pillow does not say.

Where the data of a scan end before the image does, libjpeg fills in grey. But what a complete scan does not
read can be changed without a trace: so an image in doubt is decoded a second time, with other bytes behind
each scan. In doubt are a sequential image with a corner as flat as a filling, and every progressive one. (Of
a sequential image that ends inside its very last block, that block may come out wrong.)
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

_JUNK = bytes(range(17, 113, 5)) * 8
_SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)

_HUFFMAN = {0xC0: False, 0xC1: False, 0xC2: True}  # start of frame: whether progressive
_SCAN, _END = 0xDA, 0xD9


@dataclass
class _Scans:
    """What the headers of a JPEG say, and the same file with junk behind each scan."""

    progressive: bool | None = None  # None: of a kind that is not looked into
    longer: bytes = b""
    #: For each component and frequency the lowest bit that some scan has sent; 16 where none has.
    lowest: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def all_sent(self) -> bool:
        return all((bits == 0).all() for bits in self.lowest.values())


def ends_early(raw: bytes, image: Image.Image) -> bool:
    scans = _read(raw)
    if scans.progressive is None:
        return False
    if not scans.all_sent:
        return True
    if not scans.progressive and not _is_flat(image):
        return False
    again = JpegImageFile(io.BytesIO(scans.longer))
    again.load()
    return again.tobytes() != image.tobytes()


def _is_flat(image: Image.Image) -> bool:
    corner = np.asarray(image.crop((max(image.width - 3, 0), max(image.height - 3, 0), *image.size)))
    values = corner.reshape(corner.shape[0] * corner.shape[1], -1).astype(int)
    return bool(np.ptp(values, axis=0).max() <= 2)


def _read(raw: bytes) -> _Scans:
    scans = _Scans()
    parts, start, at = [], 0, 2
    while at + 4 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # filling between segments
            at += 1
            continue
        body = at + 4
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
        if marker in _HUFFMAN:
            scans.progressive = _HUFFMAN[marker]
            components = raw[body + 6 : at : 3]
            scans.lowest = {c: np.full(64, 16) for c in components}
        if marker != _SCAN:
            continue
        _note_scan(scans, raw[body:at])
        end = _SCAN_END.search(raw, at)
        if end is None:
            break
        parts += [raw[start : end.start()], _JUNK]
        start = at = end.start()
        if raw[at + 1] == _END:
            break
    scans.longer = b"".join([*parts, raw[start:]])
    return scans


def _note_scan(scans: _Scans, header: bytes) -> None:
    count = header[0]
    first, last, precision = 0, 63, 0
    if scans.progressive:
        first, last, precision = header[1 + 2 * count :][:3]
    for component in header[1 : 1 + 2 * count : 2]:
        if component in scans.lowest:
            scans.lowest[component][first : last + 1] = precision & 15
