"""Cases for every transform that torchvision does not have: how it is made, and what it is compared with.

A reference gets the image as NumPy's (H, W, C), the transform, and the parameters by name. albumentations'
references are its own functions, called with the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from unittest.mock import patch

import cv2
import numpy as np
import PIL.Image
import PIL.ImageEnhance
import PIL.ImageFilter
import PIL.ImageOps
import torch
from scipy.interpolate import RBFInterpolator
from skimage.exposure import match_histograms
from torchvision.transforms import v2

from imgops import transforms as ours
from imgops.transforms._core.probabilistic import from_seed

Frame = np.ndarray
Reference = Callable[..., Frame]


@dataclass(frozen=True)
class Row:
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    reference: Reference | None = None
    #: The call that computes the reference, for the README.
    of: str = ""
    #: The largest difference on uint8, in levels.
    levels: int = 0
    #: The share of the pixels that may differ by more.
    share: float = 0.0
    #: Whether a gradient to the image is to be checked by finite differences.
    gradient: bool = True
    #: Whether masks, boxes and keypoints move with the image.
    moves: bool = False
    #: Whether it samples parameters, so that it can also do so for each image of a batch.
    per_sample: bool = True
    id: str = ""

    #: As of a Case: they need no boxes, are no policies, and take both dtypes.
    boxes = policy = False
    dtypes = (torch.uint8, torch.float32)

    def make(self, **more: Any) -> Any:
        return getattr(ours, self.name)(**{**self.options, **more})

    def applied(self, **more: Any) -> Any:
        """Return the transform, which is always applied."""
        return self.make(p=1.0, **more) if self.per_sample else self.make(**more)

    @property
    def each(self) -> bool:
        """Whether it takes a batch with draws for each sample."""
        return self.per_sample

    @property
    def draws(self) -> bool:
        return self.per_sample

    @property
    def size(self) -> tuple[int, int]:
        """The size of an image that can also go into a batch and a graph."""
        return (40, 40) if self.name in ("RandomRotate90", "RandomTranspose") else (40, 52)

    def __str__(self) -> str:
        return self.name + (f"-{self.id}" if self.id else "")


def _functional(module: str) -> Any:
    import importlib

    return importlib.import_module(f"albumentations.augmentations.{module}.functional")


class Drawn:
    """A stand-in for a random generator that returns numbers drawn before."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def uniform(self, low: float, high: float) -> float:
        return self.values["uniform"].pop(0)

    def normal(self, loc: float, scale: float, size: Any) -> Frame:
        return loc + scale * self.values["normal"].reshape(size)

    def poisson(self, rate: Any, size: Any) -> Frame:
        return self.values["poisson"].reshape(size)


# -- filters -------------------------------------------------------------------------------------------


def _motion(
    frame: Frame, t: Any, kernel_size: int, angle: float, balance: float, shift_x: float, shift_y: float
) -> Frame:
    half = kernel_size // 2 / 2
    drawn = Drawn(uniform=[shift_x / half, shift_y / half])
    kernel = _functional("blur").create_motion_kernel(kernel_size, angle, balance, True, drawn)
    return _functional("pixel").convolve(frame, kernel.astype(np.float32) / np.sum(kernel))


def _unsharp(frame: Frame, t: Any, radius: float, percent: float) -> Frame:
    mask = PIL.ImageFilter.UnsharpMask(radius, int(percent), int(t.threshold))
    return np.asarray(PIL.Image.fromarray(frame).filter(mask))


def _morphology(frame: Frame, t: Any, kernel_size: int) -> Frame:
    element = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (kernel_size, kernel_size))
    if t.operation in ("erode", "dilate"):
        names = {"erode": "erosion", "dilate": "dilation"}
        return _functional("geometric").morphology(frame, element, names[t.operation])
    return cv2.morphologyEx(frame, cv2.MORPH_OPEN, element)


