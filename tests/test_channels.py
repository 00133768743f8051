"""Images of any number of channels and memory format: each operator and transform computes them, or says why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2 as theirs

import imgops
from imgops import PackedImages
from imgops import transforms as ours
from imgops.transforms import functional as F
from tests.added_cases import ROWS
from tests.checks import check_compiled_raises, check_raises
from tests.groups import compile_together, groups, together
from tests.specs import SPECS, OpSpec, Sample
from tests.specs._libraries import FLAGS
from tests.specs._maker import Counted
from tests.test_reference import compare
from tests.tiers import nightly
from tests.transform_cases import CASES, seeded

COUNTS = (1, 2, 3, 4, 5, 13)
SATURATION = "saturation is a property of RGB colors"
HUE = "hue is a property of RGB colors"
BOTH = "saturation and hue are properties of RGB colors"
GRAY = "gray is a sum of red, green and blue"
HLS = "HLS is a space of RGB colors"
LAB = "it equalizes gray, or the L of RGB colors in LAB"
JPEG, WEBP = "JPEG files hold gray or RGB", "WebP files hold RGB"

#: What the errors of operators say of the channels that they refuse.
REFUSED_CHANNELS = {
    "adjust_saturation": f"must have 1 or 3 channels, because {SATURATION}, got",
    "adjust_hue": f"must have 1 or 3 channels, because {HUE}, got",
    "grayscale": f"must have 1 or 3 channels, because {GRAY}, got",
    "color_sequence": f"must have 1 or 3 channels, because {BOTH}, got",
    "clahe": f"must have 1 or 3 channels, because {LAB}, got",
    "bilateral_filter": "must have 1 or 3 channels, because cv2.bilateralFilter takes no others, got",
    "jpeg": f"must have 1 or 3 channels, because {JPEG}, got",
    "webp": f"must have 3 channels, because {WEBP}, got",
    "iso_noise": f"must have 3 channels, because {HLS}, got",
    "alpha_composite": "must have 4 channels (RGBA), got",
    "cvt_color": "channels for '",
    "encode_image": "channels for ",
    "color_matrix": "columns, got shape",
}
#: Those whose channels follow from another argument.
OF_ARGUMENTS = ("cvt_color", "encode_image", "color_matrix", "color_sequence")
#: The memory formats that are compared: planar and interleaved, slices, every second column, and one channel for all.
FORMS = ("planar", "interleaved", "window", "interleaved-window", "sliced", "interleaved-sliced", "expanded")


def calls_of(spec: OpSpec, whole: bool) -> Iterator[tuple[Sample, Counted]]:
    """Yield calls with 1 to 5 channels.

    The first sample of an operator is called in every format, nightly in every dtype; each other one, nightly, is
    interleaved, and in one more format, in one dtype after the other.
    """
    for i, sample in enumerate([s for s in spec.samples if not s.edge][: None if whole else 1]):
        dtypes = [d for d in (torch.uint8, torch.uint16, torch.float32) if d in sample.dtypes]
        for count in range(1, 6):
            for j, format in enumerate(FORMS):
                if i == 0 and whole:
                    yield from ((sample, Counted(dtype, format, channels=count)) for dtype in dtypes)
                elif i == 0 and dtypes:
                    yield sample, Counted(dtypes[(j + count) % len(dtypes)], format, channels=count)
                elif dtypes and (format == "interleaved" or (i + count) % len(FORMS) == j):
                    yield sample, Counted(dtypes[(i + j + count) % len(dtypes)], format, channels=count)


def is_refusal(name: str, text: str) -> bool:
    """Return whether an error is the one that an operator has for a number of channels, or for that of an argument."""
    words = REFUSED_CHANNELS.get(name, "")
    by_channels = bool(words) and text.startswith(f"{name}: ") and words in text
    return by_channels or "one for each of" in text or "table must have" in text


@pytest.mark.parametrize("names", groups([n for n, s in SPECS.items() if callable(s.reference)]))
def test_operators(names: list[str], whole: bool) -> None:
    """On 1 to 5 channels, in every format and dtype, an operator gives its reference's result, or its error."""
    for name in names:
        spec, refused = SPECS[name], set()
        for sample, maker in calls_of(spec, whole):
            try:
                compare(spec, sample, maker)
            except (AssertionError, ValueError) as error:
                if not is_refusal(name, str(error)):
                    raise AssertionError(f"{sample}, {maker}: {error}") from error
                refused.add(maker.channels)
        words = REFUSED_CHANNELS.get(name, "").partition(" channels")[0]
        if words and refused and name not in OF_ARGUMENTS:
            assert refused == {1, 2, 3, 4, 5} - {int(n) for n in re.findall(r"\d+", words)}, name


