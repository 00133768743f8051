"""A drop-in for ``torchvision.transforms.v2``: PIL's and OpenCV's pixels, one graph, draws per sample.

``from imgops import transforms as v2`` is enough for a whole script. The classes in ``OURS`` run imgops'
operators and keep torchvision's names, arguments, defaults and draws; with ``per_sample=True`` each image of
a batch has its own draws. The classes in ``ADDED`` are not in torchvision, but follow its conventions. Every
other name is torchvision's own.
"""

from __future__ import annotations

from difflib import get_close_matches as _get_close_matches
from importlib import import_module as _import_module
from typing import Any

from torchvision.transforms import v2 as _reference

from imgops.transforms import functional as functional
from imgops.transforms import recipes as recipes
from imgops.transforms._core.probabilistic import ADDED as _ADDED
from imgops.transforms._core.seeding import seeded as seeded
from imgops.transforms.annotations import *
from imgops.transforms.color import *
from imgops.transforms.containers import *
from imgops.transforms.conversion import *
from imgops.transforms.dropout import *
from imgops.transforms.filters import *
from imgops.transforms.geometry import *
from imgops.transforms.imagenet_c import *
from imgops.transforms.mixing import *
from imgops.transforms.noise import *
from imgops.transforms.policy import *
from imgops.transforms.video import *
from imgops.transforms.weather import *

#: The classes that torchvision does not have.
ADDED = tuple(sorted(_ADDED))
#: The classes of torchvision that run imgops' operators.
OURS = tuple(
    sorted(
        n
        for n, v in globals().items()
        if isinstance(v, type) and v.__module__.startswith("imgops.") and n not in _ADDED
    )
)


class _Text:
    """The text of an error that looks for similar names only when printed: many callers test for a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        name = self.name
        classes = (*OURS, *ADDED)
        close = [c for n in (name, f"Random{name}") for c in _get_close_matches(n, classes, 2, 0.75)]
        close += [c for c in classes if len(name) > 3 and name.lower() in c.lower()]
        hint = f"; did you mean {' or '.join(map(repr, list(dict.fromkeys(close))[:4]))}?" if close else ""
        return f"module {__name__!r} has no attribute {name!r}{hint}"


#: The modules of the functions that convert pipelines of other libraries to the classes above.
_CONVERSIONS = {
    "convert": "imgops.integrations.convert",
    "from_albumentations": "imgops.integrations.albumentations",
}


def __getattr__(name: str) -> Any:
    if name in _CONVERSIONS:
        return getattr(_import_module(_CONVERSIONS[name]), name)
    try:
        return getattr(_reference, name)
    except AttributeError:
        raise AttributeError(_Text(name), name=name) from None


def __dir__() -> list[str]:
    own = (
        "ADDED",
        "OURS",
        "convert",
        "corruptions",
        "from_albumentations",
        "functional",
        "recipes",
        "seeded",
    )
    return sorted({*own, *OURS, *ADDED, *(n for n in dir(_reference) if not n.startswith("_"))})


__all__ = __dir__()
