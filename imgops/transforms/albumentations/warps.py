"""Counterparts that need albumentations' own arithmetic of positions: warps, distortions, borders, a crop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops.transforms._core import torchvision_private
from imgops.transforms._core.base import ANNOTATIONS
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform, from_seed, integer, uniform
from imgops.transforms.albumentations.rules import OUTSIDE, add_arguments
from imgops.transforms.geometry import distortion, fit, inverse_map

# -- warps by a matrix -----------------------------------------------------------------------------------


class _MatrixWarp(ProbabilisticTransform):
    """A warp by a forward matrix ``(3, 3)`` between positions of pixels, which ``matrix`` returns."""

    _moves = True
    random_parameters = (IS_APPLIED, Parameter("matrix", 9))
    #: The offset from the coordinates of the matrix to those of the edges of boxes.
    _offset = 0.0

    def __init__(
        self, p: float, interpolation: str, padding_mode: str, fill: Any, mask_fill: Any, **arguments: Any
    ) -> None:
        how = {"interpolation": interpolation, "padding_mode": padding_mode}
        super().__init__(p, False, None, **how, fill=fill, mask_fill=mask_fill, **arguments)

    def matrix(self, height: int, width: int) -> np.ndarray:
        raise NotImplementedError

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self.shape_of(flat_inputs)
        return {"matrix": self.matrix(height, width).ravel().tolist()}

    def _warp(self, image: Tensor, matrix: Tensor, interpolation: str, fill: Any) -> Tensor:
        square = matrix.unflatten(-1, (3, 3))
        return imgops.warp_perspective(image, square, None, interpolation, self.padding_mode, fill)

    def change_image(self, image: Tensor, matrix: Tensor) -> Tensor:
        fill = self.fill if self.padding_mode == "constant" else 0
        return self._warp(image, matrix, self.interpolation, fill)

    def change_mask(self, mask: Tensor, matrix: Tensor) -> Tensor:
        fill = self.mask_fill if self.padding_mode == "constant" else 0
        return self._warp(mask, matrix, "nearest", fill)

    def move_points(self, points: Tensor, canvas: tuple[int, int], matrix: Tensor) -> Tensor:
        square = matrix.reshape(3, 3)
        positions = points @ square[:, :2].mT + square[:, 2]
        return positions[:, :2] / positions[:, 2:]

    def move_boxes(self, boxes: Tensor, canvas: tuple[int, int], matrix: Tensor) -> Tensor:
        corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 2) - self._offset
        positions = self.move_points(corners, canvas, matrix).reshape(-1, 4, 2) + self._offset
        return torch.cat(positions.aminmax(dim=1), -1)


class _AffineCounterpart(_MatrixWarp):
    """Scale, rotate, shear and shift an image around its center."""

    _offset = 0.5

    def _warp(self, image: Tensor, matrix: Tensor, interpolation: str, fill: Any) -> Tensor:
        upper = matrix.unflatten(-1, (3, 3))[..., :2, :]
        return imgops.warp_affine(image, upper, None, interpolation, self.padding_mode, fill)

    def matrix(self, height: int, width: int) -> np.ndarray:
        if self.pixels is not None:
            shift: list[float] = [integer(tuple(bounds)) for bounds in self.pixels]
        else:
            sides = (width, height)
            shift = [int(uniform(b) * side) for b, side in zip(self.shares, sides, strict=True)]
        slant = [np.tan(np.deg2rad(-uniform(bounds))) for bounds in self.shear]
        scale = [self._factor(bounds) for bounds in self.scale]
        if self.keep_ratio:
            scale[1] = scale[0]
        angle = np.deg2rad(uniform(self.rotate))
        sine, cosine = np.sin(angle), np.cos(angle)
        turn = np.array([[cosine, sine], [-sine, cosine]])  # counterclockwise, as y points down
        linear = np.array([[1, slant[0]], [slant[1], 1]]) @ turn @ np.diag(scale)
        center = np.array([width / 2 - 0.5, height / 2 - 0.5])
        return np.block([[linear, (center + shift - linear @ center)[:, None]], [np.zeros(2), np.ones(1)]])

    def _factor(self, bounds: Any) -> float:
        low, high = bounds
        if not self.balanced:
            return uniform((low, high))
        parts = [(low, 1.0)] if low < 1 else []
        parts += [(1.0, high)] if high > 1 else []
        return uniform(parts[integer((0, len(parts) - 1))]) if parts else 1.0


class _PerspectiveCounterpart(_MatrixWarp):
    """Stretch a quadrangle whose corners lie near those of the image over the whole image."""

    def matrix(self, height: int, width: int) -> np.ndarray:
        moves = torch.randn(4, 2, dtype=torch.float64).numpy() * uniform(self.scale)
        inwards = np.mod(np.abs(moves), 0.32)
        ends = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])  # clockwise from the upper left
        corners = np.abs(ends - inwards) * (width, height)
        # albumentations stretches to the quadrangle's longest sides, in whole pixels, and then resizes.
        across, down = corners[[1, 2]] - corners[[0, 3]], corners[[2, 3]] - corners[[1, 0]]
        longest = [max(int(np.linalg.norm(sides, axis=1).max()), 2) for sides in (across, down)]
        targets = ends * (width, height) * (width, height) / longest
        return _homography(corners, targets)


def _homography(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the matrix that moves four points to four others."""
    rows, values = [], []
    for (x, y), (u, v) in zip(sources, targets, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.append(np.linalg.solve(np.array(rows), np.array(values)), 1.0).reshape(3, 3)


# -- distortions by a map --------------------------------------------------------------------------------


class _LosesPoints:
    """A distortion that drops the keypoints that it moves out of the image."""

    def move_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        map = self._on_canvas(*canvas, torch.float64, params)  # type: ignore[attr-defined]
        positions = inverse_map.points(map, points)
        # A point that the map does not reach was put at the nearest position, where it still misses.
        miss = imgops.remap(map, positions.mT[..., None], "bilinear", "edge")[..., 0].mT - points
        limit = torch.tensor([canvas[1], canvas[0]], dtype=points.dtype) - 0.5
        known = (miss.norm(dim=-1) < 0.75) & ((positions > -0.5) & (positions < limit)).all(1)
        return torch.where(known[:, None], positions, OUTSIDE)


class _ElasticCounterpart(_LosesPoints, distortion.RandomElastic):
    """An elastic distortion by albumentations' noise, whose two directions are smoothed as one image."""

    def __init__(self, *, noise: str, same: bool, kernel: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        add_arguments(self, noise=noise, same=same, kernel=kernel)

    def map_of(
        self, height: int, width: int, dtype: torch.dtype, alpha: float, sigma: float, seed: float
    ) -> Tensor:
        shape, generator = (1 if self.same else 2, height, width), from_seed(seed)
        if self.noise == "gaussian":
            noise = torch.randn(shape, generator=generator)
            noise = noise / noise.abs().max().clamp(min=1e-6)
        else:
            noise = torch.rand(shape, generator=generator) * 2 - 1
        kernel = (self.kernel, self.kernel)
        smooth = cv2.GaussianBlur(
            noise.reshape(-1, width).numpy(), kernel, sigma, borderType=cv2.BORDER_REPLICATE
        )
        move = torch.from_numpy(smooth).reshape(shape).expand(2, -1, -1) * alpha
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        return (torch.stack([x, y]) + move).to(dtype)


class _GridDistortionCounterpart(_LosesPoints, distortion.RandomGridDistortion):
    pass


class _LensCounterpart(_LosesPoints, distortion.RandomOpticalDistortion):
    pass


class _SplineCounterpart(_LosesPoints, distortion.RandomThinPlateSpline):
    """albumentations' own spline, which fits one kernel and evaluates another, and so misses its points."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.random_parameters = (IS_APPLIED, Parameter("moves", 2 * len(self._places())))

    def _places(self) -> Tensor:
        """Return the points as shares of the sides: a grid, or the corners and the middle."""
        ends = torch.linspace(0, 1, self.num_control_points, dtype=torch.float64)
        grid = torch.cartesian_prod(ends, ends)
        middle = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
        return torch.cat([grid, middle]) if self.num_control_points == 2 else grid

    def map_of(self, height: int, width: int, dtype: torch.dtype, moves: Sequence[float]) -> Tensor:
        places = self._places()
        count, sides = len(places), torch.tensor([width, height], dtype=torch.float64)
        targets = places + torch.tensor(moves, dtype=torch.float64).reshape(-1, 2)
        apart = _squares(places, places)
        system = torch.zeros(count + 3, count + 3, dtype=torch.float64)
        system[:count, :count] = apart**2 * (apart + 1e-6).log()
        system[:count, count], system[:count, count + 1 :] = 1, places
        system[count:, :count] = system[:count, count:].mT
        weights = torch.linalg.solve(system, torch.cat([targets, torch.zeros(3, 2, dtype=torch.float64)]))
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        at = torch.stack([x, y], -1).reshape(-1, 2) / sides
        apart = _squares(at, places)
        terms = torch.cat([apart * (apart + 1e-6).log(), torch.ones_like(at[:, :1]), at], 1)
        return (terms @ weights * sides).mT.reshape(2, height, width).to(dtype)


def _squares(points: Tensor, places: Tensor) -> Tensor:
    """Return the squared distances of points to places."""
    return (points[:, None] - places).square().sum(-1)


# -- borders and a crop ----------------------------------------------------------------------------------


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
        return self.call_kernel(v2.functional.pad, inpt, padding=self.padding, **how)


class _CenterCropCounterpart(fit._FitTransform):
    """A center crop; of an odd number of pixels, the smaller part is cut off above and to the left."""

    def __init__(self, size: Any) -> None:
        super().__init__(size=tuple(size))

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self.size

    def _fit(self, inpt: Any, height: int, width: int) -> Any:
        high, wide = self.size
        if height < high or width < wide:
            must = f"image must be at least {high} x {wide}"
            raise ValueError(f"CenterCrop: {must}, got {height} x {width}")
        place = ((height - high) // 2, (width - wide) // 2)
        return self.call_kernel(v2.functional.crop, inpt, *place, high, wide)
