"""A reader of pipelines of other libraries, which finds the counterpart of each transform by its class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
import PIL.Image
from torch import Tensor, nn
from torchvision.transforms import v2

from imgops import EncodedImage
from imgops._common.torch_private import raise_error, tree_flatten
from imgops.integrations import _replaced_functions, _to_tensor
from imgops.integrations._report import Unmapped as Unmapped
from imgops.transforms import containers, conversion
from imgops.transforms._core import origin, torchvision_private, unchanged
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.origin import UsersCode as UsersCode
from imgops.transforms._core.parameters import BATCHES

#: A function that returns the counterpart of a transform, or a list of counterparts in their order.
Maker = Callable[[Any, "Reader"], Any]
#: How the pixels of a counterpart differ for the arguments of a transform; a false value if they do not.
Difference = Callable[[Any], Any]

#: Module and name of a class or function -> the function that makes its counterpart.
MAKERS: dict[str, Maker] = {"torch.nn.modules.container.Sequential": lambda t, r: r.read_sequential(t)}
#: The same names -> how the pixels of the counterpart differ.
DIFFERENCES: dict[str, Difference] = {}

#: How to go on with a transform that has no counterpart.
WAY_OUT = (
    "; leave them out and apply them yourself, or build the pipeline of `from imgops import transforms`, "
    "whose Compose takes any callable"
)


#: The libraries whose transforms have counterparts; albumentations' are converted by whole pipelines.
LIBRARIES = ("torchvision", "timm", "open_clip", "lightly")


def add_makers(module: str, makers: Mapping[str, Maker]) -> None:
    """Add the functions that make the counterparts of a module's classes and functions."""
    MAKERS.update({f"{module}.{name}": make for name, make in makers.items()})


class AlreadyRead(list[Any]):
    """Transforms that a reader has finished: what a maker of a container or of a pipeline returns."""


class Reader:
    """A reader of one pipeline, which notes the transforms without a counterpart or with a different one."""

    def __init__(self) -> None:
        self.unmapped: list[str] = []
        self.differences: dict[str, str] = {}
        self._replaced = _replaced_functions.replaced_functions()
        #: The identity of a counterpart -> the module that it stands for.
        self._sources: dict[int, Any] = {}
        #: The owners of these identities, kept alive so that no other object gets one of them.
        self._alive: list[Any] = []

    def read_pipeline(self, given: Any) -> Converted:
        """Return the counterpart of a whole pipeline, which must not be a user's own class."""
        steps = self.read_all([given])
        if len(steps) == 1 and steps[0] is given:
            self.unmapped.append(origin.name_of(given))
        if len(steps) == 1 and isinstance(steps[0], Converted):
            return steps[0]
        return Converted(steps or [conversion.Identity()])

    def read_sequential(self, given: nn.Sequential) -> Any:
        """Return the steps, or one transform where PyTorch must find the modules, with the same names."""
        steps = self.read_all(given)
        if not _has_state(given):
            return steps
        whole = Converted(steps or [conversion.Identity()])
        names = {id(child): name for name, child in given.named_children()}
        for step in steps:
            name = names.get(id(self._sources.get(id(step), step)))
            if name is not None:
                whole.add_module(name, step)
        return whole

    def read(self, given: Any) -> AlreadyRead:
        """Return the counterparts of a transform; the transform itself if it runs a user's code."""
        if origin.package_of(given) == "imgops":
            return AlreadyRead([given])
        _load_library_of(given)
        name = ""
        try:
            name = origin.known_name(given, MAKERS)
            if _replaced_functions.may_call(given, self._replaced):
                raise UsersCode
            if origin.has_hooks(given):
                raise Unmapped("hooks")
            made = MAKERS[name](given, self)
        except UsersCode:
            return AlreadyRead([given])
        except Unmapped as why:
            self.unmapped.append(f"{name.rpartition('.')[2]}({why})")
            return AlreadyRead([conversion.Identity()])
        if difference := name in DIFFERENCES and DIFFERENCES[name](given):
            self.differences[name.rpartition(".")[2]] = difference
        return made if isinstance(made, AlreadyRead) else _finished(name, given, made)

    def read_all(self, given: Iterable[Any]) -> AlreadyRead:
        """Return the counterparts of transforms that are applied one after the other."""
        steps, found = AlreadyRead(), AlreadyRead()
        for each in given:
            read = self.read(each)
            if len(read) == 1:
                self._sources[id(read[0])] = each
                self._alive += read
            found += read
        for made in found:
            # A function of a user may return anything.
            taken = () if not steps or isinstance(steps[-1], OperatorTransform) else _images_of(made)
            steps += [RequireImages(taken), made] if taken else [made]
        return AlreadyRead(_to_tensor.before_normalize(steps))

    def read_one(self, given: Any) -> Any:
        """Return one transform for a transform, for the containers that choose among them."""
        made = self.read_all([given])
        return made[0] if len(made) == 1 else containers.Compose(made)


