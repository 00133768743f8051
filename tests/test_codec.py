"""encode_image and decode_image against Pillow, file by file, and hostile files."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

import fuzz_decode
import numpy as np
import pytest
import torch
from checks import bits_equal, check_raises
from PIL import Image, ImageFile, ImageOps
from torch import Tensor
from torchvision.io import ImageReadMode

import imgops
from imgops.kernels.cpu import _libjpeg

MODES = ("RGB", "L", "LA", "RGBA")
WHOLE = "decode_image: data must be a complete image"


def tensor(raw: bytes) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)


def saved(image: Image.Image, format: str, **keywords: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **keywords)
    return file.getvalue()


def chw(image: Image.Image) -> Tensor:
    pixels = np.array(image)
    return torch.from_numpy(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())


@pytest.mark.parametrize("quality", [1, 50, 95, 100])
@pytest.mark.parametrize(
    ("format", "mode"),
    [("jpeg", "L"), ("jpeg", "RGB"), ("webp", "RGB"), ("webp", "RGBA"), *(("png", m) for m in MODES)],
)
def test_encoded_bytes_are_pillows(photograph: Tensor, format: str, mode: str, quality: int) -> None:
    image = Image.fromarray(photograph[:, 100:164, 200:247].permute(1, 2, 0).numpy()).convert(mode)
    keywords = {} if format == "png" else {"quality": quality}
    expected = saved(image, format, **keywords)
    pixels = chw(image)
    interleaved = pixels.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    sliced = torch.stack([pixels, pixels], -1)[..., 0]
    for x in (pixels, interleaved, sliced):
        assert bytes(imgops.encode_image(x, format, quality).numpy()) == expected


def test_sixteen_bits_go_into_a_png() -> None:
    deep = (torch.arange(20).reshape(1, 4, 5) * 3000).to(torch.uint16)
    raw = bytes(imgops.encode_image(deep, "png").numpy())
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(raw))), deep[0].numpy())
    # 16-bit values keep their high byte.
    assert bits_equal(imgops.decode_image(tensor(raw), "L"), (deep.int() >> 8).to(torch.uint8))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(len(fuzz_decode.seeds())))
def test_decoded_pixels_are_pillows(seed: int, mode: str) -> None:
    """Every kind of file gives Pillow's pixels: progressive, CMYK, 1 bit, palette with transparency, 16 bit, animated, lossless."""
    raw = fuzz_decode.seeds()[seed]
    assert fuzz_decode.check(raw, mode) == "decoded"


