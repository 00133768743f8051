"""Tensor subclasses: tv_tensors keep their class, and parameters of calls with a DTensor are replicated."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common import torch_private

_ORDINARY = (Tensor, torch.nn.Parameter)


def is_ordinary(values: Sequence[Any]) -> bool:
    """Return whether every tensor among ``values`` is a plain tensor or parameter, not a subclass."""
    return all(type(value) in _ORDINARY for value in values if isinstance(value, Tensor))


def is_tv_tensor(value: Any) -> bool:
    """Return whether ``value`` is a tv_tensor, without importing torchvision."""
    return type(value) not in _ORDINARY and _is_tv_class(type(value), "TVTensor")


def shows_image(value: Any) -> bool:
    """Return whether a tensor may be an image: it is a plain tensor or a ``tv_tensors.Image``."""
    return not is_tv_tensor(value) or _is_tv_class(type(value), "Image", True)


def is_mask(value: Any) -> bool:
    return _is_tv_class(type(value), "Mask")


# If dynamo traced this function, each graph would make variables of the 3000 items of sys.modules.
@torch_private.constant_in_graphs
def _is_tv_class(cls: type, name: str, itself: bool = False) -> bool:
    """Return whether ``cls`` is torchvision's class ``name`` of tensors or, unless ``itself``, a subclass."""
    torchvision = sys.modules.get("torchvision.tv_tensors")
    if torchvision is None:
        return False
    theirs = getattr(torchvision, name)
    return cls is theirs if itself else issubclass(cls, theirs)


def plain(value: Any) -> Any:
    """Return a tv_tensor as an ordinary tensor with the same memory in the same autograd graph."""
    if not (isinstance(value, Tensor) and is_tv_tensor(value)):
        return value
    if is_compiling():  # dynamo does not support as_subclass, but an ATen operator drops the class
        torch_private.accept_subclasses()
        return torch.ops.aten.alias.default(value)
    return value.as_subclass(Tensor)


def rewrap(out: Any, original: Any, **metadata: Any) -> Any:
    """Wrap ``out`` as a tv_tensor of the class of ``original``, with its metadata."""
    if out is None or not is_tv_tensor(original):
        return out
    wrap = getattr(type(original), "wrap", None)  # torchvision has no ``wrap`` before 0.29
    if wrap:
        return wrap(out, original, **metadata)
    return sys.modules["torchvision.tv_tensors"].wrap(out, like=original, **metadata)


def replicate_with_dtensors(values: Sequence[Any]) -> Sequence[Any]:
    """Replicate the plain tensors of a call with a DTensor, as parameters that all ranks have."""
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed is None:
        return values
    mesh = next((v.device_mesh for v in values if isinstance(v, distributed.DTensor)), None)
    if mesh is None:
        return values

    def place(value: Any) -> Any:
        if not isinstance(value, Tensor) or isinstance(value, distributed.DTensor):
            return value
        whole = [distributed.Replicate()] * mesh.ndim
        return distributed.DTensor.from_local(value, mesh, whole, run_check=False)

    return [place(v) for v in values]
