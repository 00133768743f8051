"""decode_images: the files of decode_image, on threads."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from checks import check_raises
from PIL import Image
from torch._dynamo.testing import CompileCounter

import imgops
from imgops import transforms as v2
from imgops.ops import codec


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def files(count: int) -> list[bytes]:
    """Return files of different sizes and formats."""
    made = []
    for i in range(count):
        pixels = np.random.default_rng(i).integers(0, 256, (9 + 5 * i, 40 - i, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, ("JPEG", "PNG", "WEBP")[i % 3])
        made.append(file.getvalue())
    return made


def test_they_are_those_of_the_loop(threads: int, tmp_path: Path) -> None:
    raws = files(14)
    given = list(raws)
    given[3] = torch.frombuffer(bytearray(raws[3]), dtype=torch.uint8)
    given[4] = tmp_path / "four.png"
    given[4].write_bytes(raws[4])
    for keywords in ({}, {"mode": "L", "memory_format": torch.channels_last}, {"max_pixels": 10**4}):
        images = imgops.decode_images(iter(given), **keywords)
        assert len(images) == 14
        for image, raw in zip(images, raws, strict=True):
            expected = imgops.decode_image(raw, **keywords)
            assert torch.equal(image, expected) and image.stride() == expected.stride()


def test_boxes(threads: int) -> None:
    raws = files(6)
    boxes = [(1, 2, 10, 9), None, torch.tensor([0, 0, 3, 3]), [5, 5, 6, 6], None, (0, 0, 35, 34)]
    for image, raw, box in zip(imgops.decode_images(raws, box=boxes), raws, boxes, strict=True):
        assert torch.equal(image, imgops.decode_image(raw, box=box))

    corners = torch.tensor([[0, 1, 4, 7], [2, 0, 3, 9]])
    for box in (corners, corners.tolist()):
        for image, raw, one in zip(imgops.decode_images(raws[:2], box=box), raws, corners, strict=False):
            assert torch.equal(image, imgops.decode_image(raw, box=one))
    for box in (corners[0], (0, 1, 4, 7), [0, 1, 4, 7]):
        for image, raw in zip(imgops.decode_images(raws, box=box), raws, strict=True):
            assert torch.equal(image, imgops.decode_image(raw, box=corners[0]))


def test_a_file_that_cannot_be_decoded(threads: int, tmp_path: Path) -> None:
    """The first one raises, and names its index; on request they are left out, and their errors are returned."""
    raws = files(8)
    bad = [raws[0], b"no image", *raws[2:5], raws[5][:40], tmp_path / "none.jpg", raws[7]]
    message = "decode_images: files[1] must be a JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 or HEIF file, got 8 bytes that begin with b'no image'"
    check_raises(lambda: imgops.decode_images(bad), ValueError, message)
    skipped: list[tuple[int, Exception]] = []
    images = imgops.decode_images(bad, skipped=skipped)
    assert [i for i, _ in skipped] == [1, 5, 6] and str(skipped[0][1]) == message
    assert [type(error) for _, error in skipped] == [ValueError, ValueError, FileNotFoundError]
    for image, raw in zip(images, [raws[i] for i in (0, 2, 3, 4, 7)], strict=True):
        assert torch.equal(image, imgops.decode_image(raw))


def test_wrong_arguments() -> None:
    raws = files(2)
    for call, error, message in (
        (
            lambda: imgops.decode_images(raws[0]),
            TypeError,
            "decode_images: files must be a sequence of files, got bytes",
        ),
        (
            lambda: imgops.decode_images(3),
            TypeError,
            "decode_images: files must be a sequence of files, got int",
        ),
        (
            lambda: imgops.decode_images(raws, box={1, 2}),
            TypeError,
            "decode_images: box must be one box, or one for each of the files, got set",
        ),
        (
            lambda: imgops.decode_images(raws, box=[None]),
            ValueError,
            "decode_images: box must be one box, or one for each of the 2 files, got 1 of them",
        ),
        (
            lambda: imgops.decode_images([raws[0], 3], skipped=[]),
            TypeError,
            "decode_images: files[1] must be a Tensor, bytes or a path, got int",
        ),
        (
            lambda: imgops.decode_images(raws, box=[None, (0, 0, 50, 1)]),
            ValueError,
            "decode_images: box[1] must lie inside of the image of 14 x 39, got (0, 0, 50, 1)",
        ),
        (
            lambda: imgops.decode_images(raws, "CMYK"),
            ValueError,
            "decode_images: mode must be one of 'L', 'LA', 'RGB', 'RGBA', 'L;16', 'LA;16', 'RGB;16', 'RGBA;16', 'UNCHANGED', got 'CMYK'",
        ),
    ):
        check_raises(call, error, message)
    assert imgops.decode_images([]) == []


def test_not_in_a_graph() -> None:
    with pytest.raises(Exception, match="decode_images: files must be decoded outside of a compiled graph"):
        torch.compile(imgops.decode_images, fullgraph=True, backend="eager")(
            [torch.zeros(3, dtype=torch.uint8)]
        )


def test_every_thread_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread waits for the files of another one."""
    before, names = torch.get_num_threads(), set()
    both = threading.Barrier(2, timeout=20)
    decode = codec.decode_image

    def slowly(*args: object, **keywords: object) -> torch.Tensor:
        names.add(threading.current_thread().name)
        if len(names) < 3:
            both.wait()
        return decode(*args, **keywords)

    monkeypatch.setattr(codec, "decode_image", slowly)
    torch.set_num_threads(2)
    try:
        assert len(imgops.decode_images(files(2))) == 2
    finally:
        torch.set_num_threads(before)
    assert len(names) == 2


