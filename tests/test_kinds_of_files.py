"""Every kind of file by every function that reads files, against Pillow: pixels, boxes, frames; damaged files; bombs."""

from __future__ import annotations

import ctypes
import io
import itertools
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image, ImageFile, ImageOps, features
from torch import Tensor

import imgops
from imgops import decode_frames, decode_image, encode_image
from imgops.kernels.cpu import _libjpeg
from tests import files, fuzz_decode
from tests.checks import check_raises
from tests.files import MODES, NUMBERS, kinds, levelled, noise, planar, saved, shown, tensor, tiff
from tests.fuzz_decode import check, check_frames, outcome, readers
from tests.groups import compile_together
from tests.tiers import every_night, nightly_unless

#: Pillow warns of damaged files.
pytestmark = pytest.mark.filterwarnings("ignore")
EVERY_MODE = (*MODES, "unchanged")


@contextmanager
def naming(*case: Any) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{case}: {error}") from error


# -- whole files -------------------------------------------------------------------------------------

_QUICK = (("RGB", False), ("L", True), ("unchanged", True))


@pytest.mark.parametrize(
    ("mode", "turned"),
    nightly_unless(lambda case: case in _QUICK, itertools.product(EVERY_MODE, (False, True))),
)
def test_every_kind_has_the_pixels_of_pillow(mode: str, turned: bool) -> None:
    """By every reader, planar and interleaved, whole and a box, with libjpeg-turbo and without."""
    for i, (name, raw) in enumerate(levelled().items()):
        with naming(name):
            assert check(raw, mode, turned, i / len(levelled())) != "refused"


def test_unchanged_keeps_the_channels() -> None:
    """A palette is looked up, and CMYK is converted."""
    dtypes = dict(zip(NUMBERS, (torch.int32, torch.float32), strict=True))
    for name, raw in kinds().items():
        image, out = Image.open(io.BytesIO(raw)), decode_image(raw, "unchanged")
        is_clear = "transparency" in image.info and (image.mode == "P" or image.format == "GIF")
        channels = {"P": 3, "CMYK": 3}.get(image.mode, len(image.getbands())) + is_clear
        assert len(out) == (2 if name == "PNG ;16 of 2" else channels), name  # which is RGBA for Pillow
        assert out.dtype == dtypes.get(name, torch.uint16 if ";16" in name else torch.uint8), name


#: Calls of a file's bytes, an integer, a box and indices of frames.
CALLS: dict[str, Callable[..., Any]] = {
    "turned": lambda data, *_: decode_image(data, "LA", apply_exif_orientation=True),
    "of unknown size": lambda data, *_: imgops.resize(imgops.pad(decode_image(data), 2, "reflect"), (32, 24)),
    "of a known box": lambda data, left, *_: imgops.resize(
        decode_image(data, box=(left, 1, left + 3, 3), memory_format=torch.channels_last), (8, 8)
    ),
    "of a box": lambda data, left, box, *_: decode_image(data, box=box),
    "frames": lambda data, left, box, frames: decode_frames(data, frames, "RGBA"),
    "slice": lambda data, *_: decode_frames(data, slice(None, None, -1), "L"),
    "list": lambda data, *_: decode_frames(data, [0, -1], apply_exif_orientation=True),
    "again": lambda data, left, *_: encode_image(decode_image(data), "jpeg", left + 40),
}


@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
def test_one_graph_for_every_kind(backend: str) -> None:
    """The graph knows the size of a box of numbers, and how many frames a list has."""
    graph, counting = compile_together(CALLS, backend, dynamic=True)
    for i, (name, raw) in enumerate(kinds().items()):
        box, frames = torch.tensor([i % 3, 0, i % 3 + 2, 3]), torch.tensor([-1, 0, -1][i % 2 :])
        given = tensor(raw), i % 2 + 2, box, frames
        if name not in NUMBERS:
            found, wanted = graph(*given), {key: call(*given) for key, call in CALLS.items()}
            assert all(torch.equal(found[key], x) for key, x in wanted.items()), name
    assert counting.count == 1


