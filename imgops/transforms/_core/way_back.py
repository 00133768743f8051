"""The way back: from the results of a transform to the positions that its inputs had.

A transform goes back by the steps that move pixels (``Move`` in ``_core/steps``), each of which
names the step back and the matrix of positions; a flip or a turn by itself with other parameters. A
transform that moves nothing leaves its results as they are. A container goes back through the transforms that
it has applied, the last first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._common import check
from imgops._common.torch_private import is_eager, raise_error, tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.decomposition.geometry import inverse_perspective
from imgops.transforms._core import pil_images, programs, projections, rotated_boxes, torchvision_private
from imgops.transforms._core.dtypes import restore_dtype
from imgops.transforms._core.inputs import (
    ANNOTATIONS,
    FOLLOWERS,
    has_batches,
    has_encoded,
    require_batches,
    samples_of,
)
from imgops.transforms._core.parameters import Key, Params, own_choice, own_params, require_own
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms._core.steps import Move, Step, move_values
from imgops.transforms.functional import _dispatch


class Results:
    """The flat results of a call on their way back, and what is known of the image.

    ``needs`` says which of them follow the image, ``owners`` which belong to one sample of a batch. ``known``
    is a uint8 image ``(1, H, W)`` or ``(N, 1, H, W)`` of ones and zeros, or None if nobody asks for it.
    """

    def __init__(
        self,
        flat: list[Any],
        needs: list[bool],
        owners: list[int | None],
        whole: Callable[[list[Any]], tuple[Any, ...]],
        params: dict[Key, Any],
        known: Tensor | None,
    ) -> None:
        self.flat, self.needs, self.owners, self.whole = flat, needs, owners, whole
        self.params, self.known = params, known

    def with_values(self, flat: list[Any], known: Tensor | None) -> Results:
        return Results(flat, self.needs, self.owners, self.whole, self.params, known)

    def at(self, transform: Any, path: Key) -> Any:
        """Return the parameters of a transform, or None if it was skipped."""
        return own_params("invert", transform, self.params, path)

    def choice(self, container: Any, path: Key) -> Any:
        """Return what a container has sampled."""
        return own_choice("invert", container, self.params, path)

    def through(self, transform: Any, params: Params) -> Results:
        """Return the results before the steps of a transform."""
        if tuple(params.canvas) == programs.OWN_SIZES:
            must = f"{type(transform).__name__}: images must have one size on the way back"
            raise_error(NotImplementedError, f"{must}, got images of different sizes")
        flat = [
            _input_before(transform, x, params, owner) if wanted else x
            for x, wanted, owner in zip(self.flat, self.needs, self.owners, strict=True)
        ]
        return self.with_values(flat, None if self.known is None else _mask(transform, self.known, params))

    def has_sizes_of(self, other: Results) -> bool:
        """Return whether other results have the same shapes, as far as is known."""
        pairs = zip(self.flat, other.flat, strict=True)
        tensors = [(a, b) for a, b in pairs if isinstance(a, Tensor) and isinstance(b, Tensor)]
        return all(
            guard_or_false(m == n)
            for a, b in tensors
            for m, n in zip(_shape_of(a), _shape_of(b), strict=True)
        )

    def selected(self, gate: Tensor, closed: Results, select: Callable[..., Any]) -> Results:
        """Return these results where a gate is open, and others where it is closed."""
        flat = []
        for opened, other, owner in zip(self.flat, closed.flat, self.owners, strict=True):
            own = gate if owner is None or not gate.ndim else gate[owner]
            flat.append(opened if opened is other else select(own, opened, other))
        known = self.known
        if known is not None and closed.known is not None:
            known = select(gate, known, closed.known)
        return self.with_values(flat, known)


def _reversed(transform: Any, kind: type, params: Params) -> tuple[list[Step], tuple[Any, Any]]:
    """Return the steps back, and the size of the results."""
    size, back = params.canvas, []
    for step in transform._moving_steps(params, size, kind):
        if not isinstance(step, Move):
            refuse(transform)
        back.append(step.reverse(size))
        size = step.size_after(size)
    return back[::-1], size


def _input_before(transform: Any, inpt: Any, params: Params, owner: int | None) -> Any:
    """Return one input before the steps of a transform."""
    if owner is not None and params.is_per_sample and isinstance(inpt, FOLLOWERS):
        params = Params(params.canvas, params.numbers[owner])
    if isinstance(inpt, ANNOTATIONS):
        return _annotations(transform, inpt, params)
    if isinstance(inpt, projections.PROJECTED):
        return _projected(transform, inpt, params)
    if not isinstance(inpt, Tensor):
        return inpt
    plain = subclass.plain(inpt)
    if isinstance(inpt, tv_tensors.Mask):
        return _dispatch.wrap_like(_mask(transform, plain, params), inpt)
    if not _dispatch.is_image(inpt):
        return inpt
    for step in _steps_back(transform, plain, type(inpt), params):
        plain = step.image(plain)
    return _dispatch.wrap_like(plain, inpt)


def _mask(transform: Any, mask: Tensor, params: Params) -> Tensor:
    flat = mask.ndim == 2 or (params.is_per_sample and mask.ndim == 3)
    out = mask.unsqueeze(-3) if flat else mask
    for step in _steps_back(transform, out, tv_tensors.Mask, params):
        out = step.mask(out)
    return out.squeeze(-3) if flat else out


def _steps_back(transform: Any, image: Tensor, kind: type, params: Params) -> list[Step]:
    """Return the steps back, with their numbers where the operators take them for an image or a mask."""
    steps, size = _reversed(transform, kind, params)
    _require_size(transform, image.shape[-2:], size)
    if isinstance(params.numbers, Tensor):
        Params(params.canvas, params.numbers).place(steps, image)
    return steps


def _require_size(transform: Any, got: Sequence[Any], size: Sequence[Any]) -> None:
    if is_eager() and tuple(got) != tuple(size):
        must = f"{type(transform).__name__}: inputs of invert must have the size of the transform's results"
        raise_error(ValueError, f"{must}, {check.written(size)}, got {check.written(got)}")


def _matrix(transform: Any, inpt: Any, params: Params) -> Tensor:
    """Return the map of positions of a transform, after a check of the size of one of its results."""
    _, size = _reversed(transform, Tensor, params)
    _require_size(transform, projections.canvas_of(inpt), size)
    matrix: Tensor = transform._matrix_of(params, params.canvas)
    return matrix


def _projected(transform: Any, inpt: Any, params: Params) -> Any:
    """Return a camera or a field of values before the steps of a transform."""
    plain, matrix = subclass.plain(inpt), _matrix(transform, inpt, params)
    if isinstance(inpt, projections.Camera):
        moved = projections.move_camera(plain, matrix, is_back=True)
        return _dispatch.wrap_like(moved, inpt, params.canvas)
    inverse = inverse_perspective(projections.square(matrix))[..., : matrix.shape[-2], :]
    listed = _steps_back(transform, plain, projections.Unfilled, params)
    moved, is_interpolated = move_values(listed, plain)
    return _dispatch.wrap_like(projections.move_field(inpt, moved, inverse, is_interpolated), inpt)


def _annotations(transform: Any, inpt: Any, params: Params) -> Any:
    matrix, canvas = _matrix(transform, inpt, params), params.canvas
    inverse = inverse_perspective(projections.square(matrix))
    plain = subclass.plain(inpt)
    if isinstance(inpt, tv_tensors.BoundingBoxes) and inpt.is_nested:
        each = plain.unbind()
        rows = inverse.expand(len(each), 3, 3)
        moved = [_boxes(x, inpt.format, m) for x, m in zip(each, rows, strict=True)]
        nested: Any = torch.nested.as_nested_tensor(moved).as_subclass(tv_tensors.BoundingBoxes)
        nested.__dict__.update({**inpt.__dict__, "canvas_size": canvas})
        return nested
    if isinstance(inpt, tv_tensors.BoundingBoxes):
        if inverse.ndim == 3:
            must = "bounding boxes must be a list, one for each sample, or nested"
            raise_error(ValueError, f"{type(transform).__name__}: {must}, got one with per_sample=True")
        return _dispatch.wrap_like(_boxes(plain, inpt.format, inverse), inpt, canvas)
    flat = plain.reshape(plain.shape[0], -1, 2) if inverse.ndim == 3 else plain.reshape(-1, 2)
    out = restore_dtype(_mapped(flat, inverse).reshape(plain.shape), plain)
    return _dispatch.wrap_like(out, inpt, canvas)


def _shape_of(value: Tensor) -> tuple[Any, ...]:
    if isinstance(value, (*ANNOTATIONS, projections.Camera)):
        height, width = value.canvas_size
        return height, width
    return tuple(subclass.plain(value).shape)


def _mapped(points: Tensor, matrix: Tensor) -> Tensor:
    """Map points ``(..., n, 2)`` by matrices ``(..., 3, 3)``, in double precision."""
    places = points.double()
    places = torch.cat([places, torch.ones_like(places[..., :1])], -1)
    out = places @ matrix.to(points.device, non_blocking=True).mT
    return out[..., :2] / out[..., 2:]


def _boxes(boxes: Tensor, format: Any, matrix: Tensor) -> Tensor:
    """Map boxes of any format; boxes without an angle become the boxes around their corners."""
    if not boxes.numel():
        return boxes
    if tv_tensors.is_rotated_bounding_format(format):
        corners = rotated_boxes.polygons_of(boxes, format)
        moved = rotated_boxes.from_polygons(_mapped(corners, matrix), format)
    else:
        edges = v2.functional.convert_bounding_box_format(boxes.reshape(-1, 4).double(), format, "XYXY")
        corners = edges[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]
        upright = rotated_boxes.upright(_mapped(corners, matrix))
        moved = v2.functional.convert_bounding_box_format(upright, "XYXY", format)
    return restore_dtype(moved.reshape(boxes.shape), boxes)


def back_by_itself(transform: Any, results: Results, path: Key) -> Results:
    """Return results before a flip or a turn: the way back is the same transform with its own numbers."""
    params = results.at(transform, path)
    if params is None:
        return results
    numbers = transform._inverse(params.numbers)
    known = results.known
    if known is not None:
        height, width = known.shape[-2:]
        known = transform._transform_image(known, Params((height, width), numbers), tv_tensors.Image)
    given = results.whole(results.flat)
    out = transform._run(given, ParameterSampler(None, {(): Params(params.canvas, numbers)}))
    return results.with_values(tree_flatten(out)[0], known)


def refuse(transform: Any) -> Any:
    """Raise for a transform whose results do not go back."""
    name = getattr(transform, "__name__", type(transform).__name__)
    raise_error(NotImplementedError, f"invert: transforms must have a way back, got {name}")


def _samples_in(params: dict[Key, Any]) -> int | None:
    """Return the number of samples that have parameters of their own; None if all share them."""
    for value in params.values():
        numbers = value.numbers if isinstance(value, Params) else value
        if isinstance(numbers, Tensor) and numbers.ndim == 2:
            return int(numbers.shape[0])
    return None


def _size_of(flat: list[Any]) -> tuple[Any, Any]:
    """Return the height and width of results."""
    for inpt in flat:
        if isinstance(inpt, (*ANNOTATIONS, projections.Camera)):
            return inpt.canvas_size
        if isinstance(inpt, Tensor):
            height, width = subclass.plain(inpt).shape[-2:]
            return height, width
    must = "inputs must have an image, a mask, boxes or keypoints"
    return raise_error(ValueError, f"invert: {must}, got none")


def invert(transform: Any, inputs: tuple[Any, ...], params: Any, with_known: bool) -> Any:
    """Take results of a transform back; see ``OperatorTransform.invert``."""
    require_own("invert", transform, params)
    given = inputs if len(inputs) > 1 else inputs[0]
    flat, structure = tree_flatten(given)
    if has_batches(inputs) or has_encoded(flat):
        must = "inputs must be tensors, tv_tensors or PIL images"
        raise_error(TypeError, f"invert: {must}, got images of different sizes or files")
    is_pil = [isinstance(x, PIL.Image.Image) for x in flat]
    flat = [tv_tensors.Image(pil_images.to_tensor(x)) if p else x for x, p in zip(flat, is_pil, strict=True)]
    needs = torchvision_private.needs_transform(transform, flat)
    count = _samples_in(params)
    owners: list[int | None] = [None] * len(flat)
    if count is not None:
        owners = samples_of(tree_unflatten(flat, structure), count)
        each = [
            x
            for x, wanted, owner in zip(flat, needs, owners, strict=True)
            if wanted
            and not isinstance(x, tv_tensors.BoundingBoxes)
            and (owner is None or not isinstance(x, FOLLOWERS))
        ]
        require_batches("invert", each, count)
    moving = [x for x, wanted in zip(flat, needs, strict=True) if wanted]
    known = None
    if with_known:
        size = _size_of(moving)
        leading = (1,) if count is None else (count, 1)
        devices = [subclass.plain(x).device for x in moving if isinstance(x, Tensor)]
        known = torch.ones((*leading, *size), dtype=torch.uint8, device=devices[0])

    def whole(values: list[Any]) -> tuple[Any, ...]:
        out = tree_unflatten(values, structure)
        return out if len(inputs) > 1 else (out,)

    back = transform._back(Results(flat, needs, owners, whole, params, known), ())
    out = [pil_images.to_pil(subclass.plain(x)) if p else x for x, p in zip(back.flat, is_pil, strict=True)]
    result = tree_unflatten(out, structure)
    return (result, back.known.squeeze(-3) > 0) if with_known else result
