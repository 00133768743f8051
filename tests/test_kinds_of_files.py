"""Every kind of file that is decoded, against Pillow and OpenCV; frames; files of other kinds and damaged ones."""

from __future__ import annotations

import io
import itertools
import json
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from checks import check_raises
from PIL import Image, ImageFile, ImageOps, features
from torch import Tensor

import imgops
from imgops import transforms as v2
from tests import fuzz_decode

MODES = ("RGB", "L", "LA", "RGBA")
ALL_KINDS = "JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 or HEIF"
#: Pillow's names of the formats that hold pictures by numbers alone.
NUMBERS = ("TIFF int32", "TIFF float32")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Ignore Pillow's warnings about damaged files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tensor(raw: bytes) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


def saved(image: Image.Image, format: str, **keywords: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **keywords)
    return file.getvalue()


def shown(raw: bytes, mode: str, turned: bool = False, frame: int = 0) -> Tensor:
    """Return Pillow's pixels; of 16 bits of gray the high byte."""
    image = Image.open(io.BytesIO(raw))
    image.seek(frame) if frame else None
    image.load()
    if turned:
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    pixels = np.asarray(image.convert(mode))
    return torch.from_numpy(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())


def levelled() -> dict[str, bytes]:
    """Return files of every kind that has levels, and some of the kinds with EXIF data for each orientation."""
    files = {name: raw for name, raw in fuzz_decode.other_seeds().items() if name not in NUMBERS}
    files |= {f"seed {i}": raw for i, raw in enumerate(fuzz_decode.seeds())}
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (13, 21, 3), np.uint8))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        for format, keywords in (
            ("TIFF", {}),
            ("TIFF", {"compression": "tiff_lzw"}),
            ("AVIF", {}),
            ("WEBP", {}),
        ):
            if format != "AVIF" or "avif" in features.get_supported():
                files[f"{format}{keywords} {orientation}"] = saved(image, format, exif=exif, **keywords)
    return files


def test_every_kind_has_the_pixels_of_pillow() -> None:
    """In each mode, turned or not, planar and interleaved, whole and a box; alone, in a graph, in a batch of files."""
    files = levelled()
    torch.compiler.reset()
    decode = torch.compile(
        lambda data, turned, mode: imgops.decode_image(data, mode, apply_exif_orientation=turned),
        fullgraph=True,
        dynamic=True,
        backend="aot_eager",
    )
    for mode in MODES:
        for turned in (False, True):
            wanted = {name: shown(raw, mode, turned) for name, raw in files.items()}
            how = {"apply_exif_orientation": turned}
            for name, raw in files.items():
                whole = imgops.decode_image(raw, mode, **how)
                assert torch.equal(whole, wanted[name]) and whole.is_contiguous(), (name, mode, turned)
                last = imgops.decode_image(raw, mode, memory_format=torch.channels_last, **how)
                assert torch.equal(last, wanted[name]) and last.permute(1, 2, 0).is_contiguous(), name
                box = (1, 2, whole.shape[2] - 1, whole.shape[1])
                assert torch.equal(imgops.decode_image(raw, mode, box=box, **how), whole[:, 2:, 1:-1]), name
                if mode in ("L", "RGBA"):
                    assert torch.equal(decode(tensor(raw), turned, mode), wanted[name]), name
            images = imgops.EncodedImages(files.values(), mode, **how)
            assert images.sizes.tolist() == [list(x.shape[1:]) for x in wanted.values()]
            for image, (name, x) in zip(images.decode().unpack(), wanted.items(), strict=True):
                assert torch.equal(image, x), name
            for name, x in wanted.items():
                one = imgops.EncodedImage(files[name], mode, **how)
                assert one.shape == x.shape and torch.equal(one.decode(), x), name


def test_pipelines_take_every_kind() -> None:
    """A pipeline for evaluation and one for training give what they give for Pillow's pixels, eager and in a graph."""
    files = levelled()
    scale = v2.ToDtype(torch.float32, scale=True)
    evaluate = v2.Compose([v2.Resize(14), v2.CenterCrop(12), scale])
    crop = v2.RandomResizedCrop(9, scale=(0.3, 1.0))
    train = v2.Compose([crop, v2.RandomHorizontalFlip(), v2.ColorJitter(0.3, 0.3), scale], per_sample=True)
    for turned in (False, True):
        images = imgops.EncodedImages(files.values(), apply_exif_orientation=turned)
        decoded = [shown(raw, "RGB", turned) for raw in files.values()]
        for pipeline in (evaluate, train):
            torch.manual_seed(3)
            wanted = torch.stack([pipeline(x[None])[0] for x in decoded])
            for call in (pipeline, torch.compile(pipeline, fullgraph=True, backend="aot_eager")):
                torch.manual_seed(3)
                assert torch.equal(call(images), wanted)


def deep_tiff(pixels: np.ndarray, order: str = "<", rows: int = 5, **changes: tuple[str, list[int]]) -> bytes:
    """Write 16 bits of gray, RGB or RGBA in deflated strips."""
    height, width, channels = pixels.shape
    strips = [
        zlib.compress(pixels[y : y + rows].astype(f"{order}u2").tobytes()) for y in range(0, height, rows)
    ]
    starts = [sum(map(len, strips[:i])) for i in range(len(strips))]
    tags = {
        256: ("I", [width]),
        257: ("I", [height]),
        258: ("H", [16] * channels),
        259: ("H", [8]),
        262: ("H", [1 if channels == 1 else 2]),
        273: ("I", starts),
        277: ("H", [channels]),
        278: ("H", [rows]),
        279: ("I", [len(x) for x in strips]),
    }
    if channels == 4:
        tags[338] = ("H", [2])
    tags |= {int(key.lstrip("_")): value for key, value in changes.items()}
    return fuzz_decode.tiff(tags, b"".join(strips), 273, order)


