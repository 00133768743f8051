"""Cropping."""

from __future__ import annotations

from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import has_static_value, statically_known_true
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops import EncodedImage
from imgops._common.torch_private import is_eager, sym_max, sym_min, tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.kernels.cpu.program import ImageProgram
from imgops.transforms._core import draws, instance_masks, projections, rotated_boxes, steps
from imgops.transforms._core.base import (
    FixedTransform,
    OperatorTransform,
    RandomSizeTransform,
    RandomTransform,
)
from imgops.transforms._core.batches import PendingBatch, Windows
from imgops.transforms._core.dtypes import restore_dtype
from imgops.transforms._core.parameters import (
    Numbers,
    Parameter,
    Params,
    Shape,
    each_number,
)
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms._core.torchvision_private import fill_of, log_ratio, set_log_ratio
from imgops.transforms.functional import _dispatch, _geometry

__all__ = ["CenterCrop", "FiveCrop", "RandomCrop", "RandomIoUCrop", "RandomResizedCrop", "TenCrop"]


class _ObjectCrop(RandomTransform):
    """The base of random crops, after which boxes can be made from the masks of their objects."""

    _added_arguments = (*RandomTransform._added_arguments, "boxes_from_masks")
    _switches = ("boxes_from_masks",)
    boxes_from_masks = False
    #: Whether boxes that the crop has made empty stay so.
    _drops_boxes = False
    _is_simple = True
    _one_size = True
    _goes_back = True

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        out = super()._run(inputs, sampler)
        if not self.boxes_from_masks:
            return out
        before, _ = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        flat, structure = tree_flatten(out)
        name = type(self).__name__
        for sample, (place, masks) in enumerate(instance_masks.masks_by_boxes(name, flat)):
            moved = flat[place]
            tight = subclass.plain(instance_masks.tight_boxes(name, masks, moved))
            if self._drops_boxes:
                is_dropped = (subclass.plain(moved) == 0).all(-1, keepdim=True)
                tight = torch.where(is_dropped, 0, tight)
            gate = sampler.gate_of_result(sample)
            if gate is not None:
                tight = torch.where(gate.to(tight.device), tight, subclass.plain(before[place]))
            flat[place] = _dispatch.wrap_like(tight, moved)
        return tree_unflatten(flat, structure)


class CenterCrop(FixedTransform, v2.CenterCrop):
    """Crop the middle of the image, as torchvision's CenterCrop does.

    An image that is smaller than the crop is padded with 0 first. Masks, boxes and keypoints follow the
    image.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the crop in pixels; one number is both.
    """

    _config = ("size",)
    _added_arguments = ("boxes_from_masks",)
    _switches = ("boxes_from_masks",)
    boxes_from_masks = False
    _makes_planar = True
    _takes_batches = True
    _resizes_batches = True
    _decodes_regions = True

    def forward(self, *inputs: Any) -> Any:
        out = super().forward(*inputs)
        if not self.boxes_from_masks:
            return out
        flat, structure = tree_flatten(out)
        return tree_unflatten(instance_masks.replace_boxes("CenterCrop", flat), structure)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _geometry.center_crop(image, self.size)

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        (height, width), (high, wide) = size, self.size
        left, top = _geometry.center_offset(width, wide), _geometry.center_offset(height, high)
        return [steps.CropAt((left, top, left + wide, top + high))]

    def _batch(self, images: PendingBatch, params: Params) -> Windows:
        return images.crop(self._corners(images.sizes), self.size)

    def _add_to(self, program: ImageProgram, params: Params, kind: type) -> bool:
        (high, wide), height, width = self.size, program.height, program.width
        if not (is_eager() or (has_static_value(height) and has_static_value(width))):
            return False
        left, top = _geometry.center_offset(width, wide), _geometry.center_offset(height, high)
        only_pads = high >= height and wide >= width and program.image.ndim == 3
        makes_planar = only_pads and kind is not PIL.Image.Image
        return program.crop(left, top, high, wide) and (not makes_planar or program.planar())

    def _in_torchvisions_format(self, out: Any, image: Any) -> Any:
        """Return a planar result if the crop extends beyond the image on all sides, and so only pads."""
        sides = zip(out.shape[-2:], image.shape[-2:], strict=True)
        only_pads = all(statically_known_true(a >= b) for a, b in sides)
        return super()._in_torchvisions_format(out, image) if only_pads else out

    _goes_back = True

    def _corners(self, sizes: Tensor) -> Tensor:
        """Return the left and top of the crop of each image, which may lie outside of it."""
        margins = sizes - torch.tensor(self.size, dtype=torch.int64, device="cpu")
        # torchvision rounds half of a margin to even, and pads the larger half at the end.
        inside = (margins.double() / 2).round().long()
        return torch.where(margins < 0, margins.div(2, rounding_mode="trunc"), inside).flip(-1)

    def _of_encoded(self, image: EncodedImage, params: Params) -> Tensor:
        high, wide = self.size
        top, left = (_geometry.center_offset(n, m) for n, m in ((image.height, high), (image.width, wide)))
        if high > image.height or wide > image.width:  # the image is padded
            return _geometry.center_crop(image.decode(), self.size)
        return image.decode((left, top, left + wide, top + high))

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class FiveCrop(OperatorTransform, v2.FiveCrop):
    """Crop the four corners and the center of the image, as torchvision's FiveCrop does.

    The result is a tuple: upper left, upper right, lower left, lower right, middle. Masks and boxes raise.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the crop in pixels; one number is both.
    """

    _goes_back = False
    _kind_of_map = projections.OTHER

    def _image(self, image: Tensor, params: Params, kind: type) -> tuple[Tensor, ...]:
        return _geometry.five_crop(image, self.size)


