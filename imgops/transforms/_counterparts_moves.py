"""Counterparts of albumentations' transforms that move pixels."""

from __future__ import annotations

from typing import Any

from imgops.transforms import _container, _distortions, _fit, _geometry, _sizes, _turns
from imgops.transforms._counterparts import (
    BORDERS,
    MODES,
    NAMES,
    Arguments,
    Made,
    Unmapped,
    chance,
    choice,
    fill_of,
    of,
    only,
)


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


def _max_size(kind: Any) -> Made:
    def make(a: Arguments) -> Any:
        sizes = a["max_size"] if a["max_size"] is not None else [tuple(a["max_size_hw"])]
        sizes = sizes if isinstance(sizes, (list, tuple)) else [sizes]
        if any(None in s for s in sizes if isinstance(s, tuple)):
            raise Unmapped(f"max_size_hw={a['max_size_hw']}")
        return choice([kind(s, **_resize(a)) for s in sizes], a["p"])

    return make


def _pad_if_needed(a: Arguments) -> Any:
    only(a, fill_mask=0)
    size, divisor = (a["min_height"], a["min_width"]), (a["pad_height_divisor"], a["pad_width_divisor"])
    position = of({n: n for n in ("center", *_fit.CORNERS)}, a, "position")
    made = _fit.PadIfNeeded(
        None if size == (None, None) else tuple(n or 1 for n in size),
        None if divisor == (None, None) else tuple(n or 1 for n in divisor),
        position,
        fill_of(a),
        of({k: v for k, v in BORDERS.items() if v != "wrap"}, a, "border_mode"),
    )
    return chance(made, a["p"])


def _pad(a: Arguments) -> Any:
    only(a, fill_mask=0)
    padding = a["padding"]
    padding = padding if isinstance(padding, int) else list(padding)
    return chance(_geometry.Pad(padding, fill_of(a), of(BORDERS, a, "border_mode")), a["p"])


def _center_crop(a: Arguments) -> Any:
    only(a, pad_if_needed=False)
    return chance(_geometry.CenterCrop((a["height"], a["width"])), a["p"])


def _random_crop(a: Arguments) -> Any:
    only(a, fill_mask=0)
    mode = of(BORDERS, a, "border_mode")
    size, more = (a["height"], a["width"]), {"fill": fill_of(a), "padding_mode": mode}
    return chance(_geometry.RandomCrop(size, pad_if_needed=a["pad_if_needed"], **more), a["p"])


def _affine(a: Arguments) -> Any:
    only(a, fit_output=False, mask_interpolation=0, fill_mask=0)
    if a["translate_px"] not in (None, {"x": (0, 0), "y": (0, 0)}):
        raise Unmapped(f"translate_px={a['translate_px']}")
    translate = a["translate_percent"]
    if translate is not None:
        sides = [translate["x"], translate["y"]]
        if any(low != -high for low, high in sides):
            raise Unmapped(f"translate_percent={translate}")
        translate = tuple(high for _, high in sides)
    shear, scale = a["shear"], a["scale"]
    if scale["x"] != scale["y"]:
        raise Unmapped(f"scale={scale}")
    made = _geometry.RandomAffine(
        a["rotate"],
        translate,
        scale["x"],
        [*shear["x"], *shear["y"]],
        of(MODES, a, "interpolation"),
        fill=fill_of(a),
    )
    return chance(made, a["p"])


def _shift_scale_rotate(a: Arguments) -> Any:
    only(a, mask_interpolation=0, fill_mask=0)
    low, high = a["scale_limit"]
    shifts = [a["shift_limit_x"], a["shift_limit_y"]]
    if any(first != -last for first, last in shifts):
        raise Unmapped(f"shift_limit={shifts}")
    made = _geometry.RandomAffine(
        a["rotate_limit"],
        tuple(last for _, last in shifts),
        (1 + low, 1 + high),
        interpolation=of(MODES, a, "interpolation"),
        fill=fill_of(a),
    )
    return chance(made, a["p"])


def _rotate(a: Arguments) -> Any:
    only(a, crop_border=False, mask_interpolation=0, fill_mask=0)
    made = _sizes.RandomRotation(a["limit"], of(MODES, a, "interpolation"), fill=fill_of(a))
    return chance(made, a["p"])


def _perspective(a: Arguments) -> Any:
    only(a, keep_size=True, fit_output=False, mask_interpolation=0, fill_mask=0)
    mode = of(MODES, a, "interpolation")
    return _geometry.RandomPerspective(min(2 * a["scale"][1], 1.0), a["p"], mode, fill_of(a))


def _dihedral(a: Arguments) -> Any:
    both = [_turns.RandomRotate90(1.0), _geometry.RandomHorizontalFlip(0.5)]
    return chance(_container.Compose(both), a["p"])


def _elastic(a: Arguments) -> Any:
    only(a, approximate=False, same_dxdy=False)
    return _distortions.RandomElastic(a["alpha"], a["sigma"], **_warp(a))


def _spline(a: Arguments) -> Any:
    scale = tuple(x / 10 for x in a["scale_range"])
    return _distortions.RandomThinPlateSpline(scale, a["num_control_points"], **_warp(a))


#: Those with the same pixels for the same parameters, and the same distribution of these.
SAME: dict[str, Made] = {
    "CenterCrop": _center_crop,
    "D4": _dihedral,
    "GridDistortion": lambda a: _distortions.RandomGridDistortion(
        a["num_steps"], a["distort_limit"], a["normalized"], **_warp(a)
    ),
    "HorizontalFlip": lambda a: _geometry.RandomHorizontalFlip(a["p"]),
    "LongestMaxSize": _max_size(_fit.LongestMaxSize),
    "OpticalDistortion": lambda a: _distortions.RandomOpticalDistortion(
        a["distort_limit"], a["mode"], **_warp(a)
    ),
    "Pad": _pad,
    "PadIfNeeded": _pad_if_needed,
    "RandomResizedCrop": lambda a: chance(
        _geometry.RandomResizedCrop(tuple(a["size"]), a["scale"], a["ratio"], **_resize(a)), a["p"]
    ),
    "RandomRotate90": lambda a: _turns.RandomRotate90(a["p"]),
    "Resize": lambda a: chance(_geometry.Resize((a["height"], a["width"]), **_resize(a)), a["p"]),
    "SmallestMaxSize": _max_size(_fit.SmallestMaxSize),
    "SquareSymmetry": _dihedral,
    "Transpose": lambda a: _turns.RandomTranspose(a["p"]),
    "VerticalFlip": lambda a: _geometry.RandomVerticalFlip(a["p"]),
}

#: Those that come near, and what differs.
NEAR: dict[str, tuple[Made, str]] = {
    "Affine": (_affine, "shifts are whole pixels, one factor scales both sides, the border is constant"),
    "ElasticTransform": (_elastic, "noise is smoothed by itself along x and y, with a reflected border"),
    "Perspective": (_perspective, "corners move evenly up to a limit, not normally; the border is constant"),
    "RandomCrop": (_random_crop, "padding is torchvision's"),
    "Rotate": (_rotate, "the center is torchvision's, the border constant"),
    "ShiftScaleRotate": (_shift_scale_rotate, "shifts are whole pixels, the border is constant"),
    "ThinPlateSpline": (_spline, "it passes through its points"),
}