def test_sixteen_bits_of_a_tiff() -> None:
    """They are those that were written, and OpenCV's; in both byte orders, turned, in a box, and in one page of several."""
    rng = np.random.default_rng(0)
    for channels in (1, 3, 4):
        pixels = rng.integers(0, 65536, (13, 8, channels)).astype(np.uint16)
        wanted = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
        back = [2, 1, 0, 3][:channels] if channels > 1 else [0]
        files = [deep_tiff(pixels, "<"), deep_tiff(pixels, ">"), cv2.imencode(".tiff", pixels[..., back])[1]]
        if channels == 1:
            files += [
                saved(Image.fromarray(pixels[..., 0]), "TIFF", compression=c) for c in ("raw", "tiff_lzw")
            ]
        for raw in map(bytes, files):
            theirs = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED).reshape(13, 8, -1)
            assert np.array_equal(theirs[..., back], pixels)
            out = imgops.decode_image(raw, "unchanged")
            assert out.dtype == torch.uint16 and torch.equal(out, wanted)
            last = imgops.decode_image(raw, "unchanged", memory_format=torch.channels_last)
            assert torch.equal(last, wanted) and last.stride() == (1, 8 * channels, channels)
            assert torch.equal(imgops.decode_image(raw, "unchanged", box=(1, 2, 7, 9)), wanted[:, 2:9, 1:7])
            assert torch.equal(imgops.decode_frames(raw, mode="unchanged"), wanted[None])
            high = (wanted.int() >> 8).byte()
            assert torch.equal(imgops.decode_image(raw, "RGBA")[:channels], high)
            assert torch.equal(imgops.decode_image(raw, "L" if channels == 1 else "RGB"), high[:3])
        for orientation in range(1, 9):
            gray = saved(Image.fromarray(pixels[..., 0]), "PNG", exif=_oriented(orientation))
            turn = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(gray))))
            for order in "<>":
                raw = deep_tiff(pixels, order, _274=("H", [orientation]))
                for applied in (False, True):  # Pillow applies it in both
                    out = imgops.decode_image(raw, "unchanged", apply_exif_orientation=applied)
                    assert np.array_equal(out[0].numpy(), turn) and len(out) == channels
        if channels > 1:
            pages = cv2.imencodemulti(".tiff", [pixels[..., back], pixels[::-1, :, back]])[1].tobytes()
            assert torch.equal(
                imgops.decode_frames(pages, mode="unchanged"), torch.stack([wanted, wanted.flip(1)])
            )
    # What Pillow converts keeps 8 bits: premultiplied alpha, CMYK.
    for change in ({"_338": ("H", [1])}, {"_262": ("H", [5]), "_338": ("H", [])}):
        raw = deep_tiff(pixels, **change)
        if change.get("_338") == ("H", []):
            raw = deep_tiff(pixels, _262=("H", [5]), _338=("H", [0]), _277=("H", [4]))
        try:
            theirs = Image.open(io.BytesIO(raw))
        except Exception:
            with pytest.raises(ValueError, match="decode_image: data must be a complete TIFF image"):
                imgops.decode_image(raw, "unchanged")
            continue
        mode = "RGBA" if theirs.mode == "RGBA" else "RGB"
        out = imgops.decode_image(raw, "unchanged")
        assert out.dtype == torch.uint8 and torch.equal(out, shown(raw, mode))


@pytest.mark.parametrize("bits", [8, 16])
def test_no_channel_of_a_tiff_is_dropped(bits: int) -> None:
    """Of every kind of further channels: unchanged, a file has all channels that were written, or is refused."""
    rng, kept, refused = np.random.default_rng(0), 0, 0
    extras = ((), (0,), (1,), (2,), (999,), (0, 0), (1, 0), (2, 0), (0, 0, 0), (2, 0, 0))
    for (photometric, colors), extra, order in itertools.product(
        ((0, 1), (1, 1), (2, 3), (3, 1), (5, 4)), extras, "<>"
    ):
        channels = colors + len(extra)
        pixels = rng.integers(0, 1 << bits, (6, 5, channels)).astype(f"{order}u{bits // 8}")
        tags: dict[int, tuple[str, list[int]]] = {
            256: ("I", [5]),
            257: ("I", [6]),
            258: ("H", [bits] * channels),
            259: ("H", [1]),
            262: ("H", [photometric]),
            273: ("I", [0]),
            277: ("H", [channels]),
            278: ("I", [6]),
            279: ("I", [pixels.nbytes]),
            **({320: ("H", rng.integers(0, 65536, 768).tolist())} if photometric == 3 else {}),
            **({338: ("H", list(extra))} if extra else {}),
        }
        raw = fuzz_decode.tiff(tags, pixels.tobytes(), 273, order)
        found: list[Tensor | None] = []
        for decode in (
            lambda file: imgops.decode_image(file, "unchanged"),
            lambda file: imgops.decode_frames(file, mode="unchanged")[0],
            lambda file: imgops.EncodedImage(file, "unchanged").decode(),
            lambda file: imgops.decode_images([file], "unchanged")[0],
        ):
            try:
                found.append(decode(raw))
            except ValueError:
                found.append(None)
        case = f"{bits} bits, photometric {photometric}, extra {extra}: {found}"
        if found[0] is None:
            assert found == [None] * 4, case
            refused += 1
            continue
        assert all(other is not None and torch.equal(other, found[0]) for other in found), case
        as_colors = {3: 3, 5: 3}.get(photometric, colors)  # a palette, and CMYK
        assert len(found[0]) == as_colors + len(extra), case
        if photometric in (1, 2) and extra[:1] != (1,):
            assert np.array_equal(found[0].permute(1, 2, 0).numpy(), pixels), case
        kept += 1
    assert kept > 10 and refused > 10, (kept, refused)


