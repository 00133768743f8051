"""Packed images: each gets the bits of its own call, gradients go back to the buffer, and a graph takes any sizes."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from checks import bits_equal
from PIL import Image
from torch import Tensor
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2 as tv

import imgops
from imgops import EncodedImages, PackedImages
from imgops import transforms as v2
from imgops._operator import call as operator_call
from imgops._operator.record import operators
from imgops.batches import operators as operators_of_packed
from imgops.kernels.cpu import _threads, native
from tests.packed_calls import DTYPES, PACKED, one_by_one, packed_arguments
from tests.specs import SPECS, Sample
from tests.specs._draw import Draw
from tests.specs._maker import Maker

SIZES = ((20, 31), (7, 5), (64, 3), (16, 16), (33, 40))


def images(dtype: torch.dtype = torch.uint8, channels: int = 3, interleaved: bool = False) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    made = []
    for height, width in SIZES:
        values = torch.rand((channels, height, width), generator=generator, dtype=torch.float64)
        values = (values * 255).to(dtype) if dtype == torch.uint8 else values.to(dtype)
        made.append(values.permute(1, 2, 0).contiguous().permute(2, 0, 1) if interleaved else values)
    return made


#: Parameters of each image.
N = len(SIZES)
TURNS = torch.eye(2, 3).expand(N, 2, 3) + torch.linspace(-0.2, 0.2, N * 6).reshape(N, 2, 3)
SHARES = torch.linspace(0.4, 1.7, N)


def _argument(function: Callable[..., Any], name: str, *args: Any, **keywords: Any) -> Any:
    """Return an argument of a call, and True if the function has no such parameter."""
    bound = inspect.signature(function).bind(*args, **keywords)
    bound.apply_defaults()
    return bound.arguments.get(name, True)


# By factors each image gets a size of its own: ``test_sizes_of_their_own``.
@pytest.mark.parametrize("sample", [s for s in PACKED if "scale" not in s.keywords], ids=str)
def test_each_image_gets_its_own_bits(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "VALUES_PER_THREAD", 1)
    monkeypatch.setattr(operator_call, "ATEN_DIVIDES", 1)
    before, row = torch.get_num_threads(), operators()[sample.op]
    for dtype, interleaved in product([d for d in DTYPES if d in sample.dtypes], (False, True)):
        packed, given, _ = packed_arguments(sample, dtype, interleaved)
        function, (_, *args), keywords = sample.call(Maker(dtype, batch=(len(packed),)))
        call = partial(operators_of_packed.call, row, (packed, *given))
        # Without a size a warp keeps that of its image, and packed images have several.
        if SPECS[sample.op].is_public and _argument(function, "size", packed, *args, **keywords) is not None:
            call = partial(function, packed, *args, **keywords)
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found = call()
            wanted = [row.overload(*own) for own in one_by_one(sample, packed, given)]
            torch.set_num_threads(before)
            if isinstance(found, Tensor):
                assert bits_equal(found, torch.stack(wanted))
                continue
            assert isinstance(found, PackedImages)
            assert found.interleaved == interleaved
            for one, other in zip(found, wanted, strict=True):
                assert bits_equal(one, other)


#: Functions made of these operators.
MADE_OF: dict[str, Callable[[Any], Any]] = {
    "fit": lambda x: imgops.fit(x, (11, 12), centering=(0.2, 0.9)),
    "flip": lambda x: imgops.flip(x, "both"),
    "invert": imgops.invert,
}


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MADE_OF)
def test_functions_made_of_operators(name: str, dtype: torch.dtype, interleaved: bool) -> None:
    batch = images(dtype, interleaved=interleaved)
    for one, other in zip(MADE_OF[name](PackedImages.of(batch)), map(MADE_OF[name], batch), strict=True):
        assert bits_equal(one, other)


def test_pixels_are_pils() -> None:
    batch = images()
    made = imgops.resize(PackedImages.of(batch), (21, 17), "bicubic")
    for image, found in zip(batch, made, strict=True):
        theirs = Image.fromarray(image.permute(1, 2, 0).numpy()).resize((17, 21), Image.Resampling.BICUBIC)
        assert np.array_equal(found.permute(1, 2, 0).numpy(), np.asarray(theirs))


def test_every_operator_that_takes_them_is_tested() -> None:
    assert {s.op for s in PACKED} == {name for name, operator in operators().items() if operator.packed}


@pytest.mark.parametrize("threads", [1, 2])
def test_random_boxes(threads: int) -> None:
    """Boxes of every size and place, whole images, boxes that are copied, against PIL."""
    rng, before = np.random.default_rng(3), torch.get_num_threads()
    torch.set_num_threads(threads)
    for _ in range(30):
        count, size = int(rng.integers(1, 9)), tuple(int(n) for n in rng.integers(1, 40, 2))
        interleaved = bool(rng.integers(2))
        batch, boxes = [], []
        for _ in range(count):
            height, width = (int(n) for n in rng.integers(1, 60, 2))
            image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
            batch.append(torch.from_numpy(image).permute(2, 0, 1))
            left, top = int(rng.integers(0, width)), int(rng.integers(0, height))
            boxes.append([left, top, int(rng.integers(left, width)) + 1, int(rng.integers(top, height)) + 1])
        packed = PackedImages.of(batch, interleaved)
        found = imgops.resized_crop(packed, torch.tensor(boxes), size)
        for image, box, made in zip(batch, boxes, found, strict=True):
            part = Image.fromarray(image.permute(1, 2, 0).numpy()).crop(tuple(box))
            wanted = np.asarray(part.resize(size[::-1], Image.Resampling.BILINEAR))
            assert np.array_equal(made.permute(1, 2, 0).numpy(), wanted)
    torch.set_num_threads(before)


# -- gradients ------------------------------------------------------------------------------------

SMOOTH = ("resize", "resized_crop", "crop", "warp_affine", "warp_perspective", "adjust_saturation")
SMOOTH += ("adjust_brightness", "grayscale", "gaussian_blur", "color_matrix")


@pytest.mark.parametrize("name", [*SMOOTH, *MADE_OF])
def test_gradients_go_to_the_buffer(name: str) -> None:
    function = MADE_OF.get(name)
    if function is None:
        calls = [s.call(Maker(torch.float64, batch=(N,))) for s in PACKED if s.op == name]
        public, (_, *args), keywords = next(call for call in calls if all(x is not None for x in call[1]))
        function = lambda x: public(x, *args, **keywords)

    def call(*each: Tensor) -> Tensor:
        out = function(PackedImages.of(each))
        return out if isinstance(out, Tensor) else out.data

    some = [torch.rand(3, 7 + i % 2, 9 + i // 2, dtype=torch.float64, requires_grad=True) for i in range(N)]
    assert torch.autograd.gradcheck(call, some, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, some, fast_mode=True)


def test_gradients_of_parameters() -> None:
    packed = PackedImages.of(images(torch.float64))
    for name, function in (("warp", imgops.warp_affine), ("sat", imgops.adjust_saturation)):
        value = (TURNS if name == "warp" else SHARES).double().requires_grad_()

        def call(x: Tensor, function: Any = function) -> Tensor:
            out = function(packed, x, (6, 7)) if function is imgops.warp_affine else function(packed, x)
            return out if isinstance(out, Tensor) else out.data

        assert torch.autograd.gradcheck(call, (value,), fast_mode=True)
        each = [function(x, v, *((6, 7),) * (name == "warp")) for x, v in zip(packed, value, strict=True)]
        (wanted,) = torch.autograd.grad(sum(x.sum() for x in each), value)
        (found,) = torch.autograd.grad(call(value).sum(), value)
        torch.testing.assert_close(found, wanted)


# -- graphs ---------------------------------------------------------------------------------------


def new_sizes(seed: int, count: int = 6) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(20, 60, (count, 2), generator=generator)
    return [
        torch.randint(0, 256, (3, int(h), int(w)), dtype=torch.uint8, generator=generator) for h, w in sizes
    ]


def test_one_graph_for_all_sizes() -> None:
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    def step(batch: PackedImages) -> Tensor:
        factors = torch.linspace(0.8, 1.2, len(batch))
        x = imgops.resize(imgops.adjust_contrast(batch, factors), (24, 24))
        return imgops.adjust_brightness(x, factors)

    compiled = torch.compile(step, fullgraph=True, backend=backend)
    for seed in range(12):
        batch = PackedImages.of(new_sizes(seed))
        assert bits_equal(compiled(batch), step(batch))
    assert len(graphs) <= 2


def test_graph_returns_packed_images() -> None:
    compiled = torch.compile(lambda x: imgops.flip(imgops.grayscale(x)), fullgraph=True, backend="aot_eager")
    for seed in range(3):
        batch = PackedImages.of(new_sizes(seed))
        found, wanted = compiled(batch), imgops.flip(imgops.grayscale(batch))
        assert all(map(bits_equal, found.unpack(), wanted.unpack()))


def test_gradient_in_a_graph() -> None:
    def loss(batch: PackedImages) -> Tensor:
        return imgops.resize(batch, (9, 9)).square().mean()

    batch = [x.float().requires_grad_() for x in new_sizes(0)]
    torch.compile(loss, fullgraph=True, backend="aot_eager")(PackedImages.of(batch)).backward()
    found = [x.grad for x in batch]
    again = [x.detach().clone().requires_grad_() for x in batch]
    loss(PackedImages.of(again)).backward()
    for one, other in zip(found, again, strict=True):
        assert other.grad is not None
        torch.testing.assert_close(one, other.grad)


def test_export() -> None:
    class Step(torch.nn.Module):
        def forward(self, batch: PackedImages) -> Tensor:
            return imgops.resize(batch, (8, 8))

    example = PackedImages.of(new_sizes(0))
    program = torch.export.export(Step(), (example,))
    assert bits_equal(program.module()(example), Step()(example))


# -- transforms -----------------------------------------------------------------------------------


def pipeline(per_sample: bool) -> Any:
    steps = [
        *(
            v2.RandomResizedCrop(24, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        ),
        *(v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3)),
    ]
    return v2.Compose(steps, per_sample=per_sample)


def size_keeping(per_sample: bool) -> Any:
    steps = [
        *(v2.RandomVerticalFlip(), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomGrayscale(0.5)),
        *(v2.GaussianBlur(5), v2.RandomAdjustSharpness(2.0), v2.Resize((20, 21))),
    ]
    return v2.Compose(steps, per_sample=per_sample)


@pytest.mark.parametrize("make", [pipeline, size_keeping])
def test_draws_are_those_of_a_loop(make: Callable[[bool], Any]) -> None:
    each, whole = make(False), make(True)
    for seed in range(5):
        batch = new_sizes(seed)
        torch.manual_seed(seed)
        wanted = torch.stack([each(x) for x in batch])
        torch.manual_seed(seed)
        assert bits_equal(whole(PackedImages.of(batch)), wanted)


def test_a_pipeline_is_one_graph() -> None:
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    each, compiled = pipeline(False), torch.compile(pipeline(True), fullgraph=True, backend=backend)
    for seed in range(5):
        batch = new_sizes(seed)
        torch.manual_seed(seed)
        wanted = torch.stack([each(x) for x in batch])
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(PackedImages.of(batch)), wanted)
    assert len(graphs) <= 2


def test_conversions_before_a_crop(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision's pipelines begin with ToImage, and a file or a packed image is an image already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        conversions = [
            v2.ToImage(),
            v2.PILToTensor(),
            v2.ToTensor(),
            v2.ToPureTensor(),
            v2.Identity(),
            v2.RGB(),
        ]
        v1_to_tensor = v2.convert(v1.Compose([v1.ToTensor()])).transforms
    images, labels = new_sizes(4), torch.arange(6)
    files = [imgops.encode_image(x, "png") for x in images]
    gray = [x[:1].contiguous() for x in images]
    steps = [*([x] for x in conversions), conversions, [v2.ConvertImageDtype(torch.float64)], v1_to_tensor]
    for first in steps:
        after = [v2.RandomResizedCrop(12), v2.RandomHorizontalFlip()]
        each, whole = v2.Compose([*first, *after]), v2.Compose([*first, *after], per_sample=True)
        for batch in (images, gray):
            torch.manual_seed(0)
            wanted = torch.stack([each(x).as_subclass(Tensor) for x in batch])
            given = [PackedImages.of(batch), *([imgops.EncodedImages(files)] if batch is images else [])]
            for packed in given:
                torch.manual_seed(0)
                found = whole(packed)
                assert found.dtype == wanted.dtype
                torch.testing.assert_close(
                    found, wanted, rtol=0, atol=0 if found.dtype == torch.uint8 else 1e-6
                )
                torch.manual_seed(0)
                found, same = whole(packed, labels)
                torch.testing.assert_close(
                    found, wanted, rtol=0, atol=0 if found.dtype == torch.uint8 else 1e-6
                )
                assert same is labels
            alone = v2.Compose(first)(given[-1])
            assert all(bits_equal(a, v2.Compose(first)(b).as_subclass(Tensor)) for a, b in zip(alone, batch))
    compiled = torch.compile(
        v2.Compose([*conversions, v2.RandomResizedCrop(12)], per_sample=True), fullgraph=True, backend="eager"
    )
    for given in (PackedImages.of(images), imgops.EncodedImages(files)):
        torch.manual_seed(0)
        wanted = v2.RandomResizedCrop(12, per_sample=True)(given)
        torch.manual_seed(0)
        assert bits_equal(compiled(given), wanted)
    # The files are not decoded as a whole.
    decode = imgops.EncodedImages.decode

    def decode_boxes(files: Any, boxes: Tensor | None = None) -> PackedImages:
        return pytest.fail("decoded all pixels") if boxes is None else decode(files, boxes)

    monkeypatch.setattr(imgops.EncodedImages, "decode", decode_boxes)
    v2.Compose([v2.ToImage(), v2.RGB(), v2.RandomResizedCrop(12)], per_sample=True)(
        imgops.EncodedImages(files)
    )


@pytest.mark.parametrize("transform", [v2.CenterCrop(15), v2.Resize((9, 12)), v2.CenterCrop((14, 11))])
def test_transforms_without_draws(transform: Any) -> None:
    batch = new_sizes(1)
    assert bits_equal(transform(PackedImages.of(batch)), torch.stack([transform(x) for x in batch]))


def test_random_crop_and_labels() -> None:
    batch, labels = new_sizes(2), torch.arange(6)
    torch.manual_seed(0)
    wanted = torch.stack([v2.RandomCrop(16)(x) for x in batch])
    torch.manual_seed(0)
    found, same = v2.RandomCrop(16, per_sample=True)(PackedImages.of(batch), labels)
    assert bits_equal(found, wanted)
    assert same is labels


def test_recorded_parameters_are_applied_again() -> None:
    packed, transform = PackedImages.of(new_sizes(3)), v2.RandomResizedCrop(12, per_sample=True)
    torch.manual_seed(0)
    wanted = transform(packed)
    torch.manual_seed(0)
    params = transform.sample(packed)
    assert bits_equal(transform.apply(packed, params), wanted)


@pytest.mark.parametrize(
    ("transform", "error"),
    [
        (v2.RandomResizedCrop(8), ValueError),
        (v2.RandomRotation(10, per_sample=True), TypeError),
        (v2.RandomCrop(8, padding=2, per_sample=True), TypeError),
        (v2.Compose([v2.RandomHorizontalFlip()]), ValueError),
    ],
)
def test_transforms_that_refuse(transform: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"must be .*, got"):
        transform(PackedImages.of(new_sizes(0)))


# -- the object -----------------------------------------------------------------------------------


def test_list_and_back() -> None:
    for interleaved in (False, True, None):
        batch = images()
        packed = PackedImages.of(batch, interleaved)
        assert len(packed) == N
        assert all(map(bits_equal, packed.unpack(), batch))
        assert all(map(bits_equal, packed, batch))
        assert bits_equal(packed[-1], batch[-1])
        part = packed[1:4]
        assert all(map(bits_equal, part, batch[1:4]))
        assert bits_equal(
            imgops.resize(part, (4, 5)), torch.stack([imgops.resize(x, (4, 5)) for x in batch[1:4]])
        )
        assert part.data.untyped_storage().data_ptr() == packed.data.untyped_storage().data_ptr()
        assert len(packed[3:3]) == 0
        assert imgops.resize(packed[2:2], (4, 5)).shape == (0, 3, 4, 5)
        assert len(imgops.invert(packed[2:2])) == len(imgops.equalize(packed[2:2])) == 0


def test_padded() -> None:
    batch = images()
    packed = PackedImages.of(batch)
    for fill in (0, 9):
        whole, mask = packed.padded(fill=fill), packed.mask((64, 40))
        assert whole.shape == (N, 3, 64, 40)
        for found, there, image in zip(whole, mask, batch, strict=True):
            height, width = image.shape[1:]
            assert bits_equal(found[:, :height, :width], image)
            assert there.sum() == height * width
            assert there[0, :height, :width].all()
            assert (found[:, ~there[0]] == fill).all()
    with pytest.raises(
        ValueError, match=r"size must be at least that of each image, \(64, 40\), got \(64, 39\)"
    ):
        packed.padded((64, 39))


def test_contain_and_cover() -> None:
    batch = images()
    for function in (imgops.contain, imgops.cover):
        found = function(PackedImages.of(batch), (30, 41))
        assert all(map(bits_equal, found.unpack(), [function(x, (30, 41)) for x in batch]))


def test_pickle_and_other_process() -> None:
    packed = PackedImages.of(images())
    again = pickle.loads(pickle.dumps(packed))
    assert all(map(bits_equal, packed, again))
    assert pickle.dumps(packed).count(b"_packed") == 0  # the private module's name is not stored
    code = "import pickle, sys, imgops; x = pickle.load(sys.stdin.buffer); print(imgops.resize(x, (2, 3)).sum().item())"
    run = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(packed), capture_output=True, check=True, timeout=120
    )
    assert int(run.stdout) == imgops.resize(packed, (2, 3)).sum().item()


class Files(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 7

    def __getitem__(self, i: int) -> tuple[Tensor, int, dict[str, Any]]:
        return (
            torch.full((3, i + 1, 9 - i), i, dtype=torch.uint8),
            i,
            {"boxes": torch.ones(i, 4), "name": str(i)},
        )


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers: int) -> None:
    loader = torch.utils.data.DataLoader(
        Files(),
        3,
        num_workers=workers,
        collate_fn=PackedImages.collate,
        multiprocessing_context="fork" if workers else None,
    )
    seen = []
    for packed, labels, more in loader:
        assert isinstance(packed, PackedImages)
        assert len(packed) == len(labels) == len(more["boxes"]) == len(more["name"])
        assert [int(x[0, 0, 0]) for x in packed] == labels.tolist()
        seen += labels.tolist()
    assert seen == list(range(7))


def test_moves() -> None:
    packed = PackedImages.of(images())
    assert packed.to(torch.float32).dtype == torch.float32
    assert packed.float()[1].dtype == torch.float32
    assert packed.to("meta").device.type == "meta"
    assert packed.cpu().detach().dtype == torch.uint8
    assert imgops.resize(packed.to("meta"), (3, 4)).shape == (N, 3, 3, 4)
    assert repr(packed) == "PackedImages(5 images of 3 channels, torch.uint8)"
    leaf = packed.float().requires_grad_()
    imgops.resize(leaf, (3, 3)).sum().backward()
    assert leaf.data.grad is not None
    assert leaf.requires_grad


# -- errors ---------------------------------------------------------------------------------------


def bad_objects() -> dict[str, tuple[type[Exception], Callable[[], Any]]]:
    data, sizes = torch.zeros(60, dtype=torch.uint8), torch.tensor([[2, 4], [3, 4]])
    big = torch.tensor([[1 << 62, 4], [3, 4]])
    return {
        "fits": (type(None), lambda: PackedImages(data, sizes)),  # type: ignore[dict-item]
        "short data": (ValueError, lambda: PackedImages(data[:-1], sizes)),
        "other channels": (ValueError, lambda: PackedImages(data, sizes, 4)),
        "no pixels": (ValueError, lambda: PackedImages(data, torch.tensor([[0, 4], [5, 4]]))),
        "negative": (ValueError, lambda: PackedImages(data, torch.tensor([[-2, -4], [3, 4]]))),
        "overflow": (ValueError, lambda: PackedImages(data, big)),
        "int32": (TypeError, lambda: PackedImages(data, sizes.int())),
        "one dimension": (ValueError, lambda: PackedImages(data, sizes[0])),
        "two dimensions": (ValueError, lambda: PackedImages(data.view(2, 30), sizes)),
        "every other": (ValueError, lambda: PackedImages(torch.zeros(120)[::2], sizes)),
        "an array": (TypeError, lambda: PackedImages(data.numpy(), sizes)),  # type: ignore[arg-type]
        "none": (ValueError, lambda: PackedImages.of([])),
        "a tensor": (ValueError, lambda: PackedImages.of(torch.zeros(2, 2, 3, 3)[:, 0, 0])),  # type: ignore[arg-type]
        "a batch": (ValueError, lambda: PackedImages.of([torch.zeros(1, 3, 4, 4)])),
        "empty": (ValueError, lambda: PackedImages.of([torch.zeros(3, 0, 4)])),
        "mixed dtypes": (
            TypeError,
            lambda: PackedImages.of([torch.zeros(3, 4, 4), torch.zeros(3, 4, 4).int()]),
        ),
        "mixed channels": (ValueError, lambda: PackedImages.of([torch.zeros(3, 4, 4), torch.zeros(1, 4, 4)])),
        "a step": (ValueError, lambda: PackedImages(data, sizes)[::2]),
    }


@pytest.mark.parametrize("name", [name for name in bad_objects() if name != "fits"])
def test_bad_objects(name: str) -> None:
    bad_objects()["fits"][1]()
    error, make = bad_objects()[name]
    with pytest.raises(error, match=r"^PackedImages(\.of)?: .*, got "):
        make()


def test_fields_that_were_changed_are_checked() -> None:
    """Nothing is read beyond the buffer, whatever is written into the object after it was made."""
    for change in (
        lambda p: setattr(p, "data", p.data[:-1]),
        lambda p: p.sizes.__setitem__((0, 0), 1 << 40),
        lambda p: p.offsets.__setitem__(1, 1 << 60),
        lambda p: p.offsets.__setitem__(0, -9),
        lambda p: setattr(p, "num_channels", 4),
        lambda p: setattr(p, "sizes", p.sizes[:-1]),
    ):
        packed = PackedImages.of(images())
        change(packed)
        for call in (lambda p: imgops.resize(p, (4, 4)), imgops.equalize):
            with pytest.raises(ValueError, match=r"^(resize|equalize): .*, got "):
                call(packed)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (ValueError, "resized_crop: box must", lambda p: imgops.resized_crop(p, (0, 0, 6, 6), (4, 4))),
        (ValueError, "adjust_brightness: factor must", lambda p: imgops.adjust_brightness(p, torch.ones(4))),
        (ValueError, "resize: interpolation must", lambda p: imgops.resize(p, (4, 4), "cubic")),
        (ValueError, "resize: ", lambda p: imgops.resize(p, (0, 4))),
        (
            TypeError,
            "paste: image must be a Tensor, got PackedImages",
            lambda p: imgops.paste(p, p[0], (0, 0)),
        ),
        (TypeError, "image must be a Tensor", lambda p: imgops.rotate90(p)),
        (NotImplementedError, "resize: image must be a Tensor under vmap", lambda p: vmapped(p)),
    ],
)
def test_calls_that_refuse(error: type[Exception], text: str, call: Callable[[PackedImages], Any]) -> None:
    with pytest.raises(error, match=text):
        call(PackedImages.of(images()))


def vmapped(packed: PackedImages) -> Any:
    def one(data: Tensor) -> Tensor:
        return imgops.resize(packed.like(data), (3, 3))

    return torch.func.vmap(one)(torch.stack([packed.data, packed.data]).float())


@pytest.mark.parametrize("name", [name for name in SPECS if name in imgops.__all__])
def test_every_public_function_takes_or_refuses_them(name: str) -> None:
    """No function fails in another way than by an error that names the argument."""
    for sample in SPECS[name].samples:
        function, (image, *args), *keywords = sample.call(Draw(0).maker(sample.dtypes))
        if not isinstance(image, Tensor) or image.ndim < 3 or image.numel() == 0:
            continue
        packed = PackedImages.of([image.reshape(-1, *image.shape[-3:])[0]])
        try:
            function(packed, *args, **(keywords[0] if keywords else {}))
        except (TypeError, ValueError, NotImplementedError) as error:
            if " must " not in str(error):
                pytest.fail(f"{name}: {error}")


@pytest.mark.needs("native")
def test_native_checks_what_it_reads() -> None:
    data, steps = np.zeros(3 * (4 + 6), np.uint8), np.array([[11, 0, 4, 4, 0, 0, 0]])
    facts = np.array([[0, 12, 2, 2], [12, 30, 2, 3]])
    numbers = np.array([[0, 0, 2, 2, 4, 4, 0, 0], [1, 0, 3, 2, 5, 4, 1, -1.0]])

    def call(**changes: Any) -> Any:
        out = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
        given = {"out": out, "data": data, "facts": facts, "decoder": None, "steps": steps}
        given |= {"numbers": numbers, "tables": None, "done": np.zeros(2, np.uint8)}
        given |= {"counter": np.zeros(1, np.int64), "scratch": np.zeros(1000, np.uint8)}
        given |= {"interleaved": False, "rows": True, "simd": 2} | changes
        return native.module.run_sources(*given.values())

    def at(array: np.ndarray, value: float, *index: int) -> np.ndarray:
        changed = array.copy()
        changed[index] = value
        return changed

    assert call() == 1
    for change in (
        {"data": data[:-1]},
        {"facts": facts + 1},
        {"facts": facts[:1]},
        {"facts": at(facts, 1 << 31, 1, 2)},
        {"facts": at(facts, 0, 1, 3)},
        {"facts": at(facts, -1, 0, 0)},
        {"numbers": numbers[:, :7].copy()},
        {"numbers": np.repeat(numbers, 3, 0)},
        {"steps": at(steps, 5, 0, 4)},
        {"steps": at(steps, 1 << 33, 0, 4)},
        {"steps": at(steps, 9, 0, 0)},
        {"steps": at(steps, 5, 0, 2)},
        {"steps": steps[:0]},
        {"scratch": np.zeros(90, np.uint8)},
        {"done": np.zeros(1, np.uint8)},
        {"decoder": 3},
        {"tables": np.zeros((2, 256), np.float32)},
    ):
        with pytest.raises(ValueError, match=r"native: |PyCapsule"):
            call(**change)
    for value, index in ((3, 2), (-1, 0), (0.5, 4), (0, 5), (np.nan, 6), (1 << 41, 7), (1 << 31, 4)):
        assert call(numbers=at(numbers, value, 0, index)) == 0


# -- sizes of their own, and windows of one size -------------------------------------------------------

_PIPELINES: dict[str, Callable[[Any], Any]] = {
    "resize and center crop": lambda m: [m.Resize(24), m.CenterCrop(20)],
    "bicubic": lambda m: [m.Resize(25, interpolation=3), m.CenterCrop((19, 22))],
    "at most": lambda m: [m.Resize(10, max_size=21), m.CenterCrop(40)],  # which pads
    "longest side": lambda m: [m.Resize(None, max_size=31), m.CenterCrop((40, 8))],
    "center crop": lambda m: [m.CenterCrop(16)],
    "center crop of small images": lambda m: [m.CenterCrop((33, 18))],
    "flips": lambda m: [m.Resize((20, 30)), m.RandomHorizontalFlip(1.0), m.RandomVerticalFlip(1.0)],
    "letter box": lambda m: [v2.LetterBox((33, 40), fill=(114, 3, 9)), m.RandomHorizontalFlip(1.0)],
    "letter box alone": lambda m: [v2.LetterBox(24, scale_up=False)],
    "two resizes": lambda m: [v2.LongestMaxSize(40), v2.SmallestMaxSize(21), m.CenterCrop(20)],
}
_SIZES = ((30, 50), (80, 20), (41, 41), (17, 90), (64, 65))


def own_sizes(dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    levels = [torch.randint(0, 256, (3, *s), dtype=torch.uint8, generator=generator) for s in _SIZES]
    return [x if dtype == torch.uint8 else x.to(dtype) / 255 for x in levels]


@pytest.mark.parametrize("to_float", [False, True])
@pytest.mark.parametrize("name", _PIPELINES)
def test_evaluation_pipelines(name: str, to_float: bool) -> None:
    """Packed images and files give what each image gives: torchvision's, from PIL's pixels."""
    end = [
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]),
    ]
    transform = v2.Compose(_PIPELINES[name](v2) + end[1:] * to_float)
    reference = tv.Compose(_PIPELINES[name](tv) + [v2.ToImage()] + end[1:] * to_float)
    images = own_sizes(torch.uint8)
    files = EncodedImages([imgops.encode_image(x) for x in images])

    def wanted(images: list[Tensor]) -> Tensor:
        pil = [Image.fromarray(x.permute(1, 2, 0).contiguous().numpy()) for x in images]
        return torch.stack([reference(x).as_subclass(Tensor) for x in pil])

    for batch, expected in (
        (PackedImages.of(images), wanted(images)),
        (PackedImages.of(images, interleaved=True), wanted(images)),
        (files, wanted(files.decode().unpack())),
    ):
        found = transform(batch)
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected) if not to_float else torch.allclose(found, expected, atol=1e-6)
        assert found.is_contiguous() != (type(batch) is PackedImages and batch.interleaved)
        assert bits_equal(torch.compile(transform, fullgraph=True, backend="eager")(batch), found)


@pytest.mark.parametrize("name", _PIPELINES)
def test_evaluation_of_floats_and_its_gradient(name: str) -> None:
    transform = v2.Compose(_PIPELINES[name](v2))
    images = [x.requires_grad_() for x in own_sizes(torch.float64)]
    wanted = torch.stack([transform(x) for x in images])
    weight = torch.randn(wanted.shape, dtype=wanted.dtype)
    grads = torch.cat([g.reshape(-1) for g in torch.autograd.grad((wanted * weight).sum(), images)])
    packed = PackedImages.of([x.detach() for x in images]).requires_grad_()
    found = transform(packed)
    torch.testing.assert_close(found, wanted)
    (own,) = torch.autograd.grad((found * weight).sum(), packed.data)
    torch.testing.assert_close(own, grads)


def test_wrong_colors_and_sizes_are_those_of_one_image() -> None:
    """A batch refuses what its images refuse, and names the same operator, however it is computed."""
    to_float = v2.ToDtype(torch.float32, scale=True)
    for channels, mode in ((1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")):
        levels = [torch.full((channels, *size), 9, dtype=torch.uint8) for size in _SIZES]
        files = [imgops.encode_image(x[:1] if channels < 3 else x[:3]) for x in levels]
        batches: list[Any] = [
            EncodedImages(files, mode),
            *(PackedImages.of(levels, interleaved) for interleaved in (False, True)),
            PackedImages.of([x.float() for x in levels]),
        ]
        for count in {1, 2, 3, 4, 6} - {1, channels}:
            for steps in ([], [v2.RandomHorizontalFlip(1.0)], [to_float]):
                transform = v2.Compose([v2.LetterBox((33, 40), fill=list(range(count))), *steps])
                with pytest.raises(ValueError, match=r"pad: fill must") as wanted:
                    transform(levels[0])
                for batch in batches:
                    with pytest.raises(ValueError, match=f"^{re.escape(str(wanted.value))}$"):
                        transform(batch)
        graph = torch.compile(transform, fullgraph=True, backend="eager")
        with pytest.raises((ValueError, RuntimeError), match=re.escape(str(wanted.value))):
            graph(batches[1])
    flat = PackedImages.of([torch.zeros(3, 1, 3000, dtype=torch.uint8)])
    for steps in ([], [v2.CenterCrop(8)], [v2.CenterCrop(8), to_float]):
        for batch in (flat, flat[0]):
            with pytest.raises(ValueError, match=r"^resize: size must be at least .*, got \(0, 20\)$"):
                v2.Compose([v2.Resize(10, max_size=20), *steps])(batch)


def test_draws_after_a_resize_are_those_of_the_new_sizes() -> None:
    images = own_sizes(torch.uint8)
    for first in (v2.Resize(24), v2.LongestMaxSize(60), v2.LetterBox(40)):
        steps = [first, v2.RandomCrop(10), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip()]
        torch.manual_seed(0)
        wanted = torch.stack([v2.Compose(steps)(x) for x in images])
        for batch in (PackedImages.of(images), PackedImages.of(images, True)):
            torch.manual_seed(0)
            assert torch.equal(v2.Compose(steps, per_sample=True)(batch), wanted)
        graph = torch.compile(v2.Compose(steps, per_sample=True), fullgraph=True, backend="eager")
        torch.manual_seed(0)
        assert torch.equal(graph(PackedImages.of(images)), wanted)


@pytest.mark.parametrize("mode", ["center", "squash", "border"])
def test_timms_evaluation(mode: str) -> None:
    data = pytest.importorskip("timm.data")
    theirs = data.create_transform(56, is_training=False, crop_mode=mode, crop_pct=0.9)
    images, ours = own_sizes(torch.uint8), v2.convert(theirs)
    files = EncodedImages([imgops.encode_image(x) for x in images])
    decoded = files.decode()
    pil = [Image.fromarray(x.permute(1, 2, 0).contiguous().numpy()) for x in decoded]
    wanted = torch.stack([theirs(x) for x in pil])
    for batch in (files, decoded):
        torch.testing.assert_close(ours(batch), wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("interleaved", [False, True])
def test_sizes_of_their_own(interleaved: bool) -> None:
    """``contain``, ``cover``, ``resize`` and transforms, whose results have different sizes, in graphs as well."""
    images = own_sizes(torch.uint8)
    packed = PackedImages.of(images, interleaved)
    sizes = torch.tensor([[5, 6], [90, 1], [3, 70], [17, 90], [8, 8]])
    calls: list[tuple[Callable[[Any], Any], Callable[[Any, int], Any]]] = [
        (lambda x: imgops.contain(x, (24, 33)), lambda x, i: imgops.contain(x, (24, 33))),
        (lambda x: imgops.cover(x, (24, 33), "lanczos"), lambda x, i: imgops.cover(x, (24, 33), "lanczos")),
        (lambda x: imgops.resize(x, sizes), lambda x, i: imgops.resize(x, sizes[i].tolist())),
        *(
            (lambda x, _=0, n=n: imgops.resize(x, None, n, antialias=False, scale=(0.6, 1.3)),) * 2
            for n in ("bilinear", "nearest")
        ),
        (
            lambda x: imgops.resize(x, sizes, "area", antialias=False),
            lambda x, i: imgops.resize(x, sizes[i].tolist(), "area", antialias=False),
        ),
        *(
            (t, lambda x, i, t=t: t(x))  # type: ignore[misc]
            for t in (v2.LongestMaxSize(30), v2.SmallestMaxSize(21), v2.Resize(17), v2.Resize(9, max_size=20))
        ),
    ]
    for call, one in calls:
        for function in (call, torch.compile(call, fullgraph=True, backend="eager")):
            found = function(packed)
            assert found.interleaved is interleaved
            for i, (a, b) in enumerate(zip(found.unpack(), images, strict=True)):
                assert torch.equal(a, one(b, i))
    for wrong, text in (
        (sizes[:3], "size must have shape (N, 2)"),
        (sizes.int(), "size must be int64"),
        (sizes - 6, "size must be at least 1 pixel"),
    ):
        for function in (imgops.resize, torch.compile(imgops.resize, fullgraph=True, backend="eager")):
            with pytest.raises((ValueError, TypeError, RuntimeError), match=re.escape(f"resize: {text}")):
                function(packed, wrong)


# -- what a hunt found ------------------------------------------------------------------------------


def test_what_does_not_follow_is_refused() -> None:
    """Boxes, masks and images beside packed images would have to move with them."""
    packed = PackedImages.of(new_sizes(0, 2))
    for other in (
        tv_tensors.BoundingBoxes([[1, 2, 10, 12]], format="XYXY", canvas_size=(20, 20)),
        tv_tensors.Mask(torch.zeros(20, 20)),
        tv_tensors.Image(torch.zeros(3, 20, 20)),
    ):
        for transform in (
            v2.RandomHorizontalFlip(1.0, per_sample=True),
            v2.RandomResizedCrop(8, per_sample=True),
        ):
            for given in ({"image": packed, "other": other}, (packed, other)):
                with pytest.raises(
                    TypeError, match="inputs given with images of different sizes must not be"
                ):
                    transform(given)
        if not isinstance(other, tv_tensors.Image):
            assert v2.ColorJitter(0.4, per_sample=True)(packed, other)[1] is other


@pytest.mark.parametrize("container", [v2.RandomApply, v2.RandomChoice, v2.RandomOrder])
def test_a_dtype_that_may_change_is_refused(container: Any) -> None:
    packed = PackedImages.of(new_sizes(0, 3))
    steps = [v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]
    with pytest.raises(ValueError, match=r"must .*, got ToDtype"):
        container(steps, per_sample=True)(packed)


@pytest.mark.parametrize("transform", [v2.Resize((8, 9)), v2.CenterCrop(8), v2.ToDtype(torch.float32)])
@pytest.mark.parametrize("label_first", [False, True])
def test_structures(transform: Any, label_first: bool) -> None:
    packed, labels = PackedImages.of(new_sizes(0, 2)), torch.tensor([1, 2])
    given: dict[str, Any] = (
        {"label": labels, "image": packed} if label_first else {"image": packed, "label": labels}
    )
    wanted = transform(packed)
    for function in (transform, v2.Compose([transform], per_sample=True)):
        found = function(given)
        assert found["label"] is labels
        one, other = (x if isinstance(x, Tensor) else x.data for x in (found["image"], wanted))
        assert bits_equal(one, other)


def test_labels_first_in_a_pipeline() -> None:
    packed, labels = PackedImages.of(new_sizes(0, 2)), torch.tensor([1, 2])
    transform = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomResizedCrop(8)], per_sample=True)
    torch.manual_seed(0)
    wanted = transform(packed)
    torch.manual_seed(0)
    found = transform({"label": labels, "image": packed})
    assert found["label"] is labels
    assert bits_equal(found["image"], wanted)


@pytest.mark.parametrize(
    "transform",
    [
        v2.RandomPhotometricDistort(per_sample=True),
        v2.RandAugment(per_sample=True),
        v2.TrivialAugmentWide(per_sample=True),
        v2.AugMix(per_sample=True),
        v2.ElasticTransform(per_sample=True),
        v2.RandomElastic(per_sample=True),
        v2.RandomGaussianNoise(per_sample=True),
        v2.GaussianNoise(per_sample=True),
        v2.RandomErasing(per_sample=True),
        v2.Pad(2),
        v2.FiveCrop(4),
        v2.Grayscale(),
    ],
)
def test_transforms_that_do_not_take_them(transform: Any) -> None:
    packed = PackedImages.of([x.float() for x in new_sizes(0, 2)])
    labels = torch.tensor([0, 1])
    for function in (transform, v2.Compose([v2.RandomHorizontalFlip(), transform], per_sample=True)):
        for given in (packed, {"image": packed, "label": labels}):
            with pytest.raises(TypeError, match=r"must be a Tensor, got|must not be"):
                function(given)


def test_autocast_is_that_of_the_operator() -> None:
    packed = PackedImages.of([torch.rand(3, 5, 6).half(), torch.rand(3, 4, 4).half()])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for call in (
            lambda x: imgops.resize(x, (3, 3)),
            lambda x: imgops.warp_affine(x, torch.eye(2, 3), (4, 4)),
        ):
            assert call(packed).dtype == call(packed[0]).dtype == torch.float32


def test_functional_gradient() -> None:
    packed = PackedImages.of(images(torch.float32))

    def loss(data: Tensor) -> Tensor:
        return imgops.resize(PackedImages(data, packed.sizes), (3, 3)).square().sum()

    found = torch.func.grad(loss)(packed.data)
    leaf = packed.data.clone().requires_grad_()
    loss(leaf).backward()
    assert leaf.grad is not None
    torch.testing.assert_close(found, leaf.grad)


def test_saved_and_loaded(tmp_path: Any) -> None:
    packed = PackedImages.of(images())
    torch.save({"batch": packed}, tmp_path / "x.pt")
    assert all(map(bits_equal, torch.load(tmp_path / "x.pt")["batch"], packed))


def test_small_arguments_that_are_wrong() -> None:
    packed = PackedImages.of(images())
    for error, call in (
        (ValueError, lambda: packed.padded(fill=300)),
        (ValueError, lambda: packed.padded(fill=-1)),
        (TypeError, lambda: packed.padded(fill=None)),  # type: ignore[arg-type]
        (ValueError, lambda: packed[1:1].padded()),
        (ValueError, lambda: packed.mask((-1, 3))),
        (TypeError, lambda: packed.mask(5)),  # type: ignore[arg-type]
        (TypeError, lambda: packed["a"]),  # type: ignore[index]
        (TypeError, lambda: packed[1.5]),  # type: ignore[index]
        (TypeError, lambda: packed[[0, 1]]),  # type: ignore[index]
        (ValueError, lambda: PackedImages.of(packed)),  # type: ignore[arg-type]
        (ValueError, lambda: PackedImages(packed.data, packed.sizes, -3)),
        (ValueError, lambda: PackedImages(packed.data, packed.sizes.to("meta"))),
        (ValueError, lambda: PackedImages.collate([])),
        (ValueError, lambda: PackedImages.collate([(packed[0], 1), (packed[0],)])),
        (ValueError, lambda: PackedImages.collate([{"a": 1}, {"b": 1}])),
    ):
        with pytest.raises(error, match=r"must .*, got"):
            call()


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos", "hamming", "box"])
def test_one_pixel_of_interleaved_images(size: tuple[int, int], interpolation: str) -> None:
    """The strides of an image of one pixel do not show its memory format."""
    for channels in (2, 3, 4):
        given = images(channels=channels, interleaved=True)
        whole = imgops.resize(PackedImages.of(given), size, interpolation)
        assert bits_equal(whole, torch.stack([imgops.resize(x, size, interpolation) for x in given]))
        box = torch.tensor([1, 0, 3, 3])
        part = imgops.resized_crop(PackedImages.of(given), box, size, interpolation)
        wanted = torch.stack([imgops.resized_crop(x, box, size, interpolation) for x in given])
        assert bits_equal(part, wanted)


def test_a_compiled_pipeline_may_be_the_first_call_of_a_process() -> None:
    program = """
