"""A reader of pipelines of other libraries, which finds the counterpart of each transform by its class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

import PIL.Image
from torch import Tensor

from imgops import EncodedImage
from imgops._torch_private import raise_error, tree_flatten
from imgops.transforms import containers, conversion
from imgops.transforms._core.parameters import BATCHES
from imgops.transforms.albumentations.rules import Unmapped as Unmapped

#: The counterparts of a transform, in their order.
Maker = Callable[[Any, "Reader"], Any]

#: Module and name of a class or function -> what makes its counterpart, a transform or a list of them.
MAKERS: dict[str, Maker] = {}
#: The same names -> how the pixels of the counterpart differ.
NEAR: dict[str, str] = {}

#: The modes of PIL images with 8 bits a value, whose tensors hold levels.
_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB", "F")


def add_makers(module: str, makers: Mapping[str, Maker]) -> None:
    """Add what makes the counterparts of a module's classes and functions, by their names."""
    MAKERS.update({f"{module}.{name}": make for name, make in makers.items()})


def name_of(given: Any) -> str:
    """Return the name by which a transform is known: its class's, or its own if it is a function."""
    kind = given if isinstance(given, (FunctionType, type)) else type(given)
    return f"{kind.__module__}.{kind.__qualname__}"


class Reader:
    """A reader of one pipeline, which notes what has no counterpart, and what has one that differs."""

    def __init__(self) -> None:
        self.unmapped: list[str] = []
        self.near: dict[str, str] = {}

    def read(self, given: Any) -> list[Any]:
        """Return the counterparts of a transform; something in its place if it has none."""
        if type(given).__module__.startswith("imgops."):
            return [given]
        name = name_of(given)
        short = name.rpartition(".")[2]
        try:
            if name not in MAKERS:
                raise Unmapped
            if getattr(given, "_forward_hooks", None) or getattr(given, "_forward_pre_hooks", None):
                raise Unmapped("forward hooks")
            made = MAKERS[name](given, self)
        except Unmapped as why:
            self.unmapped.append(f"{short}({why})" if str(why) else name)
            return [conversion.Identity()]
        if name in NEAR:
            self.near[short] = NEAR[name]
        return list(made) if isinstance(made, list) else [made]

    def read_all(self, given: Iterable[Any]) -> list[Any]:
        return [made for each in given for made in self.read(each)]

    def read_one(self, given: Any) -> Any:
        """Return one transform for a transform, for the containers that choose among them."""
        made = self.read(given)
        return made[0] if len(made) == 1 else containers.Compose(made)


class Converted(containers.Compose):
    """A converted pipeline, which refuses what its transforms would hand back untouched."""

    def _get_name(self) -> str:
        return "Compose"

    def forward(self, *inputs: Any) -> Any:
        flat, _ = tree_flatten(inputs)
        if not any(isinstance(x, (PIL.Image.Image, Tensor, EncodedImage, *BATCHES)) for x in flat):
            got = type(flat[0]).__name__ if flat else "nothing"
            raise_error(TypeError, f"convert: image must be a PIL image or a Tensor, got {got}")
        for x in flat:
            if isinstance(x, PIL.Image.Image) and x.mode not in _MODES:
                raise TypeError(f"convert: image must have 8 bits for each value, got mode {x.mode}")
        return super().forward(*inputs)
