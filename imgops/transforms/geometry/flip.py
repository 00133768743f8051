"""Flips, and rotations by right angles."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms._core import draws, operators, projections, rotated_boxes, steps
from imgops.transforms._core.left_right import SWAPS, Mirror
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, integer
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms._core.way_back import back_by_itself
from imgops.transforms.functional import _dispatch

__all__ = ["RandomHorizontalFlip", "RandomRotate90", "RandomTranspose", "RandomVerticalFlip"]


class _Flip(Mirror):
    _config = ("p", *SWAPS)
    _moves = True
    _dim = -1
    _has_pils_pixels = True
    _random_parameters = (IS_APPLIED,)
    _takes_batches = True

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.applied(self.p)]  # type: ignore[attr-defined]  # torchvision's

    def __init__(
        self,
        p: float = 0.5,
        *,
        swap: Any = None,
        swap_labels: Any = None,
        swap_masks: Any = None,
        labels_getter: Any = "default",
        visible_getter: Any = "default",
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p)  # type: ignore[call-arg]  # torchvision's
        self._set_swaps(swap, swap_labels, swap_masks, labels_getter, visible_getter)
        self._start(per_sample, generator)

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Flip(params.numbers, self._dim)]

    _back = back_by_itself

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        (flip,) = self._placed_steps(mask, params, tv_tensors.Mask)
        out = flip.mask(mask)
        if self.swap_masks is None:
            return out
        swapped = self._swap_values(out)
        return swapped if flip.is_one_draw else operators.where(flip.numbers[..., 0] > 0, swapped, out)


class RandomHorizontalFlip(_Flip, v2.RandomHorizontalFlip):
    """Mirror the image from left to right with a probability, as torchvision's RandomHorizontalFlip does.

    Masks, boxes and keypoints follow the image.
    """


class RandomVerticalFlip(_Flip, v2.RandomVerticalFlip):
    """Mirror the image from top to bottom with a probability, as torchvision's RandomVerticalFlip does.

    Masks, boxes and keypoints follow the image.
    """

    _dim = -2


class _Turn(ProbabilisticTransform):
    """A transform that may swap height and width, for which a batch or a graph needs square images."""

    _moves = True
    _kind_of_map = projections.AFFINE
    _known: tuple[str, ...] = ()

    def _matrix_of(self, params: Params, size: tuple[int, int]) -> Tensor:
        moved = self._choices(projections.references(), size)
        choices = [projections.of_references(points) for points in moved]
        if params.is_one_draw:
            return choices[self._choice(params.numbers)]
        which = self._choice(params.numbers)
        return torch.stack(choices).index_select(0, which.reshape(-1)).reshape(*which.shape, 2, 3)

    def _choices(self, points: Tensor, size: tuple[int, int]) -> list[Tensor]:
        """Return where points go in each way in which the transform can turn, the first of which is none."""
        return [points, self._points(points, size)]

    def _choice(self, numbers: Any) -> Any:
        """Return the number of the way that was drawn."""
        return 1 if isinstance(numbers, list) else (numbers[..., 0] > 0).long()

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        params = super()._sample_params(inputs, sampler)
        if params is not None and not params.is_one_draw and params.canvas[0] != params.canvas[1]:
            must = f"{type(self).__name__}: image must be square in a graph and with per_sample=True"
            raise_error(NotImplementedError, f"{must}, got {params.canvas[0]} x {params.canvas[1]}")
        return params

    _back = back_by_itself

    def _canvas(self, params: Params) -> tuple[int, int]:
        height, width = params.canvas
        swaps = params.is_one_draw and self._swaps(**self._numbers_by_name(params.numbers))
        return (width, height) if swaps else (height, width)

    def _swaps(self, **params: Any) -> bool:
        raise NotImplementedError

    def _points(self, points: Tensor, size: tuple[float, float], **params: Any) -> Tensor:
        """Move positions (x, y), which lie between 0 and the width and height in ``size``."""
        raise NotImplementedError

    def _angles(self, angles: Tensor, **params: Any) -> Tensor:
        """Transform the angles of boxes, in degrees."""
        raise NotImplementedError

    #: Whether the transform is a mirror.
    _mirrors = False

    def _change_mask(self, mask: Tensor, **params: Any) -> Tensor:
        return self._change_image(mask, **params)

    def _move_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        return self._points(points, (canvas[0] - 1, canvas[1] - 1), **params)

    def _move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        ends = self._points(boxes.reshape(-1, 2), canvas, **params).reshape(-1, 2, 2)
        return torch.cat(ends.aminmax(dim=1), -1)

    def _takes_angles(self) -> bool:
        return True

    def _move_rotated(
        self, boxes: Tensor, format: Any, canvas: tuple[int, int], arguments: dict[str, Any]
    ) -> Tensor:
        """Move one corner, or the center, and turn the angle, so that width and height keep their bits."""
        corners = rotated_boxes.polygons_of(boxes, format)
        order = rotated_boxes.MIRRORED if self._mirrors else (0, 1, 2, 3)
        if format.value == "XYXYXYXY":
            return self._points(corners[:, order], canvas, **arguments).flatten(1)
        flat = boxes.reshape(-1, 5).double()
        place = flat[:, :2] if format.value == "CXCYWHR" else corners[:, order[0]]
        angles = self._angles(flat[:, 4:], **arguments)
        return torch.cat([self._points(place, canvas, **arguments), flat[:, 2:4], angles], -1)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        out = super()._by_torchvision(inpt, values)
        if out is inpt or not hasattr(inpt, "canvas_size"):
            return out
        canvas = self._canvas(Params(inpt.canvas_size, self._numbers_from(values, 0, 0)))
        return _dispatch.wrap_like(subclass.plain(out), inpt, canvas)


class RandomRotate90(_Turn):
    """Rotate an image by 0, 90, 180 or 270 degrees counterclockwise, with a probability.

    Pixels move without interpolation; use :class:`RandomRotation` for arbitrary angles.

    Notes
    -----
    Reference: ``numpy.rot90``, as in albumentations' RandomRotate90, bit-exact, for every dtype:
    :func:`imgops.rotate90`. Masks, boxes and keypoints follow the image. An image that is not square may come
    out with height and width swapped; in a graph and with ``per_sample=True`` it raises.
    """

    _random_parameters = (IS_APPLIED, Parameter("turns"))
    _known = ("turns",)

    def __init__(
        self,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p, per_sample, generator)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"turns": integer((0, 3))}

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.applied(self.p, draws.integer(1, 0, 4))]

    def _inverse(self, numbers: Numbers) -> Numbers:
        applied, turns = numbers if isinstance(numbers, (list, tuple)) else numbers.unbind(-1)
        return steps.join(applied, -turns % 4)

    def _choices(self, points: Tensor, size: tuple[int, int]) -> list[Tensor]:
        return [self._points(points, size, turns=turns) for turns in range(4)]

    def _choice(self, numbers: Any) -> Any:
        if isinstance(numbers, list):
            return int(numbers[1])
        return torch.where(numbers[..., 0] > 0, numbers[..., 1], 0).long()

    def _swaps(self, turns: float) -> bool:
        return int(turns) % 2 == 1

    def _change_image(self, image: Tensor, turns: float) -> Tensor:
        return imgops.rotate90(image, int(turns))

    def _points(self, points: Tensor, size: tuple[float, float], turns: float) -> Tensor:
        height, width = size
        x, y = points.unbind(-1)
        positions = ((x, y), (y, width - x), (width - x, height - y), (height - y, x))
        return torch.stack(positions[int(turns) % 4], -1)

    def _move_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        return self._points(points, canvas, **params)  # continuous, as in RandomRotation

    def _angles(self, angles: Tensor, turns: float) -> Tensor:
        turned = angles + 90 * (int(turns) % 4)
        return torch.where((turned > 180) & (angles <= 180), turned - 360, turned)


class RandomTranspose(Mirror, _Turn):
    """Swap the axes of an image, with a probability.

    Notes
    -----
    Reference: ``numpy.transpose``, as in albumentations' Transpose, bit-exact, for every dtype. Masks, boxes
    and keypoints follow the image. An image that is not square comes out with height and width swapped; in a
    graph and with ``per_sample=True`` it raises.
    """

    def __init__(
        self,
        p: float = 0.5,
        *,
        swap: Any = None,
        swap_labels: Any = None,
        swap_masks: Any = None,
        labels_getter: Any = "default",
        visible_getter: Any = "default",
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p, per_sample, generator, **dict.fromkeys(SWAPS))
        self._set_swaps(swap, swap_labels, swap_masks, labels_getter, visible_getter)

    def _swaps(self) -> bool:
        return True

    def _change_image(self, image: Tensor) -> Tensor:
        return imgops.flip(imgops.rotate90(image, 3))

    def _change_mask(self, mask: Tensor) -> Tensor:
        return self._swap_values(self._change_image(mask))

    _mirrors = True

    def _points(self, points: Tensor, size: tuple[float, float]) -> Tensor:
        return points.flip(-1)

    def _angles(self, angles: Tensor) -> Tensor:
        return 90 - angles
