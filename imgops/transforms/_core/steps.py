"""The steps of a transform: the operators that change an image, with their arguments.

A transform lists its steps for one call, and whoever runs them knows what each of them is: its operator, the
arguments that the transform fixes, and the ``numbers`` that come from its parameters. The numbers are a list
if one draw in eager mode serves the whole call; else a tensor ``(n,)`` or, with a row for each sample,
``(N, n)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false

import imgops
from imgops import EncodedImage
from imgops._common import layout
from imgops._common.torch_private import default_dispatch_state, sym_max
from imgops._operator.declare import operator
from imgops.decomposition.geometry import inverse_affine, inverse_perspective
from imgops.kernels.cpu import native
from imgops.kernels.cpu.program import ImageProgram
from imgops.kernels.transfer import copy_to
from imgops.rules import vmap
from imgops.transforms._core import operators, projections
from imgops.transforms._core.batches import PendingBatch
from imgops.transforms._core.parameters import Numbers, as_integers, each_number
from imgops.transforms.functional import _color as functional_color
from imgops.transforms.functional import _dispatch, _geometry


class Step:
    """One operator with its arguments."""

    numbers: Numbers = ()
    #: Whether new pixels are weighted means of several.
    interpolates: bool | property = False

    def __init__(self, numbers: Numbers = ()) -> None:
        self.numbers = numbers

    @property
    def is_one_draw(self) -> bool:
        """Whether the numbers are those of one draw in eager mode."""
        return isinstance(self.numbers, (list, tuple))

    def integers(self) -> Tensor:
        """Return the numbers, which are whole, as an int64 tensor."""
        place = "cpu" if self.is_one_draw else None
        return torch.as_tensor(as_integers(self.numbers), dtype=torch.int64, device=place)

    def image(self, image: Any) -> Any:
        """Change an image ``(..., C, H, W)``."""
        raise NotImplementedError

    def mask(self, mask: Tensor) -> Tensor:
        """Change a mask, as an image by default."""
        return self.image(mask)  # type: ignore[no-any-return]

    def field(self, values: Tensor) -> Tensor:
        """Move the values of each pixel, as an image by default, without changing them."""
        return self.image(values)  # type: ignore[no-any-return]

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        """Return the map of the positions of an image of a height and width: see ``projections``."""
        raise NotImplementedError

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return the height and width that the step makes of an image of a height and width."""
        return size

    def of_encoded(self, image: EncodedImage) -> Tensor:
        """Decode an image and change it; a crop decodes only the part that it keeps."""
        return self.image(image.decode())  # type: ignore[no-any-return]

    def add_to(self, program: ImageProgram) -> bool:
        """Add the step to a program of the native module; return False if no program can have it."""
        return False


class Move(Step):
    """A step that moves pixels, and so masks, boxes and keypoints, and that has a way back."""

    def reverse(self, size: tuple[Any, Any]) -> Step:
        """Return the step back to an image of the height and width that it had before; new pixels are 0."""
        raise NotImplementedError


class Interpolated(Step):
    """A step with an interpolation."""

    interpolation: str

    @property
    def interpolates(self) -> bool:  # type: ignore[override]
        return "nearest" not in self.interpolation


class Compute(Step):
    """Work that is no list of operators: ``work(image, numbers)``, a method of the transform."""

    def __init__(self, numbers: Numbers, work: Callable[[Any, Numbers], Any]) -> None:
        self.numbers = numbers
        self.work = work

    def image(self, image: Any) -> Any:
        return self.work(image, self.numbers)


def move_values(listed: Sequence[Step], values: Tensor) -> tuple[Tensor, bool]:
    """Move the values of each pixel by steps; return also whether a step interpolates them."""
    for step in listed:
        values = step.field(values)
    return values, any(step.interpolates for step in listed)


def join(*numbers: Any) -> Numbers:
    """Return numbers of a step as its row: a list, or a tensor if they are tensors."""
    return torch.stack(numbers, -1) if isinstance(numbers[0], Tensor) else list(numbers)


# -- geometry --------------------------------------------------------------------------------------