def test_a_photograph_is_pillows(photograph: Tensor) -> None:
    image = Image.fromarray(photograph.permute(1, 2, 0).numpy())
    for format, keywords in (("JPEG", {}), ("PNG", {}), ("WEBP", {}), ("JPEG", {"progressive": True})):
        raw = saved(image, format, **keywords)
        out = imgops.decode_image(tensor(raw))
        assert out.is_contiguous() and bits_equal(out, chw(Image.open(io.BytesIO(raw))))


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_orientation(photograph: Tensor, format: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(photograph[:, :40, :60].permute(1, 2, 0).numpy())
    raw = saved(image, format, exif=exif)
    stored = Image.open(io.BytesIO(raw))
    assert bits_equal(imgops.decode_image(tensor(raw)), chw(stored.convert("RGB")))
    turned = imgops.decode_image(tensor(raw), apply_exif_orientation=True)
    assert bits_equal(turned, chw(ImageOps.exif_transpose(stored).convert("RGB")))


#: Every form of JPEG that libjpeg-turbo decodes here, by the keywords of Pillow's save.
ORDINARY: dict[str, dict[str, Any]] = {
    **{f"subsampling-{s}": {"subsampling": s} for s in (0, 1, 2)},
    **{f"progressive-{s}": {"subsampling": s, "progressive": True} for s in (0, 1, 2)},
    "restarts": {"restart_marker_blocks": 5},
    "optimized": {"optimize": True, "quality": 95},
}
needs_libjpeg = pytest.mark.needs("libjpeg")


def jpegs(photograph: Tensor, size: tuple[int, int]) -> dict[str, bytes]:
    image = Image.fromarray(photograph[:, 100:260, 100:300].permute(1, 2, 0).numpy()).resize(size)
    files = {name: saved(image, "JPEG", **keywords) for name, keywords in ORDINARY.items()}
    files["gray"] = saved(image.convert("L"), "JPEG")
    files["gray-progressive"] = saved(image.convert("L"), "JPEG", progressive=True)
    return files


@needs_libjpeg
def test_ordinary_jpegs_are_not_left_to_pillow(photograph: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow reads their headers only, once the two were compared."""
    assert _libjpeg.is_pillow()
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("Pillow decodes"))
    for name, raw in jpegs(photograph, (99, 71)).items():
        for mode in ("L", "RGB"):
            assert imgops.decode_image(raw, mode).shape == (len(mode), 71, 99), name
            assert imgops.decode_image(raw, mode, box=(60, 40, 70, 71)).shape == (len(mode), 31, 10), name


@pytest.mark.parametrize("turned", [False, True])
def test_a_box_is_a_crop(photograph: Tensor, turned: bool) -> None:
    """Every pixel of a box is that of the whole image, for every kind of file, mode, format and orientation."""
    rng = np.random.default_rng(0)
    exif = Image.Exif()
    image = Image.fromarray(photograph[:, :90, :130].permute(1, 2, 0).numpy())
    files = [*fuzz_decode.seeds()]
    for size in ((131, 77), (16, 16), (1, 40), (33, 1)):
        files += jpegs(photograph, size).values()
    for orientation in range(1, 9):
        exif[0x0112] = orientation
        files += [saved(image, "JPEG", exif=exif), saved(image, "PNG", exif=exif)]
    for raw in files:
        for mode in MODES:
            opened = Image.open(io.BytesIO(raw))
            deep = opened.mode.startswith("I")
            if deep:
                opened = Image.fromarray((np.asarray(opened).astype(np.uint16) >> 8).astype(np.uint8))
            shown = (ImageOps.exif_transpose(opened) if turned and not deep else opened).convert(mode)
            for last in (torch.contiguous_format, torch.channels_last):
                left, top = (int(rng.integers(0, n)) for n in shown.size)
                right = int(rng.integers(left + 1, shown.width + 1))
                bottom = int(rng.integers(top + 1, shown.height + 1))
                box = left, top, right, bottom
                out = imgops.decode_image(
                    raw, mode, box=box, apply_exif_orientation=turned, memory_format=last
                )
                assert torch.equal(out, chw(shown.crop(box))), (opened.format, mode, box)
                whole = imgops.decode_image(raw, mode, apply_exif_orientation=turned, memory_format=last)
                assert torch.equal(whole, chw(shown)), (opened.format, mode)
                for x in (out, whole):
                    if last is torch.channels_last:
                        assert x.permute(1, 2, 0).is_contiguous()
                    else:
                        assert x.is_contiguous()


def test_a_box_must_lie_inside(photograph: Tensor) -> None:
    for raw in (fuzz_decode.seeds()[0], fuzz_decode.seeds()[8]):  # a JPEG and a PNG of 17 x 23
        for box in ((0, 0, 18, 23), (0, 0, 17, 24), (17, 0, 18, 1)):
            message = f"decode_image: box must lie inside of the image of 23 x 17, got {box}"
            check_raises(lambda raw=raw, box=box: imgops.decode_image(raw, box=box), ValueError, message)
        with pytest.raises(ValueError, match=r"^decode_image: data must be a complete"):
            imgops.decode_image(raw[:100], box=(0, 0, 2, 2))


def test_what_a_box_does_not_read(photograph: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequential JPEG may end below the box; a progressive one may not, nor may the box be reached by the damage.

    This holds for libjpeg-turbo and for Pillow.
    """
    image = Image.fromarray(photograph[:, :200, :200].permute(1, 2, 0).numpy())
    progressive = saved(image, "JPEG", progressive=True)
    refused = [(progressive[: len(progressive) * 2 // 3], (10, 10, 60, 40))]
    for keywords in ({}, {"subsampling": 0}, {"subsampling": 1}, {"restart_marker_blocks": 5}):
        for raw, mode in (
            (saved(image, "JPEG", **keywords), "RGB"),
            (saved(image.convert("L"), "JPEG"), "L"),
        ):
            whole, middle = imgops.decode_image(raw, mode), len(raw) * 2 // 3
            wrong = raw[:middle] + b"\xff\xc4" + raw[middle + 2 :]  # a marker in the middle of the pixels
            for damaged in (raw[:middle], wrong):
                for bottom in (15, 16, 17, 48, 63, 64, 65):
                    expected = whole[:, bottom - 9 : bottom, 10:60]
                    for module in {_libjpeg.module, None}:
                        monkeypatch.setattr(_libjpeg, "module", module)
                        found = imgops.decode_image(damaged, mode, box=(10, bottom - 9, 60, bottom))
                        assert torch.equal(found, expected), (keywords, mode, bottom)
                        monkeypatch.undo()
                refused += [(damaged, (10, 150, 60, 200)), (damaged, (10, 10, 60, 190)), (damaged, None)]
    for raw, part in refused:
        for module in {_libjpeg.module, None}:
            monkeypatch.setattr(_libjpeg, "module", module)
            with pytest.raises(ValueError, match="data must be a complete"):
                imgops.decode_image(raw, box=part)
            monkeypatch.undo()


def test_files_by_bytes_and_path(photograph: Tensor, tmp_path: Path) -> None:
    raw = saved(Image.fromarray(photograph[:, :9, :11].permute(1, 2, 0).numpy()), "PNG")
    path = tmp_path / "photograph.png"
    path.write_bytes(raw)
    for data in (raw, bytearray(raw), memoryview(raw), path, str(path)):
        assert torch.equal(imgops.decode_image(data), photograph[:, :9, :11])
    with pytest.raises(FileNotFoundError):
        imgops.decode_image(tmp_path / "none.png")
    must = "decode_image: data must be a Tensor, bytes or a path, got "
    check_raises(lambda: imgops.decode_image([1, 2]), TypeError, f"{must}list")
    with pytest.raises(
        ValueError,
        match="decode_image: data must be a JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 or HEIF file, got 0 bytes",
    ):
        imgops.decode_image(b"")


def test_names_of_modes(photograph: Tensor) -> None:
    raw = saved(Image.fromarray(photograph[:, :9, :11].permute(1, 2, 0).numpy()), "PNG")
    modes = {"L": ImageReadMode.GRAY, "LA": ImageReadMode.GRAY_ALPHA, "RGB": ImageReadMode.RGB}
    modes["RGBA"] = ImageReadMode.RGB_ALPHA
    for mode, member in modes.items():
        for name in (member, member.name, mode.lower(), member.name.lower()):
            assert torch.equal(imgops.decode_image(raw, name), imgops.decode_image(raw, mode))
    must = "decode_image: mode must be one of 'L', 'LA', 'RGB', 'RGBA', 'L;16', 'LA;16', 'RGB;16', 'RGBA;16', 'UNCHANGED', got "
    check_raises(lambda: imgops.decode_image(raw, 3), ValueError, f"{must}3")


def test_a_box_in_a_graph(photograph: Tensor) -> None:
    """The box decides the size of the result, which the graph knows; a box may come from a tensor, too."""
    raws = [tensor(raw) for raw in jpegs(photograph, (64, 48)).values()]

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def decode(data: Tensor, left: int, last: bool) -> Tensor:
        format = torch.channels_last if last else torch.contiguous_format
        image = imgops.decode_image(data, box=(left, 3, left + 20, 33), memory_format=format)
        return imgops.resize(image, (8, 8)) + 1

    for i, raw in enumerate(raws):
        expected = imgops.resize(imgops.decode_image(raw)[:, 3:33, i : i + 20], (8, 8)) + 1
        assert torch.equal(decode(raw, i, i % 2 == 0), expected)


# -- hostile files -----------------------------------------------------------------------------------


def test_random_hostile_files() -> None:
    """A small part of ``python -m tests.fuzz_decode``; 100,000 files were run once, and no fault was found."""
    outcomes = fuzz_decode.run(400)
    assert outcomes["refused"] > 100


@pytest.mark.parametrize("seed", range(len(fuzz_decode.seeds())))
def test_a_truncated_file_is_never_decoded_in_part(seed: int) -> None:
    """A file is cut at every byte, and closed with an end-of-image marker or not."""
    raw = fuzz_decode.seeds()[seed]
    whole = imgops.decode_image(tensor(raw))
    jpeg = raw.startswith(b"\xff\xd8")
    for cut in range(len(raw)):
        for tail in (b"", b"\xff\xd9") if jpeg else (b"",):
            try:
                out = imgops.decode_image(tensor(raw[:cut] + tail))
            except ValueError as error:
                assert str(error).startswith("decode_image: data must be")  # noqa: PT017
                continue
            # The cut was after the pixels, or inside of the last block of 16 x 16 of a JPEG.
            assert out.shape == whole.shape
            assert bits_equal(out[:, :-16], whole[:, :-16]) or bits_equal(out[:, :16], whole[:, :16])
            assert (out != whole).any(0).sum() <= 16 * 16 and (jpeg or bits_equal(out, whole))


def test_a_cut_photograph_is_refused(photograph: Tensor) -> None:
    image = Image.fromarray(photograph.permute(1, 2, 0).numpy())
    for keywords in ({}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_rows": 4}):
        raw = saved(image, "JPEG", **keywords)
        for part in (0.3, 0.6, 0.9, 0.99, 0.999):
            cut = raw[: int(len(raw) * part)]
            for tail in (b"", b"\xff\xd9", raw):
                with pytest.raises(ValueError, match=r"decode_image: data must be"):
                    imgops.decode_image(tensor(cut + tail))


def test_a_flat_corner_is_no_truncation() -> None:
    for value in (0, 128, 255):
        for size in ((3, 1, 1), (3, 40, 57), (1, 16, 16)):
            for quality in (30, 95):
                image = torch.full(size, value, dtype=torch.uint8)
                raw = imgops.encode_image(image, "jpeg", quality)
                assert imgops.decode_image(raw, "RGB" if size[0] == 3 else "L").shape == size


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    out = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks:
        out += len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
    return out


def header(width: int, height: int) -> tuple[bytes, bytes]:
    return b"IHDR", width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])


HOSTILE = {
    "empty": b"",
    "text": b"<html>404</html>",
    "gif": b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01",
    "magic-only-jpeg": b"\xff\xd8\xff",
    "magic-only-png": b"\x89PNG\r\n\x1a\n",
    "magic-only-webp": b"RIFF\x00\x00\x00\x00WEBP",
    "png-no-pixels": png(header(4, 4), (b"IEND", b"")),
    "png-few-rows": png(header(4, 400), (b"IDAT", zlib.compress(b"\0" * 13 * 10)), (b"IEND", b"")),
    "png-no-size": png(header(0, 4), (b"IDAT", zlib.compress(b"\0" * 13)), (b"IEND", b"")),
    "png-broken-stream": png(header(4, 4), (b"IDAT", b"\x78\x9c" + b"\xaa" * 40), (b"IEND", b"")),
    "png-bomb": png(header(60000, 60000), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_files(name: str) -> None:
    with pytest.raises(ValueError, match=r"^decode_image: data must"):
        imgops.decode_image(tensor(HOSTILE[name]))


def test_interlaced_and_black_images_are_whole() -> None:
    """A second decoding proves them complete, because a black last row looks like one that is missing."""
    for depth, color, pixel in ((8, 2, 3), (8, 6, 4), (1, 0, 0.125), (4, 3, 0.5), (16, 2, 6)):
        for width, height in ((1, 1), (3, 5), (8, 8), (13, 21)):
            kind, body = header(width, height)
            rows = b"".join(b"\0" + b"\0" * int(np.ceil(width * pixel)) for _ in range(height))
            chunks = [(kind, body[:8] + bytes([depth, color, 0, 0, 0]))]
            chunks += [(b"PLTE", bytes(48))] if color == 3 else []
            raw = png(*chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
            assert imgops.decode_image(tensor(raw)).shape == (3, height, width)
            short = png(*chunks, (b"IDAT", zlib.compress(rows[:-1])), (b"IEND", b""))
            with pytest.raises(ValueError, match="data must be"):
                imgops.decode_image(tensor(short))
            passes = [
                (0, 0, 8, 8),
                (4, 0, 8, 8),
                (0, 4, 4, 8),
                (2, 0, 4, 4),
                (0, 2, 2, 4),
                (1, 0, 2, 2),
                (0, 1, 1, 2),
            ]
            rows = b""
            for x, y, step_x, step_y in passes:
                columns, count = len(range(x, width, step_x)), len(range(y, height, step_y))
                rows += (b"\0" + b"\0" * int(np.ceil(columns * pixel))) * (count if columns else 0)
            chunks[0] = kind, body[:8] + bytes([depth, color, 0, 0, 1])
            raw = png(*chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
            assert imgops.decode_image(tensor(raw)).shape == (3, height, width)
            short = png(*chunks, (b"IDAT", zlib.compress(rows[:-1])), (b"IEND", b""))
            with pytest.raises(ValueError, match="data must be"):
                imgops.decode_image(tensor(short))


def test_a_wrong_checksum_is_refused() -> None:
    raw = bytearray(imgops.encode_image(torch.zeros(3, 9, 9, dtype=torch.uint8), "png").numpy().tobytes())
    raw[raw.index(b"IDAT") + 10] ^= 1
    message = "decode_image: data must have the checksums of a PNG, got a wrong one in its chunk b'IDAT'"
    check_raises(lambda: imgops.decode_image(tensor(bytes(raw))), ValueError, message)


def test_bombs_are_refused_by_their_header(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = imgops.encode_image(torch.zeros(3, 20, 30, dtype=torch.uint8), "png")
    must = "decode_image: data must be an image of at most 599 pixels (max_pixels)"
    check_raises(lambda: imgops.decode_image(raw, max_pixels=599), ValueError, f"{must}, got 20 x 30")
    assert imgops.decode_image(raw, max_pixels=600).shape == (3, 20, 30)
    assert imgops.extend.config.DecodeImage().max_pixels == Image.MAX_IMAGE_PIXELS
    # Pillow's own limit is global to the process, and does not apply here.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert imgops.decode_image(raw).shape == (3, 20, 30)


def test_pillow_set_to_load_truncated_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = imgops.encode_image(torch.zeros(3, 20, 30, dtype=torch.uint8))
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(ValueError, match="LOAD_TRUNCATED_IMAGES must be False"):
        imgops.decode_image(raw)


# -- sizes that only the data tell ---------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_graph_of_unknown_sizes(photograph: Tensor, backend: str) -> None:
    def pipeline(data: Tensor) -> Tensor:
        image = imgops.decode_image(data)
        small = imgops.resize(imgops.pad(image, 4, "reflect"), (32, 24))
        return imgops.crop(small, (0, 0, 20, 20)).float().mean((1, 2))

    compiled = torch.compile(pipeline, fullgraph=True, backend=backend)
    for height in (30, 57, 64):
        data = imgops.encode_image(photograph[:, :height, : height + 9].contiguous())
        torch.testing.assert_close(compiled(data), pipeline(data))


def test_one_compilation_for_many_sizes(photograph: Tensor) -> None:
    from imgops._common.torch_private import CountingBackend

    backend = CountingBackend("aot_eager")
    decode = torch.compile(
        lambda d: imgops.decode_image(d) + 1, fullgraph=True, dynamic=True, backend=backend
    )
    encode = torch.compile(
        lambda x, q: imgops.encode_image(x, "jpeg", q), fullgraph=True, dynamic=True, backend=backend
    )
    for i in range(8):
        image = photograph[:, : 20 + 7 * i, : 90 - 5 * i].contiguous()
        data = encode(image, 40 + 5 * i)
        assert bits_equal(data, imgops.encode_image(image, "jpeg", 40 + 5 * i))
        assert bits_equal(decode(data), imgops.decode_image(data) + 1)
    assert backend.count == 2


def test_export_knows_the_range(photograph: Tensor) -> None:
    class Recode(torch.nn.Module):
        def forward(self, data: Tensor) -> Tensor:
            return imgops.encode_image(imgops.decode_image(data), "png")

    data = imgops.encode_image(photograph[:, :50, :60].contiguous())
    program = torch.export.export(Recode(), (data,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    ranges = [r for s, r in program.range_constraints.items() if str(s).startswith("u")]
    assert len(ranges) == 3 and all((int(r.lower), int(r.upper)) == (1, 2**31 - 1) for r in ranges)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    other = imgops.encode_image(photograph[:, :33, :77].contiguous())
    assert bits_equal(loaded(other), Recode()(other))


def test_round_trip_on_a_device_of_its_own() -> None:
    """Every other device copies the data to the host and the image back."""
    from imgops.kernels import host

    pixels = torch.zeros(3, 4, 5, dtype=torch.uint8)
    data = imgops.encode_image(pixels, "png")
    run = host.round_trip_returning(imgops._operator.record.operators()["decode_image"].kernel)
    assert bits_equal(run(data, 1000, "RGB", False, False), pixels)


# -- nvJPEG ----------------------------------------------------------------------------------------


def test_a_jpeg_for_cuda_is_decoded_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvJPEG decodes what it can, and Pillow the rest; a function stands for nvJPEG, and the CPU for the device."""
    from imgops.kernels.cuda import nvjpeg

    asked: list[tuple[str, str]] = []

    def decode(data: torch.Tensor, mode: str, device: torch.device) -> torch.Tensor:
        asked.append((mode, device.type))
        if len(data) > 5000:
            raise RuntimeError("nvJPEG cannot decode this")
        return torch.full((3, 1, 1), 7, dtype=torch.uint8)

    monkeypatch.setattr(nvjpeg, "_decoder", lambda: decode)
    monkeypatch.setattr(torch.Tensor, "to", lambda x, *args, **keywords: x)
    image = torch.randint(0, 256, (3, 9, 11), dtype=torch.uint8)
    data = imgops.encode_image(image)
    assert imgops.decode_image(data, device="cuda").flatten().tolist() == [7, 7, 7]
    imgops.decode_image(data, "L", device="cuda:0")
    assert asked == [("RGB", "cuda"), ("GRAY", "cuda")]
    by_pillow = imgops.decode_image(data)
    large = imgops.encode_image(torch.randint(0, 256, (3, 90, 110), dtype=torch.uint8))
    assert imgops.decode_image(large, device="cuda").shape == (3, 90, 110)  # nvJPEG refuses this one
    asked.clear()
    assert torch.equal(imgops.decode_image(data, device="cpu"), by_pillow)
    assert torch.equal(imgops.decode_image(data, apply_exif_orientation=True, device="cuda"), by_pillow)
    assert imgops.decode_image(data, "RGBA", device="cuda").shape == (4, 9, 11)
    png = imgops.encode_image(image, "png", device="cuda")
    assert torch.equal(imgops.decode_image(png, device="cuda"), image)
    for wrong in (data[:-20], data[:40]):
        with pytest.raises(ValueError, match="decode_image: data must be"):
            imgops.decode_image(wrong, device="cuda")
    with pytest.raises(ValueError, match="data must be an image of at most 98 pixels"):
        imgops.decode_image(data, max_pixels=98, device="cuda")
    assert not asked


def test_jpeg_by_opencv_is_pillows() -> None:
    """OpenCV gives Pillow's pixels or is not used; the operator gives them in each memory format, too."""
    from imgops.kernels.cpu import codec

    assert isinstance(codec.opencv_is_pillow(), bool)
    rng = np.random.default_rng(4)
    for channels in (1, 3):
        for height, width in ((1, 1), (7, 300), (64, 48)):
            planar = torch.from_numpy(rng.integers(0, 256, (channels, height, width)).astype(np.uint8))
            for image in (planar, planar.permute(1, 2, 0).contiguous().permute(2, 0, 1)):
                for quality in (1, 60, 100):
                    wanted = torch.from_numpy(codec._by_pillow("jpeg", image, quality))
                    wanted = wanted[None] if channels == 1 else wanted.permute(2, 0, 1)
                    assert torch.equal(imgops.jpeg(image, quality), wanted)
