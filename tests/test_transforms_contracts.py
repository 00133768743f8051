"""torchvision's contracts, compared with it: sizes, errors, labels, dtypes, videos, TorchScript, registered kernels."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops import transforms as ours
from tests.checks import bits_equal
from tests.groups import compiled
from tests.tiers import every_night, nightly
from tests.transform_cases import CASES, HAS_CLASSES, picture, sample, seeded

F, T = ours.functional, v2.functional
NEAREST = InterpolationMode.NEAREST
# -- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [None, (3.0, 11.5)], ids=["middle", "center"])
def test_rotated_sizes(center: Any) -> None:
    """The sizes are PIL's, of tensors, boxes and keypoints alike; they are those of torchvision's tensors, too,
    unless less than 1e-4 of a pixel reaches beyond."""
    for height, width in ((19, 26), (20, 20), (37, 52), (1, 7), (31, 30)):
        image = picture(height=height, width=width)
        frame = PIL.Image.fromarray(image.permute(1, 2, 0).numpy())
        canvas = {"canvas_size": (height, width)}
        boxes = tv_tensors.BoundingBoxes([[1.0, 1, 4, 5]], format="XYXY", **canvas)
        points = tv_tensors.KeyPoints([[1.0, 1]], **canvas)
        for angle in (0, 30, -45, 90, 91.5, 180, 270, -90, 359.9, 12.3, 0.001, 89.999, -1e-7):
            how = {"expand": True, "center": center}
            found, wanted = F.rotate(image, angle, **how), T.rotate(frame, angle, **how)
            size = wanted.height, wanted.width
            assert found.shape[-2:] == size, (height, width, angle)
            assert F.rotate(boxes, angle, **how).canvas_size == size
            assert F.rotate(tv_tensors.wrap(boxes[:0], like=boxes), angle, **how).canvas_size == size
            assert F.rotate(points, angle, **how).canvas_size == size
            wanted = T.rotate(image, angle, **how)
            near = min(angle % 90, -angle % 90)
            assert found.shape == wanted.shape or 0 < near < 0.01
            if center is None and found.shape == wanted.shape:
                differ = (found.int() - wanted.int()).abs().amax(0) > 1
                assert differ.sum() <= (0 if angle % 90 == 0 else max(0.02 * differ.numel(), 1))


def test_crops_and_pads_of_every_size() -> None:
    """Where a crop is larger than the image, and where padding is negative, too."""
    for (height, width), size in itertools.product([(7, 8), (20, 31)], [3, (7, 9), (25, 6), [40]]):
        image = picture(height=height, width=width)
        assert bits_equal(F.center_crop(image, size), T.center_crop(image, size))
    modes = ("constant", "edge", "reflect", "symmetric")
    for padding, mode in itertools.product(([-3], [-2, 5], [4, -3, -7, 2], [-1, -2, -3, -4]), modes):
        found = F.pad(image, padding, padding_mode=mode)
        assert bits_equal(found, T.pad(image.float(), padding, padding_mode=mode).to(torch.uint8)), mode


# -- errors --------------------------------------------------------------------------------------

IMAGE, REAL = torch.zeros(3, 8, 9, dtype=torch.uint8), torch.rand(3, 8, 9)
TWO = torch.zeros(2, 8, 9, dtype=torch.uint8)

MASK, ORIGIN, STILL = tv_tensors.Mask(IMAGE), [0, 0], [0.0, 0.0]
_FIELDS = (
    (8, 9, 2),
    (3, 8, 9, 2),
    (1, 1, 8, 9, 2),
    (0, 8, 9, 2),
    (1, 9, 8, 2),
    (8, 9),
    (1, 2, 8, 9),
    (1, 3, 3, 2),
)
_PLANES = (IMAGE, IMAGE.expand(2, 3, 8, 9), MASK, tv_tensors.Mask(IMAGE[0]), tv_tensors.Mask(IMAGE[:2, None]))
#: Functional -> arguments that torchvision refuses.
REFUSED_ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    **{
        f"adjust_{name}": [(IMAGE, -0.7)] for name in ("brightness", "contrast", "saturation", "hue", "gamma")
    },
    "adjust_sharpness": [(IMAGE, -0.7)],
    "affine": [
        *((IMAGE, 0.0, ORIGIN, 0.0, STILL), (IMAGE, "0", ORIGIN, 1.0, STILL), (IMAGE, 0.0, [0], 1.0, STILL)),
        *((IMAGE, 0.0, ORIGIN, 1.0, [0.0, 0.0, 1.0]), (MASK, 0.0, ORIGIN, 0.0, STILL)),
    ],
    "elastic": [
        *((IMAGE, [1]), (MASK, [1])),
        *((image, torch.zeros(*shape)) for image in _PLANES for shape in _FIELDS),
    ],
    "five_crop": [(IMAGE, [20, 3]), (IMAGE, [20, 3, 3])],
    "gaussian_blur": [(IMAGE, [4, 4]), (IMAGE, [3, 3], 0.0)],
    "pad": [(IMAGE, [1, 2, 3]), (IMAGE, "ab"), (MASK, [1, 2, 3])],
    "permute_channels": [(IMAGE, [0, 1])],
    "posterize": [(IMAGE, bits) for bits in (-1, 9, 2.5, "1")],
    "resize": [
        *((IMAGE, (20, 30), InterpolationMode.BILINEAR, 10), (IMAGE, 20, InterpolationMode.BILINEAR, 20)),
        *((IMAGE, [5, 5], InterpolationMode.LANCZOS, None, False), (MASK, (20, 30), NEAREST, 10)),
    ],
    "rgb_to_grayscale": [(IMAGE, 2)],
    "rotate": [(MASK, "x")],
    "solarize": [(IMAGE, 256), (REAL, 1.5)],
    "uniform_temporal_subsample": [(tv_tensors.Image(IMAGE), 2)],
}
#: Calls that torchvision refuses.
REFUSED: dict[str, Callable[[Any], Any]] = {
    **{
        f"{name} {i}": lambda m, name=name, args=args: getattr(m.functional, name)(*args)
        for name, each in REFUSED_ARGUMENTS.items()
        for i, args in enumerate(each)
    },
    "max_size of a transform": lambda m: m.Resize((20, 30), max_size=10)(IMAGE),
    "max_size too small": lambda m: m.Resize(20, max_size=10)(IMAGE),
    "RandomPosterize": lambda m: m.RandomPosterize(9, p=1.0)(IMAGE),
    "RandomSolarize": lambda m: m.RandomSolarize(128, p=1.0)(REAL),
    "FiveCrop with a mask": lambda m: m.FiveCrop(3)(IMAGE, tv_tensors.Mask(IMAGE[0])),
    "noise of negative sigma": lambda m: m.GaussianNoise(sigma=-1.0)(REAL),
    "noise of int16": lambda m: m.GaussianNoise()(IMAGE.short()),
    "crop too large": lambda m: m.RandomCrop(30)(IMAGE),
    "LinearTransformation": lambda m: m.LinearTransformation(torch.eye(4), torch.zeros(4))(REAL),
    "SanitizeBoundingBoxes without boxes": lambda m: m.SanitizeBoundingBoxes(labels_getter=None)(IMAGE),
    "SanitizeBoundingBoxes of other labels": lambda m: m.SanitizeBoundingBoxes(labels_getter=lambda x: 3)(
        sample(IMAGE)["boxes"]
    ),
    "RandomIoUCrop without boxes": lambda m: m.RandomIoUCrop()(IMAGE),
    "JPEG of floats' quality": lambda m: m.JPEG(0),
    **{
        f"{name} with {kind}": lambda m, name=name, kind=kind: getattr(m, name)()(
            {"image": tv_tensors.Image(IMAGE), "other": sample(IMAGE)[kind]}
        )
        for name in ("RandAugment", "TrivialAugmentWide", "AutoAugment", "AugMix")
        for kind in ("mask", "boxes", "points")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_torchvision(name: str) -> None:
    with pytest.raises(Exception) as theirs:
        REFUSED[name](v2)
    with pytest.raises(theirs.type) as mine:
        REFUSED[name](ours)
    assert str(mine.value) == str(theirs.value)


@pytest.mark.parametrize("kind", [tv_tensors.Image, tv_tensors.Mask])
def test_a_fault_of_ours_is_not_hidden_by_torchvision(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    """torchvision is only asked for the text of an error, never for a result."""
    from imgops.transforms.functional import _dispatch

    def broken(image: Tensor, size: Any) -> Tensor:
        raise ValueError("a fault of imgops")

    monkeypatch.setitem(_dispatch.KERNELS, "center_crop", broken)
    make = _dispatch._masks if kind is tv_tensors.Mask else _dispatch._images
    with pytest.raises(ValueError, match="a fault of imgops"):
        make("center_crop")(kind(picture()), [4, 4])


LEVELS, CORNERS = picture()[..., :20, :30].contiguous(), [[0, 0], [29, 0], [29, 19], [0, 19]]
MOVED = [[3, 2], [27, 1], [29, 19], [0, 16]]
#: Calls that torchvision's functionals accept although they are none of the usual ones.
ACCEPTED: dict[str, Callable[[Any], Any]] = {
    "posterize to no bits": lambda m: m.posterize(LEVELS, 0),
    "posterize floats to no bits": lambda m: m.posterize(LEVELS / 255, 0),
    "erase by a number": lambda m: m.erase(LEVELS, 1, 2, 3, 3, v=0),
    "center_crop by a float": lambda m: m.center_crop(LEVELS, 5.0),
    "center_crop by NumPy's integer": lambda m: m.center_crop(LEVELS, np.int64(5)),
    "rotate no pixels": lambda m: m.rotate(LEVELS[:, :0], 3.0),
    "affine of no pixels": lambda m: m.affine(LEVELS[..., :0], 3.0, [0, 0], 1.0, [0.0, 0.0]),
    "perspective of no pixels": lambda m: m.perspective(LEVELS[:, :0], CORNERS, MOVED),
    "resize no images": lambda m: m.resize(LEVELS[None, :, :0][:0], [4, 5]),
    "a mask of no pixels": lambda m: m.resize(tv_tensors.Mask(LEVELS[None, :, :0][:0]), [4, 5]),
    "crop two dimensions": lambda m: m.crop(LEVELS[0], 1, 2, 3, 4),
    "five_crop two dimensions": lambda m: torch.stack(m.five_crop(LEVELS[0], [3, 3])),
    "invert two dimensions": lambda m: m.invert(LEVELS[0]),
    "equalize two dimensions": lambda m: m.equalize(LEVELS[0]),
    "perspective of bool": lambda m: m.perspective(LEVELS > 100, CORNERS, MOVED),
    "rotate bool": lambda m: m.rotate(LEVELS > 100, 30.0, interpolation=InterpolationMode.BILINEAR),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_as_by_torchvision(name: str) -> None:
    assert bits_equal(*(ACCEPTED[name](m.functional).as_subclass(Tensor) for m in (ours, v2)))


@pytest.mark.parametrize("name", ["RandAugment", *every_night("TrivialAugmentWide", "AutoAugment", "AugMix")])
def test_policies_refuse_labels_everywhere(name: str) -> None:
    given = (tv_tensors.Image(picture()[None]), tv_tensors.Mask(torch.zeros(1, 40, 52)))
    with pytest.raises(TypeError, match="Inputs of type Mask are not supported"):
        getattr(ours, name)(per_sample=True)(*given)
    if HAS_CLASSES:
        with pytest.raises(Exception, match="Inputs of type Mask are not supported"):
            compiled(getattr(ours, name)())[0](*given)


# -- dtypes and classes ----------------------------------------------------------------------------

OF_INTEGERS = {
    "ColorJitter": {"brightness": 0.4, "contrast": 0.3, "saturation": 0.4},
    "GaussianBlur": {"kernel_size": 3},
    "Grayscale": {"num_output_channels": 3},
    "RandomGrayscale": {"p": 1.0},
    "RandomSolarize": {"threshold": 90, "p": 1.0},
    "RandomPosterize": {"bits": 3, "p": 1.0},
    "RandomInvert": {"p": 1.0},
    "RandomAdjustSharpness": {"sharpness_factor": 1.5, "p": 1.0},
    "RandomAutocontrast": {"p": 1.0},
    "RandomEqualize": {"p": 1.0},
    "RandAugment": {},
    "RandomResize": {"min_size": 20, "max_size": 30},
    "RandomAffine": {"degrees": 0, "translate": (0.2, 0.2)},
}


@pytest.mark.parametrize("dtype", [torch.int16, *every_night(torch.int32, torch.int64, torch.bool)], ids=str)
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_other_dtypes_go_to_torchvision(name: str, dtype: torch.dtype) -> None:
    """The result is bit-exact, eager, compiled and per sample; an error of torchvision stays an error."""
    image = picture().to(dtype)
    mine, theirs = (getattr(m, name)(**OF_INTEGERS[name]) for m in (ours, v2))
    for seed in range(3):
        try:
            wanted = seeded(seed, theirs, image)
        except Exception as error:
            with pytest.raises(type(error)):
                seeded(seed, mine, image)
            continue
        found = seeded(seed, mine, image)
        assert found.dtype == wanted.dtype
        if name == "RandomResize" and dtype != torch.bool:
            assert (found - wanted).abs().max() <= 1
        elif name not in ("RandomResize", "RandAugment"):
            assert bits_equal(found, wanted)
        if name in ("ColorJitter", "RandomInvert", "GaussianBlur") and seed == 0:
            assert bits_equal(seeded(seed, compiled(mine)[0], image), wanted)
            each = getattr(ours, name)(**OF_INTEGERS[name], per_sample=True)
            assert bits_equal(seeded(seed, each, image[None])[0], wanted)


DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)
PAIRS = list(itertools.permutations(DTYPES, 2))
#: torchvision raises for these.
UNSAFE = [(torch.float32, torch.int32), (torch.float32, torch.int64), (torch.float64, torch.int64)]


def white(dtype: torch.dtype) -> float:
    return 1 if dtype.is_floating_point or dtype == torch.bool else torch.iinfo(dtype).max


def ramp(dtype: torch.dtype) -> Tensor:
    """Return levels from 0 to white, ``(1, 1, n)``."""
    shares = torch.linspace(0, 1, 511, dtype=torch.float64)
    if dtype.is_floating_point:
        return shares.to(dtype)[None, None]
    whole = [min(int(x * white(dtype)), white(dtype)) for x in shares.tolist()]
    return torch.tensor(whole, dtype=torch.int64).to(dtype)[None, None]


@pytest.mark.parametrize("pair", [p for p in PAIRS if p not in UNSAFE], ids=lambda p: f"{p[0]}-{p[1]}")
def test_every_pair(pair: tuple[torch.dtype, torch.dtype]) -> None:
    """0 stays 0, white is white, levels keep their order and place; where torchvision's do, they are its own."""
    before, after = pair
    image = ramp(before)
    out = ours.ToDtype(after, scale=True)(image)
    assert out.dtype == after and out.shape == image.shape
    values = [int(x) if not after.is_floating_point else x for x in out.flatten().tolist()]
    assert values[0] == 0 and values[-1] == white(after) and values == sorted(values)
    if torch.bool not in pair:
        steps = min(white(t) if not t.is_floating_point else 2 / torch.finfo(t).eps for t in pair)
        for share, value in zip(torch.linspace(0, 1, 511, dtype=torch.float64).tolist(), values, strict=True):
            assert abs(value / white(after) - share) <= 1.01 * (
                1 / steps + 1 / white(before) * (not before.is_floating_point)
            )
    try:
        theirs = v2.ToDtype(after, scale=True)(image)
    except (RuntimeError, TypeError):
        return
    there = theirs.flatten().tolist()
    if there[0] == 0 and there[-1] == white(after) and there == sorted(there):
        assert bits_equal(out, theirs)
    whole = torch.tensor([[[True]]]).to(before) * 0  # a plane of one level
    assert ours.functional.to_dtype(whole, after, scale=True).item() == 0


