"""Counterparts of albumentations' transforms that move pixels or change the size: imgops' own transforms.

albumentations draws their parameters, which :data:`VALUES` converts. An argument that they do not have raises
:class:`Unmapped`: albumentations then computes the transform itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops._operator import subclass
from imgops.integrations.albumentations.draws import Source, sampled
from imgops.integrations.albumentations.host import BesideAnnotations, data_of
from imgops.integrations.albumentations.rules import (
    BORDERS,
    MIRRORS,
    MODES,
    Arguments,
    Maker,
    Unmapped,
    fills_of,
    of,
    only,
)
from imgops.transforms._core import operators, steps, torchvision_private
from imgops.transforms._core.dtypes import restore_dtype
from imgops.transforms._core.inputs import ANNOTATIONS
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape
from imgops.transforms.functional import _dispatch
from imgops.transforms.geometry import crop, fit, flip

# -- draws -------------------------------------------------------------------------------------------------


def _box(params: dict[str, Any]) -> dict[str, Any]:
    left, top, right, bottom = map(int, params["crop_coords"])
    return {"top": top, "left": left, "height": bottom - top, "width": right - left}


def _turns(params: dict[str, Any]) -> dict[str, Any]:
    # The symmetries of a square: 0 to 3 quarter turns, and the same before a mirror image.
    group = ("e", "r90", "r180", "r270", "h", "hvt", "v", "t")
    mirrors, turns = divmod(group.index(str(params["group_element"])), 4)
    return {"turns": float(turns), "mirrors": float(mirrors)}


#: Class -> the function that converts its parameters to those of its counterpart.
VALUES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "AtLeastOneBBoxRandomCrop": _box,
    "CropNonEmptyMaskIfExists": _box,
    "D4": _turns,
    "RandomCrop": _box,
    "RandomResizedCrop": _box,
    "RandomRotate90": lambda params: {"turns": float(params["factor"])},
    "RandomSizedBBoxSafeCrop": _box,
    "RandomSizedCrop": _box,
    "SquareSymmetry": _turns,
}


class Drawn(Source):
    """The draws of a transform of albumentations as the numbers of one of imgops'."""

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> Any:
        if not self.chance():
            return None
        name, (_, _, height, width) = self.name, shape
        if name not in VALUES:
            return transform._numbers_from({}, height, width)
        from albumentations.augmentations.crops.transforms import CropSizeError

        data = data_of(self.given, inputs, shape)
        with self.generators():
            try:
                params = sampled(self.given, data)
            except CropSizeError:
                must = f"{name}: image must be at least {self.given.height} x {self.given.width}"
                raise ValueError(f"{must}, got {height} x {width}") from None
        return transform._numbers_from(VALUES[name](params), height, width)


# -- classes -------------------------------------------------------------------------------------------------


class _Dihedral(flip._Turn):
    """One of the eight symmetries of a square: quarter turns, then a mirror image."""

    _random_parameters = (IS_APPLIED, Parameter("turns"), Parameter("mirrors"))
    _known = ("turns", "mirrors")

    def __init__(self, p: float) -> None:
        super().__init__(p, False, None)

    def _swaps(self, turns: float, mirrors: float) -> bool:
        return int(turns) % 2 == 1

    def _change_image(self, image: Tensor, turns: float, mirrors: float) -> Tensor:
        turned = imgops.rotate90(image, int(turns))
        return imgops.flip(turned) if mirrors else turned

    def _points(self, points: Tensor, size: tuple[float, float], turns: float, mirrors: float) -> Tensor:
        turned = flip.RandomRotate90._points(self, points, size, turns)  # type: ignore[arg-type]
        if not mirrors:
            return turned
        x, y = turned.unbind(-1)
        return torch.stack([size[int(turns) % 2 == 0] - x, y], -1)


class _Rotate90Counterpart(flip.RandomRotate90):
    """Quarter turns of keypoints that count pixels, as albumentations' do: the first pixel is at 0."""

    _move_points = flip._Turn._move_points