def test_other_kinds_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every format that Pillow writes is decoded, or refused before a decoder of Pillow sees it."""
    Image.init()
    read, refused = set(), set()
    for format, mode in itertools.product(sorted(Image.SAVE), ("RGB", "1")):
        try:
            raw = saved(Image.fromarray(noise(16, 16, 3)).convert(mode), format)
            files.opened(raw)
        except Exception:
            continue
        found = outcome(readers(raw, "RGB")["decode_image"])
        (refused if isinstance(found, str) else read).add(format)
        assert isinstance(found, Tensor) or " HEIF file, got " in found
    assert read - {"AVIF", "HEIF"} == {"JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000"}
    assert refused >= {"DDS", "ICNS", "ICO", "IM", "PCX", "PPM", "SGI", "TGA"}
    avif = b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf"
    monkeypatch.setattr(features, "check", lambda name: False)
    must = "decode_image: data must be a file of a kind that Pillow reads, got a file of"
    for raw, kind in ((avif, "AVIF"), (b"RIFF\0\0\0\0WEBPVP8 ", "WebP"), (b"\xff\x4f\xff\x51", "JPEG 2000")):
        got = f"{must} {kind}, without which the installed Pillow was built"
        check_raises(lambda raw=raw: decode_image(raw), ValueError, got)


class Heif(ImageFile.ImageFile):
    """A plugin that reads what it calls a HEIF: 16 bytes, and 4 x 5 pixels."""

    format = "HEIF"

    def _open(self) -> None:
        self._size, self._mode = (5, 4), "RGB"
        self.tile = [ImageFile._Tile("raw", (0, 0, 5, 4), 16, ("RGB", 0, 1))]


def test_heif_by_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b"\0\0\0\x10ftypheic\0\0\0\0" + bytes(range(60))
    monkeypatch.delitem(Image.OPEN, "HEIF", raising=False)
    must = "must be a file of a kind that Pillow reads, got a HEIF file, for which pillow_heif.register_heif_opener() must be called"
    assert {outcome(read) for read in readers(raw, "RGB").values()} == {must}
    check_raises(lambda: decode_frames(raw), ValueError, f"decode_frames: data {must}")
    monkeypatch.setitem(Image.OPEN, "HEIF", (Heif, None))
    monkeypatch.setattr(Image, "ID", [*Image.ID, "HEIF"])
    assert check(raw) == "decoded" and check_frames(raw, "RGB", [0]) == "frames"
    assert torch.equal(decode_image(raw), planar(np.arange(60, dtype=np.uint8).reshape(4, 5, 3)))
    with pytest.raises(ValueError, match="data must be an image of at most 19 pixels"):
        decode_image(raw, max_pixels=19)
    for cut in range(16, len(raw)):
        with pytest.raises(ValueError, match="data must be a complete HEIF image"):
            decode_image(raw[:cut])


# -- frames ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", nightly_unless(lambda mode: mode == "RGBA", MODES))
def test_frames_are_pillows(mode: str) -> None:
    """Every choice of frames, one by one and together, for every way to dispose of a frame and to blend one."""
    animations = {f"animation {seed}": files.animation(seed) for seed in range(6)}
    known = {name: raw for name, raw in kinds().items() if name not in NUMBERS}
    for name, raw in (known | animations).items():
        count = files.count_frames(raw)
        assert count > 1 or "frames" not in name
        lists = [[count - 1, 0, -1], [-count] * 3, [], *([i] for i in range(count))]
        for frames in (*lists, slice(None), slice(1, None), slice(None, None, -2), slice(5), slice(9, 9)):
            with naming(name, frames):
                assert check_frames(raw, mode, frames) == "frames"
        whole = decode_frames(raw, mode=mode)
        last = decode_frames(raw, mode=mode, memory_format=torch.channels_last)
        assert whole.is_contiguous() and last.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(last, whole)
        for form in (tuple, lambda each: torch.tensor(each, dtype=torch.int32)):
            assert torch.equal(decode_frames(raw, form(lists[0]), mode), whole[lists[0]]), name
        turned = decode_frames(raw, [0], mode, apply_exif_orientation=True)
        assert torch.equal(turned[0], shown(raw, mode, True)), name


def test_frames_of_different_kinds_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (Image.new("L", size, 90) for size in ((5, 4), (6, 4)))
    pages = saved(small, "TIFF", save_all=True, append_images=[large, small.convert("I;16"), small])
    # A PNG of 16 bits, and one whose second frame ends early.
    control = b"".join(struct.pack(">I", x) for x in (0, 5, 4, 0, 0)) + b"\0\1\0\1\0\0"
    rows, end = zlib.compress(bytes(11 * 4)), (b"IEND", b"")
    chunks = [files.png_header(5, 4, 16, 0), (b"acTL", b"\0\0\0\2\0\0\0\0"), (b"fcTL", control)]
    chunks += [(b"IDAT", rows), (b"fcTL", b"\0\0\0\1" + control[4:])]
    deep = files.png(*chunks, (b"fdAT", b"\0\0\0\2" + rows), end)
    short = files.png(*chunks, (b"fdAT", b"\0\0\0\2" + zlib.compress(bytes(11 * 3))), end)
    for raw, frames, mode, shape in (
        *((pages, [1], "L", (1, 1, 4, 6)), (pages, [2], "unchanged", (1, 1, 4, 5))),
        *((pages, [0, 3], "unchanged", (2, 1, 4, 5)), (deep, None, "RGB", (2, 3, 4, 5))),
        *((short, [0], "RGB", (1, 3, 4, 5)), (kinds()["PNG frames"], None, "RGB", (3, 3, 23, 17))),
    ):
        out = decode_frames(raw, frames, mode, max_pixels=3 * 23 * 17)
        assert out.shape == shape and (out.dtype == torch.uint16) == (frames == [2])
    one_of = "mode must be 'L', 'LA', 'RGB' or 'RGBA' for"
    for raw, frames, mode, must in (
        (pages, None, "RGB", "frames must be of one size, or be decoded one by one, got 4 x 5 and 4 x 6"),
        (pages, [0, 2], "unchanged", f"{one_of} frames of different channels, got 'UNCHANGED'"),
        *((pages, [i], "RGB", f"frames must be from -4 to 3, got {i}") for i in (4, -5)),
        (deep, None, "unchanged", f"{one_of} an animated PNG of 16 bits, got 'UNCHANGED'"),
        # A frame whose data end early is refused, also if only a later one is asked for.
        (short, [1], "RGB", "data must be a complete image, got a PNG whose data end early"),
    ):
        message = f"decode_frames: {must}"
        check_raises(lambda r=raw, f=frames, m=mode: decode_frames(r, f, m), ValueError, message)
    # The pixels of all frames are counted before one is decoded.
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("a frame is decoded"))
    for frames, count, most in ((None, 3, 3 * 23 * 17 - 1), ([1] * 100_000, 100_000, 3 * 23 * 17)):
        must = f"frames must have at most {most} pixels together (max_pixels), got {count} of 23 x 17"
        call = lambda f=frames, m=most: decode_frames(kinds()["PNG frames"], f, max_pixels=m)
        check_raises(call, ValueError, f"decode_frames: {must}")


# -- numbers -----------------------------------------------------------------------------------------


def all_readers(raw: bytes, mode: str, **how: Any) -> dict[str, Any]:
    """Return the readers of one image, and that of frames."""
    return readers(raw, mode, **how) | {"frames": lambda box: decode_frames(raw, None, mode, **how)[0]}


def by_opencv(raw: bytes, channels: int) -> np.ndarray:
    """Return the numbers (H, W, C) that OpenCV reads; it has no files of two channels."""
    pixels = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)
    return pixels.reshape(*pixels.shape[:2], -1)[..., [2, 1, 0, 3][:channels] if channels > 1 else [0]]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_sixteen_bits_of_a_png(channels: int) -> None:
    """They are those that were written, by imgops or by hand, by every reader; other chunks do not change them."""
    pixels = np.random.default_rng(0).integers(0, 65536, (7, 9, channels)).astype(np.uint16)
    clear = (b"tRNS", pixels[0, 0].astype(">u2").tobytes())
    chunks = [(b"gAMA", struct.pack(">I", 45455)), *([clear] if channels in (1, 3) else [])]
    made = [(files.deep_png(pixels), planar(pixels)), (files.deep_png(pixels, *chunks), planar(pixels))]
    for image in (planar(pixels), planar(pixels).flip(-1)[..., ::2]) if channels != 2 else ():
        interleaved = image.permute(1, 2, 0).contiguous().permute(2, 0, 1)
        made += [(bytes(encode_image(x, "png").numpy()), image) for x in (image, interleaved)]
    for raw, wanted in made:
        assert check(raw, "unchanged") == "unchanged"
        assert all(torch.equal(read(None), wanted) for read in all_readers(raw, "unchanged").values())
        if channels != 2:
            assert torch.equal(planar(by_opencv(raw, channels)), wanted)


def tiff_numbers(dtype: str, channels: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype.startswith("f"):
        numbers = rng.normal(0, 1e6, (9, 7, channels)).astype(dtype)
        numbers[0, :4] = np.array([np.inf, -np.inf, np.nan, -3.5])[:, None]
        return numbers
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (9, 7, channels), dtype, endpoint=True)


def must_be_read(planes: bool, deflate: bool) -> set[str]:
    """Return the dtypes, channels and modes of numbers that are not refused."""
    of_8, of_16 = ({f"{bits} 1 L", f"{bits} 3 RGB", f"{bits} 4 RGBA"} for bits in ("u1", "u2"))
    of_8 |= {f"u1 {channels} unchanged" for channels in (1, 3, 4)}
    single = {f"{dtype} 1 unchanged" for dtype in ("u2", "i2", "i4", "f4")}
    if planes:
        return of_8 | (of_16 | single if deflate else set())
    return of_8 | of_16 | single | {"u2 3 unchanged", "u2 4 unchanged"}


@pytest.mark.parametrize(
    ("planes", "deflate", "order"), itertools.product((False, True), (False, True), "<>")
)
def test_numbers_of_a_tiff(planes: bool, deflate: bool, order: str) -> None:
    """They are those that were written, by every reader, or refused where Pillow or OpenCV would give others.

    In both orders of bytes; in strips, or channel by channel.
    """
    read = set()
    for dtype, channels, white in itertools.product(
        ("u1", "u2", "u4", "i1", "i2", "i4", "f4"), (1, 3, 4), (False, True)
    ):
        if (white or dtype not in ("u1", "u2")) and channels > 1:
            continue
        numbers = tiff_numbers(dtype, channels)
        tags = {262: [0]} if white else {}
        raw = tiff(numbers, order, rows=4, planes=planes, deflate=deflate, tags=tags)
        unchanged = 255 - numbers if white and dtype == "u1" else numbers
        levels = {"u1": unchanged, "u2": numbers >> 8 if dtype == "u2" else None}.get(dtype)
        for mode, wanted in (("unchanged", unchanged), ({1: "L", 3: "RGB", 4: "RGBA"}[channels], levels)):
            case = f"{dtype} {channels} {mode}{' of white' * white}"
            for name, reader in all_readers(raw, mode).items():
                found = outcome(reader)
                if isinstance(found, Tensor):
                    read.add(case)
                    pixels = found.permute(1, 2, 0).numpy()
                    assert wanted is not None, (case, name)
                    assert np.array_equal(pixels, wanted, equal_nan=True), (case, name)
        if dtype == "u2" and not planes:
            assert np.array_equal(by_opencv(raw, channels), numbers)
    assert read >= must_be_read(planes, deflate)


def test_sixteen_bits_of_files_that_are_turned_and_of_pages() -> None:
    pixels = np.random.default_rng(0).integers(0, 65536, (13, 8, 3)).astype(np.uint16)
    for orientation, channels in itertools.product(range(1, 9), (1, 3)):
        gray = saved(Image.fromarray(pixels[..., 0]), "PNG", exif=files.oriented(orientation))
        turn = planar(ImageOps.exif_transpose(Image.open(io.BytesIO(gray))))
        each, exif = pixels[..., :1].repeat(channels, 2), files.oriented(orientation).tobytes()
        ways = [(files.deep_png(each, (b"eXIf", exif.removeprefix(b"Exif\0\0"))), True)]
        for order, applied in itertools.product("<>", (False, True)):  # Pillow applies that of a TIFF in both
            ways.append((tiff(each, order, deflate=True, tags={274: [orientation]}), applied))
        for raw, applied in ways:
            for name, reader in all_readers(raw, "unchanged", apply_exif_orientation=applied).items():
                assert torch.equal(reader(None), turn.expand(channels, -1, -1)), (name, orientation)
    pages = cv2.imencodemulti(".tiff", [pixels[..., ::-1], pixels[::-1, :, ::-1]])[1].tobytes()
    wanted = torch.stack([planar(pixels), planar(pixels).flip(1)])
    assert torch.equal(decode_frames(pages, mode="unchanged"), wanted)


@pytest.mark.parametrize("bits", [8, 16])
def test_no_channel_of_a_tiff_is_dropped(bits: int) -> None:
    """Of every kind of further channels: unchanged, a file has all channels that were written, or is refused."""
    rng, kept, refused = np.random.default_rng(0), 0, 0
    extras = ((), (0,), (1,), (2,), (999,), (0, 0), (1, 0), (2, 0), (0, 0, 0), (2, 0, 0))
    for (photometric, colors), extra, order in itertools.product(
        ((0, 1), (1, 1), (2, 3), (3, 1), (5, 4)), extras, "<>"
    ):
        pixels = rng.integers(0, 1 << bits, (6, 5, colors + len(extra))).astype(f"u{bits // 8}")
        palette = rng.integers(0, 65536, 768).tolist() if photometric == 3 else []
        raw = tiff(pixels, order, tags={262: [photometric], 338: extra, 320: palette})
        found = [outcome(reader) for reader in all_readers(raw, "unchanged").values()]
        case = f"{bits} bits, photometric {photometric}, extra {extra}: {found}"
        if isinstance(found[0], str):
            assert all(isinstance(other, str) for other in found), case
            refused += 1
            continue
        assert all(isinstance(other, Tensor) and torch.equal(other, found[0]) for other in found), case
        as_colors = {3: 3, 5: 3}.get(photometric, colors)  # a palette, and CMYK
        assert len(found[0]) == as_colors + len(extra), case
        if photometric in (1, 2) and extra[:1] != (1,):
            assert torch.equal(found[0], planar(pixels)), case
        elif bits == 16 and photometric != 0:  # what Pillow converts keeps 8 bits: CMYK, colors times alpha
            assert torch.equal(found[0], shown(raw, "RGBA" if len(found[0]) == 4 else "RGB")), case
        kept += 1
    assert kept > 10 and refused > 10, (kept, refused)


def test_numbers_that_pillow_wraps_or_does_not_scale() -> None:
    """int8 below 0 and uint32 from 2^31 on are refused; 12 bits become 16, as OpenCV makes them."""
    for name, small, large in (
        ("int8", np.int8(0), np.int8(-21)),
        ("uint32", np.uint32(0), np.uint32(2**31)),
    ):
        numbers = np.arange(20).reshape(4, 5, 1).astype(small.dtype)
        out = decode_image(tiff(numbers, deflate=True), "unchanged")
        assert np.array_equal(out[0].numpy().astype(np.int64), numbers[..., 0].astype(np.int64))
        for _ in range(2):
            with pytest.raises(ValueError, match=rf"int32 or float32 has, got {name} "):
                decode_image(tiff(numbers + large, deflate=True), "unchanged")
    values = np.random.default_rng(0).integers(0, 4096, (4, 6)).astype(np.uint16)
    first, second = values[:, ::2].astype(int), values[:, 1::2].astype(int)
    packed = np.stack([first >> 4, (first & 15) << 4 | second >> 8, second & 255], -1).astype(np.uint8)
    raw = tiff(packed.reshape(4, 9, 1), tags={256: [6], 258: [12], 339: []})
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(raw))), values)
    out = decode_image(raw, "unchanged")
    assert out.dtype == torch.uint16 and np.array_equal(out[0].numpy(), values << 4)
    theirs = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)
    assert theirs is None or np.array_equal(theirs, values << 4)
    assert np.array_equal(decode_image(raw, "L")[0].numpy(), values >> 4)


# -- damaged files -----------------------------------------------------------------------------------


def test_files_that_are_refused() -> None:
    """Every reader refuses them, in the same words."""
    for name, (raw, must) in files.REFUSED.items():
        with naming(name):
            assert check(raw) == "refused" and check_frames(raw, "RGB", [0]) == "refused frames"
            found = outcome(readers(raw, "RGB", max_pixels=fuzz_decode.MAX_PIXELS)["decode_image"])
            assert isinstance(found, str) and found.startswith(must), found


def check_cuts(raw: bytes, cuts: Iterable[int], mode: str = "RGBA") -> int:
    """Check that a file that is cut is refused, or its image is whole; return how often it is refused."""
    whole, refused, is_jpeg = decode_image(raw, mode), 0, raw.startswith(b"\xff\xd8")
    for cut in cuts:
        # A JPEG may be closed with its marker of an end, or go on with another file.
        tails = (b"", b"\xff\xd9", raw) if is_jpeg and cut > raw.index(b"\xff\xda") + 14 else (b"",)
        for tail in tails:
            found = outcome(readers(raw[:cut] + tail, mode)["decode_image"])
            if isinstance(found, str):
                refused += 1
                continue
            # The cut was after the pixels, or inside of the last block of 16 x 16 of a JPEG.
            assert found.shape == whole.shape and (is_jpeg or torch.equal(found, whole)), cut
            assert any(torch.equal(found[:, rows], whole[:, rows]) for rows in (slice(-16), slice(16))), cut
            assert (found != whole).any(0).sum() <= 16 * 16, cut
    return refused


@pytest.mark.parametrize("step", nightly_unless(lambda step: step > 1, [97, 1]))
def test_files_that_end_early(step: int) -> None:
    for i, (name, raw) in enumerate(kinds().items()):
        mode = "unchanged" if name in NUMBERS or ";16" in name else "RGBA"
        cuts = [*range(i % step, len(raw), step), *range(len(raw) - 8, len(raw))]
        with naming(name):
            assert check_cuts(raw, cuts, mode) > len(cuts) // 5
        if files.count_frames(raw) == 1:
            continue
        everything = decode_frames(raw, mode="RGBA")
        for cut in cuts:
            try:
                out = decode_frames(raw[:cut], mode="RGBA")
            except ValueError as error:
                assert str(error).startswith("decode_frames: ")  # noqa: PT017
            else:  # whole frames that a GIF or a chain of pages ends after
                assert torch.equal(out, everything[: len(out)]), (name, cut)


@pytest.mark.parametrize("count", nightly_unless(lambda count: count < 1000, [40, 1000]))
def test_mutated_files(count: int) -> None:
    """A small part of ``python -m tests.fuzz_decode``; 100,000 files were run once, and no fault was found."""
    assert fuzz_decode.run(count)["refused"] > count // 4


def test_what_a_box_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequential JPEG may end below the box; a progressive one may not, nor may the box be reached by the damage.

    This holds for libjpeg-turbo and for Pillow.
    """
    refused = []
    for name, raw in files.ordinary_jpegs((200, 200)).items():
        middle = len(raw) * 2 // 3
        cut, wrong = raw[:middle], raw[:middle] + b"\xff\xc4" + raw[middle + 2 :]
        if b"\xff\xc2" in raw:  # progressive
            refused.append((cut, (10, 10, 60, 40)))
            continue
        mode = name.split()[1]
        for damaged in (cut, wrong):
            for bottom, module in itertools.product((15, 16, 17, 48, 63, 64, 65), {_libjpeg.module, None}):
                box = 10, bottom - 9, 60, bottom
                monkeypatch.setattr(_libjpeg, "module", module)
                found = decode_image(damaged, mode, box=box)
                assert torch.equal(found, shown(raw, mode)[:, bottom - 9 : bottom, 10:60]), (name, bottom)
            refused += [(damaged, (10, 150, 60, 200)), (damaged, (10, 10, 60, 190)), (damaged, None)]
    for (raw, box), module in itertools.product(refused, {_libjpeg.module, None}):
        monkeypatch.setattr(_libjpeg, "module", module)
        with pytest.raises(ValueError, match="data must be a complete"):
            decode_image(raw, box=box)


