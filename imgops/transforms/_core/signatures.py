"""The constructor arguments of torchvision's classes, and those that imgops adds."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from imgops.transforms._core.programs import description_of


def is_own(cls: type, method: str) -> bool:
    """Return whether a method of a class is torchvision's or imgops', not a user's."""
    owner = next((c for c in cls.__mro__ if method in vars(c)), None)
    return owner is None or owner.__module__.startswith(("imgops.", "torchvision."))


def take_init(cls: Any, mixin: type) -> None:
    """Give a class an ``__init__`` with torchvision's arguments, and with imgops' arguments if it samples.

    The ``__init__`` also sets the description of the transform.
    """
    theirs = next(c for c in cls.__mro__[1:] if "__init__" in vars(c))
    if issubclass(theirs, mixin) or not issubclass(theirs, torch.nn.Module):
        return  # the inherited __init__ is complete
    random = hasattr(cls, "_start")  # whether the transform samples

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        per_sample = keywords.pop("per_sample", False) if random else False
        generator = keywords.pop("generator", None) if random else None
        super(cls, self).__init__(*args, **keywords)
        if random:
            self._start(per_sample, generator)
        elif is_own(type(self), "transform"):
            self._description = description_of(self)

    cls.__init__ = __init__
    take_signature(cls, theirs)


def take_signature(cls: Any, theirs: type) -> None:
    """Set the signature to torchvision's arguments, and imgops' arguments if the transform samples."""
    signature = inspect.signature(theirs.__init__)
    if hasattr(cls, "_start"):
        kind = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter("per_sample", kind, default=False, annotation=bool),
            inspect.Parameter("generator", kind, default=None, annotation="torch.Generator | None"),
        ]
        given = list(signature.parameters.values())
        signature = signature.replace(parameters=[*given, *added])
    cls.__init__.__signature__ = signature
