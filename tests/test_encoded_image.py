"""EncodedImage at the head of a pipeline: the draws and the pixels of the decoded image, and only its region decoded."""

from __future__ import annotations

import copy
import io
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checks import check_raises
from PIL import Image
from torch import Tensor
from torch.utils._pytree import tree_map
from torchvision import models as classification
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.models import detection, segmentation
from transform_cases import sample

import imgops
from imgops import EncodedImage, EncodedImages
from imgops import transforms as v2
from imgops.batches.packed import PackedImages
from imgops.kernels.cpu import _libjpeg
from imgops.ops import codec

CROPS = {
    "resized": lambda: v2.RandomResizedCrop(24, antialias=True),
    "resized-bicubic": lambda: v2.RandomResizedCrop((20, 30), interpolation="bicubic"),
    "crop": lambda: v2.RandomCrop((33, 21)),
    "center": lambda: v2.CenterCrop((30, 41)),
    "center-odd": lambda: v2.CenterCrop(33),
}
OTHERS = {
    "padded": lambda: v2.RandomCrop(40, padding=4),
    "center-larger": lambda: v2.CenterCrop((90, 30)),
    "resize": lambda: v2.Resize(20),
    "flip": lambda: v2.RandomHorizontalFlip(),
    "jitter": lambda: v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "policy": lambda: v2.RandAugment(),
    "augmix": lambda: v2.AugMix(),
    "noise": lambda: v2.GaussianNoise(),
    "grayscale": lambda: v2.Grayscale(),
    "five": lambda: v2.FiveCrop(20),
    "apply": lambda: v2.RandomApply([v2.RandomResizedCrop(24)], p=0.5),
    "choice": lambda: v2.RandomChoice([v2.CenterCrop(20), v2.Resize((20, 20))]),
    "order": lambda: v2.RandomOrder([v2.RandomHorizontalFlip(), v2.RandomInvert()]),
    "elastic": lambda: v2.RandomElastic(p=1.0),
    "to_image": lambda: v2.ToImage(),
    "dtype": lambda: v2.ToDtype(torch.float32, scale=True),
    "lambda": lambda: v2.Compose([v2.Lambda(lambda x: x + 1)]),
    "compose": lambda: v2.Compose(
        [v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]
    ),
    "nested": lambda: v2.Compose([v2.Compose([v2.RandomCrop(20)]), v2.ColorJitter(0.4)]),
}


def encoded(photograph: Tensor, **keywords: Any) -> EncodedImage:
    file = io.BytesIO()
    Image.fromarray(photograph[:, 50:120, 60:160].permute(1, 2, 0).numpy()).save(file, "JPEG", quality=90)
    return EncodedImage(file.getvalue(), **keywords)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and one.dtype == other.dtype and torch.equal(one, other)


@pytest.mark.parametrize("name", [*CROPS, *OTHERS])
def test_alone_it_is_the_decoded_image(photograph: Tensor, name: str) -> None:
    transform, image = (CROPS | OTHERS)[name](), encoded(photograph)
    for seed in range(6):
        torch.manual_seed(seed)
        expected = transform(image.decode())
        torch.manual_seed(seed)
        assert same(transform(image), expected), seed


@pytest.mark.parametrize("name", [*CROPS, *(n for n in OTHERS if n not in ("five", "lambda"))])
def test_beside_others_it_is_an_image(photograph: Tensor, name: str) -> None:
    """Masks, boxes and keypoints follow, in whatever order they come; a plain tensor stays as it is."""
    transform, image = (CROPS | OTHERS)[name](), encoded(photograph)
    others = sample(image.decode())
    del others["image"]
    if name in ("augmix", "policy"):  # torchvision's automatic policies refuse boxes and masks
        others = {"count": 3}
    for seed in range(4):
        results = []
        for pixels in (tv_tensors.Image(image.decode()), image):
            torch.manual_seed(seed)
            results.append(transform({"label": torch.tensor([3.0]), **others, "picture": pixels}))
        expected, found = results
        assert expected.keys() == found.keys()
        for key in expected:
            if isinstance(expected[key], Tensor):
                assert same(found[key], expected[key]), key
        assert type(found["picture"]) is tv_tensors.Image


