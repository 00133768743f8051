"""Conversion of boxes, keypoints and masks to plain tensors and text, which operators take, and back."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.compiler import is_compiling
from torchvision import tv_tensors

from imgops._common import check


def kind_of(inpt: Any) -> str:
    """Return, as text, the class and metadata from which :func:`by_torchvision` makes a tv_tensor again."""
    if isinstance(inpt, tv_tensors.BoundingBoxes):
        return f"{inpt.format.value},{getattr(inpt, 'clamping_mode', 'soft')}"
    if isinstance(inpt, tv_tensors.Mask):
        return "mask"
    return "keypoints" if isinstance(inpt, tv_tensors.KeyPoints) else "image"


def need_operator(inpt: Any) -> bool:
    """Return whether an input is boxes or keypoints in a graph.

    Dynamo cannot trace torchvision's code for them, so an operator runs it.
    """
    return isinstance(inpt, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)) and is_compiling()


def tv_tensor(plain: Tensor, kind: str, canvas: tuple[int, int]) -> Any:
    if kind == "image":
        return plain
    if kind == "mask":
        return tv_tensors.Mask(plain)
    if kind == "keypoints":
        return tv_tensors.KeyPoints(plain, canvas_size=canvas)
    format, clamping = kind.split(",")
    boxes: dict[str, Any] = {"format": format, "canvas_size": canvas}
    if clamping != "soft":  # older versions of torchvision have no other mode
        boxes["clamping_mode"] = None if clamping == "None" else clamping
    return tv_tensors.BoundingBoxes(plain, **boxes)


def shown(metadata: Any) -> Any:
    """Return a format, a clamping mode or a canvas in the form that a message shows."""
    if isinstance(metadata, tuple):
        return check.written(metadata)
    return getattr(metadata, "value", metadata)