def _resized_boxes(boxes: Any, size: Any) -> Any:
    """Scale boxes as shares of the sides, in float64; an edge on the border stays there."""
    if boxes.format.value not in ("XYXY", "XYWH", "CXCYWH"):
        return v2.functional.resize(boxes, list(size))
    plain, (height, width) = subclass.plain(boxes), boxes.canvas_size
    before = torch.tensor([width, height] * 2, dtype=torch.float64, device="cpu")
    after = torch.tensor([size[1], size[0]] * 2, dtype=torch.float64, device="cpu")
    moved = restore_dtype(plain.double() / before * after, plain)
    return _dispatch.wrap_like(moved, boxes, tuple(size))


class _NearestOfOpenCV:
    """A resize whose masks take OpenCV's nearest pixel, which is not PyTorch's for one size in thirteen."""

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        size = self._out_size(height, width)  # type: ignore[attr-defined]
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            return _resized_boxes(inpt, size)
        if not isinstance(inpt, tv_tensors.Mask):
            return super()._fit(inpt, height, width)  # type: ignore[misc]
        box = torch.tensor([0, 0, width, height], dtype=torch.int64, device="cpu")
        mask = subclass.plain(inpt)
        planes = mask[None] if mask.ndim == 2 else mask
        moved = operators.nearest(planes, box, tuple(size), "opencv")
        return _dispatch.wrap_like(moved[0] if mask.ndim == 2 else moved, inpt)


class _LongestCounterpart(_NearestOfOpenCV, fit.LongestMaxSize):
    pass


class _SmallestCounterpart(_NearestOfOpenCV, fit.SmallestMaxSize):
    pass


class _ResizeCounterpart(_NearestOfOpenCV, fit._FitResize):
    def __init__(self, size: Any, interpolation: Any = "bilinear", antialias: bool = True) -> None:
        super().__init__(interpolation, antialias, size=tuple(size))

    def _scaled_size(self, height: Any, width: Any) -> tuple[Any, Any]:
        self._check_pixels(height, width)
        return tuple(self.size)


class _ResizedCropCounterpart(crop.RandomResizedCrop):
    _nearest = "opencv"

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        if not isinstance(inpt, tv_tensors.BoundingBoxes):
            return super()._by_torchvision(inpt, values)
        place = (values[name] for name in ("top", "left", "height", "width"))
        return _resized_boxes(v2.functional.crop(inpt, *place), self.size)


class _CropBeside(BesideAnnotations, crop.RandomCrop):
    pass


class _ResizedCropBeside(BesideAnnotations, _ResizedCropCounterpart):
    pass


class _PadCounterpart(fit._FitTransform):
    """Padding with any border mode, also together with boxes and keypoints."""

    def __init__(self, padding: Any, padding_mode: str, fill: Any = 0) -> None:
        super().__init__(padding=padding, padding_mode=padding_mode)
        self.fill = fill
        torchvision_private.set_fill(self, fill)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        left, right, top, bottom = torchvision_private.pad_sides(self.padding)
        return height + top + bottom, width + left + right

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        how: dict[str, Any] = {"padding_mode": "constant"}
        if not isinstance(inpt, ANNOTATIONS):
            how = {"padding_mode": self.padding_mode, "fill": torchvision_private.fill_of(self, type(inpt))}
        return self._kernel(v2.functional.pad, inpt, padding=self.padding, **how)

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        left, right, top, bottom = torchvision_private.pad_sides(self.padding)
        return [steps.Pad((left, top, right, bottom), torchvision_private.fill_of(self, kind))]


class _FixedCrop(fit._FitTransform):
    """A crop of a size at a top and left edge, or at the center.

    At the center, the smaller part of an odd number of pixels is cut off above and to the left.
    """

    def __init__(self, size: Any, corner: Any = None) -> None:
        super().__init__(size=tuple(size), corner=corner)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self.size

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        return self._kernel(v2.functional.crop, inpt, *self._corner(height, width), *self.size)

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        (top, left), (high, wide) = self._corner(*size), self.size
        return [steps.CropAt((left, top, left + wide, top + high))]

    def _corner(self, height: int, width: int) -> tuple[int, int]:
        """Return the top and the left of the crop."""
        high, wide = self.size
        top, left = self.corner or (0, 0)
        if height < top + high or width < left + wide:
            name, least = "Crop" if self.corner else "CenterCrop", f"{top + high} x {left + wide}"
            raise ValueError(f"{name}: image must be at least {least}, got {height} x {width}")
        if self.corner is None:
            return (height - high) // 2, (width - wide) // 2
        return top, left