class TenCrop(OperatorTransform, v2.TenCrop):
    """Crop the corners and center of the image and of its mirror image, as torchvision's TenCrop does.

    The result is a tuple: the five crops of :class:`FiveCrop`, then those of the mirror image. Masks and
    boxes raise.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the crop in pixels; one number is both.
    vertical_flip : bool
        Whether the mirror image is upside down; by default left and right are swapped.
    """

    _goes_back = False
    _kind_of_map = projections.OTHER

    def _image(self, image: Tensor, params: Params, kind: type) -> tuple[Tensor, ...]:
        return _geometry.ten_crop(image, self.size, self.vertical_flip)


class RandomResizedCrop(_ObjectCrop, v2.RandomResizedCrop):
    """Crop a random part of the image and resize it, as torchvision's RandomResizedCrop does.

    The pixels are PIL's. Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the output in pixels; one number is both.
    scale : (float, float)
        The range of the part's area, as a share of the image's area.
    ratio : (float, float)
        The range of the part's width over its height. If 10 draws do not fit into the image, the crop is the
        center of the image.
    """

    _config = ("size", "scale", "ratio", "_log_ratios")
    _moves = True
    _random_parameters = (
        Parameter("top", kind=int),
        Parameter("left", kind=int),
        Parameter("height", neutral=lambda shape: [shape[2]], kind=int),
        Parameter("width", neutral=lambda shape: [shape[3]], kind=int),
    )

    _draws_much = True

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.crop(0, shape, self.scale, self._log_ratios, self.ratio)]

    _log_ratios = property(log_ratio)

    @classmethod
    def _from_config(cls, _log_ratios: list[float], **config: Any) -> Any:
        made = cls(**config)
        set_log_ratio(made, _log_ratios)
        return made

    _outweighs_pil = True
    _has_pils_pixels = True
    _takes_batches = True
    _resizes_batches = True

    _decodes_regions = True
    #: The rule of the nearest pixel of a mask.
    _nearest = "nearest"

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        top, left, height, width = each_number(params.numbers)[:4]
        box = steps.join(left, top, left + width, top + height)
        if kind is tv_tensors.Mask:
            return [steps.ResizedCrop(box, self.size, nearest=self._nearest)]
        how = _geometry.resize_interpolation(self.interpolation, self.antialias, kind)
        return [steps.ResizedCrop(box, self.size, *how)]

    def _add_to(self, program: ImageProgram, params: Params, kind: type) -> bool:
        how = _geometry.resize_interpolation(self.interpolation, self.antialias, kind)
        sides = params.numbers[:4] if params.is_one_draw else params.numbers[..., :4]
        is_added = program.resized_crop(sides, self.size, *how, "sides")
        return is_added and (program.image.ndim > 3 or program.planar())

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class RandomCrop(_ObjectCrop, v2.RandomCrop):
    """Crop a random part of the image, as torchvision's RandomCrop does.

    The image must be at least as large as the crop after its padding. Masks, boxes and keypoints follow the
    image.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the crop in pixels; one number is both.
    padding : int or sequence of int, optional
        The padding before the crop in pixels: one number for all sides; two for left and right, and for top
        and bottom; or left, top, right and bottom. By default nothing is padded.
    pad_if_needed : bool
        Whether a smaller image is padded to the size of the crop, on both sides.
    fill : float, sequence of float, dict or None
        The value of a constant border, or one for each channel; a dict has one for each class, as in
        ``{tv_tensors.Image: 128, "others": 0}``. None means 0.
    padding_mode : {"constant", "edge", "reflect", "symmetric"}
        The border mode of the padding.
    """

    _config = ("size", "padding", "pad_if_needed", "padding_mode")
    _moves = True
    _random_parameters = (Parameter("top", kind=int), Parameter("left", kind=int))

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        left, right, top, bottom = self.padding if self.padding is not None else (0, 0, 0, 0)
        if self.pad_if_needed:
            left, top, right, bottom = self._padding(*shape[2:])
        margins = top + bottom, left + right
        return [draws.place(i, shape, i, margins[i] - self.size[i] + 1) for i in range(2)]

    @classmethod
    def _from_config(cls, padding: list[int] | None, **config: Any) -> RandomCrop:
        if padding is not None:
            left, right, top, bottom = padding
            padding = [left, top, right, bottom]
        return cls(padding=padding, **config)

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [values["top"], values["left"]]

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        top, left = map(int, numbers)
        padding, (high, wide) = self._padding(height, width), self.size
        crop = {"needs_crop": True, "top": top, "left": left, "height": high, "width": wide}
        return crop | {"needs_pad": any(padding), "padding": padding}

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        height, width = shape[2:]
        left, top, right, bottom = self._padding(height, width)
        # The crop starts where the padding ends. A crop of another size must lie inside; its result is not
        # used.
        top = sym_min(top, height + top + bottom - self.size[0])
        left = sym_min(left, width + left + right - self.size[1])
        return [float(top), float(left)]

    def _padding(self, height: int, width: int) -> list[int]:
        """Return the padding of an image as left, top, right and bottom."""
        left, right, top, bottom = self.padding if self.padding is not None else (0, 0, 0, 0)
        if self.pad_if_needed:
            high, wide = self.size
            more_rows = sym_max(high - height - top - bottom, 0)
            more_columns = sym_max(wide - width - left - right, 0)
            left, right, top, bottom = (
                *(left + more_columns, right + more_columns),
                *(top + more_rows, bottom + more_rows),
            )
        return [left, top, right, bottom]

    _resizes_batches = True

    @property
    def _takes_batches(self) -> bool:  # type: ignore[override]
        return self.padding is None and not self.pad_if_needed

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        top, left = each_number(params.numbers)
        found: list[steps.Step] = []
        if self.padding is not None or self.pad_if_needed:
            padding, fill = self._padding(*size), fill_of(self, kind)
            if params.is_one_draw and self.padding_mode == "constant" and not fill:
                # A crop is 0 outside of the image, as this padding is.
                left, top = left - padding[0], top - padding[1]
            else:
                found = [steps.Pad(padding, fill, self.padding_mode)]
        box = steps.join(left, top, left + self.size[1], top + self.size[0])
        return [*found, steps.Crop(box, self.size)]

    def _add_to(self, program: ImageProgram, params: Params, kind: type) -> bool:
        if params.is_one_draw:
            return super()._add_to(program, params, kind)
        if self.padding is not None or self.pad_if_needed:
            padding = self._padding(program.height, program.width)
            if not steps.Pad(padding, fill_of(self, kind), self.padding_mode).add_to(program):
                return False
        # The box has the size of the result, so no resampling happens.
        return program.resized_crop(params.numbers, self.size, "bilinear", True, "corner")

    @property
    def _decodes_regions(self) -> bool:  # type: ignore[override]
        return self.padding is None and not self.pad_if_needed

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class RandomIoUCrop(_ObjectCrop, RandomSizeTransform, v2.RandomIoUCrop):
    """Crop a random part of the image that overlaps its boxes, as torchvision's RandomIoUCrop does.

    The input must have an image and boxes, as in the training of SSD. In a graph one operator reads the boxes
    that the crop depends on; a box with an angle counts as the upright box around it. Masks follow, and boxes
    whose center is cut off become empty, so that :class:`SanitizeBoundingBoxes` drops them.

    Parameters
    ----------
    min_scale, max_scale : float
        The range of the crop's sides, as shares of the image's.
    min_aspect_ratio, max_aspect_ratio : float
        The range of the crop's width over its height.
    sampler_options : list of float, optional
        The least overlaps (intersection over union), of which one is drawn: a crop must overlap at least one
        box by this value. With 1 or more the image is not changed. By default
        ``[0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]``.
    trials : int
        The number of crops to try before another overlap is drawn.
    boxes_from_masks : bool
        Whether each box that is kept becomes the smallest box around its instance mask, as
        :class:`BoxesFromMasks` makes it.
    per_sample : bool
        This must be False for a batch, because samples of different sizes cannot form a batch.
    """

    _config = ("min_scale", "max_scale", "min_aspect_ratio", "max_aspect_ratio", "options", "trials")
    _least = (0, 0, 1, 1)
    _needs_annotations = True
    _drops_boxes = True

    @classmethod
    def _from_config(cls, options: list[float], **config: Any) -> RandomIoUCrop:
        return cls(sampler_options=options, **config)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return super().make_params([_without_angle(x) for x in flat_inputs])  # type: ignore[misc]

    def _draw(self, inputs: Any) -> Numbers | None:
        values = self.make_params(inputs)
        return self._numbers_from(values, 0, 0) if values else None

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        box = [values["left"], values["top"], values["width"], values["height"]]
        return [*box, *values["is_within_crop_area"].tolist()]

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        if numbers[4:5] == [_UNTOUCHED]:
            return None
        left, top, wide, high = map(int, numbers[:4])
        inside = torch.tensor(numbers[4:], dtype=torch.float64, device="cpu") > 0
        return {"top": top, "left": left, "height": high, "width": wide, "is_within_crop_area": inside}

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        """Crop boxes with an angle by our own clipping: torchvision's loses some boxes near right angles."""
        if not _has_angles(inpt) or not values or inpt.clamping_mode != "soft":
            return super()._by_torchvision(inpt, values)
        plain, size = subclass.plain(inpt), (values["height"], values["width"])
        moved = rotated_boxes.crop(plain, inpt.format, values["top"], values["left"], *size)
        kept = values["is_within_crop_area"].reshape(-1, 1)
        boxes = restore_dtype(torch.where(kept, moved, 0), plain).reshape(plain.shape)
        return _dispatch.wrap_like(boxes, inpt, size)

    def _plan(self, shape: Shape, program: SamplingProgram) -> None:
        return None  # the boxes are not known in advance

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        if sampler.draws_in_python:
            return super()._sample_params(inputs, sampler)
        self._refuse_a_batch(inputs, sampler)
        _, _, height, width = self._shape_of(inputs)
        boxes = next(x for x in inputs if isinstance(x, tv_tensors.BoundingBoxes))
        count = 4 + subclass.plain(boxes).shape[0]
        return Params((height, width), sampler.from_annotations(self, boxes, count, (height, width)))

    def _neutral_from_annotations(self, count: int, height: int, width: int) -> list[float]:
        """Return the numbers of a crop that keeps the whole image and leaves the boxes unchanged."""
        return [0.0, 0.0, width, height, *[_UNTOUCHED] * (count - 4)]

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        left, top, wide, high = (int(n) for n in numbers[:4])
        return left, top, wide, high

    def _canvas(self, params: Params) -> tuple[int, int]:
        _, _, wide, high = self._sizes(params)
        return high, wide

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        left, top, wide, high = self._sizes(params)
        return [steps.CropAt((left, top, left + wide, top + high))]


#: The value that replaces 1, "is inside", if there is no crop.
_UNTOUCHED = 2.0


def _has_angles(inpt: Any) -> bool:
    is_boxes = isinstance(inpt, tv_tensors.BoundingBoxes)
    return is_boxes and tv_tensors.is_rotated_bounding_format(inpt.format)


def _without_angle(inpt: Any) -> Any:
    """Return the upright boxes around boxes with an angle, and other inputs unchanged."""
    if not _has_angles(inpt):
        return inpt
    around = rotated_boxes.upright(rotated_boxes.polygons_of(subclass.plain(inpt), inpt.format))
    return tv_tensors.BoundingBoxes(around, format="XYXY", canvas_size=inpt.canvas_size)
