"""Decompositions of resize and its adjoint: two matrices, computed in the graph from the sizes and the box.

On uint8 the results of PIL's and OpenCV's filters are bit-exact: their weights are integers of 22 and 11
bits, and double precision holds the sums exactly. Only OpenCV's bicubic, which uses floats, may differ by one
level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops.decomposition import _resampling_weights
from imgops.decomposition._precision import LEVELS, finish, of_sums, working_dtype
from imgops.decomposition._resampling_filters import scalar
from imgops.decomposition.movement import fold


def resize(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Tensor:
    if interpolation.endswith("nearest"):
        out = _nearest(image, box, height, width, interpolation, antialias, scale)
    elif image.dtype in LEVELS and antialias:
        out = _levels(image, _pil(image, image, box, (height, width), interpolation))
    elif image.dtype == torch.uint8 and interpolation != "bicubic":
        out = _opencv_levels(image, height, width, interpolation, scale)
    else:
        out = _apply(image, _matrices(image, image, box, (height, width), interpolation, antialias, scale))
    return finish(out, image)


def resize_adjoint(
    grad: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Tensor:
    wide = grad.new_empty(()).expand(*grad.shape[:-2], height, width)
    if interpolation.endswith("nearest"):
        size = grad.shape[-2], grad.shape[-1]
        rows, columns = _positions(wide, box, *size, interpolation, antialias, scale)
        if box is None:
            out = fold(fold(grad, -1, columns, width), -2, rows, height)
        else:
            taken = _where_taken(grad, rows, columns)
            out = _scatter_along(_scatter_along(taken, -1, columns, width), -2, rows, height)
    else:
        rows, columns = _matrices(grad, wide, box, tuple(grad.shape[-2:]), interpolation, antialias, scale)
        out = _apply(grad, (rows.mT, columns.mT))
    return finish(out, grad)


def resized_crop(
    image: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor:
    if interpolation.endswith("nearest"):
        source, size = image.shape[-2:], (height, width)
        if antialias:
            rows, columns = _crop_positions(image, source, box, size)
        else:
            dense = _crop_matrices(image.device, source, box, size, interpolation, False)
            rows, columns = (m.argmax(-1).squeeze(-2) for m in dense)
        rows, columns = _per_image(image, rows), _per_image(image, columns)
        out = _take(_take(image, -2, rows), -1, columns)
    else:
        size = height, width
        matrices = _crop_matrices(image.device, image.shape[-2:], box, size, interpolation, antialias)
        if image.dtype in LEVELS and antialias:
            out = _levels(image, matrices, _crop_edges(box, image.device))
        else:
            out = _apply(image, matrices)
    return finish(out, image)


def resized_crop_adjoint(
    grad: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor:
    size = grad.shape[-2], grad.shape[-1]
    if interpolation == "nearest" and antialias:
        rows, columns = _crop_positions(grad, (height, width), box, size)
        rows, columns = _per_image(grad, rows), _per_image(grad, columns)
        out = _scatter_along(_scatter_along(grad, -1, columns, width), -2, rows, height)
    else:
        rows, columns = _crop_matrices(grad.device, (height, width), box, size, interpolation, antialias)
        out = _apply(grad, (rows.mT, columns.mT))
    return finish(out, grad)


def _crop_edges(boxes: Tensor, device: torch.device) -> tuple[Tensor, ...]:
    return tuple(side[..., None, None, None] for side in boxes.to(device).double().unbind(-1))


def _crop_matrices(
    device: torch.device, source: Any, boxes: Tensor, size: Any, interpolation: str, antialias: bool
) -> Matrices:
    left, top, right, bottom = _crop_edges(boxes, device)
    if antialias:
        rows = _resampling_weights.pil(interpolation, source[0], top, bottom, size[0], device, cut=True)
        return rows, _resampling_weights.pil(interpolation, source[1], left, right, size[1], device, cut=True)
    rows = _resampling_weights.opencv_cut(interpolation, source[0], top, bottom, size[0])
    return rows, _resampling_weights.opencv_cut(interpolation, source[1], left, right, size[1])


def _crop_positions(image: Tensor, source: Any, boxes: Tensor, size: Any) -> tuple[Tensor, Tensor]:
    """Return the rows and columns that PIL's nearest filter takes from a crop of an image like this."""
    left, top, right, bottom = _crop_edges(boxes, image.device)
    nothing, how = torch.zeros_like(left), (image.device, image.dtype == torch.uint16)
    rows = _resampling_weights.pil_nearest(source[0], nothing, bottom - top, size[0], *how)
    columns = _resampling_weights.pil_nearest(source[1], nothing, right - left, size[1], *how)
    return rows + top[..., 0, 0].long(), columns + left[..., 0, 0].long()


