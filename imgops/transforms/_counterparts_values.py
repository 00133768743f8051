"""Counterparts of albumentations' transforms that change values."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from imgops.transforms import (
    _augment,
    _blurs,
    _color,
    _container,
    _domain,
    _dropout,
    _filters,
    _levels,
    _misc,
    _noise,
    _tones,
    _weather,
)
from imgops.transforms._counterparts import (
    NAMES,
    Arguments,
    Made,
    Unmapped,
    chance,
    choice,
    fill_of,
    of,
    one,
    only,
)


def _gaussian_blur(a: Arguments) -> Any:
    sigmas = a["sigma_limit"]
    largest = a["blur_limit"][1] or 2 * int(np.ceil(3.5 * sigmas[1])) + 1
    return chance(_color.GaussianBlur(largest | 1, (max(sigmas[0], 1e-3), max(sigmas[1], 1e-3))), a["p"])


def _downscale(a: Arguments) -> Any:
    pair = a["interpolation_pair"]
    down = of({0: "nearest", 1: "bilinear", 3: "area"}, pair, "downscale")
    up = of({k: NAMES[k] for k in (0, 1, 2)}, pair, "upscale")
    return _filters.RandomDownscale(a["scale_range"], down, up, a["p"])


def _holes(a: Arguments) -> dict[str, Any]:
    return {"fill": fill_of(a), "mask_fill": a["fill_mask"], "p": a["p"]}


def _coarse(a: Arguments) -> Any:
    sides = a["hole_height_range"], a["hole_width_range"]
    return _dropout.CoarseDropout(a["num_holes_range"], *sides, **_holes(a))


def _grid(a: Arguments) -> Any:
    only(a, unit_size_range=None)
    if not a["random_offset"]:
        only(a, shift_xy=(0, 0))
    cells = None if a["holes_number_xy"] is None else tuple(a["holes_number_xy"])[::-1]
    return _dropout.GridDropout(a["ratio"], cells, a["random_offset"], **_holes(a))


def _pixels(a: Arguments) -> Any:
    if not isinstance(a["drop_value"], (int, float)):
        raise Unmapped(f"drop_value={a['drop_value']}")
    fills = {"fill": a["drop_value"], "mask_fill": a["mask_drop_value"]}
    return _dropout.PixelDropout(a["dropout_prob"], a["per_channel"], p=a["p"], **fills)


def _rain(a: Arguments) -> Any:
    kind = "rain" if a["rain_type"] == "default" else a["rain_type"]
    more: dict[str, Any] = {
        "length": a["drop_length"],
        "width": a["drop_width"],
        "color": tuple(a["drop_color"]),
    }
    light = {"blur": a["blur_value"], "brightness": a["brightness_coefficient"], "p": a["p"]}
    return _weather.RandomRain(a["slant_range"], kind, **more, **light)


def _snow(a: Arguments) -> Any:
    only(a, method="bleach")
    return _weather.RandomSnow(a["snow_point_range"], a["brightness_coeff"], a["p"])


def _flare(a: Arguments) -> Any:
    places = {"region": a["flare_roi"], "radius": a["src_radius"], "color": tuple(a["src_color"])}
    circles = {"angle": a["angle_range"], "circles": a["num_flare_circles_range"], "method": a["method"]}
    return _weather.RandomSunFlare(**places, **circles, p=a["p"])


def _normalize(a: Arguments) -> Any:
    only(a, normalization="standard", max_pixel_value=255.0)
    if a["mean"] is None or a["std"] is None:
        raise Unmapped("mean=None")
    mean, std = ([x] if isinstance(x, (int, float)) else list(x) for x in (a["mean"], a["std"]))
    last = [_misc.ToDtype(torch.float32, scale=True), _misc.Normalize(mean, std)]
    return chance(_container.Compose(last), a["p"])


def _to_float(a: Arguments) -> Any:
    if a["max_value"] not in (None, 255, 255.0):
        raise Unmapped(f"max_value={a['max_value']}")
    return _misc.ToDtype(torch.float32, scale=True)


def _from_float(a: Arguments) -> Any:
    only(a, dtype="uint8")
    return _misc.ToDtype(torch.uint8, scale=True)


def _references(a: Arguments) -> list[torch.Tensor]:
    given = a.get("reference_images")
    if not given or not all(isinstance(x, np.ndarray) and x.ndim == 3 for x in given):
        raise Unmapped("references that are not arrays in reference_images")
    return [torch.from_numpy(np.ascontiguousarray(x)).permute(2, 0, 1) for x in given]


def _gray(a: Arguments) -> Any:
    only(a, method="weighted_average", num_output_channels=3)
    return _color.RandomGrayscale(a["p"])


def _posterize(a: Arguments) -> Any:
    if isinstance(a["num_bits"], list):
        raise Unmapped(f"num_bits={a['num_bits']}")
    low, high = a["num_bits"]
    return choice([_color.RandomPosterize(n, 1.0) for n in range(low, high + 1)], a["p"])


def _unsharp(a: Arguments) -> Any:
    low, high = a["sigma_limit"]
    radius = (low, high) if high > 0 else tuple(0.15 * n + 0.35 for n in a["blur_limit"])
    percent = tuple(100 * x for x in a["alpha"])
    return _filters.RandomUnsharpMask(radius, percent, a["threshold"], a["p"])


def _multiplied(a: Arguments) -> Any:
    only(a, elementwise=False)
    return _levels.RandomMultiplicativeNoise(a["multiplier"], a["per_channel"], a["p"])


def _gauss_noise(a: Arguments) -> Any:
    only(a, noise_scale_factor=1)
    return _noise.RandomGaussianNoise(a["std_range"], a["mean_range"], a["per_channel"], a["p"])


def _sharpened(a: Arguments) -> Any:
    only(a, method="kernel")
    return _filters.RandomSharpen(a["alpha"], a["lightness"], a["p"])


def _linear(a: Arguments) -> Any:
    only(a, brightness_by_max=True, ensure_safe_range=False)
    return _levels.RandomBrightnessContrast(a["brightness_limit"], a["contrast_limit"], a["p"])


def _planck(a: Arguments) -> Any:
    only(a, sampling_method="uniform")
    limits = a["temperature_limit"]
    return _tones.RandomTemperature(a["mode"], None if limits is None else tuple(limits), a["p"])


def _jitter(a: Arguments) -> Any:
    made = _color.ColorJitter(*(tuple(a[n]) for n in ("brightness", "contrast", "saturation", "hue")))
    return chance(made, a["p"])


#: Those with the same pixels for the same parameters, and the same distribution of these.
SAME: dict[str, Made] = {
    "Blur": lambda a: _blurs.RandomBoxBlur(a["blur_limit"], a["p"]),
    "CLAHE": lambda a: _filters.RandomCLAHE(a["clip_limit"], a["tile_grid_size"], a["p"]),
    "ChannelDropout": lambda a: _tones.RandomChannelDropout(a["channel_drop_range"], a["fill"], a["p"]),
    "ChannelShuffle": lambda a: chance(_color.RandomChannelPermutation(), a["p"]),
    "CoarseDropout": _coarse,
    "Emboss": lambda a: _filters.RandomEmboss(a["alpha"], a["strength"], a["p"]),
    "FromFloat": _from_float,
    "GaussNoise": _gauss_noise,
    "HistogramMatching": lambda a: _domain.HistogramMatching(_references(a), a["blend_ratio"], a["p"]),
    "HueSaturationValue": lambda a: _levels.RandomHSV(
        a["hue_shift_limit"], a["sat_shift_limit"], a["val_shift_limit"], p=a["p"]
    ),
    "ISONoise": lambda a: _noise.RandomISONoise(
        tuple(x / 360 for x in a["color_shift"]), a["intensity"], a["p"]
    ),
    "InvertImg": lambda a: _color.RandomInvert(a["p"]),
    "MedianBlur": lambda a: _blurs.RandomMedianBlur(a["blur_limit"], a["p"]),
    "MotionBlur": lambda a: _blurs.RandomMotionBlur(
        a["blur_limit"], a["angle_range"], a["direction_range"], a["allow_shifted"], a["p"]
    ),
    "MultiplicativeNoise": _multiplied,
    "NoOp": lambda a: _misc.Identity(),
    "Normalize": _normalize,
    "PixelDropout": _pixels,
    "PlanckianJitter": _planck,
    "Posterize": _posterize,
    "RGBShift": lambda a: _levels.RandomRGBShift(
        a["r_shift_limit"], a["g_shift_limit"], a["b_shift_limit"], a["p"]
    ),
    "RandomBrightnessContrast": _linear,
    "RandomFog": lambda a: _weather.RandomFog(a["fog_coef_range"], a["alpha_coef"], a["p"]),
    "RandomRain": _rain,
    "RandomShadow": lambda a: _weather.RandomShadow(
        a["shadow_roi"], a["num_shadows_limit"], a["shadow_dimension"], a["shadow_intensity_range"], a["p"]
    ),
    "RandomSnow": _snow,
    "RandomToneCurve": lambda a: _tones.RandomToneCurve(a["scale"], a["per_channel"], a["p"]),
    "SaltAndPepper": lambda a: _noise.RandomSaltAndPepper(a["amount"], a["salt_vs_pepper"], a["p"]),
    "Sharpen": _sharpened,
    "Solarize": lambda a: _color.RandomSolarize(255 * one(a["threshold_range"], "threshold_range"), a["p"]),
    "ToFloat": _to_float,
    "ToRGB": lambda a: chance(_color.RGB(), a["p"]),
    "ToTensorV2": lambda a: _misc.Identity(),
}

#: Those that come near, and what differs.
NEAR: dict[str, tuple[Made, str]] = {
    "AutoContrast": (lambda a: _color.RandomAutocontrast(a["p"]), "PIL's, without a cutoff"),
    "ColorJitter": (_jitter, "PIL's and torchvision's arithmetic"),
    "Downscale": (_downscale, "OpenCV is given sizes instead of a factor"),
    "Equalize": (lambda a: _color.RandomEqualize(a["p"]), "PIL's, each channel by itself"),
    "Erasing": (
        lambda a: _augment.RandomErasing(a["p"], a["scale"], a["ratio"], fill_of(a)),
        "torchvision's draws",
    ),
    "FDA": (lambda a: _domain.FDA(_references(a), a["beta_limit"], a["p"]), "one level"),
    "GaussianBlur": (_gaussian_blur, "OpenCV's kernel, of one size"),
    "GridDropout": (_grid, "cells have one size"),
    "ImageCompression": (
        lambda a: _filters.RandomCompression(a["quality_range"], a["compression_type"], a["p"]),
        "red is stored as red, not as blue",
    ),
    "Morphological": (
        lambda a: _filters.RandomMorphology(
            {"dilation": "dilate", "erosion": "erode"}[a["operation"]], a["scale"], p=a["p"]
        ),
        "a square element of a random side; boxes and masks stay",
    ),
    "RandomGamma": (
        lambda a: _tones.RandomGamma(tuple(x / 100 for x in a["gamma_limit"]), a["p"]),
        "one level",
    ),
    "RandomSunFlare": (_flare, "up to three levels"),
    "ShotNoise": (
        lambda a: _noise.RandomShotNoise(a["scale_range"], a["p"]),
        "a normal distribution of values, not Poisson's of intensities",
    ),
    "ToGray": (_gray, "PIL's luma, one level"),
    "UnsharpMask": (_unsharp, "PIL's"),
}
