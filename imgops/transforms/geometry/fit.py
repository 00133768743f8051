"""Resizing that keeps the aspect ratio of an image: by its longest or shortest side, or with borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import PIL.Image
import torch
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops._common import check
from imgops._common.torch_private import sym_max, sym_min
from imgops._operator import subclass
from imgops.transforms._core import annotation_kinds, pil_images, projections, steps, torchvision_private
from imgops.transforms._core.arguments import (
    fill_values,
    interpolation_of,
    one_of,
    require_planes,
    size_of,
    switch,
)
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.batches import PendingBatch, Windows
from imgops.transforms._core.inputs import ANNOTATIONS
from imgops.transforms._core.parameters import Params
from imgops.transforms._core.probabilistic import ADDED
from imgops.transforms._core.projections import PROJECTED
from imgops.transforms._core.signatures import is_own
from imgops.transforms.functional import _dispatch, _geometry

__all__ = [
    "LetterBox",
    "LongestMaxSize",
    "PadIfNeeded",
    "SmallestMaxSize",
]


def _smaller(one: Any, other: Any) -> Any:
    if isinstance(one, torch.Tensor):
        return one.minimum(torch.as_tensor(other, dtype=one.dtype, device="cpu"))
    return sym_min(one, other)


def _larger(one: Any, other: Any) -> Any:
    return one.maximum(other) if isinstance(one, torch.Tensor) else sym_max(one, other)


#: The fractions of the padding above and to the left of the image.
CORNERS: dict[str, tuple[int | None, int | None]] = {
    "top_left": (0, 0),
    "top_right": (0, 1),
    "bottom_left": (1, 0),
    "bottom_right": (1, 1),
}
_PADDING = ("constant", "edge", "reflect", "symmetric")


def _set_fill(transform: Any, fill: Any) -> None:
    """Check and set a fill, or one for each class of inputs, as :class:`Pad` takes it."""
    must = (
        f"{type(transform).__name__}: fill must be a number, a sequence of numbers, None, or a dict of these"
    )
    if isinstance(fill, dict):
        fill = {kind: check.plain(value) for kind, value in fill.items()}
    else:
        fill = check.plain(fill)
    classes = fill if isinstance(fill, dict) else {"others": fill}
    for kind, value in classes.items():
        if kind != "others" and not isinstance(kind, type):
            raise TypeError(f"{must} by class, got the key {kind!r:.120}")
        if not isinstance(value, (int, float, tuple, list, type(None))):
            raise TypeError(f"{must}, got {type(value).__name__}")
        if value is not None:
            fill_values(transform, "fill", value)
    transform.fill = fill
    torchvision_private.set_fill(transform, fill)


class _FitTransform(OperatorTransform, v2.Transform):
    """A transform whose output size follows from the size of the image."""

    _moves = True
    _goes_back = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not cls.__name__.startswith("_") and cls.__module__.startswith("imgops."):
            ADDED[cls.__name__] = cls

    def __init__(self, **arguments: Any) -> None:
        v2.Transform.__init__(self)
        for name, value in arguments.items():
            setattr(self, name, value)
        self._config = tuple(arguments)
        if is_own(type(self), "transform"):
            self._describe()

    def _check_pixels(self, height: Any, width: Any) -> None:
        if not (height and width):
            must = "image must have at least one pixel"
            got = f"{check.number(height)} x {check.number(width)}"
            raise ValueError(f"{type(self).__name__}: {must}, got {got}")

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        """Transform an input of this height and width."""
        raise NotImplementedError

    def _pad(self, inpt: Any, padding: list[Any], fill: Any, mode: str = "constant") -> Any:
        """Pad by left, top, right and bottom, which are not negative.

        The functional crops by negative widths. In a graph with unknown sizes it must pad and crop, and the
        formulas for the sizes make an export several times slower.
        """
        is_image = isinstance(inpt, torch.Tensor) and not isinstance(inpt, ANNOTATIONS)
        image = subclass.plain(inpt) if is_image else inpt  # dynamo cannot read the shape of a tv_tensor
        if not is_image or image.ndim < 3:
            return self._kernel(v2.functional.pad, inpt, padding=padding, fill=fill, padding_mode=mode)
        out = imgops.pad(image, tuple(padding), mode, _geometry.color_of(fill))
        return _dispatch.wrap_like(out, inpt)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if annotation_kinds.need_operator(inpt):
            return self._annotations(inpt)
        if isinstance(inpt, PROJECTED):
            return self._follow(inpt, Params(projections.canvas_of(inpt), []))
        if isinstance(inpt, ANNOTATIONS):
            return self._fit(inpt, *inpt.canvas_size)
        require_planes(self, inpt)
        if isinstance(inpt, torch.Tensor):  # dynamo cannot read the shape of a tv_tensor
            height, width = subclass.plain(inpt).shape[-2:]
        else:
            height, width = v2.functional.get_size(inpt)
        return self._fit(inpt, height, width)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        return self.transform(inpt, values)


class _FitResize(_FitTransform):
    """A transform that resizes the image, and keeps its aspect ratio."""

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Resize(self._scaled_size(*size), *self._how())]

    def __init__(self, interpolation: Any, antialias: bool, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.interpolation = interpolation_of(self, interpolation)
        self.antialias = switch(self, "antialias", antialias)

    _takes_batches = True
    _resizes_batches = True

    def _factor(self, height: Any, width: Any) -> Any:
        """Return the factor by which both sides are multiplied, one number or those of several images."""
        raise NotImplementedError

    def _batch(self, images: PendingBatch, params: Params) -> Any:
        return images.resize(self._scaled_sizes(images.sizes), *self._how())

    def _has_one_size(self) -> bool:
        return False

    def _how(self) -> tuple[str, bool]:
        return _geometry.resize_interpolation(self.interpolation, self.antialias, torch.Tensor)

    def _scaled_sizes(self, sizes: torch.Tensor) -> torch.Tensor:
        """Return the sizes of several images after the resize."""
        sides = sizes.double()
        factor = self._factor(*sides.unbind(1))
        return (sides * factor[:, None]).round().clamp(min=1).long()

    def _scaled_size(self, height: Any, width: Any) -> tuple[Any, Any]:
        self._check_pixels(height, width)
        factor = self._factor(height, width)
        return _geometry.round_size(height * factor), _geometry.round_size(width * factor)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self._scaled_size(height, width)

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        size = list(self._scaled_size(height, width))
        how = {"interpolation": self.interpolation, "antialias": self.antialias}
        if not self.antialias and isinstance(inpt, PIL.Image.Image) and inpt.mode in ("L", "RGB", "RGBA"):
            # Pillow always smooths.
            pixels = self._kernel(v2.functional.resize, pil_images.to_tensor(inpt), size, **how)
            return pil_images.to_pil(pixels)
        return self._kernel(v2.functional.resize, inpt, size, **how)


class LongestMaxSize(_FitResize):
    """Resize an image so that its longest side has a given length, and keep its aspect ratio.

    Use :class:`LetterBox` for a fixed size with borders, :class:`Resize` for torchvision's rounding of the
    other side.

    Parameters
    ----------
    size : int or (int, int)
        The length of the longest side in pixels; or the greatest height and width.
    interpolation : InterpolationMode or str
        The interpolation of images; masks take the nearest pixel.
    antialias : bool
        Whether to smooth while shrinking, as PIL does, or to resample without smoothing, as OpenCV does.

    Notes
    -----
    Reference: :meth:`PIL.Image.Image.resize`, or ``cv2.resize`` with ``antialias=False``, to albumentations'
    sizes, which are both sides times one factor, rounded: :func:`imgops.resize`. Masks, boxes and keypoints
    follow the image.
    """

    def __init__(
        self,
        size: int | Sequence[int] = 512,
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool = True,
    ) -> None:
        pair = size_of(self, "size", size)
        one = not isinstance(size, (tuple, list))
        super().__init__(interpolation, antialias, size=pair[0] if one else pair)

    def _factor(self, height: Any, width: Any) -> Any:
        if isinstance(self.size, int):
            return self.size / _larger(height, width)
        return _smaller(self.size[0] / height, self.size[1] / width)


class SmallestMaxSize(_FitResize):
    """Resize an image so that its shortest side has a given length, and keep its aspect ratio.

    Use :class:`Resize` for torchvision's size, whose other side is truncated.

    Parameters
    ----------
    size : int or (int, int)
        The length of the shortest side in pixels; or the least height and width.
    interpolation : InterpolationMode or str
        The interpolation of images; masks take the nearest pixel.
    antialias : bool
        Whether to smooth while shrinking, as PIL does, or to resample without smoothing, as OpenCV does.

    Notes
    -----
    Reference: :meth:`PIL.Image.Image.resize`, or ``cv2.resize`` with ``antialias=False``, to albumentations'
    sizes, which are both sides times one factor, rounded: :func:`imgops.resize`. Masks, boxes and keypoints
    follow the image.
    """

    def __init__(
        self,
        size: int | Sequence[int] = 256,
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool = True,
    ) -> None:
        pair = size_of(self, "size", size)
        one = not isinstance(size, (tuple, list))
        super().__init__(interpolation, antialias, size=pair[0] if one else pair)

    def _factor(self, height: Any, width: Any) -> Any:
        if isinstance(self.size, int):
            return self.size / _smaller(height, width)
        return _larger(self.size[0] / height, self.size[1] / width)


class LetterBox(_FitResize):
    """Resize an image to fit into a box, keep its aspect ratio, and pad the remaining area.

    This transform does in one step what :class:`LongestMaxSize` and :class:`PadIfNeeded` do together;
    :class:`Resize` to a height and width changes the aspect ratio.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the box in pixels.
    fill : float, sequence of float, or dict
        The value of the borders, as for :class:`Pad`.
    scale_up : bool
        Whether smaller images are enlarged.
    interpolation : InterpolationMode or str
        The interpolation of images; masks take the nearest pixel.
    antialias : bool
        Whether to smooth while shrinking, as PIL does, or to resample without smoothing, as OpenCV does.

    Notes
    -----
    Reference: :meth:`PIL.Image.Image.resize`, or ``cv2.resize`` with ``antialias=False``, and
    ``cv2.copyMakeBorder``, as in the preprocessing of object detectors of the YOLO family:
    :func:`imgops.resize`, :func:`imgops.pad`. The image is in the middle; if the padding is odd, the greater
    part is below and to the right. Masks, boxes and keypoints follow the image.
    """

    def __init__(
        self,
        size: int | Sequence[int] = 640,
        fill: Any = 0,
        scale_up: bool = True,
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool = True,
    ) -> None:
        box = size_of(self, "size", size)
        super().__init__(interpolation, antialias, size=box, scale_up=switch(self, "scale_up", scale_up))
        _set_fill(self, fill)

    def _factor(self, height: Any, width: Any) -> Any:
        factor = _smaller(self.size[0] / height, self.size[1] / width)
        return factor if self.scale_up else _smaller(factor, 1.0)

    def _has_one_size(self) -> bool:
        return True

    def _batch(self, images: PendingBatch, params: Params) -> Windows:
        resized = images.resize(self._scaled_sizes(images.sizes), *self._how())
        margins = torch.tensor(self.size, dtype=torch.int64, device="cpu") - resized.sizes
        fill = _geometry.color_of(torchvision_private.fill_of(self, torch.Tensor))
        return resized.crop(-(margins // 2).flip(-1), self.size, fill)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self.size

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        small = super()._fit(inpt, height, width)
        fill = None if isinstance(inpt, tv_tensors.BoundingBoxes) else self._fill_of(inpt)
        return self._pad(small, self._padding(height, width), fill)

    def _padding(self, height: Any, width: Any) -> list[Any]:
        """Return the padding around the resized image as left, top, right and bottom."""
        high, wide = self._scaled_size(height, width)
        whole = self._out_size(height, width)
        rows, columns = whole[0] - high, whole[1] - wide
        top, left = rows // 2, columns // 2
        return [left, top, columns - left, rows - top]

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        padding, fill = self._padding(*size), torchvision_private.fill_of(self, kind)
        return [*super()._moving_steps(params, size, kind), steps.Pad(padding, fill)]

    def _fill_of(self, inpt: Any) -> Any:
        """Return the value of the border of an input."""
        return torchvision_private.fill_of(self, type(inpt))


class PadIfNeeded(_FitTransform):
    """Pad an image whose sides are too small or not multiples of a number.

    Use :class:`Pad` for a border of fixed width, or :class:`LetterBox` to also resize the image.

    Parameters
    ----------
    size : int or (int, int), optional
        The least height and width in pixels.
    divisor : int or (int, int), optional
        The height and width are padded to multiples of these numbers.
    anchor : {"center", "top_left", "top_right", "bottom_left", "bottom_right"}
        The position of the image; if the padding around its center is odd, the greater part is below and to
        the right.
    fill : float, sequence of float, or dict
        The value of constant borders, as for :class:`Pad`.
    padding_mode : {"constant", "edge", "reflect", "symmetric"}
        The border mode, as for :class:`Pad`.

    Notes
    -----
    Reference: ``cv2.copyMakeBorder``, as in albumentations' PadIfNeeded, bit-exact, for every dtype:
    :func:`imgops.pad`. Masks, boxes and keypoints follow the image.
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        divisor: int | Sequence[int] | None = None,
        anchor: str = "center",
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        if isinstance(padding_mode, str) and padding_mode == "replicate":
            padding_mode = "edge"
        arguments = {
            "size": None if size is None else size_of(self, "size", size),
            "divisor": None if divisor is None else size_of(self, "divisor", divisor),
            "anchor": one_of(self, "anchor", anchor, ("center", *CORNERS)),
            "padding_mode": one_of(self, "padding_mode", padding_mode, _PADDING),
        }
        super().__init__(**arguments)
        _set_fill(self, fill)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        sides = [height, width]
        if self.size is not None:
            sides = [sym_max(n, least) for n, least in zip(sides, self.size, strict=True)]
        if self.divisor is not None:
            sides = [-(-n // by) * by for n, by in zip(sides, self.divisor, strict=True)]
        return sides[0], sides[1]

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        self._check_pixels(height, width)
        boxes = isinstance(inpt, ANNOTATIONS)
        fill = None if boxes else torchvision_private.fill_of(self, type(inpt))
        padding = self._padding(height, width)
        return self._pad(inpt, padding, fill, "constant" if boxes else self.padding_mode)

    def _padding(self, height: Any, width: Any) -> list[Any]:
        """Return the padding as left, top, right and bottom."""
        high, wide = self._out_size(height, width)
        above, before = CORNERS.get(self.anchor, (None, None))
        rows, columns = high - height, wide - width
        top = rows // 2 if above is None else rows * above
        left = columns // 2 if before is None else columns * before
        return [left, top, columns - left, rows - top]

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Pad(self._padding(*size), torchvision_private.fill_of(self, kind))]
