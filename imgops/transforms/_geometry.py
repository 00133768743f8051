"""The geometric transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops._torch_private import tree_flatten, tree_unflatten
from imgops.transforms import _torchvision
from imgops.transforms._base import ANNOTATIONS, Drawn, Ours, fill_of, moved, shape_of
from imgops.transforms._draw import Plan, flipped
from imgops.transforms.functional import _kernels, _matrices


class Resize(Ours, v2.Resize):
    """As torchvision's, with PIL's and OpenCV's pixels."""

    _drawing = ("size", "max_size")
    _moves = True

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        high, wide = _torchvision.resized_size((height, width), self.size, self.max_size)
        return high, wide


class CenterCrop(Ours, v2.CenterCrop):
    """As torchvision's."""

    _drawing = ("size",)
    _moves = True

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class Pad(Ours, v2.Pad):
    """As torchvision's; a border may be wider than the image."""

    _drawing = ("padding", "padding_mode")
    _moves = True

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        return grown(height, width, sides([self.padding] if isinstance(self.padding, int) else self.padding))


def sides(padding: Sequence[int]) -> tuple[int, ...]:
    """left, top, right, bottom."""
    return tuple(padding) * (4 // len(padding))


def grown(height: int, width: int, padding: Sequence[int]) -> tuple[int, int]:
    """The size with a border of left, top, right, bottom."""
    left, top, right, bottom = padding
    return height + top + bottom, width + left + right


class _Flip(Drawn):
    _drawing = ("p",)
    _moves = True
    _dim = -1

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [1.0]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0]

    def _params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {} if numbers[0] else None

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        return flipped(image, numbers[..., 0] > 0, self._dim)

    def _mask(self, mask: Tensor, numbers: Tensor) -> Tensor:
        return self._image(mask, numbers, Tensor)


class RandomHorizontalFlip(_Flip, v2.RandomHorizontalFlip):
    """As torchvision's, and per sample."""


class RandomVerticalFlip(_Flip, v2.RandomVerticalFlip):
    """As torchvision's, and per sample."""

    _dim = -2


