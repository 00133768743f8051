"""Models whose backend on arrays does other steps than its backend on tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from transformers.image_processing_base import BatchFeature

from imgops.integrations.transformers import _pixels as pixels
from imgops.integrations.transformers._backend import PAD_BATCH, PREPARE_VIDEOS


@lru_cache(maxsize=32)
def _smooth_and_zoom(size: int, new: int, device: torch.device) -> Tensor:
    """Return scipy.ndimage's Gaussian filter and linear zoom along an axis, as a matrix ``(new, size)``.

    Both mirror at the borders without repeating the outermost pixel.
    """

    def mirrored(index: Tensor) -> Tensor:
        period = max(2 * size - 2, 1)
        index = index % period
        return torch.minimum(index, period - index)

    weights = torch.eye(size, dtype=torch.float64, device="cpu")
    sigma = max(0.0, (size / new - 1) / 2)
    if sigma > 1e-15:
        reach = math.floor(4 * sigma + 0.5)
        taps = torch.exp(
            -0.5 / sigma**2 * torch.arange(-reach, reach + 1, dtype=torch.float64, device="cpu") ** 2
        )
        rows = torch.arange(size, dtype=torch.int64, device="cpu")[:, None].expand(-1, len(taps))
        at = mirrored(rows + torch.arange(-reach, reach + 1, dtype=torch.int64, device="cpu"))
        share = (taps / taps.sum()).expand(size, -1)
        weights = torch.zeros(size, size, dtype=torch.float64, device="cpu").index_put(
            (rows, at), share, accumulate=True
        )
    position = (torch.arange(new, dtype=torch.float64, device="cpu") + 0.5) * (size / new) - 0.5
    left = position.floor()
    far = (position - left)[:, None]
    first, second = (mirrored(left.long() + i) for i in (0, 1))
    return ((1 - far) * weights[first] + far * weights[second]).to(device)


def _resize_as_scipy(
    self: Any,
    usual: Any,
    image: Tensor,
    size: Any,
    anti_aliasing: bool = True,
    anti_aliasing_sigma: Any = None,
    **kwargs: Any,
) -> Tensor:
    if size is None:  # see "_preprocess" below
        return image
    if not anti_aliasing or anti_aliasing_sigma is not None:
        return usual(self, image, size, anti_aliasing, anti_aliasing_sigma, **kwargs)
    height, width = image.shape[-2:]
    down = _smooth_and_zoom(height, int(size.height), image.device)
    across = _smooth_and_zoom(width, int(size.width), image.device)
    out = (down @ image.double()) @ across.T
    low, high = (f(image.flatten(-3), -1)[..., None, None, None] for f in (torch.amin, torch.amax))
    return out.clamp(low, high).to(image.dtype)


def _make_thumbnail(self: Any, usual: Any, image: Tensor, size: Any) -> Tensor:
    """Make a thumbnail by PIL itself where its ``reducing_gap`` counts: from a quarter of the size on."""
    out: Tensor = usual(self, image, size)
    height, width = out.shape[-2:]
    if image.shape[-2] < 4 * height and image.shape[-1] < 4 * width:
        return out
    frames = pixels.as_levels(image)[0].movedim(-3, -1).cpu().numpy()
    how: Any = {"resample": PIL.Image.Resampling.BICUBIC, "reducing_gap": 2.0}
    small = [
        np.array(PIL.Image.fromarray(x[..., 0] if x.shape[-1] == 1 else x).resize((width, height), **how))
        for x in frames.reshape(-1, *frames.shape[-3:])
    ]
    levels = torch.from_numpy(np.stack(small)).reshape(*frames.shape[:-3], height, width, -1)
    return levels.movedim(-1, -3).to(image.device)


def _normalize_each(self: Any, usual: Any, image: Tensor, **kwargs: Any) -> Tensor:
    """Normalize each image by its own mean and standard deviation, which is NumPy's, of all values."""
    if not image.is_floating_point():
        image = image.float()
    each: Any = {"dim": (-3, -2, -1), "keepdim": True}
    deviation = image.std(correction=0, **each).clamp(min=1 / math.sqrt(image[0].numel()))
    return (image - image.mean(**each)) / deviation


