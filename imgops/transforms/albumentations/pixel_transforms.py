"""Counterparts that need albumentations' own arithmetic of values: holes, histograms, photons, files."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from imgops.transforms import dropout
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform, from_seed, integer, seed, uniform
from imgops.transforms.albumentations.rules import OUTSIDE, add_arguments
from imgops.transforms.filters import compression, morphology

# -- holes -----------------------------------------------------------------------------------------------


class _HolesCounterpart:
    """A dropout whose holes change boxes and keypoints as albumentations' do.

    ``rule`` holds the least area and the least share of a box that must stay visible, or None if there are no
    boxes, and whether keypoints in holes are dropped.
    """

    def __init__(self, *, rule: Any, **arguments: Any) -> None:
        super().__init__(**arguments)
        add_arguments(self, rule=rule)

    def _changes_annotations(self) -> bool:
        return True

    def move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        if self.rule[0] is None or not len(self.boxes_of(**params)):  # type: ignore[attr-defined]
            return boxes
        hole_mask = self.hole_mask(*canvas, **params)  # type: ignore[attr-defined]
        left = [self._visible_part(box, hole_mask) for box in boxes.long().clamp(min=0).tolist()]
        return torch.tensor(left, dtype=boxes.dtype).reshape(boxes.shape)

    def _visible_part(self, box: list[int], hole_mask: np.ndarray) -> list[int]:
        """Return the smallest box around the visible part of a box, or an empty one if that is too small."""
        least_area, least_share = self.rule[0]  # type: ignore[attr-defined]
        left, top, right, bottom = box
        visible = ~hole_mask[top:bottom, left:right]
        area = visible.sum()
        if not area or area < least_area or area / ((right - left) * (bottom - top)) < least_share:
            return [0, 0, 0, 0]
        rows, columns = visible.any(1).nonzero()[0], visible.any(0).nonzero()[0]
        return [left + columns[0], top + rows[0], left + columns[-1] + 1, top + rows[-1] + 1]

    def move_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        if not self.rule[1]:  # type: ignore[attr-defined]
            return points
        x, y = points[:, :1], points[:, 1:]
        left, top, right, bottom = torch.from_numpy(self.boxes_of(**params)).mT  # type: ignore[attr-defined]
        is_hole = ((x >= left) & (x < right) & (y >= top) & (y < bottom)).any(1, keepdim=True)
        return torch.where(is_hole, OUTSIDE, points)


class _CoarseDropoutCounterpart(_HolesCounterpart, dropout.CoarseDropout):
    pass


class _ErasingCounterpart(_HolesCounterpart, dropout.CoarseDropout):
    """A dropout of one hole, sampled by its area and the ratio of its sides."""

    def __init__(self, *, scale: Any, ratio: Any, **arguments: Any) -> None:
        super().__init__(**{**arguments, "num_holes": 1})
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


class _GridDropoutCounterpart(_HolesCounterpart, dropout.GridDropout):
    """A dropout of holes in cells of nearly equal sizes, in random order."""

    def __init__(self, *, unit: Any, shift: Any, **arguments: Any) -> None:
        super().__init__(**arguments)
        add_arguments(self, unit=unit, shift=shift)

    def boxes_of(self, seed: float, rows: float, columns: float) -> np.ndarray:
        size, draws = (int(rows), int(columns)), np.random.default_rng(int(seed))
        if self.cells is not None:
            counts = tuple(reversed(self.cells))
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


class _PixelDropoutCounterpart(_HolesCounterpart, dropout.PixelDropout):
    """A dropout of single pixels, which may drop boxes but leaves keypoints alone."""

    def move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        if self.rule[0] is None or self.per_channel or not boxes.numel():
            return boxes
        visible = torch.from_numpy(~self.hole_mask(*canvas, **params))
        y, x = (torch.arange(n)[:, None] for n in canvas)
        left, top, right, bottom = boxes.mT
        # The pixels at the edges of a box belong to it, as in albumentations.
        rows, columns = ((y >= top) & (y <= bottom)).double(), ((x >= left) & (x <= right)).double()
        area = torch.einsum("yn,yx,xn->n", rows, visible.double(), columns)
        is_visible = (area >= self.rule[0][0]) & (area / ((right - left) * (bottom - top)) >= self.rule[0][1])
        return torch.where(is_visible[:, None], boxes, 0.0)

    def move_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        return points


# -- histograms, photons, files --------------------------------------------------------------------------


class _HistogramCounterpart(ProbabilisticTransform):
    """A lookup table for each channel, made from its histogram."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__(p, False, None, mode=mode)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def change_image(self, image: Tensor) -> Tensor:
        whole = image.dtype == torch.uint8
        levels = image if whole else (image.clamp(0, 1) * 255).round()
        flat = levels.reshape(-1, image.shape[-2] * image.shape[-1]).long()
        counts = torch.zeros(len(flat), 256, dtype=torch.int64, device=flat.device)
        counts.scatter_add_(1, flat, torch.ones_like(flat))
        tables = np.stack([_TABLES[self.mode](row) for row in counts.cpu().numpy()]).astype(np.uint8)
        out = torch.from_numpy(tables).to(flat.device).gather(1, flat).reshape(image.shape)
        return out if whole else out.to(image.dtype) / 255