@pytest.mark.parametrize("name", [*CROPS, "compose", "nested"])
def test_only_the_region_is_decoded(photograph: Tensor, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[Any] = []
    decode = codec.decode_image
    monkeypatch.setattr(
        codec, "decode_image", lambda *a, box=None, **k: boxes.append(box) or decode(*a, box=box, **k)
    )
    image = encoded(photograph)
    torch.manual_seed(1)
    (CROPS | OTHERS)[name]()(image)
    assert len(boxes) == 1 and boxes[0] is not None
    boxes.clear()
    v2.Resize(9)(image)
    assert boxes == [None]


def test_what_changes_boxes_alone_decodes_too(photograph: Tensor) -> None:
    image = encoded(photograph)
    boxes = tv_tensors.BoundingBoxes([[0, 0, 5, 5], [3, 3, 3, 3]], format="XYXY", canvas_size=(70, 100))
    given = {"image": image, "boxes": boxes, "labels": torch.tensor([1, 2])}
    for transform in (
        v2.SanitizeBoundingBoxes(),
        v2.ClampBoundingBoxes(),
        v2.ConvertBoundingBoxFormat("XYWH"),
    ):
        out = transform(given)
        assert type(out["image"]) is tv_tensors.Image and torch.equal(out["image"], image.decode())


def test_sample_and_apply(photograph: Tensor) -> None:
    transform, image = v2.RandomResizedCrop(24), encoded(photograph)
    torch.manual_seed(3)
    params = transform.sample(image)
    torch.manual_seed(3)
    expected = transform(image.decode())
    assert torch.equal(transform.apply(image, params), expected)
    assert torch.equal(transform.apply(image.decode(), params), expected)


def test_a_generator_of_its_own(photograph: Tensor) -> None:
    image = encoded(photograph)
    results = [
        v2.RandomResizedCrop(24, generator=torch.Generator().manual_seed(5))(x)
        for x in (image, image.decode())
    ]
    assert torch.equal(*results)


@pytest.mark.parametrize("name", ["resized", "crop", "center", "compose", "flip", "resize"])
def test_one_graph_for_all_sizes(photograph: Tensor, name: str) -> None:
    """A compiled pipeline takes encoded images of different sizes, with the draws of eager mode."""
    transform = (CROPS | OTHERS)[name]()
    compiled = torch.compile(transform, fullgraph=True, dynamic=True, backend="aot_eager")
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for i, (height, width) in enumerate([(70, 100), (64, 55), (90, 47), (51, 200)]):
        file = io.BytesIO()
        Image.fromarray(photograph[:, :height, :width].permute(1, 2, 0).numpy()).save(file, "JPEG")
        image = EncodedImage(file.getvalue())
        torch.manual_seed(i)
        expected = transform(image)
        torch.manual_seed(i)
        assert torch.equal(compiled(image), expected)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] - before <= 2


