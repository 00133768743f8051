"""EncodedImage and EncodedImages at the head of a pipeline: the draws and the pixels of the decoded images."""

from __future__ import annotations

import copy
import io
import pickle
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils._pytree import tree_map
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.models import detection, segmentation

import imgops
from imgops import EncodedImage, EncodedImages, decode_image, decode_images, encode_image
from imgops import transforms as v2
from imgops.batches.packed import PackedImages
from imgops.kernels.cpu import _libjpeg
from imgops.ops import codec
from tests.files import kinds, levelled, oriented, planar, saved, tensor, tiff
from tests.groups import compile_together, together
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import CASES, containers, picture, same, sample, seeded

pytestmark = pytest.mark.filterwarnings("ignore")
SCALE = v2.ToDtype(torch.float32, scale=True)

#: Pipelines whose first transform needs a part of an image, as functions of their arguments.
REGIONS: dict[str, Callable[..., Any]] = {
    "resized": lambda **k: v2.RandomResizedCrop(24, **k),
    "resized-nearest": lambda **k: v2.RandomResizedCrop((20, 30), interpolation="nearest", **k),
    "resized-bicubic": lambda **k: v2.RandomResizedCrop((20, 30), interpolation="bicubic", **k),
    "crop": lambda **k: v2.RandomCrop((33, 21), **k),
    "compose": lambda **k: v2.Compose([v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), SCALE], **k),
    "nested": lambda **k: v2.Compose([v2.Compose([v2.RandomCrop(20)]), v2.ColorJitter(0.4)], **k),
}
ALL: dict[str, Any] = {
    **{name: make() for name, make in REGIONS.items()},
    **{f"CenterCrop {size}": v2.CenterCrop(size) for size in ((30, 41), 33, (90, 30))},
    **{str(case): case.make(v2) for case in CASES if not case.boxes},
    **containers(v2),
    "five": v2.FiveCrop(20),
    "lambda": v2.Compose([v2.Lambda(lambda x: x + 1)]),
    "later": v2.Compose([v2.RandomHorizontalFlip(), v2.RandomResizedCrop(24)]),
}
SMALL = v2.RandomResizedCrop(9, scale=(0.3, 1.0))
#: Pipelines for files of any size.
USUAL = [
    v2.Compose([v2.Resize(14), v2.CenterCrop(12), SCALE]),
    v2.Compose([SMALL, v2.RandomHorizontalFlip(), v2.ColorJitter(0.3, 0.3), SCALE]),
]


def encoded(height: int = 40, width: int = 52, seed: int = 0, **how: Any) -> EncodedImage:
    return EncodedImage(encode_image(picture(torch.uint8, height, width, seed)), **how)


@pytest.mark.parametrize("count", nightly_unless(lambda count: count < 6, [1, 6]))
def test_it_is_the_decoded_image(count: int) -> None:
    """Of every transform: alone, and beside masks, boxes and keypoints, which follow it; a plain tensor stays."""
    image = encoded()
    for name, transform in ALL.items():
        # torchvision's automatic policies and its reflected borders refuse boxes.
        others = {"count": 3} if "Aug" in name or name == "Pad" else sample(image.decode()) | {"image": 3}
        for seed in range(count):
            same(*(seeded(seed, transform, x) for x in (image, image.decode())), name)
            if name in ("five", "lambda"):
                continue
            given = {"label": torch.tensor([3.0]), **others}
            pixels = image, tv_tensors.Image(image.decode())
            found, wanted = (seeded(seed, transform, {**given, "picture": x}) for x in pixels)
            assert type(found["picture"]) is tv_tensors.Image and found.keys() == wanted.keys(), name
            same(found, wanted, name)


def test_only_the_region_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[Any] = []
    decode, image = codec.decode_image, encoded(70, 100)
    monkeypatch.setattr(
        codec, "decode_image", lambda *a, box=None, **k: boxes.append(box) or decode(*a, box=box, **k)
    )
    for transform in (*(make() for make in REGIONS.values()), v2.CenterCrop((30, 41)), v2.CenterCrop(33)):
        transform(image)
        assert len(boxes) == 1 and boxes.pop() is not None
    v2.Resize(9)(image)
    assert boxes == [None]


