"""The table of registered operators: their facets, and the errors for facets that are missing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any, NoReturn

Function = Callable[..., Any]


class Contract(Enum):
    """The ways in which operators use memory; each operator keeps exactly one of these contracts."""

    FUNCTIONAL = "returns new memory: fake(*args) allocates, kernel(out, *args) fills"
    DYNAMIC = "returns new memory whose size the data decide: kernel(*args) makes it"
    INPLACE = "writes to its first argument and returns it: kernel(*args)"
    OUT = "writes to its keyword argument out and returns it: kernel(*args, out)"
    BUFFERS = "writes to the arguments it names and returns nothing: kernel(*args)"

    @property
    def mutates(self) -> bool:
        return self in (Contract.INPLACE, Contract.OUT, Contract.BUFFERS)


@dataclass(frozen=True)
class Gradient:
    """The autograd facet of an operator that returns new memory.

    Attributes
    ----------
    setup_context
        ``setup_context(ctx, inputs, output)`` saves what the backward needs.
    backward
        ``backward(ctx, grad)`` returns one gradient, or None, for each argument.
    jvp
        ``jvp(ctx, *tangents)``, the forward-mode rule; None derives it from the operator's decomposition,
        and without a decomposition forward mode raises.
    straight_through
        Whether the gradient is that of the identity, for the first tensor alone, because the true gradient
        is 0 almost everywhere. :func:`~imgops.extend.testing.check_operator` then compares it with the
        identity, and the default of ``jvp`` returns the first tangent.
    """

    setup_context: Callable[..., None]
    backward: Callable[..., tuple[Any, ...]]
    jvp: Function | None = None
    straight_through: bool = False

    def __post_init__(self) -> None:
        if self.straight_through and self.jvp is None:
            object.__setattr__(self, "jvp", lambda ctx, tangent, *_: tangent)


@dataclass(frozen=True)
class Packed:
    """The facet of an operator that takes :class:`imgops.PackedImages` in the place of its first tensor.

    Attributes
    ----------
    keeps_size
        Whether each result has the size of its image, so that the operator returns packed images. Otherwise
        all results have one size, and the operator returns a batch.
    channels
        ``channels(count, *args)`` returns the channels of the results; by default those of the images.
    has_box
        Whether the first parameter is a box, which must lie inside of its own image.
    """

    keeps_size: bool = True
    channels: Callable[..., int] | None = None
    has_box: bool = False


@dataclass(frozen=True)
class Operator:
    """A registered operator: its signature and its facets, None for a facet that it does not have."""

    name: str
    namespace: str
    contract: Contract
    signature: inspect.Signature
    kernel: Function
    fake: Function
    mutates: tuple[str, ...] = ()
    random: bool = False
    cuda: Function | None = None
    autograd: Gradient | Function | None = None
    vmap: Function | None = None
    sharding: Function | None = None
    autocast: Function | None = None
    decomposition: Function | None = None
    adjoint: str | None = None
    #: Reads the parameters that are on the CPU, and raises for invalid values.
    values: Function | None = None
    #: Why the operator goes through the host, if it has neither a CUDA kernel nor a decomposition.
    host: str = ""
    #: Why the operator has no useful gradient; asking for one raises.
    no_gradient: str = ""
    #: Returns the cache key of a call in addition to the metadata of its tensor; None takes all arguments.
    cache_key: Function | None = None
    packed: Packed | None = None
    overload: Any = None

    @property
    def qualified(self) -> str:
        return f"{self.namespace}::{self.name}"

    @property
    def tensors(self) -> int:
        """The number of tensor arguments, which come before all others."""
        parameters = self.signature.parameters.values()
        return sum("Tensor" in str(p.annotation) for p in parameters if p.kind is not p.KEYWORD_ONLY)

    @property
    def mutated_indices(self) -> list[int]:
        """The positions of the arguments that the operator writes to."""
        names = list(self.signature.parameters)
        return [names.index(name) for name in self.mutates]


table: dict[str, Operator] = {}

#: The functions of imgops' operators by name: gradients call them as a user does, past the dispatcher.
calls = SimpleNamespace()
#: Functions that are called with each operator that is declared with a packed facet.
packed_observers: list[Callable[[Operator], None]] = []

#: The argument with which a user adds each facet.
_HOW = {
    "kernel": "kernel=f, where f(out, *args) fills out",
    "fake": "fake=f, where f(*args) validates and returns an empty output",
    "autograd": "autograd=imgops.extend.Gradient(...), or decomposition=f to derive it from",
    "vmap": "vmap=f; imgops.extend.vmap.leading serves operators over (..., C, H, W)",
    "sharding": "sharding=f; imgops.extend.sharding.leading serves operators over (..., C, H, W)",
    "adjoint": "adjoint=name, for a linear operator",
}


def require(name: str, facet: str, value: object) -> None:
    if value is None:
        raise TypeError(f"operator: {name} must have a {facet}, got None: pass {_HOW[facet]}")


def require_functions(name: str, facets: Mapping[str, object]) -> None:
    for facet, value in facets.items():
        if value is not None and not callable(value):
            raise TypeError(f"operator: {name}: {facet} must be a function, got {value!r:.120}")


def require_kernel(name: str, kernel: Function, signature: inspect.Signature, takes_out: bool) -> None:
    """Check that a kernel takes its operator's arguments, after ``out`` if it returns new memory."""
    try:
        parameters = inspect.signature(kernel)
    except (TypeError, ValueError):  # some functions in C do not tell
        return
    expected = [*(["out"] if takes_out else []), *signature.parameters]
    first = next(iter(parameters.parameters), None)
    lacks_out = takes_out and len(expected) > 1 and first == expected[1]
    given = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    keywords = {p.name: None for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
    try:
        parameters.bind(*[None] * (len(given) + takes_out), **keywords)
    except TypeError:
        fits = False
    else:
        fits = True
    if lacks_out or not fits:
        must = f"kernel must be kernel({', '.join(expected)})"
        raise TypeError(f"operator: {name}: {must}, got {getattr(kernel, '__name__', 'kernel')}{parameters}")


def require_gradient(name: str, mutates: bool, given: object) -> None:
    """Check that the gradient of a mutating operator is a function, and any other a ``Gradient``."""
    if given is not None and (isinstance(given, Gradient) is mutates or (mutates and not callable(given))):
        wanted = "a function, for an operator that mutates" if mutates else "an imgops.extend.Gradient"
        raise TypeError(f"operator: {name}: autograd must be {wanted}, got {type(given).__name__}")


def raise_missing(operator: Operator, facet: str) -> NoReturn:
    must = f"{operator.name}: {facet} must be a facet of {operator.qualified}, got none"
    raise NotImplementedError(f"{must}: register the operator with {_HOW[facet]}")


def missing_facet(operator: Operator, facet: str) -> Function:
    """Return a function that replaces a missing facet, and raises."""

    def refuse(*args: Any, **keywords: Any) -> NoReturn:
        raise_missing(operator, facet)

    return refuse


def missing_gradient(operator: Operator) -> Gradient:
    def save_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    return Gradient(save_nothing, missing_facet(operator, "autograd"))


def refused_gradient(op: str, why: str) -> Gradient:
    """Return the gradient of an operator that has no useful gradient; the returned gradient raises."""

    def refuse(*args: Any, **keywords: Any) -> NoReturn:
        must = f"{op}: no argument may require a gradient, because there is none ({why})"
        raise NotImplementedError(f"{must}, got one that does")

    return Gradient(refuse, refuse, refuse)


def operators(namespace: str = "imgops") -> Mapping[str, Operator]:
    """Return the registered operators of a namespace by name, in order of registration."""
    return {o.name: o for o in table.values() if o.namespace == namespace}


def operator_of(op: Any) -> Operator | None:
    """Return the operator of a public function, of a function made by ``operator``, or of ``torch.ops``."""
    found = getattr(op, "operator", None)
    if isinstance(found, Operator):
        return found
    overload = getattr(op, "default", op)
    if hasattr(overload, "_schema"):
        return table.get(overload.name())
    if getattr(op, "__module__", "").startswith("imgops.ops."):
        return table.get(f"imgops::{op.__name__}")
    return None


def decompositions() -> dict[Any, Function]:
    """Return the decompositions into core ATen of all operators that have one.

    The result is a table for :meth:`torch.export.ExportedProgram.run_decompositions`: an exported program
    that is decomposed with it runs where imgops is not installed. The codecs and the operators of packed
    images have no decomposition into ATen.
    In-place and out= functions of imgops need none: from torch 2.13 on, an exported program holds functional
    operators where one of them was called.

    Returns
    -------
    dict
        A mapping from operator overloads to functions. Add :func:`torch.export.default_decompositions` to
        it to decompose the rest of a model into core ATen too.

    Examples
    --------
    >>> import torch, imgops
    >>> class Left(torch.nn.Module):
    ...     def forward(self, image):
    ...         return imgops.crop(image, (0, 0, 2, 4))
    >>> program = torch.export.export(Left(), (torch.zeros(3, 4, 4),))
    >>> table = torch.export.default_decompositions() | imgops.decompositions()
    >>> any("imgops" in str(n.target) for n in program.run_decompositions(table).graph.nodes)
    False
    """
    return {
        o.overload: o.decomposition
        for o in table.values()
        if o.decomposition is not None and not o.namespace.endswith("_packed")
    }