_CV = {"area": cv2.INTER_AREA, "nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR}


def _down_and_up(frame: Frame, t: Any, factor: float) -> Frame:
    height, width = frame.shape[:2]
    small = max(round(width * factor), 1), max(round(height * factor), 1)
    return cv2.resize(
        cv2.resize(frame, small, interpolation=_CV[t.down]), (width, height), interpolation=_CV[t.up]
    )


def _compressed(frame: Frame, t: Any, quality: float) -> Frame:
    file = BytesIO()
    PIL.Image.fromarray(frame).save(file, t.format, quality=int(quality))
    return np.asarray(PIL.Image.open(file).convert("RGB"))


# -- tones and noise -----------------------------------------------------------------------------------


def _gamma(frame: Frame, t: Any, gamma: float) -> Frame:
    return np.asarray(v2.functional.adjust_gamma(PIL.Image.fromarray(frame), gamma))


def _curve(frame: Frame, t: Any, curves: list[float]) -> Frame:
    low, high = (np.array(c) for c in (curves[::2], curves[1::2]))
    if len(low) == 1:
        low, high = low.item(), high.item()
    return _functional("pixel").move_tone_curve(frame, low, high)


def _noise(draw: Any, seed: float, channels: int, frame: Frame) -> Frame:
    return draw(channels, *frame.shape[:2], generator=from_seed(seed)).permute(1, 2, 0).numpy()


def _salt(frame: Frame, t: Any, amount: float, salt: float, seed: float) -> Frame:
    noise = _noise(torch.rand, seed, 1, frame)[..., 0]
    low, high = np.float32(amount * (1 - salt)), np.float32(1 - amount * salt)
    return _functional("pixel").apply_salt_and_pepper(frame, noise >= high, noise < low)


def _shot(frame: Frame, t: Any, scale: float, seed: float) -> Frame:
    x, noise = frame / 255, _noise(torch.randn, seed, 3, frame)
    return np.rint(np.clip(x + np.sqrt(scale * x) * noise, 0, 1) * 255).astype(np.uint8)


def _iso(frame: Frame, t: Any, color_shift: float, intensity: float, seed: float) -> Frame:
    spread = cv2.meanStdDev(cv2.cvtColor(frame.astype(np.float32) / 255, cv2.COLOR_RGB2HLS))[1][1].item()
    rates = torch.full((1, *frame.shape[:2]), spread * intensity)
    counts = torch.poisson(rates, generator=from_seed(seed + 1)).numpy()
    drawn = Drawn(normal=_noise(torch.randn, seed, 1, frame), poisson=counts)
    convert = cv2.cvtColor

    def of_any_hue(image: Frame, code: int) -> Frame:
        """Convert a hue below 0 as the angle that it is; OpenCV's vectorized code takes it for another color."""
        if code == cv2.COLOR_HLS2RGB:
            image[..., 0] %= 360
        return convert(image, code)

    with patch.object(cv2, "cvtColor", of_any_hue):
        return _functional("pixel").iso_noise(frame, color_shift, intensity, drawn)


def _pixels(frame: Frame, t: Any, seed: float) -> Frame:
    shape = (3, *frame.shape[:2]) if t.per_channel else frame.shape[:2]
    gone = (torch.rand(shape, generator=from_seed(seed)) < t.amount).numpy()
    gone = gone.transpose(1, 2, 0) if t.per_channel else gone[..., None]
    return _functional("pixel").pixel_dropout(frame, gone, np.full(frame.shape, t.fill, frame.dtype))


def _cutout(frame: Frame, t: Any, **params: Any) -> Frame:
    return _functional("dropout").cutout(frame, t._boxes_of(**params), t.fill, np.random.default_rng(0))


def _hsv_scaled(frame: Frame, amounts: list[float]) -> Frame:
    """Compute Ultralytics' RandomHSV: a lookup table for each channel."""
    hue, saturation, value = cv2.split(cv2.cvtColor(frame, cv2.COLOR_RGB2HSV))
    x = np.arange(0, 256, dtype=np.float64)
    tables = [
        ((x * amounts[0]) % 180).astype(np.uint8),
        *(np.clip(x * a, 0, 255).astype(np.uint8) for a in amounts[1:]),
    ]
    tables[1][0] = 0
    planes = [cv2.LUT(p, t) for p, t in zip((hue, saturation, value), tables)]
    return cv2.cvtColor(cv2.merge(planes), cv2.COLOR_HSV2RGB)


def _rgb_shift(frame: Frame, t: Any, shifts: list[float]) -> Frame:
    return _functional("pixel").add_noise(frame, np.array(shifts, dtype=np.float32))


def _linear(frame: Frame, t: Any, brightness: float, contrast: float) -> Frame:
    import albucore

    return albucore.multiply_add(frame, 1 + contrast, brightness * 255, inplace=False)


def _factors(frame: Frame, t: Any, factors: list[float]) -> Frame:
    import albucore

    return albucore.multiply(frame, np.array(factors if t.per_channel else factors * 3, dtype=np.float32))


def _gaussian(frame: Frame, t: Any, sigma: float, mean: float, seed: float) -> Frame:
    noise = _noise(torch.randn, seed, 3 if t.per_channel else 1, frame)
    added = noise * np.float32(sigma) + np.float32(mean)
    return _functional("pixel").add_noise(frame, np.broadcast_to(added * np.float32(255), frame.shape).copy())


def _by_matrix(name: str, kind: str) -> Reference:
    """Return the convolution with the matrix that a class of albumentations makes of two numbers."""

    def convolved(frame: Frame, t: Any, **numbers: float) -> Frame:
        import albumentations as A

        make = getattr(getattr(A, name), f"_{name}__generate_{kind}_matrix")
        matrix = make(*(np.array(value) for value in numbers.values()))
        return _functional("pixel").convolve(frame, matrix.astype(np.float32))

    return convolved


# -- weather -------------------------------------------------------------------------------------------


def _shadow(frame: Frame, t: Any, count: float, darkness: list[float], places: list[float]) -> Frame:
    polygons = t._polygons(*frame.shape[:2], count, places)
    return _functional("pixel").add_shadow(frame, polygons, np.array(darkness))


def _fog(frame: Frame, t: Any, intensity: float, seed: float) -> Frame:
    centers, radii = t._patches(*frame.shape[:2], intensity, seed)
    places = [tuple(c) for c in centers.tolist()]
    return _functional("pixel").add_fog(frame, intensity, t.alpha, places, radii.tolist())


def _rain(frame: Frame, t: Any, slant: float, seed: float) -> Frame:
    drops, length = t._drops(*frame.shape[:2], seed)
    return _functional("pixel").add_rain(
        frame, slant, length, t.width, t.color, t.kernel_size, t.brightness, drops
    )


def _sun(frame: Frame, t: Any, seed: float) -> Frame:
    center, circles = t._flare(*frame.shape[:2], seed)
    draw = getattr(_functional("pixel"), f"add_sun_flare_{t.method}")
    return draw(frame, center, t.radius, t.color, circles)


# -- distortions ---------------------------------------------------------------------------------------


def _remapped(frame: Frame, map_x: Frame, map_y: Frame) -> Frame:
    return _functional("geometric").remap(frame, map_x, map_y, cv2.INTER_LINEAR, cv2.BORDER_CONSTANT, 0)


def _grid(frame: Frame, t: Any, steps_x: list[float], steps_y: list[float]) -> Frame:
    geometric, size = _functional("geometric"), frame.shape[:2]
    if t.normalize:
        steps = geometric.normalize_grid_distortion_steps(size, t.num_steps, steps_x, steps_y)
        steps_x, steps_y = steps["steps_x"], steps["steps_y"]
    return _remapped(frame, *geometric.generate_grid(size, steps_x, steps_y, t.num_steps))


def _lens(frame: Frame, t: Any, k: float) -> Frame:
    height, width = frame.shape[:2]
    middle = (width - 1) / 2, (height - 1) / 2
    if t.method == "camera":
        camera = np.array([[width, 0, middle[0]], [0, height, middle[1]], [0, 0, 1]])
        how = (camera, np.array([k, k, 0, 0, 0]), None, camera, (width, height), cv2.CV_32FC1)
        return _remapped(frame, *cv2.initUndistortRectifyMap(*how))
    y, x = np.ogrid[:height, :width]
    x, y = x - middle[0], y - middle[1]
    factor = 1 + k * (x * x + y * y) / (width * width / 4 + height * height / 4)
    maps = ((v * factor + m).astype(np.float32) for v, m in zip((x, y), middle, strict=True))
    return _remapped(frame, *maps)


def _elastic(frame: Frame, t: Any, alpha: float, sigma: float, seed: float) -> Frame:
    noise = _noise(torch.rand, seed, 2, frame) * 2 - 1
    side = int(8 * sigma + 1) | 1
    x, y = (cv2.GaussianBlur(n, (side, side), sigma) * np.float32(alpha) for n in np.moveaxis(noise, -1, 0))
    height, width = frame.shape[:2]
    return _remapped(
        frame, x + np.arange(width, dtype=np.float32), y + np.arange(height, dtype=np.float32)[:, None]
    )


def _spline(frame: Frame, t: Any, moves: list[float]) -> Frame:
    height, width = frame.shape[:2]
    at = np.linspace(0, 1, t.num_control_points)
    targets = np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2)
    points = (targets + np.reshape(moves, (-1, 2))) * [width, height]
    spline = RBFInterpolator(targets * [width, height], points, kernel="thin_plate_spline")
    pixels = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).reshape(-1, 2)
    found = spline(pixels).reshape(height, width, 2).astype(np.float32)
    return _remapped(frame, found[..., 0], found[..., 1])


