"""The inputs of a transform: structures of images, masks, boxes, keypoints, batches and files."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from functools import lru_cache
from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops import EncodedImage, EncodedImages
from imgops._common import check
from imgops._common.torch_private import raise_error, tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.batches.packed import PackedImages
from imgops.transforms._core.parameters import BATCHES
from imgops.transforms._core.projections import PROJECTED, Camera
from imgops.transforms.functional import _dispatch

ANNOTATIONS = (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)
#: The classes of what follows an image.
FOLLOWERS = (*ANNOTATIONS, *PROJECTED, tv_tensors.Mask)
#: The classes that say that an input is an image; without one of them, the first plain tensor is the image.
SHOWN = (tv_tensors.Image, tv_tensors.Video, PIL.Image.Image, EncodedImage)


def refuse_nested(transform: Any, inpt: Any) -> None:
    """Raise for nested boxes, those of several samples, which torchvision's code does not support."""
    if inpt.is_nested:
        must = f"{type(transform).__name__}: bounding boxes must not be nested in a transform without"
        raise_error(ValueError, f"{must} per_sample=True, got nested ones")


#: The least numbers of dimensions of a batch; that of other images is 4.
_LEAST = {tv_tensors.KeyPoints: 2, tv_tensors.Mask: 3, Camera: 3, tv_tensors.Video: 5}


def require_batches(owner: str, inputs: list[Any], count: int) -> None:
    """Raise if an image, a mask or keypoints of samples with their own draws are not for all samples."""
    for inpt in inputs:
        if type(inpt) in BATCHES:
            continue
        shape = subclass.plain(inpt).shape if isinstance(inpt, Tensor) else ()
        least = next((n for kind, n in _LEAST.items() if isinstance(inpt, kind)), 4)
        if len(shape) < least or check.violates(shape[0] == count):
            must = f"{owner}: {type(inpt).__name__} must be a batch of {check.number(count)}"
            got = f"shape {check.written(shape)}" if shape else "one alone"
            raise_error(ValueError, f"{must} with per_sample=True, got {got}")


def samples_of(inputs: Any, count: int) -> list[int | None]:
    """Return, for each flat input, the one sample to which it belongs, or None if it belongs to all.

    A list with as many values as there are samples, none of them an image, has one value per sample, and so
    does a tuple whose values have boxes, masks or keypoints. Tensors in them must be of one class: a mask and
    keypoints are not those of two samples. Wherever bounding boxes are, they belong to one sample each if
    their number is that of the samples.
    """
    flat, _ = tree_flatten(inputs)
    owners = _owners(inputs, count, images_among(flat))
    boxes = [i for i, x in enumerate(flat) if isinstance(x, tv_tensors.BoundingBoxes) and not x.is_nested]
    if len(boxes) == count:
        for sample, i in enumerate(boxes):
            owners[i] = sample
    return owners


def _owners(value: Any, count: int, images: list[Any]) -> list[int | None]:
    flat, _ = tree_flatten(value)
    if _has_one_for_each(value, count) and not any(x is i for x in flat for i in images):
        return [i for i, x in enumerate(value) for _ in tree_flatten(x)[0]]
    inside = values_of(value)
    if inside:
        return [owner for child in inside for owner in _owners(child, count, images)]
    return [None] * len(flat)


def _has_one_for_each(value: Any, count: int) -> bool:
    """Return whether a list or tuple has the form of one value for each sample."""
    if type(value) not in (list, tuple) or len(value) != count:
        return False
    classes = [type(x) for x in value if isinstance(x, Tensor)]
    if any(cls is not classes[0] for cls in classes):
        return False
    return type(value) is list or all(
        any(isinstance(x, FOLLOWERS) for x in tree_flatten(v)[0]) for v in value
    )


def name_images(flat: list[Any], out: list[Any]) -> list[Any]:
    """Return outputs in which a batch that has become one tensor is an Image, if a plain tensor is before it.

    The next transform would take that tensor, such as labels, as the image.
    """
    for i, (before, after) in enumerate(zip(flat, out, strict=True)):
        if type(before) in BATCHES and type(after) is Tensor and any(type(x) is Tensor for x in flat[:i]):
            out[i] = after.as_subclass(tv_tensors.Image)
    return out


def has_batches(inputs: tuple[Any, ...]) -> bool:
    """Return whether there are images of different sizes among the arguments or in a structure of them."""
    for x in inputs:
        if type(x) in BATCHES:
            return True
        inside = values_of(x)
        if inside and has_batches(inside):
            return True
    return False


def values_of(inpt: Any) -> tuple[Any, ...]:
    """Return the values in a structure of inputs; torchvision treats other classes as one value."""
    if type(inpt) in (dict, OrderedDict, defaultdict):
        return tuple(inpt.values())
    is_named = isinstance(inpt, tuple) and hasattr(inpt, "_fields")
    return tuple(inpt) if type(inpt) in (list, tuple) or is_named else ()


def arguments_of(inputs: Any) -> tuple[Any, ...]:
    return inputs if type(inputs) is tuple and len(inputs) > 1 else (inputs,)


def images_among(flat: list[Any]) -> list[Any]:
    """Return the images among flat inputs: without another image, the first plain tensor is one."""
    batches = [x for x in flat if type(x) in BATCHES]
    shown = batches or [x for x in flat if isinstance(x, SHOWN)]
    return shown or [x for x in flat if _dispatch.is_image(x)][:1]


def batch_of(inputs: list[Any]) -> int | None:
    """Return the number of samples of the first batch of images; None if there is none."""
    for inpt in images_among(inputs):
        if type(inpt) in BATCHES:
            return len(inpt)
        if isinstance(inpt, Tensor):
            image = subclass.plain(inpt)
            if has_samples(inpt, image):
                return image.shape[0]
    return None


def has_samples(inpt: Any, plain: Tensor) -> bool:
    """Return whether an image has a batch dimension; the frames of a video are none."""
    return plain.ndim > (4 if isinstance(inpt, tv_tensors.Video) else 3)


@lru_cache(maxsize=256)
def meta_image(samples: int, channels: int, height: int, width: int) -> Tensor:
    """Return a tensor on the meta device, from which a transform reads the size of its input."""
    shape = (channels, height, width) if samples == 1 else (samples, channels, height, width)
    return torch.empty(shape, device="meta", dtype=torch.float32)


# -- files, which transforms decode, or only the part that they need ------------------------------


def has_encoded(flat: list[Any]) -> bool:
    """Return whether there is an encoded image among flat inputs."""
    return any(isinstance(x, EncodedImage) for x in flat)


def decode_all(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a transform with their encoded images decoded."""
    if len(inputs) == 1 and isinstance(inputs[0], (Tensor, PIL.Image.Image, PackedImages)):
        return inputs
    flat, structure = tree_flatten(inputs)
    if not any(isinstance(x, (EncodedImage, EncodedImages)) for x in flat):
        return inputs
    return tree_unflatten([_decoded(x, flat) for x in flat], structure)


def _decoded(value: Any, flat: list[Any]) -> Any:
    if isinstance(value, EncodedImages):
        return value.decode()
    return as_image(value.decode(), flat) if isinstance(value, EncodedImage) else value


def as_image(image: Tensor, flat: list[Any]) -> Tensor:
    """Return a decoded image as an input; among other inputs its class must say that it is an image."""
    return image if len(flat) == 1 else tv_tensors.Image(image)


def stand_in(image: EncodedImage) -> Tensor:
    """Return a tensor of the shape of an encoded image, from which a transform reads the size."""
    return torch.empty(image.shape, dtype=image.dtype, device="meta")