def _per_image(image: Tensor, at: Tensor) -> Tensor:
    return at[..., None, :].expand(*image.shape[:-3], 1, at.shape[-1])


Matrices = tuple[Tensor, Tensor]


def _matrices(
    image: Tensor,
    wide: Tensor,
    box: Tensor | None,
    size: Any,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
) -> Matrices:
    """Return the matrices of rows and columns, in double precision, for an image of ``wide``'s shape."""
    if antialias:
        return _pil(image, wide, box, size, interpolation)
    source = wide.shape[-2:]
    y, x = _opencv_factors(source, size, scale, image.device)
    shrinks = _shrinks(source, size, scale)
    rows = _resampling_weights.opencv(interpolation, source[0], size[0], y, shrinks)
    return rows, _resampling_weights.opencv(interpolation, source[1], size[1], x, shrinks)


def _shrinks(source: Any, size: Any, scale: Sequence[float] | None) -> bool:
    """Return whether both sides shrink or stay, which decides what OpenCV's "area" means."""
    if scale is None:
        return bool(source[0] >= size[0] and source[1] >= size[1])
    return max(scale) <= 1


def _opencv_factors(
    source: Any, size: Any, scale: Sequence[float] | None, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the factors of rows and columns; OpenCV copies an image that keeps its size."""
    if scale is None or (source[0] == size[0] and source[1] == size[1]):
        y, x = (scalar(n, device) / scalar(m, device) for n, m in zip(size, source, strict=True))
        return y, x
    return scalar(scale[1], device), scalar(scale[0], device)


def _pil(image: Tensor, wide: Tensor, box: Tensor | None, size: Any, interpolation: str) -> Matrices:
    single = image.dtype != torch.float64
    left, top, right, bottom = _edges(box, wide, single)
    device = image.device
    rows = _resampling_weights.pil(interpolation, wide.shape[-2], top, bottom, size[0], device)
    return rows, _resampling_weights.pil(interpolation, wide.shape[-1], left, right, size[1], device)


def _edges(box: Tensor | None, wide: Tensor, single: bool) -> tuple[Any, ...]:
    """Return the four sides of a box, each with dimensions for channels, rows and columns.

    ``single`` rounds them to single precision, in which PIL keeps a box.
    """
    if box is None:
        return None, None, None, None
    box = box.to(wide.device)
    if single:
        box = box.float()
    return tuple(side[..., None, None, None] for side in box.unbind(-1))


def _apply(image: Tensor, matrices: Matrices) -> Tensor:
    working = of_sums(working_dtype(image), image.device)
    rows, columns = (m.to(working) for m in matrices)
    out = rows @ (image.to(working) @ columns.mT)
    if image.dtype in LEVELS:
        out = out.round().clamp(0, LEVELS[image.dtype])
    return out.to(image.dtype)


def _levels(image: Tensor, matrices: Matrices, edges: tuple[Tensor, ...] | None = None) -> Tensor:
    """Run PIL's two passes over levels of 8 or 16 bits, in the order of the installed PIL."""
    rows, columns = matrices
    to_level = _to_level_of_16_bits
    if image.dtype == torch.uint8:
        rows, columns = (_resampling_weights.to_fixed_point(m) for m in matrices)
        to_level = _to_level

    def horizontal(x: Tensor) -> Tensor:
        return to_level(x @ columns.mT)

    def vertical(x: Tensor) -> Tensor:
        return to_level(rows @ x)

    values = image.double()
    sizes = image.shape[-2], image.shape[-1], rows.shape[-2], columns.shape[-2]
    first = _resampling_weights.rows_first(*sizes, image.device)
    if edges is not None and first is not False:  # the sizes of the crops decide the order
        left, top, right, bottom = edges
        lost_rows, lost_columns = bottom - top - sizes[2], right - left - sizes[3]
        first = (lost_rows > 0) & (lost_rows > 2 * lost_columns)
    if isinstance(first, bool):
        out = horizontal(vertical(values)) if first else vertical(horizontal(values))
    else:  # the order depends on sizes that are not known yet
        out = torch.where(first, horizontal(vertical(values)), vertical(horizontal(values)))
    return out.to(image.dtype)


def _to_level_of_16_bits(total: Tensor) -> Tensor:
    return torch.floor(total + 0.5).clamp(0, LEVELS[torch.uint16])


def _to_level(total: Tensor) -> Tensor:
    """Round sums with 22 fraction bits, PIL's or (11 and 11) OpenCV's, to levels."""
    half, one = 2.0 ** (_resampling_weights.BITS - 1), 2.0**_resampling_weights.BITS
    return torch.floor((total + half) / one).clamp(0, 255)


def _opencv_levels(
    image: Tensor, height: int, width: int, interpolation: str, scale: Sequence[float] | None
) -> Tensor:
    source = image.shape[-2:]
    if interpolation == "area" and _shrinks(source, (height, width), scale):
        out = _apply(image.double(), _matrices(image, image, None, (height, width), "area", False, scale))
        halves = source[0] == 2 * height and source[1] == 2 * width
        # OpenCV rounds the mean of four pixels half up, and every other mean half to even.
        return (torch.floor(out + 0.5) if halves else out.round()).clamp(0, 255).to(torch.uint8)
    y, x = _opencv_factors(source, (height, width), scale, image.device)
    left, taps = _resampling_weights.opencv_levels(interpolation, width, x)
    rows = image.double() @ _resampling_weights.dense(left, taps, source[1]).mT
    top, taps = _resampling_weights.opencv_levels(interpolation, height, y)
    if interpolation == "lanczos":
        total = _resampling_weights.dense(top, taps, source[0]) @ rows
        return _to_level(total).to(torch.uint8)
    rows = torch.floor(rows / 16)  # from here on in 16 bits, as in OpenCV's bilinear filter
    total = image.new_zeros((), dtype=torch.float64)
    for k, tap in enumerate(taps):
        at = _resampling_weights.neighbor(top, k, len(taps), source[0]).long()
        total = total + torch.floor(rows.index_select(-2, at) * tap[:, None] / 2.0**16)
    return torch.floor((total + 2) / 4).clamp(0, 255).to(torch.uint8)


def _positions(
    wide: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
) -> tuple[Tensor, Tensor]:
    if interpolation == "torch_nearest":
        rows = _resampling_weights.torch_nearest(wide.shape[-2], height, wide.device)
        return rows, _resampling_weights.torch_nearest(wide.shape[-1], width, wide.device)
    if not antialias:
        y, x = _opencv_factors(wide.shape[-2:], (height, width), scale, wide.device)
        rows = _resampling_weights.opencv_nearest(wide.shape[-2], height, y)
        return rows, _resampling_weights.opencv_nearest(wide.shape[-1], width, x)
    left, top, right, bottom = _edges(box, wide, True)
    how = wide.device, wide.dtype == torch.uint16
    rows = _resampling_weights.pil_nearest(wide.shape[-2], top, bottom, height, *how)
    return rows, _resampling_weights.pil_nearest(wide.shape[-1], left, right, width, *how)


def _nearest(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
) -> Tensor:
    rows, columns = _positions(image, box, height, width, interpolation, antialias, scale)
    out = _take(_take(image, -2, rows), -1, columns)
    if box is None:
        return out
    return _where_taken(out, rows, columns)


def _where_taken(values: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Replace the values by 0 where a position takes no pixel."""
    taken = (rows[..., :, None] >= 0) & (columns[..., None, :] >= 0)
    return torch.where(taken, values, torch.zeros_like(values))


def _take(image: Tensor, dim: int, index: Tensor) -> Tensor:
    """Take rows or columns of an image; ``index`` may differ from sample to sample. -1 takes the first."""
    index = index.clamp(min=0)
    if index.ndim == 1:
        return image.index_select(dim, index)
    index = index[..., :, None] if dim == -2 else index[..., None, :]
    shape = list(image.shape)
    shape[dim] = index.shape[dim]
    return image.gather(dim, index.expand(shape))


def _scatter_along(values: Tensor, dim: int, index: Tensor, size: int) -> Tensor:
    index = index.clamp(min=0)
    index = index[..., :, None] if dim == -2 else index[..., None, :]
    shape = list(values.shape)
    shape[dim] = size
    return values.new_zeros(shape).scatter_add(dim, index.expand(values.shape), values)