def _load_library_of(given: Any) -> None:
    """Import the counterparts of the library of a transform, or of a class that it inherits from."""
    for kind in (given,) if isinstance(given, FunctionType | type) else type(given).__mro__:
        if (library := origin.package_of(kind)) in LIBRARIES:
            import_module(f"imgops.integrations.{library}")


def _finished(name: str, given: Any, made: Any) -> AlreadyRead:
    """Give what a maker returned the mode of the original, and let it refuse the same inputs.

    torchvision's second version returns inputs of unknown classes unchanged; the other libraries refuse them.
    """
    steps = AlreadyRead(made if isinstance(made, list) else [made])
    for step in steps:
        step.training = getattr(given, "training", True)
    is_lenient = name.startswith("torchvision.transforms.v2.") or isinstance(steps[0], containers._Container)
    if not is_lenient and isinstance(steps[0], OperatorTransform):
        steps[0]._only_images = True
    return steps


def _has_state(module: nn.Module) -> bool:
    """Return whether a module is not only a transform: it may have parameters, buffers or a mode."""
    if isinstance(module, nn.Sequential | v2.Transform) or type(module).__module__.startswith("torchvision."):
        return any(map(_has_state, module.children()))
    return True


# -- inputs that a library refuses -----------------------------------------------------------------------

#: The classes of images that every transform takes; conversions take arrays, too.
_IMAGES: tuple[type, ...] = (PIL.Image.Image, Tensor, EncodedImage, *BATCHES)


def _images_of(step: Any) -> tuple[type, ...]:
    """Return the classes of images that a transform, or those that a container may apply first, takes.

    Without one the transform takes inputs of all classes.
    """
    if isinstance(step, containers._Container):
        inside = step.transforms[:1] if isinstance(step, v2.Compose | v2.RandomApply) else step.transforms
        return max(map(_images_of, inside), key=len, default=())
    if not getattr(step, "_only_images", False):
        return ()
    takes_arrays = np.ndarray in torchvision_private.types_of(step)
    return (*_IMAGES, np.ndarray) if takes_arrays else _IMAGES


def _require_images(inputs: tuple[Any, ...], taken: tuple[type, ...]) -> None:
    """Raise if there is no image among the inputs."""
    if len(inputs) == 1 and isinstance(inputs[0], taken):
        return
    flat, _ = tree_flatten(inputs)
    if not any(isinstance(x, taken) for x in flat):
        got = type(flat[0]).__name__ if flat else "nothing"
        kinds = "a PIL image, an array or a Tensor" if np.ndarray in taken else "a PIL image or a Tensor"
        raise_error(TypeError, f"convert: image must be {kinds}, got {got}{unchanged.hint(flat)}")


class RequireImages(OperatorTransform, v2.Transform):
    """Return the output of a user's function, and raise if the next transform would not take it."""

    def __init__(self, taken: tuple[type, ...]) -> None:
        super().__init__()
        self._taken = taken

    def forward(self, *inputs: Any) -> Any:
        _require_images(inputs, self._taken)
        return inputs if len(inputs) > 1 else inputs[0]


class Converted(containers.Compose):
    """A converted pipeline, which refuses inputs that its transforms would return unchanged."""

    def __init__(self, transforms: list[Any]) -> None:
        super().__init__(transforms)
        self._taken = _images_of(transforms[0])

    def extra_repr(self) -> str:
        return "" if self._modules else super().extra_repr()

    def _get_name(self) -> str:
        return "Compose"

    def forward(self, *inputs: Any) -> Any:
        if self._taken:
            _require_images(inputs, self._taken)
        return super().forward(*inputs)
