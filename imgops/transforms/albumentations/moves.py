"""Counterparts of albumentations' transforms that move pixels."""

from __future__ import annotations

from typing import Any

from imgops.transforms import containers
from imgops.transforms.albumentations import warps as _warps
from imgops.transforms.albumentations.rules import (
    BORDERS,
    MODES,
    NAMES,
    Arguments,
    Maker,
    Unmapped,
    chance,
    choice,
    fill_of,
    fills_of,
    near_if,
    of,
    only,
)
from imgops.transforms.geometry import crop, fit, flip, resize


def _how(a: Arguments) -> dict[str, Any]:
    """Return imgops' arguments that all warps by a matrix have."""
    only(a, fit_output=False, mask_interpolation=0, rotate_method="largest_box")
    return {
        "p": a["p"],
        "interpolation": of({k: NAMES[k] for k in (0, 1, 2)}, a, "interpolation"),
        "padding_mode": of(BORDERS, a, "border_mode"),
        "fill": fill_of(a),
        "mask_fill": a["fill_mask"],
    }


_MIRRORED = "boxes and keypoints are not repeated in a mirrored border"


def _near_if_mirrored(a: Arguments, transform: Any) -> Any:
    return near_if(a["border_mode"] in (2, 4) and a["rule"].follows, transform, _MIRRORED)


def _affine(a: Arguments) -> Any:
    shear, scale, shares, pixels = (a[n] for n in ("shear", "scale", "translate_percent", "translate_px"))
    transform = _warps._AffineCounterpart(
        **_how(a),
        rotate=a["rotate"],
        scale=(scale["x"], scale["y"]),
        shear=(shear["x"], shear["y"]),
        shares=None if shares is None else (shares["x"], shares["y"]),
        pixels=None if pixels is None else [[int(v) for v in pixels[side]] for side in "xy"],
        keep_ratio=a["keep_ratio"],
        balanced=a["balanced_scale"],
    )
    return _near_if_mirrored(a, transform)


#: The neutral values of the arguments that Affine has but ShiftScaleRotate and Rotate do not have.
_NOT: dict[str, Any] = {"shear": ((0, 0), (0, 0)), "pixels": None, "keep_ratio": False, "balanced": False}


def _shift_scale_rotate(a: Arguments) -> Any:
    factor = tuple(1 + limit for limit in a["scale_limit"])
    shares = (a["shift_limit_x"], a["shift_limit_y"])
    transform = _warps._AffineCounterpart(
        **_how(a), **_NOT, rotate=a["rotate_limit"], scale=(factor, factor), shares=shares
    )
    return _near_if_mirrored(a, transform)


def _rotate(a: Arguments) -> Any:
    only(a, crop_border=False)
    still: dict[str, Any] = {"scale": ((1, 1), (1, 1)), "shares": ((0, 0), (0, 0))}
    return _near_if_mirrored(a, _warps._AffineCounterpart(**_how(a), **_NOT, **still, rotate=a["limit"]))


def _perspective(a: Arguments) -> Any:
    only(a, keep_size=True)
    return _warps._PerspectiveCounterpart(**_how(a), scale=a["scale"])


def _warp(a: Arguments) -> dict[str, Any]:
    only(a, mask_interpolation=0, fill_mask=0)
    return {
        "interpolation": of({k: NAMES[k] for k in (0, 1, 2)}, a, "interpolation"),
        "padding_mode": of(BORDERS, a, "border_mode"),
        "fill": fill_of(a),
        "p": a["p"],
    }


def _resize(a: Arguments) -> dict[str, Any]:
    only(a, mask_interpolation=0, area_for_downscale=None)
    return {"interpolation": of(MODES, a, "interpolation"), "antialias": False}


def _max_size(kind: Any) -> Maker:
    def make(a: Arguments) -> Any:
        sizes = a["max_size"] if a["max_size"] is not None else [tuple(a["max_size_hw"])]
        sizes = sizes if isinstance(sizes, (list, tuple)) else [sizes]
        if any(None in s for s in sizes if isinstance(s, tuple)):
            raise Unmapped(f"max_size_hw={a['max_size_hw']}")
        transform = choice([kind(s, **_resize(a)) for s in sizes], a["p"])
        differs = "keypoints follow the size in whole pixels, not the factor before it is rounded"
        return near_if(a["rule"].has_points, transform, differs)

    return make


def _position(a: Arguments, name: str) -> Any:
    return of({n: n for n in ("center", *fit.CORNERS)}, a, name)