def test_large_slices() -> None:
    """OpenCV rounds few pixels of a frame and of its planes differently, so that small images rarely show it."""
    random = np.random.default_rng(0)
    for channels in (2, 3, 4, 5):
        frame = random.integers(0, 256, (240, 320, channels), dtype=np.uint8)
        for name in ("nearest", "bilinear", "bicubic", "area", "lanczos")[: 5 if channels < 5 else 3]:
            for top, left in random.integers(0, 60, (6, 2)):
                part = frame[top : top + 175, left : left + 250]
                wanted = cv2.resize(part, (224, 200), interpolation=FLAGS[name])
                found = imgops.resize(
                    torch.from_numpy(part).permute(2, 0, 1), (200, 224), name, antialias=False
                )
                assert np.array_equal(found.permute(1, 2, 0).numpy(), wanted), (channels, name)


def planes(
    count: int, dtype: torch.dtype = torch.uint8, batch: tuple[int, ...] = (), seed: int = 0
) -> Tensor:
    """Make images whose channels differ in their mean, with smooth shapes."""
    generator = torch.Generator().manual_seed(seed)
    small = torch.rand((*batch, count, 7, 9), generator=generator, dtype=torch.float64)
    small = small * torch.linspace(0.3, 1, count, dtype=torch.float64)[:, None, None]
    image = small.repeat_interleave(6, -2).repeat_interleave(6, -1)
    return (image * 255).to(torch.uint8) if dtype == torch.uint8 else image.to(dtype)


def contrast_of(image: np.ndarray, factor: float) -> np.ndarray:
    """Blend with the mean of all values of an image ``(C, H, W)``, in float64; PIL rounds it, and truncates."""
    x = image.astype(np.float64)
    mean = x.mean()
    if image.dtype != np.uint8:
        return (mean + factor * (x - mean)).clip(0, 1)
    level = np.float32(np.floor(mean + 0.5))
    return (
        np.trunc(level + np.float32(factor) * (image.astype(np.float32) - level))
        .clip(0, 255)
        .astype(np.uint8)
    )


#: The functionals of torchvision that refuse some numbers of channels: arguments, the numbers that they take, and why.
FUNCTIONALS: dict[str, tuple[tuple[Any, ...], tuple[int, ...], str]] = {
    "adjust_saturation": ((1.3,), (1, 3), SATURATION),
    "adjust_hue": ((0.2,), (1, 3), HUE),
    "rgb_to_grayscale": ((), (1, 3), GRAY),
    "jpeg": ((50,), (1, 3), JPEG),
}


def refusal(name: str, counts: Sequence[int], reason: str, got: int) -> str:
    return f"{name}: image must have {' or '.join(map(str, counts))} channels, because {reason}, got {got}"


def test_refusals_of_functionals() -> None:
    """Those of all others are their operators', and of the transforms that call them."""
    for (name, (args, counts, reason)), count in product(FUNCTIONALS.items(), COUNTS):
        x, function, words = planes(count), getattr(F, name), refusal(name, counts, reason, count)
        for image in (x, theirs.functional.to_image(x)):
            if count in counts:
                assert type(function(image, *args)) is type(image)
            else:
                check_raises(lambda i=image: function(i, *args), ValueError, words)
    message = "grayscale_to_rgb: image must have 1 channel or at least 3, got 2"
    check_raises(lambda: F.grayscale_to_rgb(planes(2)), ValueError, message)
    # The argument is wrong, and not the channels, of which torchvision's own error would be.
    with pytest.raises(ValueError, match="adjust_brightness: brightness_factor must be"):
        F.adjust_brightness(planes(5), -1.0)
    x = planes(5)
    check_compiled_raises(lambda i: F.adjust_hue(i, 0.2), refusal("adjust_hue", (1, 3), HUE, 5), x)
    check_compiled_raises(F.rgb_to_grayscale, refusal("rgb_to_grayscale", (1, 3), GRAY, 5), x)


#: The transforms that refuse some numbers of channels: those that they take, and the reason.
REFUSING: dict[str, tuple[tuple[int, ...], str]] = {
    "ColorJitter": ((1, 3), BOTH),
    "ColorJitter-hue": ((1, 3), HUE),
    "RandomPhotometricDistort": ((1, 3), BOTH),
    "Grayscale": ((1, 3), GRAY),
    "RandomGrayscale": ((1, 3), GRAY),
    "JPEG": ((1, 3), JPEG),
    "RandomCLAHE": ((1, 3), LAB),
    "RandomBilateral": ((1, 3), "cv2.bilateralFilter takes no others"),
    "RandomCompression": ((1, 3), JPEG),
    "RandomCompression-webp": ((3,), WEBP),
    "RandomTemperature": ((3,), "light has a red, a green and a blue"),
    "RandomISONoise": ((3,), HLS),
    "RandomRain": ((3,), "rain is drawn in RGB colors"),
    "RandomSnow": ((3,), HLS),
    "RandomSunFlare": ((3,), "flares are drawn in RGB colors"),
    "RandomRGBShift": ((3,), "it changes red, green and blue"),
    "RandomHSV": ((3,), "HSV is a space of RGB colors"),
    "Corruption": ((3,), "ImageNet-C's corruptions are those of RGB images"),
    **dict.fromkeys(("HistogramMatching", "FDA", "PixMix"), ((3,), "the references have as many")),
}