class ResizedCrop(Interpolated, Move):
    """Crop to a box and resize; ``numbers`` are left, top, right and bottom."""

    def __init__(
        self,
        numbers: Numbers,
        size: Sequence[int],
        interpolation: str = "bilinear",
        antialias: bool = True,
        nearest: str = "nearest",
    ) -> None:
        self.numbers = numbers
        self.size, self.interpolation, self.antialias, self.nearest = size, interpolation, antialias, nearest

    def image(self, image: Any) -> Any:
        boxes, how = as_integers(self.numbers), (self.size, self.interpolation, self.antialias)
        if type(image) is PendingBatch:
            return image.crop_and_resize(boxes, *how)
        out = _geometry.resize_boxes(image, boxes, *how)
        # torchvision's crop of one interleaved image comes out planar, which makes later transforms faster:
        # also those of a PIL image, for which ``_makes_planar`` does nothing.
        return operators.as_planar(out) if image.ndim == 3 else out

    def mask(self, mask: Tensor) -> Tensor:
        return operators.nearest(mask, self.integers(), self.size, self.nearest)

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        left, top, right, bottom = each_number(self.numbers)
        scale = projections.scaling((bottom - top, right - left), self.size)
        return projections.then(projections.shift(-left, -top), scale)

    def of_encoded(self, image: EncodedImage) -> Tensor:
        box = self.integers()
        whole = box - box[[0, 1, 0, 1]]
        how = self.size, self.interpolation, self.antialias
        return operators.as_planar(_geometry.resize_boxes(image.decode(box), whole, *how))

    def add_to(self, program: ImageProgram) -> bool:
        done = program.resized_crop(self.numbers, self.size, self.interpolation, self.antialias)
        return done and (program.image.ndim > 3 or program.planar())

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        return self.size[0], self.size[1]

    def reverse(self, size: tuple[Any, Any]) -> Step:
        return _IntoBox(self.numbers, size, self.interpolation, self.antialias)


class _IntoBox(Interpolated):
    """Resize to the size of a box, in an image of a height and width that is 0 outside of it."""

    def __init__(self, numbers: Numbers, size: Sequence[Any], interpolation: str, antialias: bool) -> None:
        self.numbers = numbers
        self.size, self.interpolation, self.antialias = size, interpolation, antialias

    def image(self, image: Tensor) -> Tensor:
        return self._placed(image, self.interpolation, self.antialias)

    def mask(self, mask: Tensor) -> Tensor:
        return self._placed(mask, "labels", False)

    def _placed(self, image: Tensor, interpolation: str, antialias: bool) -> Tensor:
        how = (*self.size, interpolation, antialias)
        if self.is_one_draw:
            return into_box(image, as_integers(self.numbers), *how)
        return resize_into_boxes(image, as_integers(self.numbers), *how)


def into_box(
    image: Tensor, box: Sequence[int], height: int, width: int, interpolation: str, antialias: bool
) -> Tensor:
    """Resize an image, or "labels", to a box in an image of a height and width."""
    left, top, right, bottom = box
    size = bottom - top, right - left
    if interpolation == "labels":
        small = _geometry.resize_labels_to(image, size, "nearest")
    else:
        small = _geometry.resize_to(image, size, interpolation, antialias)
    return imgops.crop(small, (-left, -top, width - left, height - top))


def _into_boxes(image: Tensor, boxes: Tensor, *how: Any) -> Tensor:
    if boxes.ndim == 1:
        return into_box(image, boxes.tolist(), *how)
    rows = boxes.expand(*image.shape[:-3], 4).reshape(-1, 4).tolist()
    each = image.reshape(-1, *image.shape[-3:])
    if not rows:
        return image.new_zeros((*image.shape[:-2], *how[:2]))
    return torch.stack([into_box(x, row, *how) for x, row in zip(each, rows, strict=True)]).reshape(
        *image.shape[:-2], *how[:2]
    )


#: The host decides the sizes, so that the derived gradient leaves the boxes on the CPU.
_into_boxes.reads_parameters = True  # type: ignore[attr-defined]


def _into_boxes_kernel(out: Tensor, image: Tensor, boxes: Tensor, *how: Any) -> None:
    with default_dispatch_state(), torch.no_grad():
        out.copy_(_into_boxes(image.detach(), boxes.detach(), *how))


