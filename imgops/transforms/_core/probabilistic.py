"""The base class of the transforms that torchvision does not have.

The ``__init__`` of each class names its arguments and passes them to :class:`ProbabilisticTransform`. The
class body declares:

====================  ===========================================================================
``_random_parameters`` the parameters; the first says whether the transform is applied
``_known``            those that ``_change_image`` takes as Python numbers: they decide sizes, or are seeds;
                      samples with equal ones are changed at once, unless ``seed`` is one of them
``make_params``       how the parameters are sampled
``_change_image``      the change of an image, by public operators
``_change_mask``       the change of a mask, if pixels move (``_moves``)
``_move_boxes``,       the same for the edges of boxes, the corners of boxes with an angle, and keypoints
``_move_polygons``,
``_move_points``
====================  ===========================================================================

In eager mode ``_change_image`` is called for an image. In a graph, and if samples have parameters of their
own, the operator ``imgops_transforms::apply_transform`` calls it for the samples that were chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._common import check
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms._core import draws, operators, pil_images, rotated_boxes
from imgops.transforms._core.arguments import require_planes
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.dtypes import restore_dtype
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms._core.signatures import is_own
from imgops.transforms._core.steps import Step

#: name -> class, of every transform that torchvision does not have.
ADDED: dict[str, Any] = {}


class _Change(Step):
    """The step of a transform whose work is a method, ``_change_image`` or ``_change_mask``."""

    def __init__(self, transform: ProbabilisticTransform, params: Params) -> None:
        self.transform, self.params = transform, params

    def image(self, image: Tensor) -> Tensor:
        return self.transform._apply_change(image, self.params, "image")

    def mask(self, mask: Tensor) -> Tensor:
        return self.transform._apply_change(mask, self.params, "mask")


class ProbabilisticTransform(RandomTransform, v2.Transform):
    """A transform that is applied with a probability, and whose parameters have names."""

    _random_parameters: tuple[Parameter, ...] = (IS_APPLIED,)
    _known: tuple[str, ...] = ()
    #: Whether the class checks the dtype of images itself, because no operator that it calls does so.
    _levels = False
    #: Whether it then takes uint16.
    _takes_uint16 = False
    #: Public attributes that are no arguments, so that ``repr`` leaves them out.
    _hidden: tuple[str, ...] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._has_probability = True
        if cls.__module__.startswith("imgops.transforms.") and not cls.__name__.startswith("_"):
            ADDED[cls.__name__] = cls

    def __init__(
        self, p: float, per_sample: bool, generator: torch.Generator | None, **arguments: Any
    ) -> None:
        v2.Transform.__init__(self)
        p = check.plain(p)
        if not isinstance(p, (int, float)) or not 0 <= p <= 1:
            must = f"{type(self).__name__}: p must be a probability in [0, 1]"
            raise_error(ValueError, f"{must}, got {check.shown(p)}")
        for name, value in arguments.items():
            setattr(self, name, value)
        self.p = p
        self._config = (*arguments, "p")
        self._start(per_sample, generator)

    def _start(self, per_sample: bool, generator: torch.Generator | None) -> None:
        super()._start(per_sample, generator)
        if not is_own(type(self), "_change_image"):
            self._description = ""

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``, of the kinds that torchvision shows."""
        kinds = (bool, int, float, str, tuple, list, Enum)
        known = ("training", *self._hidden)
        given = {n: v for n, v in vars(self).items() if not n.startswith("_") and n not in known}
        return ", ".join(f"{name}={value}" for name, value in given.items() if isinstance(value, kinds))

    # -- parameters as numbers ---------------------------------------------------------------------

    def _numbers_by_name(self, numbers: Sequence[Any]) -> dict[str, Any]:
        """Return the parameters after the first by name, each a number or a list."""
        names = [parameter.name for parameter in self._random_parameters]
        return dict(list(zip(names, self._split(numbers), strict=True))[1:])

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        for inpt in inputs:
            require_planes(self, inpt)
        return super()._sample_params(inputs, sampler)

    def _count_channels(self, inpt: Any) -> int | None:
        if isinstance(inpt, PIL.Image.Image):
            return len(inpt.getbands()) if pil_images.is_known(inpt) else None
        return super()._count_channels(inpt)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw each parameter uniformly from the range that is the argument of its name, and a new seed."""
        names = [parameter.name for parameter in self._random_parameters[1:]]
        return {name: seed() if name == "seed" else uniform(getattr(self, name)) for name in names}

    def _draw_rule(self, shape: Shape) -> draws.Rule | None:
        found = []
        for i, (name, length, _, _) in enumerate(self._random_parameters[1:], 1):
            if length:
                return None
            is_seed = name == "seed"
            found.append(
                draws.integer(i, 0, 2**53) if is_seed else draws.uniform_double(i, *getattr(self, name))
            )
        return [draws.applied(self.p, *found)]

    # -- an image ----------------------------------------------------------------------------------

    def _change_image(self, image: Tensor, **params: Any) -> Tensor:
        """Change an image ``(..., C, H, W)``, and return one of the same shape and dtype.

        Parameters are tensors ``()`` or ``(n,)``. For several samples, which are the first dimension of the
        image, they start with the dimensions of the image before its channels. Those in ``_known`` are Python
        numbers.
        """
        raise NotImplementedError

    def _change_mask(self, mask: Tensor, **params: Any) -> Tensor:
        return mask

    def _move_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        """Move keypoints ``(n, 2)``, float64: x and y as positions of pixels."""
        return points

    def _move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        """Move boxes ``(n, 4)``, float64: left, top, right and bottom edges."""
        return boxes

    def _move_polygons(self, polygons: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        """Move boxes with an angle, given as their corners ``(n, 4, 2)``, float64, to such boxes."""
        return polygons

    def _extra(self, image: Tensor) -> Tensor | None:
        """Return further data that ``_change_image`` takes, ``(n,)``, on the device of the image, or None."""
        return None

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[Step]:
        return [_Change(self, params)]

    def _apply_change(self, image: Tensor, params: Params, kind: str) -> Tensor:
        extra = self._extra(image) if kind == "image" else None
        if not params.is_one_draw:
            return operators.apply_transform(image, params.numbers, extra, self._description, kind)
        values = self._numbers_by_name(params.numbers)
        if torch.is_autocast_enabled(image.device.type):  # keep the dtype, as ``apply_transform`` does
            with torch.autocast(image.device.type, enabled=False):
                return self._change_checked(image, values, extra, kind)
        return self._change_checked(image, values, extra, kind)

    def _change_checked(
        self, image: Tensor, values: dict[str, Any], extra: Tensor | None, kind: str
    ) -> Tensor:
        """Change one image, or several that share parameters."""
        self._check(image, kind)
        more = {} if extra is None else {"extra": extra}
        work = self._change_image if kind == "image" else self._change_mask
        return work(image, **self._change_arguments(values), **more)

    def _check(self, image: Tensor, kind: str) -> None:
        """Raise if an image or a mask cannot be computed."""
        if kind == "image":
            self._require_channels([image])
        if 0 in image.shape[-3 if kind == "image" else -2 :]:  # a mask without objects has no channels
            must, got = f"{kind} must have at least one pixel", f"shape {check.written(image.shape)}"
            raise_error(ValueError, f"{type(self).__name__}: {must}, got {got}")
        if kind == "image" and self._levels:
            check.levels_or_floats(type(self).__name__, image, self._takes_uint16)

    def _change_arguments(self, values: dict[str, Any]) -> dict[str, Any]:
        known = self._known
        return {n: v if n in known else _real(v) for n, v in values.items()}

    def _change_samples(
        self, image: Tensor, numbers: Tensor, extra: Tensor | None, kind: str, out: Tensor | None
    ) -> Tensor:
        """Change the samples that were chosen; change samples with equal ``_known`` parameters at once.

        Samples with a seed are changed one by one, because noise drawn for several at once differs from noise
        drawn for each alone. The result is written to ``out`` if it is given; it has the shape of the image.
        """
        if numbers.ndim == 1:
            values = self._values_from(numbers.tolist(), 0, 0)
            batch = image if values is None else self._change_checked(image, values, extra, kind)
            return batch.clone() if out is None else out.copy_(batch)
        rows = numbers.reshape(image.shape[0], numbers.shape[-1])
        alone = "seed" in self._known
        groups: dict[tuple[float, ...], list[int]] = {}
        for i, row in enumerate(rows.tolist()):
            if row[0]:
                values = self._numbers_by_name(row)
                known = (x for n in self._known for x in np.ravel(values[n]).tolist())
                groups.setdefault((i,) if alone else tuple(known), []).append(i)
        batch = image.clone() if out is None else out
        if out is not None and sum(map(len, groups.values())) < len(image):
            out.copy_(image)
        for places in groups.values():
            batch = self._change_group(image, rows, places, extra, kind, batch, out is not None)
        return batch

    def _change_group(
        self,
        image: Tensor,
        rows: Tensor,
        places: list[int],
        extra: Tensor | None,
        kind: str,
        batch: Tensor,
        writes: bool,
    ) -> Tensor:
        if len(places) == 1:
            (at,) = places
            result = self._change_checked(image[at], self._numbers_by_name(rows[at].tolist()), extra, kind)
            if writes:
                batch[at].copy_(result)
                return batch
            return torch.select_scatter(batch, result, 0, at)  # an index would be copied to the device
        self._check(image, kind)
        every = len(places) == len(image)
        index = torch.tensor(places, dtype=torch.int64, device="cpu")
        part = image if every else image.index_select(0, index.to(image.device, non_blocking=True))
        numbers = rows if every else rows.index_select(0, index.to(rows.device))
        params = self._batch_arguments(numbers, image.ndim - 4)
        more = {} if extra is None else {"extra": extra}
        work = self._change_image if kind == "image" else self._change_mask
        result = work(part, **params, **more)
        if every:
            return batch.copy_(result) if writes else result
        place = index.to(image.device, non_blocking=True)
        return batch.index_copy_(0, place, result) if writes else batch.index_copy(0, place, result)

    def _batch_arguments(self, numbers: Tensor, between: int) -> dict[str, Any]:
        """Return the parameters of samples that share those in ``_known``."""
        samples, first = len(numbers), self._numbers_by_name(numbers[0].tolist())
        ends = self._numbers_by_name(range(numbers.shape[1]))
        found = {}
        for name, length, *_ in self._random_parameters[1:]:
            if name in self._known:
                found[name] = first[name]
            elif length:
                columns = numbers[:, ends[name].start : ends[name].stop]
                found[name] = columns.reshape(samples, *(1,) * between, -1)
            else:
                found[name] = numbers[:, ends[name]].reshape(samples, *(1,) * between)
        return found

    # -- other inputs ------------------------------------------------------------------------------

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        """Transform boxes, keypoints and PIL images."""
        if isinstance(inpt, PIL.Image.Image):
            return self._of_pil(inpt, values)
        if not self._moves or not isinstance(inpt, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
            return inpt
        canvas = inpt.canvas_size
        arguments = self._change_arguments(values)
        plain = subclass.plain(inpt)
        if isinstance(inpt, tv_tensors.KeyPoints):
            points = plain.reshape(-1, 2).double()
            moved = self._move_points(points, canvas, **arguments).reshape(plain.shape)
            return tv_tensors.wrap(restore_dtype(moved, plain), like=inpt)
        if tv_tensors.is_rotated_bounding_format(inpt.format) and self._takes_angles():
            moved = self._move_rotated(plain, inpt.format, canvas, arguments).reshape(plain.shape)
            return tv_tensors.wrap(restore_dtype(moved, plain), like=inpt)
        return _with_corners(type(self).__name__, inpt, lambda b: self._move_boxes(b, canvas, **arguments))

    def _takes_angles(self) -> bool:
        """Return whether the class says where boxes with an angle go, or leaves all boxes where they are."""
        own = type(self)
        return own._move_boxes is ProbabilisticTransform._move_boxes or (
            own._move_polygons is not ProbabilisticTransform._move_polygons
        )

    def _move_rotated(
        self, boxes: Tensor, format: Any, canvas: tuple[int, int], arguments: dict[str, Any]
    ) -> Tensor:
        """Move boxes of a format with an angle; those that do not move keep their bits."""
        before = rotated_boxes.polygons_of(boxes, format)
        after = self._move_polygons(before, canvas, **arguments)
        moved = rotated_boxes.from_polygons(after, format)
        stays = (after == before).flatten(1).all(-1, keepdim=True)
        return torch.where(stays, boxes.reshape(moved.shape).double(), moved)

    def _of_pil(self, inpt: PIL.Image.Image, values: dict[str, Any]) -> PIL.Image.Image:
        if not pil_images.is_known(inpt):
            must = f"{type(self).__name__}: a PIL image must be gray (L) or RGB and have pixels"
            raise_error(TypeError, f"{must}, got {inpt.mode} of {inpt.size}")
        image = pil_images.to_tensor(inpt)
        return pil_images.to_pil(self._change_checked(image, values, self._extra(image), "image"))


def _real(value: Any) -> Tensor:
    return torch.tensor(value, dtype=torch.float64, device="cpu")


def _with_corners(owner: str, inpt: Any, move: Callable[[Tensor], Tensor]) -> Any:
    """Move boxes of any format without an angle: ``move`` takes left, top, right and bottom edges."""
    format = inpt.format
    if format.value not in ("XYXY", "XYWH", "CXCYWH"):
        must = f"{owner}: bounding boxes must have the format XYXY, XYWH or CXCYWH (no angle)"
        raise_error(NotImplementedError, f"{must}, got {format.value}")
    plain = subclass.plain(inpt)
    corners = v2.functional.convert_bounding_box_format(plain.reshape(-1, 4).double(), format, "XYXY")
    moved = v2.functional.convert_bounding_box_format(move(corners), "XYXY", format)
    return tv_tensors.wrap(restore_dtype(moved.reshape(plain.shape), plain), like=inpt)


# -- sampling ------------------------------------------------------------------------------------------


def uniform(bounds: tuple[float, float]) -> float:
    return float(torch.empty(1, dtype=torch.float64, device="cpu").uniform_(*bounds))


def integer(bounds: tuple[int, int]) -> int:
    """Draw an integer from a range, which includes both ends."""
    return int(torch.randint(bounds[0], bounds[1] + 1, (), device="cpu"))


def odd(bounds: tuple[int, int]) -> int:
    return bounds[0] + 2 * int(torch.randint((bounds[1] - bounds[0]) // 2 + 1, (), device="cpu"))


def seed() -> int:
    """Draw a seed, from which noise of the image's size is made when the transform is applied."""
    return int(torch.randint(2**53, (), device="cpu"))


def from_seed(value: float) -> torch.Generator:
    return torch.Generator().manual_seed(int(value))


def real_of(image: Tensor) -> torch.dtype:
    """Return the dtype for the arithmetic on an image."""
    return torch.float64 if image.dtype == torch.float64 else torch.float32


def as_reals(image: Tensor) -> Tensor:
    """Return images as floats in [0, 1], in single precision or double if they have it."""
    real = image.to(real_of(image))
    return real / 255 if image.dtype == torch.uint8 else real


def on_pixels(value: Tensor, image: Tensor) -> Tensor:
    """Return a parameter on the device of an image ``(..., C, H, W)``, in a shape that broadcasts to it."""
    return value.to(image.device, real_of(image), non_blocking=True)[..., None, None, None]
