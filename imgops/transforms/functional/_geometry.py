"""torchvision's geometric functionals on tensors ``(..., C, H, W)``, with imgops' operators.

Names, arguments and defaults are torchvision's. Where torchvision takes a number, these functions also accept
a tensor of one number per sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false, has_static_value
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops._common import check
from imgops._common.torch_private import is_eager, raise_error, sym_max
from imgops._operator import subclass
from imgops.transforms._core import annotation_kinds, operators, torchvision_private
from imgops.transforms._core.arguments import integer, integers, name_of, scalar
from imgops.transforms._core.dtypes import numbers_for, restore_dtype
from imgops.transforms.functional import _matrices

Interpolation = Any  # an InterpolationMode, its name, or PIL's number
Fill = int | float | Sequence[int] | Sequence[float] | Tensor | None


def resize_interpolation(
    interpolation: Interpolation, antialias: bool | None, kind: type = Tensor
) -> tuple[str, bool]:
    """Return the operators' name of the interpolation of a resize, and whether it antialiases.

    torchvision's "nearest" is PyTorch's pixel, and its "nearest-exact" PIL's. Where ``kind`` is the class of
    PIL images, both are PIL's, which always antialiases. The last three of torchvision's modes exist only in
    PIL.
    """
    name = torchvision_private.interpolation_mode(interpolation).value
    of_pil = kind is PIL.Image.Image
    if name == "nearest" and not of_pil:
        return "torch_nearest", False
    if name in ("nearest", "nearest-exact"):
        return "nearest", True
    return name, of_pil or bool(antialias) or name not in ("bilinear", "bicubic")


def warp_interpolation(op: str, interpolation: Interpolation, kind: type = Tensor) -> str:
    """Return the operators' name of the interpolation of a warp; masks take the nearest pixel."""
    if kind is tv_tensors.Mask:
        return "nearest"
    name: str = torchvision_private.interpolation_mode(interpolation).value
    if name not in ("nearest", "bilinear", "bicubic"):
        raise_error(ValueError, f"{op}: interpolation must be nearest, bilinear or bicubic, got {name}")
    return name


def color_of(fill: Fill) -> Any:
    if fill is None:
        return 0
    if isinstance(fill, (list, tuple)):
        if len(fill) == 1:
            return fill[0]
        if any(isinstance(value, Tensor) for value in fill):
            return check.real("pad", "fill", fill)
    return fill


