"""Resizing: to a size, and to a random one."""

from __future__ import annotations

from typing import Any, cast

import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops.kernels.cpu.program import ImageProgram
from imgops.transforms._core import steps, torchvision_private
from imgops.transforms._core.base import FixedTransform, RandomSizeTransform
from imgops.transforms._core.batches import PendingBatch
from imgops.transforms._core.parameters import Numbers, Parameter, Params
from imgops.transforms.functional import _geometry

__all__ = ["RandomResize", "RandomShortestSize", "Resize", "ScaleJitter"]


class Resize(FixedTransform, v2.Resize):
    """Resize the image, as torchvision's Resize does.

    The pixels are PIL's and OpenCV's. Use :class:`LetterBox` to fit an image into a size without changing its
    aspect ratio. Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    size : int, (int, int) or None
        The height and width in pixels; one number is the length of the shortest side, and the aspect ratio
        stays the same. With None, only ``max_size`` is used.
    max_size : int, optional
        The greatest length of the longest side, if ``size`` is one number; with ``size=None``, the length of
        the longest side.
    """

    _config = ("size", "max_size")
    _needs_pixels = True
    _goes_back = True

    _outweighs_pil = True

    _takes_batches = True
    _resizes_batches = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        name, smooth = _geometry.resize_interpolation(self.interpolation, self.antialias, kind)
        if kind is not PIL.Image.Image:
            _geometry.require_antialias(name, self.antialias)
        return _geometry.resize_sides(image, self.size, self.max_size, name, smooth)

    def _add_to(self, program: ImageProgram, params: Params, kind: type) -> bool:
        size = self._out_size(program.height, program.width)
        if _geometry.is_size((program.height, program.width), size):
            return True  # the image stays as it is
        return self._add_steps(
            program, self._moving_steps(params, (program.height, program.width), kind), kind
        )

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        how = _geometry.resize_interpolation(self.interpolation, self.antialias, kind)
        return [steps.Resize(self._out_size(*size), *how)]

    def _batch(self, images: PendingBatch, params: Params) -> Any:
        name, smooth = _geometry.resize_interpolation(self.interpolation, self.antialias, Tensor)
        _geometry.require_antialias(name, self.antialias)
        if self._has_one_size():
            return images.crop_and_resize(None, self.size, name, smooth)
        return images.resize(self._sizes_after(images.sizes), name, smooth)

    def _has_one_size(self) -> bool:
        return isinstance(self.size, (tuple, list)) and len(self.size) == 2

    def _sizes_after(self, sizes: Tensor) -> Tensor:
        """Return the sizes of images after the resize, as torchvision computes them."""
        torchvision_private.size_after_resize(
            (1, 1), self.size, self.max_size
        )  # which may refuse the arguments
        short, long = sizes.amin(1).double(), sizes.amax(1).double()
        if self.size is None:
            new_short, new_long = (self.max_size * short / long).trunc(), torch.full_like(long, self.max_size)
        else:
            (wanted,) = self.size if isinstance(self.size, (tuple, list)) else (self.size,)
            new_short, new_long = torch.full_like(short, wanted), (wanted * long / short).trunc()
            if self.max_size is not None:
                is_long = new_long > self.max_size
                new_short = torch.where(is_long, (self.max_size * new_short / new_long).trunc(), new_short)
                new_long = new_long.clamp(max=self.max_size)
        is_high = sizes[:, :1] > sizes[:, 1:]
        upright, flat = torch.stack([new_long, new_short], 1), torch.stack([new_short, new_long], 1)
        return torch.where(is_high, upright, flat).long()

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = torchvision_private.size_after_resize((height, width), self.size, self.max_size)
        return high, wide


class _RandomResize(RandomSizeTransform):
    _needs_pixels = True
    _goes_back = True
    _random_parameters = (Parameter("size", 2, neutral=lambda shape: [shape[2], shape[3]], kind=int),)

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return torchvision_private.size_after_resize((height, width), values["size"], None)

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return int(numbers[0]), int(numbers[1])

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        wanted, this = self._canvas(params), cast("Any", self)
        if params.is_one_draw and wanted == size and kind is not tv_tensors.Mask:
            return []
        return [steps.Resize(wanted, *_geometry.resize_interpolation(this.interpolation, this.antialias))]


class RandomResize(_RandomResize, v2.RandomResize):
    """Resize the image to a random size, as torchvision's RandomResize does.

    The pixels are PIL's. The shortest side gets a length from a range; use :class:`RandomShortestSize` for a
    list of lengths, :class:`ScaleJitter` for a range of factors. Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    min_size : int
        The least length of the shortest side in pixels.
    max_size : int
        The upper end of the range of lengths (exclusive).
    per_sample : bool
        It must be False for a batch, because samples of different sizes cannot form one.
    """

    _config = ("min_size", "max_size")

    def _draw(self, inputs: Any) -> Numbers | None:
        if not inputs:  # there is no size without an image; torchvision's code draws, and returns the inputs
            self.make_params(inputs)
            return None
        return super()._draw(inputs)


class RandomShortestSize(_RandomResize, v2.RandomShortestSize):
    """Resize the image to a random length of its shortest side, as torchvision's RandomShortestSize does.

    The pixels are PIL's. The length is one of a list, as in the training of detectors; use
    :class:`RandomResize` for a range. Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    min_size : int or sequence of int
        The length of the shortest side in pixels, or several, of which one is drawn.
    max_size : int, optional
        The greatest length of the longest side; by default it has no limit.
    per_sample : bool
        It must be False for a batch, because samples of different sizes cannot form one.
    """

    _one_size = True
    _config = ("min_size", "max_size")


class ScaleJitter(_RandomResize, v2.ScaleJitter):
    """Resize the image by a random scale, as torchvision's ScaleJitter does.

    The pixels are PIL's. The image is scaled relative to a target, as in large scale jittering; use
    :class:`RandomResize` for a range of lengths. Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    target_size : (int, int)
        The width and height in pixels into which the image fits at scale 1; as in torchvision, the width
        comes first.
    scale_range : (float, float)
        The range of the factor of that size.
    per_sample : bool
        It must be False for a batch, because samples of different sizes cannot form one.
    """

    _one_size = True
    _config = ("target_size", "scale_range")