@pytest.mark.parametrize("pair", UNSAFE, ids=lambda p: f"{p[0]}-{p[1]}")
def test_pairs_that_torchvision_refuses(pair: tuple[torch.dtype, torch.dtype]) -> None:
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        ours.ToDtype(pair[1], scale=True)(ramp(pair[0]))


@pytest.mark.parametrize("before", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_lies_outside_is_clamped(before: torch.dtype) -> None:
    image = torch.tensor([-0.5, -2.0, 1.25, 3.0], dtype=before)[None, None]
    assert ours.ToDtype(torch.uint8, scale=True)(image).flatten().tolist() == [0, 0, 255, 255]
    out = ours.ToDtype(torch.int16, scale=True)(image).flatten().tolist()
    assert out[1:] == [-32768, 32767, 32767] and abs(out[0] + 16384) <= 128


FORMS: dict[str, Any] = {
    "functional": lambda t, x: ours.functional.to_dtype(x, t, scale=True),
    "old functional": lambda t, x: ours.ConvertImageDtype(t)(x),
    "class": lambda t, x: ours.ToDtype(t, scale=True)(x),
    "Image": lambda t, x: ours.ToDtype(t, scale=True)(tv_tensors.Image(x)).as_subclass(Tensor),
    "classes": lambda t, x: ours.ToDtype({Tensor: t}, scale=True)(x),
    "graph": lambda t, x: torch.compile(
        ours.ToDtype(t, scale=True), fullgraph=True, backend="aot_eager", isolate_recompiles=True
    )(x),
    "pipeline": lambda t, x: ours.Compose(
        [ours.RandomInvert(0.0), ours.ToDtype(t, scale=True)], per_sample=True
    )(x[None])[0],
    "packed": lambda t, x: ours.ToDtype(t, scale=True)(imgops.PackedImages.of([x, x])).unpack()[0],
    "converted": lambda t, x: ours.convert(v2.Compose([v2.ToDtype(t, scale=True)]))(x),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form: str) -> None:
    for before, after in (
        (torch.float16, torch.uint8),
        (torch.bfloat16, torch.uint8),
        (torch.float32, torch.uint16),
    ):
        image = ramp(before).expand(3, 2, -1).contiguous()
        assert bits_equal(FORMS[form](after, image), ours.ToDtype(after, scale=True)(image)), (before, after)
        assert FORMS[form](after, image)[0, 0, -1].item() == white(after)


def test_color_jitter_that_changes_nothing() -> None:
    """It takes any image, returns it, and draws as torchvision does."""
    for image in (TWO, IMAGE):
        assert ours.ColorJitter()(image) is image
        assert ours.ColorJitter(brightness=0, per_sample=True)(image[None]) is not None
        assert bits_equal(compiled(ours.ColorJitter())[0](image), image)
    states = []
    for module in (ours, v2):
        torch.manual_seed(0)
        module.ColorJitter()(IMAGE)
        states.append(torch.get_rng_state())
    assert bits_equal(*states)


def test_grayscale_outside_of_the_unit_range_and_of_one_channel() -> None:
    """Floats are not clamped, and one channel stays one, in eager, compiled and per-sample calls."""
    for image in (picture(torch.float32) * 3 - 1, picture(torch.float32)[:1]):
        wanted = v2.RandomGrayscale(1.0)(image)
        torch.testing.assert_close(ours.RandomGrayscale(1.0)(image), wanted, rtol=0, atol=2e-3)
        for found in (
            compiled(ours.RandomGrayscale(1.0))[0](image),
            ours.RandomGrayscale(1.0, per_sample=True)(image[None])[0],
        ):
            assert bits_equal(found, ours.RandomGrayscale(1.0)(image))


def test_erasing_warns_of_what_it_passes_through() -> None:
    given = sample(picture())
    for name in ("mask", "boxes", "points"):
        with pytest.warns(UserWarning, match="RandomErasing.. is currently passing through"):
            ours.RandomErasing(p=1.0)(given["image"], given[name])


# -- videos ----------------------------------------------------------------------------------------


@nightly
@pytest.mark.parametrize("backend", [None, "eager"])
def test_a_subsample_refuses_what_it_cannot_take(backend: str | None) -> None:
    for wrong in (-1, 1.5, None, "3", True):
        with pytest.raises(
            (TypeError, ValueError), match=r"^UniformTemporalSubsample: num_samples must be an integer"
        ):
            ours.UniformTemporalSubsample(wrong)  # type: ignore[arg-type]
        with pytest.raises((TypeError, RuntimeError)):  # torchvision's own words
            ours.functional.uniform_temporal_subsample(torch.zeros(4, 3, 5, 5), wrong)  # type: ignore[arg-type]
    for video in (torch.zeros(3, 5, 5), torch.zeros(0, 3, 5, 5), tv_tensors.Video(torch.zeros(0, 3, 5, 5))):
        transform: Any = ours.UniformTemporalSubsample(2)
        if backend is not None:
            torch._dynamo.reset()
            transform = torch.compile(transform, backend=backend)
        with pytest.raises(
            ValueError, match=r"^UniformTemporalSubsample: video must be \(\.\.\., T, C, H, W\) with"
        ):
            transform(video)
    assert ours.UniformTemporalSubsample(0)(torch.zeros(2, 3, 5, 5)).shape == (0, 3, 5, 5)


@nightly
def test_a_subsample_takes_the_right_frames() -> None:
    """torchvision's single precision takes the frame before in places: of 3 frames 15, of 5 frames 27."""
    for count in range(1, 70):
        frames = tv_tensors.Video(torch.arange(count).reshape(count, 1, 1, 1))
        for samples in range(1, 66):
            wanted = [i * (count - 1) // max(samples - 1, 1) for i in range(samples)]
            assert ours.UniformTemporalSubsample(samples)(frames).flatten().tolist() == wanted
            apart = np.abs(np.linspace(0, count - 1, samples) - wanted)
            assert (apart < 1 + 1e-9).all()
    graph = torch.compile(
        ours.functional.uniform_temporal_subsample, fullgraph=True, backend="aot_eager", dynamic=True
    )
    for count in (3, 9, 30):
        video = torch.arange(count).reshape(count, 1, 1, 1)
        wanted = [i * (count - 1) // 14 for i in range(15)]
        assert graph(video, 15).flatten().tolist() == wanted


# -- TorchScript, registered kernels, aliases ----------------------------------------------------


@nightly
@pytest.mark.filterwarnings("ignore")
def test_scripted_transforms() -> None:
    """Transforms that torchvision can script give the same result."""
    image = picture()
    for case in CASES:
        theirs, mine = case.make(v2), case.make(ours)
        try:
            wanted = torch.jit.script(theirs)
        except Exception:
            continue
        found = torch.jit.script(mine)
        if case.name == "RandomSolarize":
            continue
        assert bits_equal(seeded(3, found, image), seeded(3, wanted, image)), case
        again = case.make(ours, per_sample=True) if case.draws else mine
        torch.jit.script(again)
        assert type(mine)._v1_transform_cls is type(theirs)._v1_transform_cls


@pytest.mark.filterwarnings("ignore")
def test_scripted_functionals() -> None:
    image = picture()
    for name, args in (
        ("resize", ([20, 21],)),
        ("horizontal_flip", ()),
        ("adjust_brightness", (0.7,)),
        ("rotate", (30.0,)),
        ("gaussian_blur", ([3, 3],)),
        ("five_crop", ([5, 5],)),
    ):
        found, wanted = (torch.jit.script(getattr(m, name))(image, *args) for m in (F, T))
        for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, wanted))):
            assert bits_equal(a, b)