def resize(
    image: Tensor,
    size: Sequence[int] | int | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    """Resize the input to a size.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    size : int, sequence of int or None
        Output height and width. An int, or a sequence of one, is the length of the shorter side. With None,
        ``max_size`` determines the size.
    interpolation : InterpolationMode, str or int
        Method of the interpolation, bilinear by default; masks always take the nearest pixel.
    max_size : int, optional
        Greatest length of the longer side, if ``size`` is an int or None.
    antialias : bool
        Whether images are smoothed before they shrink: True gives PIL's pixels, False OpenCV's.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Input of the new size, in its class and dtype.
    """
    name, smooth = resize_interpolation(interpolation, antialias)
    require_antialias(name, antialias)
    return resize_sides(image, size, max_size, name, smooth)


def resize_sides(
    image: Tensor, size: Sequence[int] | int | None, max_size: int | None, interpolation: str, antialias: bool
) -> Tensor:
    """Resize an image to a size in one of torchvision's forms: both sides, the shorter or the longer one."""
    height, width = image.shape[-2:]
    wanted = _size_after_resize(height, width, size, max_size)
    if is_size(image.shape[-2:], wanted):
        return image
    return resize_to(image, wanted, interpolation, antialias)


def is_size(before: Sequence[int], size: Sequence[int]) -> bool:
    """Return whether an image has a size; torchvision then returns the image itself."""
    sides: list[Any] = [*before, *size]
    if not is_eager() and not all(map(has_static_value, sides)):
        return False  # a graph of any size
    return sides[:2] == sides[2:]


def _size_after_resize(height: int, width: int, size: Any, max_size: Any) -> list[int]:
    """Check the arguments of ``resize``, and return the height and width of the result."""
    if size is not None:
        size = integers("resize", "size", size, (1, 2))
    if max_size is not None:
        max_size = integer("resize", "max_size", max_size)
    is_pair = size is not None and len(size) == 2
    if max_size is None if size is None else is_pair and max_size is not None:  # else torchvision's error
        must = "max_size must be an integer if size is None, and None if size is a height and a width"
        check.refuse_in_graph(ValueError, "resize", must, check.number(max_size))
    return torchvision_private.size_after_resize((height, width), size, max_size)


def require_antialias(interpolation: str, antialias: bool | None) -> None:
    """Raise for an interpolation that torchvision refuses without antialiasing."""
    if interpolation == "lanczos" and not antialias:
        raise_error(ValueError, "resize: antialias must be True with lanczos, got False")


def resize_to(image: Tensor, size: Sequence[int], interpolation: str, antialias: bool) -> Tensor:
    """Resize an image to a height and a width that a compiler may not know."""
    source = numbers_for(image, interpolation)
    return restore_dtype(imgops.resize(source, tuple(size), interpolation, antialias=antialias), image)


def resize_into(out: Tensor, image: Tensor, interpolation: str, antialias: bool) -> None:
    """Resize an image to the size of ``out``, and write the result of ``resize_to`` there."""
    source, size = numbers_for(image, interpolation), tuple(out.shape[-2:])
    if source is image:
        imgops.resize_out(image, size, interpolation, antialias=antialias, out=out)
    else:
        out.copy_(restore_dtype(imgops.resize(source, size, interpolation, antialias=antialias), image))


def round_size(size: Any) -> Any:
    """Round a size to an integer of at least 1; halves go to even, as in Python."""
    return sym_max(check.round_half_even(size), 1)


def resize_labels(
    mask: Tensor,
    size: Sequence[int] | int | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    height, width = mask.shape[-2:]
    wanted = _size_after_resize(height, width, size, max_size)
    if is_size((height, width), wanted):
        return mask
    name, _ = resize_interpolation(interpolation, antialias)
    return resize_labels_to(mask, wanted, name)


def resize_labels_to(mask: Tensor, size: Sequence[int], interpolation: str = "torch_nearest") -> Tensor:
    """Resize labels to a height and a width that a compiler may not know.

    The nearest pixel is that of the images' interpolation if this is "nearest", else PyTorch's.
    """
    if interpolation == "nearest":
        return imgops.resize(mask[None], tuple(size), interpolation)[0]
    height, width = mask.shape[-2:]
    box = torch.stack([torch.full((), v, dtype=torch.int64, device="cpu") for v in (0, 0, width, height)])
    return operators.nearest(mask, box, tuple(size), "nearest")


def _round_to_dtype(out: Tensor, image: Tensor) -> Tensor:
    """Convert a warp's result to the dtype of ``image``; unlike in a resize, torchvision rounds bool here."""
    if out.dtype == image.dtype:
        return out
    return restore_dtype(out.round() if image.dtype == torch.bool else out, image)


def crop(image: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """Crop a rectangle; pixels outside of the image are 0.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    top, left : int
        Row and column of the upper left corner, which may be negative.
    height, width : int
        Size of the rectangle.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Rectangle ``(..., C, height, width)``.
    """
    return imgops.crop(image, _box("crop", top, left, height, width))


def _box(op: str, top: Any, left: Any, height: Any, width: Any) -> tuple[int, int, int, int]:
    names = ("top", "left", "height", "width")
    top, left, height, width = map(partial(integer, op), names, (top, left, height, width))
    return left, top, left + width, top + height


def center_crop(image: Tensor, output_size: Sequence[int] | int) -> Tensor:
    """Crop the center of the input; a side that is too short is padded with 0.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    output_size : int or sequence of int
        Output height and width; one number is both.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Center of the input.
    """
    height, width = _size_of_crop("center_crop", "output_size", output_size)
    left, top = center_offset(image.shape[-1], width), center_offset(image.shape[-2], height)
    return imgops.crop(image, (left, top, left + width, top + height))


def _size_of_crop(op: str, name: str, size: Any) -> list[int]:
    """Return the height and width of a crop; torchvision also accepts a single float."""
    whole = int(size) if isinstance(size, (float, torch.SymFloat)) else size
    return (integers(op, name, whole, (1, 2)) * 2)[:2]


def center_offset(size: int, wanted: int) -> int:
    """Return the offset of torchvision's center crop, which is negative where it pads.

    torchvision pads a side that is too small, with the odd pixel at the end, and crops a side that is too
    large, rounding to even. The code does not branch on the size, because a compiler may not know it.
    """
    more: Any
    less: Any
    if type(size) is type(wanted) is int:
        more, less = max(size - wanted, 0), max(wanted - size, 0)
        return more // 2 + more % 4 // 3 - less // 2
    more = sym_max(size - wanted, 0)
    less = sym_max(wanted - size, 0)
    return more // 2 + more % 4 // 3 - less // 2


def five_crop(image: Tensor, size: Sequence[int] | int) -> tuple[Tensor, ...]:
    """Crop the four corners and the center of an image.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, of any dtype.
    size : int or sequence of int
        Height and width of the crops; one number is both.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Crops: top left, top right, bottom left, bottom right, center.
    """
    return _corners_and_center("five_crop", image, size)


def _corners_and_center(op: str, image: Tensor, size: Sequence[int] | int) -> tuple[Tensor, ...]:
    high, wide = _size_of_crop(op, "size", size)
    height, width = image.shape[-2:]
    if check.violates(wide <= width) or check.violates(high <= height):
        must = f"{op}: size must be at most {check.written((height, width))}"
        raise_error(ValueError, f"{must}, got {check.written((high, wide))}")
    corners = [(0, 0), (0, width - wide), (height - high, 0), (height - high, width - wide)]
    return (*(crop(image, top, left, high, wide) for top, left in corners), center_crop(image, (high, wide)))


def ten_crop(image: Tensor, size: Sequence[int] | int, vertical_flip: bool = False) -> tuple[Tensor, ...]:
    """Crop the four corners and the center of an image and of its mirror image.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, of any dtype.
    size : int or sequence of int
        Height and width of the crops; one number is both.
    vertical_flip : bool
        Whether the image is mirrored upside down instead of left to right.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Crops of the image in the order of ``five_crop``, then those of the mirror image.
    """
    flipped = image.flip(-2 if vertical_flip else -1)
    return _corners_and_center("ten_crop", image, size) + _corners_and_center("ten_crop", flipped, size)


def resized_crop(
    image: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Sequence[int],
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Tensor:
    """Crop a rectangle and resize it.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    top, left : int
        Row and column of the upper left corner of the rectangle.
    height, width : int
        Size of the rectangle.
    size : sequence of int
        Output height and width.
    interpolation : InterpolationMode, str or int
        Method of the interpolation, bilinear by default; masks always take the nearest pixel.
    antialias : bool
        Whether images are smoothed before they shrink: True gives PIL's pixels, False OpenCV's.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Rectangle of the new size.
    """
    box = _box("resized_crop", top, left, height, width)
    if box[0] < 0 or box[1] < 0 or box[2] > image.shape[-1] or box[3] > image.shape[-2]:
        return resize(imgops.crop(image, box), size, interpolation, antialias=antialias)
    wanted = _size_after_resize(box[3] - box[1], box[2] - box[0], size, None)
    return resize_boxes(image, box, wanted, *resize_interpolation(interpolation, antialias))


def resized_crop_labels(
    mask: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Sequence[int],
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Tensor:
    return resize_labels(imgops.crop(mask, _box("resized_crop", top, left, height, width)), size)


def resize_boxes(
    image: Tensor, boxes: Sequence[int] | Tensor, size: Sequence[int], interpolation: str, antialias: bool
) -> Tensor:
    """Crop and resize as ``resized_crop`` does, with boxes ``(..., 4)``: left, top, right, bottom."""
    if not isinstance(boxes, Tensor):
        boxes = check.integers_tensor("resized_crop", "box", boxes)
    source = numbers_for(image, interpolation)
    out = imgops.resized_crop(source, boxes, tuple(size), interpolation, antialias=antialias)
    return restore_dtype(out, image)


def sides_of(padding: Sequence[int] | int) -> Any:
    """Return the padding as left, top, right and bottom."""
    return tuple((integers("pad", "padding", padding, (1, 2, 4)) * 4)[:4])


def pad(
    image: Tensor, padding: Sequence[int] | int, fill: Fill = None, padding_mode: str = "constant"
) -> Tensor:
    """Pad the sides of the input; negative padding crops.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    padding : int or sequence of int
        One number for all sides, two (left and right, top and bottom), or four (left, top, right, bottom).
    fill : number, sequence of numbers or Tensor, optional
        Value of the border, if ``padding_mode`` is constant, one number or one per channel; 0 by default.
    padding_mode : str
        "constant", "edge", "reflect" or "symmetric".

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Padded input.
    """
    sides = left, top, right, bottom = sides_of(padding)
    color = color_of(fill)
    if padding_mode == "constant" and is_eager() and type(color) in (int, float) and color == 0:
        return imgops.crop(image, (-left, -top, image.shape[-1] + right, image.shape[-2] + bottom))
    if all(guard_or_false(side >= 0) for side in sides):  # a compiler may not know the sides
        return imgops.pad(image, sides, padding_mode, color)
    grown = imgops.pad(image, tuple(sym_max(side, 0) for side in sides), padding_mode, color)
    left, top, right, bottom = (sym_max(-side, 0) for side in sides)
    return imgops.crop(grown, (left, top, grown.shape[-1] - right, grown.shape[-2] - bottom))


def horizontal_flip(image: Tensor) -> Tensor:
    """Mirror the input left to right.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Mirrored input.
    """
    return image.flip(-1)


def vertical_flip(image: Tensor) -> Tensor:
    """Mirror the input upside down.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Mirrored input.
    """
    return image.flip(-2)


def affine(
    image: Tensor,
    angle: float | Tensor,
    translate: Sequence[float | Tensor],
    scale: float | Tensor,
    shear: Sequence[float | Tensor] | float,
    interpolation: Interpolation = InterpolationMode.NEAREST,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    """Rotate, scale, shear and shift the input about its center.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    angle : float or Tensor
        Clockwise angle in degrees; a tensor has one number, or one per sample.
    translate : sequence of 2 numbers or Tensors
        Shift to the right and down, in pixels.
    scale : float or Tensor
        Factor of the size, above 0.
    shear : number, or sequence of 1 or 2 numbers or Tensors
        Shears along x and y, in degrees.
    interpolation : InterpolationMode, str or int
        Nearest by default, bilinear or bicubic; masks always take the nearest pixel.
    fill : number, sequence of numbers or Tensor, optional
        Value of the pixels without a source, one number or one per channel; 0 by default.
    center : sequence of 2 numbers, optional
        Center of the rotation as x and y, in pixels from the upper left corner; the middle by default.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Warped input of the same size.
    """
    _require_affine(angle, translate, scale, shear, center)
    shear = torchvision_private.two_shears(shear)
    matrix = _matrices.affine(angle, translate, scale, shear, center, *image.shape[-2:])
    return warp(image, matrix, warp_interpolation("affine", interpolation), fill)


def _require_affine(angle: Any, translate: Any, scale: Any, shear: Any, center: Any) -> None:
    """Raise for arguments that torchvision refuses; torchvision's own checks cannot be traced."""
    number, sequence = (int, float, torch.SymInt, torch.SymFloat, Tensor), (list, tuple)
    pairs = ((translate, (2,)), (shear, (1, 2)), (center, (2,)))
    is_pair = [isinstance(value, sequence) and len(value) in lengths for value, lengths in pairs]
    is_shear = isinstance(shear, number) and (not isinstance(shear, Tensor) or shear.ndim == 0)
    for argument, value, must, is_right in (
        ("angle", angle, "a number", isinstance(angle, number)),
        ("translate", translate, "a sequence of 2 numbers", is_pair[0]),
        ("scale", scale, "a number above 0", isinstance(scale, number)),
        ("scale", scale, "a number above 0", isinstance(scale, Tensor) or scale > 0),
        ("shear", shear, "a number or a sequence of 1 or 2", is_shear or is_pair[1]),
        ("center", center, "a sequence of 2 numbers", center is None or is_pair[2]),
    ):
        if not is_right:
            is_value = isinstance(value, sequence) or (argument == "scale" and isinstance(value, number))
            kind = ValueError if is_value else TypeError
            raise_error(kind, f"affine: {argument} must be {must}, got {check.shown(value)}")


def warp(
    image: Tensor,
    matrix: Tensor,
    interpolation: str,
    fill: Fill,
    size: Any = None,
    padding_mode: str = "constant",
) -> Tensor:
    """Warp by a matrix of two rows, or of the three rows of a perspective."""
    source = numbers_for(image, interpolation)
    of_matrix = imgops.warp_perspective if matrix.shape[-2] == 3 else imgops.warp_affine
    out = of_matrix(source, matrix, size, interpolation, padding_mode, color_of(fill))
    return _round_to_dtype(out, image)


def rotate(
    image: Tensor,
    angle: float | Tensor,
    interpolation: Interpolation = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    """Rotate the input.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    angle : float or Tensor
        Counterclockwise angle in degrees; a tensor has one number, or one per sample.
    interpolation : InterpolationMode, str or int
        Nearest by default, bilinear or bicubic; masks always take the nearest pixel.
    expand : bool
        Whether the output grows to show the whole rotated image; the angle must then be one number.
    center : sequence of 2 numbers, optional
        Center of the rotation as x and y, in pixels from the upper left corner; the middle by default.
    fill : number, sequence of numbers or Tensor, optional
        Value of the pixels without a source, one number or one per channel; 0 by default.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Rotated input.
    """
    height, width = image.shape[-2:]
    _require_rotation(angle, center)
    if not isinstance(angle, Tensor) and center is None and angle % 90 == 0:
        turns = int(angle % 360) // 90
        if turns % 2 == 0 or expand or height == width:
            return image.clone() if turns == 0 else image.rot90(turns, (-2, -1))
    if expand and isinstance(angle, Tensor) and angle.numel() != 1:
        must = "rotate: angle must be one number if expand is True"
        raise_error(ValueError, f"{must}, got shape {check.written(angle.shape)}")
    size = _matrices.expanded_size(angle, center, height, width) if expand else None
    matrix = _matrices.rotation(check.real("rotate", "angle", angle), center, image.shape[-2:], size)
    return warp(image, matrix, warp_interpolation("rotate", interpolation), fill, size)


def _require_rotation(angle: Any, center: Any) -> None:
    scalar("rotate", "angle", angle)
    if center is not None and len(center) != 2:
        raise_error(ValueError, f"rotate: center must be a sequence of 2 numbers, got {len(center)}")


def expand_annotations(inpt: Any, angle: float, center: Sequence[float] | None) -> tuple[Tensor, Any]:
    """Rotate boxes or keypoints with ``expand``; return them, and the height and width of the image.

    torchvision's kernels compute a canvas and a shift that differ from those of the image.
    """
    _require_rotation(angle, center)
    height, width = inpt.canvas_size
    size = tuple(_matrices.expanded_size(angle, center, height, width))
    how = (-angle, ((size[1] - width) / 2, (size[0] - height) / 2), 1.0, (0.0, 0.0), center)
    turn = partial(_map_by_affine, "rotate") if annotation_kinds.need_operator(inpt) else _map_by_torchvision
    values = subclass.plain(inpt)
    if isinstance(inpt, tv_tensors.KeyPoints):
        return turn(values, inpt.canvas_size, "keypoints", *how), size
    # Clamp boxes to the new canvas, not to the old one, as corners and before they are rounded.
    has_angle = tv_tensors.is_rotated_bounding_format(inpt.format)
    corners = tv_tensors.BoundingBoxFormat.XYXYXYXY if has_angle else tv_tensors.BoundingBoxFormat.XYXY
    boxes = values if values.is_floating_point() else values.float()
    boxes = v2.functional.convert_bounding_box_format(boxes, inpt.format, corners)
    boxes = turn(boxes, inpt.canvas_size, f"{corners.value},None", *how)
    boxes = v2.functional.clamp_bounding_boxes(boxes, corners, size, inpt.clamping_mode)
    return v2.functional.convert_bounding_box_format(boxes, corners, inpt.format).to(values.dtype), size


def _map_by_torchvision(
    values: Tensor,
    canvas: tuple[int, int],
    kind: str,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    center: Sequence[float] | None,
) -> Tensor:
    inpt = annotation_kinds.tv_tensor(values, kind, canvas)
    return subclass.plain(v2.functional.affine(inpt, angle, translate, scale, shear, center=center))


def _map_by_affine(
    op: str,
    values: Tensor,
    canvas: tuple[int, int],
    kind: str,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float] | float,
    center: Sequence[float] | None = None,
) -> Tensor:
    _require_affine(angle, translate, scale, shear, center)
    numbers = [angle, *translate, scale, *torchvision_private.two_shears(shear), *(center or ())]
    for value in numbers:
        if isinstance(value, Tensor) and value.ndim:
            must = f"{op}: parameters of boxes and keypoints must be numbers"
            raise_error(TypeError, f"{must}, got a Tensor of shape {check.written(value.shape)}")
    return operators.map_annotations(values, check.real(op, "angle", numbers), *canvas, "affine", kind)


def map_annotations(
    name: str, inpt: Any, interpolation: Any = None, fill: Any = None, expand: bool = False, **given: Any
) -> Tensor:
    """Compute "affine", "rotate" or "perspective" of boxes or keypoints in a graph."""
    values, canvas, kind = subclass.plain(inpt), inpt.canvas_size, annotation_kinds.kind_of(inpt)
    if name == "perspective":
        points, numbers = (given["startpoints"], given["endpoints"]), given.get("coefficients")
        _matrices.perspective(*points, numbers)  # raises for invalid arguments
        if numbers is None:
            numbers = [check.real("perspective", "startpoints", p) for p in points]
        numbers = check.real("perspective", "coefficients", numbers).flatten()
        return operators.map_annotations(values, numbers, *canvas, "perspective", kind)
    if name == "rotate":
        _require_rotation(given["angle"], given.get("center"))
        given = {"angle": -given["angle"], "center": given.get("center")}
        given |= {"translate": (0.0, 0.0), "scale": 1.0, "shear": (0.0, 0.0)}
    return _map_by_affine(name, values, canvas, kind, **given)


def perspective(
    image: Tensor,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | Tensor | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    """Warp the input so that four points move to four other points.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    startpoints : sequence of 4 points, optional
        Points ``[x, y]`` of the input: upper left, upper right, lower right and lower left.
    endpoints : sequence of 4 points or Tensor, optional
        Positions of these points in the output; a tensor ``(..., 4, 2)`` has four points per sample. If no
        perspective moves the points there, as with three on one line, all pixels have no source.
    interpolation : InterpolationMode, str or int
        Nearest, bilinear (the default) or bicubic; masks always take the nearest pixel.
    fill : number, sequence of numbers or Tensor, optional
        Value of the pixels without a source, one number or one per channel; 0 by default.
    coefficients : sequence of 8 numbers, optional
        Coefficients of the inverse map, in place of the points.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Warped input of the same size.
    """
    matrix = _matrices.perspective(startpoints, endpoints, coefficients)
    return warp(image, matrix, warp_interpolation("perspective", interpolation), fill)


def elastic(
    image: Tensor,
    displacement: Tensor,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    fill: Fill = None,
) -> Tensor:
    """Move each pixel by its own displacement.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, mask, boxes or keypoints.
    displacement : Tensor
        Shifts along x and y ``(1, H, W, 2)``, or one map per sample, in units of half of the width and
        height.
    interpolation : InterpolationMode, str or int
        Nearest, bilinear (the default) or bicubic; masks always take the nearest pixel.
    fill : number, sequence of numbers or Tensor, optional
        Value of the pixels without a source, one number or one per channel; 0 by default.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Warped input of the same size.
    """
    if not isinstance(displacement, Tensor):
        raise_error(TypeError, f"elastic: displacement must be a Tensor, got {type(displacement).__name__}")
    height, width = image.shape[-2:]
    samples, batch = displacement.shape[:-3], image.shape[:-3]
    one_each = len(samples) == len(batch) and all(n in (1, m) for n, m in zip(samples, batch, strict=True))
    if displacement.shape[-3:] != (height, width, 2) or not samples or not (samples == (1,) or one_each):
        whole = check.written((1, height, width, 2))
        must = f"displacement must be {whole} or one for each sample of {check.written(batch)}"
        raise_error(ValueError, f"elastic: {must}, got {check.written(displacement.shape)}")
    if displacement.ndim == 4 and displacement.shape[0] == 1:
        displacement = displacement[0]
    name = warp_interpolation("elastic", interpolation)
    displacement = displacement.to(image.device, non_blocking=True)
    if displacement.dtype not in (torch.float32, torch.float64):
        displacement = displacement.float()
    map = _matrices.displacement_map(displacement, height, width)
    return _round_to_dtype(
        imgops.remap(numbers_for(image, name), map, name, "constant", color_of(fill)), image
    )


def require_frames(owner: Any, video: Tensor, num_samples: int) -> None:
    if video.ndim < 4 or (video.shape[-4] == 0 and num_samples):
        must = f"{name_of(owner)}: video must be (..., T, C, H, W) with at least one frame"
        raise_error(ValueError, f"{must}, got shape {check.written(video.shape)}")


def uniform_temporal_subsample(video: Tensor, num_samples: int) -> Tensor:
    """Take evenly spaced frames of a video.

    Parameters
    ----------
    inpt : Tensor or Video
        Video ``(..., T, C, H, W)`` of at least one frame.
    num_samples : int
        Number of frames, including the first and the last.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Video ``(..., num_samples, C, H, W)``.
    """
    # Use integers, because torchvision's rounded steps end a frame early.
    name = "uniform_temporal_subsample"
    must = f"{name}: num_samples must be an integer from 0 on"
    if isinstance(num_samples, bool):
        raise_error(TypeError, f"{must}, got {num_samples}")
    count = integer(name, "num_samples", num_samples)
    if check.violates(count >= 0):
        raise_error(ValueError, f"{must}, got {check.number(count)}")
    require_frames(name, video, count)
    steps = torch.arange(count, device=video.device, dtype=torch.int64) * (video.shape[-4] - 1)
    last: Any = sym_max(count - 1, 1)
    return video.index_select(-4, steps // last)


#: The functionals that treat masks differently from images.
OF_MASKS: dict[str, Any] = {"resize": resize_labels, "resized_crop": resized_crop_labels}