def _oriented(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def test_pipelines_of_sixteen_bits(tmp_path: Path) -> None:
    """Files of 16 bits in a batch, eager and in a graph, are what the pipelines make of the decoded images."""
    rng = np.random.default_rng(0)
    for channels, mode in ((1, "L;16"), (3, "RGB;16"), (4, "RGBA;16")):
        images = [rng.integers(0, 65536, (h, 40, channels)).astype(np.uint16) for h in (30, 33, 37)]
        files = [
            deep_tiff(images[0], ">"),
            imgops.encode_image(torch.from_numpy(images[1].transpose(2, 0, 1)), "png"),
            deep_tiff(images[2]),
        ]
        wanted = [torch.from_numpy(x.transpose(2, 0, 1).copy()) for x in images]
        for given in ("unchanged", mode, mode.lower()):
            batch = imgops.EncodedImages(files, given)
            assert (batch.mode, batch.num_channels, batch.dtype) == (mode, channels, torch.uint16)
            for image, x in zip(batch.decode().unpack(), wanted, strict=True):
                assert torch.equal(image, x)
            for file, x in zip(files, wanted, strict=True):
                one = imgops.EncodedImage(file, given)
                assert one.shape == x.shape and one.dtype == x.dtype and torch.equal(one.decode(), x)
                assert torch.equal(one.decode((3, 2, 30, 20)), x[:, 2:20, 3:30])
                assert torch.equal(imgops.decode_image(file, given), x)
        scale = v2.ToDtype(torch.float32, scale=True)
        evaluate = v2.Compose([v2.Resize(20), v2.CenterCrop(16), scale])
        crop = v2.RandomResizedCrop(12)
        train = v2.Compose([crop, v2.GaussianBlur(3), scale], per_sample=True)
        for pipeline in (evaluate, train):
            torch.manual_seed(1)
            expected = torch.stack([pipeline(x[None])[0] for x in wanted])
            for call in (pipeline, torch.compile(pipeline, fullgraph=True, backend="aot_eager")):
                torch.manual_seed(1)
                assert torch.equal(call(batch), expected)
        torch.manual_seed(1)
        one = crop(imgops.EncodedImage(files[0], "unchanged"))
        torch.manual_seed(1)
        assert torch.equal(one, crop(wanted[0]))
        decode = torch.compile(
            lambda data, m=mode: imgops.decode_image(data, m), fullgraph=True, backend="aot_eager"
        )
        assert torch.equal(decode(tensor(files[0])), wanted[0])
    # All files must be of one mode; 8 bits keep theirs, too.
    eight = [fuzz_decode.other_seeds()[name] for name in ("TIFF LA", "GIF gray", "BMP gray", "TIFF int32")]
    assert imgops.EncodedImages(eight[:1] * 2, "unchanged").mode == "LA"
    assert imgops.EncodedImages(eight[1:2], "unchanged").num_channels == 3  # a palette
    assert imgops.EncodedImages([fuzz_decode.seeds()[3], eight[2]], "unchanged").mode == "L"
    path = tmp_path / "gray.bmp"
    path.write_bytes(eight[2])
    must = f"files[1] ({str(path)!r}) must have mode 'LA', as other files, for 'unchanged', got 'L'"
    check_raises(
        lambda: imgops.EncodedImages([eight[0], path], "unchanged"), ValueError, f"EncodedImages: {must}"
    )
    must = "must be an image of 8 or 16 bits, got a TIFF of int32"
    check_raises(
        lambda: imgops.EncodedImages(eight[3:], "unchanged"), ValueError, f"decode_images: files[0] {must}"
    )
    skipped: list[Any] = []
    batch = imgops.EncodedImages([b"no image", files[0], files[2][:-50]], "unchanged", skipped=skipped)
    assert batch.mode == "RGBA;16" and [i for i, _ in skipped] == [0]
    black, image, cut = batch.decode().unpack()
    assert [i for i, _ in skipped] == [0, 2] and black.sum(dtype=torch.int64) == cut.sum(
        dtype=torch.int64
    ) == 0
    assert torch.equal(image, wanted[0])
    must = "decode_image: data must be an image of mode 'L;16', got a TIFF of mode 'RGBA;16'"
    check_raises(lambda: imgops.decode_image(files[0], "L;16"), ValueError, must)
    must = "decode_image: data must be an image of mode 'L;16', got a JPEG of mode 'L'"
    check_raises(lambda: imgops.decode_image(fuzz_decode.seeds()[3], "L;16"), ValueError, must)


def test_planes_of_a_tiff() -> None:
    """Channels one after the other are read, or refused where Pillow or OpenCV would give other pixels."""
    rng = np.random.default_rng(0)
    height, width, read = 9, 7, set()
    types = (("u1", 1), ("u2", 1), ("u4", 1), ("i2", 2), ("i4", 2), ("f4", 3))
    for order, (dtype, kind), channels, white, deflated in itertools.product(
        "<>", types, (1, 3, 4), (False, True), (False, True)
    ):
        if (white or kind != 1 or dtype == "u4") and channels > 1:
            continue
        numbers = rng.integers(0, 256 if dtype == "u1" else 30000, (channels, height, width)).astype(dtype)
        planes = [x.astype(x.dtype.newbyteorder(order)).tobytes() for x in numbers]
        planes = [zlib.compress(x) for x in planes] if deflated else planes
        tags = {
            256: ("I", [width]),
            257: ("I", [height]),
            258: ("H", [8 * numbers.itemsize] * channels),
            259: ("H", [8 if deflated else 1]),
            262: ("H", [2 if channels > 1 else 1 - white]),
            273: ("I", [sum(map(len, planes[:i])) for i in range(channels)]),
            277: ("H", [channels]),
            278: ("I", [height]),
            279: ("I", [len(x) for x in planes]),
            284: ("H", [2]),
            339: ("H", [kind] * channels),
        }
        if channels == 4:
            tags[338] = ("H", [2])
        raw = fuzz_decode.tiff(tags, b"".join(planes), 273, order)
        wanted = 255 - numbers if white and dtype == "u1" else numbers
        levels = {"u1": lambda: wanted, "u2": lambda: numbers >> 8}.get(dtype, lambda: None)()
        for mode in ("unchanged", ("L", "", "RGB", "RGBA")[channels - 1]):
            expected = wanted if mode == "unchanged" else levels
            if expected is None:
                continue
            for decode in (
                imgops.decode_image,
                lambda file, mode: imgops.decode_frames(file, mode=mode)[0],
                lambda file, mode: imgops.EncodedImages([file], mode).decode()[0],
            ):
                try:
                    out = decode(raw, mode)
                except ValueError as error:
                    assert str(error).startswith("decode_")  # noqa: PT017
                else:
                    case = order, dtype, channels, white, deflated, mode
                    assert np.array_equal(out.numpy(), expected), case
                    read.add(case)
    for channels, mode in ((1, "L"), (3, "RGB"), (4, "RGBA")):
        for order, deflated in itertools.product("<>", (False, True)):
            assert {(order, "u1", channels, False, deflated, m) for m in (mode, "unchanged")} <= read
            assert not deflated or (order, "u2", channels, False, True, mode) in read
    for order, dtype in itertools.product("<>", ("u2", "i2", "i4", "f4")):
        assert (order, dtype, 1, False, True, "unchanged") in read


def test_numbers_of_a_tiff() -> None:
    """Integers and floating-point numbers are those of Pillow and OpenCV, or refused in a mode of levels."""
    numbers = np.array([[-3.5, 0.25, np.inf], [np.nan, 1e30, 65536.0]], np.float32)
    images = [
        Image.fromarray(numbers),
        Image.fromarray(np.array([[-7, 2**31 - 1], [256, -(2**31)]], np.int32)),
    ]
    for image, dtype in zip(images, (torch.float32, torch.int32), strict=True):
        for compression in ("raw", "tiff_lzw"):
            raw = saved(image, "TIFF", compression=compression)
            out = imgops.decode_image(raw, "unchanged")
            assert out.dtype == dtype and np.array_equal(out[0].numpy(), np.asarray(image), equal_nan=True)
            theirs = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)
            assert np.array_equal(out[0].numpy(), theirs, equal_nan=True)
            must = "data must be an image of levels, or mode must be 'unchanged', got a TIFF of"
            name = str(dtype).removeprefix("torch.")
            check_raises(lambda raw=raw: imgops.decode_image(raw), ValueError, f"decode_image: {must} {name}")
            with pytest.raises(ValueError, match="must be an image of levels"):
                imgops.EncodedImages([raw]).decode()