def test_boxes_of_numpy() -> None:
    file = imgops.encode_image(torch.arange(192, dtype=torch.uint8).reshape(3, 8, 8))
    box = np.array([1, 2, 5, 7])
    wanted = imgops.decode_image(file)[:, 2:7, 1:5]
    for given in (box, tuple(box), box[None]):
        assert torch.equal(imgops.decode_images([file], box=given)[0], wanted)


def raised(call: Callable[[], object]) -> str:
    with pytest.raises(ValueError) as caught:
        call()
    return str(caught.value)


def skipped_by(call: Callable[[list[tuple[int, Exception]]], object]) -> str:
    skipped: list[tuple[int, Exception]] = []
    call(skipped)
    ((index, error),) = skipped
    assert index == 1
    return str(error)


def broken(kind: int, raw: bytes) -> bytes:
    """Return a file with a broken header, a file that is empty, or one whose pixels end early."""
    return (b"no image", b"", raw[: len(raw) * 2 // 3])[kind]


@pytest.mark.parametrize("as_path", [str, Path])
@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_an_error_names_the_path_of_its_file(
    kind: int, format: str, as_path: Callable[[Path], str | Path], tmp_path: Path
) -> None:
    """Every function that reads files says which one it could not read; bytes have no path to name."""
    rng = np.random.default_rng(0)
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (40, 60, 3), np.uint8)).save(file, format)
    good, bad = file.getvalue(), broken(kind, file.getvalue())
    given: list[str | Path] = [as_path(tmp_path / name) for name in ("a.jpg", "b.jpg", "c.jpg")]
    for path, raw in zip(given, (good, bad, good), strict=True):
        Path(path).write_bytes(raw)
    crop = v2.RandomResizedCrop(8, (0.9, 1.0), per_sample=True)
    one, several = (
        f"decode_image: data ({str(given[1])!r}) must be ",
        f"decode_images: files[1] ({str(given[1])!r}) must be ",
    )
    for start, call in (
        (one, lambda: imgops.decode_image(given[1])),
        (one, lambda: imgops.decode_image(given[1], box=(0, 0, 60, 40))),
        (one, lambda: imgops.EncodedImage(given[1]).decode()),
        (one, lambda: v2.CenterCrop((40, 8))(imgops.EncodedImage(given[1]))),
        (several, lambda: imgops.decode_images(given)),
        (several, lambda: imgops.decode_images(given, box=(0, 0, 60, 40))),
        (several, lambda: imgops.EncodedImages(given).decode()),
        (several, lambda: crop(imgops.EncodedImages(given))),
        (
            several,
            lambda: v2.Compose([v2.RandomCrop((40, 8)), v2.ColorJitter(0.4)], per_sample=True)(
                imgops.EncodedImages(given)
            ),
        ),
        (several, lambda: pickle.loads(pickle.dumps(imgops.EncodedImages(given))).decode()),
    ):
        said = raised(call)
        assert said.startswith(start) and said.count("b.jpg") == 1 and ", got " in said, said
    for collect in (
        lambda skipped: imgops.decode_images(given, skipped=skipped),
        lambda skipped: imgops.EncodedImages(given, skipped=skipped).decode(),
    ):
        said = skipped_by(collect)
        assert said.startswith(several) and said.count("b.jpg") == 1, said
    assert raised(lambda: imgops.decode_images([good, bad])).startswith("decode_images: files[1] must be ")
    assert raised(lambda: imgops.EncodedImages([good, bad]).decode()).startswith(
        "decode_images: files[1] must be "
    )


def test_an_error_of_a_box_names_the_path_of_its_file(tmp_path: Path) -> None:
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path, raw in zip(paths, (files(2)[1], files(2)[1]), strict=True):
        path.write_bytes(raw)
    outside, size = (0, 0, 50, 1), "must lie inside of the image of 14 x 39, got (0, 0, 50, 1)"
    where = f"for {str(paths[1])!r}"
    check_raises(
        lambda: imgops.decode_image(paths[1], box=outside), ValueError, f"decode_image: box {where} {size}"
    )
    check_raises(
        lambda: imgops.decode_images(paths, box=[None, outside]),
        ValueError,
        f"decode_images: box[1] {where} {size}",
    )
    check_raises(
        lambda: imgops.EncodedImages(paths).decode(torch.tensor([[0, 0, 1, 1], outside])),
        ValueError,
        f"EncodedImages.decode: boxes[1] {where} must be pixels of its image of 14 x 39, got (0, 0, 50, 1)",
    )
    large = f"decode_images: files[0] ({str(paths[0])!r}) must be an image of at most 9 pixels (max_pixels), got 14 x 39"
    check_raises(lambda: imgops.EncodedImages(paths, max_pixels=9), ValueError, large)


def test_a_graph_does_not_depend_on_paths(tmp_path: Path) -> None:
    counting = CompileCounter()
    decode = torch.compile(lambda image: image.decode(), fullgraph=True, dynamic=True, backend=counting)
    for i in range(4):
        path = tmp_path / f"{i}.png"
        path.write_bytes(files(2)[1])
        assert torch.equal(decode(imgops.EncodedImage(path)), imgops.decode_image(path))
    assert counting.frame_count == 1