def test_kernels_of_a_users_class() -> None:
    """They may be registered by either library's function, on either library's functional; transforms use them, too."""

    class Depth(tv_tensors.TVTensor):
        pass

    class Photo(tv_tensors.Image):
        pass

    @F.register_kernel(F.horizontal_flip, Depth)
    def _(depth: Any) -> Any:
        return tv_tensors.wrap(depth.as_subclass(Tensor) + 1, like=depth)

    @T.register_kernel(T.vertical_flip, Photo)
    def _(photo: Any) -> Any:
        return tv_tensors.wrap(photo.as_subclass(Tensor) + 2, like=photo)

    @F.register_kernel("resize", Depth)
    def _(depth: Any, size: Any, **options: Any) -> Any:
        return tv_tensors.wrap(depth.as_subclass(Tensor) + 3, like=depth)

    depth, photo = torch.zeros(1, 4, 4).as_subclass(Depth), torch.zeros(3, 4, 4).as_subclass(Photo)
    assert F.horizontal_flip(depth).eq(1).all() and T.horizontal_flip(depth).eq(1).all()
    out = ours.RandomHorizontalFlip(1.0)({"image": tv_tensors.Image(picture()), "depth": depth})
    assert type(out["depth"]) is Depth and out["depth"].eq(1).all()
    assert F.vertical_flip(photo).eq(2).all() and ours.RandomVerticalFlip(1.0)(photo).eq(2).all()
    assert ours.Resize(3)(depth).eq(3).all()
    assert type(F.horizontal_flip(photo)) is Photo and bits_equal(
        F.horizontal_flip(photo).as_subclass(Tensor), torch.zeros(3, 4, 4)
    )
    with pytest.raises(TypeError):
        F.rotate(depth, 3)
    with pytest.raises(ValueError):
        F.register_kernel(F.resize, tv_tensors.Image)

    class Frame(PIL.Image.Image):
        pass

    frame = PIL.Image.fromarray(picture().permute(1, 2, 0).numpy())
    mine = Frame()
    mine.__dict__.update(frame.__dict__)
    mine._im = frame.im if hasattr(frame, "_im") else None
    assert F.horizontal_flip(mine).size == frame.size


