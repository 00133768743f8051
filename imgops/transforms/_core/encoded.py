"""Encoded images at the head of a pipeline: transforms decode them, or only the part that they need."""

from __future__ import annotations

from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops import EncodedImage, EncodedImages
from imgops._common.torch_private import tree_flatten, tree_unflatten
from imgops.batches.packed import PackedImages


def is_among(flat: list[Any]) -> bool:
    """Return whether there is an encoded image among flat inputs."""
    return any(isinstance(x, EncodedImage) for x in flat)


def decoded(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
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
    return wrap(value.decode(), flat) if isinstance(value, EncodedImage) else value


def wrap(image: Tensor, flat: list[Any]) -> Tensor:
    """Return a decoded image as an input; among other inputs its class must say that it is an image."""
    return image if len(flat) == 1 else tv_tensors.Image(image)


def stand_in(image: EncodedImage) -> Tensor:
    """Return a tensor of the shape of an encoded image, from which a transform reads the size."""
    return torch.empty(image.shape, dtype=torch.uint8, device="meta")