def _equalize(counts: np.ndarray) -> np.ndarray:
    """Return the lookup table of ``cv2.equalizeHist``."""
    first = counts.nonzero()[0][0]
    rest = counts.sum() - counts[first]
    if not rest:
        return np.arange(256)
    above = np.maximum(counts.cumsum() - counts[first], 0).astype(np.float32)
    return np.rint(above * (np.float32(255) / np.float32(rest)))


def _equalize_by_steps(counts: np.ndarray) -> np.ndarray:
    """Return nearly PIL's lookup table, which counts half of each level's pixels above it and half below."""
    step = counts[: counts.nonzero()[0][-1]].sum() // 255
    return np.minimum((counts.cumsum() + step // 2) // step, 255) if step else np.arange(256)


def _ends(counts: np.ndarray) -> tuple[int, int]:
    """Return the lowest and the highest level that occur; albumentations' range ends before 255."""
    levels = counts[:255].nonzero()[0]
    return (levels[0], levels[-1]) if len(levels) else (0, 0)


def _stretch(counts: np.ndarray) -> np.ndarray:
    low, high = _ends(counts)
    if high <= low:
        return np.arange(256)
    table = np.round((np.arange(256.0) - low) * (255 / (high - low))).clip(0, 255)
    table[high + 1 :] = 255
    return table


def _flatten(counts: np.ndarray) -> np.ndarray:
    low, high = _ends(counts)
    if high <= low:
        return np.arange(256)
    above = (counts[low : high + 1].cumsum() - counts[low]).astype(np.float32)
    table = np.zeros(256, dtype=np.float32)
    table[low : high + 1] = np.round(above * np.float32(255) / above[-1])
    table[high + 1 :] = 255
    return table


_TABLES = {
    "equalize": _equalize,
    "equalize by steps": _equalize_by_steps,
    "contrast": _stretch,
    "contrast by counts": _flatten,
}


class _ShotNoiseCounterpart(ProbabilisticTransform):
    """Shot noise, whose photons are counted for intensities to the power of 2.2."""

    random_parameters = (IS_APPLIED, Parameter("scale"), Parameter("seed"))
    _known = ("scale", "seed")

    def __init__(self, p: float, scale: Any) -> None:
        super().__init__(p, False, None, scale=scale)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"scale": uniform(tuple(self.scale)), "seed": seed()}

    def change_image(self, image: Tensor, scale: float, seed: float) -> Tensor:
        whole = image.dtype == torch.uint8
        real = image.to("cpu", torch.float32) / 255 if whole else image.to("cpu", torch.float32)
        counts = torch.poisson(real.clamp(min=0) ** 2.2 / scale + 1e-6, generator=from_seed(seed))
        out = (counts * scale).clamp(0, 1) ** (1 / 2.2)
        return (out * 255).round().to(image) if whole else out.to(image)


class _CompressionCounterpart(compression.RandomCompression):
    """A compression that stores red as blue, as OpenCV does, which expects BGR."""

    def change_image(self, image: Tensor, quality: Tensor) -> Tensor:
        return super().change_image(image.flip(-3), quality).flip(-3)


class _MorphologyCounterpart(morphology.RandomMorphology):
    """A morphology by one structuring element of a fixed width and height."""

    def __init__(self, *, element: Any, **arguments: Any) -> None:
        super().__init__(**arguments)
        add_arguments(self, element=element)

    def change_image(self, image: Tensor, kernel_size: float) -> Tensor:
        element = torch.from_numpy(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, tuple(self.element)))
        return imgops.morphology(image, self.operation, element)
