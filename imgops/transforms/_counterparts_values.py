"""Counterparts of albumentations' transforms that change values."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from imgops.transforms import (
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
from imgops.transforms._added import AddedTransform, from_seed, integer, seed, uniform
from imgops.transforms._counterparts import (
    NAMES,
    OUTSIDE,
    Arguments,
    Made,
    Unmapped,
    add_arguments,
    chance,
    choice,
    fill_of,
    of,
    one,
    only,
)


def _gaussian_blur(a: Arguments) -> Any:
    (least, largest), sigmas = a["blur_limit"], tuple(max(sigma, 1e-3) for sigma in a["sigma_limit"])
    if not largest:
        least = largest = 2 * int(np.ceil(3.5 * sigmas[1])) + 1
    return choice(
        [_color.GaussianBlur(size, sigmas) for size in range(least | 1, (largest | 1) + 1, 2)], a["p"]
    )


def _downscale(a: Arguments) -> Any:
    pair = a["interpolation_pair"]
    down = of({0: "nearest", 1: "bilinear", 3: "area"}, pair, "downscale")
    up = of({k: NAMES[k] for k in (0, 1, 2)}, pair, "upscale")
    return _filters.RandomDownscale(a["scale_range"], down, up, a["p"])


# -- holes -----------------------------------------------------------------------------------------------


class _HolesCounterpart:
    """A dropout whose holes change boxes and keypoints as albumentations' do.

    ``rule`` has the least area of a box that must be left and its least share, or None where there are no boxes,
    and whether keypoints in holes are lost.
    """

    def __init__(self, *, rule: Any, **arguments: Any) -> None:
        super().__init__(**arguments)
        add_arguments(self, rule=rule)

    def moved_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        if self.rule[0] is None or not len(self.boxes_of(**params)):  # type: ignore[attr-defined]
            return boxes
        hidden = self.hidden(*canvas, **params)  # type: ignore[attr-defined]
        left = [self._left_of(box, hidden) for box in boxes.long().clamp(min=0).tolist()]
        return torch.tensor(left, dtype=boxes.dtype).reshape(boxes.shape)

    def _left_of(self, box: list[int], hidden: np.ndarray) -> list[int]:
        """The smallest box around what is visible of a box; an empty one where that is too little."""
        least_area, least_share = self.rule[0]  # type: ignore[attr-defined]
        left, top, right, bottom = box
        visible = ~hidden[top:bottom, left:right]
        area = visible.sum()
        if not area or area < least_area or area / ((right - left) * (bottom - top)) < least_share:
            return [0, 0, 0, 0]
        rows, columns = visible.any(1).nonzero()[0], visible.any(0).nonzero()[0]
        return [left + columns[0], top + rows[0], left + columns[-1] + 1, top + rows[-1] + 1]

    def moved_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        if not self.rule[1]:  # type: ignore[attr-defined]
            return points
        x, y = points[:, :1], points[:, 1:]
        left, top, right, bottom = torch.from_numpy(self.boxes_of(**params)).mT  # type: ignore[attr-defined]
        gone = ((x >= left) & (x < right) & (y >= top) & (y < bottom)).any(1, keepdim=True)
        return torch.where(gone, OUTSIDE, points)


class _CoarseDropoutCounterpart(_HolesCounterpart, _dropout.CoarseDropout):
    pass


class _ErasingCounterpart(_HolesCounterpart, _dropout.CoarseDropout):
    """One hole, by its area and the ratio of its sides."""

    def __init__(self, *, scale: Any, ratio: Any, **arguments: Any) -> None:
        super().__init__(**{**arguments, "holes": 1})
        add_arguments(self, scale=scale, ratio=ratio)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self.shape_of(flat_inputs)
        hole = self._hole(height, width)
        noise = seed() if self.fill == "random" else 0
        return {"seed": noise, "count": int(hole is not None), "places": hole or [0, 0, 0, 0]}

    def _hole(self, height: int, width: int) -> list[int] | None:
        flat, steep = self.ratio
        least, largest = (share * height * width for share in self.scale)
        largest = min(largest, flat * height**2, width**2 / steep)
        if largest < least:
            return None
        area = uniform((least, largest))
        flat, steep = max(flat, area / height**2), min(steep, width**2 / area)
        if flat > steep:
            return None
        ratio = uniform((flat, steep))
        high, wide = round((area / ratio) ** 0.5), round((area * ratio) ** 0.5)
        top, left = integer((0, height - high)), integer((0, width - wide))
        return [left, top, left + wide, top + high]


class _GridDropoutCounterpart(_HolesCounterpart, _dropout.GridDropout):
    """Holes in cells of nearly one size, whose order is drawn."""

    def __init__(self, *, unit: Any, shift: Any, **arguments: Any) -> None:
        super().__init__(**arguments)
        add_arguments(self, unit=unit, shift=shift)

    def boxes_of(self, seed: float, rows: float, columns: float) -> np.ndarray:
        size, draws = (int(rows), int(columns)), np.random.default_rng(int(seed))
        if self.cells is not None:
            counts = tuple(self.cells)
        else:
            least = [max(2, extent // 10) for extent in size]
            units = least if self.unit is None else [int(draws.integers(*self.unit))] * 2
            counts = tuple(extent // unit for extent, unit in zip(size, units, strict=True))
        starts, holes = [], []
        for extent, count in zip(size, counts, strict=True):
            sides = extent // count + (np.arange(count) < extent % count)
            draws.shuffle(sides)
            starts.append(np.cumsum(sides) - sides)
            holes.append((np.clip(sides * self.ratio, 1, sides - 1).astype(np.int64), sides))
        (high, rest_high), (wide, rest_wide) = ((h, s - h) for h, s in holes)
        if self.random_offset:
            down = draws.integers(0, np.broadcast_to(rest_high[:, None], counts) + 1)
            right = draws.integers(0, np.broadcast_to(rest_wide, counts) + 1)
        else:
            right, down = (np.full(counts, n) for n in self.shift)
        top = np.clip(starts[0][:, None] + down, 0, size[0] - high[:, None])
        left = np.clip(starts[1] + right, 0, size[1] - wide)
        return np.stack([left, top, left + wide, top + high[:, None]], -1).reshape(-1, 4)


class _PixelDropoutCounterpart(_HolesCounterpart, _dropout.PixelDropout):
    """Single pixels, which lose boxes but leave keypoints alone."""

    def moved_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        if self.rule[0] is None or self.per_channel or not boxes.numel():
            return boxes
        visible = torch.from_numpy(~self.hidden(*canvas, **params))
        y, x = (torch.arange(n)[:, None] for n in canvas)
        left, top, right, bottom = boxes.mT
        # The pixels at the edges of a box belong to it, as in albumentations.
        rows, columns = ((y >= top) & (y <= bottom)).double(), ((x >= left) & (x <= right)).double()
        area = torch.einsum("yn,yx,xn->n", rows, visible.double(), columns)
        kept = (area >= self.rule[0][0]) & (area / ((right - left) * (bottom - top)) >= self.rule[0][1])
        return torch.where(kept[:, None], boxes, 0.0)

    def moved_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        return points


def _holes(a: Arguments) -> dict[str, Any]:
    if isinstance(a["fill_mask"], (list, tuple)):
        raise Unmapped(f"fill_mask={a['fill_mask']}")
    rule = (a["rule"].boxes, a["rule"].drops_points)
    return {"fill": fill_of(a), "mask_fill": a["fill_mask"], "p": a["p"], "rule": rule}


def _coarse(a: Arguments) -> Any:
    sides = {"height": a["hole_height_range"], "width": a["hole_width_range"]}
    # The greatest height decides whether both are pixels: from 1 on they are, whatever their type.
    if sides["height"][1] >= 1:
        sides = {name: tuple(int(v) for v in bounds) for name, bounds in sides.items()}
    elif sides["width"][1] > 1:
        raise Unmapped(f"hole_width_range={sides['width']}")
    else:
        sides = {name: tuple(float(v) for v in bounds) for name, bounds in sides.items()}
    return _CoarseDropoutCounterpart(holes=a["num_holes_range"], **sides, **_holes(a))


def _erasing(a: Arguments) -> Any:
    return _ErasingCounterpart(scale=a["scale"], ratio=a["ratio"], **_holes(a))


def _grid(a: Arguments) -> Any:
    where = {"cells": a["holes_number_xy"], "random_offset": a["random_offset"]}
    more = {"unit": a["unit_size_range"], "shift": a["shift_xy"]}
    return _GridDropoutCounterpart(ratio=a["ratio"], **where, **more, **_holes(a))


def _pixels(a: Arguments) -> Any:
    values = a["drop_value"], a["mask_drop_value"]
    if not isinstance(values[0], (int, float)) or isinstance(values[1], (list, tuple)):
        raise Unmapped(f"drop_value={values[0]}, mask_drop_value={values[1]}")
    if a["per_channel"] and values[1] is not None:
        raise Unmapped(f"per_channel=True, mask_drop_value={values[1]}")
    fills = {"fill": values[0], "mask_fill": values[1], "rule": (a["rule"].boxes, False)}
    return _PixelDropoutCounterpart(amount=a["dropout_prob"], per_channel=a["per_channel"], p=a["p"], **fills)


# -- histograms, photons, files --------------------------------------------------------------------------


class _HistogramCounterpart(AddedTransform):
    """A table for each channel, made of how many pixels it has of each level."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__(p, False, None, mode=mode)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def changed(self, image: Tensor) -> Tensor:
        whole = image.dtype == torch.uint8
        levels = image if whole else (image.clamp(0, 1) * 255).round()
        flat = levels.reshape(-1, image.shape[-2] * image.shape[-1]).long()
        counts = torch.zeros(len(flat), 256, dtype=torch.int64, device=flat.device)
        counts.scatter_add_(1, flat, torch.ones_like(flat))
        tables = np.stack([_TABLES[self.mode](row) for row in counts.cpu().numpy()]).astype(np.uint8)
        out = torch.from_numpy(tables).to(flat.device).gather(1, flat).reshape(image.shape)
        return out if whole else out.to(image.dtype) / 255


