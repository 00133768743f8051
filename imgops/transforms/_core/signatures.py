"""The constructor arguments of torchvision's classes, and those that imgops adds."""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch

from imgops._common import check


def is_own(cls: type, method: str) -> bool:
    """Return whether a method of a class is torchvision's or imgops', not a user's."""
    owner = next((c for c in cls.__mro__ if method in vars(c)), None)
    return owner is None or owner.__module__.startswith(("imgops.", "torchvision."))


def take_init(cls: Any, mixin: type) -> None:
    """Give a class an ``__init__`` with torchvision's arguments, its switches, and those of sampling.

    The ``__init__`` also sets the description of the transform.
    """
    theirs = next(c for c in cls.__mro__[1:] if "__init__" in vars(c))
    if issubclass(theirs, mixin) or not issubclass(theirs, torch.nn.Module):
        return  # the inherited __init__ is complete
    random = hasattr(cls, "_start")  # whether the transform samples

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        per_sample = keywords.pop("per_sample", False) if random else False
        generator = keywords.pop("generator", None) if random else None
        switches = {name: keywords.pop(name) for name in cls._switches if name in keywords}
        numbers = {name: check.plain(value) for name, value in keywords.items()}
        super(cls, self).__init__(*map(check.plain, args), **numbers)
        for name, value in switches.items():
            if check.switch(type(self).__name__, name, value):  # so that ``repr`` shows no others
                setattr(self, name, True)
        if random:
            self._start(per_sample, generator)
        elif is_own(type(self), "transform"):
            self._describe()

    cls.__init__ = __init__
    take_signature(cls, theirs)


def take_signature(cls: Any, theirs: type) -> None:
    """Set the signature to torchvision's arguments, the switches of the class, and those of sampling."""
    signature = inspect.signature(theirs.__init__)
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, kind, default=False, annotation=bool) for name in cls._switches]
    if hasattr(cls, "_start"):
        added += [
            inspect.Parameter("per_sample", kind, default=False, annotation=bool),
            inspect.Parameter("generator", kind, default=None, annotation="torch.Generator | None"),
        ]
    if added:
        signature = signature.replace(parameters=[*signature.parameters.values(), *added])
    cls.__init__.__signature__ = signature


#: The parameters that many transforms share, as their docstrings have them.
_SHARED = {
    "interpolation": """interpolation : InterpolationMode, str or int
    The interpolation of images; masks take the nearest pixel.""",
    "antialias": """antialias : bool or None
    Whether to smooth while shrinking, as PIL does, or to resample without smoothing, as OpenCV does; for
    bilinear and bicubic. PIL images are always smoothed.""",
    "p": """p : float
    The probability that the transform is applied.""",
    "swap": """swap : sequence of (int, int) or "coco", optional
    The pairs of left and right keypoints, which are exchanged along the dimension before the last of
    ``KeyPoints``, together with the flags of ``visible_getter``. "coco" stands for COCO's 17 keypoints.""",
    "swap_labels": """swap_labels : sequence of (int, int), optional
    The pairs of left and right classes of boxes or of instance masks, which are exchanged in the labels.""",
    "swap_masks": """swap_masks : sequence of (int, int), optional
    The pairs of left and right values of masks, which are exchanged.""",
    "labels_getter": """labels_getter : callable, "default" or None
    The function that finds the labels in the inputs, one for each box or mask, in the order of the boxes. The
    default takes the tensors under the key "labels", or under keys like it, of all dicts.""",
    "visible_getter": """visible_getter : callable, "default" or None
    The function that finds the flags of keypoints, one tensor for each. The default takes the tensors under
    keys like "visible" of all dicts, if there are any.""",
    "boxes_from_masks": """boxes_from_masks : bool
    Whether each box becomes the smallest box around its instance mask after the crop, as
    :class:`BoxesFromMasks` makes it: (0, 0, 0, 0) if no pixel of the object is left.""",
    "min_visible": """min_visible : float
    A box whose visible share is smaller becomes empty, (0, 0, 0, 0), so that :class:`SanitizeBoundingBoxes`
    drops it with its label. By default all boxes stay.""",
    "per_sample": """per_sample : bool
    Whether each image of a batch has its own draws, instead of one draw for all.""",
    "generator": """generator : torch.Generator, optional
    Draw from this generator instead of PyTorch's global one.""",
}
_HEADING = "Parameters\n----------\n"


def complete_docstring(cls: type) -> None:
    """Add the shared parameters that a class does not describe itself to its docstring, in their order."""
    text = inspect.cleandoc(cls.__doc__ or "")
    before, _, rest = text.partition(_HEADING)
    if not rest:
        parts = re.split(r"(?m)^(?=Notes\n---|Examples\n---)", before, maxsplit=1)
        before, after = f"{parts[0].rstrip()}\n\n", "\n" + "".join(parts[1:])
        entries = []
    else:
        end = re.search(r"\n\n(?=[A-Z]\w+\n---)", rest)
        after = rest[end.start() + 1 :] if end else ""
        entries = re.split(r"\n(?=\S)", rest[: end.start()] if end else rest.rstrip())
    by_name = {name: entry for entry in entries for name in entry.partition(" : ")[0].split(", ")}
    names = [name for name in inspect.signature(cls).parameters if name in by_name or name in _SHARED]
    listed = [by_name.pop(name, None) or _SHARED[name] for name in names]
    listed = list(dict.fromkeys([*listed, *by_name.values()]))
    if listed:
        cls.__doc__ = f"{before}{_HEADING}" + "\n".join(listed) + f"\n{after}"