def test_other_ways_to_call_a_transform() -> None:
    image, crop = encoded(), v2.RandomResizedCrop(24)
    boxes = tv_tensors.BoundingBoxes([[0, 0, 5, 5], [3, 3, 3, 3]], format="XYXY", canvas_size=(40, 52))
    given = {"image": image, "boxes": boxes, "labels": torch.tensor([1, 2])}
    changes = v2.SanitizeBoundingBoxes(), v2.ClampBoundingBoxes(), v2.ConvertBoundingBoxFormat("XYWH")
    for transform in changes:  # of boxes alone
        same(transform(given)["image"], tv_tensors.Image(image.decode()))
    params, expected = seeded(3, crop.sample, image), seeded(3, crop, image.decode())
    for given in (image, image.decode()):
        same(crop.apply(given, params), expected)
    own = (v2.RandomResizedCrop(24, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    same(next(own)(image), next(own)(image.decode()))
    turned = EncodedImage(kinds()["JPEG progressive"], apply_exif_orientation=True)
    same(seeded(1, crop, turned), seeded(1, crop, turned.decode()))
    for height, size in ((h, size) for h in (4, 5, 8, 9) for size in range(1, 14)):
        small = encoded(height, height + 3)
        same(v2.CenterCrop(size)(small), v2.CenterCrop(size)(small.decode()))


def test_it_is_an_object_of_its_own() -> None:
    image = encoded(mode="l")
    assert repr(image) == f"EncodedImage({len(image.data)} bytes, shape=(1, 40, 52))"
    memory = io.BytesIO()
    torch.save(
        [image, EncodedImages([image.data] * 2, "L")], memory
    )  # which torch.load reads in its safe mode
    memory.seek(0)
    loaded, several = torch.load(memory)
    for other in (loaded, pickle.loads(pickle.dumps(image)), copy.deepcopy(image), tree_map(id, image)):
        assert other.shape == image.shape and torch.equal(other.decode(), image.decode())
    assert torch.equal(several.decode()[1], image.decode())


# -- batches of files -------------------------------------------------------------------------------


def files_of(count: int = 8) -> list[bytes]:
    """Return files of several sizes and kinds: EXIF data, progressive, gray, CMYK, PNG, WebP."""
    ways: list[tuple[str, str, dict[str, Any]]] = [
        *(("RGB", "JPEG", {}), ("RGB", "JPEG", {"progressive": True, "subsampling": 0})),
        *(("RGB", "JPEG", {"exif": oriented(6)}), ("L", "JPEG", {}), ("CMYK", "JPEG", {})),
        *(("RGB", "PNG", {}), ("RGBA", "PNG", {}), ("RGB", "WEBP", {"lossless": True})),
    ]
    made = []
    for i, (mode, format, options) in enumerate(ways[:count]):
        pixels = picture(torch.uint8, 120 - 7 * i, 90 + 3 * i, seed=i).permute(1, 2, 0).numpy()
        made.append(saved(Image.fromarray(pixels).convert(mode), format, **options))
    return made


def deep_files() -> list[bytes]:
    """Return files of RGBA of 16 bits."""
    rng = np.random.default_rng(0)
    pixels = [rng.integers(0, 65536, (height, 40, 4)).astype(np.uint16) for height in (40, 43, 47, 50, 41)]
    png = bytes(encode_image(planar(pixels[0]), "png").numpy())
    return [png, *(tiff(x, "<>"[i % 2], rows=9 * i, deflate=i > 1) for i, x in enumerate(pixels[1:]))]


#: Batches of files, and how they are read.
BATCHES: dict[str, tuple[Callable[[], Iterable[bytes]], dict[str, Any]]] = {
    "files": (files_of, {}),
    "gray": (files_of, {"mode": "LA"}),
    "turned": (files_of, {"apply_exif_orientation": True}),
    "every kind": (lambda: levelled().values(), {}),
    "16 bits": (deep_files, {"mode": "unchanged"}),
    "16 bits by name": (deep_files, {"mode": "RGBA;16"}),
}


@pytest.mark.parametrize("threads", nightly_unless(lambda threads: threads == 3, [1, 3]))
@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_is_the_loop(name: str, threads: int) -> None:
    make, how = BATCHES[name]
    images, before = EncodedImages(make(), **how), torch.get_num_threads()
    decoded = [decode_image(file, **how) for file in make()]
    assert images.sizes.tolist() == [list(x.shape[1:]) for x in decoded]
    assert (images.num_channels, images.dtype) == (len(decoded[0]), decoded[0].dtype)
    torch.set_num_threads(threads)
    boxes = torch.tensor([[x.shape[2] // 3, 0, x.shape[2], (x.shape[1] + 1) // 2] for x in decoded])
    for part, x in zip(images.decode(boxes).unpack(), decoded, strict=True):
        assert torch.equal(part, x[:, : (x.shape[1] + 1) // 2, x.shape[2] // 3 :])
    large = [make() for make in REGIONS.values()] if name != "every kind" else []
    for seed, pipeline in enumerate((*USUAL, *large)):
        whole = v2.Compose([pipeline], per_sample=True)
        wanted = seeded(seed, lambda p=pipeline: torch.stack([p(x) for x in decoded]))
        assert torch.equal(seeded(seed, whole, images), wanted), pipeline
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", nightly_unless(lambda name: name == "compose", REGIONS))
def test_a_graph_of_one_file(name: str, tmp_path: Path) -> None:
    """One graph for files of any size, with the draws of eager mode."""
    one = {"first": REGIONS[name](), "decode": EncodedImage.decode}
    if name != "compose":
        one["later"] = ALL["Resize" if name == "crop" else "later"]
    graph, counting = compile_together(one, dynamic=True)
    for seed, (height, width) in enumerate([(70, 100), (64, 55), (90, 47)]):
        path = tmp_path / f"{seed}"  # which is not a part of the graph
        path.write_bytes(bytes(encoded(height, width, seed).data.numpy()))
        found, wanted = (seeded(seed, call, EncodedImage(path)) for call in (graph, together(one)))
        same(found, wanted)
    assert counting.count <= 2


@pytest.mark.parametrize("name", nightly_unless(lambda name: name == "16 bits", BATCHES))
def test_a_graph_of_batches(name: str) -> None:
    """One graph for batches of any length, with the draws of eager mode."""
    make, how = BATCHES[name]
    large = {} if name in ("every kind", "16 bits") else REGIONS
    calls = {key: make(per_sample=True) for key, make in large.items() if key != "nested"}
    calls |= {
        str(i): v2.Compose([pipeline], per_sample=True)
        for i, pipeline in enumerate(USUAL)
        if i or name != "16 bits"
    }
    graph, counting = compile_together(calls, dynamic=True)
    files = [*make()]
    for seed, chosen in enumerate((files[-4:], files[::-1])):
        images = EncodedImages(chosen, **how)
        found, wanted = (seeded(seed, call, images) for call in (graph, together(calls)))
        same(found, wanted)
    assert counting.count == 1


def test_a_graph_says_what_is_wrong() -> None:
    compiled = torch.compile(lambda x, boxes: x.decode(boxes).data, fullgraph=True, backend="eager")
    files = files_of(4)
    images, broken = EncodedImages(files), EncodedImages([files[0], files[1][: len(files[1]) // 2]])
    boxes = images._boxes(None)
    assert torch.equal(compiled(images, boxes), images.decode().data)
    with pytest.raises(ValueError, match=re.escape("decode_images: files[1] must be a complete JPEG")):
        compiled(broken, boxes[:2])
    with pytest.raises(ValueError, match=re.escape("decode_images: box[2] must")):
        compiled(images, boxes + torch.tensor([0, 0, 1, 1]) * (torch.arange(4)[:, None] == 2))
    with pytest.raises(Exception, match="skipped must be None in a compiled graph"):
        compiled(EncodedImages(files, skipped=[]), boxes)
    with pytest.raises(Exception, match="EncodedImage: data must be wrapped outside of a compiled graph"):
        torch.compile(lambda x: EncodedImage(x).decode(), fullgraph=True, backend="eager")(tensor(files[0]))


def test_a_batch_of_files_is_exported() -> None:
    class Model(torch.nn.Module):
        def forward(self, files: EncodedImages, boxes: Tensor) -> Tensor:
            return imgops.resize(files.decode(boxes), (12, 10)).float().mean((-1, -2))

    images, other = EncodedImages(files_of()[:4]), EncodedImages(files_of()[2:])
    count = torch.export.Dim("count")
    shapes = {"files": [{0: torch.export.Dim.AUTO}, {0: count + 1}, {0: count}], "boxes": {0: count}}
    program = torch.export.export(Model(), (images, images._boxes(None)), dynamic_shapes=shapes)
    boxes = other._boxes(None)
    assert torch.equal(program.module()(other, boxes), Model()(other, boxes))


@pytest.mark.parametrize(
    ("steps", "needs_all"),
    [
        ([v2.CenterCrop((20, 30))], False),
        pytest.param(
            [v2.Resize(100), v2.CenterCrop(40)], False, marks=pytest.mark.needs("native", "libjpeg")
        ),
        ([v2.Resize(100), v2.CenterCrop(120)], True),
        ([v2.Resize((100, 100))], True),
    ],
)
def test_only_what_is_kept_is_decoded(steps: list[Any], needs_all: bool) -> None:
    """The end of a file may be missing if nothing that is kept of the image needs it."""
    whole = encode_image(picture(torch.uint8, 240, 200))
    cut = whole[: len(whole) * 9 // 10]
    for more in ([], [SCALE]):
        transform, skipped = v2.Compose([*steps, *more]), []
        found = transform(EncodedImages([whole, cut], skipped=skipped))
        assert len(skipped) == needs_all and torch.equal(found[1], found[0]) != needs_all
        assert torch.equal(found[0], transform(decode_image(whole)))


def test_damaged_files_of_a_batch() -> None:
    """They are black in the size of their header, else in that of the first file; each is reported once."""
    files, skipped = files_of(4), []
    whole = EncodedImages(files).decode().unpack()
    bad = [files[0], files[1][: len(files[1]) // 2], b"no image", files[3]]
    for text, given in (("files[1] must be a complete JPEG", bad[:2]), ("files[2] must be a JPEG", bad)):
        with pytest.raises(ValueError, match=re.escape(f"decode_images: {text}")):
            EncodedImages(given).decode()
    images = EncodedImages(bad, skipped=skipped)
    for _ in range(2):
        packed = images.decode()
        assert sorted(i for i, _ in skipped) == [1, 2]
    assert torch.equal(packed[0], whole[0]) and torch.equal(packed[3], whole[3])
    assert packed[1].shape == whole[1].shape and packed[2].shape == whole[0].shape
    assert not packed[1].any() and not packed[2].any()
    assert v2.CenterCrop(20)(EncodedImages([files[0], b"junk"], skipped=[])).shape == (2, 3, 20, 20)
    skipped.clear()
    out = v2.RandomResizedCrop(16, per_sample=True)(EncodedImages(bad, skipped=skipped))
    assert out.shape == (4, 3, 16, 16)
    assert {i for i, _ in skipped} <= {1, 2}  # of a truncated file a box near the top may be there
    deep = deep_files()
    batch = EncodedImages([b"no image", deep[0], deep[1][:-50]], "unchanged", skipped=(skipped := []))
    black, image, cut = batch.decode().unpack()
    assert batch.mode == "RGBA;16" and [i for i, _ in skipped] == [0, 2]
    assert not black.int().any() and not cut.int().any()
    assert torch.equal(image, decode_image(deep[0], "unchanged"))


def test_a_batch_of_files_that_is_wrong() -> None:
    images = EncodedImages(files_of())
    good = images._boxes(None)
    for change in ([0, 0, 0, 0], [0, 0, 1000, 4], [-1, 0, 4, 4]):
        boxes = torch.cat([torch.tensor([change]), good[1:]])
        with pytest.raises(ValueError, match=re.escape("boxes[0] must be pixels of its image")):
            images.decode(boxes)
    for boxes in (good.int(), good[:3], good[0]):
        with pytest.raises(ValueError, match=r"boxes must be int64 of shape \(8, 4\), got"):
            images.decode(boxes)
    for transform, error in (
        (v2.RandomResizedCrop(8), ValueError),
        (v2.RandomRotation(10, per_sample=True), TypeError),
        (v2.RandomApply([v2.RandomCrop(8)], per_sample=True), (TypeError, ValueError)),
    ):
        with pytest.raises(error, match=r"must .*, got"):
            transform(images)
    image = torch.zeros(3, 8, 9, dtype=torch.uint8)
    for batch in (EncodedImages([encode_image(image)] * 2), PackedImages.of([image, image])):
        for size in (0, -2, (0, 5), (5, -1)):
            for crop in (v2.CenterCrop(size), v2.RandomCrop(size, per_sample=True)):
                for steps in ([crop], [v2.Resize(6), crop]):
                    with pytest.raises(ValueError, match=r"size must be at least \(1, 1\), got \("):
                        v2.Compose(steps, per_sample=True)(batch)


def test_a_path_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a file whose header Pillow reads."""
    files = [tmp_path / "a.png", tmp_path / "b.tiff", tmp_path / "c.jpg"]
    for file in files:
        Image.new("RGB", (5, 4)).save(file)
    read, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or read_bytes(path))
    for mode in ("RGB", "unchanged"):
        read.clear()
        assert EncodedImages(files, mode).mode == "RGB" and sorted(read) == files


@pytest.mark.needs("libjpeg")
def test_the_native_call_checks_what_it_writes() -> None:
    height, width = 120, 90
    out, done = np.zeros(3 * 4 * 5 + 7, np.uint8), np.zeros(1, np.uint8)
    facts = np.array([[7, 1, 2, 4, 5, height, width]])

    def call(**changes: Any) -> bool:
        given = {"out": out, "files": files_of(1), "facts": facts, "done": done, "channels": 3}
        given |= {"interleaved": False, "first": 0, "last": 1} | changes
        _libjpeg.module.decode_each(*given.values())
        return bool(done[0])

    def with_fact(column: int, value: int) -> np.ndarray:
        return np.where(np.arange(7) == column, value, facts)

    assert call() and call(interleaved=True)
    assert not call(facts=with_fact(6, width + 1))  # the header lies, or the caller
    wrong = ((0, 8), (0, -1), (1, 86), (1, -1), (2, 117), (3, 0), (4, 91), (3, 1 << 62), (5, 70000))
    changes: list[dict[str, Any]] = [{"facts": with_fact(*fact)} for fact in wrong]
    changes += [{"channels": 2}, {"last": 2}, {"first": -1}, {"facts": facts[:, :6]}, {"files": []}]
    for change in (*changes, {"done": done[:0]}):
        with pytest.raises(ValueError, match="native: "):
            call(**change)
    with pytest.raises(TypeError):
        call(files=[7])


@nightly
def test_conversions_take_images_of_different_sizes() -> None:
    """The whole pipelines of torchvision's weights, and those that only convert, as on PIL images."""
    files = [bytes(encoded(*size).data.numpy()) for size in ((40, 60), (70, 33), (50, 50))]
    pictures = [Image.open(io.BytesIO(file)) for file in files]
    packed = PackedImages.of(decode_images(files))
    norm = ([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
    for given in (
        segmentation.DeepLabV3_ResNet50_Weights.DEFAULT.transforms(),
        detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT.transforms(),
        v1.Compose([v1.PILToTensor(), v1.ConvertImageDtype(torch.float64), v1.Normalize(*norm)]),
    ):
        wanted, ours = [given(x) for x in pictures], v2.convert(given)
        for batch in (EncodedImages(files), packed, PackedImages.of(packed.unpack(), interleaved=True)):
            found, labels = ours((batch, torch.arange(3)))
            same(found.unpack() if isinstance(found, PackedImages) else found, wanted, given)
            assert labels.tolist() == [0, 1, 2]
    graph = torch.compile(ours, fullgraph=True, backend="aot_eager")
    assert all(map(torch.equal, graph(packed), wanted))
    for numbers, images, must in (
        (([0.5] * 2, [0.5] * 2), packed.float(), "mean must have 1 number or 3"),
        (norm, PackedImages.of([torch.rand(1, 4, 4)]), "for images of different sizes of 1 channel, got 3"),
    ):
        with pytest.raises(ValueError, match=must):
            v2.Normalize(*numbers)(images)
    floats = packed.float()
    v2.Normalize(*norm, inplace=True)(floats)
    assert torch.equal(floats.data, v2.Normalize(*norm)(packed.float()).data)