def test_aliases() -> None:
    for alias, name in (
        ("hflip", "horizontal_flip"),
        ("vflip", "vertical_flip"),
        ("to_grayscale", "rgb_to_grayscale"),
        ("elastic_transform", "elastic"),
    ):
        assert getattr(T, alias) is not None
        assert getattr(F, alias) is getattr(F, name)


# -- subclasses ------------------------------------------------------------------------------------


def test_a_rotation_that_expands_has_no_draws_of_each_sample() -> None:
    with pytest.raises(NotImplementedError, match="RandomRotation: per_sample must be False"):
        ours.RandomRotation(30, expand=True, per_sample=True)(picture()[None])


@nightly
def test_noise_is_drawn_in_its_turn() -> None:
    """It is drawn between other draws and only where it was chosen: eager, compiled and in torchvision alike."""

    def steps(m: Any) -> list[Any]:
        noise = m.RandomApply([m.GaussianNoise(sigma=0.2)], p=0.5)
        return [m.RandomHorizontalFlip(), noise, m.RandomVerticalFlip(), m.GaussianNoise(), m.RandomInvert()]

    image = picture(torch.float32)
    pipeline, graph = ours.Compose(steps(ours)), compiled(ours.Compose(steps(ours)))[0]
    for seed in range(20):
        wanted = seeded(seed, v2.Compose(steps(v2)), image)
        for function in (pipeline, graph):
            torch.testing.assert_close(seeded(seed, function, image), wanted, rtol=0, atol=1e-6)
    each = ours.GaussianNoise(per_sample=True)
    images = torch.stack([image, image.flip(0), image.flip(-1)])
    wanted = seeded(4, lambda: torch.stack([v2.GaussianNoise()(x) for x in images]))
    for function in (each, compiled(each)[0]):
        torch.testing.assert_close(seeded(4, function, images), wanted, rtol=0, atol=1e-6)


warnings.filterwarnings("ignore", "RandomErasing.. is currently passing through")
