"""Operators and transforms on uint16; tests/test_kinds_of_files.py has files of 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2 as tv

import imgops
from imgops import transforms as v2
from imgops.transforms.policy import _COLORS, _Color
from tests.groups import compile_together
from tests.specs import SPECS
from tests.tiers import nightly


def levels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 65536, shape).astype(np.uint16)


DEEP = torch.from_numpy(levels(2, 3, 23, 31, seed=1))
INTERLEAVED = DEEP.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def each_plane(image: Tensor, call: Callable[[np.ndarray], np.ndarray]) -> Tensor:
    """Return what a library makes of each plane."""
    planes = [call(plane.numpy()) for plane in image.flatten(0, -3)]
    made = torch.from_numpy(np.stack(planes))
    return made.reshape(*image.shape[:-2], *made.shape[-2:])


def by_pil(call: Callable[[Image.Image], Image.Image]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda plane: np.asarray(call(Image.fromarray(plane)))


#: Each transform, and what Pillow (in mode I;16) or OpenCV makes of a plane.
PIPELINES: dict[str, tuple[Any, Callable[[np.ndarray], np.ndarray]]] = {
    "Resize": (v2.Resize((11, 17)), by_pil(lambda p: p.resize((17, 11), Image.Resampling.BILINEAR))),
    "bicubic": (
        v2.Resize((40, 33), interpolation=InterpolationMode.BICUBIC),
        by_pil(lambda p: p.resize((33, 40), Image.Resampling.BICUBIC)),
    ),
    "no antialias": (v2.Resize((11, 17), antialias=False), lambda a: cv2.resize(a, (17, 11))),
    "CenterCrop": (
        v2.Compose([v2.Resize((16, 20)), v2.CenterCrop(12)]),
        by_pil(lambda p: p.resize((20, 16), Image.Resampling.BILINEAR).crop((4, 2, 16, 14))),
    ),
    "flips": (
        v2.Compose([v2.RandomHorizontalFlip(1, per_sample=True), v2.RandomVerticalFlip(1, per_sample=True)]),
        lambda a: cv2.flip(a, -1),
    ),
    "half turn": (v2.RandomRotation((180, 180), per_sample=True), lambda a: cv2.rotate(a, cv2.ROTATE_180)),
    "GaussianBlur": (
        v2.GaussianBlur(5, (1.5, 1.5), per_sample=True),
        lambda a: cv2.GaussianBlur(a, (5, 5), 1.5, borderType=4),
    ),
    "RandomGamma": (
        v2.RandomGamma((2.0, 2.0), p=1.0, per_sample=True),
        lambda a: np.clip(65535.999 * (a / 65535) ** 2, 0, 65535).astype(np.uint16),
    ),
    "RandomInvert": (v2.RandomInvert(1, per_sample=True), cv2.bitwise_not),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_transforms_have_the_pixels_of_the_libraries(name: str) -> None:
    """One image, a batch, and images of different sizes; planar and interleaved."""
    transform, call = PIPELINES[name]
    wanted = each_plane(DEEP, call)
    for batch in (DEEP, INTERLEAVED):
        assert torch.equal(transform(batch), wanted)
        assert torch.equal(transform(tv_tensors.Image(batch[0])), wanted[0])
    if name in ("Resize", "bicubic", "no antialias", "CenterCrop", "flips", "GaussianBlur"):
        packed = transform(imgops.PackedImages.of(list(DEEP)))
        assert torch.equal(packed if isinstance(packed, Tensor) else torch.stack(packed.unpack()), wanted)


@nightly
def test_transforms_in_a_graph() -> None:
    """They have the pixels of the libraries, or of eager mode, and draw without another compilation."""
    known = {name: transform for name, (transform, _) in PIPELINES.items()}
    drawn = {name: make(per_sample=True) for name, (make, _) in OF_LEVELS.items()}
    graph, counting = compile_together(known | drawn)
    for _ in range(3):
        found = graph(DEEP)
        assert all(found[name].dtype == torch.uint16 for name in drawn)
        for name, (_, call) in PIPELINES.items():
            assert torch.equal(found[name], each_plane(DEEP, call)), name
    assert counting.count == 1


def test_random_resized_crops() -> None:
    """They draw what torchvision draws, and have the pixels of Pillow's crop and resize."""
    for seed in range(8):
        torch.manual_seed(seed)
        out = v2.RandomResizedCrop((9, 13))(DEEP)
        torch.manual_seed(seed)
        params = tv.RandomResizedCrop((9, 13)).make_params([DEEP])
        top, left, height, width = (params[name] for name in ("top", "left", "height", "width"))
        box = left, top, left + width, top + height
        wanted = each_plane(
            DEEP, by_pil(lambda p, b=box: p.crop(b).resize((13, 9), Image.Resampling.BILINEAR))
        )
        assert torch.equal(out, wanted)