@operator(
    "imgops_transforms::resize_into_boxes",
    kernel=_into_boxes_kernel,
    cuda=_into_boxes_kernel,
    fake=lambda image, boxes, height, width, *_: layout.empty(image, height, width),
    vmap=vmap.leading(3, 1),
    decomposition=_into_boxes,
)
def resize_into_boxes(
    image: Tensor, boxes: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor:
    """Resize images, or "labels", to boxes ``(4,)`` or ``(..., 4)`` in images of a height and width.

    It is the way back of a resized crop: pixels outside of a box are 0.
    """


class Crop(Move):
    """Crop to a box of a known size; ``numbers`` are left, top, right and bottom."""

    def __init__(self, numbers: Numbers, size: Sequence[int]) -> None:
        self.numbers = numbers
        self.size = size

    def image(self, image: Any) -> Any:
        boxes = as_integers(self.numbers)
        if type(image) is PendingBatch:
            return image.crop(boxes[:, :2], self.size, is_inside=True)
        if self.is_one_draw:
            return imgops.crop(image, tuple(boxes))
        return _geometry.resize_boxes(image, boxes, self.size, "nearest", True)

    def of_encoded(self, image: EncodedImage) -> Tensor:
        return image.decode(as_integers(self.numbers))

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        left, top, *_ = each_number(self.numbers)
        return projections.shift(-left, -top)

    def add_to(self, program: ImageProgram) -> bool:
        if self.is_one_draw:
            return program.crop(int(self.numbers[0]), int(self.numbers[1]), *self.size)
        # The box has the size of the result, so no resampling happens.
        return program.resized_crop(self.numbers, self.size, "bilinear", True)

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        return self.size[0], self.size[1]

    def reverse(self, size: tuple[Any, Any]) -> Step:
        left, top, *_ = each_number(self.numbers)
        return _Window(join(-left, -top, size[1] - left, size[0] - top), size)


class _Window(Step):
    """Crop to a box that may lie outside of the image, where pixels are 0."""

    def __init__(self, numbers: Numbers, size: Sequence[Any]) -> None:
        self.numbers, self.size = numbers, size

    def image(self, image: Tensor) -> Tensor:
        if self.is_one_draw:
            return imgops.crop(image, tuple(as_integers(self.numbers)))
        return imgops.crop(image, as_integers(self.numbers), size=tuple(self.size))


class CropAt(Move):
    """Crop to a box whose corners a graph knows only by their symbols."""

    def __init__(self, box: Sequence[Any]) -> None:
        self.box = tuple(box)

    def image(self, image: Tensor) -> Tensor:
        return imgops.crop(image, self.box)

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        left, top, right, bottom = self.box
        return bottom - top, right - left

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        return projections.shift(-self.box[0], -self.box[1])

    def reverse(self, size: tuple[Any, Any]) -> Step:
        left, top, _, _ = self.box
        return CropAt((-left, -top, size[1] - left, size[0] - top))


class Resize(Interpolated, Move):
    """Resize to a height and width."""

    def __init__(self, size: Sequence[Any], interpolation: str, antialias: bool) -> None:
        self.size, self.interpolation, self.antialias = size, interpolation, antialias

    def image(self, image: Any) -> Any:
        if type(image) is PendingBatch:
            return image.crop_and_resize(None, self.size, self.interpolation, self.antialias)
        return _geometry.resize_to(image, self.size, self.interpolation, self.antialias)

    def mask(self, mask: Tensor) -> Tensor:
        return _geometry.resize_labels_to(mask, self.size, self.interpolation)

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        return projections.scaling(size, self.size)

    def add_to(self, program: ImageProgram) -> bool:
        return program.resize(self.size, self.interpolation, self.antialias)

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        return self.size[0], self.size[1]

    def reverse(self, size: tuple[Any, Any]) -> Step:
        return _Resize(size, self.interpolation, self.antialias)


class _Resize(Resize):
    """A resize back, by which labels get the pixel whose center is the nearest."""

    def mask(self, mask: Tensor) -> Tensor:
        return _geometry.resize_labels_to(mask, self.size, "nearest")


class Pad(Move):
    """Pad by left, top, right and bottom."""

    def __init__(self, padding: Sequence[Any] | int, fill: Any, mode: str = "constant") -> None:
        self.padding, self.fill, self.mode = padding, fill, mode

    def image(self, image: Tensor) -> Tensor:
        return _geometry.pad(image, self.padding, self.fill, self.mode)

    def field(self, values: Tensor) -> Tensor:
        return _geometry.pad(values, self.padding, self.fill, "constant")

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        left, top, *_ = _geometry.sides_of(self.padding)
        return projections.shift(left, top)

    def add_to(self, program: ImageProgram) -> bool:
        sides = left, top, right, bottom = _geometry.sides_of(self.padding)
        size = height, width = program.height + top + bottom, program.width + left + right
        is_constant = self.mode == "constant"
        levels = native.levels_of(_geometry.color_of(self.fill), program.channels) if is_constant else []
        if levels is None:
            return False
        if is_constant and not any(levels):  # a crop is 0 outside of the image
            return program.crop(-left, -top, height, width)
        if all(guard_or_false(side >= 0) for side in sides):
            return program.pad(left, top, size, self.mode, levels)
        before, above, after, below = (sym_max(side, 0) for side in sides)
        grown = program.height + above + below, program.width + before + after
        is_added = program.pad(before, above, grown, self.mode, levels)
        return is_added and program.crop(before - left, above - top, height, width)

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        left, top, right, bottom = _geometry.sides_of(self.padding)
        return size[0] + top + bottom, size[1] + left + right

    def reverse(self, size: tuple[Any, Any]) -> Step:
        left, top, _, _ = _geometry.sides_of(self.padding)
        return CropAt((left, top, left + size[1], top + size[0]))


class Flip(Step):
    """Mirror along a dimension; ``numbers`` say whether."""

    def __init__(self, numbers: Numbers, dim: int) -> None:
        self.numbers = numbers
        self.dim = dim

    def image(self, image: Any) -> Any:
        if self.is_one_draw:
            return operators.flip(image, self.dim)
        return operators.flip_chosen(image, self.numbers[..., 0] > 0, self.dim)

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        sign: Any = -1.0
        side: Any = size[self.dim]
        if not self.is_one_draw:
            is_mirrored = self.numbers[..., 0] > 0
            sign, side = torch.where(is_mirrored, sign, 1.0), torch.where(is_mirrored, side, 0)
        if self.dim == -1:
            return projections.affine(sign, 0.0, side, 0.0, 1.0, 0.0)
        return projections.affine(1.0, 0.0, 0.0, 0.0, sign, side)

    def add_to(self, program: ImageProgram) -> bool:
        return program.flip(self.numbers, self.dim)


class Warp(Interpolated, Move):
    """Warp by a matrix; ``numbers`` are its rows, two of an affine map or three of a perspective one.

    The numbers are a tensor even for one draw in eager mode.
    """

    def __init__(self, numbers: Tensor, interpolation: str, fill: Any, size: Any = None) -> None:
        self.numbers = numbers
        self.interpolation, self.fill, self.size = interpolation, fill, size

    def image(self, image: Tensor) -> Tensor:
        matrix = self.numbers.unflatten(-1, (-1, 3))
        return _geometry.warp(image, matrix, self.interpolation, self.fill, self.size)

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        return projections.from_centers(self.numbers.unflatten(-1, (-1, 3)))

    def add_to(self, program: ImageProgram) -> bool:
        fill = native.levels_of(_geometry.color_of(self.fill), program.channels)
        is_affine = self.numbers.shape[-1] == 6 and self.size is None
        return is_affine and fill is not None and program.warp(self.numbers, self.interpolation, fill)

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        return size if self.size is None else (self.size[0], self.size[1])

    def reverse(self, size: tuple[Any, Any]) -> Step:
        rows = self.numbers.unflatten(-1, (-1, 3)).double()
        back = inverse_affine(rows) if rows.shape[-2] == 2 else inverse_perspective(rows)
        return _WarpBack(back.flatten(-2), self.interpolation, 0, None if self.size is None else size)


class _WarpBack(Warp):
    """A warp back: positions outside of the results are 0, and the pixels at the edge keep their values."""

    def image(self, image: Tensor) -> Tensor:
        if not self.interpolates:
            return super().image(image)
        matrix = self.numbers.unflatten(-1, (-1, 3))
        leading = image.shape[:-3] if matrix.ndim > 2 else ()
        whole = image.new_ones((*leading, 1, *image.shape[-2:]), dtype=torch.uint8)
        is_known = Warp(self.numbers, "nearest", 0, self.size).image(whole) > 0
        out = _geometry.warp(image, matrix, self.interpolation, 0, self.size, "edge")
        return torch.where(is_known, out, torch.zeros_like(out))


class Turn(Move):
    """Rotate by right angles, which move whole pixels; ``numbers`` are the angle in degrees."""

    def __init__(self, numbers: Numbers, interpolation: Any, expand: bool, fill: Any) -> None:
        self.numbers = numbers
        self.interpolation, self.expand, self.fill = interpolation, expand, fill

    def image(self, image: Tensor) -> Tensor:
        return _geometry.rotate(image, self.numbers[0], self.interpolation, self.expand, None, self.fill)

    def mask(self, mask: Tensor) -> Tensor:
        return _geometry.rotate(mask, self.numbers[0], "nearest", self.expand, None, self.fill)

    def size_after(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        swaps = self.expand and self.numbers[0] % 180 != 0
        return (size[1], size[0]) if swaps else size

    def reverse(self, size: tuple[Any, Any]) -> Step:
        return Turn([-self.numbers[0]], self.interpolation, self.expand, 0)

    def matrix_of(self, size: tuple[int, int]) -> Tensor:
        """Return the turn of the center of the image to the center of the result."""
        turns, (height, width) = int(self.numbers[0] % 360) // 90, size
        cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[turns]
        swaps = self.expand and turns % 2 == 1
        x, y = (height / 2, width / 2) if swaps else (width / 2, height / 2)
        x -= (cos * width + sin * height) / 2
        y -= (cos * height - sin * width) / 2
        return projections.affine(cos, sin, x, -sin, cos, y)


class Displace(Step):
    """Move each pixel; ``numbers`` are the displacements ``(H, W, 2)``, which are multiplied by a factor."""

    def __init__(self, numbers: Tensor, factor: Tensor, interpolation: Any, fill: Any) -> None:
        self.numbers = numbers
        self.factor, self.interpolation, self.fill = factor, interpolation, fill

    def image(self, image: Tensor) -> Tensor:
        return self._moved(image, self.interpolation)

    def mask(self, mask: Tensor) -> Tensor:
        return self._moved(mask, "nearest")

    def _moved(self, image: Tensor, interpolation: Any) -> Tensor:
        dtype = torch.float64 if image.dtype == torch.float64 else torch.float32
        unit = self.numbers.unflatten(-1, (*image.shape[-2:], 2))
        (displacement,) = copy_to(image.device, [(unit * self.factor).to(dtype)])
        whole = displacement[None] if displacement.ndim == 3 else displacement
        return _geometry.elastic(image, whole, interpolation, self.fill)


# -- color -----------------------------------------------------------------------------------------

#: The functions of the color changes of :func:`imgops.color_sequence`, by their names there.
COLORS: dict[str, Callable[[Any, Any], Any]] = {
    "brightness": imgops.adjust_brightness,
    "contrast": imgops.adjust_contrast,
    "saturation": imgops.adjust_saturation,
    "hue": imgops.adjust_hue,
    "sharpness": imgops.adjust_sharpness,
    "posterize": imgops.posterize,
    "solarize": imgops.solarize,
    "autocontrast": lambda image, _: imgops.autocontrast(image),
    "equalize": lambda image, _: imgops.equalize(image),
    "invert": lambda image, _: imgops.invert(image),
}


#: The color changes that only RGB colors have, and those of gray images, which they do not change.
_OF_RGB = ("saturation", "hue")


def names_for(image: Any, names: Sequence[str]) -> Sequence[str]:
    """Return the color changes that an image with its number of channels can have.

    Those of RGB colors are the last of the names, so that no index of another one changes.
    """
    if functional_color.channels_of(image) in (1, 3):
        return names
    return [name for name in names if name not in _OF_RGB]


class ColorSequence(Step):
    """Apply color changes in any order; ``numbers`` are the order, with -1 for none, and the amounts."""

    def __init__(self, numbers: Numbers, names: Sequence[str]) -> None:
        self.numbers = numbers
        self.names = names

    def image(self, image: Any) -> Any:
        length = len(self.numbers) if self.is_one_draw else self.numbers.shape[-1]
        split = length - len(self.names)
        if self.is_one_draw:
            if split == 1:
                return COLORS[self.names[0]](image, self.numbers[1])
            order = torch.tensor(as_integers(self.numbers[:split]), dtype=torch.int64, device="cpu")
            amounts = torch.tensor(self.numbers[split:], dtype=torch.float64, device="cpu")
        else:
            order, amounts = self.numbers[..., :split].long(), self.numbers[..., split:]
        names = names_for(image, self.names)
        return imgops.color_sequence(image, order, amounts[..., : len(names)], names)

    def add_to(self, program: ImageProgram) -> bool:
        length = len(self.numbers) if self.is_one_draw else self.numbers.shape[-1]
        return program.colors(self.numbers, length - len(self.names), self.names)


class Gray(Step):
    """Convert to gray of three channels; ``numbers`` say whether."""

    def image(self, image: Any) -> Any:
        if self.is_one_draw:
            return imgops.grayscale(image, 3)
        return operators.gray_chosen(image, self.numbers[..., 0] > 0)

    def add_to(self, program: ImageProgram) -> bool:
        return program.gray(self.numbers)


class PermuteChannels(Step):
    """Reorder channels; ``numbers`` are the channels in their new order."""

    def image(self, image: Tensor) -> Tensor:
        order = self.integers().to(image.device, non_blocking=True)
        if order.ndim == 1:
            return image.index_select(-3, order)
        return image.gather(-3, order[..., None, None].expand(image.shape))


# -- filters and dropout ---------------------------------------------------------------------------


class GaussianBlur(Step):
    """Blur; ``numbers`` are the standard deviations along x and y."""

    def __init__(self, numbers: Numbers, kernel_size: Sequence[int]) -> None:
        self.numbers = numbers
        self.kernel_size = tuple(kernel_size)

    def image(self, image: Any) -> Any:
        return imgops.gaussian_blur(image, self.kernel_size, self.numbers)

    def add_to(self, program: ImageProgram) -> bool:
        return program.gaussian_blur(self.numbers, self.kernel_size)


class JPEG(Step):
    """Compress as a JPEG file does; ``numbers`` are the quality."""

    def image(self, image: Tensor) -> Tensor:
        return imgops.jpeg(image, self.numbers[0] if self.is_one_draw else self.numbers[..., 0])


class Erase(Step):
    """Replace a box; ``numbers`` are left, top, right, bottom and, without a value, random pixels."""

    def __init__(self, numbers: Numbers, value: Any, inplace: bool) -> None:
        self.numbers = numbers
        self.value, self.inplace = value, inplace

    def image(self, image: Tensor) -> Tensor:
        numbers = self.numbers
        if self.is_one_draw or self._has_box_alone(image):
            left, top, right, bottom = map(int, numbers[:4])
            high, wide = bottom - top, right - left
            if self.value is None:
                value = numbers[4:].reshape(image.shape[-3], high, wide)
            else:
                value = torch.tensor(self.value, dtype=torch.float32, device="cpu")[:, None, None]
            if self.inplace or not layout.is_dense(image):
                return _dispatch.KERNELS["erase"](image, top, left, high, wide, value, self.inplace)
            out = image.clone()
            out[..., top:bottom, left:right] = value
            return out
        if self.value is None:
            value = numbers[..., 4:].unflatten(-1, image.shape[-3:])
        else:
            value = torch.tensor(self.value, dtype=torch.float64, device="cpu")[:, None, None]
            value = value.expand(image.shape[-3], 1, 1)
        value = value.to(image.device, image.dtype, non_blocking=True)
        return imgops.erase(image, numbers[..., :4].long(), value)

    def add_to(self, program: ImageProgram) -> bool:
        levels = (
            None if self.value is None or self.inplace else native.levels_of(self.value, program.channels)
        )
        box = self.numbers[:4] if self.is_one_draw else self.numbers[..., :4]
        return levels is not None and program.erase(box, levels)

    def _has_box_alone(self, image: Tensor) -> bool:
        """Return whether the random pixels are those of the box alone, as eager mode draws them."""
        if self.value is not None or self.numbers.ndim > 1:
            return False
        # A graph has those of all pixels, whose number it may not know.
        channels, height, width = image.shape[-3:]
        return guard_or_false(self.numbers.shape[0] != 4 + channels * height * width)