import pickle, torch, imgops
from imgops import transforms as v2
files = [imgops.encode_image(torch.full((3, h, 80), 9, dtype=torch.uint8)) for h in (50, 60)]
whole = v2.Compose([v2.RandomResizedCrop(24), v2.ColorJitter(0.1)], per_sample=True)
batch = imgops.EncodedImages(files)
assert torch.compile(whole, fullgraph=True, backend="eager")(batch).shape == (2, 3, 24, 24)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_gradients_of_no_images() -> None:
    batch = PackedImages(torch.zeros(0, requires_grad=True), torch.zeros(0, 2, dtype=torch.int64))
    calls: list[Callable[[], Tensor]] = [
        lambda: imgops.resize(batch, (3, 3)),
        lambda: imgops.crop(batch, (0, 0, 2, 2)),
        lambda: imgops.adjust_gamma(batch, 0.5).data,
        lambda: batch.flip([-1]).data,
    ]
    for call in calls:
        (grad,) = torch.autograd.grad(call().sum(), batch.data)
        assert grad.shape == (0,)


def test_what_single_images_refuse() -> None:
    floats = PackedImages.of([torch.rand(4, 5, 6)])
    box = torch.tensor([0.0, 0, 3, 3], requires_grad=True)
    resize = v2.Resize((3, 3), interpolation="lanczos", antialias=False)
    cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ValueError, "resize: antialias must be True with lanczos", lambda: resize(floats)),
        (
            TypeError,
            "solarize: threshold must be at most 1",
            lambda: v2.RandomSolarize(100, p=1, per_sample=True)(floats),
        ),
        (
            ValueError,
            "RandomGrayscale: image must have 1 or 3 channels, because gray is a sum",
            lambda: v2.RandomGrayscale(0.1, per_sample=True)(floats),
        ),
        (NotImplementedError, "resize: box must not require", lambda: imgops.resize(floats, (3, 3), box=box)),
        (TypeError, "or size must be given", lambda: imgops.warp_affine(floats, [[1, 0, 0], [0, 1, 0]])),
        (
            ValueError,
            "padded: fill must be a whole number",
            lambda: PackedImages.of(images()).padded(fill=float("nan")),
        ),
        (ValueError, "from 0 to 1", lambda: PackedImages.of([torch.ones(1, 2, 2).bool()]).padded(fill=2)),
    ]
    for kind, text, call in cases:
        with pytest.raises(kind, match=text):
            call()


DECLARED_LATER = """
import torch, imgops
images = imgops.PackedImages.of([torch.rand(3, 4, 5), torch.rand(3, 6, 7)])
from imgops import transforms

@imgops.extend.operator(
    "mine::negative",
    kernel=lambda out, image: out.copy_(image.neg()),
    fake=torch.empty_like,
    vmap=imgops.extend.vmap.leading(3),
    packed=imgops.extend.packed.keeps_size,
)
def negative(image: torch.Tensor) -> torch.Tensor: ...

flip = transforms.RandomHorizontalFlip(per_sample=True)
for call in (flip, negative):
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    torch.manual_seed(0)
    found = compiled(images)
    torch.manual_seed(0)
    assert torch.equal(found.data, call(images).data)
"""


def test_operators_that_are_declared_after_the_images_take_them_in_a_graph() -> None:
    done = subprocess.run([sys.executable, "-c", DECLARED_LATER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
