"""The knowledge of an operator outside of the package: one ``OpSpec``, read by tests, pages and benchmarks.

Each family of operators has a module in this folder, and each field of a spec is written there once. A test
that needs a missing field names it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops._operator.record import Operator, operators
from imgops.autograd.derived import DerivedGradient
from imgops.extend.testing import Call
from imgops.extend.testing._call import bits_equal
from tests.specs._draw import Draw
from tests.specs._maker import FLOATS, Maker


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference of two results: integers by levels, in a share of the values; floats by rtol and atol."""

    real: float = 0.0
    levels: int = 0
    share: float = 1.0

    def check(self, found: Tensor, wanted: Tensor) -> None:
        assert found.shape == wanted.shape, f"shape {tuple(found.shape)} for {tuple(wanted.shape)}"
        assert found.dtype == wanted.dtype, f"{found.dtype} for {wanted.dtype}"
        if not found.numel():
            return
        if found.dtype.is_floating_point and self.real:
            close = {"rtol": self.real, "atol": self.real, "equal_nan": True}
            torch.testing.assert_close(found.double(), wanted.double(), **close)
        elif self.levels and not found.dtype.is_floating_point:
            apart = (found.long() - wanted.long()).abs()
            assert apart.max() <= self.levels, f"{int(apart.max())} levels apart"
            share = (apart > 0).double().mean()
            assert share <= self.share, f"{float(share):.1%} of the values differ"
        else:
            assert bits_equal(found, wanted), (
                f"{int((found != wanted).sum())} of {found.numel()} values differ"
            )


EXACT = Tolerance()

#: Tolerances by dtype; dtypes that are not named are exact.
Tolerances = Mapping[torch.dtype, Tolerance]
ROUNDED: Tolerances = {torch.float16: Tolerance(1e-3), torch.bfloat16: Tolerance(8e-3)}
#: Exact on uint8; the same formula in real numbers on floats.
REAL: Tolerances = {**ROUNDED, torch.float32: Tolerance(1e-5), torch.float64: Tolerance(1e-12)}
#: Within 1e-5, and 1 of 65,536 levels, wherever arithmetic is involved.
CLOSE: Tolerances = {
    **ROUNDED,
    torch.float32: Tolerance(1e-5),
    torch.float64: Tolerance(1e-5),
    torch.uint16: Tolerance(levels=1),
}
LEVEL: Tolerances = {**CLOSE, torch.uint8: Tolerance(levels=1)}


@dataclass(frozen=True)
class Sample:
    """One call of a public function, or of an operator that has no public function.

    ``arguments(maker)`` makes the arguments; a dict at their end holds keyword arguments that depend on the maker.
    """

    id: str
    arguments: Callable[[Maker], tuple[Any, ...]]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    #: The dtypes that the call is defined for; those of its spec by default.
    dtypes: tuple[torch.dtype, ...] = ()
    #: Whether it is linear in its first tensor.
    linear: bool = False
    #: Whether a shape is at the edge of what is defined.
    edge: bool = False
    #: Whether its gradients have values to compare.
    differentiable: bool = True
    #: Whether finite differences can check its gradients, which they cannot where a mask of another dtype is rounded.
    gradcheck: bool = True
    #: The tolerance of its decomposition, if it differs from that of its spec.
    decomposed: Tolerances | None = None
    op: str = ""

    def function(self) -> Callable[..., Any]:
        if hasattr(imgops, self.op):
            return getattr(imgops, self.op)
        return getattr(torch.ops.imgops, self.op)

    def call(self, maker: Maker) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        args, keywords = self.arguments(maker), dict(self.keywords)
        if isinstance(args[-1], dict):
            *args, made = args
            keywords |= made
        return self.function(), tuple(args), keywords

    def checked(self, maker: Maker) -> Call:
        function, args, keywords = self.call(maker)
        return Call(function, args, keywords)

    def of_tensors(self, maker: Maker) -> tuple[Callable[..., Any], list[Tensor]]:
        """Return the call as a function of its tensors, and the tensors; of operators, ``checked`` knows more."""
        function, args, keywords = self.call(maker)
        at = [i for i, a in enumerate(args) if isinstance(a, Tensor)]

        def call(*tensors: Tensor) -> Any:
            given = dict(zip(at, tensors, strict=True))
            return function(*(given.get(i, a) for i, a in enumerate(args)), **keywords)

        return call, [args[i] for i in at]

    def __str__(self) -> str:
        return f"{self.op}-{self.id}"


@dataclass(frozen=True)
class ErrorInput:
    """A call that must fail with exactly this message, for an image of ones, (2, 3, 5, 6)."""

    call: Callable[[Tensor], Any]
    dtype: torch.dtype = torch.float32
    #: Whether the error needs a tensor's values, which the meta device does not have.
    reads_values: bool = False
    error: type[Exception] = Exception
    message: str = ""

    def __str__(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.message.partition(", got")[0].lower())[:60].strip("-")

    @property
    def check(self) -> str:
        """The condition that is checked, without the name of the operator and the actual numbers."""
        return re.sub(r"\d+", "0", self.message.partition(": ")[2].partition(", got")[0])


#: Error -> its message, to which the name of the spec is added if it names no other function -> the call that raises it,
#: a function of an image of ones or an :class:`ErrorInput` that says more of it, or a tuple of several.
Refused = Mapping[type[Exception], Mapping[str, Any]]