class RandomResizedCrop(Drawn, v2.RandomResizedCrop):
    """As torchvision's, with PIL's pixels, and per sample."""

    _drawing = ("size", "scale", "ratio")
    _size = 4
    _moves = True

    def _flat(self, params: dict[str, Any]) -> list[float]:
        top, left = params["top"], params["left"]
        return [left, top, left + params["width"], top + params["height"]]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0, 0.0, width, height]

    def _params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        left, top, right, bottom = map(int, numbers)
        return {"top": top, "left": left, "height": bottom - top, "width": right - left}

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        return _kernels.crop_boxes(image, numbers.long(), self.size, self.interpolation, self.antialias)

    def _mask(self, mask: Tensor, numbers: Tensor) -> Tensor:
        return _kernels.crop_boxes(mask, numbers.long(), self.size, InterpolationMode.NEAREST, None)

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class RandomCrop(Drawn, v2.RandomCrop):
    """As torchvision's, and per sample."""

    _drawing = ("size", "pad_if_needed")
    _size = 2
    _moves = True

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [params["left"], params["top"]]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0, 0.0]

    def _params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        left, top = map(int, numbers)
        crop = {"needs_crop": True, "top": top, "left": left, "height": self.size[0], "width": self.size[1]}
        return crop | {"needs_pad": False}

    def _padding(self, height: int, width: int) -> list[int]:
        """left, top, right, bottom."""
        left, right, top, bottom = self.padding if self.padding is not None else (0, 0, 0, 0)
        if self.pad_if_needed:
            more_rows = max(self.size[0] - height - top - bottom, 0)
            more_columns = max(self.size[1] - width - left - right, 0)
            left, right, top, bottom = (
                left + more_columns,
                right + more_columns,
                top + more_rows,
                bottom + more_rows,
            )
        return [left, top, right, bottom]

    def _plan(self, shape: Sequence[int], plan: Plan) -> Sequence[int] | None:
        channels, height, width = shape
        padded = grown(height, width, self._padding(height, width))
        if padded == tuple(self.size):
            return (channels, *padded)  # there is nothing to draw
        return super()._plan((channels, *padded), plan)

    def _run(self, inputs: tuple[Any, ...], stream: Any) -> Any:
        """What is padded is the same for all draws, so it comes first."""
        flat, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        needs = self._needs_transform_list(flat)
        _, height, width = shape_of([x for x, n in zip(flat, needs, strict=True) if n])
        padding = self._padding(height, width)
        high, wide = grown(height, width, padding)
        if high < self.size[0] or wide < self.size[1]:
            what = "padded " if self.padding is not None else ""
            wanted = tuple(self.size)
            raise ValueError(
                f"Required crop size {wanted} is larger than {what}input image size {(high, wide)}."
            )
        if any(padding):
            flat = [
                self._padded(x, padding, (height, width)) if n else x
                for x, n in zip(flat, needs, strict=True)
            ]
        if (high, wide) == tuple(self.size):
            return tree_unflatten(flat, spec)
        padded = tree_unflatten(flat, spec)
        return super()._run(padded if len(inputs) > 1 else (padded,), stream)

    def _padded(self, inpt: Any, padding: list[int], canvas: tuple[int, int]) -> Any:
        if not isinstance(inpt, ANNOTATIONS):
            how = {"fill": fill_of(self, type(inpt)), "padding_mode": self.padding_mode}
            return self._call_kernel(v2.functional.pad, inpt, padding=padding, **how)
        left, top, right, bottom = padding
        config = f'"padding": [{left}, {top}, {right}, {bottom}], "padding_mode": "{self.padding_mode}"'
        spec = f'["Pad", {{{config}}}]'
        return moved(inpt, torch.zeros(0, dtype=torch.float64), canvas, spec, grown(*canvas, padding))

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        left, top = numbers[..., :1].long(), numbers[..., 1:].long()
        boxes = torch.cat([left, top, left + self.size[1], top + self.size[0]], -1)
        return _kernels.crop_boxes(image, boxes, self.size, InterpolationMode.NEAREST_EXACT, None)

    def _mask(self, mask: Tensor, numbers: Tensor) -> Tensor:
        return self._image(mask, numbers, Tensor)

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class _Warp(Drawn):
    _moves = True

    def _matrix(self, numbers: Tensor, height: int, width: int) -> Tensor:
        raise NotImplementedError

    def _warped(self, image: Tensor, numbers: Tensor, interpolation: Any, fill: Any) -> Tensor:
        matrix = self._matrix(numbers, *image.shape[-2:])
        return _kernels.warp(image, matrix, interpolation, fill)

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        return self._warped(image, numbers, self.interpolation, fill_of(self, kind))  # type: ignore[attr-defined]

    def _mask(self, mask: Tensor, numbers: Tensor) -> Tensor:
        return self._warped(mask, numbers, InterpolationMode.NEAREST, fill_of(self, tv_tensors.Mask))


class RandomRotation(_Warp, v2.RandomRotation):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _drawing = ("degrees", "expand", "center")

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [params["angle"]]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0]

    def _params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        return {"angle": numbers[0]}

    def _run(self, inputs: tuple[Any, ...], stream: Any) -> Any:
        if self.expand:
            must = "expand must be False where a graph is compiled or samples draw for themselves"
            raise NotImplementedError(f"RandomRotation: {must}: the size would depend on the draw, got True")
        return super()._run(inputs, stream)

    def _matrix(self, numbers: Tensor, height: int, width: int) -> Tensor:
        return _matrices.affine(-numbers[..., 0], (0.0, 0.0), 1.0, (0.0, 0.0), self.center, height, width)


class RandomAffine(_Warp, v2.RandomAffine):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _drawing = ("degrees", "translate", "scale", "shear", "center")
    _size = 6

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [params["angle"], *params["translate"], params["scale"], *params["shear"]]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]

    def _params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        angle, x, y, scale, *shear = numbers
        return {"angle": angle, "translate": (int(x), int(y)), "scale": scale, "shear": tuple(shear)}

    def _matrix(self, numbers: Tensor, height: int, width: int) -> Tensor:
        angle, x, y, scale, *shear = numbers.unbind(-1)
        return _matrices.affine(angle, (x, y), scale, shear, self.center, height, width)


class RandomPerspective(_Warp, v2.RandomPerspective):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _drawing = ("distortion_scale", "p")
    _size = 9

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [1.0, *params["coefficients"]]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0] * 9

    def _params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {"coefficients": numbers[1:]} if numbers[0] else None

    def _warped(self, image: Tensor, numbers: Tensor, interpolation: Any, fill: Any) -> Tensor:
        return _kernels.warp_corners(image, _matrices.of_coefficients(numbers), interpolation, fill)
