"""Files and images of 16 bits: PNGs in the mode "unchanged", and back; operators and transforms on uint16."""

from __future__ import annotations

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
import torch
from checks import check_raises
from PIL import Image, ImageOps
from torch import Tensor
from torchvision.io import ImageReadMode

import imgops
from tests import fuzz_decode

#: PNG's color types by the number of channels.
COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def levels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 65536, shape).astype(np.uint16)


def png(pixels: np.ndarray, *extra: tuple[bytes, bytes], rows: int | None = None) -> bytes:
    """Write a PNG of 16 bits of any number of channels by the words of its standard."""
    height, width, channels = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 16, COLOR_TYPES[channels], 0, 0, 0)
    data = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels[:rows])
    chunks = [(b"IHDR", header), *extra, (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def written(pixels: np.ndarray) -> list[bytes]:
    """Write pixels ``(H, W, C)`` with each library that can."""
    files = [png(pixels)]
    channels = pixels.shape[2]
    if channels == 1:
        file = io.BytesIO()
        Image.fromarray(pixels[..., 0]).save(file, "PNG")
        files.append(file.getvalue())
    if channels != 2:
        order = [2, 1, 0, 3][:channels] if channels > 1 else [0]
        files.append(cv2.imencode(".png", pixels[..., order])[1].tobytes())
    return files


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_sixteen_bits_of_a_png(channels: int) -> None:
    """They are those that were written, and those of OpenCV and Pillow; with a box, in both memory formats, turned."""
    pixels = levels(7, 9, channels)
    wanted = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
    for raw in written(pixels):
        theirs = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED).reshape(7, 9, -1)
        assert np.array_equal(theirs[..., -1], pixels[..., 0 if channels in (1, 3) else -1])
        if channels == 1:
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(raw))), pixels[..., 0])
        for mode in ("unchanged", ImageReadMode.UNCHANGED):
            out = imgops.decode_image(raw, mode)
            assert out.dtype == torch.uint16 and out.is_contiguous() and torch.equal(out, wanted)
        last = imgops.decode_image(raw, "unchanged", memory_format=torch.channels_last)
        assert last.stride() == (1, 9 * channels, channels) and torch.equal(last, wanted)
        for box in ((2, 1, 8, 5), torch.tensor([2, 1, 8, 5])):
            assert torch.equal(imgops.decode_image(raw, "unchanged", box=box), wanted[:, 1:5, 2:8])
        (one, *_), skipped = imgops.decode_images([raw, raw[:-20], raw], "unchanged", skipped=(bad := [])), bad
        assert torch.equal(one, wanted) and [i for i, _ in skipped] == [1]
        # Other modes keep the high byte, as before.
        assert torch.equal(imgops.decode_image(raw, "L" if channels == 1 else "RGBA")[0], (wanted[0].int() >> 8).byte())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_of_sixteen_bits(orientation: int) -> None:
    pixels = levels(5, 8, 1)
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0]).save(file, "PNG", exif=exif)
    gray = ImageOps.exif_transpose(Image.open(file))
    color = png(pixels.repeat(3, 2), (b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0")))
    for raw, channels in ((file.getvalue(), 1), (color, 3)):
        out = imgops.decode_image(raw, "unchanged", apply_exif_orientation=True)
        wanted = np.asarray(gray)[None].repeat(channels, 0)
        assert np.array_equal(out.numpy(), wanted)
        left, top, right, bottom = 1, 2, 4, 5
        part = imgops.decode_image(raw, "unchanged", apply_exif_orientation=True, box=(left, top, right, bottom))
        assert np.array_equal(part.numpy(), wanted[:, top:bottom, left:right])


@pytest.mark.parametrize("seed", range(len(fuzz_decode.seeds())))
def test_eight_bits_keep_their_channels(seed: int) -> None:
    raw = fuzz_decode.seeds()[seed]
    stored = Image.open(io.BytesIO(raw))
    if stored.mode.startswith("I"):
        wanted = np.asarray(stored).astype(np.uint16)
    else:
        own = {"1": "L", "CMYK": "RGB", "P": "RGBA" if "transparency" in stored.info else "RGB"}
        wanted = np.asarray(stored.convert(own.get(stored.mode, stored.mode)))
    wanted = wanted[None] if wanted.ndim == 2 else wanted.transpose(2, 0, 1)
    with fuzz_decode._without_libjpeg():
        by_pillow = imgops.decode_image(raw, "unchanged")
    for out in (imgops.decode_image(raw, "unchanged"), by_pillow):
        assert out.numpy().dtype == wanted.dtype and np.array_equal(out.numpy(), wanted)


def test_damaged_files_of_sixteen_bits() -> None:
    """A file that is cut, changed or lacks rows is refused; what does not belong to the pixels does not change them."""
    for channels in (1, 3, 4):
        pixels = levels(6, 5, channels)
        raw = png(pixels)
        for at in range(8, len(raw)):
            with pytest.raises(ValueError, match="decode_image: data must"):
                imgops.decode_image(raw[:at], "unchanged")
            if at < len(raw) - 12:
                with pytest.raises(ValueError, match="decode_image: data must"):
                    imgops.decode_image(raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :], "unchanged")
        for rows in range(6):
            with pytest.raises(ValueError, match="decode_image: data must"):
                imgops.decode_image(png(pixels, rows=rows), "unchanged")
        black = np.zeros_like(pixels)
        assert imgops.decode_image(png(black), "unchanged").sum(dtype=torch.int64) == 0
        wanted = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
        if channels < 4:
            clear = png(pixels, (b"gAMA", struct.pack(">I", 45455)), (b"tRNS", pixels[0, 0].astype(">u2").tobytes()))
            assert torch.equal(imgops.decode_image(clear, "unchanged"), wanted)
        must = "decode_image: data must be an image of at most 29 pixels (max_pixels), got 6 x 5"
        check_raises(lambda raw=raw: imgops.decode_image(raw, "unchanged", max_pixels=29), ValueError, must)
        with pytest.raises(ValueError, match="box must lie inside of the image of 6 x 5"):
            imgops.decode_image(raw, "unchanged", box=(0, 0, 6, 6))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_round_trip_of_sixteen_bits(channels: int) -> None:
    planar = torch.from_numpy(levels(channels, 6, 11))
    interleaved = planar.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    for image in (planar, interleaved, planar.flip(-1), planar.expand(channels, 6, 11)[..., ::2]):
        raw = imgops.encode_image(image, "png")
        theirs = cv2.imdecode(raw.numpy(), cv2.IMREAD_UNCHANGED).reshape(6, image.shape[2], -1)
        assert np.array_equal(theirs[..., [2, 1, 0, 3][:channels] if channels > 1 else [0]], image.permute(1, 2, 0).numpy())
        assert torch.equal(imgops.decode_image(raw, "unchanged"), image)


def test_a_graph_knows_channels_and_dtype() -> None:
    raw = imgops.encode_image(torch.zeros(3, 4, 5, dtype=torch.uint16), "png")

    def decode(data: Tensor) -> Tensor:
        return imgops.decode_image(data, "unchanged")

    with pytest.raises(Exception, match="mode must be 'L', 'LA', 'RGB' or 'RGBA' in a compiled graph"):
        torch.compile(decode, fullgraph=True, backend="eager")(raw)
    check_raises(
        lambda: decode(raw.to("meta")),
        NotImplementedError,
        "decode_image: data must have data, which decide the size of the result, got a meta tensor",
    )