#: Public operators of images that refuse uint16, and arguments with which they are called.
REFUSED: dict[str, tuple[Any, ...]] = {
    "adaptive_threshold": (),
    "bilateral_filter": (5, 10.0, 10.0),
    "canny": (10, 20),
    "connected_components": (),
    "distance_transform": (),
    "jpeg": (50,),
    "webp": (50,),
}
#: Public names that compute nothing of an image's values: they make files, maps, or move pixels of any dtype.
NOT_COMPUTED = (
    *("accumulate", "decode_frames", "decode_image", "decode_images", "encode_image"),
    *("adjoint", "decompositions", "inverse"),
    *("show_config", "elastic_map", "flow_map", "grid_distortion_map", "optical_distortion_map", "polar_map"),
    "thin_plate_spline_map",
)


def test_every_operator_takes_uint16_or_refuses_it() -> None:
    """A spec names uint16 and has a reference, or the operator refuses it in eager mode, on meta and in a graph."""
    image = DEEP[:, :1]
    with pytest.raises(TypeError, match="composite: mask must be bool"):
        imgops.composite(image, image, torch.ones(2, 1, 23, 31))
    for name in imgops.__all__:
        if not name.islower() or name in NOT_COMPUTED:
            continue
        spec, call = SPECS[name], getattr(imgops, name)
        if name not in REFUSED:
            assert spec.reference is not None and any(torch.uint16 in s.dtypes for s in spec.samples), name
            continue
        assert not any(torch.uint16 in s.dtypes for s in spec.samples), name
        args = REFUSED[name]
        messages = set()
        for compute, given in (
            (call, image),
            (call, image.to("meta")),
            (torch.compile(call, fullgraph=True, backend="eager"), image),
        ):
            with pytest.raises(Exception, match=f"{name}: image must be .*, got torch.uint16") as raised:
                compute(given, *args)
            messages.add(str(raised.value).partition("\n")[0])
            assert isinstance(raised.value, TypeError) or compute is not call
        assert len(messages) == 1, messages


#: Functionals whose results on uint16 torchvision computes, the most levels between them and ours, and a share of values.
TORCHVISIONS: dict[str, tuple[tuple[Any, ...], int, float]] = {
    "adjust_brightness": ((1.3,), 0, 0),
    "posterize": ((5,), 0, 0),
    "autocontrast": ((), 1, 0.6),
    "adjust_sharpness": ((1.7,), 1, 0.02),
    "invert": ((), 0, 0),
    # Weights of gray: 0.2989 in torchvision, 0.299 in OpenCV.
    "adjust_contrast": ((0.6,), 4, 1),
    "adjust_saturation": ((1.7,), 7, 1),
    "rgb_to_grayscale": ((), 8, 1),
    "adjust_hue": ((0.2,), 2, 0.1),
}


def test_functionals_are_torchvisions() -> None:
    """Where torchvision is right: it turns white into black in adjust_hue, and keeps 8 bits in equalize."""
    dark = (DEEP.int().clamp(max=65000)).to(torch.uint16)
    for name, (args, most, share) in TORCHVISIONS.items():
        ours, theirs = (getattr(f, name)(dark, *args).long() for f in (v2.functional, tv.functional))
        apart = (ours - theirs).abs()
        assert apart.max() <= most and (apart > 0).double().mean() <= share, f"{name}: {apart.max()}"
    for name in ("posterize", "solarize"):
        bad = 17 if name == "posterize" else 65536
        with pytest.raises(TypeError):
            getattr(v2.functional, name)(dark, bad)
    white = torch.full((3, 2, 2), 65535, dtype=torch.int32).to(torch.uint16)
    for name in TORCHVISIONS:
        if name not in ("invert", "posterize"):
            args = TORCHVISIONS[name][0]
            assert (getattr(v2.functional, name)(white, *args) == 65535).all() or name == "adjust_contrast"
    assert torch.equal(v2.functional.adjust_hue(DEEP, 0.0), DEEP)


