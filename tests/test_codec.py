"""encode_image against Pillow; the arguments and errors of every function that reads files; threads; nvJPEG."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile
from torch import Tensor
from torchvision.io import ImageReadMode

import imgops
from imgops import EncodedImage, EncodedImages, decode_frames, decode_image, decode_images, encode_image
from imgops import transforms as v2
from imgops.kernels.cpu import _libjpeg
from imgops.ops import codec
from tests.checks import check_raises
from tests.files import MODES, kinds, noise, ordinary_jpegs, planar, saved, tensor
from tests.tiers import every_night


def files_of(count: int) -> list[bytes]:
    """Return files of different sizes and formats."""
    images = [Image.fromarray(noise(9 + 5 * i, 40 - i, 3, seed=i)) for i in range(count)]
    return [saved(image, ("JPEG", "PNG", "WEBP")[i % 3]) for i, image in enumerate(images)]


# -- files that are written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "mode"),
    [("jpeg", "L"), ("jpeg", "RGB"), ("webp", "RGB"), ("webp", "RGBA"), *(("png", m) for m in MODES)],
)
def test_encoded_bytes_are_pillows(photograph: Tensor, format: str, mode: str) -> None:
    image = Image.fromarray(photograph[:, 100:164, 200:247].permute(1, 2, 0).numpy()).convert(mode)
    pixels = planar(image)
    interleaved = pixels.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    sliced = torch.stack([pixels, pixels], -1)[..., 0]
    for quality in (1, 50, 95, 100):
        expected = saved(image, format, **({} if format == "png" else {"quality": quality}))
        for x in (pixels, interleaved, sliced):
            assert bytes(encode_image(x, format, quality).numpy()) == expected


# -- how files are given -----------------------------------------------------------------------------


@pytest.mark.needs("libjpeg")
def test_ordinary_jpegs_are_not_left_to_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow reads their headers only, once the two were compared."""
    assert _libjpeg.is_pillow()
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda image: pytest.fail("Pillow decodes"))
    for name, raw in ordinary_jpegs((99, 71)).items():
        for mode in ("L", "RGB"):
            assert decode_image(raw, mode).shape == (len(mode), 71, 99), name
            assert decode_image(raw, mode, box=(60, 40, 70, 71)).shape == (len(mode), 31, 10), name


def test_forms_of_files_modes_and_boxes(tmp_path: Path) -> None:
    raw = kinds()["PNG RGBA"]
    path = tmp_path / "image.png"
    path.write_bytes(raw)
    for data in (raw, bytearray(raw), memoryview(raw), path, str(path), tensor(raw)):
        assert torch.equal(decode_image(data, "RGBA"), planar(noise()))
        assert torch.equal(decode_images([data], "RGBA")[0], planar(noise()))
    with pytest.raises(FileNotFoundError):
        decode_image(tmp_path / "none.png")
    known = {"L": "GRAY", "LA": "GRAY_ALPHA", "RGB": "RGB", "RGBA": "RGB_ALPHA", "unchanged": "UNCHANGED"}
    for mode, member in ((mode, ImageReadMode[name]) for mode, name in known.items()):
        for name in (member, member.name, mode.lower(), member.name.lower()):
            assert torch.equal(decode_image(raw, name), decode_image(raw, mode))
    raws, corners = files_of(2), torch.tensor([[0, 1, 4, 7], [2, 0, 3, 9]])
    one = [tuple(corners[0].tolist())] * 2
    for box, wanted in (
        *(
            (form, one)
            for form in (corners[0], corners[0].tolist(), one[0], np.array(one[0]), tuple(np.array(one[0])))
        ),
        *((form, corners.tolist()) for form in (corners, corners.tolist(), corners.numpy(), list(corners))),
        ([(1, 2, 10, 9), None], [(1, 2, 10, 9), None]),
    ):
        for image, file, part in zip(decode_images(raws, box=box), raws, wanted, strict=True):
            assert torch.equal(image, decode_image(file, box=part))