def merged(*tables: Refused) -> Refused:
    """Return the calls of all tables as one."""
    return {
        error: {message: call for table in tables for message, call in table.get(error, {}).items()}
        for error in dict.fromkeys(error for table in tables for error in table)
    }


@dataclass(frozen=True)
class Benchmark:
    """A row of the benchmark.

    ``calls(case)`` gives imgops' call, the raw library's, torchvision's, kornia's and scikit-image's, as far as they exist.
    """

    name: str
    #: A description of the raw call.
    raw: str
    calls: Callable[[Any], Sequence[Callable[[], Any] | None]]
    #: Whether it is timed in every size and batch, or only on one image of 512 x 512.
    every_size: bool = False


@dataclass(frozen=True)
class OpSpec:
    """All that is known of an operator, or of a public function that is made of PyTorch's own operators."""

    name: str
    samples: tuple[Sample, ...] = ()
    #: The calls that must fail.
    refused: Refused = field(default_factory=dict)

    #: The real library on the arrays of one image, with the operator's arguments; or the test that compares them.
    reference: Callable[..., Any] | str | None = None
    tolerance: Tolerances = field(default_factory=dict)
    #: The allowed difference of the decomposition from the kernel.
    decomposed: Tolerances = field(default_factory=lambda: CLOSE)
    dtypes: tuple[torch.dtype, ...] = FLOATS
    #: Random arguments of the operator, for tests/test_random_calls.py; by default those of a sample in other sizes.
    draw: Callable[[Draw], tuple[Any, ...]] | None = None
    #: The allowed difference of the decomposition for these arguments, where it is larger than ``decomposed``.
    drawn: Tolerances = field(default_factory=dict)
    #: Where the reference computes the same if tests/fuzz_calls.py changes arguments: a function of all arguments, and of
    #: the names and positions of the changed ones. The images, by position, then have colors in [0, 1].
    comparable: Callable[[Sequence[Any], Collection[str]], bool] = lambda args, changed: True
    colors: tuple[int, ...] = (0,)
    #: The core dimensions of the tensors of a function that is not an operator; an operator declares its own.
    cores: tuple[int, ...] = (3,)
    #: Whether it has derivatives where all channels are equal.
    smooth_on_gray: bool = True
    #: A call with one number in place of a tensor parameter: a new number must not recompile.
    of_number: Callable[[Tensor, float], Tensor] | None = None
    #: The number that leaves every uint8 image as it is.
    neutral: float | None = None

    # For the tables: the reference, the largest difference, the dtypes, and the largest difference of the decomposition.
    reference_name: str = ""
    difference: str = "0"
    dtype_names: str = "uint8, floats"
    decomposed_difference: str = ""

    # For the pages: the section of the API, the formula in LaTeX, the border rule, the transforms that use it, and
    # imgops' call and the library's on a photograph, an interleaved (3, H, W) of uint8.
    section: str = ""
    formula: str = ""
    border: str = ""
    #: The parameters whose names docs/vocabulary.rst does not have, in double backticks, and where they come from.
    words: str = ""
    transforms: tuple[str, ...] = ()
    #: The gradient of a function that is not an operator, if it differs from that of the operators it is made of.
    gradient: str = ""
    photo: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Any]] | None = None
    #: The call of the picture, with a uint8 photograph (3, H, W), if that of ``photo`` changes too little.
    picture: Callable[[Tensor], Tensor] | None = None

    benchmarks: tuple[Benchmark, ...] = ()

    def __post_init__(self) -> None:
        refused = self.is_operator and bool(self.operator.no_gradient)
        made = [
            replace(
                s,
                op=self.name,
                dtypes=s.dtypes or self.dtypes,
                differentiable=s.differentiable and not refused,
            )
            for s in self.samples
        ]
        object.__setattr__(self, "samples", tuple(made))

    @property
    def errors(self) -> list[ErrorInput]:
        """The error inputs with their errors and whole messages."""
        found = []
        for error, calls in self.refused.items():
            for text, call in calls.items():
                message = text if re.match(r"\w+: ", text) else f"{self.name}: {text}"
                for one in call if isinstance(call, tuple) else (call,):
                    given = one if isinstance(one, ErrorInput) else ErrorInput(one)
                    found.append(replace(given, error=error, message=message))
        return found

    @property
    def operator(self) -> Operator:
        return operators()[self.name]

    @property
    def is_operator(self) -> bool:
        return self.name in operators()

    @property
    def is_public(self) -> bool:
        return self.name in imgops.__all__

    @property
    def pictured(self) -> Callable[[Tensor], Tensor]:
        """The call of the picture on the pages."""
        if self.picture is None:
            assert self.photo is not None, f"{self.name}: a photo must show it"
            return self.photo[0]
        return self.picture

    def own_words(self) -> tuple[list[str], list[str]]:
        """Return its name and those of the transforms that share its own words, and the words."""
        from imgops import transforms

        words = re.findall(r"``(\w+)``", self.words)
        added = [name for name in self.transforms if name in transforms.ADDED]
        parameters = {name: inspect.signature(getattr(transforms, name)).parameters for name in added}
        return [self.name, *(name for name in added if set(words) & set(parameters[name]))], words

    @property
    def straight_through(self) -> bool:
        """Whether its gradient is that of the identity, because the true one is 0 almost everywhere."""
        return self.is_operator and getattr(self.operator.autograd, "straight_through", False)

    @property
    def is_derived(self) -> bool:
        """Whether the gradient is derived from the decomposition."""
        backward = getattr(self.operator.autograd, "backward", None)
        return isinstance(getattr(backward, "__self__", None), DerivedGradient)