def test_a_page_that_libtiff_refuses() -> None:
    """Pillow shows zeros, or the page before it, and says nothing; black pages are read."""
    black = Image.new("RGB", (9, 7))
    first, second = (Image.fromarray(noise(7, 9, 3, seed)) for seed in (0, 1))
    pages = {"save_all": True, "append_images": [black, second, black.convert("I;16")]}
    for big_tiff, compression in itertools.product((False, True), ("raw", "tiff_lzw")):
        raw = saved(first, "TIFF", compression=compression, big_tiff=big_tiff, **pages)
        assert check_frames(raw, "RGB", slice(None)) == "frames"
    image: Any = Image.open(io.BytesIO(raw := saved(first, "TIFF", compression="tiff_lzw", **pages)))
    image.seek(2)
    at = image.tag_v2.offset
    count = int.from_bytes(raw[at : at + 2], "little")
    # Its last entry is one that libtiff cannot read.
    last = at + 2 + 12 * (count - 1)
    broken = raw[:last] + struct.pack("<HHII", 0xFFFF, 99, 2**31, 0) + raw[last + 12 :]
    several = [raw[:at] + struct.pack("<H", n) + raw[at + 2 :] for n in (count - 1, count + 1, 200, 5000)]
    for changed, frames in itertools.product((broken, *several), ([0, 2], [2])):
        try:
            out = decode_frames(changed, frames)
        except ValueError as error:
            assert str(error).startswith("decode_frames: data must be")  # noqa: PT017
        else:
            assert torch.equal(out[-1], shown(raw, "RGB", frame=2))


# -- files that are too large ------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is Linux's")
@pytest.mark.parametrize("side", nightly_unless(lambda side: side < 2500, [250, 2500]))
def test_bombs_are_refused_before_memory_is_taken(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pixels of the larger ones would take 18 MB at least."""
    load = ImageFile.ImageFile.load

    def load_small(image: Any) -> Any:
        assert max(image.size) < 100, "pixels are decoded"
        return load(image)

    def status(name: str) -> int:
        """Return a number of megabytes: VmRSS is what the process has, VmHWM the most that it had."""
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1]) >> 10

    monkeypatch.setattr(ImageFile.ImageFile, "load", load_small)
    # M_MMAP_THRESHOLD: zeros that a decoder asks for, and does not write to, then take no memory.
    ctypes.CDLL(None).mallopt(-3, 1 << 17)
    for name, (raw, most) in files.bombs(side).items():
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins again
        before = status("VmRSS")
        found = [outcome(reader) for reader in all_readers(raw, "RGB", max_pixels=most).values()]
        assert any("max_pixels" in text for text in found if isinstance(text, str)), (name, found)
        assert status("VmHWM") - before <= 6 + 3 * len(raw) // (1 << 20), name
    ctypes.CDLL(None).mallopt(-3, 32 << 20)
