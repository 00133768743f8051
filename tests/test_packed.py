"""Packed images: each gets the bits of its own call, gradients go back to the buffer, and a graph takes any sizes."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
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
from imgops.kernels.cpu import _threads
from tests.checks import bits_equal, run_python
from tests.groups import compile_together, together
from tests.packed_calls import DTYPES, PACKED, SMALL, noise, one_by_one, packed_arguments
from tests.specs import SPECS, Sample
from tests.specs._draw import Draw
from tests.specs._maker import Maker
from tests.tiers import every_night, nightly, nightly_unless
from tests.transform_cases import same, seeded

SIZES = ((20, 31), (7, 5), (64, 3), (16, 16), (33, 40))


def images(sizes: Any = SIZES, dtype: torch.dtype = torch.uint8, seed: int = 7) -> list[Tensor]:
    levels = [noise(3, *size, seed=seed + i) for i, size in enumerate(sizes)]
    return levels if dtype == torch.uint8 else [(x / 255).to(dtype) for x in levels]


#: Parameters of each image.
N = len(SIZES)
SHARES = torch.linspace(0.4, 1.7, N)


FIRST = list({sample.op: sample for sample in reversed(PACKED)}.values())


def _argument(function: Callable[..., Any], name: str, *args: Any, **keywords: Any) -> Any:
    """Return an argument of a call, and True if the function has no such parameter."""
    bound = inspect.signature(function).bind(*args, **keywords)
    bound.apply_defaults()
    return bound.arguments.get(name, True)


# By factors each image gets a size of its own: ``test_functions``.
@pytest.mark.parametrize(
    "sample", nightly_unless(FIRST.__contains__, [s for s in PACKED if "scale" not in s.keywords]), ids=str
)
def test_each_image_gets_its_own_bits(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "VALUES_PER_THREAD", 1)
    monkeypatch.setattr(_threads, "VALUES_PER_NATIVE_THREAD", 1)
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


def test_every_operator_that_takes_them_is_tested() -> None:
    assert {s.op for s in PACKED} == {name for name, operator in operators().items() if operator.packed}


# -- functions: each image gets what it gets alone ---------------------------------------------------------

LARGE = ((30, 50), (80, 20), (41, 41), (17, 90), (64, 65))
BOX = torch.tensor([1, 0, 3, 3])
TO_SIZES = torch.tensor([[5, 6], [90, 1], [3, 70], [17, 90], [8, 8]])


def unpacked(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, Tensor) else value.unpack()


#: Functions of all images (i is None), or of image i alone.
FUNCTIONS: dict[str, Callable[[Any, int | None], Any]] = {
    "fit": lambda x, i: imgops.fit(x, (11, 12), centering=(0.2, 0.9)),
    "flip": lambda x, i: imgops.flip(x, "both"),
    "invert": lambda x, i: imgops.invert(x),
    "two functions": lambda x, i: imgops.flip(imgops.grayscale(x)),
    "contain": lambda x, i: imgops.contain(x, (24, 33)),
    "cover": lambda x, i: imgops.cover(x, (24, 33), "lanczos"),
    "sizes": lambda x, i: imgops.resize(x, TO_SIZES if i is None else TO_SIZES[i].tolist()),
    "sizes, area": lambda x, i: imgops.resize(
        x, TO_SIZES if i is None else TO_SIZES[i].tolist(), "area", antialias=False
    ),
    "factors": lambda x, i: imgops.resize(x, None, "bilinear", antialias=False, scale=(0.6, 1.3)),
    "factors, nearest": lambda x, i: imgops.resize(x, None, "nearest", antialias=False, scale=(0.6, 1.3)),
    "numbers of each": lambda x, i: imgops.adjust_contrast(x, SHARES if i is None else SHARES[i]),
    "one size": lambda x, i: imgops.resize(imgops.equalize(x), (24, 24)),
    # The strides of an image of one pixel do not show its memory format.
    **{
        f"{how} to one pixel": lambda x, i, how=how: imgops.resize(
            imgops.resized_crop(x, BOX, (1, 2), how), (1, 1), how
        )
        for how in ("bilinear", "bicubic", "lanczos", "hamming", "box")
    },
    **{
        str(t): lambda x, i, t=t: t(x)
        for t in (v2.LongestMaxSize(30), v2.SmallestMaxSize(21), v2.Resize(17), v2.Resize(9, max_size=20))
    },
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    call = FUNCTIONS[name]
    for dtype, interleaved in product(DTYPES, (False, True)):
        if name == "one size" and dtype != torch.uint8:
            continue
        found = call(PackedImages.of(images(LARGE, dtype), interleaved), None)
        assert isinstance(found, Tensor) or found.interleaved is interleaved
        for i, (a, b) in enumerate(zip(unpacked(found), images(LARGE, dtype), strict=True)):
            assert bits_equal(a, call(b, i))


def test_one_graph_for_all_sizes(whole: bool) -> None:
    names = FUNCTIONS if whole else list(FUNCTIONS)[::4]
    calls = {name: partial(FUNCTIONS[name], i=None) for name in names}
    graph, counting = compile_together(calls)
    for seed in range(4):
        batch = PackedImages.of(new_sizes(seed, N))
        for name, found in graph(batch).items():
            assert all(map(bits_equal, unpacked(found), unpacked(calls[name](batch)))), name
    assert counting.count <= 2


def new_sizes(seed: int, count: int = 6) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return images(torch.randint(20, 60, (count, 2), generator=generator).tolist(), seed=seed)


def test_export() -> None:
    class Step(torch.nn.Module):
        def forward(self, batch: PackedImages) -> Tensor:
            return imgops.resize(batch, (8, 8))

    example = PackedImages.of(new_sizes(0))
    program = torch.export.export(Step(), (example,))
    assert bits_equal(program.module()(example), Step()(example))


def test_autocast_is_that_of_the_operator() -> None:
    packed = PackedImages.of([torch.rand(3, 5, 6).half(), torch.rand(3, 4, 4).half()])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for call in (
            lambda x: imgops.resize(x, (3, 3)),
            lambda x: imgops.warp_affine(x, torch.eye(2, 3), (4, 4)),
        ):
            assert call(packed).dtype == call(packed[0]).dtype == torch.float32


# -- gradients ---------------------------------------------------------------------------------------------

SMOOTH = {s.op: s for s in reversed(PACKED) if s.differentiable and s.gradcheck and torch.float64 in s.dtypes}


@pytest.mark.parametrize(
    "name",
    nightly_unless(("crop", "grayscale", "fit", "flip").__contains__, [*SMOOTH, "fit", "flip", "invert"]),
)
def test_gradients_go_to_the_buffer_and_to_numbers_of_each_image(name: str) -> None:
    """``make test`` takes some of them."""
    given: list[Any] = []
    at: list[int] = []
    function: Callable[..., Any] = partial(FUNCTIONS.get(name, lambda x, i: x), i=None)
    if name in SMOOTH:
        packed, given, _ = packed_arguments(SMOOTH[name], torch.float64, False, SMALL)
        function = lambda *args: operators_of_packed.call(operators()[name], args)
        _, *own = SMOOTH[name].checked(Maker(torch.float64, batch=(len(packed),), grad=True)).op_args
        at = [i for i, x in enumerate(own) if isinstance(x, Tensor) and x.requires_grad]

    def call(*leaves: Tensor) -> Tensor:
        numbers = dict(zip(at, leaves[-len(at) :], strict=False))
        batch = PackedImages.of(leaves[: len(leaves) - len(at)])
        out = function(batch, *(numbers.get(i, x) for i, x in enumerate(given)))
        return out if isinstance(out, Tensor) else out.data

    shapes = [x.shape for x in packed] if name in SMOOTH else [(3, 7 + i % 2, 9 + i // 2) for i in range(N)]
    some = [*(torch.rand(shape, dtype=torch.float64) for shape in shapes), *(given[i] for i in at)]
    leaves = [x.detach().clone().requires_grad_() for x in some]
    assert torch.autograd.gradcheck(call, leaves, fast_mode=True)
    if name not in SMOOTH or not SPECS[name].is_derived:  # whose second derivatives are ATen's
        assert torch.autograd.gradgradcheck(call, leaves, fast_mode=True)


@nightly
def test_a_gradient_in_other_ways() -> None:
    """A graph and torch.func give that of eager mode, which is that of each image alone."""
    packed = PackedImages.of(images(SIZES, torch.float32))

    def loss(data: Tensor) -> Tensor:
        return imgops.resize(PackedImages(data, packed.sizes), (9, 9)).square().mean()

    leaves = [x.requires_grad_() for x in packed.unpack()]
    torch.stack([imgops.resize(x, (9, 9)) for x in leaves]).square().mean().backward()
    wanted = torch.cat([x.grad.reshape(-1) for x in leaves])  # type: ignore[union-attr]
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        leaf = packed.data.clone().requires_grad_()
        function(leaf).backward()
        torch.testing.assert_close(leaf.grad, wanted)
    torch.testing.assert_close(torch.func.grad(loss)(packed.data), wanted)


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


# -- transforms ------------------------------------------------------------------------------------------

END = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])]
#: Pipelines without draws, of imgops' or torchvision's transforms: the pixels are torchvision's of PIL images.
EVALUATION: dict[str, Callable[[Any], Any]] = {
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
_FLIPS = [v2.RandomHorizontalFlip(), v2.RandomVerticalFlip()]
_CONVERSIONS = [v2.ToImage(), v2.PILToTensor(), v2.ToPureTensor(), v2.Identity(), v2.RGB()]
PIPELINES: dict[str, Callable[[Any], Any]] = {
    **EVALUATION,
    "training": lambda m: [m.RandomResizedCrop(24), _FLIPS[0], m.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "keeps sizes": lambda m: [
        *(_FLIPS[1], m.ColorJitter(0.4, 0.4, 0.4, 0.1), m.RandomGrayscale(0.5), m.GaussianBlur(5)),
        *(m.RandomAdjustSharpness(2.0), m.Resize((20, 21))),
    ],
    "crop": lambda m: [m.RandomCrop(16)],
    **{
        f"{type(first).__name__} before a crop": lambda m, first=first: [first, m.RandomCrop(10), *_FLIPS]
        for first in (v2.Resize(24), v2.LongestMaxSize(60), v2.LetterBox(40))
    },
    # torchvision's pipelines begin with ToImage, and a file or a packed image is an image already.
    "conversions": lambda m: [*_CONVERSIONS, m.RandomResizedCrop(12), _FLIPS[0]],
    **{
        type(first).__name__: lambda m, first=first: [first, m.RandomResizedCrop(12), _FLIPS[0]]
        for first in (*_CONVERSIONS, v2.ConvertImageDtype(torch.float64))
    },
    "ToTensor": lambda m: [*v2.convert(v1.Compose([v1.ToTensor()])).transforms, m.RandomResizedCrop(12)],
}


def batches_of(images: list[Tensor]) -> dict[str, Any]:
    return {
        "packed": PackedImages.of(images),
        "interleaved": PackedImages.of(images, interleaved=True),
        "files": EncodedImages([imgops.encode_image(x) for x in images]),
    }


@pytest.mark.parametrize("to_float", [False, True])
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(name: str, to_float: bool) -> None:
    """Packed images and files give what each image gives in a loop, and labels beside them stay."""
    steps, labels = PIPELINES[name](v2) + END * to_float, torch.arange(N)
    one, whole = v2.Compose(steps), v2.Compose(steps, per_sample=True)
    reference = tv.Compose(EVALUATION.get(name, lambda m: [])(tv) + [tv.ToImage()] + END * to_float)
    for form, batch in batches_of(images(LARGE)).items():
        alone = unpacked(batch.decode() if form == "files" else batch)
        for seed in range(2):
            wanted = torch.stack(
                [x.as_subclass(Tensor) for x in seeded(seed, lambda: [one(x) for x in alone])]
            )
            given = [(batch,), (batch, labels), (labels, {"image": batch})]
            outs = [seeded(seed, whole, *inputs) for inputs in given]
            assert outs[1][1] is outs[2][0] is labels
            for found in (outs[0], outs[1][0], outs[2][1]["image"]):
                same(found.as_subclass(Tensor), wanted, (name, form), 1e-6)
        if name in EVALUATION:
            pil = [Image.fromarray(x.permute(1, 2, 0).contiguous().numpy()) for x in alone]
            same(one(batch), torch.stack([reference(x).as_subclass(Tensor) for x in pil]), (name, form), 1e-6)
            assert one(batch).is_contiguous() != (form == "interleaved")


#: A pipeline whose results have one size, and one with draws.
_QUICK = ("letter box", "training")


@nightly
@pytest.mark.parametrize("form", ["packed", *every_night("interleaved", "files")])
def test_pipelines_in_a_graph(form: str, whole: bool) -> None:
    names = PIPELINES if whole else _QUICK
    transforms = {name: v2.Compose(PIPELINES[name](v2) + END, per_sample=True) for name in names}
    graph, counting = compile_together(transforms, "eager")
    for seed in range(3):
        batch = batches_of(new_sizes(seed, N))[form]
        found, wanted = (seeded(seed, f, batch) for f in (graph, together(transforms)))
        for name, value in found.items():
            same(value, wanted[name], name, 1e-6)
    assert counting.count <= 2


def test_conversions_leave_gray_images_and_parts_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    gray = PackedImages.of([x[:1].contiguous() for x in new_sizes(4)])
    for first in (*([x] for x in _CONVERSIONS), _CONVERSIONS):
        found = v2.Compose(first)(gray)
        assert all(bits_equal(a, v2.Compose(first)(b).as_subclass(Tensor)) for a, b in zip(found, gray))
    decode = EncodedImages.decode

    def decode_boxes(files: Any, boxes: Tensor | None = None) -> PackedImages:
        return pytest.fail("decoded all pixels") if boxes is None else decode(files, boxes)

    monkeypatch.setattr(EncodedImages, "decode", decode_boxes)
    pipeline = v2.Compose([v2.ToImage(), v2.RGB(), v2.RandomResizedCrop(12)], per_sample=True)
    pipeline(batches_of(new_sizes(4))["files"])


@pytest.mark.parametrize(
    "name", nightly_unless(["bicubic", "at most", "letter box"].__contains__, EVALUATION)
)
def test_evaluation_of_floats_and_its_gradient(name: str) -> None:
    transform = v2.Compose(EVALUATION[name](v2))
    leaves = [x.requires_grad_() for x in images(LARGE, torch.float64)]
    wanted = torch.stack([transform(x) for x in leaves])
    weight = torch.randn(wanted.shape, dtype=wanted.dtype)
    grads = torch.cat([g.reshape(-1) for g in torch.autograd.grad((wanted * weight).sum(), leaves)])
    packed = PackedImages.of([x.detach() for x in leaves]).requires_grad_()
    found = transform(packed)
    torch.testing.assert_close(found, wanted)
    (own,) = torch.autograd.grad((found * weight).sum(), packed.data)
    torch.testing.assert_close(own, grads)


def test_recorded_parameters_are_applied_again() -> None:
    packed, transform = PackedImages.of(new_sizes(3)), v2.RandomResizedCrop(12, per_sample=True)
    params = seeded(0, transform.sample, packed)
    assert bits_equal(transform.apply(packed, params), seeded(0, transform, packed))


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
        for found, there, image in zip(whole, mask, batch, strict=True):
            wanted = torch.full((3, 64, 40), fill, dtype=torch.uint8)
            inside = torch.zeros(1, 64, 40, dtype=torch.bool)
            for canvas, value in ((wanted, image), (inside, True)):
                canvas[:, : image.shape[1], : image.shape[2]] = value
            assert bits_equal(found, wanted) and bits_equal(there, inside)


@nightly
def test_pickle_and_other_process(tmp_path: Any) -> None:
    packed = PackedImages.of(images())
    torch.save({"batch": packed}, tmp_path / "x.pt")
    for again in (pickle.loads(pickle.dumps(packed)), torch.load(tmp_path / "x.pt")["batch"]):
        assert all(map(bits_equal, packed, again))
    assert pickle.dumps(packed).count(b"_packed") == 0  # the private module's name is not stored
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(packed))
    code = "import pickle, imgops; x = pickle.load(open('{}', 'rb')); print(imgops.resize(x, (2, 3)).sum().item())"
    assert (
        int(run_python("-c", code.format(tmp_path / "x.pkl"))) == imgops.resize(packed, (2, 3)).sum().item()
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers: int) -> None:
    samples = [
        (torch.full((3, i + 1, 9 - i), i, dtype=torch.uint8), i, {"boxes": torch.ones(i, 4), "name": str(i)})
        for i in range(7)
    ]
    how: dict[str, Any] = {"num_workers": workers, "multiprocessing_context": "fork"} if workers else {}
    seen = []
    for packed, labels, more in torch.utils.data.DataLoader(
        samples, 3, collate_fn=PackedImages.collate, **how
    ):
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


# -- errors ------------------------------------------------------------------------------------------------

_DATA, _TWO = torch.zeros(60, dtype=torch.uint8), torch.tensor([[2, 4], [3, 4]])
_PACKED, _FEW = PackedImages.of(images()), PackedImages.of(new_sizes(0, 2))
_FLOATS, _BOX = PackedImages.of([torch.rand(4, 5, 6)]), torch.tensor([0.0, 0, 3, 3], requires_grad=True)
_MOVES = (v2.RandomHorizontalFlip(1.0, per_sample=True), v2.RandomResizedCrop(8, per_sample=True))
_BESIDE = (
    tv_tensors.BoundingBoxes([[1, 2, 10, 12]], format="XYXY", canvas_size=(20, 20)),
    tv_tensors.Mask(torch.zeros(20, 20)),
    tv_tensors.Image(torch.zeros(3, 20, 20)),
)
_REFUSING = (
    *(v2.RandomPhotometricDistort, v2.RandAugment, v2.TrivialAugmentWide, v2.AugMix, v2.ElasticTransform),
    *(v2.RandomElastic, v2.RandomGaussianNoise, v2.GaussianNoise, v2.RandomErasing),
)
_ALONE: list[Any] = [
    *(make(per_sample=True) for make in _REFUSING),
    v2.Pad(2),
    v2.FiveCrop(4),
    v2.Grayscale(),
]


def _vmapped(packed: PackedImages) -> Any:
    data = torch.stack([packed.data, packed.data]).float()
    return torch.func.vmap(lambda x: imgops.resize(packed.like(x), (3, 3)))(data)


#: Error -> a pattern of its text -> the calls that raise it.
REFUSED: dict[type[Exception], dict[str, list[Callable[[], Any]]]] = {
    ValueError: {
        r"^PackedImages(\.of)?: .*, got ": [
            lambda: PackedImages(_DATA[:-1], _TWO),
            lambda: PackedImages(_DATA, _TWO, 4),
            lambda: PackedImages(_DATA, _TWO, -3),
            lambda: PackedImages(_DATA, torch.tensor([[0, 4], [5, 4]])),
            lambda: PackedImages(_DATA, torch.tensor([[-2, -4], [3, 4]])),
            lambda: PackedImages(_DATA, torch.tensor([[1 << 62, 4], [3, 4]])),
            lambda: PackedImages(_DATA, _TWO[0]),
            lambda: PackedImages(_DATA, _TWO.to("meta")),
            lambda: PackedImages(_DATA.view(2, 30), _TWO),
            lambda: PackedImages(torch.zeros(120)[::2], _TWO),
            lambda: PackedImages(_DATA, _TWO)[::2],
            lambda: PackedImages.of([]),
            lambda: PackedImages.of(_PACKED),
            lambda: PackedImages.of(torch.zeros(2, 2, 3, 3)[:, 0, 0]),
            lambda: PackedImages.of([torch.zeros(1, 3, 4, 4)]),
            lambda: PackedImages.of([torch.zeros(3, 0, 4)]),
            lambda: PackedImages.of([torch.zeros(3, 4, 4), torch.zeros(1, 4, 4)]),
        ],
        r"must .*, got": [
            lambda: _PACKED.padded(fill=300),
            lambda: _PACKED.padded(fill=-1),
            lambda: _PACKED[1:1].padded(),
            lambda: _PACKED.mask((-1, 3)),
            lambda: PackedImages.collate([]),
            lambda: PackedImages.collate([(_PACKED[0], 1), (_PACKED[0],)]),
            lambda: PackedImages.collate([{"a": 1}, {"b": 1}]),
            lambda: v2.RandomResizedCrop(8)(_PACKED),
            lambda: v2.Compose([v2.RandomHorizontalFlip()])(_PACKED),
        ],
        "resized_crop: box must": [lambda: imgops.resized_crop(_PACKED, (0, 0, 6, 6), (4, 4))],
        "brightness: factor must": [lambda: imgops.adjust_brightness(_PACKED, torch.ones(4))],
        "resize: interpolation must": [lambda: imgops.resize(_PACKED, (4, 4), "cubic")],
        "resize: ": [lambda: imgops.resize(_PACKED, (0, 4))],
        "size must have shape": [lambda: imgops.resize(_PACKED, TO_SIZES[:3])],
        "size must be at least 1 pixel": [lambda: imgops.resize(_PACKED, TO_SIZES - 6)],
        r"must .*, got ToDtype": [
            lambda c=c: c([v2.RandomHorizontalFlip(), END[0]], per_sample=True)(_FEW)
            for c in (v2.RandomApply, v2.RandomChoice, v2.RandomOrder)
        ],
        "resize: antialias must be True with lanczos": [
            lambda: v2.Resize((3, 3), interpolation="lanczos", antialias=False)(_FLOATS)
        ],
        "RandomGrayscale: image must have 1 or 3 channels, because gray is a sum": [
            lambda: v2.RandomGrayscale(0.1, per_sample=True)(_FLOATS)
        ],
        "padded: fill must be a whole number": [lambda: _PACKED.padded(fill=float("nan"))],
        "from 0 to 1": [lambda: PackedImages.of([torch.ones(1, 2, 2).bool()]).padded(fill=2)],
        r"that of each image, \(64, 40\), got \(64, 39\)": [lambda: _PACKED.padded((64, 39))],
    },
    TypeError: {
        r"^PackedImages(\.of)?: .*, got ": [
            lambda: PackedImages(_DATA, _TWO.int()),
            lambda: PackedImages(_DATA.numpy(), _TWO),
            lambda: PackedImages.of([torch.zeros(3, 4, 4), torch.zeros(3, 4, 4).int()]),
        ],
        r"must .*, got": [
            lambda: _PACKED.padded(fill=None),
            lambda: _PACKED.mask(5),
            lambda: _PACKED["a"],
            lambda: _PACKED[1.5],
            lambda: _PACKED[[0, 1]],
            lambda: v2.RandomRotation(10, per_sample=True)(_PACKED),
            lambda: v2.RandomCrop(8, padding=2, per_sample=True)(_PACKED),
        ],
        "size must be int64": [lambda: imgops.resize(_PACKED, TO_SIZES.int())],
        "paste: image must be a Tensor, got": [lambda: imgops.paste(_PACKED, _PACKED[0], (0, 0))],
        "image must be a Tensor": [lambda: imgops.rotate90(_PACKED)],
        "inputs given with images of different sizes must not be": [
            lambda t=t, x=x: t(x)
            for t in _MOVES
            for other in _BESIDE
            for x in ({"image": _FEW, "other": other}, [_FEW, other])
        ],
        r"must be a Tensor, got|must not be": [
            lambda f=f, x=x: f(x)
            for t in _ALONE
            for f in (t, v2.Compose([v2.RandomHorizontalFlip(), t], per_sample=True))
            for x in (_FEW.float(), {"image": _FEW.float(), "label": torch.arange(2)})
        ],
        "solarize: threshold must be at most 1": [
            lambda: v2.RandomSolarize(100, p=1, per_sample=True)(_FLOATS)
        ],
        "or size must be given": [lambda: imgops.warp_affine(_FLOATS, [[1, 0, 0], [0, 1, 0]])],
    },
    NotImplementedError: {
        "resize: image must be a Tensor under vmap": [lambda: _vmapped(_PACKED)],
        "resize: box must not require": [lambda: imgops.resize(_FLOATS, (3, 3), box=_BOX)],
    },
}


@pytest.mark.parametrize("error", REFUSED)
def test_refusals(error: type[Exception]) -> None:
    PackedImages(_DATA, _TWO)  # fits
    for text, calls in REFUSED[error].items():
        for call in calls:
            with pytest.raises(error, match=text):
                call()


def test_refusals_of_sizes_in_a_graph() -> None:
    for wrong, text in (
        (TO_SIZES[:3], "have shape"),
        (TO_SIZES.int(), "be int64"),
        (TO_SIZES - 6, "be at least 1"),
    ):
        graph = torch.compile(imgops.resize, fullgraph=True, backend="eager")
        with pytest.raises((ValueError, TypeError, RuntimeError), match=f"resize: size must {text}"):
            graph(_PACKED, wrong)


def test_what_does_not_move_may_be_beside_packed_images() -> None:
    for other in _BESIDE[:2]:
        assert v2.ColorJitter(0.4, per_sample=True)(_FEW, other)[1] is other


def test_wrong_colors_and_sizes_are_those_of_one_image() -> None:
    """A batch refuses what its images refuse, and names the same operator, however it is computed."""
    to_float = v2.ToDtype(torch.float32, scale=True)
    for channels, mode in ((1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")):
        levels = [torch.full((channels, *size), 9, dtype=torch.uint8) for size in LARGE]
        files = [imgops.encode_image(x[:1] if channels < 3 else x[:3]) for x in levels]
        packed = [PackedImages.of(levels, interleaved) for interleaved in (False, True)]
        batches: list[Any] = [*packed, packed[0].float(), EncodedImages(files, mode)]
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
            graph(packed[0])
    flat = PackedImages.of([torch.zeros(3, 1, 3000, dtype=torch.uint8)])
    for steps in ([], [v2.CenterCrop(8)], [v2.CenterCrop(8), to_float]):
        for batch in (flat, flat[0]):
            with pytest.raises(ValueError, match=r"^resize: size must be at least .*, got \(0, 20\)$"):
                v2.Compose([v2.Resize(10, max_size=20), *steps])(batch)


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


@pytest.mark.parametrize("name", [name for name in SPECS if name in imgops.__all__])
def test_every_public_function_takes_or_refuses_them(name: str, whole: bool) -> None:
    """No function fails in another way than by an error that names the argument."""
    for sample in SPECS[name].samples[: None if whole else 2]:
        function, (image, *args), *keywords = sample.call(Draw(0).maker(sample.dtypes))
        if not isinstance(image, Tensor) or image.ndim < 3 or image.numel() == 0:
            continue
        packed = PackedImages.of([image.reshape(-1, *image.shape[-3:])[0]])
        try:
            function(packed, *args, **(keywords[0] if keywords else {}))
        except (TypeError, ValueError, NotImplementedError) as error:
            if " must " not in str(error):
                pytest.fail(f"{name}: {error}")


# -- other processes -----------------------------------------------------------------------------------------

FIRST_CALL = """
import torch, imgops
from imgops import transforms as v2
files = [imgops.encode_image(torch.full((3, h, 80), 9, dtype=torch.uint8)) for h in (50, 60)]
whole = v2.Compose([v2.RandomResizedCrop(24), v2.ColorJitter(0.1)], per_sample=True)
batch = imgops.EncodedImages(files)
assert torch.compile(whole, fullgraph=True, backend="eager")(batch).shape == (2, 3, 24, 24)
"""
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


@nightly
@pytest.mark.parametrize("program", [FIRST_CALL, DECLARED_LATER], ids=["first call", "declared later"])
def test_programs(program: str) -> None:
    """A graph may be the first call of a process, and has operators that are declared after the images."""
    run_python("-c", program)
