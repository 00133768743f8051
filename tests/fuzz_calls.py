"""Random calls of operators and transforms (:mod:`tests.fuzz`).

A call is one of the specs' samples in a random dtype, memory format, batch and device, with up to three arguments replaced by
edges of their range, other numbers, shapes, dtypes, strides, and objects of the wrong type. It must give the real library's
pixels, or raise; and do the same through the dispatcher and on the meta device.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2 as reference

from imgops import transforms as v2
from imgops.extend.testing._call import Call, through_dispatcher
from tests.added_cases import ROWS, Row
from tests.checks import difference
from tests.fuzz_values import OBJECTS, Made, Wrong, changed, kind_of, shown_as
from tests.specs import SPECS
from tests.specs._draw import numbers_of
from tests.specs._maker import ANY_DTYPE, BATCHES, FORMATS, Maker
from tests.specs._spec import EXACT, OpSpec, Sample
from tests.test_reference import per_image
from tests.transform_cases import CASES


@dataclass
class Fuzzed:
    """One call of a function."""

    random: Random
    changes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spec: OpSpec = self.random.choice(_specs())
        self.sample: Sample = self.random.choice(self.spec.samples)
        dtypes = self.sample.dtypes if self.random.random() < 0.8 else ANY_DTYPE
        self.maker = Maker(
            self.random.choice(dtypes),
            self.random.choice(FORMATS),
            self.random.choice(BATCHES),
            seed=self.random.randrange(1000),
        )
        self.function, args, keywords = self.sample.call(self.maker)
        self.args, self.keywords = list(args), dict(keywords)
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            self._change()

    def __str__(self) -> str:
        shown = [*map(shown_as, self.args), *(f"{k}={shown_as(v)}" for k, v in self.keywords.items())]
        return f"{self.sample}({', '.join(shown)}), {self.maker.format}; changed: {'; '.join(self.changes) or 'nothing'}"

    def _change(self) -> None:
        names: list[Any] = [*range(len(self.args)), *self.keywords]
        where = self.random.choice(names)
        place: Any = self.args if isinstance(where, int) else self.keywords
        place[where] = changed(self.random, place[where])
        self.changes.append(f"{where}: {shown_as(place[where])}")


@cache
def _specs() -> list[OpSpec]:
    """Return the specs of the functions that a user calls."""
    return [spec for spec in SPECS.values() if spec.is_public and spec.samples]


# -- one call --------------------------------------------------------------------------------------


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) and value.is_cpu and value.numel() else value


def outcome(fuzzed: Fuzzed, dispatched: bool = False) -> Any:
    """Return the result of the call, or its error if that is an allowed one."""
    args, keywords = [*map(copied, fuzzed.args)], {k: copied(v) for k, v in fuzzed.keywords.items()}
    try:
        if dispatched:
            return through_dispatcher(fuzzed.function, *args, **keywords)
        return fuzzed.function(*args, **keywords)
    except Exception as error:
        kind = kind_of(error)
        if kind == "memory":
            return MemoryError(str(error))
        on_meta = "meta" in str(fuzzed) and "meta" in str(error).lower()  # PyTorch's error for two devices
        if kind == "error" or (kind == "another error" and isinstance(error, RuntimeError) and on_meta):
            return error
        raise Wrong(f"{kind}: {type(error).__name__}: {error}") from error


def check(fuzzed: Fuzzed) -> str:
    """Run a call, and return its outcome as a word."""
    found = outcome(fuzzed)
    if isinstance(found, MemoryError):
        return "too large"
    if isinstance(found, FileNotFoundError):  # operators take tensors only
        return "no file"
    if isinstance(found, Exception):
        again = outcome(fuzzed, dispatched=True)
        # A function that consists of operators reads the values of tensors only where they can be read.
        same_error = type(again) is type(found) and str(again) == str(found)
        if fuzzed.spec.is_operator and not same_error:
            raise Wrong(f"through the dispatcher another error: {again!r}, not {found!r}")
        return type(found).__name__
    tensors = [x for x in (found if isinstance(found, (tuple, list)) else [found]) if isinstance(x, Tensor)]
    if any(not x.is_cpu for x in tensors):
        return "meta"
    if not fuzzed.spec.is_operator or not fuzzed.spec.operator.random:
        again = outcome(fuzzed, dispatched=True)
        if isinstance(again, MemoryError):
            return "too large"
        others = again if isinstance(again, (tuple, list)) else [again]
        if isinstance(again, Exception) or len(others) < len(tensors):
            raise Wrong(f"through the dispatcher: {again!r}")
        for a, b in zip(tensors, [x for x in others if isinstance(x, Tensor)], strict=True):
            # The last bits of a function of PyTorch's operators depend on where its memory lies: LAPACK's do.
            if differs := difference(b, a, 0.0 if fuzzed.spec.is_operator else 1e-6):
                raise Wrong(f"the dispatcher gives {differs}")
    return beside_the_library(fuzzed, found)


# -- the real library ------------------------------------------------------------------------------


def are_colors(image: Tensor) -> bool:
    """Return whether all values are in [0, 1], and not so small that they have lost bits."""
    return not image.is_floating_point() or bool(((image == 0) | (image >= 1e-36) & (image <= 1)).all())


def is_comparable(fuzzed: Fuzzed) -> bool:
    """Return False where the documentation says that imgops differs from the library."""
    spec, args = fuzzed.spec, (*fuzzed.args, *fuzzed.keywords.values())
    numbers = [v for x in args[1:] for v in numbers_of(x)]
    if not all(abs(v) < 1e6 for v in numbers):  # this excludes numbers that are not finite, too
        return False
    changed = {c.partition(":")[0] for c in fuzzed.changes}
    colors = all(are_colors(args[i]) for i in spec.colors if str(i) in changed)
    return colors and spec.comparable(args, changed)


def largest(fuzzed: Fuzzed) -> list[float]:
    """Return the absolute values of the numbers among the arguments, because rounding errors grow with them."""
    small = (
        x
        for x in (*fuzzed.args[1:], *fuzzed.keywords.values())
        if isinstance(x, (int, float)) or (isinstance(x, Tensor) and x.is_floating_point() and x.numel() < 10)
    )
    return [abs(v) for x in small for v in numbers_of(x)]


def with_strides(value: Any) -> Any:
    """Copy an array with a stride of 0, because OpenCV misreads its strides."""
    return value.copy("C") if isinstance(value, np.ndarray) and 0 in value.strides else value


def beside_the_library(fuzzed: Fuzzed, out: Any) -> str:
    """Compare with the real library image by image, unless it has limits that imgops does not (channels, sizes)."""
    spec = fuzzed.spec
    if (
        not is_comparable(fuzzed)
        or not callable(spec.reference)
        or not isinstance(out, Tensor)
        or out.ndim < 3
        or not out.numel()
    ):
        return "returned"
    try:
        args, cores = tuple(fuzzed.args), spec.cores
        if spec.is_operator:
            if spec.operator.vmap is None:
                return "returned"
            args, cores = Call(fuzzed.function, args, fuzzed.keywords).op_args, spec.operator.vmap.core  # type: ignore[attr-defined]
        images = [tuple(map(with_strides, one)) for one in per_image(args, cores)]
        wanted = [torch.from_numpy(np.ascontiguousarray(spec.reference(*one))) for one in images]
    except Exception:  # the library may raise any error
        return "no reference"
    flat = out.detach().reshape(out.shape[:-3].numel(), *out.shape[-3:])
    tolerance = spec.tolerance.get(out.dtype, EXACT)
    if flat[:1].numel() < 500:  # a single value is a large share of a small image
        tolerance = replace(tolerance, share=1.0)
    for a, b in zip(flat, wanted, strict=True):
        try:
            if not (a.isfinite().all() and b.isfinite().all()):
                continue
            if out.dtype.is_floating_point and tolerance.real:  # the tolerance is for values up to 2
                most = max(float(b.double().abs().max()) / 2, 1, *largest(fuzzed))
                a, b = a.double() / most, b.to(out.dtype).double() / most
            if a.dtype != b.dtype and not a.dtype.is_floating_point:
                return "no reference"  # NumPy computes in another dtype
            tolerance.check(a, b.to(out.dtype) if out.dtype.is_floating_point and not tolerance.real else b)
        except AssertionError as error:
            raise Wrong(f"not the library's pixels: {error}") from None
    return "the library's pixels"


def function(random: Random) -> Made:
    fuzzed = Fuzzed(random)
    return str(fuzzed), lambda: check(fuzzed)


# -- transforms ------------------------------------------------------------------------------------


def transform(random: Random) -> Made:
    """A transform of torchvision, or one that only imgops has, on an image of a random dtype and shape.

    The result has torchvision's shape and dtype for the same draws, or both raise.
    """
    case: Any = random.choice((*CASES, *ROWS))
    ours = case.make() if isinstance(case, Row) else case.make(v2)
    theirs = None if isinstance(case, Row) else case.make(reference)
    sizes = (0, 1, 2, 7, 19, 33)
    shape = (random.choice((0, 1, 2, 3, 3, 3, 3, 4)), random.choice(sizes), random.choice(sizes))
    shape = (*random.choice(((), (), (2,), (0,), (2, 2))), *shape)
    dtype = random.choice((torch.uint8, torch.uint8, torch.float32, *ANY_DTYPE))
    values = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(random.randrange(99)))
    image = (values / 255).to(dtype) if dtype.is_floating_point else values.to(dtype)
    if random.random() < 0.3 and image.ndim > 1:
        image = image.transpose(-1, -2)
    if random.random() < 0.05:
        image = random.choice(OBJECTS)
    image = tv_tensors.Image(image) if isinstance(image, Tensor) and random.random() < 0.3 else image
    key = random.randrange(2**40)

    def result(transform: Any) -> Any:
        try:
            return v2.seeded(transform, key)(image)
        except Exception as error:
            return error

    def check() -> str:
        found, again, wanted = result(ours), result(ours), None if theirs is None else result(theirs)
        if not isinstance(found, Exception) and (differs := difference(again, found)):
            raise Wrong(f"for the same key, {differs}")
        if isinstance(found, Exception):
            # Channels are refused, with the reason, before anything is drawn; torchvision's raise if they are applied.
            is_of_channels = "because" in str(found)
            if wanted is not None and not isinstance(wanted, Exception) and not is_of_channels:
                raise Wrong(f"torchvision's returns {shown_as(wanted)}: {type(found).__name__}: {found}")
            if isinstance(found, (ValueError, TypeError, NotImplementedError)) or type(found) is type(wanted):
                return f"transform: {type(found).__name__}"
            raise Wrong(f"another error: {type(found).__name__}: {found}")
        if not isinstance(found, Tensor) or not isinstance(wanted, Tensor):
            return "transform: returned"
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise Wrong(f"torchvision's gives {shown_as(wanted)}, not {shown_as(found)}")
        if case.moves and not torch.equal(found, wanted):
            raise Wrong("not torchvision's pixels")
        return "transform: as torchvision's"

    return f"{case}-transform({shown_as(image)})", check