# -- other images ----------------------------------------------------------------------------------------


def _shapes(seed: int, height: int, width: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (6, 7, 3)).astype(np.uint8)
    frame = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return torch.from_numpy(frame).permute(2, 0, 1)


REFERENCES = [_shapes(1, 33, 47), _shapes(2, 40, 52)]


def _drawn_reference(index: int, frame: Frame) -> Frame:
    image = REFERENCES[int(index)].permute(1, 2, 0).numpy()
    return cv2.resize(np.ascontiguousarray(image), (frame.shape[1], frame.shape[0]))


def _matched(frame: Frame, t: Any, index: int, alpha: float) -> Frame:
    matched = match_histograms(frame, _drawn_reference(index, frame), channel_axis=-1)
    return cv2.addWeighted(matched, alpha, frame, 1 - alpha, 0)


def _fourier(frame: Frame, t: Any, index: int, beta: float) -> Frame:
    adapt = __import__("albumentations.augmentations.mixing.domain_adaptation_functional", fromlist=["x"])
    return adapt.fourier_domain_adaptation(frame, _drawn_reference(index, frame), beta)


def _pil_operation(image: PIL.Image.Image, name: str, m: float) -> PIL.Image.Image:
    """Change an image by PIL as PixMix's own code does."""
    if name in ("color", "contrast", "brightness", "sharpness"):
        return getattr(PIL.ImageEnhance, name.capitalize())(image).enhance(m)
    if name in ("autocontrast", "equalize"):
        return getattr(PIL.ImageOps, name)(image)
    if name in ("posterize", "solarize"):
        return getattr(PIL.ImageOps, name)(image, m)
    if name == "rotate":
        return image.rotate(m, resample=PIL.Image.Resampling.BILINEAR)
    matrix = {
        "shear_x": (1, m, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, m, 1, 0),
        "translate_x": (1, 0, m, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, m),
    }[name]
    how = PIL.Image.Transform.AFFINE, matrix
    return image.transform(image.size, *how, resample=PIL.Image.Resampling.BILINEAR)