def test_numbers_that_pillow_wraps_or_does_not_scale() -> None:
    """int8 below 0 and uint32 from 2^31 on are refused; 12 bits become 16, as OpenCV makes them."""
    bits: dict[str, tuple[Any, int, int]] = {
        "int8": (np.int8, 8, 2),
        "uint32": (np.uint32, 32, 1),
    }
    for name, (dtype, size, kind) in bits.items():
        small = np.arange(20).reshape(4, 5).astype(dtype)
        for large in (small, small - dtype(21) if kind == 2 else small + dtype(2**31)):
            data = zlib.compress(large.tobytes())
            tags = {
                256: 5,
                257: 4,
                258: size,
                259: 8,
                262: 1,
                273: 0,
                277: 1,
                278: 4,
                279: len(data),
                339: kind,
            }
            written = {key: ("I" if key in (256, 257, 273, 279) else "H", [v]) for key, v in tags.items()}
            raw = fuzz_decode.tiff(written, data, 273, "<")
            if large is small:
                out = imgops.decode_image(raw, "unchanged")
                assert np.array_equal(out[0].numpy().astype(np.int64), small.astype(np.int64)), name
                continue
            for _ in range(2):
                with pytest.raises(ValueError, match=rf"int32 or float32 has, got {name} "):
                    imgops.decode_image(raw, "unchanged")
    values = np.random.default_rng(0).integers(0, 4096, (4, 6)).astype(np.uint16)
    pairs = values.reshape(-1, 2).astype(int)
    packed = np.stack([pairs[:, 0] >> 4, (pairs[:, 0] & 15) << 4 | pairs[:, 1] >> 8, pairs[:, 1] & 255], -1)
    data = packed.astype(np.uint8).tobytes()
    tags = {256: 6, 257: 4, 258: 12, 259: 1, 262: 1, 273: 0, 277: 1, 278: 4, 279: len(data)}
    written = {key: ("I" if key in (256, 257, 273, 279) else "H", [v]) for key, v in tags.items()}
    raw = fuzz_decode.tiff(written, data, 273, "<")
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(raw))), values)
    out = imgops.decode_image(raw, "unchanged")
    assert out.dtype == torch.uint16 and np.array_equal(out[0].numpy(), values << 4)
    theirs = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)
    assert theirs is None or np.array_equal(theirs, values << 4)
    assert np.array_equal(imgops.decode_image(raw, "L")[0].numpy(), values >> 4)