def _equalized(counts: np.ndarray) -> np.ndarray:
    """As ``cv2.equalizeHist``."""
    first = counts.nonzero()[0][0]
    rest = counts.sum() - counts[first]
    if not rest:
        return np.arange(256)
    above = np.maximum(counts.cumsum() - counts[first], 0).astype(np.float32)
    return np.rint(above * (np.float32(255) / np.float32(rest)))


def _equalized_by_steps(counts: np.ndarray) -> np.ndarray:
    """Nearly as PIL, which has each level's pixels half above it and half below."""
    step = counts[: counts.nonzero()[0][-1]].sum() // 255
    return np.minimum((counts.cumsum() + step // 2) // step, 255) if step else np.arange(256)


def _ends(counts: np.ndarray) -> tuple[int, int]:
    """The lowest and the highest level that occurs; the range of albumentations ends before 255."""
    levels = counts[:255].nonzero()[0]
    return (levels[0], levels[-1]) if len(levels) else (0, 0)


def _stretched(counts: np.ndarray) -> np.ndarray:
    low, high = _ends(counts)
    if high <= low:
        return np.arange(256)
    table = np.round((np.arange(256.0) - low) * (255 / (high - low))).clip(0, 255)
    table[high + 1 :] = 255
    return table


def _flattened(counts: np.ndarray) -> np.ndarray:
    low, high = _ends(counts)
    if high <= low:
        return np.arange(256)
    above = (counts[low : high + 1].cumsum() - counts[low]).astype(np.float32)
    table = np.zeros(256, dtype=np.float32)
    table[low : high + 1] = np.round(above * np.float32(255) / above[-1])
    table[high + 1 :] = 255
    return table


_TABLES = {
    "equalize": _equalized,
    "equalize by steps": _equalized_by_steps,
    "contrast": _stretched,
    "contrast by counts": _flattened,
}


def _equalize(a: Arguments) -> Any:
    only(a, by_channels=True, mask=None, mask_params=())
    return _HistogramCounterpart(a["p"], "equalize" if a["mode"] == "cv" else "equalize by steps")


def _autocontrast(a: Arguments) -> Any:
    only(a, cutoff=0, ignore=None)
    return _HistogramCounterpart(a["p"], "contrast" if a["method"] == "pil" else "contrast by counts")


class _ShotNoiseCounterpart(AddedTransform):
    """Photons, counted for intensities to the power of 2.2."""

    _parts = {"scale": 0, "seed": 0}
    _known = ("scale", "seed")

    def __init__(self, p: float, scale: Any) -> None:
        super().__init__(p, False, None, scale=scale)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"scale": uniform(tuple(self.scale)), "seed": seed()}

    def changed(self, image: Tensor, scale: float, seed: float) -> Tensor:
        whole = image.dtype == torch.uint8
        real = image.to("cpu", torch.float32) / 255 if whole else image.to("cpu", torch.float32)
        counts = torch.poisson(real.clamp(min=0) ** 2.2 / scale + 1e-6, generator=from_seed(seed))
        out = (counts * scale).clamp(0, 1) ** (1 / 2.2)
        return (out * 255).round().to(image) if whole else out.to(image)


class _CompressionCounterpart(_filters.RandomCompression):
    """Files whose red is stored as blue, as OpenCV writes what it takes for BGR."""

    def changed(self, image: Tensor, quality: Tensor) -> Tensor:
        return super().changed(image.flip(-3), quality).flip(-3)


class _MorphologyCounterpart(_filters.RandomMorphology):
    """By one element of a width and a height."""

    def __init__(self, *, element: Any, **arguments: Any) -> None:
        super().__init__(**arguments)
        add_arguments(self, element=element)

    def changed(self, image: Tensor, kernel_size: float) -> Tensor:
        element = torch.from_numpy(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, tuple(self.element)))
        return imgops.morphology(image, self.operation, element)