def words_of(case: Any, count: int) -> str:
    """Return the error of a transform for a number of channels; "" if it takes them."""
    if case.name == "RandomChannelDropout" and count <= 2:
        return f"RandomChannelDropout: image must have more than 2 channels, got {count}"
    if str(case) == "GridDropout-fixed" and count != 3:
        return f"GridDropout: fill must have 1 value or {count}, one for each channel, got 3"
    counts, reason = REFUSING.get(str(case), REFUSING.get(case.name, (COUNTS, "")))
    name = "rgb_to_grayscale" if case.name == "Grayscale" else case.name
    return "" if count in counts else refusal(name, counts, reason, count)


class _Channels:
    """torchvision's policies, whose steps change each channel alone; contrast is around the mean of all values."""

    def _apply_image_or_video_transform(
        self, image: Tensor, step: str, magnitude: float, **how: Any
    ) -> Tensor:
        if step == "Color":
            return image
        if step == "Contrast":
            each = image.flatten(0, -4) if image.ndim > 3 else image[None]
            return torch.from_numpy(np.stack([contrast_of(x.numpy(), 1 + magnitude) for x in each])).reshape(
                image.shape
            )
        parts = [
            super(_Channels, self)._apply_image_or_video_transform(part, step, magnitude, **how)  # type: ignore[misc]
            for part in image.split(1, -3)
        ]
        return torch.cat(parts, -3)


POLICIES = ("RandAugment", "TrivialAugmentWide", "AutoAugment", "AugMix")


@pytest.mark.parametrize("name", POLICIES)
def test_policies(name: str) -> None:
    """A policy draws what torchvision's draws; on images without RGB colors, Color changes nothing."""
    own, plain = getattr(ours, name), type(name, (_Channels, getattr(theirs, name)), {})
    changed = 0
    for count in (2, 4, 5, 13):
        for seed in range(8):
            x = planes(count, seed=seed)
            found, wanted = seeded(seed, own(), x), seeded(seed, plain(), x)
            apart = (found.int() - wanted.int()).abs()
            # torchvision truncates results that PIL rounds, and a chain of steps makes more of it.
            assert (apart > 1).double().mean() <= 0.03, f"{count} channels, seed {seed}"
            changed += not torch.equal(found, x)
            floats = seeded(seed, own(), x / 255)
            assert floats.shape == x.shape and floats.dtype == torch.float32
    assert changed > 20


def test_jitter() -> None:
    """Brightness and contrast alone need no RGB colors: NumPy's formulas, in the order that torchvision draws."""
    x = planes(5, batch=(6,))
    alone, each, reference = (
        ours.ColorJitter(0.4, 0.4),
        ours.ColorJitter(0.4, 0.4, per_sample=True),
        theirs.ColorJitter(0.4, 0.4),
    )
    torch.manual_seed(5)
    wanted = torch.stack([alone(image) for image in x])
    assert torch.equal(seeded(5, each, PackedImages.of(list(x))).unpack()[2], wanted[2])
    torch.manual_seed(5)
    for image, found in zip(x, wanted, strict=True):
        params = reference.make_params([])
        out = image.numpy()
        for step in params["fn_idx"].tolist():
            if step == 0:
                out = np.trunc(out * np.float32(params["brightness_factor"])).clip(0, 255).astype(np.uint8)
            elif step == 1:
                out = contrast_of(out, params["contrast_factor"])
        assert torch.equal(found, torch.from_numpy(out))


@nightly
def test_five_channels_in_a_graph() -> None:
    calls = {name: getattr(ours, name)(per_sample=True) for name in POLICIES}
    calls["ColorJitter"] = ours.ColorJitter(0.4, 0.4, per_sample=True)
    x = planes(5, batch=(6,))
    graph, _ = compile_together(calls)
    found, wanted = seeded(3, graph, x), seeded(3, together(calls), x)
    assert all(torch.equal(found[name], value) for name, value in wanted.items())


def test_every_refusal_is_that_of_a_case() -> None:
    """Which tests/test_transforms_calls.py calls with every number of channels."""
    assert set(REFUSING) <= {name for case in (*CASES, *ROWS) for name in (str(case), case.name)}


@pytest.mark.parametrize("name", ["ColorJitter", "RandomGrayscale", "RandomHSV"])
def test_refusals_in_every_mode(name: str) -> None:
    case, x = next(case for case in (*CASES, *ROWS) if case.name == name), planes(5, batch=(2,))
    words, transform, each = words_of(case, 5), case.make(), case.make(per_sample=True)
    before = torch.get_rng_state()
    for call in (transform, each):
        check_compiled_raises(call, words, x, backend="aot_eager")
    given = [theirs.functional.to_image(x), *([PackedImages.of(list(x))] if each._takes_batches else [])]
    for images in given:
        check_raises(lambda images=images: each(images), ValueError, words)
    assert torch.equal(before, torch.get_rng_state())
    check_raises(lambda: ours.Compose([each, ours.RandomInvert()])(x), ValueError, words)
    if name == "RandomGrayscale":  # torchvision leaves videos as they are
        assert torch.equal(each(tv_tensors.Video(x)), x)
