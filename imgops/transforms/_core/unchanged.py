"""The warning about calls whose inputs have nothing that a transform changes.

torchvision's transforms return arrays, texts and numbers unchanged, and so do imgops'. A pipeline that gets
only such inputs does nothing, which nobody wants. A transform makes a note if it finds nothing to change; the
outermost call, of a transform alone or of a container, warns if its result is its input.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
from torch import Tensor

from imgops import EncodedImage
from imgops._common.categories import NothingChangesWarning
from imgops._common.torch_private import is_eager, tree_flatten
from imgops.transforms._core.parameters import BATCHES

#: The classes of inputs that transforms may change.
IMAGES: tuple[type, ...] = (Tensor, PIL.Image.Image, EncodedImage, *BATCHES)
#: The packages whose frames are not those of the user who made the call.
_LIBRARIES = ("imgops", "torch", "torchvision")

#: In the thread of an outermost call: "found_nothing", whether a transform found nothing to change. Empty
#: outside of calls.
_outermost = threading.local()


def watch(transform: Any, call: Callable[..., Any], inputs: tuple[Any, ...], *more: Any) -> Any:
    """Return ``call(inputs, *more)``; in eager mode warn if this changes nothing.

    A call whose first input is an image is not watched, because the transform changes that one.
    """
    if not inputs or isinstance(inputs[0], IMAGES) or not is_eager():
        return call(inputs, *more)
    state = _outermost.__dict__  # each access to an attribute takes longer
    if state:  # a transform of a container, which warns itself
        return call(inputs, *more)
    state["found_nothing"] = False
    try:
        out = call(inputs, *more)
    except TypeError as error:
        if not str(error).startswith("No image, video"):  # torchvision's, which does not name the inputs
            raise
        raise TypeError(f"{transform._get_name()}: {_describe(tree_flatten(inputs)[0])}") from error
    finally:
        found_nothing = state.pop("found_nothing")
    if found_nothing and transform.warn_if_nothing_changes:
        before, after = (tree_flatten(x)[0] for x in (inputs, out))
        if len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True)):
            _warn(transform, before)
    return out


def note(transform: Any, flat: list[Any]) -> None:
    """Note that a transform changes none of its flat inputs."""
    state = _outermost.__dict__
    if not (state and transform._needs_image and transform.warn_if_nothing_changes):
        return
    if not any(isinstance(x, IMAGES) for x in flat) and any(x is not None for x in flat):
        state["found_nothing"] = True


def _warn(transform: Any, flat: list[Any]) -> None:
    """Warn where the user calls a transform, once for each."""
    if transform.__dict__.get("_has_warned"):
        return
    transform.__dict__["_has_warned"] = True
    level, frame = 1, sys._getframe(0)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{type(transform).__name__}: {_describe(flat, ', which come back unchanged')}. This is said once; "
        "warn_if_nothing_changes = False turns it off",
        NothingChangesWarning,
        stacklevel=level,
    )


def _describe(flat: list[Any], more: str = "") -> str:
    """Return the text about flat inputs without anything that a transform changes."""
    got = ", ".join(dict.fromkeys(type(x).__name__ for x in flat)) or "nothing"
    return f"inputs must have an image, a video, a mask, boxes or keypoints, got {got}{more}{hint(flat)}"


def hint(flat: list[Any]) -> str:
    """Return how flat inputs become images, as the end of an error; "" if they hold no array or path."""
    if any(isinstance(x, np.ndarray) for x in flat):
        return "; ToImage() makes images of arrays"
    if flat and all(isinstance(x, (str, os.PathLike)) for x in flat):
        return "; imgops.EncodedImage(path) is the image of a file"
    return ""
