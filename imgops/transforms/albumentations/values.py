"""Counterparts of albumentations' transforms that change values."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from imgops.transforms import containers, conversion, noise
from imgops.transforms.albumentations import pixel_transforms as _pixels
from imgops.transforms.albumentations.rules import (
    NAMES,
    Arguments,
    Maker,
    Unmapped,
    chance,
    choice,
    fill_of,
    of,
    one,
    only,
)
from imgops.transforms.color import adjust, channels, domain, levels
from imgops.transforms.filters import blur, compression, sharpen
from imgops.transforms.weather import transforms


def _gaussian_blur(a: Arguments) -> Any:
    (least, largest), sigmas = a["blur_limit"], tuple(max(sigma, 1e-3) for sigma in a["sigma_limit"])
    if not largest:
        least = largest = 2 * int(np.ceil(3.5 * sigmas[1])) + 1
    return choice(
        [blur.GaussianBlur(size, sigmas) for size in range(least | 1, (largest | 1) + 1, 2)], a["p"]
    )


def _downscale(a: Arguments) -> Any:
    pair = a["interpolation_pair"]
    down = of({0: "nearest", 1: "bilinear", 3: "area"}, pair, "downscale")
    up = of({k: NAMES[k] for k in (0, 1, 2)}, pair, "upscale")
    return compression.RandomDownscale(a["scale_range"], down, up, a["p"])


def _holes(a: Arguments) -> dict[str, Any]:
    if isinstance(a["fill_mask"], (list, tuple)):
        raise Unmapped(f"fill_mask={a['fill_mask']}")
    rule = (a["rule"].boxes, a["rule"].drops_points)
    return {"fill": fill_of(a), "mask_fill": a["fill_mask"], "p": a["p"], "rule": rule}


def _coarse(a: Arguments) -> Any:
    sides = {"height": a["hole_height_range"], "width": a["hole_width_range"]}
    # Both sides are pixels if the greatest height is at least 1, whatever their type.
    if sides["height"][1] >= 1:
        sides = {name: tuple(int(v) for v in bounds) for name, bounds in sides.items()}
    elif sides["width"][1] > 1:
        raise Unmapped(f"hole_width_range={sides['width']}")
    else:
        sides = {name: tuple(float(v) for v in bounds) for name, bounds in sides.items()}
    return _pixels._CoarseDropoutCounterpart(num_holes=a["num_holes_range"], **sides, **_holes(a))


def _erase(a: Arguments) -> Any:
    return _pixels._ErasingCounterpart(scale=a["scale"], ratio=a["ratio"], **_holes(a))


def _grid(a: Arguments) -> Any:
    counts = a["holes_number_xy"]  # albumentations takes the first number for the rows
    where = {"cells": None if counts is None else counts[::-1], "random_offset": a["random_offset"]}
    more = {"unit": a["unit_size_range"], "shift": a["shift_xy"]}
    return _pixels._GridDropoutCounterpart(ratio=a["ratio"], **where, **more, **_holes(a))


def _pixel_dropout(a: Arguments) -> Any:
    values = a["drop_value"], a["mask_drop_value"]
    if not isinstance(values[0], (int, float)) or isinstance(values[1], (list, tuple)):
        raise Unmapped(f"drop_value={values[0]}, mask_drop_value={values[1]}")
    if a["per_channel"] and values[1] is not None:
        raise Unmapped(f"per_channel=True, mask_drop_value={values[1]}")
    fills = {"fill": values[0], "mask_fill": values[1], "rule": (a["rule"].boxes, False)}
    return _pixels._PixelDropoutCounterpart(
        amount=a["dropout_prob"], per_channel=a["per_channel"], p=a["p"], **fills
    )


def _equalize(a: Arguments) -> Any:
    only(a, by_channels=True, mask=None, mask_params=())
    return _pixels._HistogramCounterpart(a["p"], "equalize" if a["mode"] == "cv" else "equalize by steps")


def _autocontrast(a: Arguments) -> Any:
    only(a, cutoff=0, ignore=None)
    return _pixels._HistogramCounterpart(a["p"], "contrast" if a["method"] == "pil" else "contrast by counts")


def _morphology(a: Arguments) -> Any:
    operation = {"dilation": "dilate", "erosion": "erode"}[a["operation"]]
    return _pixels._MorphologyCounterpart(element=a["scale"], operation=operation, p=a["p"])


def _compression(a: Arguments) -> Any:
    return _pixels._CompressionCounterpart(a["compression_type"], a["quality_range"], a["p"])


def _rain(a: Arguments) -> Any:
    method = "rain" if a["rain_type"] == "default" else a["rain_type"]
    more: dict[str, Any] = {
        "length": a["drop_length"],
        "width": a["drop_width"],
        "color": tuple(a["drop_color"]),
    }
    light = {"kernel_size": a["blur_value"], "brightness": a["brightness_coefficient"], "p": a["p"]}
    return transforms.RandomRain(a["slant_range"], method, **more, **light)


def _snow(a: Arguments) -> Any:
    only(a, method="bleach")
    return transforms.RandomSnow(a["snow_point_range"], a["brightness_coeff"], a["p"])


def _flare(a: Arguments) -> Any:
    places = {"region": a["flare_roi"], "radius": a["src_radius"], "color": tuple(a["src_color"])}
    angle = tuple(360 * turns for turns in a["angle_range"])
    circles = {"angle": angle, "num_circles": a["num_flare_circles_range"], "method": a["method"]}
    return transforms.RandomSunFlare(**places, **circles, p=a["p"])


def _normalize(a: Arguments) -> Any:
    only(a, normalization="standard", max_pixel_value=255.0)
    if a["mean"] is None or a["std"] is None:
        raise Unmapped("mean=None")
    mean, std = ([x] if isinstance(x, (int, float)) else list(x) for x in (a["mean"], a["std"]))
    last = [conversion.ToDtype(torch.float32, scale=True), conversion.Normalize(mean, std)]
    return chance(containers.Compose(last), a["p"])


def _to_float(a: Arguments) -> Any:
    if a["max_value"] not in (None, 255, 255.0):
        raise Unmapped(f"max_value={a['max_value']}")
    return chance(conversion.ToDtype(torch.float32, scale=True), a["p"])


def _from_float(a: Arguments) -> Any:
    only(a, dtype="uint8", max_value=255)
    return chance(conversion.ToDtype(torch.uint8, scale=True), a["p"])


def _references(a: Arguments) -> list[torch.Tensor]:
    if not a["reference_images"] or a["read_fn"] is None:
        raise Unmapped(f"reference_images={a['reference_images']}, metadata_key={a['metadata_key']}")
    images = [a["read_fn"](reference) for reference in a["reference_images"]]
    return [torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1) for image in images]


def _gray(a: Arguments) -> Any:
    only(a, method="weighted_average", num_output_channels=3)
    return channels.RandomGrayscale(a["p"])


def _to_rgb(a: Arguments) -> Any:
    only(a, num_output_channels=3)
    return chance(channels.RGB(), a["p"])


def _posterize(a: Arguments) -> Any:
    if isinstance(a["num_bits"], list):
        raise Unmapped(f"num_bits={a['num_bits']}")
    low, high = a["num_bits"]
    return choice([levels.RandomPosterize(n, 1.0) for n in range(low, high + 1)], a["p"])


def _unsharp(a: Arguments) -> Any:
    low, high = a["sigma_limit"]
    radius = (low, high) if high > 0 else tuple(0.15 * n + 0.35 for n in a["blur_limit"])
    percent = tuple(100 * x for x in a["alpha"])
    return sharpen.RandomUnsharpMask(radius, percent, a["threshold"], a["p"])


def _multiplicative_noise(a: Arguments) -> Any:
    only(a, elementwise=False)
    return noise.RandomMultiplicativeNoise(a["multiplier"], a["per_channel"], a["p"])


def _gauss_noise(a: Arguments) -> Any:
    only(a, noise_scale_factor=1)
    return noise.RandomGaussianNoise(a["std_range"], a["mean_range"], a["per_channel"], a["p"])


def _sharpen(a: Arguments) -> Any:
    only(a, method="kernel")
    return sharpen.RandomSharpen(a["alpha"], a["lightness"], a["p"])


def _linear(a: Arguments) -> Any:
    only(a, brightness_by_max=True, ensure_safe_range=False)
    return adjust.RandomBrightnessContrast(a["brightness_limit"], a["contrast_limit"], a["p"])


def _planck(a: Arguments) -> Any:
    only(a, sampling_method="uniform")
    limits = a["temperature_limit"]
    return adjust.RandomTemperature(a["mode"], None if limits is None else tuple(limits), a["p"])


def _jitter(a: Arguments) -> Any:
    transform = adjust.ColorJitter(*(tuple(a[n]) for n in ("brightness", "contrast", "saturation", "hue")))
    return chance(transform, a["p"])


#: The counterparts with the same pixels for the same parameters, and the same distribution of parameters.
SAME: dict[str, Maker] = {
    "AutoContrast": _autocontrast,
    "Blur": lambda a: blur.RandomBoxBlur(a["blur_limit"], a["p"]),
    "CLAHE": lambda a: levels.RandomCLAHE(a["clip_limit"], a["tile_grid_size"], a["p"]),
    "ChannelDropout": lambda a: channels.RandomChannelDropout(a["channel_drop_range"], a["fill"], a["p"]),
    "ChannelShuffle": lambda a: chance(channels.RandomChannelPermutation(), a["p"]),
    "CoarseDropout": _coarse,
    "Emboss": lambda a: sharpen.RandomEmboss(a["alpha"], a["strength"], a["p"]),
    "Equalize": _equalize,
    "Erasing": _erase,
    "GaussNoise": _gauss_noise,
    "GridDropout": _grid,
    "HistogramMatching": lambda a: domain.HistogramMatching(_references(a), a["blend_ratio"], a["p"]),
    "HueSaturationValue": lambda a: adjust.RandomHSV(
        tuple(2 * x for x in a["hue_shift_limit"]), a["sat_shift_limit"], a["val_shift_limit"], p=a["p"]
    ),
    "ISONoise": lambda a: noise.RandomISONoise(a["color_shift"], a["intensity"], a["p"]),
    "ImageCompression": _compression,
    "InvertImg": lambda a: levels.RandomInvert(a["p"]),
    "MedianBlur": lambda a: blur.RandomMedianBlur(a["blur_limit"], a["p"]),
    "MotionBlur": lambda a: blur.RandomMotionBlur(
        a["blur_limit"], a["angle_range"], a["direction_range"], a["allow_shifted"], a["p"]
    ),
    "MultiplicativeNoise": _multiplicative_noise,
    "NoOp": lambda a: conversion.Identity(),
    "Normalize": _normalize,
    "PixelDropout": _pixel_dropout,
    "PlanckianJitter": _planck,
    "Posterize": _posterize,
    "RGBShift": lambda a: adjust.RandomRGBShift(
        a["r_shift_limit"], a["g_shift_limit"], a["b_shift_limit"], a["p"]
    ),
    "RandomBrightnessContrast": _linear,
    "RandomFog": lambda a: transforms.RandomFog(a["fog_coef_range"], a["alpha_coef"], a["p"]),
    "RandomRain": _rain,
    "RandomShadow": lambda a: transforms.RandomShadow(
        a["shadow_roi"], a["num_shadows_limit"], a["shadow_dimension"], a["shadow_intensity_range"], a["p"]
    ),
    "RandomSnow": _snow,
    "RandomToneCurve": lambda a: adjust.RandomToneCurve(a["scale"], a["per_channel"], a["p"]),
    "Sharpen": _sharpen,
    "ShotNoise": lambda a: _pixels._ShotNoiseCounterpart(a["p"], a["scale_range"]),
    "Solarize": lambda a: levels.RandomSolarize(255 * one(a["threshold_range"], "threshold_range"), a["p"]),
    "ToFloat": _to_float,
    "ToRGB": _to_rgb,
    "ToTensorV2": lambda a: conversion.Identity(),
}

#: The counterparts that only come near, and a text that says what differs.
NEAR: dict[str, tuple[Maker, str]] = {
    "ColorJitter": (_jitter, "PIL's and torchvision's arithmetic"),
    "Downscale": (_downscale, "OpenCV is given sizes instead of a factor"),
    "FDA": (lambda a: domain.FDA(_references(a), a["beta_limit"], a["p"]), "one level"),
    "FromFloat": (_from_float, "levels are cut to whole ones, not rounded"),
    "GaussianBlur": (_gaussian_blur, "OpenCV's kernel"),
    "Morphological": (_morphology, "boxes and masks stay"),
    "RandomGamma": (
        lambda a: adjust.RandomGamma(tuple(x / 100 for x in a["gamma_limit"]), a["p"]),
        "one level",
    ),
    "RandomSunFlare": (_flare, "up to three levels"),
    "SaltAndPepper": (
        lambda a: noise.RandomSaltAndPepper(a["amount"], a["salt_vs_pepper"], a["p"]),
        "each pixel is drawn by itself, so that their number varies",
    ),
    "ToGray": (_gray, "PIL's luma, one level"),
    "UnsharpMask": (_unsharp, "PIL's"),
}