def _pixmixed(frame: Frame, t: Any, index: int, seed: float) -> Frame:
    """Mix by the formulas of PixMix's own code, in NumPy, with the steps that the transform draws."""
    first, mixtures = t._recipe(from_seed(seed), *frame.shape[:2])
    image = PIL.Image.fromarray(frame)
    picture = _drawn_reference(index, frame)

    def real(change: Any, other: Frame) -> Frame:
        return (other if change is None else np.asarray(_pil_operation(image, *change))).astype(
            np.float32
        ) / 255

    mixed = real(first, frame)
    for name, a, b, change in mixtures:
        other = real(change, picture)
        if name == "add":
            mixed = (a * (mixed * 2 - 1) + b * (other * 2 - 1) + 1) / 2
        else:
            mixed = ((mixed * 2) ** a) * ((other * 2).clip(1e-37) ** b) / 2
        mixed = mixed.clip(0, 1)
    return np.rint(mixed * 255).astype(np.uint8)


# -- sizes -------------------------------------------------------------------------------------------------


def _by_albumentations(name: str) -> Reference:
    def resized(frame: Frame, t: Any) -> Frame:
        import albumentations as A

        return getattr(A, name)(max_size=t.size)(image=frame)["image"]

    return resized


def _letter(frame: Frame, t: Any) -> Frame:
    import albumentations as A

    steps = [A.LongestMaxSize(max_size=t.size[0]), A.PadIfNeeded(*t.size, fill=t.fill)]
    return A.Compose(steps)(image=frame)["image"]