@pytest.mark.parametrize("threads", [1, 2, *every_night(5)])
def test_many_files_are_read_as_one_by_one(threads: int, tmp_path: Path) -> None:
    """The first that cannot be read raises; on request they are left out, and their errors are returned."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    raws = files_of(14)
    for keywords in ({}, {"mode": "L", "memory_format": torch.channels_last}, {"max_pixels": 10**4}):
        for image, raw in zip(decode_images(iter(raws), **keywords), raws, strict=True):
            expected = decode_image(raw, **keywords)
            assert torch.equal(image, expected) and image.stride() == expected.stride()
    bad = [raws[0], b"no image", *raws[2:5], raws[5][:40], tmp_path / "none.jpg", raws[7]]
    with pytest.raises(ValueError, match=r"^decode_images: files\[1\] must be a JPEG, PNG, .*, got 8 bytes"):
        decode_images(bad)
    skipped: list[tuple[int, Exception]] = []
    images = decode_images(bad, skipped=skipped)
    assert [(i, type(e)) for i, e in skipped] == [(1, ValueError), (5, ValueError), (6, FileNotFoundError)]
    for image, i in zip(images, (0, 2, 3, 4, 7), strict=True):
        assert torch.equal(image, decode_image(raws[i]))
    torch.set_num_threads(before)


def test_every_thread_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread waits for the files of another one: here each waits until both have one."""
    both, decode, before = threading.Barrier(2, timeout=20), codec.decode_image, torch.get_num_threads()
    monkeypatch.setattr(codec, "decode_image", lambda *a, **k: (both.wait(), decode(*a, **k))[1])
    torch.set_num_threads(2)
    try:
        assert len(decode_images(files_of(2))) == 2
    finally:
        torch.set_num_threads(before)


# -- what is refused ---------------------------------------------------------------------------------

JPEG, PNG = FILES = files_of(2)
OUTSIDE = (0, 0, 50, 1)
_SEQUENCE, _BOX = "files must be a sequence of files, got", "box must be one box, or one for each of the"
_MODES = (
    "mode must be one of 'L', 'LA', 'RGB', 'RGBA', 'L;16', 'LA;16', 'RGB;16', 'RGBA;16', 'UNCHANGED', got"
)
_DATA, _DEEP = "must be a Tensor, bytes or a path, got int", "data must be an image of mode 'L;16', got a"
#: What the errors of wrong calls say. A wrong setting is no fault of a file, which might be skipped.
WRONG_TYPES: dict[str, Callable[[], Any]] = {
    f"decode_images: {_SEQUENCE} bytes": lambda: decode_images(JPEG),
    f"decode_images: {_SEQUENCE} int": lambda: decode_images(3),
    f"EncodedImages: {_SEQUENCE} bytes": lambda: EncodedImages(JPEG),
    f"EncodedImages: {_SEQUENCE} int": lambda: EncodedImages(3),
    f"decode_images: {_BOX} files, got set": lambda: decode_images(FILES, box={1, 2}),
    f"decode_image: data {_DATA}": lambda: decode_image(3),
    f"decode_images: files[1] {_DATA}": lambda: decode_images([JPEG, 3], skipped=[]),
    f"decode_images: files[0] {_DATA}": lambda: EncodedImages([3]),
    "EncodedImages: skipped must be a list, got dict": lambda: EncodedImages(FILES, skipped={}),
    "EncodedImage: apply_exif_orientation must be a bool, got 'no'": lambda: EncodedImage(
        JPEG, apply_exif_orientation="no"
    ),
    "decode_images: max_pixels must be an integer, got str many": lambda: decode_images(
        FILES, max_pixels="many", skipped=[]
    ),
    "EncodedImages: max_pixels must be an integer, got str many": lambda: EncodedImages(
        FILES, max_pixels="many", skipped=[]
    ),
}
WRONG_VALUES: dict[str, Callable[[], Any]] = {
    "EncodedImages: files must be one or more files, got none": lambda: EncodedImages([]),
    f"decode_images: {_BOX} 2 files, got 1 of them": lambda: decode_images(FILES, box=[None]),
    f"decode_images: box[1] must lie inside of the image of 14 x 39, got {OUTSIDE}": lambda: decode_images(
        FILES, box=[None, OUTSIDE]
    ),
    **{
        f"decode_image: box must lie inside of the image of {size}, got {box}": lambda f=file, b=box: (
            decode_image(f, box=b)
        )
        for file, size, box in (
            *((JPEG, "9 x 40", box) for box in ((0, 0, 41, 9), (0, 0, 40, 10), (40, 0, 41, 1))),
            *((PNG, "14 x 39", box) for box in ((0, 0, 40, 14), (0, 0, 39, 15), (39, 0, 40, 1))),
        )
    },
    "EncodedImages: files[1] must have mode 'LA', as other files, for 'unchanged', got 'L'": lambda: (
        EncodedImages([kinds()["TIFF LA raw"], kinds()["BMP L"]], "unchanged")
    ),
    "decode_images: files[0] must be an image of 8 or 16 bits, got a TIFF of int32": lambda: EncodedImages(
        [kinds()["TIFF I raw"]], "unchanged"
    ),
    f"decode_image: {_MODES} 3": lambda: decode_image(PNG, 3),
    f"decode_images: {_MODES} 'RBG'": lambda: decode_images(FILES, "RBG", skipped=[]),
    f"EncodedImages: {_MODES} 'RBG'": lambda: EncodedImages(FILES, "RBG", skipped=[]),
    f"decode_image: {_DEEP} PNG of mode 'LA'": lambda: decode_image(kinds()["PNG LA"], "L;16"),
    f"decode_image: {_DEEP} JPEG of mode 'L'": lambda: decode_image(kinds()["JPEG L"], "L;16"),
}