def _morphology(a: Arguments) -> Any:
    operation = {"dilation": "dilate", "erosion": "erode"}[a["operation"]]
    return _MorphologyCounterpart(element=a["scale"], operation=operation, p=a["p"])


def _compression(a: Arguments) -> Any:
    return _CompressionCounterpart(a["quality_range"], a["compression_type"], a["p"])


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
    return chance(_misc.ToDtype(torch.float32, scale=True), a["p"])


def _from_float(a: Arguments) -> Any:
    only(a, dtype="uint8")
    return chance(_misc.ToDtype(torch.uint8, scale=True), a["p"])


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
    "AutoContrast": _autocontrast,
    "Blur": lambda a: _blurs.RandomBoxBlur(a["blur_limit"], a["p"]),
    "CLAHE": lambda a: _filters.RandomCLAHE(a["clip_limit"], a["tile_grid_size"], a["p"]),
    "ChannelDropout": lambda a: _tones.RandomChannelDropout(a["channel_drop_range"], a["fill"], a["p"]),
    "ChannelShuffle": lambda a: chance(_color.RandomChannelPermutation(), a["p"]),
    "CoarseDropout": _coarse,
    "Emboss": lambda a: _filters.RandomEmboss(a["alpha"], a["strength"], a["p"]),
    "Equalize": _equalize,
    "Erasing": _erasing,
    "FromFloat": _from_float,
    "GaussNoise": _gauss_noise,
    "GridDropout": _grid,
    "HistogramMatching": lambda a: _domain.HistogramMatching(_references(a), a["blend_ratio"], a["p"]),
    "HueSaturationValue": lambda a: _levels.RandomHSV(
        a["hue_shift_limit"], a["sat_shift_limit"], a["val_shift_limit"], p=a["p"]
    ),
    "ISONoise": lambda a: _noise.RandomISONoise(
        tuple(x / 360 for x in a["color_shift"]), a["intensity"], a["p"]
    ),
    "ImageCompression": _compression,
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
    "Sharpen": _sharpened,
    "ShotNoise": lambda a: _ShotNoiseCounterpart(a["p"], a["scale_range"]),
    "Solarize": lambda a: _color.RandomSolarize(255 * one(a["threshold_range"], "threshold_range"), a["p"]),
    "ToFloat": _to_float,
    "ToRGB": lambda a: chance(_color.RGB(), a["p"]),
    "ToTensorV2": lambda a: _misc.Identity(),
}

#: Those that come near, and what differs.
NEAR: dict[str, tuple[Made, str]] = {
    "ColorJitter": (_jitter, "PIL's and torchvision's arithmetic"),
    "Downscale": (_downscale, "OpenCV is given sizes instead of a factor"),
    "FDA": (lambda a: _domain.FDA(_references(a), a["beta_limit"], a["p"]), "one level"),
    "GaussianBlur": (_gaussian_blur, "OpenCV's kernel"),
    "Morphological": (_morphology, "boxes and masks stay"),
    "RandomGamma": (
        lambda a: _tones.RandomGamma(tuple(x / 100 for x in a["gamma_limit"]), a["p"]),
        "one level",
    ),
    "RandomSunFlare": (_flare, "up to three levels"),
    "SaltAndPepper": (
        lambda a: _noise.RandomSaltAndPepper(a["amount"], a["salt_vs_pepper"], a["p"]),
        "each pixel is drawn by itself, so that their number varies",
    ),
    "ToGray": (_gray, "PIL's luma, one level"),
    "UnsharpMask": (_unsharp, "PIL's"),
}
