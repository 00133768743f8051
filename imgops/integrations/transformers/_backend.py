"""The backend: transformers' primitives on tensors, with the pixels of its backend on PIL images.

All of the private names of transformers are here; ``tests/test_integrations_private.py`` fails if one moves,
or if another module uses one.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.compiler import is_compiling
from transformers.image_processing_backends import TorchvisionBackend
from transformers.image_processing_base import BatchFeature
from transformers.image_transforms import (
    convert_to_rgb,
    get_resize_output_image_size,
    get_size_with_aspect_ratio,
)
from transformers.image_utils import (
    ChannelDimension,
    get_image_size_for_max_height_width,
)

import imgops
from imgops.integrations.transformers import _pixels as pixels
from imgops.transforms._core.origin import is_code_of

#: The method of video processors that takes the frames of a video apart.
PREPARE_VIDEOS = "_prepare_input_videos"
#: ViLT's method that pads images to one size.
PAD_BATCH = "_pad_batch"
#: From 5.21 on transformers asks for the form of a converted image.
_AS_ARRAY: dict[str, Any] = (
    {"return_numpy": True} if "return_numpy" in inspect.signature(convert_to_rgb).parameters else {}
)


def _new_size(image: Tensor, size: Any) -> tuple[int, int]:
    """Return the height and width that one of transformers' four forms of a size means for an image."""
    now = tuple(image.shape[-2:])
    if size.shortest_edge and size.longest_edge:
        new = get_size_with_aspect_ratio(now, size.shortest_edge, size.longest_edge)
    elif size.shortest_edge:
        new = get_resize_output_image_size(
            image, size=size.shortest_edge, default_to_square=False, input_data_format=ChannelDimension.FIRST
        )
    elif size.max_height and size.max_width:
        new = get_image_size_for_max_height_width(now, size.max_height, size.max_width)
    elif size.height and size.width:
        new = size.height, size.width
    else:
        must = "size must have height and width, max_height and max_width, or shortest_edge"
        raise ValueError(f"resize: {must}, got {size}")
    return int(new[0]), int(new[1])


def _has_users(processor: Any, *names: str) -> bool:
    """Return whether a user's code stands in the place of one of a processor's methods."""
    original = type(processor).original
    found = (vars(processor).get(name) or inspect.getattr_static(original, name) for name in names)
    return not all(is_code_of(("transformers",), getattr(f, "__func__", f)) for f in found)


def _has_no_image(images: Any) -> bool:
    """Return whether a list, an array or each list in a list has no image."""
    if isinstance(images, (list, tuple)):
        return all(isinstance(each, (list, tuple)) and not each for each in images)
    return isinstance(images, (np.ndarray, Tensor)) and images.ndim > 3 and not len(images)