def test_wrong_calls() -> None:
    for error, wrong in ((TypeError, WRONG_TYPES), (ValueError, WRONG_VALUES)):
        for message, call in wrong.items():
            check_raises(call, error, message)
    assert decode_images([]) == []
    must = "decode_image: data must have data, which decide the size of the result, got a meta tensor"
    check_raises(lambda: decode_image(tensor(PNG).to("meta"), "unchanged"), NotImplementedError, must)
    unchanged = "mode must name channels in a compiled graph"
    for message, call in (
        (
            "decode_images: files must be decoded outside of a compiled graph",
            lambda data: decode_images([data]),
        ),
        (unchanged, lambda data: decode_image(data, "unchanged")),
        (unchanged, lambda data: decode_frames(data, mode="unchanged")),
    ):
        with pytest.raises(Exception, match=message):
            torch.compile(call, fullgraph=True, backend="eager")(tensor(PNG))


def test_limits_of_pixels_are_those_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's own limit and its setting for truncated files are global to the process."""
    raw = encode_image(torch.zeros(3, 20, 30, dtype=torch.uint8), "png")
    must = "decode_image: data must be an image of at most 599 pixels (max_pixels), got 20 x 30"
    for call in (decode_image, EncodedImage):
        check_raises(lambda call=call: call(raw, max_pixels=599), ValueError, must)
    assert decode_image(raw, max_pixels=600).shape == (3, 20, 30)
    assert imgops.extend.config.DecodeImage().max_pixels == Image.MAX_IMAGE_PIXELS
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert decode_image(raw).shape == (3, 20, 30)
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(ValueError, match="LOAD_TRUNCATED_IMAGES must be False"):
        decode_image(raw)


