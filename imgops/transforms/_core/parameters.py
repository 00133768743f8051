"""The parameters of a transform: how they are declared, and how they are held for one call.

A transform declares its parameters once (:class:`Parameter`), and samples them in one packed form, *numbers*:
a list if one draw in eager mode serves the whole call; a float64 tensor on the CPU, ``(n,)`` or ``(N, n)``,
in a graph and if each sample has parameters of its own. torchvision's dicts exist only where its own code
samples (``_numbers_from`` converts from them) and where it is applied (``_values_from`` converts to them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from imgops import EncodedImages
from imgops._common.torch_private import raise_error
from imgops.batches.packed import PackedImages
from imgops.kernels import transfer
from imgops.transforms._core.batches import PendingBatch

#: The classes of batches whose images differ in size.
BATCHES: tuple[type, ...] = (PackedImages, EncodedImages, PendingBatch)

Key = tuple[int, ...]
Shape = Sequence[int]  # number of samples that share a draw, channels, height, width
Numbers = Any  # list[float] | Tensor


class Parameter(NamedTuple):
    """One parameter: its name (torchvision's, if it has one), its length, and its neutral value.

    ``length`` is 0 for a number, n for a list of n, or a function of the transform and the shape. With
    ``neutral`` the transform changes nothing: it is one value for every number of the parameter, or a
    function of the shape that returns all of them. ``kind`` is the type that torchvision's code takes.
    """

    name: str
    length: int | Callable[[Any, Shape], int] = 0
    neutral: float | Callable[[Shape], Sequence[float]] = 0.0
    kind: type = float

    def count(self, transform: Any, shape: Shape) -> int:
        """Return the length of the parameter in numbers."""
        return self.length(transform, shape) if callable(self.length) else max(self.length, 1)

    def _neutral_numbers(self, transform: Any, shape: Shape) -> Sequence[float]:
        """Return the numbers with which the transform changes nothing."""
        if callable(self.neutral):
            return self.neutral(shape)
        return [self.neutral] * self.count(transform, shape)


#: The first parameter of a transform that is applied with a probability: 1 if it is applied, else 0.
IS_APPLIED = Parameter("is_applied")


def each_number(values: Any) -> Sequence[Any]:
    """Return the numbers of a parameter one by one: a list as it is, a tensor unbound along its last dim."""
    return values.unbind(-1) if isinstance(values, Tensor) else values


def as_integers(numbers: Numbers) -> Any:
    """Convert numbers that are known to be whole to integers."""
    return numbers.long() if isinstance(numbers, Tensor) else list(map(int, numbers))


class Table:
    """The numbers of all transforms of a sampling program, one row per sample, copied to a device at once.

    The arithmetic before that, such as from angles to matrices, runs on the CPU, where small operations cost
    less.
    """

    def __init__(self, steps: Sequence[tuple[Key, Any, int, int]], columns: Sequence[Tensor]) -> None:
        self.steps, self.columns = steps, columns
        self.device: torch.device | None = None
        self.parts: dict[Key, Tensor] = {}

    def on(self, device: torch.device, key: Key) -> Tensor:
        """Return the numbers of one transform on a device."""
        if self.device != device:
            known = zip(self.steps, self.columns, strict=True)
            ready = [t._operator_numbers(numbers, height, width) for (_, t, height, width), numbers in known]
            (moved,) = transfer.copy_to(device, [torch.cat(ready, -1)])
            parts = moved.split([r.shape[-1] for r in ready], -1)
            keys = [step[0] for step in self.steps]
            self.parts, self.device = dict(zip(keys, parts, strict=True)), device
        return self.parts[key]


def is_on_host(image: Tensor) -> bool:
    """Return whether an image is on the CPU, so that it needs no copy of the numbers.

    Tests replace this function, to run the code for other devices on machines without one.
    """
    return image.is_cpu


class Params:
    """The parameters of one transform in one call.

    ``numbers`` are packed; ``canvas`` is the height and width of the image that they are for.
    """

    __slots__ = ("canvas", "key", "noise", "numbers", "sizes", "table")

    def __init__(
        self,
        canvas: tuple[int, int],
        numbers: Numbers,
        table: Table | None = None,
        key: Key = (),
    ) -> None:
        self.canvas, self.numbers = canvas, numbers
        self.table, self.key = table, key
        self.noise: list[Tensor] = []
        self.sizes: tuple[int, ...] | None = None

    @property
    def is_one_draw(self) -> bool:
        """Whether the parameters are numbers of one draw in eager mode; the transform is then applied."""
        return isinstance(self.numbers, (list, tuple))

    @property
    def is_per_sample(self) -> bool:
        """Whether each sample has parameters of its own."""
        return isinstance(self.numbers, Tensor) and self.numbers.ndim == 2

    def tensor(self) -> Tensor:
        """Return the numbers as a tensor."""
        if isinstance(self.numbers, Tensor):
            return self.numbers
        return torch.tensor(self.numbers, dtype=torch.float64, device="cpu")

    def place(self, steps: Sequence[Any], image: Any) -> None:
        """Place the tensors of steps where the operators take them for an image.

        Tensors get the dimensions of the image before its channels. They are on the CPU, except for a batch
        on an accelerator whose images have parameters of their own.
        """
        if type(image) in BATCHES:
            return
        moving = [step for step in steps if not step.is_one_draw]
        if self.table is not None and not is_on_host(image) and tuple(image.shape[-2:]) == self.canvas:
            sizes = [step.numbers.shape[-1] for step in moving]
            parts = self.table.on(image.device, self.key).split(sizes, -1)
            for step, part in zip(moving, parts, strict=True):
                step.numbers = part
        for step in moving:
            step.numbers = spread(step.numbers, image)


def spread(numbers: Tensor, image: Tensor) -> Tensor:
    """Give rows of numbers the dimensions that an image has between its samples and its channels."""
    if numbers.ndim == 1 or image.ndim <= 4:
        return numbers
    return numbers.reshape(numbers.shape[0], *(1,) * (image.ndim - 4), numbers.shape[-1])


def require_own(caller: str, transform: Any, params: Any) -> None:
    """Raise if the parameters of a call are not a dict, or have steps that a transform does not have."""
    if not isinstance(params, dict):
        must = "params must be the dict that sample returned"
        raise_error(TypeError, f"{caller}: {must}, got {type(params).__name__}")
    count = len(getattr(transform, "transforms", ()))
    for path in params:
        if path and path[0] >= count:
            must = f"{caller}: params must be those of this transform, got some of a step {path}"
            raise_error(KeyError, must)


def own_params(caller: str, transform: Any, params: dict[Key, Any], path: Key) -> Any:
    """Return the parameters of one step of a call, or None if it was skipped."""
    must = f"{caller}: params must be those of this transform"
    if path not in params:
        raise_error(KeyError, f"{must}, got none for step {path}")
    found = params[path]
    if found is None:
        return None
    name = type(transform).__name__
    if not isinstance(found, Params):
        raise_error(KeyError, f"{must}, got the choice of a container for step {path}, which is {name}")
    lengths = [parameter.length for parameter in getattr(transform, "_random_parameters", ())]
    if lengths and not any(callable(length) for length in lengths):
        count = sum(max(length, 1) for length in lengths)  # type: ignore[type-var]
        got = len(found.numbers) if found.is_one_draw else found.numbers.shape[-1]
        if got != count:
            raise_error(KeyError, f"{must}, got {got} numbers for {name}, which has {count}")
    return found


def own_choice(caller: str, container: Any, params: dict[Key, Any], path: Key) -> Any:
    """Return what a container has sampled in a call."""
    must = f"{caller}: params must be those of this transform"
    if path not in params:
        raise_error(KeyError, f"{must}, got none for step {path}")
    found = params[path]
    if found is None or isinstance(found, Params):
        name = type(container).__name__
        raise_error(
            KeyError, f"{must}, got values of a transform for step {path}, which is the container {name}"
        )
    return found