#: Transforms, the levels of 8 bits by which their result on 257 times an image differs, and whether a graph has its draws.
OF_LEVELS: dict[str, tuple[Callable[..., Any], float]] = {
    "ColorJitter": (lambda **how: v2.ColorJitter(0.4, 0.4, 0.4, **how), 4),
    "RandomPhotometricDistort": (lambda **how: v2.RandomPhotometricDistort(hue=(0, 0), p=1.0, **how), 12),
    "RandomAutocontrast": (lambda **how: v2.RandomAutocontrast(1.0, **how), 1),
    "RandomAdjustSharpness": (lambda **how: v2.RandomAdjustSharpness(1.7, 1.0, **how), 2),
    "RandomPosterize": (lambda **how: v2.RandomPosterize(3, 1.0, **how), 31),
    "RandomInvert": (lambda **how: v2.RandomInvert(1.0, **how), 0),
    "RandomGrayscale": (lambda **how: v2.RandomGrayscale(1.0, **how), 1),
    "RandomSaltAndPepper": (lambda **how: v2.RandomSaltAndPepper(p=1.0, **how), 0),
    "RandomShotNoise": (lambda **how: v2.RandomShotNoise(p=1.0, **how), 0.6),
    "RandomISONoise": (lambda **how: v2.RandomISONoise(p=1.0, **how), 0.6),
    "RandomGaussianNoise": (lambda **how: v2.RandomGaussianNoise(p=1.0, **how), 1),
    "GaussianNoise": (lambda **how: v2.GaussianNoise(**how), 1),
    "RandomMultiplicativeNoise": (lambda **how: v2.RandomMultiplicativeNoise(p=1.0, **how), 1),
    "RandomBrightnessContrast": (lambda **how: v2.RandomBrightnessContrast(p=1.0, **how), 1),
    "RandomRGBShift": (lambda **how: v2.RandomRGBShift(p=1.0, **how), 1),
    "RandomToneCurve": (lambda **how: v2.RandomToneCurve(p=1.0, **how), 0.6),
    "RandomTemperature": (lambda **how: v2.RandomTemperature(p=1.0, **how), 1),
    "RandomUnsharpMask": (lambda **how: v2.RandomUnsharpMask(p=1.0, **how), 6),
    "RandomDownscale": (lambda **how: v2.RandomDownscale(p=1.0, **how), 2),
}


@pytest.mark.parametrize("name", OF_LEVELS)
def test_transforms_draw_what_they_draw_for_8_bits(name: str) -> None:
    """One image, a batch with and without per_sample, and both memory formats."""
    make, most = OF_LEVELS[name]
    small = torch.from_numpy(np.random.default_rng(6).integers(0, 256, (3, 3, 24, 31)).astype(np.uint8))
    deep = (small.int() * 257).to(torch.uint16)
    last = deep.contiguous(memory_format=torch.channels_last)
    for how in ({}, {"per_sample": True}):
        transform = make(**how)

        def run(image: Tensor, call: Any = transform) -> Tensor:
            torch.manual_seed(3)
            return call(image)

        for x, y in ((small, deep), (small[0], deep[0])) if not how else ((small, deep),):
            of_8, of_16 = run(x), run(y)
            assert of_16.dtype == torch.uint16
            apart = (of_16.double() / 257 - of_8.double()).abs().max().item()
            assert apart <= most, f"{how}: {apart}"
        wanted = run(deep)
        if name != "GaussianNoise":  # torchvision draws noise in the order of the memory
            assert torch.equal(run(last), wanted)
        assert torch.equal(run(tv_tensors.Image(deep)), wanted)


def test_policies_of_16_bits() -> None:
    """AutoAugment solarizes from a share of white on; all policies give uint16, alone and for each sample."""
    small = torch.from_numpy(np.random.default_rng(7).integers(0, 256, (4, 3, 24, 31)).astype(np.uint8))
    deep = (small.int() * 257).to(torch.uint16)
    for make in (v2.AutoAugment, v2.RandAugment, v2.TrivialAugmentWide, v2.AugMix):
        for seed in range(6):
            torch.manual_seed(seed)
            assert make()(deep).dtype == torch.uint16
            torch.manual_seed(seed)
            assert make(per_sample=True)(deep).dtype == torch.uint16
    steps = torch.tensor([[1.0, 0, 0, 0, 1, 0, list(_COLORS).index("Solarize"), 100.0, 100 / 255, 0, 0]])
    image = deep[:1]
    found = _Color(steps[..., 6:9]).image(image)
    one = _Color(steps[0, 6:9].tolist()).image(image[0])
    assert torch.equal(found, imgops.solarize(image, 65535 * float(np.float32(100 / 255))))
    assert torch.equal(one, found[0])