def test_it_is_an_object_of_its_own(photograph: Tensor, tmp_path: Path) -> None:
    image = encoded(photograph, mode="l")
    assert (
        image.shape == (1, 70, 100)
        and repr(image) == f"EncodedImage({len(image.data)} bytes, shape=(1, 70, 100))"
    )
    for other in (pickle.loads(pickle.dumps(image)), copy.deepcopy(image), tree_map(lambda x: x, image)):
        assert other.shape == image.shape and torch.equal(other.decode(), image.decode())
    path = tmp_path / "photograph.jpg"
    path.write_bytes(bytes(image.data.numpy()))
    assert torch.equal(EncodedImage(path, "L").decode(), image.decode())
    with pytest.raises(FileNotFoundError):
        EncodedImage(tmp_path / "none.jpg")


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_orientation(photograph: Tensor, format: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    Image.fromarray(photograph[:, :40, :70].permute(1, 2, 0).numpy()).save(file, format, exif=exif)
    image = EncodedImage(file.getvalue(), apply_exif_orientation=True)
    assert image.shape == (3, 70, 40) == tuple(image.decode().shape)
    for seed in range(5):
        results = []
        for x in (image, image.decode()):
            torch.manual_seed(seed)
            results.append(v2.RandomResizedCrop(16)(x))
        assert torch.equal(*results)


def test_wrong_files() -> None:
    check_raises(
        lambda: EncodedImage(b"abc"),
        ValueError,
        "decode_image: data must be a JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 or HEIF file, got 3 bytes that begin with b'abc'",
    )
    check_raises(
        lambda: EncodedImage(3), TypeError, "decode_image: data must be a Tensor, bytes or a path, got int"
    )
    raw = imgops.encode_image(torch.zeros(3, 20, 30, dtype=torch.uint8))
    with pytest.raises(ValueError, match="data must be an image of at most 599 pixels"):
        EncodedImage(raw, max_pixels=599)
    with pytest.raises(ValueError, match="mode must be one of"):
        EncodedImage(raw, "CMYK")
    with pytest.raises(TypeError, match="EncodedImage: apply_exif_orientation must be a bool, got 'no'"):
        EncodedImage(raw, apply_exif_orientation="no")
    with pytest.raises(Exception, match="EncodedImage: data must be wrapped outside of a compiled graph"):
        torch.compile(lambda x: EncodedImage(x).decode(), fullgraph=True, backend="eager")(raw)
    cut = EncodedImage(raw[: len(raw) - 4])  # the header is whole
    with pytest.raises(ValueError, match="decode_image: data must be a complete"):
        v2.Resize(8)(cut)


# -- batches of files -------------------------------------------------------------------------------


def files_of(photograph: Tensor) -> list[bytes]:
    """Return files of several sizes and kinds: EXIF data, progressive, gray, CMYK, PNG, WebP."""
    whole = Image.fromarray(photograph.permute(1, 2, 0).numpy())
    exif = Image.Exif()
    exif[0x0112] = 6
    ways: list[tuple[str, str, dict[str, Any]]] = [
        *(("RGB", "JPEG", {}), ("RGB", "JPEG", {"progressive": True, "subsampling": 0})),
        *(("RGB", "JPEG", {"exif": exif}), ("L", "JPEG", {}), ("CMYK", "JPEG", {})),
        *(("RGB", "PNG", {}), ("RGBA", "PNG", {}), ("RGB", "WEBP", {"lossless": True})),
    ]
    made = []
    for i, (mode, format, keywords) in enumerate(ways):
        file = io.BytesIO()
        whole.crop((10 * i, 5 * i, 10 * i + 90 + 3 * i, 5 * i + 120 - 7 * i)).convert(mode).save(
            file, format, **keywords
        )
        made.append(file.getvalue())
    return made


BATCHED = {
    "resized": lambda **k: v2.RandomResizedCrop(24, antialias=True, **k),
    "resized-nearest": lambda **k: v2.RandomResizedCrop(24, interpolation="nearest", **k),
    "crop": lambda **k: v2.RandomCrop((33, 21), **k),
    "compose": lambda **k: v2.Compose(
        [v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)], **k
    ),
    "later": lambda **k: v2.Compose([v2.RandomHorizontalFlip(), v2.RandomResizedCrop(24)], **k),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_is_the_loop(photograph: Tensor, name: str, threads: int) -> None:
    files, before = files_of(photograph), torch.get_num_threads()
    images = EncodedImages(files)
    one, whole = BATCHED[name](), BATCHED[name](per_sample=True)
    torch.set_num_threads(threads)
    for seed in range(4):
        torch.manual_seed(seed)
        expected = torch.stack([one(imgops.decode_image(file)) for file in files])
        torch.manual_seed(seed)
        assert torch.equal(whole(images), expected)
    torch.set_num_threads(before)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_batch_decodes_boxes(photograph: Tensor, mode: str, turned: bool) -> None:
    files = files_of(photograph)
    images = EncodedImages(files, mode, apply_exif_orientation=turned)
    each = [imgops.decode_image(file, mode, apply_exif_orientation=turned) for file in files]
    assert images.sizes.tolist() == [list(x.shape[1:]) for x in each]
    assert all(map(torch.equal, images.decode().unpack(), each))
    boxes = torch.stack([torch.tensor([3, 5, x.shape[2] - 7, x.shape[1] - 1]) for x in each])
    parts = [x[:, 5:-1, 3:-7] for x in each]
    assert all(map(torch.equal, images.decode(boxes).unpack(), parts))


def test_no_other_way_than_libjpeg(photograph: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(photograph)
    expected = EncodedImages(files).decode().unpack()
    monkeypatch.setattr(_libjpeg, "module", None)
    assert all(map(torch.equal, EncodedImages(files).decode().unpack(), expected))


@pytest.mark.parametrize(
    ("steps", "needs_all"),
    [
        ([v2.CenterCrop((20, 30))], False),
        pytest.param(
            [v2.Resize(256), v2.CenterCrop(100)], False, marks=pytest.mark.needs("native", "libjpeg")
        ),
        ([v2.Resize(256), v2.CenterCrop(300)], True),
        ([v2.Resize((256, 256))], True),
    ],
)
def test_only_what_is_kept_is_decoded(photograph: Tensor, steps: list[Any], needs_all: bool) -> None:
    """The end of a file may be missing if nothing that is kept of the image needs it."""
    whole = imgops.encode_image(photograph)
    cut = whole[: len(whole) * 9 // 10]
    for more in ([], [v2.ToDtype(torch.float32, scale=True)]):
        transform, skipped = v2.Compose([*steps, *more]), []
        found = transform(EncodedImages([whole, cut], skipped=skipped))
        assert len(skipped) == needs_all
        assert torch.equal(found[1], found[0]) != needs_all
        assert torch.equal(found[0], transform(imgops.decode_image(whole)))


def test_damaged_files_of_a_batch(photograph: Tensor) -> None:
    files = files_of(photograph)
    whole = EncodedImages(files).decode().unpack()
    bad = [files[0], files[1][: len(files[1]) // 2], b"no image", files[3]]
    for text, given in (("files[1] must be a complete JPEG", bad[:2]), ("files[2] must be a JPEG", bad)):
        with pytest.raises(ValueError, match=re.escape(f"decode_images: {text}")):
            EncodedImages(given).decode()
    skipped: list[tuple[int, Exception]] = []
    packed = EncodedImages(bad, skipped=skipped).decode()
    assert sorted(i for i, _ in skipped) == [1, 2]
    assert torch.equal(packed[0], whole[0])
    assert torch.equal(packed[3], whole[3])
    assert packed[1].shape == whole[1].shape
    assert not packed[1].any()
    assert packed[2].shape == whole[0].shape  # that of the first file with a header
    count = len(skipped)
    images = EncodedImages(bad, skipped=skipped)
    images.decode()
    images.decode()
    assert len(skipped) == count + 2  # each file once
    with pytest.raises(TypeError, match="skipped must be a list, got dict"):
        EncodedImages(bad, skipped={})  # type: ignore[arg-type]
    assert v2.CenterCrop(20)(EncodedImages([files[0], b"junk"], skipped=[])).shape == (2, 3, 20, 20)
    skipped.clear()
    out = v2.RandomResizedCrop(16, per_sample=True)(EncodedImages(bad, skipped=skipped))
    assert out.shape == (4, 3, 16, 16)
    assert {i for i, _ in skipped} <= {1, 2}  # of a truncated file a box near the top may be there


def test_a_batch_of_files_that_is_wrong(photograph: Tensor) -> None:
    images = EncodedImages(files_of(photograph))
    good = images._boxes(None)
    for change, text in (
        (torch.tensor([0, 0, 0, 0]), "boxes[0] must be pixels of its image"),
        (torch.tensor([0, 0, 1000, 4]), "boxes[0] must be pixels of its image"),
        (torch.tensor([-1, 0, 4, 4]), "boxes[0] must be pixels of its image"),
    ):
        boxes = good.clone()
        boxes[0] = change
        with pytest.raises(ValueError, match=re.escape(text)):
            images.decode(boxes)
    for boxes in (good.int(), good[:3], good[0]):
        with pytest.raises(ValueError, match=r"boxes must be int64 of shape \(8, 4\), got"):
            images.decode(boxes)
    for files, error in (([], ValueError), (b"file", TypeError), (7, TypeError), ([3], TypeError)):
        with pytest.raises(error, match=r"must be .*, got"):
            EncodedImages(files)  # type: ignore[arg-type]
    for transform, error in (
        (v2.RandomResizedCrop(8), ValueError),
        (v2.RandomRotation(10, per_sample=True), TypeError),
        (v2.RandomApply([v2.RandomCrop(8)], per_sample=True), (TypeError, ValueError)),
    ):
        with pytest.raises(error, match=r"must .*, got"):
            transform(images)


@pytest.mark.parametrize("name", BATCHED)
def test_one_graph_for_batches_of_any_size(photograph: Tensor, name: str) -> None:
    """The files are decoded in the graph, with the draws of eager mode."""
    whole, files = BATCHED[name](per_sample=True), files_of(photograph)
    compiled = torch.compile(whole, fullgraph=True, dynamic=True, backend="aot_eager")
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for seed, chosen in enumerate((files[:4], files[2:7], files[::-1])):
        torch.manual_seed(seed)
        expected = whole(EncodedImages(chosen))
        torch.manual_seed(seed)
        assert torch.equal(compiled(EncodedImages(chosen)), expected)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] - before == 1


def test_a_graph_says_what_is_wrong(photograph: Tensor) -> None:
    files = files_of(photograph)
    compiled = torch.compile(lambda x, boxes: x.decode(boxes).data, fullgraph=True, backend="eager")
    images = EncodedImages(files)
    boxes = images._boxes(None)
    assert torch.equal(compiled(images, boxes), images.decode().data)
    broken = EncodedImages([files[0], files[1][: len(files[1]) // 2]])
    with pytest.raises(ValueError, match=re.escape("decode_images: files[1] must be a complete JPEG")):
        compiled(broken, boxes[:2])
    beyond = boxes.clone()
    beyond[2, 2:] += 1
    with pytest.raises(ValueError, match=re.escape("decode_images: box[2] must")):
        compiled(images, beyond)
    with pytest.raises(Exception, match="skipped must be None in a compiled graph"):
        compiled(EncodedImages(files, skipped=[]), boxes)


def test_a_batch_of_files_is_exported(photograph: Tensor) -> None:
    class Model(torch.nn.Module):
        def forward(self, files: EncodedImages, boxes: Tensor) -> Tensor:
            packed = files.decode(boxes)
            return imgops.resize(packed, (12, 10)).float().mean((-1, -2))

    files = files_of(photograph)
    images, other = EncodedImages(files[:4]), EncodedImages(files[2:])
    count = torch.export.Dim("count")
    shapes = {"files": [{0: torch.export.Dim.AUTO}, {0: count + 1}, {0: count}], "boxes": {0: count}}
    model = Model()
    program = torch.export.export(model, (images, images._boxes(None)), dynamic_shapes=shapes)
    boxes = other._boxes(None)
    assert torch.equal(program.module()(other, boxes), model(other, boxes))


@pytest.mark.needs("libjpeg")
def test_the_native_call_checks_what_it_writes(photograph: Tensor) -> None:
    file = files_of(photograph)[0]
    height, width = 120, 90
    out, done = np.zeros(3 * 4 * 5 + 7, np.uint8), np.zeros(1, np.uint8)
    facts = np.array([[7, 1, 2, 4, 5, height, width]])

    def call(**changes: Any) -> bool:
        given = {
            "out": out,
            "files": [file],
            "facts": facts,
            "done": done,
            "channels": 3,
            "interleaved": False,
        }
        given |= {"first": 0, "last": 1} | changes
        _libjpeg.module.decode_each(*given.values())
        return bool(done[0])

    assert call()
    assert call(channels=3, interleaved=True)
    for column, value in (
        (0, 8),
        (0, -1),
        (1, 86),
        (1, -1),
        (2, 117),
        (3, 0),
        (4, 91),
        (3, 1 << 62),
        (5, 70000),
    ):
        wrong = facts.copy()
        wrong[0, column] = value
        with pytest.raises(ValueError, match="native: "):
            call(facts=wrong)
    for change in (
        {"channels": 2},
        {"last": 2},
        {"first": -1},
        {"facts": facts[:, :6]},
        {"files": []},
        {"done": done[:0]},
    ):
        with pytest.raises(ValueError, match="native: "):
            call(**change)
    with pytest.raises(TypeError):
        call(files=[7])
    assert not call(facts=np.array([[7, 1, 2, 4, 5, height, width + 1]]))  # the header lies, or the caller


@pytest.mark.parametrize("height", [4, 5, 8, 9])
def test_center_crops_that_are_padded_by_a_pixel(height: int) -> None:
    file = imgops.encode_image(torch.randint(0, 256, (3, height, height + 3), dtype=torch.uint8))
    for size in range(1, 14):
        wanted = v2.CenterCrop(size)(imgops.decode_image(file))
        assert torch.equal(v2.CenterCrop(size)(EncodedImage(file)), wanted)


def test_a_wrong_setting_is_no_fault_of_a_file() -> None:
    file = imgops.encode_image(torch.zeros(3, 8, 8, dtype=torch.uint8))
    for make in (imgops.decode_images, EncodedImages):
        with pytest.raises(ValueError, match="mode must be one of"):
            make([file], "RBG", skipped=[])
        with pytest.raises(TypeError, match="max_pixels must be an integer, got str"):
            make([file], max_pixels="many", skipped=[])


def test_a_path_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a file whose header Pillow reads; errors name it."""
    files = [tmp_path / "a.png", tmp_path / "b.tiff", tmp_path / "c.jpg"]
    for file in files:
        Image.new("RGB", (5, 4)).save(file)
    read, read_bytes = [], Path.read_bytes

    def counted(path: Path) -> bytes:
        read.append(path)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    for mode in ("RGB", "unchanged"):
        read.clear()
        assert len(EncodedImages(files, mode)) == 3 and sorted(read) == files
    files[1].write_bytes(read_bytes(files[1])[:50])
    said = re.escape(f"decode_images: files[1] ({str(files[1])!r}) must be a complete")
    for mode in ("RGB", "unchanged"):
        with pytest.raises(ValueError, match=f"^{said}"):
            EncodedImages(files, mode)
        skipped: list[Any] = []
        assert len(EncodedImages(files, mode, skipped=skipped)) == 3
        assert [i for i, _ in skipped] == [1] and re.match(said, str(skipped[0][1]))


def test_saved_and_loaded_in_the_safe_mode() -> None:
    file = imgops.encode_image(torch.zeros(3, 8, 8, dtype=torch.uint8))
    memory = io.BytesIO()
    torch.save([EncodedImage(file), EncodedImages([file])], memory)
    memory.seek(0)
    one, batch = torch.load(memory)
    assert torch.equal(one.decode(), batch.decode()[0])


def test_conversions_take_images_of_different_sizes() -> None:
    """The whole pipelines of torchvision's weights, and pipelines that begin with a conversion, as on PIL images."""
    sizes = ((40, 60), (70, 33), (50, 50))
    files = [imgops.encode_image(torch.randint(0, 256, (3, *size), dtype=torch.uint8)) for size in sizes]
    pictures = [Image.open(io.BytesIO(file.numpy().tobytes())) for file in files]
    images = imgops.decode_images(files)
    batches = (
        EncodedImages(files),
        *(PackedImages.of(images, interleaved=side) for side in (False, True)),
    )
    norm = ([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
    steps = [
        segmentation.DeepLabV3_ResNet50_Weights.DEFAULT.transforms(),
        detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT.transforms(),
        classification.ResNet50_Weights.DEFAULT.transforms(),
        v1.ToTensor(),
        v1.Compose([v1.PILToTensor(), v1.ConvertImageDtype(torch.float64), v1.Normalize(*norm)]),
    ]
    for given in steps:
        wanted, ours = [given(picture) for picture in pictures], v2.convert(given)
        for batch in batches:
            for x, y in zip(ours(batch), wanted, strict=True):
                assert torch.equal(x, y) and x.dtype == y.dtype, given
            assert ours((batch, torch.arange(3)))[1].tolist() == [0, 1, 2]
        graph = torch.compile(ours, fullgraph=True, backend="aot_eager")
        assert all(torch.equal(x, y) for x, y in zip(graph(batches[1]), wanted, strict=True)), given
    for first in (v2.ToImage(), v2.PILToTensor(), v2.ToPureTensor(), v2.Identity()):
        training = v2.Compose([first, v2.RandomResizedCrop(24), v2.RandomHorizontalFlip()])
        whole = v2.Compose(training.transforms, per_sample=True)
        for batch in batches:
            torch.manual_seed(0)
            out = whole(batch)
            torch.manual_seed(0)
            assert torch.equal(out, torch.stack([training(x).as_subclass(Tensor) for x in images])), first
    floats = batches[1].float()
    with pytest.raises(ValueError, match="mean must have 1 number or 3"):
        v2.Normalize([0.5] * 2, [0.5] * 2)(floats)
    gray = PackedImages.of([torch.rand(1, 4, 4)])
    with pytest.raises(ValueError, match="for images of different sizes of 1 channel, got 3"):
        v2.Normalize(*norm)(gray)
    data = floats.data.clone()
    v2.Normalize(*norm, inplace=True)(floats)
    assert torch.equal(floats.data, v2.Normalize(*norm)(floats.like(data)).data)


def test_a_crop_without_pixels_is_refused_by_its_size() -> None:
    image = torch.zeros(3, 8, 9, dtype=torch.uint8)
    for batch in (EncodedImages([imgops.encode_image(image)] * 2), PackedImages.of([image, image])):
        for size in (0, -2, (0, 5), (5, -1)):
            for crop in (v2.CenterCrop(size), v2.RandomCrop(size, per_sample=True)):
                for steps in ([crop], [v2.Resize(6), crop]):
                    with pytest.raises(ValueError, match=r"size must be at least \(1, 1\), got \("):
                        v2.Compose(steps, per_sample=True)(batch)