class ExactBackend(TorchvisionBackend):
    """transformers' backend on tensors, with the pixels of its backend on PIL images."""

    #: The model's class of the PIL backend, whose images have 256 levels; None if it has none.
    pil_backend: Any = None

    @property
    def backend(self) -> str:
        return "imgops"

    def __call__(self, images: Any, *args: Any, **kwargs: Any) -> BatchFeature:
        if isinstance(images, imgops.EncodedImages):
            images = images.decode()
        if isinstance(images, imgops.PackedImages):
            images = images.unpack()
        # The backend on tensors asks the first image for its device.
        if self.pil_backend is not None and _has_no_image(images):
            twin = self.pil_backend.__new__(self.pil_backend)
            twin.__dict__.update(self.__dict__)
            return twin(images, *args, **kwargs)
        return super().__call__(images, *args, **kwargs)

    def preprocess(self, images: Any, *args: Any, **kwargs: Any) -> BatchFeature:
        found = super().preprocess(images, *args, **kwargs)
        if is_compiling():  # a graph has no memory that tensors could share
            return found
        return pixels.with_memory_of_its_own(found, images)

    def process_image(
        self,
        image: Any,
        do_convert_rgb: bool | None = None,
        input_data_format: Any = None,
        device: Any = None,
        **kwargs: Any,
    ) -> Tensor:
        if not isinstance(image, PIL.Image.Image):
            if isinstance(image, np.ndarray):
                image = pixels.from_array(image)
            return super().process_image(image, do_convert_rgb, input_data_format, device, **kwargs)
        if do_convert_rgb and (image.mode != "RGB" or "transparency" in image.info):
            out = torch.from_numpy(np.array(convert_to_rgb(image, **_AS_ARRAY)))
        else:
            out = pixels.from_array(np.asarray(image))
        out = out[None] if out.ndim == 2 else out.permute(2, 0, 1)
        return out if device is None else out.to(device)

    def _preprocess(
        self, images: Any, do_resize: bool, size: Any, resample: Any = None, **kwargs: Any
    ) -> BatchFeature:
        is_common = do_resize and size.height and size.width and not _has_users(self, "resize")
        if is_common and pixels.go_together(images):
            how = pixels.interpolation(resample)
            images = list(imgops.resize(imgops.PackedImages.of(images), (size.height, size.width), how))
            do_resize = False
        usual = super()._preprocess

        def call(images: Any, **other: Any) -> BatchFeature:
            return usual(images, do_resize=do_resize, size=size, resample=resample, **{**kwargs, **other})

        is_batch = kwargs.get("return_tensors") == "pt" and not kwargs.get("do_pad")
        if not is_batch or not pixels.are_done_one_by_one(images):
            return call(images)
        each = (call([image], return_tensors=None)["pixel_values"][0] for image in images)
        return BatchFeature(data={"pixel_values": pixels.joined(each, len(images))}, tensor_type="pt")

    def resize(
        self, image: Tensor, size: Any, resample: Any = None, antialias: bool = True, **kwargs: Any
    ) -> Tensor:
        new, how = _new_size(image, size), pixels.interpolation(resample)
        return pixels.resize(image, new, how, antialias, self.pil_backend is not None)

    def convert_to_rgb(self, image: Tensor, input_data_format: Any = None) -> Tensor:
        if image.ndim == 2:
            image = image[None]
        axis = -1 if input_data_format == ChannelDimension.LAST else -3
        channels = image.shape[axis]
        if channels == 1:
            return image.repeat_interleave(3, axis)
        if channels != 4:
            return image
        if image.is_floating_point() and (image.min() < 0 or image.max() > 1):
            low, high = image.min().item(), image.max().item()
            raise ValueError(f"convert_to_rgb: image must have values in [0, 1], got [{low}, {high}]")
        color, alpha = image.narrow(axis, 0, 3), image.narrow(axis, 3, 1)
        white = 1.0 if image.is_floating_point() or image.dtype == torch.bool else 255
        share = alpha / white if image.is_floating_point() else alpha.double() / white
        mixed = share * color + (1 - share) * white
        return (mixed.round() if white == 255 else mixed).to(image.dtype)

    def rescale(self, image: Tensor, scale: float, **kwargs: Any) -> Tensor:
        if image.dtype != torch.uint8 or image.ndim < 3 or not image.numel():
            return (image.double() * scale).float()
        return imgops.lut(image, pixels.table(scale, False, None, None, 1, image.device)[0])

    def normalize(self, image: Tensor, mean: Any, std: Any, **kwargs: Any) -> Tensor:
        if not image.is_floating_point():
            image = image.float()
        mean, std = (pixels.of_channels(name, x, image) for name, x in (("mean", mean), ("std", std)))
        return (image - mean) / std

    def rescale_and_normalize(
        self,
        images: Tensor,
        do_rescale: bool,
        rescale_factor: float,
        do_normalize: bool,
        image_mean: Any,
        image_std: Any,
    ) -> Tensor:
        names = ("normalize", "_fuse_mean_std_and_rescale_factor") if do_normalize else ("rescale",)
        if (do_normalize or do_rescale) and _has_users(self, *names):  # which needs its usual inputs
            return super().rescale_and_normalize(
                images, do_rescale, rescale_factor, do_normalize, image_mean, image_std
            )
        if images.dtype == torch.uint8 and (do_rescale or do_normalize):
            key = [rescale_factor if do_rescale else None, do_normalize]
            key += [tuple(x) if isinstance(x, (list, tuple)) else x for x in (image_mean, image_std)]
            table = pixels.table(*key, images.shape[-3], images.device)
            return imgops.lut(images.contiguous(), table)
        if do_rescale:
            images = self.rescale(images, rescale_factor)
        return self.normalize(images, image_mean, image_std) if do_normalize else images

    def center_crop(self, image: Tensor, size: Any, **kwargs: Any) -> Tensor:
        if size.height is None or size.width is None:
            raise ValueError(f"center_crop: size must have height and width, got {size}")
        height, width = image.shape[-2:]
        top, left = (height - size.height) // 2, (width - size.width) // 2
        return imgops.crop(image, (left, top, left + size.width, top + size.height))

    def to_dict(self) -> dict[str, Any]:
        found = super().to_dict()
        found["image_processor_type"] = type(self).original.__name__
        return found