@pytest.mark.parametrize("damage", ["another kind", "empty", "cut"])
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_an_error_names_the_path_of_its_file(format: str, damage: str, tmp_path: Path) -> None:
    """Every function that reads files says which one it could not read; bytes have no path to name."""
    good = saved(Image.fromarray(noise(40, 60, 3)), format)
    bad = {"another kind": b"no image", "empty": b"", "cut": good[: len(good) * 2 // 3]}[damage]
    given = [tmp_path / "a.jpg", str(tmp_path / "b.jpg"), tmp_path / "c.jpg"]
    for path, raw in zip(given, (good, bad, good), strict=True):
        Path(path).write_bytes(raw)
    box, skipped, reported = (0, 0, 60, 40), [], []
    crop = v2.RandomResizedCrop(8, (0.9, 1.0), per_sample=True)
    steps = v2.Compose([v2.RandomCrop((40, 8)), v2.ColorJitter(0.4)], per_sample=True)
    calls: dict[str, list[Callable[[], Any]]] = {
        f"decode_image: data ({given[1]!r}) must be ": [
            lambda: decode_image(given[1]),
            lambda: decode_image(given[1], box=box),
            lambda: EncodedImage(given[1]).decode(),
            lambda: v2.CenterCrop((40, 8))(EncodedImage(given[1])),
        ],
        f"decode_images: files[1] ({given[1]!r}) must be ": [
            lambda: decode_images(given),
            lambda: decode_images(given, box=box),
            lambda: EncodedImages(given).decode(),
            lambda: crop(EncodedImages(given)),
            lambda: steps(EncodedImages(given)),
            lambda: pickle.loads(pickle.dumps(EncodedImages(given))).decode(),
        ],
        "decode_images: files[1] must be ": [
            lambda: decode_images([good, bad]),
            lambda: EncodedImages([good, bad]).decode(),
        ],
    }
    for start, several in calls.items():
        for call in several:
            with pytest.raises(ValueError) as caught:
                call()
            said = str(caught.value)
            assert said.startswith(start) and said.count("b.jpg") == start.count("b.jpg"), said
    decode_images(given, skipped=skipped)
    EncodedImages(given, skipped=reported).decode()
    for ((index, error),) in (skipped, reported):
        said = str(error)
        assert index == 1 and said.startswith(list(calls)[1]) and said.count("b.jpg") == 1, said


def test_an_error_of_a_box_names_the_path_of_its_file(tmp_path: Path) -> None:
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path in paths:
        path.write_bytes(PNG)
    where, size = f"for {str(paths[1])!r}", f"14 x 39, got {OUTSIDE}"
    lies = f"must lie inside of the image of {size}"
    boxes = torch.tensor([[0, 0, 1, 1], OUTSIDE])
    large = f"({str(paths[0])!r}) must be an image of at most 9 pixels (max_pixels), got 14 x 39"
    for message, call in (
        (f"decode_image: box {where} {lies}", lambda: decode_image(paths[1], box=OUTSIDE)),
        (f"decode_images: box[1] {where} {lies}", lambda: decode_images(paths, box=[None, OUTSIDE])),
        (
            f"EncodedImages.decode: boxes[1] {where} must be pixels of its image of {size}",
            lambda: EncodedImages(paths).decode(boxes),
        ),
        (f"decode_images: files[0] {large}", lambda: EncodedImages(paths, max_pixels=9)),
    ):
        check_raises(call, ValueError, message)


# -- graphs and devices ------------------------------------------------------------------------------


def test_export_knows_the_range() -> None:
    class Recode(torch.nn.Module):
        def forward(self, data: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
            image = encode_image(decode_image(data), "png")
            return image, decode_frames(data, frames, "L")

    dynamic = {0: torch.export.Dim.DYNAMIC}
    given = tensor(kinds()["GIF frames with transparency"]), torch.tensor([1, 2])
    program = torch.export.export(Recode(), given, dynamic_shapes=(dynamic, dynamic))
    ranges = [r for s, r in program.range_constraints.items() if str(s).startswith("u")]
    assert len(ranges) == 5 and all((int(r.lower), int(r.upper)) == (1, 2**31 - 1) for r in ranges)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    other = tensor(kinds()["PNG frames"]), torch.tensor([2, 0, -1])
    for found, wanted in zip(torch.export.load(buffer).module()(*other), Recode()(*other), strict=True):
        assert torch.equal(found, wanted)


def test_a_jpeg_for_cuda_is_decoded_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvJPEG decodes what it can, and Pillow the rest; a function stands for nvJPEG, and the CPU for the device."""
    from imgops.kernels.cuda import nvjpeg

    asked: list[tuple[str, str]] = []

    def decode(data: Tensor, mode: str, device: torch.device) -> Tensor:
        asked.append((mode, device.type))
        if len(data) > 5000:
            raise RuntimeError("nvJPEG cannot decode this")
        return torch.full((3, 1, 1), 7, dtype=torch.uint8)

    monkeypatch.setattr(nvjpeg, "_decoder", lambda: decode)
    monkeypatch.setattr(torch.Tensor, "to", lambda x, *args, **keywords: x)
    image = planar(noise(9, 11, 3))
    data, large = encode_image(image), encode_image(planar(noise(90, 110, 3)))
    by_pillow, png = decode_image(data), encode_image(image, "png", device="cuda")
    assert decode_image(data, device="cuda").flatten().tolist() == [7, 7, 7]
    decode_image(data, "L", device="cuda:0")
    assert asked == [("RGB", "cuda"), ("GRAY", "cuda")]
    assert decode_image(large, device="cuda").shape == (3, 90, 110)  # nvJPEG refuses this one
    asked.clear()
    assert torch.equal(decode_image(data, device="cpu"), by_pillow)
    assert torch.equal(decode_image(data, apply_exif_orientation=True, device="cuda"), by_pillow)
    assert decode_image(data, "RGBA", device="cuda").shape == (4, 9, 11)
    assert torch.equal(decode_image(png, device="cuda"), image)
    for wrong in (data[:-20], data[:40]):
        with pytest.raises(ValueError, match="decode_image: data must be"):
            decode_image(wrong, device="cuda")
    with pytest.raises(ValueError, match="data must be an image of at most 98 pixels"):
        decode_image(data, max_pixels=98, device="cuda")
    assert not asked