def test_unchanged_keeps_the_channels() -> None:
    own = {"1": "L", "P": "RGB", "CMYK": "RGB", "YCbCr": "RGB"}
    for name, raw in levelled().items():
        stored = Image.open(io.BytesIO(raw))
        out = imgops.decode_image(raw, "unchanged")
        if out.dtype == torch.uint8:
            mode = own.get(stored.mode, stored.mode)
            if (
                "transparency" in stored.info
                and stored.format in ("GIF", "PNG")
                and stored.mode in ("P", "L")
            ):
                mode = {"P": "RGBA", "L": "LA"}[stored.mode]
            assert torch.equal(out, shown(raw, mode)), name
        else:
            assert (out.dtype == torch.uint16 and "16" in name) or name.startswith("seed"), name
            assert torch.equal((out.int() >> 8).byte(), shown(raw, ("L", "LA", "RGB", "RGBA")[len(out) - 1]))


# -- frames ------------------------------------------------------------------------------------------


def test_frames_are_pillows() -> None:
    """Every choice of frames, in each mode, is what Pillow shows; alone and in a graph."""
    files = {name: raw for name, raw in levelled().items() if "seed" not in name or name == "seed 15"}
    torch.compiler.reset()
    decode = torch.compile(
        lambda data, frames: imgops.decode_frames(data, frames, "RGBA"),
        fullgraph=True,
        dynamic=True,
        backend="aot_eager",
    )
    animated = 0
    for name, raw in files.items():
        count = getattr(Image.open(io.BytesIO(raw)), "n_frames", 1)
        animated += count > 1
        for mode in MODES:
            wanted = torch.stack([shown(raw, mode, frame=i) for i in range(count)])
            out = imgops.decode_frames(raw, mode=mode)
            assert torch.equal(out, wanted) and out.is_contiguous(), (name, mode)
            last = imgops.decode_frames(raw, mode=mode, memory_format=torch.channels_last)
            assert torch.equal(last, wanted) and last.is_contiguous(memory_format=torch.channels_last), name
            for frames in (slice(1, None), slice(None, None, -2), slice(5), slice(9, 9)):
                chosen = wanted[list(range(count)[frames])]
                assert torch.equal(imgops.decode_frames(raw, frames, mode), chosen), (name, frames)
            for listed in ([count - 1, 0, -1], [0], [-count] * 3, []):
                chosen = wanted[listed]
                for frames in (listed, tuple(listed), torch.tensor(listed, dtype=torch.int32)):
                    assert torch.equal(imgops.decode_frames(raw, frames, mode), chosen), (name, frames)
                if mode == "RGBA":
                    assert torch.equal(decode(tensor(raw), torch.tensor(listed).long()), chosen), name
        turned = imgops.decode_frames(raw, [0], apply_exif_orientation=True)
        assert torch.equal(turned[0], shown(raw, "RGB", True)), name
    assert animated >= 9


def test_frames_do_not_depend_on_those_before() -> None:
    """With every way to dispose of a frame and to blend one, all frames at once are those of Pillow's seek."""
    random = np.random.default_rng(0)
    for case in range(12):
        frames = [Image.fromarray(random.integers(0, 256, (16, 20, 4)).astype(np.uint8)) for _ in range(6)]
        for frame in frames[1:]:  # a part of each frame changes
            clear = Image.new("RGBA", (20, 16))
            left, top = (int(v) for v in random.integers(0, 8, 2))
            clear.paste(frame.crop((0, 0, 9, 7)), (left, top))
            frame.paste(clear)
        file = io.BytesIO()
        frames[0].save(
            file,
            "PNG",
            save_all=True,
            append_images=frames[1:],
            disposal=[int(v) for v in random.integers(0, 3, 6)] if case else 2,
            blend=[int(v) for v in random.integers(0, 2, 6)] if case else 1,
        )
        raw = file.getvalue()
        wanted = []
        for i in range(Image.open(file).n_frames):
            image = Image.open(io.BytesIO(raw))
            image.seek(i)
            wanted.append(np.asarray(image.convert("RGBA")).transpose(2, 0, 1))
        out = imgops.decode_frames(raw, mode="RGBA")
        assert np.array_equal(out.numpy(), np.stack(wanted)), case
        for i in range(len(wanted)):
            assert torch.equal(imgops.decode_frames(raw, [i], "RGBA")[0], out[i]), (case, i)


def test_frames_in_a_graph() -> None:
    """None, slices and lists; the number of frames of a list is known, and an exported program takes other ones."""
    raw = tensor(fuzz_decode.other_seeds()["GIF frames with transparency"])
    all_frames = imgops.decode_frames(raw)
    for frames in (None, slice(1, 4, 2), slice(None, None, -1), [2, -1]):
        call = torch.compile(
            lambda data, f=frames: imgops.decode_frames(data, f) + 0, fullgraph=True, backend="aot_eager"
        )
        assert torch.equal(
            call(raw),
            all_frames
            if frames is None
            else all_frames[range(4)[frames] if isinstance(frames, slice) else frames],
        )

    class Frames(torch.nn.Module):
        def forward(self, data: Tensor, frames: Tensor) -> Tensor:
            return imgops.decode_frames(data, frames, "L")

    dynamic = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Frames(), (raw, torch.tensor([1, 2])), dynamic_shapes=({0: dynamic}, {0: dynamic})
    )
    other = tensor(fuzz_decode.other_seeds()["PNG frames"])
    out = program.module()(other, torch.tensor([2, 0, -1]))
    assert torch.equal(out, imgops.decode_frames(other, [2, 0, 2], "L"))
    with pytest.raises(Exception, match="mode must name channels in a compiled graph"):
        torch.compile(lambda d: imgops.decode_frames(d, mode="unchanged"), fullgraph=True, backend="eager")(
            raw
        )