def _pad_if_needed(a: Arguments) -> Any:
    size, divisor = (a["min_height"], a["min_width"]), (a["pad_height_divisor"], a["pad_width_divisor"])
    transform = fit.PadIfNeeded(
        None if size == (None, None) else tuple(n or 1 for n in size),
        None if divisor == (None, None) else tuple(n or 1 for n in divisor),
        _position(a, "position"),
        fills_of(a),
        of(_PADDING, a, "border_mode"),
    )
    return _near_if_mirrored(a, chance(transform, a["p"]))


#: The border modes of padding.
_PADDING = {k: v for k, v in BORDERS.items() if v != "wrap"}


def _pad(a: Arguments) -> Any:
    padding = a["padding"]
    padding = [padding] * 4 if isinstance(padding, int) else list(padding)
    transform = _warps._PadCounterpart(padding, of(_PADDING, a, "border_mode"), fills_of(a))
    return _near_if_mirrored(a, chance(transform, a["p"]))


def _crop_after_padding(a: Arguments, crop: Any) -> Any:
    """Return a crop, preceded by the padding that it may need."""
    if not a["pad_if_needed"]:
        return chance(crop, a["p"])
    mode = of(_PADDING, a, "border_mode")
    pad = fit.PadIfNeeded((a["height"], a["width"]), None, _position(a, "pad_position"), fills_of(a), mode)
    return _near_if_mirrored(a, chance(containers.Compose([pad, crop]), a["p"]))


def _center_crop(a: Arguments) -> Any:
    return _crop_after_padding(a, _warps._CenterCropCounterpart((a["height"], a["width"])))


def _random_crop(a: Arguments) -> Any:
    return _crop_after_padding(a, crop.RandomCrop((a["height"], a["width"])))


def _dihedral(a: Arguments) -> Any:
    both = [flip.RandomRotate90(1.0), flip.RandomHorizontalFlip(0.5)]
    return chance(containers.Compose(both), a["p"])


_BY_MAP = "boxes and keypoints follow the map exactly, not a mask of whole pixels"


def _near_by_map(a: Arguments, transform: Any) -> Any:
    return near_if(a["rule"].follows, transform, _BY_MAP)


def _elastic(a: Arguments) -> Any:
    noise = {
        "noise": a["noise_distribution"],
        "same": a["same_dxdy"],
        "kernel": 17 if a["approximate"] else 0,
    }
    return _near_by_map(
        a, _warps._ElasticCounterpart(alpha=a["alpha"], sigma=a["sigma"], **noise, **_warp(a))
    )


def _grid(a: Arguments) -> Any:
    return _near_by_map(
        a, _warps._GridDistortionCounterpart(a["num_steps"], a["distort_limit"], a["normalized"], **_warp(a))
    )


def _lens(a: Arguments) -> Any:
    return _near_by_map(a, _warps._LensCounterpart(a["distort_limit"], a["mode"], **_warp(a)))


def _spline(a: Arguments) -> Any:
    points = {"num_control_points": a["num_control_points"]}
    return _near_by_map(
        a, _warps._SplineCounterpart(scale=tuple(x / 10 for x in a["scale_range"]), **points, **_warp(a))
    )


#: The counterparts with the same pixels for the same parameters, and the same distribution of parameters.
SAME: dict[str, Maker] = {
    "Affine": _affine,
    "CenterCrop": _center_crop,
    "D4": _dihedral,
    "ElasticTransform": _elastic,
    "GridDistortion": _grid,
    "HorizontalFlip": lambda a: flip.RandomHorizontalFlip(a["p"]),
    "LongestMaxSize": _max_size(fit.LongestMaxSize),
    "OpticalDistortion": _lens,
    "Pad": _pad,
    "PadIfNeeded": _pad_if_needed,
    "Perspective": _perspective,
    "RandomCrop": _random_crop,
    "RandomResizedCrop": lambda a: chance(
        crop.RandomResizedCrop(tuple(a["size"]), a["scale"], a["ratio"], **_resize(a)), a["p"]
    ),
    "RandomRotate90": lambda a: flip.RandomRotate90(a["p"]),
    "Resize": lambda a: chance(resize.Resize((a["height"], a["width"]), **_resize(a)), a["p"]),
    "Rotate": _rotate,
    "ShiftScaleRotate": _shift_scale_rotate,
    "SmallestMaxSize": _max_size(fit.SmallestMaxSize),
    "SquareSymmetry": _dihedral,
    "ThinPlateSpline": _spline,
    "Transpose": lambda a: flip.RandomTranspose(a["p"]),
    "VerticalFlip": lambda a: flip.RandomVerticalFlip(a["p"]),
}