def _padded(frame: Frame, t: Any) -> Frame:
    import albumentations as A

    mode = cv2.BORDER_CONSTANT if t.padding_mode == "constant" else cv2.BORDER_REPLICATE
    (high, wide), fill = t.size, t.fill
    how = {"position": t.anchor, "border_mode": mode, "fill": fill}
    out = A.PadIfNeeded(high, wide, **how)(image=frame)["image"]
    if t.divisor is None:
        return out
    return A.PadIfNeeded(None, None, *t.divisor, **how)(image=out)["image"] if t.anchor == "center" else out


PLAIN = {"antialias": False}
#: What rows of transforms that fit images into a size have in common.
FIT: dict[str, Any] = {"moves": True, "per_sample": False}


def _variants(
    name: str, reference: Reference, of: str, ways: dict[str, dict[str, Any]], **facts: Any
) -> Iterator[Row]:
    """Yield the rows of a transform with different arguments, by their ids."""
    for id, options in ways.items():
        yield Row(name, options, reference, of, id=id, **facts)


ROWS: tuple[Row, ...] = (
    Row(
        "RandomCLAHE",
        reference=lambda f, t, clip_limit: _functional("pixel").clahe(f, clip_limit, t.tiles),
        of="albumentations' CLAHE",
    ),
    Row(
        "RandomMedianBlur",
        reference=lambda f, t, kernel_size: _functional("blur").median_blur(f, int(kernel_size)),
        of="albumentations' MedianBlur",
    ),
    Row(
        "RandomBoxBlur",
        reference=lambda f, t, kernel_size: _functional("blur").box_blur(f, int(kernel_size)),
        of="albumentations' Blur",
    ),
    Row("RandomMotionBlur", {"kernel_size": (3, 11)}, _motion, "albumentations' MotionBlur"),
    Row(
        "RandomBilateral",
        reference=lambda f, t, kernel_size, sigma_color, sigma_space: cv2.bilateralFilter(
            f, int(kernel_size), sigma_color, sigma_space
        ),
        of="`cv2.bilateralFilter`",
        gradient=False,  # its weights of color differences have kinks
    ),
    Row("RandomUnsharpMask", {}, _unsharp, "`PIL.ImageFilter.UnsharpMask`", gradient=False),
    Row("RandomMorphology", {}, _morphology, "albumentations' Morphological"),
    Row(
        "RandomMorphology",
        {"operation": "open", "kernel_size": (3, 5)},
        _morphology,
        "`cv2.morphologyEx`",
        id="open",
    ),
    Row(
        "RandomDownscale",
        {"factor": (0.25, 0.9), "down": "nearest", "up": "nearest"},
        _down_and_up,
        "`cv2.resize`, twice",
    ),
    Row(
        "RandomDownscale",
        {},
        _down_and_up,
        "`cv2.resize`, twice",
        levels=1,
        id="area",
    ),
    *_variants(
        "RandomCompression",
        _compressed,
        "Pillow's files",
        {"": {}, "webp": {"format": "webp", "quality": (20, 90)}},
        gradient=False,
    ),
    Row("RandomGamma", {"gamma": (0.5, 2.0)}, _gamma, "torchvision's `adjust_gamma` of a PIL image"),
    *_variants(
        "RandomToneCurve",
        _curve,
        "albumentations' RandomToneCurve",
        {"": {"scale": 0.2}, "channels": {"scale": 0.2, "per_channel": True}},
    ),
    *_variants(
        "RandomTemperature",
        lambda f, t, temperature: _functional("pixel").planckian_jitter(f, int(temperature), t.method),
        "albumentations' PlanckianJitter",
        {"": {}, "cied": {"method": "cied"}},
    ),
    Row(
        "RandomChannelDropout",
        {"num_channels": (1, 2), "fill": 9},
        lambda f, t, dropped: _functional("dropout").channel_dropout(f, np.flatnonzero(dropped), t.fill),
        "albumentations' ChannelDropout",
    ),
    Row("RandomSaltAndPepper", {"amount": (0.05, 0.3)}, _salt, "albumentations' SaltAndPepper"),
    Row("RandomShotNoise", {}, _shot, "NumPy's formula"),
    Row("RandomISONoise", {}, _iso, "albumentations' ISONoise", levels=1, gradient=False),
    *_variants(
        "PixelDropout",
        _pixels,
        "albumentations' PixelDropout",
        {"": {"amount": 0.2, "fill": 7}, "channels": {"amount": 0.2, "per_channel": True}},
    ),
    Row(
        "CoarseDropout",
        {"num_holes": (1, 5), "fill": 3},
        _cutout,
        "albumentations' CoarseDropout",
        moves=True,
    ),
    Row("CoarseDropout", {"fill": "random"}, id="random", gradient=False),
    Row("GridDropout", {"cells": (4, 3)}, _cutout, "albumentations' GridDropout", moves=True),
    Row(
        "GridDropout",
        {"ratio": 0.3, "random_offset": False, "fill": (1, 2, 3)},
        _cutout,
        "albumentations' GridDropout",
        id="fixed",
    ),
    Row(
        "RandomShadow",
        {"num_shadows": (1, 3), "region": (0.0, 0.2, 1.0, 1.0)},
        _shadow,
        "albumentations' RandomShadow",
    ),
    Row("RandomFog", {}, _fog, "albumentations' RandomFog", levels=2),
    *_variants(
        "RandomRain",
        _rain,
        "albumentations' RandomRain",
        {
            "": {"method": "heavy"},
            "sharp": {"kernel_size": 1, "width": 2, "color": (10, 200, 90), "brightness": 1.0},
        },
    ),
    Row(
        "RandomSnow",
        {"snow_point": (0.1, 0.9)},
        lambda f, t, snow_point: _functional("pixel").add_snow_bleach(f, snow_point, t.brightness),
        "albumentations' RandomSnow",
    ),
    Row("RandomSunFlare", {"radius": 30}, _sun, "albumentations' RandomSunFlare", levels=3),
    Row(
        "RandomSunFlare",
        {"radius": 20, "method": "physics_based"},
        _sun,
        "albumentations' RandomSunFlare",
        levels=1,
        id="physics",
    ),
    Row(
        "RandomElastic",
        {"alpha": (5, 20), "sigma": (3, 4)},
        _elastic,
        "`cv2.GaussianBlur` and `cv2.remap`",
        moves=True,
    ),
    *_variants(
        "RandomGridDistortion",
        _grid,
        "albumentations' GridDistortion",
        {"": {}, "free": {"normalize": False, "num_steps": 3}},
        levels=1,
        moves=True,
    ),
    Row("RandomOpticalDistortion", {}, _lens, "`cv2.initUndistortRectifyMap` and `cv2.remap`", moves=True),
    Row(
        "RandomOpticalDistortion",
        {"method": "fisheye", "distort": (-0.3, 0.5)},
        _lens,
        "albumentations' fisheye formula and `cv2.remap`",
        levels=1,
        moves=True,
        id="fisheye",
    ),
    Row(
        "RandomThinPlateSpline",
        {},
        _spline,
        "`scipy.interpolate.RBFInterpolator` and `cv2.remap`",
        moves=True,
    ),
    Row(
        "HistogramMatching",
        {"references": REFERENCES},
        _matched,
        "`skimage.exposure.match_histograms` and `cv2.addWeighted`",
        gradient=False,
    ),
    *_variants(
        "PixMix",
        _pixmixed,
        "PIL's operations and PixMix's formulas",
        {
            "": {"references": REFERENCES},
            "all": {"references": REFERENCES, "k": 3, "beta": 4.0, "severity": 10.0, "all_ops": True},
        },
        levels=2,
        share=0.06,  # OpenCV's warps read zeros beside the border, where PIL's read the border
        gradient=False,
    ),
    Row("RandomBrightnessContrast", {}, _linear, "albumentations' RandomBrightnessContrast"),
    Row("RandomRGBShift", {}, _rgb_shift, "albumentations' RGBShift"),
    Row(
        "RandomHSV",
        {},
        lambda f, t, amounts: _functional("pixel").shift_hsv(f, amounts[0] / 2, *amounts[1:]),
        "albumentations' HueSaturationValue",
    ),
    Row(
        "RandomHSV",
        {"hue": (0.985, 1.015), "saturation": (0.3, 1.7), "value": (0.6, 1.4), "method": "scale"},
        lambda f, t, amounts: _hsv_scaled(f, amounts),
        "`cv2.cvtColor` and `cv2.LUT`",
        id="scale",
    ),
    *_variants(
        "RandomMultiplicativeNoise",
        _factors,
        "albumentations' MultiplicativeNoise",
        {"": {}, "channels": {"per_channel": True}},
    ),
    *_variants(
        "RandomGaussianNoise",
        _gaussian,
        "albumentations' GaussNoise",
        {"": {}, "gray": {"mean": (-0.1, 0.1), "per_channel": False}},
    ),
    Row("RandomSharpen", {}, _by_matrix("Sharpen", "sharpening"), "albumentations' Sharpen", levels=1),
    Row("RandomEmboss", {}, _by_matrix("Emboss", "emboss"), "albumentations' Emboss", levels=1),
    Row("RandomRotate90", {}, lambda f, t, turns: np.rot90(f, int(turns)), "`numpy.rot90`", moves=True),
    Row("RandomTranspose", {}, lambda f, t: f.transpose(1, 0, 2), "`numpy.transpose`", moves=True),
    Row("FDA", {"references": REFERENCES}, _fourier, "albumentations' FDA", levels=1),
    *(
        Row(name, {"size": 31, **PLAIN}, _by_albumentations(name), f"albumentations' {name}", **FIT)
        for name in ("LongestMaxSize", "SmallestMaxSize")
    ),
    *_variants(
        "PadIfNeeded",
        _padded,
        "albumentations' PadIfNeeded",
        {
            "": {"size": (50, 60), "divisor": 16, "fill": 7},
            "edge": {"size": 64, "anchor": "top_left", "padding_mode": "edge"},
        },
        **FIT,
    ),
    Row(
        "LetterBox",
        {"size": 64, "fill": 114, **PLAIN},
        _letter,
        "`cv2.resize` and `cv2.copyMakeBorder`",
        **FIT,
    ),
    # tests/test_corruptions.py compares all of them with results of imagecorruptions.
    *(
        Row(
            "Corruption",
            {"name": name, "severity": severity, "p": 0.5},
            of="imagecorruptions 1.1.2",
            levels=1,
            gradient=name not in ("shot_noise", "glass_blur"),
            id="" if name == "gaussian_noise" else name,
        )
        for name, severity in (
            ("gaussian_noise", 1),
            ("shot_noise", 3),
            ("glass_blur", 2),
            ("motion_blur", 1),
            ("snow", 3),
            ("frost", 4),
            ("brightness", 2),
            ("spatter", 4),
        )
    ),
)

#: The arguments that a transform must be given.
REQUIRED: dict[str, dict[str, Any]] = {
    "FDA": {"references": REFERENCES},
    "HistogramMatching": {"references": REFERENCES},
    "PixMix": {"references": REFERENCES},
    "Corruption": {"name": "fog"},
}

#: The transforms that join several samples; tests/test_mosaic.py has their references.
JOINING = ("CopyPaste", "Mosaic")
#: The transforms of boxes alone; tests/test_objects.py has their references.
OF_BOXES = ("BoxesFromMasks",)