# -- counterparts ------------------------------------------------------------------------------------


def _resize(a: Arguments) -> dict[str, Any]:
    only(a, mask_interpolation=0, area_for_downscale=None)
    return {"interpolation": of(MODES, a, "interpolation"), "antialias": False}


def _max_size(kind: Any) -> Maker:
    def make(a: Arguments) -> Any:
        if a["rule"].has_points:
            raise Unmapped("keypoints are scaled by the factor before it is rounded")
        size = a["max_size"] if a["max_size"] is not None else tuple(a["max_size_hw"])
        if isinstance(size, list) or (isinstance(size, tuple) and None in size):
            raise Unmapped(f"max_size={size}")
        return kind(size, **_resize(a))

    return make


def _border(a: Arguments) -> str:
    if a["border_mode"] in MIRRORS and a["rule"].follows:
        raise Unmapped("boxes and keypoints are repeated in a mirrored border")
    return of({k: v for k, v in BORDERS.items() if v != "wrap"}, a, "border_mode")


def _pad_if_needed(a: Arguments) -> Any:
    size, divisor = (a["min_height"], a["min_width"]), (a["pad_height_divisor"], a["pad_width_divisor"])
    return fit.PadIfNeeded(
        None if size == (None, None) else tuple(n or 1 for n in size),
        None if divisor == (None, None) else tuple(n or 1 for n in divisor),
        of({n: n for n in ("center", *fit.CORNERS)}, a, "position"),
        fills_of(a),
        _border(a),
    )


def _pad(a: Arguments) -> Any:
    padding = a["padding"]
    padding = [padding] * 4 if isinstance(padding, int) else list(padding)
    return _PadCounterpart(padding, _border(a), fills_of(a))


def _after_padding(kind: Callable[[Any], Any]) -> Maker:
    """Return a maker of a crop and of the padding that it may need."""

    def make(a: Arguments) -> Any:
        size = a["height"], a["width"]
        if not a["pad_if_needed"]:
            return kind(size)
        position = of({n: n for n in ("center", *fit.CORNERS)}, a, "pad_position")
        return [fit.PadIfNeeded(size, None, position, fills_of(a), _border(a)), kind(size)]

    return make


def _crop(a: Arguments) -> Any:
    only(a, pad_if_needed=False)
    top, left = a["y_min"], a["x_min"]
    return _FixedCrop((a["y_max"] - top, a["x_max"] - left), (top, left))


#: Class -> its counterpart, or several of them in their order, which draw by :class:`Drawn`.
MOVES: dict[str, Maker] = {
    **dict.fromkeys(
        ("AtLeastOneBBoxRandomCrop", "CropNonEmptyMaskIfExists"),
        lambda a: _CropBeside((a["height"], a["width"])),
    ),
    **dict.fromkeys(("D4", "SquareSymmetry"), lambda a: _Dihedral(a["p"])),
    **dict.fromkeys(
        ("RandomResizedCrop", "RandomSizedCrop"),
        lambda a: _ResizedCropCounterpart(tuple(a["size"]), **_resize(a)),
    ),
    "CenterCrop": _after_padding(_FixedCrop),
    "Crop": _crop,
    "HorizontalFlip": lambda a: flip.RandomHorizontalFlip(a["p"]),
    "LongestMaxSize": _max_size(_LongestCounterpart),
    "Pad": _pad,
    "PadIfNeeded": _pad_if_needed,
    "RandomCrop": _after_padding(crop.RandomCrop),
    "RandomRotate90": lambda a: _Rotate90Counterpart(a["p"]),
    "RandomSizedBBoxSafeCrop": lambda a: _ResizedCropBeside((a["height"], a["width"]), **_resize(a)),
    "Resize": lambda a: _ResizeCounterpart((a["height"], a["width"]), **_resize(a)),
    "SmallestMaxSize": _max_size(_SmallestCounterpart),
    "Transpose": lambda a: flip.RandomTranspose(a["p"]),
    "VerticalFlip": lambda a: flip.RandomVerticalFlip(a["p"]),
}