def test_frames_of_different_kinds_and_sizes(tmp_path: Path) -> None:
    small, large = (Image.new("L", size, 90) for size in ((5, 4), (6, 4)))
    pages = saved(small, "TIFF", save_all=True, append_images=[large, small.convert("I;16"), small])
    must = "decode_frames: frames must be of one size, or be decoded one by one, got 4 x 5 and 4 x 6"
    check_raises(lambda: imgops.decode_frames(pages), ValueError, must)
    assert imgops.decode_frames(pages, [1], "L").shape == (1, 1, 4, 6)
    assert imgops.decode_frames(pages, [2], "unchanged").dtype == torch.uint16
    must = "decode_frames: mode must be 'L', 'LA', 'RGB' or 'RGBA' for frames of different channels, got 'UNCHANGED'"
    check_raises(lambda: imgops.decode_frames(pages, [0, 2], "unchanged"), ValueError, must)
    assert imgops.decode_frames(pages, [0, 3], "unchanged").shape == (2, 1, 4, 5)
    path = tmp_path / "pages.tiff"
    path.write_bytes(pages)
    for frames in ([4], [-5]):
        must = f"decode_frames: frames must be from -4 to 3, got {frames[0]}"
        check_raises(lambda f=frames: imgops.decode_frames(path, f), ValueError, must)
    path.write_bytes(pages[:30])
    with pytest.raises(ValueError, match=rf"decode_frames: data \('{path}'\) must"):
        imgops.decode_frames(path)
    # The pixels of all frames are counted before one is decoded.
    raw = fuzz_decode.other_seeds()["PNG frames"]
    size = 3 * 23 * 17
    assert imgops.decode_frames(raw, max_pixels=size).shape == (3, 3, 23, 17)
    must = (
        f"decode_frames: frames must have at most {size - 1} pixels together (max_pixels), got 3 of 23 x 17"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("a frame is decoded"))
        check_raises(lambda: imgops.decode_frames(raw, max_pixels=size - 1), ValueError, must)
        check_raises(
            lambda: imgops.decode_frames(raw, [1] * 100_000, max_pixels=size),
            ValueError,
            f"decode_frames: frames must have at most {size} pixels together (max_pixels), got 100000 of 23 x 17",
        )
    deep = struct.pack(">IIBBBBB", 5, 4, 16, 0, 0, 0, 0)
    control = b"".join(struct.pack(">I", x) for x in (0, 5, 4, 0, 0)) + b"\0\1\0\1\0\0"
    rows = zlib.compress(bytes(11 * 4))
    chunks = [(b"IHDR", deep), (b"acTL", b"\0\0\0\2\0\0\0\0"), (b"fcTL", control), (b"IDAT", rows)]
    chunks += [(b"fcTL", b"\0\0\0\1" + control[4:]), (b"fdAT", b"\0\0\0\2" + rows), (b"IEND", b"")]
    whole = _png(*chunks)
    assert imgops.decode_frames(whole).shape == (2, 3, 4, 5)
    must = "decode_frames: mode must be 'L', 'LA', 'RGB' or 'RGBA' for an animated PNG of 16 bits, got 'UNCHANGED'"
    check_raises(lambda: imgops.decode_frames(whole, mode="unchanged"), ValueError, must)
    # A frame whose data end early is refused, also if only a later one is asked for.
    chunks[5] = (b"fdAT", b"\0\0\0\2" + zlib.compress(bytes(11 * 3)))
    short = _png(*chunks)
    assert imgops.decode_frames(short, [0]).shape == (1, 3, 4, 5)
    must = "decode_frames: data must be a complete image, got a PNG whose data end early"
    check_raises(lambda: imgops.decode_frames(short, [1]), ValueError, must)


