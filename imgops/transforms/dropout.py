"""Dropouts, which remove parts of an image and may affect boxes and keypoints in these parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import v2

from imgops._common import check
from imgops.kernels.cpu import _threads
from imgops.transforms._core import draws, rotated_boxes, seeding, steps
from imgops.transforms._core.arguments import (
    check_held,
    fill_tensor,
    fill_values,
    in_range,
    one_number,
    one_of,
    switch,
)
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.inputs import ANNOTATIONS
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, from_seed, integer, seed, uniform
from imgops.transforms._core.torchvision_private import log_ratio, set_log_ratio

__all__ = ["CoarseDropout", "GridDropout", "PixelDropout", "RandomErasing"]

Fill = float | Sequence[float] | str


Range = float | Sequence[float]


class RandomErasing(RandomTransform, v2.RandomErasing):
    """Erase a random box of the image with a probability, as torchvision's RandomErasing does.

    The transform erases one box, and does not change masks, boxes and keypoints; use
    :class:`CoarseDropout` for several boxes, for sides in pixels, and for masks and bounding boxes that
    follow.

    Parameters
    ----------
    scale : (float, float)
        The range of the box's area, as a share of the image's area.
    ratio : (float, float)
        The range of the box's height over its width.
    value : float, sequence of float, or "random"
        The value of the erased pixels, or one for each channel, or "random" for standard normal noise. On
        uint8 the noise is cast to bytes, as in torchvision: about 0 to 4, and 252 to 255.
    inplace : bool
        Whether to overwrite the input.
    """

    _config = ("p", "scale", "ratio", "value", "_log_ratios")
    _log_ratios = property(log_ratio)

    @classmethod
    def _from_config(cls, value: Any, _log_ratios: list[float], **config: Any) -> RandomErasing:
        made = cls(value="random" if value is None else value, **config)
        set_log_ratio(made, _log_ratios)
        return made

    _random_parameters = (
        Parameter("box", 4, kind=int),
        Parameter("pixels", lambda t, shape: 0 if t.value is not None else shape[1] * shape[2] * shape[3]),
    )

    _draws_much = True

    @property
    def _channels(self) -> check.Channels | None:  # type: ignore[override]
        count = 1 if self.value is None else len(self.value)
        return None if count == 1 else check.Channels((count,), "value has a number for each channel")

    def _draw_rule(self, shape: Shape) -> draws.Rule | None:
        if self.value is None:  # noise
            return None
        return [draws.chance(self.p, draws.erase(0, shape, self.scale, self._log_ratios))]

    def _draw(self, inputs: Any) -> Numbers | None:
        if seeding.is_left_out(self.p):
            return None
        with _threads.OneATenThread():  # for the random pixels
            values = self.make_params(inputs)
            return None if values["v"] is None else self._numbers_from(values, 0, 0)

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        left, top = values["j"], values["i"]
        box = [left, top, left + values["w"], top + values["h"]]
        if self.value is not None:
            return box
        return torch.cat([torch.tensor(box, dtype=torch.float32, device="cpu"), values["v"].flatten()])

    def _draw_row(self, shape: Shape) -> Numbers | None:
        numbers = super()._draw_row(shape)
        if numbers is None or self.value is not None:
            return numbers
        left, top, right, bottom = (int(n) for n in numbers[:4])
        canvas = torch.zeros(
            tuple(shape[1:]), dtype=torch.float64, device="cpu"
        )  # rows of a batch need equal lengths
        canvas[:, top:bottom, left:right] = numbers[4:].reshape(shape[1], bottom - top, right - left)
        return torch.cat([numbers[:4], canvas.flatten()])

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        left, top, right, bottom = map(int, numbers[:4])
        if right == left or bottom == top:
            return None
        if self.value is None:
            value = torch.tensor(numbers[4:], dtype=torch.float32, device="cpu")
            channels, rest = divmod(len(value), height * width)
            if rest or not channels:  # only the pixels of the box
                value = value.reshape(-1, bottom - top, right - left)
            else:
                value = value.reshape(channels, height, width)[:, top:bottom, left:right]
        else:
            value = torch.tensor(self.value, dtype=torch.float32, device="cpu")[:, None, None]
        return {"i": top, "j": left, "h": bottom - top, "w": right - left, "v": value}

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Erase(params.numbers, self.value, self.inplace)]


#: The largest number of holes; each hole takes four numbers per sample.
_MOST_HOLES = 10000


class _Dropout(ProbabilisticTransform):
    """A transform that replaces the pixels of a mask ``(H, W)``, which ``_hole_mask`` returns."""

    _moves = True
    _goes_back = True

    @property
    def _one_size(self) -> bool:  # type: ignore[override]
        return self.mask_fill is not None or self.min_visible > 0

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return []  # pixels stay where they are

    def _hole_mask(self, height: int, width: int, **params: Any) -> np.ndarray:
        raise NotImplementedError

    def _change_mask(self, mask: Tensor, **params: Any) -> Tensor:
        if self.mask_fill is None:
            return mask
        check_held(self, "mask_fill", self.mask_fill, mask.dtype)
        is_hole = torch.from_numpy(self._hole_mask(*mask.shape[-2:], **params))
        fill = torch.full((), self.mask_fill, dtype=mask.dtype, device=mask.device)
        return torch.where(is_hole.to(mask.device, non_blocking=True), fill, mask)

    def _follow(self, inpt: Any, params: Params) -> Any:
        return inpt  # a hole hides the scene, but does not move it

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        if isinstance(inpt, ANNOTATIONS) and not self.min_visible:  # nothing moves, in any format
            return inpt
        return super()._by_torchvision(inpt, values)

    def _move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        if not boxes.numel():
            return boxes
        sums = np.pad(
            self._hole_mask(*canvas, **params).astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0))
        )
        height, width = canvas
        left, right = (boxes[:, i].round().long().clamp(0, width).numpy() for i in (0, 2))
        top, bottom = (boxes[:, i].round().long().clamp(0, height).numpy() for i in (1, 3))
        is_hole = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
        area = np.maximum((right - left) * (bottom - top), 1)
        is_visible = torch.from_numpy(1 - is_hole / area >= self.min_visible)
        return torch.where(is_visible[:, None], boxes, 0.0)

    def _move_polygons(self, polygons: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        holes = self._hole_mask(*canvas, **params)
        hidden = torch.tensor(
            [rotated_boxes.share_inside(holes, p) for p in polygons.numpy()],
            dtype=torch.float32,
            device="cpu",
        )
        return torch.where((1 - hidden >= self.min_visible)[:, None, None], polygons, 0.0)


def _fills(owner: Any, fill: Any, mask_fill: Any, min_visible: Any) -> dict[str, Any]:
    """Check the arguments that all dropouts share, and return them by name."""
    return {
        "fill": fill,
        "mask_fill": None if mask_fill is None else one_number(owner, "mask_fill", mask_fill),
        "min_visible": one_number(owner, "min_visible", min_visible, 0.0, 1.0),
    }


def _noise_or_values(owner: Any, fill: Any) -> Any:
    if isinstance(fill, str):
        return one_of(owner, "fill", fill, ("random",))
    return fill_values(owner, "fill", fill)


class PixelDropout(_Dropout):
    """Set random pixels to one value, with a probability.

    Use :class:`CoarseDropout` for boxes, :class:`RandomSaltAndPepper` for white and black pixels.

    Parameters
    ----------
    amount : float
        The share of pixels that are replaced, in [0, 1].
    per_channel : bool
        Whether the pixels are drawn separately for each channel.
    fill : float
        The value.
    mask_fill : float, optional
        The value of the same pixels of masks; by default masks are not changed. Not with ``per_channel``.

    Notes
    -----
    Reference: NumPy's ``where``, as in albumentations' PixelDropout, bit-exact for the same pixels, for every
    dtype. The gradient goes to the pixels that stay.
    """

    _random_parameters = (IS_APPLIED, Parameter("seed"))
    _known = ("seed",)

    def __init__(
        self,
        amount: float = 0.05,
        per_channel: bool = False,
        fill: float = 0.0,
        mask_fill: float | None = None,
        min_visible: float = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        share = one_number(self, "amount", amount, 0.0, 1.0)
        per_channel = switch(self, "per_channel", per_channel)
        if per_channel and (mask_fill is not None or min_visible):
            must = "PixelDropout: mask_fill must be None and min_visible 0 with per_channel=True"
            raise ValueError(f"{must}, got {mask_fill} and {min_visible}")
        fills = _fills(self, one_number(self, "fill", fill), mask_fill, min_visible)
        super().__init__(p, per_sample, generator, amount=share, per_channel=per_channel, **fills)

    def _draw_pixels(self, shape: Sequence[int], value: float) -> Tensor:
        return torch.rand(*shape, generator=from_seed(value), dtype=torch.float32, device="cpu") < self.amount

    def _hole_mask(self, height: int, width: int, seed: float) -> np.ndarray:
        return self._draw_pixels((height, width), seed).numpy()

    def _change_image(self, image: Tensor, seed: float) -> Tensor:
        shape = image.shape[-3:] if self.per_channel else image.shape[-2:]
        is_hole = self._draw_pixels(shape, seed).to(image.device, non_blocking=True)
        return torch.where(is_hole, fill_tensor(self, "fill", self.fill, image), image)


class _Holes(_Dropout):
    """A dropout of boxes ``(n, 4)``, left, top, right and bottom in pixels, which ``_boxes_of`` returns."""

    def _hole_mask(self, height: int, width: int, **params: Any) -> np.ndarray:
        is_hole = np.zeros((height, width), dtype=bool)
        for left, top, right, bottom in self._boxes_of(**params):
            is_hole[top:bottom, left:right] = True
        return is_hole

    def _boxes_of(self, **params: Any) -> np.ndarray:
        raise NotImplementedError

    def _change_image(self, image: Tensor, **params: Any) -> Tensor:
        out = image.clone()
        generator = from_seed(params["seed"]) if self.fill == "random" else None
        fill = None if generator else fill_tensor(self, "fill", self.fill, image)
        for left, top, right, bottom in self._boxes_of(**params):
            part = out[..., top:bottom, left:right]
            if fill is not None:
                part.copy_(fill.expand_as(part))
            elif image.dtype == torch.uint8:
                noise = torch.randint(256, part.shape, dtype=torch.uint8, generator=generator, device="cpu")
                part.copy_(noise, non_blocking=True)
            else:
                part.copy_(
                    torch.rand(part.shape, generator=generator, dtype=torch.float32, device="cpu"),
                    non_blocking=True,
                )
        return out


class CoarseDropout(_Holes):
    """Fill random boxes, with a probability.

    Use :class:`RandomErasing` for torchvision's draws of one box, :class:`GridDropout` for boxes in a grid,
    :class:`PixelDropout` for single pixels.

    Parameters
    ----------
    num_holes : int or (int, int)
        The range of the number of boxes.
    height, width : number or (number, number)
        The ranges of the sides of the boxes: floats up to 1 are shares of the image's sides, integers are
        pixels.
    fill : float, sequence of float, or "random"
        The value, or one for each channel, or noise in the image's range.
    mask_fill : float, optional
        The value of the same pixels of masks; by default masks are not changed.

    Notes
    -----
    Reference: NumPy's slices, as in albumentations' CoarseDropout, bit-exact for the same holes, for every
    dtype. The gradient goes to the pixels that stay.
    """

    def __init__(
        self,
        num_holes: int | Sequence[int] = (1, 2),
        height: Range = (0.1, 0.2),
        width: Range = (0.1, 0.2),
        fill: Fill = 0.0,
        mask_fill: float | None = None,
        min_visible: float = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        counts = in_range(self, "num_holes", num_holes, 1, _MOST_HOLES, whole=True)
        sides: dict[str, tuple[Any, Any]] = {}
        for name, value in (("height", height), ("width", width)):
            bounds = in_range(self, name, value, 0)
            sides[name] = in_range(self, name, value, 0.0, 1.0) if isinstance(bounds[1], float) else bounds
        fills = _fills(self, _noise_or_values(self, fill), mask_fill, min_visible)
        self._random_parameters = (
            IS_APPLIED,
            Parameter("seed"),
            Parameter("count"),
            Parameter("places", 4 * counts[1]),
        )
        super().__init__(p, per_sample, generator, num_holes=counts, **sides, **fills)

    _known = ("seed", "count", "places")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        count = integer(self.num_holes)
        boxes: list[float] = []
        for _ in range(count):
            high, wide = _side(self.height, height), _side(self.width, width)
            top, left = integer((0, height - high)), integer((0, width - wide))
            boxes += [left, top, left + wide, top + high]
        boxes += [0.0] * (4 * (self.num_holes[1] - count))
        return {"seed": seed() if self.fill == "random" else 0, "count": count, "places": boxes}

    def _boxes_of(self, count: float, places: Sequence[float], seed: float) -> np.ndarray:
        return np.asarray(places[: 4 * int(count)], dtype=np.int64).reshape(-1, 4)


def _side(bounds: tuple[Any, Any], extent: int) -> int:
    if isinstance(bounds[1], float):
        return int(extent * uniform(bounds))
    return integer((int(min(bounds[0], extent)), min(bounds[1], extent)))


class GridDropout(_Holes):
    """Fill a box in each cell of a grid, with a probability.

    Use :class:`CoarseDropout` for a few boxes anywhere.

    Parameters
    ----------
    ratio : float
        The side of a box as a share of its cell's, in (0, 1].
    cells : (int, int), optional
        The numbers of cells along x and y; by default each cell is a tenth of the image, and at least 2
        pixels.
    random_offset : bool
        Whether each box lies anywhere in its cell, or at its upper left corner.
    fill : float, sequence of float, or "random"
        The value, or one for each channel, or noise in the image's range.
    mask_fill : float, optional
        The value of the same pixels of masks; by default masks are not changed.

    Notes
    -----
    Reference: NumPy's slices, as in albumentations' GridDropout, bit-exact for the same holes, for every
    dtype. The gradient goes to the pixels that stay.
    """

    _random_parameters = (IS_APPLIED, Parameter("seed"), Parameter("rows"), Parameter("columns"))
    _known = ("seed", "rows", "columns")

    def __init__(
        self,
        ratio: float = 0.5,
        cells: Sequence[int] | None = None,
        random_offset: bool = True,
        fill: Fill = 0.0,
        mask_fill: float | None = None,
        min_visible: float = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        share = one_number(self, "ratio", ratio, 1e-6, 1.0)
        counts = None if cells is None else _both(self, cells)
        fills = _fills(self, _noise_or_values(self, fill), mask_fill, min_visible)
        is_random = switch(self, "random_offset", random_offset)
        how = {"ratio": share, "cells": counts, "random_offset": is_random}
        super().__init__(p, per_sample, generator, **how, **fills)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        return {"seed": seed(), "rows": height, "columns": width}

    def _boxes_of(self, seed: float, rows: float, columns: float) -> np.ndarray:
        # A hole in each cell.
        across, down = self.cells or (0, 0)
        sides = []
        for extent, count in ((int(rows), down), (int(columns), across)):
            size = extent // count if count else max(2, extent // 10)
            sides.append(np.append(np.arange(0, extent, max(size, 1)), extent))
        (tops, bottoms), (lefts, rights) = ((s[:-1], s[1:]) for s in sides)
        high = np.clip((bottoms - tops) * self.ratio, 1, np.maximum(bottoms - tops - 1, 1)).astype(np.int64)
        wide = np.clip((rights - lefts) * self.ratio, 1, np.maximum(rights - lefts - 1, 1)).astype(np.int64)
        top, left = (np.repeat(tops[:, None], len(lefts), 1), np.repeat(lefts[None], len(tops), 0))
        if self.random_offset:
            shares = torch.rand(
                2, *top.shape, generator=from_seed(seed), dtype=torch.float64, device="cpu"
            ).numpy()
            top = top + (shares[0] * (bottoms - tops - high + 1)[:, None]).astype(np.int64)
            left = left + (shares[1] * (rights - lefts - wide + 1)[None]).astype(np.int64)
        return np.stack([left, top, left + wide[None], top + high[:, None]], -1).reshape(-1, 4)


def _both(owner: Any, cells: Any) -> tuple[int, int]:
    if not isinstance(cells, (tuple, list)) or len(cells) != 2:
        error = ValueError if isinstance(cells, (tuple, list)) else TypeError
        raise error(f"GridDropout: cells must be 2 integers, along x and y, got {cells!r:.120}")
    along_x, along_y = (one_number(owner, "cells", n, 1, whole=True) for n in cells)
    return along_x, along_y
