"""The names of torchvision that are not public, in one place; checked on 0.26 and 0.29."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as v1
from torchvision.transforms.v2 import _transform as transform_base
from torchvision.transforms.v2 import _utils as v2_utils
from torchvision.transforms.v2.functional import _geometry as v2_geometry
from torchvision.transforms.v2.functional import _utils as dispatch

#: The base class of the transforms that are applied with a probability.
WithProbability = transform_base._RandomApplyTransform


def interpolation_mode(interpolation: Any) -> InterpolationMode:
    if isinstance(interpolation, str):  # torchvision takes names from 0.29 on
        return InterpolationMode(interpolation)
    return v2_geometry._check_interpolation(interpolation)


def resized_size(canvas: tuple[int, int], size: Any, max_size: int | None) -> list[int]:
    if isinstance(size, (list, tuple)) and len(size) == 2:
        return list(size)
    return v2_geometry._compute_resized_output_size(canvas, size, max_size)


def rotated_size(angle: float, height: int, width: int) -> tuple[int, int]:
    """Width and height of an image that is rotated and shown whole."""
    matrix = v1._get_inverse_affine_matrix([0.0, 0.0], -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    wide, high = v2_geometry._compute_affine_output_size(matrix, width, height)
    return wide, high


def two_shears(shear: Any) -> Sequence[Any]:
    if isinstance(shear, (int, float)):
        return shear, 0.0
    return (*shear, *shear) if len(shear) == 1 else shear


def get_fill(fill: Any, kind: type) -> Any:
    return v2_utils._get_fill(fill, kind)


def kernel_of(functional: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """torchvision's own kernel for a class of inputs; what has none passes through."""
    return dispatch._get_kernel(functional, kind, allow_passthrough=True)