def _png(*chunks: tuple[bytes, bytes]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


# -- files that are refused --------------------------------------------------------------------------


def test_other_kinds_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every format that Pillow writes is decoded, or refused before a decoder of Pillow sees it."""
    Image.init()
    read, refused = set(), set()
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8))
    for format in sorted(Image.SAVE):
        for mode in ("RGB", "L", "1", "RGBA"):
            try:
                raw = saved(image.convert(mode), format)
                Image.open(io.BytesIO(raw)).load()
            except Exception:
                continue
            try:
                imgops.decode_image(raw)
                read.add(format)
            except ValueError as error:
                must = f"decode_image: data must be a {ALL_KINDS} file, got {len(raw)} bytes that begin with"
                assert str(error).startswith(must)  # noqa: PT017
                refused.add(format)
    known = {"JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000"}
    assert read - {"AVIF", "HEIF"} == known
    assert refused >= {"DDS", "ICNS", "ICO", "IM", "PCX", "PPM", "SGI", "TGA"}
    for raw in (
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
        b"\xd7\xcd\xc6\x9a" + bytes(40),
        b"SIMPLE  =",
        b"8BPS",
        b"%PDF-1.4",
    ):
        with pytest.raises(ValueError, match=f"decode_image: data must be a {ALL_KINDS} file"):
            imgops.decode_image(raw)
    # Kinds that Pillow lacks.
    avif = b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf"
    monkeypatch.setattr(features, "check", lambda name: False)
    must = "decode_image: data must be a file of a kind that Pillow reads, got"
    without = "without which the installed Pillow was built"
    for raw, kind in ((avif, "AVIF"), (b"RIFF\0\0\0\0WEBPVP8 ", "WebP"), (b"\xff\x4f\xff\x51", "JPEG 2000")):
        check_raises(
            lambda raw=raw: imgops.decode_image(raw), ValueError, f"{must} a file of {kind}, {without}"
        )


class Heif(ImageFile.ImageFile):
    """A plugin that reads what it calls a HEIF: 16 bytes, and 4 x 5 pixels."""

    format = "HEIF"

    def _open(self) -> None:
        self._size, self._mode = (5, 4), "RGB"
        self.tile = [ImageFile._Tile("raw", (0, 0, 5, 4), 16, ("RGB", 0, 1))]


def test_heif_by_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b"\0\0\0\x10ftypheic\0\0\0\0" + bytes(range(60))
    monkeypatch.delitem(Image.OPEN, "HEIF", raising=False)
    must = "data must be a file of a kind that Pillow reads"
    got = "a HEIF file, for which pillow_heif.register_heif_opener() must be called"
    check_raises(lambda: imgops.decode_image(raw), ValueError, f"decode_image: {must}, got {got}")
    check_raises(lambda: imgops.decode_frames(raw), ValueError, f"decode_frames: {must}, got {got}")
    check_raises(
        lambda: imgops.EncodedImages([raw]), ValueError, f"decode_images: files[0] {must[5:]}, got {got}"
    )
    monkeypatch.setitem(Image.OPEN, "HEIF", (Heif, None))
    wanted = torch.arange(60, dtype=torch.uint8).reshape(4, 5, 3).permute(2, 0, 1)
    assert torch.equal(imgops.decode_image(raw), wanted)
    assert torch.equal(imgops.decode_frames(raw), wanted[None])
    assert imgops.EncodedImage(raw).shape == (3, 4, 5)
    with pytest.raises(ValueError, match="data must be an image of at most 19 pixels"):
        imgops.decode_image(raw, max_pixels=19)
    for cut in range(16, len(raw)):
        with pytest.raises(ValueError, match="data must be a complete HEIF image"):
            imgops.decode_image(raw[:cut])


def test_heif_by_pillow_heif(monkeypatch: pytest.MonkeyPatch) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    monkeypatch.setitem(Image.OPEN, "HEIF", (pillow_heif.HeifImageFile, None))
    monkeypatch.setattr(Image, "ID", [*Image.ID, "HEIF"])
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (40, 64, 4), np.uint8))
    for mode in ("RGB", "RGBA", "L"):
        pillow_heif.register_heif_opener()
        file = io.BytesIO()
        image.convert(mode).save(file, "HEIF", save_all=True, append_images=[image.convert(mode).rotate(180)])
        raw = file.getvalue()
        for wanted in MODES:
            assert torch.equal(imgops.decode_image(raw, wanted), shown(raw, wanted))
            both = torch.stack([shown(raw, wanted, frame=i) for i in range(2)])
            assert torch.equal(imgops.decode_frames(raw, None, wanted), both)
        refused = 0
        for cut in range(0, len(raw) - 1, 37):
            try:  # the first image may be whole
                assert torch.equal(imgops.decode_image(raw[:cut], "RGB"), shown(raw, "RGB"))
            except ValueError as error:
                assert str(error).startswith("decode_image: data must")  # noqa: PT017
                refused += 1
        assert refused > 5


def test_damaged_files_of_every_kind() -> None:
    """A file that is cut or changed is refused by one ValueError, or gives a whole image."""
    rng = np.random.default_rng(0)
    for name, raw in fuzz_decode.other_seeds().items():
        mode = "unchanged" if name in NUMBERS or "16" in name else "RGBA"
        whole = imgops.decode_image(raw, mode)
        frames = getattr(Image.open(io.BytesIO(raw)), "n_frames", 1)
        refused = 0
        for cut in range(0, len(raw), 1 if len(raw) < 1000 else 5):
            try:
                out = imgops.decode_image(raw[:cut], mode)
            except ValueError as error:
                assert str(error).startswith("decode_image: data must be")  # noqa: PT017
                refused += 1
                continue
            # Only what follows the pixels of the first frame was cut.
            assert torch.equal(out, whole), (name, cut)
        assert refused > 50, name
        if frames > 1:
            everything = imgops.decode_frames(raw, mode="RGBA")
            for cut in range(0, len(raw) - 4, 7):
                try:
                    out = imgops.decode_frames(raw[:cut], mode="RGBA")
                except ValueError as error:
                    assert str(error).startswith("decode_frames: ")  # noqa: PT017
                else:  # whole frames that a GIF or a chain of pages ends after
                    assert torch.equal(out, everything[: len(out)]), (name, cut)
        for _ in range(60):
            changed = bytearray(raw)
            for at in rng.integers(0, len(raw), 1 + rng.integers(3)):
                changed[at] = rng.integers(256)
            fuzz_decode.check(bytes(changed), "unchanged")
            fuzz_decode.check_frames(bytes(changed), "RGB", slice(None))


def test_pixels_that_a_file_lacks() -> None:
    """Pillow fills them in, or goes on: a TIFF with too few strips, a JPEG 2000 that ends between two tiles."""
    early = "got a TIFF whose data end early"
    gray = Image.fromarray(np.random.default_rng(0).integers(1, 256, (40, 64), np.uint8))
    tags = {
        **dict.fromkeys((259, 262, 277), ("H", [1])),
        256: ("I", [64]),
        257: ("I", [40]),
        258: ("H", [8]),
        273: ("I", [0, 1280]),
        278: ("I", [20]),
        279: ("I", [1280, 1280]),
    }
    raw = fuzz_decode.tiff(tags, gray.tobytes(), 273)
    assert np.array_equal(imgops.decode_image(raw, "L")[0].numpy(), np.asarray(gray))
    tags |= {273: ("I", [0]), 279: ("I", [1280])}
    lacking = fuzz_decode.tiff(tags, gray.tobytes(), 273)
    assert (np.asarray(Image.open(io.BytesIO(lacking)))[20:] == 0).all()  # Pillow's pixels
    with pytest.raises(ValueError, match=early):
        imgops.decode_image(lacking)
    fax = saved(gray.convert("1"), "TIFF", compression="group3", strip_size=80)
    for cut in range(len(fax)):
        try:
            out = imgops.decode_image(fax[:cut], "L")
        except ValueError:
            continue
        assert torch.equal(out, imgops.decode_image(fax, "L"))
    tiles = saved(gray, "JPEG2000", tile_size=(16, 16), no_jp2=True)
    starts = [i for i in range(len(tiles)) if tiles[i : i + 2] == b"\xff\x90"]
    assert len(starts) >= 12
    for at in starts[1:]:
        for tail in (b"", b"\xff\xd9"):
            with pytest.raises(ValueError, match="decode_image: data must be a complete"):
                imgops.decode_image(tiles[:at] + tail)


def test_a_page_that_libtiff_refuses() -> None:
    """Pillow shows zeros, or the page before it, and says nothing; black pages are read."""
    rng, black = np.random.default_rng(0), Image.new("RGB", (9, 7))
    first, second = (Image.fromarray(rng.integers(0, 256, (7, 9, 3), np.uint8)) for _ in range(2))
    for big_tiff in (False, True):
        for compression in ("raw", "tiff_lzw"):
            pages = {"save_all": True, "append_images": [black, second, black.convert("I;16")]}
            raw = saved(first, "TIFF", compression=compression, big_tiff=big_tiff, **pages)
            out = imgops.decode_frames(raw)
            for i in range(4):
                assert torch.equal(out[i], shown(raw, "RGB", frame=i))
    image = Image.open(io.BytesIO(raw := saved(first, "TIFF", compression="tiff_lzw", **pages)))
    image.seek(2)
    at = image.tag_v2.offset
    count = int.from_bytes(raw[at : at + 2], "little")
    # Its last entry is one that libtiff cannot read.
    last = at + 2 + 12 * (count - 1)
    broken = raw[:last] + struct.pack("<HHII", 0xFFFF, 99, 2**31, 0) + raw[last + 12 :]
    several = [raw[:at] + struct.pack("<H", n) + raw[at + 2 :] for n in (count - 1, count + 1, 200, 5000)]
    for changed in (broken, *several):
        for frames in ([0, 2], [2]):
            try:
                out = imgops.decode_frames(changed, frames)
            except ValueError as error:
                assert str(error).startswith("decode_frames: data must be")  # noqa: PT017
            else:
                assert torch.equal(out[-1], shown(raw, "RGB", frame=2))


#: Measures the memory that files take which are refused: of each line, a path and the arguments of decode_frames.
_MEASURE = """
import json, sys
import imgops, torch
imgops.decode_image(imgops.encode_image(torch.zeros(3, 8, 8, dtype=torch.uint8), "png"))
def peak():
    return int(next(x for x in open("/proc/self/status") if x.startswith("VmHWM")).split()[1])
for line in sys.stdin:
    path, max_pixels = json.loads(line)
    calls = (
        lambda: imgops.decode_image(path, max_pixels=max_pixels),
        lambda: imgops.decode_frames(path, max_pixels=max_pixels),
        lambda: imgops.EncodedImages([path], max_pixels=max_pixels),
    )
    before, text = peak(), ""
    for call in calls:
        try:
            call()
        except ValueError as error:
            text = str(error)
    print(json.dumps((path, (peak() - before) // 1024, text)), flush=True)
"""


@cache
def bombs() -> dict[str, tuple[bytes, int]]:
    """Return files that are much larger decoded, each with ``max_pixels``."""
    side, most = 2500, 10**6
    flat = Image.new("RGB", (side, side), (1, 2, 3))
    several = {"save_all": True, "append_images": [Image.new("RGB", (side, side), (4, 5, 6))]}
    files = {}
    for format, keywords in (
        *(("TIFF", {"compression": c, **several}) for c in ("tiff_lzw", "tiff_adobe_deflate", "jpeg")),
        *(("GIF", {}), ("GIF", several), ("PNG", several), ("WEBP", {"method": 0, **several})),
        *(("AVIF", {"speed": 10}), ("JPEG2000", {})),
    ):
        if {"AVIF": "avif", "JPEG2000": "jpg_2000"}.get(format, "zlib") in features.get_supported():
            files[f"{format} {len(files)}"] = saved(flat, format, **keywords), most
    fields = struct.pack("<HHBBB", 4, 4, 0x80, 0, 0) + bytes(6)
    frame = b"," + struct.pack("<HHHHB", 0, 0, 4, 4, 0) + b"\2\3\x44\x34\x05\0"
    files["a GIF of a large screen"] = b"GIF89a" + b"\xff" * 4 + fields[4:] + frame + b";", 10**8
    huge = b"!\xf9\4\x08\0\0\0\0," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\2\3\x44\x34\x05\0"
    files["a GIF of a large frame"] = b"GIF89a" + fields + frame + huge + huge + b";", 10**8
    zeros = zlib.compressobj(9)
    tile = b"".join(zeros.compress(bytes(1 << 20)) for _ in range(400)) + zeros.flush()
    tags = {
        **dict.fromkeys((256, 257), ("I", [8])),
        **dict.fromkeys((258, 259), ("H", [8])),
        **dict.fromkeys((262, 277), ("H", [1])),
        **dict.fromkeys((322, 323), ("I", [20480])),
        324: ("I", [0]),
        325: ("I", [len(tile)]),
    }
    files["a TIFF of a large tile"] = fuzz_decode.tiff(tags, tile, 324), 10**8
    small = fuzz_decode.other_seeds()["BMP RGB"]
    files["a BMP of a large header"] = small[:18] + struct.pack("<ii", 60000, 60000) + small[26:], 10**8
    return files


def test_bombs_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    lines = []
    for i, (raw, most) in enumerate(bombs().values()):
        (tmp_path / f"{i}").write_bytes(raw)
        lines.append(json.dumps((str(tmp_path / f"{i}"), most)))
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _MEASURE],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    taken = [json.loads(line) for line in found.stdout.splitlines()]
    for (name, (raw, _)), (_, grown, text) in zip(bombs().items(), taken, strict=True):
        assert "max_pixels" in text, (name, text)
        assert grown <= 6 + 3 * len(raw) // (1 << 20), (name, grown)
