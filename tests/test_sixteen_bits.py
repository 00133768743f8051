"""Files and images of 16 bits: PNGs in the mode "unchanged", and back; operators and transforms on uint16."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from checks import check_raises
from PIL import Image, ImageOps
from torch import Tensor
from torchvision import tv_tensors
from torchvision.io import ImageReadMode
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2 as tv

import imgops
from imgops import transforms as v2
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


def test_sixteen_bits_of_a_png() -> None:
    """They are those that were written, and those of OpenCV and Pillow; with a box, in both memory formats, turned."""
    for channels in (1, 2, 3, 4):
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
            (one, *_), skipped = (
                imgops.decode_images([raw, raw[:-20], raw], "unchanged", skipped=(bad := [])),
                bad,
            )
            assert torch.equal(one, wanted) and [i for i, _ in skipped] == [1]
            # Other modes keep the high byte, as before.
            assert torch.equal(
                imgops.decode_image(raw, "L" if channels == 1 else "RGBA")[0], (wanted[0].int() >> 8).byte()
            )


def test_orientation_of_sixteen_bits() -> None:
    for orientation in range(1, 9):
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
            part = imgops.decode_image(
                raw, "unchanged", apply_exif_orientation=True, box=(left, top, right, bottom)
            )
            assert np.array_equal(part.numpy(), wanted[:, top:bottom, left:right])


def test_eight_bits_keep_their_channels() -> None:
    for seed in range(len(fuzz_decode.seeds()) - 1):
        raw = fuzz_decode.seeds()[seed]
        stored = Image.open(io.BytesIO(raw))
        if stored.mode.startswith("I"):
            wanted = np.asarray(stored).astype(np.uint16)
        else:
            own = {"1": "L", "CMYK": "RGB", "P": "RGBA" if "transparency" in stored.info else "RGB"}
            wanted = np.asarray(stored.convert(own.get(stored.mode, stored.mode)))
        wanted = wanted[None] if wanted.ndim == 2 else wanted.transpose(2, 0, 1)
        with warnings.catch_warnings(), fuzz_decode._without_libjpeg():
            warnings.simplefilter("ignore")
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
            clear = png(
                pixels, (b"gAMA", struct.pack(">I", 45455)), (b"tRNS", pixels[0, 0].astype(">u2").tobytes())
            )
            assert torch.equal(imgops.decode_image(clear, "unchanged"), wanted)
        must = "decode_image: data must be an image of at most 29 pixels (max_pixels), got 6 x 5"
        check_raises(lambda raw=raw: imgops.decode_image(raw, "unchanged", max_pixels=29), ValueError, must)
        with pytest.raises(ValueError, match="box must lie inside of the image of 6 x 5"):
            imgops.decode_image(raw, "unchanged", box=(0, 0, 6, 6))


def test_round_trip_of_sixteen_bits() -> None:
    for channels in (1, 3, 4):
        planar = torch.from_numpy(levels(channels, 6, 11))
        interleaved = planar.permute(1, 2, 0).contiguous().permute(2, 0, 1)
        for image in (planar, interleaved, planar.flip(-1), planar.expand(channels, 6, 11)[..., ::2]):
            raw = imgops.encode_image(image, "png")
            theirs = cv2.imdecode(raw.numpy(), cv2.IMREAD_UNCHANGED).reshape(6, image.shape[2], -1)
            assert np.array_equal(
                theirs[..., [2, 1, 0, 3][:channels] if channels > 1 else [0]], image.permute(1, 2, 0).numpy()
            )
            assert torch.equal(imgops.decode_image(raw, "unchanged"), image)


def test_hostile_files_of_sixteen_bits() -> None:
    """Bytes that are changed, with correct checksums, give a whole image or a ValueError."""
    random, outcomes = np.random.default_rng(0), set()
    for raw in (png(levels(6, 5, c), (b"eXIf", b"II*\0\x08\0\0\0\0\0")) for c in (1, 2, 3, 4)):
        for _ in range(60):
            changed = bytearray(raw)
            for at in random.integers(8, len(raw), 1 + random.integers(3)):
                changed[at] = random.integers(256)
            outcomes.add(fuzz_decode.check(fuzz_decode._with_checksums(bytes(changed)), "unchanged"))
    assert outcomes == {"refused", "unchanged"}


def test_a_graph_knows_channels_and_dtype() -> None:
    raw = imgops.encode_image(torch.zeros(3, 4, 5, dtype=torch.uint16), "png")

    def decode(data: Tensor) -> Tensor:
        return imgops.decode_image(data, "unchanged")

    with pytest.raises(Exception, match="mode must name channels in a compiled graph"):
        torch.compile(decode, fullgraph=True, backend="eager")(raw)
    check_raises(
        lambda: decode(raw.to("meta")),
        NotImplementedError,
        "decode_image: data must have data, which decide the size of the result, got a meta tensor",
    )


DEEP = torch.from_numpy(levels(2, 3, 23, 31, seed=1))
INTERLEAVED = DEEP.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def each_plane(image: Tensor, call: Callable[[np.ndarray], np.ndarray]) -> Tensor:
    """Return what a library makes of each plane."""
    planes = [call(plane.numpy()) for plane in image.flatten(0, -3)]
    made = torch.from_numpy(np.stack(planes))
    return made.reshape(*image.shape[:-2], *made.shape[-2:])


def by_pil(call: Callable[[Image.Image], Image.Image]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda plane: np.asarray(call(Image.fromarray(plane)))


#: Each transform, and what Pillow (in mode I;16) or OpenCV makes of a plane.
PIPELINES: dict[str, tuple[Any, Callable[[np.ndarray], np.ndarray]]] = {
    "Resize": (v2.Resize((11, 17)), by_pil(lambda p: p.resize((17, 11), Image.Resampling.BILINEAR))),
    "bicubic": (
        v2.Resize((40, 33), interpolation=InterpolationMode.BICUBIC),
        by_pil(lambda p: p.resize((33, 40), Image.Resampling.BICUBIC)),
    ),
    "no antialias": (v2.Resize((11, 17), antialias=False), lambda a: cv2.resize(a, (17, 11))),
    "CenterCrop": (
        v2.Compose([v2.Resize((16, 20)), v2.CenterCrop(12)]),
        by_pil(lambda p: p.resize((20, 16), Image.Resampling.BILINEAR).crop((4, 2, 16, 14))),
    ),
    "flips": (
        v2.Compose([v2.RandomHorizontalFlip(1, per_sample=True), v2.RandomVerticalFlip(1, per_sample=True)]),
        lambda a: cv2.flip(a, -1),
    ),
    "half turn": (v2.RandomRotation((180, 180), per_sample=True), lambda a: cv2.rotate(a, cv2.ROTATE_180)),
    "GaussianBlur": (
        v2.GaussianBlur(5, (1.5, 1.5), per_sample=True),
        lambda a: cv2.GaussianBlur(a, (5, 5), 1.5, borderType=4),
    ),
    "RandomGamma": (
        v2.RandomGamma((2.0, 2.0), p=1.0, per_sample=True),
        lambda a: np.clip(65535.999 * (a / 65535) ** 2, 0, 65535).astype(np.uint16),
    ),
    "RandomInvert": (v2.RandomInvert(1, per_sample=True), cv2.bitwise_not),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_transforms_have_the_pixels_of_the_libraries(name: str) -> None:
    """One image, a batch, and images of different sizes; planar and interleaved; in a graph."""
    transform, call = PIPELINES[name]
    wanted = each_plane(DEEP, call)
    for batch in (DEEP, INTERLEAVED):
        assert torch.equal(transform(batch), wanted)
        assert torch.equal(transform(tv_tensors.Image(batch[0])), wanted[0])
    if name in ("Resize", "bicubic", "no antialias", "CenterCrop", "flips", "GaussianBlur"):
        packed = transform(imgops.PackedImages.of(list(DEEP)))
        assert torch.equal(packed if isinstance(packed, Tensor) else torch.stack(packed.unpack()), wanted)
    compiled = torch.compile(transform, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(DEEP), wanted)


def test_random_resized_crops() -> None:
    """They draw what torchvision draws, and have the pixels of Pillow's crop and resize."""
    for seed in range(8):
        torch.manual_seed(seed)
        out = v2.RandomResizedCrop((9, 13))(DEEP)
        torch.manual_seed(seed)
        params = tv.RandomResizedCrop((9, 13)).make_params([DEEP])
        top, left, height, width = (params[name] for name in ("top", "left", "height", "width"))
        box = left, top, left + width, top + height
        wanted = each_plane(
            DEEP, by_pil(lambda p, b=box: p.crop(b).resize((13, 9), Image.Resampling.BILINEAR))
        )
        assert torch.equal(out, wanted)


def test_to_dtype_is_torchvisions() -> None:
    ramp = torch.arange(65536, dtype=torch.int32).to(torch.uint16).reshape(1, 256, 256)
    unit = v2.ToDtype(torch.float32, scale=True)(ramp)
    assert torch.equal(unit, tv.ToDtype(torch.float32, scale=True)(ramp))
    torch.testing.assert_close(unit.double(), ramp.double() / 65535, rtol=2e-7, atol=0)
    assert unit.max() == 1
    back, theirs = (kind(torch.uint16, scale=True)(unit).flatten().int() for kind in (v2.ToDtype, tv.ToDtype))
    assert torch.equal(back[:-1], theirs[:-1])
    assert back[-1] == 65535  # torchvision's arithmetic overflows
    raw = imgops.encode_image(DEEP[0], "png")
    to_unit = v2.Compose([v2.Resize((11, 17)), v2.ToDtype(torch.float32, scale=True)])
    wanted = each_plane(DEEP[0], PIPELINES["Resize"][1]).float() / 65535
    torch.testing.assert_close(to_unit(imgops.decode_image(raw, "unchanged")), wanted, rtol=2e-7, atol=0)
