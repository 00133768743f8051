"""Mosaic, which joins four or nine samples into one."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode

import imgops
from imgops._common import check
from imgops._common.torch_private import (
    can_bypass_dispatcher,
    is_eager,
    is_plain,
    raise_error,
    raise_in_graph,
    sym_max,
    sym_min,
    tree_flatten,
    tree_unflatten,
)
from imgops._operator import subclass
from imgops.transforms._core import instance_masks, left_right, operators, projections, rotated_boxes
from imgops.transforms._core.arguments import (
    check_held,
    fill_values,
    in_range,
    interpolation_of,
    size_of,
    switch,
)
from imgops.transforms._core.dtypes import restore_dtype
from imgops.transforms._core.inputs import decode_all
from imgops.transforms._core.instance_masks import boxes_like, corners_of, is_object
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, uniform
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.functional import _dispatch, _geometry

__all__ = ["Mosaic"]

BOXES, POINTS, MASKS = tv_tensors.BoundingBoxes, tv_tensors.KeyPoints, tv_tensors.Mask


class _Join(ProbabilisticTransform):
    """A transform of a list of samples of the same structure."""

    _moves = True
    _joins_samples = True
    _kind_of_map = projections.OTHER
    #: The number of samples.
    _samples = 2

    def forward(self, *inputs: Any) -> Any:
        return self._run(inputs, ParameterSampler.of(inputs))

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        inputs = decode_all(inputs)
        samples = inputs[0] if len(inputs) == 1 else inputs
        name = type(self).__name__
        if not isinstance(samples, (list, tuple)) or len(samples) != self._samples:
            got = len(samples) if isinstance(samples, (list, tuple)) else type(samples).__name__
            raise_error(ValueError, f"{name}: inputs must be a list of {self._samples} samples, got {got}")
        lists: list[Any] = []
        first = _with_entries(samples[0], lists)
        ordered = [_in_order(_with_entries(x, lists), first) for x in samples]
        if lists:
            must = f"{name}: labels must be tensors or arrays in a graph"
            raise_in_graph(NotImplementedError, f"{must}, got a {type(lists[0]).__name__}")
        trees = [tree_flatten(x) for x in ordered]
        flat = [row for row, _ in trees]
        for row, tree in trees:
            projections.require(self, row, self._kind_of_map)
            if tree != trees[0][1] or list(map(_class_of, row)) != list(map(_class_of, flat[0])):
                kinds = [
                    tree_unflatten([_class_of(x).__name__ for x in leaves], tree) for leaves, tree in trees
                ]
                raise_error(ValueError, f"{name}: samples must have one structure, got {kinds}")
        if any(_angles(row) != _angles(flat[0]) for row in flat):
            formats = [[x.format.value for x in row if isinstance(x, BOXES)] for row in flat]
            raise_error(ValueError, f"{name}: boxes must all have an angle, or none, got {formats}")
        flags = left_right.under(self, "visible", ordered[0], left_right.FLAGS[0])
        rows = [Sample(name, row, flags) for row in flat]
        # There must be one label for each box, because otherwise all samples would get the labels of one.
        whole = ordered[0]
        for at in left_right.under(self, "labels", whole, left_right.LABELS[0]):
            for sample in rows:
                value, boxes = sample.flat[at], sample.boxes
                if boxes is None or sample.is_per_box(at):
                    continue
                must = f"{name}: labels must be a tensor, an array or a list with one for each box"
                got = _class_of(value).__name__
                if isinstance(value, (Tensor, np.ndarray)):
                    got = f"shape {check.written(value.shape)}"
                elif type(value) is _Entries:
                    got = f"{check.number(len(value.values))} labels"
                raise_error(ValueError, f"{must}, got {got} and {check.number(boxes.shape[0])} boxes")
        joined = [x.values if type(x) is _Entries else x for x in self._join(rows, sampler)]
        return tree_unflatten(joined, tree_flatten(samples[0], lists)[1])

    def _join(self, samples: list[Sample], sampler: ParameterSampler) -> list[Any]:
        raise NotImplementedError


def _in_order(value: Any, like: Any) -> Any:
    """Return dicts with keys in the order of other dicts, so that the values of a key belong together."""
    if type(value) in _DICTS and type(like) in _DICTS and value.keys() == like.keys():
        return {key: _in_order(value[key], of_key) for key, of_key in like.items()}
    if type(value) in (list, tuple) and type(like) in (list, tuple) and len(value) == len(like):
        return type(value)([_in_order(x, y) for x, y in zip(value, like, strict=True)])
    return value


class _Entries:
    """A list or tuple with an entry for each box, as one value of a sample."""

    def __init__(self, values: list[Any] | tuple[Any, ...]) -> None:
        self.values = values


def _with_entries(value: Any, lists: list[Any], is_labels: bool = False) -> Any:
    """Return a sample in which lists and tuples of labels are one value each, and add them to ``lists``."""
    if is_labels and type(value) in (list, tuple) and not any(isinstance(x, Tensor) for x in value):
        lists.append(value)
        return _Entries(value)
    if type(value) in _DICTS:
        fits = left_right.LABELS[0]
        return {k: _with_entries(v, lists, fits(str(k).lower())) for k, v in value.items()}
    return type(value)(_with_entries(x, lists) for x in value) if type(value) in (list, tuple) else value


def _class_of(value: Any) -> type:
    return type(value.values if type(value) is _Entries else value)


#: The dict classes that PyTorch flattens.
_DICTS = (dict, OrderedDict, defaultdict)


def _angles(flat: list[Any]) -> list[bool]:
    return [tv_tensors.is_rotated_bounding_format(x.format) for x in flat if isinstance(x, BOXES)]


class Sample:
    """A flattened sample, the positions of flags in it, the index of its image, and its first boxes."""

    def __init__(self, owner: str, flat: list[Any], flags: list[int]) -> None:
        self.flat, self.flags = flat, flags
        image = next((i for i, x in enumerate(flat) if _dispatch.is_image(x)), None)
        if image is None:
            raise_error(ValueError, f"{owner}: samples must have an image (a tensor), got none")
        self.image = image
        boxes = next((x for x in flat if isinstance(x, BOXES)), None)
        self.boxes = None if boxes is None else subclass.plain(boxes)

    @property
    def pixels(self) -> Tensor:
        return subclass.plain(self.flat[self.image])

    def is_per_box(self, place: int) -> bool:
        """Return whether a value has a row for each box, like labels, areas and instance masks."""
        value = self.flat[place]
        if self.boxes is None or place == self.image:
            return False
        if type(value) is _Entries:
            return len(value.values) == self.boxes.shape[0]
        if isinstance(value, np.ndarray):
            return value.ndim > 0 and value.shape[0] == self.boxes.shape[0]
        if not isinstance(value, Tensor):
            return False
        plain = subclass.plain(value)
        if isinstance(value, MASKS) and plain.ndim < 3:
            return False
        return plain.ndim > 0 and plain.shape[0] == self.boxes.shape[0]

    def is_per_point(self, place: int) -> bool:
        """Return whether a tensor or array has the flags of keypoints, ``(K)`` or ``(K, 1)``."""
        value = self.flat[place]
        if place not in self.flags or not isinstance(value, (Tensor, np.ndarray)):
            return False
        own = tuple((subclass.plain(value) if isinstance(value, Tensor) else value).shape)
        points = [tuple(subclass.plain(x).shape[:-1]) for x in self.flat if isinstance(x, POINTS)]
        return own in points or (own[-1:] == (1,) and own[:-1] in points)


def join_rows(owner: str, parts: Sequence[Tensor]) -> Tensor:
    """Join tensors that have a row for each box or point."""
    if any(part.shape[1:] != parts[0].shape[1:] for part in parts):
        shapes = ", ".join(check.written(part.shape) for part in parts)
        raise_error(ValueError, f"{owner}: samples must have rows of one shape, got [{shapes}]")
    return torch.cat(list(parts))


def join_values(owner: str, values: Sequence[Any]) -> Any:
    """Join values that have a row for each box or point, in the class of the first."""
    first = values[0]
    if type(first) is _Entries:
        return _Entries(type(first.values)(x for value in values for x in value.values))
    if isinstance(first, np.ndarray):
        if any(value.shape[1:] != first.shape[1:] for value in values):
            shapes = ", ".join(check.written(value.shape) for value in values)
            raise_error(ValueError, f"{owner}: samples must have rows of one shape, got [{shapes}]")
        return np.concatenate(values)
    return _dispatch.wrap_like(join_rows(owner, [subclass.plain(v) for v in values]), first)


def _instance_masks(samples: list[Sample]) -> int | None:
    """Return the index of masks ``(n, H, W)`` with one mask for each box, if all samples have them."""
    for at, value in enumerate(samples[0].flat):
        if isinstance(value, MASKS) and all(
            s.is_per_box(at) and subclass.plain(s.flat[at]).ndim == 3 for s in samples
        ):
            return at
    return None


class Mosaic(_Join):
    """Join four or nine samples into one image, as in the training of object detectors.

    Use :class:`CopyPaste` to move single objects.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the mosaic in pixels.
    grid : {2, 3}
        With 2, four samples around a point; with 3, nine samples, one of them in the middle.
    center : float or (float, float)
        The range of the point around which the samples are placed, as a share of the mosaic's sides.
    fill : float or sequence of float
        The value of pixels without an image; for masks it is 0.
    interpolation : InterpolationMode or str
        The interpolation of images; masks take the nearest pixel.
    antialias : bool
        Whether to smooth while shrinking, as PIL does, or to resample without smoothing, as OpenCV does.
    boxes_from_masks : bool
        Whether each box, cut off or not, becomes the smallest box around its instance mask in the mosaic, as
        :class:`BoxesFromMasks` makes it.

    Notes
    -----
    The transform is called with a list of samples of the same structure (the order of the keys of a dict may
    differ), and returns one such sample. Each image is resized to fit into a cell (a half or a third of the
    mosaic's sides), and is placed as near to the center of the mosaic as its cell allows; parts beyond the
    mosaic are cut off. Boxes and keypoints follow. Boxes are clamped to the visible part of their image, and
    :class:`SanitizeBoundingBoxes` can drop boxes without an area. If the samples have masks with one mask for
    each box, a cut box becomes the smallest box around the remaining part of its mask, inside the clamped
    box, or (0, 0, 0, 0) if nothing remains. A cut box with an angle becomes the smallest box of the same
    angle around its remaining part; resulting angles are between -180 and 180 degrees.

    Tensors and arrays with a row for each box (labels, areas), and masks with one mask for each box, are
    joined, and so are keypoints, and their flags under keys like "visible", by their first dimension; other
    masks become parts of one mask. If each sample has one box, a mask ``(1, H, W)`` or a tensor of one number
    counts as having a row for each box. All other values come from the first sample, except that the value
    under the key "labels" must have a row for each box; in eager mode it may be a list or tuple.

    PyTorch compiles a new graph if a sample has one box, or none, instead of several: with one or several
    boxes, four samples lead to 17 graphs, of which ``torch._dynamo.config.recompile_limit`` allows 8 by
    default. Reference: a resize and a paste of each image, :func:`imgops.resize` and :func:`imgops.paste_`,
    with their gradients.
    """

    _random_parameters = (IS_APPLIED, Parameter("x"), Parameter("y"))
    _hidden = ("p",)
    boxes_from_masks = False

    def __init__(
        self,
        size: int | Sequence[int] = 640,
        grid: int = 2,
        center: float | Sequence[float] = (0.25, 0.75),
        fill: Any = 0,
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool = True,
        *,
        boxes_from_masks: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        grid = check.plain(grid)
        if type(grid) is not int or grid not in (2, 3):
            raise_error(
                ValueError, f"Mosaic: grid must be 2 (four samples) or 3 (nine), got {check.shown(grid)}"
            )
        self._samples = grid**2
        arguments = {"size": size_of(self, "size", size), "grid": grid}
        arguments["center"] = in_range(self, "center", center, 0.0, 1.0)
        super().__init__(1.0, False, generator, **arguments)
        self.fill = fill_values(self, "fill", fill.tolist() if isinstance(fill, Tensor) else fill)
        self.interpolation = interpolation_of(self, interpolation)
        self.antialias = switch(self, "antialias", antialias)
        if switch(self, "boxes_from_masks", boxes_from_masks):
            self.boxes_from_masks = True

    @classmethod
    def _from_config(cls, p: float, **config: Any) -> Mosaic:
        return cls(**config)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"x": uniform(self.center), "y": uniform(self.center)}

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        return [1.0, 0.5, 0.5]  # the container decides whether the transform is applied

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        """Return the central point, y and x, in pixels."""
        _, x, y = numbers
        return int(y * self.size[0]), int(x * self.size[1])

    def _middle(self, params: Params) -> tuple[int, int]:
        y, x = operators.sizes_of(self, params.tensor(), params.canvas, (0, 0))
        return y, x

    def _join(self, samples: list[Sample], sampler: ParameterSampler) -> list[Any]:
        for sample in samples[1:]:
            self._check_alike(samples[0].pixels, sample.pixels)
        params: Any = self._sample_params([s.flat[s.image] for s in samples], sampler)
        y, x = self._middle(params)
        places = []
        for i, sample in enumerate(samples):
            row, column = divmod(i, self.grid)
            height, width = sample.pixels.shape[-2:]
            if _dispatch.is_empty(sample.pixels):
                must = "image must have at least one pixel"
                got = f"shape {check.written(sample.pixels.shape)}"
                raise_error(ValueError, f"Mosaic: {must}, got {got}")
            high, wide = self._size_of(height, width)
            top = _start(row, self.grid, y, high, self.size[0])
            left = _start(column, self.grid, x, wide, self.size[1])
            places.append((left, top, wide, high))
        flat = samples[0].flat
        out = {i: self._part(i, samples, places) for i, x in enumerate(flat) if not isinstance(x, BOXES)}
        masks = _instance_masks(samples)
        joined = None if masks is None else is_object(subclass.plain(out[masks]))
        for i, x in enumerate(flat):
            if isinstance(x, BOXES):
                out[i] = self._boxes(i, samples, places, masks, joined)
        joined_flat = [out[i] for i in range(len(flat))]
        return instance_masks.replace_boxes("Mosaic", joined_flat) if self.boxes_from_masks else joined_flat

    def _boxes(
        self,
        at: int,
        samples: list[Sample],
        places: list[tuple[int, int, int, int]],
        masks: int | None,
        joined: Tensor | None,
    ) -> Any:
        """Join boxes; a cut box becomes the box around the remaining part of its mask."""
        boxes = [s.flat[at] for s in samples]
        moved = [self._move_boxes(b, *p) for b, p in zip(boxes, places, strict=True)]
        corners = torch.cat([clipped for _, clipped in moved])
        if joined is not None and masks is not None and all(s.is_per_box(at) for s in samples):
            is_cut = torch.cat([(clipped != whole).flatten(1).any(-1) for whole, clipped in moved])
            has_mask = [is_object(subclass.plain(s.flat[masks])).flatten(1).any(-1) for s in samples]
            corners = instance_masks.cut_to_masks(corners, joined, is_cut & torch.cat(has_mask))
        return boxes_like(corners, boxes[0], self.size)

    def _size_of(self, height: Any, width: Any) -> tuple[Any, Any]:
        """Return the size of an image in its cell."""
        cell = self.size[0] / self.grid, self.size[1] / self.grid
        factor = sym_min(cell[0] / height, cell[1] / width)
        return _geometry.round_size(height * factor), _geometry.round_size(width * factor)

    def _check_alike(self, first: Tensor, other: Tensor, what: str = "images") -> None:
        """Check that two images or masks can be joined."""
        if first.dtype != other.dtype:
            raise_error(TypeError, f"Mosaic: {what} must have one dtype, got {first.dtype} and {other.dtype}")
        if first.shape[:-2] != other.shape[:-2]:
            must = f"{what} must have the same dimensions before their height and width"
            got = f"{check.written(first.shape)} and {check.written(other.shape)}"
            raise_error(ValueError, f"Mosaic: {must}, got {got}")

    def _part(self, at: int, samples: list[Sample], places: list[tuple[int, int, int, int]]) -> Any:
        first = samples[0].flat[at]
        values = [s.flat[at] for s in samples]
        if at == samples[0].image:
            return _dispatch.wrap_like(self._paste_all([subclass.plain(v) for v in values], places), first)
        if isinstance(first, POINTS):
            points = [self._move_points(v, *p) for v, p in zip(values, places, strict=True)]
            return _dispatch.wrap_like(join_rows("Mosaic", points), first, self.size)
        is_per_box = all(s.is_per_box(at) or s.is_per_point(at) for s in samples)
        if isinstance(first, MASKS):
            masks = [subclass.plain(v) for v in values]
            if not is_per_box:
                for mask in masks[1:]:
                    self._check_alike(masks[0], mask, "masks")
                return _dispatch.wrap_like(self._paste_all(masks, places, labels=True), first)
            whole = [self._paste_all([m], [p], labels=True) for m, p in zip(masks, places, strict=True)]
            return _dispatch.wrap_like(join_rows("Mosaic", whole), first)
        if is_per_box:
            return join_values("Mosaic", values)
        return first

    def _paste_all(
        self, images: list[Tensor], places: list[tuple[int, int, int, int]], labels: bool = False
    ) -> Tensor:
        first = images[0]
        flat = first.ndim == 2
        shape = (*(first.unsqueeze(0) if flat else first).shape[:-2], *self.size)
        canvas = self._canvas_of(first, shape, 0 if labels else self.fill)
        how = _geometry.resize_interpolation(self.interpolation, self.antialias)
        writes_directly = not labels and can_bypass_dispatcher() and all(map(is_plain, images))
        for image, (left, top, wide, high) in zip(images, places, strict=True):
            if writes_directly:
                self._write(canvas, image, left, top, high, wide, how)
                continue
            if labels:
                whole = image.unsqueeze(0) if flat else image
                small = _geometry.resize_labels_to(whole, (high, wide), how[0])
            else:
                small = _geometry.resize_to(image, (high, wide), *how)
            imgops.paste_(canvas, small, (left, top))
        return canvas.squeeze(0) if flat else canvas

    def _write(
        self,
        canvas: Tensor,
        image: Tensor,
        left: int,
        top: int,
        high: int,
        wide: int,
        how: tuple[str, bool],
    ) -> None:
        """Resize an image directly into a window of the canvas, without a graph and without a gradient."""
        size, y, x = (high, wide), max(top, 0), max(left, 0)
        bottom, right = max(min(top + high, self.size[0]), y), max(min(left + wide, self.size[1]), x)
        window = canvas[..., y:bottom, x:right]
        if (bottom - y, right - x) == size:
            _geometry.resize_into(window, image, *how)
        elif window.numel():
            small = _geometry.resize_to(image, size, *how)
            window.copy_(small[..., y - top : bottom - top, x - left : right - left])

    def _canvas_of(self, first: Tensor, shape: tuple[int, ...], fill: Any) -> Tensor:
        """Return a canvas that is filled with ``fill``, in the memory format of the first image."""
        how: dict[str, Any] = {"dtype": first.dtype, "device": first.device}
        interleaved = first.ndim > 2 and first.shape[-3] > 1 and first.stride(-3) == 1
        if interleaved:
            shape = (*shape[:-3], *shape[-2:], shape[-3])
        if not isinstance(fill, (int, float)) and len(fill) not in (1, first.shape[-3]):
            must = f"Mosaic: fill must have 1 value or {check.number(first.shape[-3])}, one for each channel"
            raise_error(ValueError, f"{must}, got {len(fill)}")
        check_held(self, "fill", fill, first.dtype)
        if isinstance(fill, (int, float)):
            canvas = torch.full(shape, fill, **how)
        else:
            values = torch.as_tensor(fill, **how)
            canvas = (values if interleaved else values.reshape(-1, 1, 1)).expand(shape).clone()
        return canvas.movedim(-1, -3) if interleaved else canvas

    def _move_boxes(self, boxes: Any, left: int, top: int, wide: int, high: int) -> tuple[Tensor, Tensor]:
        """Return corners of an image's boxes in the mosaic, and clipped to the image's visible part."""
        height, width = boxes.canvas_size
        corners = corners_of(subclass.plain(boxes), boxes.format)
        points = corners.reshape(-1, 2)
        scale, offset = _vector((wide / width, high / height), points), _vector((left, top), points)
        moved = (points * scale + offset).reshape(corners.shape)
        x0, y0 = sym_max(left, 0), sym_max(top, 0)
        x1, y1 = sym_min(left + wide, self.size[1]), sym_min(top + high, self.size[0])
        if moved.ndim == 3:
            return moved, rotated_boxes.clip(moved, y1 - y0, x1 - x0, y0, x0)
        low, limit = _vector((x0, y0, x0, y0), moved), _vector((x1, y1, x1, y1), moved)
        return moved, torch.minimum(torch.maximum(moved, low), limit)

    def _move_points(self, points: Any, left: int, top: int, wide: int, high: int) -> Tensor:
        height, width = points.canvas_size
        plain = subclass.plain(points)
        x, y = plain[..., 0] * (wide / width) + left, plain[..., 1] * (high / height) + top
        return restore_dtype(torch.stack([x, y], -1), plain)


def _vector(values: Sequence[Any], like: Tensor) -> Tensor:
    """Return numbers as a tensor, including numbers that a compiler does not know."""
    if is_eager():
        return like.new_tensor(values)
    how: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
    return torch.stack([torch.full((), value, **how) for value in values])


def _start(place: int, count: int, middle: Any, length: Any, whole: int) -> Any:
    """Return the start of an image in its row or column, as near to the center as possible."""
    if count == 2:
        return middle - length if place == 0 else middle
    third = (whole + 1) // 3  # rounded, as the lengths of the images are
    if place == 1:
        return middle - length // 2
    return middle - third // 2 - length if place == 0 else middle - third // 2 + third