def _resize_as_pytorch(self: Any, usual: Any, image: Tensor, size: Any, **kwargs: Any) -> Tensor:
    """Resize normalized floats by PyTorch's interpolation, as both backends do."""
    new = size.height, size.width
    return torch.nn.functional.interpolate(image.float(), new, mode="bilinear", antialias=True)


def _resize_unless_nearest(
    self: Any, usual: Any, image: Tensor, size: Any, min_size: int, resample: Any = None, **kwargs: Any
) -> Tensor:
    """Resize by the processor's interpolation where nearest neighbors, whose number is 0, are asked for."""
    return usual(self, image, size, min_size, resample or self.resample, **kwargs)


def _at_two_resolutions(self: Any, usual: Any, images: Any, **how: Any) -> BatchFeature:
    """Do the steps of the PIL backend: code on tensors loses images that are not both resized and padded."""
    if how["do_resize"] and how.get("do_pad", True):
        return usual(self, images, **how)
    data: dict[str, list[Tensor]] = {}
    for name in ("high_res_", ""):
        if how["do_resize"]:
            size, resample = how[f"{name}size"], how[f"{name}resample"]
            images = [self.resize(x, size, min_size=how["min_size"], resample=resample) for x in images]
        steps = [how[key] for key in ("do_rescale", "rescale_factor", "do_normalize")]
        steps += [how[f"{name}image_{key}"] for key in ("mean", "std")]
        data[f"{name}pixel_values"] = [self.rescale_and_normalize(x, *steps) for x in images]
    return BatchFeature(data=data, tensor_type=how["return_tensors"])


def _videos_of_arrays(self: Any, usual: Any, videos: Any, *args: Any, **kwargs: Any) -> list[Tensor]:
    videos = [pixels.from_array(x) if isinstance(x, np.ndarray) else x for x in videos]
    return usual(self, videos, *args, **kwargs)


#: The methods that replace those of a class. After ``self`` they take the method that they replace. Where
#: PIL's number of the nearest neighbors, 0, is asked for, transformers takes another interpolation.
METHODS: dict[str, dict[str, Callable[..., Any]]] = {
    "BaseVideoProcessor": {PREPARE_VIDEOS: _videos_of_arrays},
    "DPTImageProcessor": {
        "pad_image": lambda self, usual, image, size_divisor=1, **how: (
            image if size_divisor is None else usual(self, image, size_divisor, **how)
        )
    },
    "DeepseekVLHybridImageProcessor": {"_preprocess": _at_two_resolutions, "resize": _resize_unless_nearest},
    "DeepseekVLImageProcessor": {"resize": _resize_unless_nearest},
    "DonutImageProcessor": {
        "thumbnail": lambda self, usual, image, size, resample=None: usual(
            self, image, size, resample or PIL.Image.Resampling.BICUBIC
        )
    },
    "JanusImageProcessor": {"resize": _resize_unless_nearest},
    "Kosmos2_5ImageProcessor": {"normalize": _normalize_each},
    "MobileViTImageProcessor": {"flip_channel_order": lambda self, usual, images: images.flip(-3)},
    "NougatImageProcessor": {
        "crop_margin": lambda self, usual, image, gray_threshold=200: usual(
            self, pixels.as_levels(image)[0], gray_threshold
        ),
        "thumbnail": _make_thumbnail,
    },
    "Owlv2ImageProcessor": {
        # Code on tensors loses images that are not resized.
        "_preprocess": lambda self, usual, images, do_resize, size, **how: usual(
            self, images, do_resize=True, size=size if do_resize else None, **how
        ),
        "resize": _resize_as_scipy,
    },
    "Pix2StructImageProcessor": {"normalize": _normalize_each, "resize": _resize_as_pytorch},
    "ViltImageProcessor": {
        # Code on tensors pads images only for PyTorch's tensors, which are what it returns in any case.
        PAD_BATCH: lambda self, usual, images, return_tensors, disable_grouping: usual(
            self, images, "pt", disable_grouping
        )
    },
}
