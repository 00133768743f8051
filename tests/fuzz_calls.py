"""Random calls of every operator and transform: ``python -m tests.fuzz_calls 1000000``.

A call is one of the specs' samples in a random dtype, memory format, batch and device, with up to three arguments replaced by
edges of their range, other numbers, shapes, dtypes, strides, and objects of the wrong type. It must give
the real library's pixels, or raise one ValueError, TypeError or NotImplementedError, ``op: argument must ..., got ...``; and do
the same through the dispatcher and on the meta device. ``--only N`` runs call N again, and prints it.
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from random import Random
from typing import Any

import numpy as np
import torch
from added_cases import ROWS, Row
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2 as reference
from transform_cases import CASES

from imgops import transforms as v2
from imgops.extend.testing._call import through_dispatcher
from tests.fuzz_new import FuzzedNew, check_new
from tests.fuzz_oracle import Wrong, beside_the_library
from tests.fuzz_values import OBJECTS, changed, shown_as
from tests.specs import SPECS
from tests.specs._maker import ANY_DTYPE, BATCHES, FORMATS, Maker
from tests.specs._spec import OpSpec, Sample

#: The grammar of an error; it begins with the name of the operator, or of the function that calls it.
GRAMMAR = re.compile(r"^[A-Za-z_][\w.]*: .+ must .+", re.S)
#: PyTorch's own errors when memory is short.
MEMORY = re.compile(
    r"can't allocate memory|not enough memory|Unable to allocate|Storage size calculation overflowed"
)
#: The limit of the address space, so that an absurd size raises an error and does not exhaust the machine.
LIMIT = 12 << 30


@dataclass
class Fuzzed:
    """One call, which a seed and an index determine."""

    seed: int
    index: int
    changes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed}:{self.index}")
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


def kind_of(error: Exception) -> str:
    """Return "error" for an allowed error, "memory" if memory is short, or what is wrong with the error."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, (RuntimeError, ValueError, TypeError)) and MEMORY.search(str(error)):
        return "memory"
    if isinstance(error, FileNotFoundError):  # a text is the path of a file for the decoders
        return "error"
    if not isinstance(error, (ValueError, TypeError, NotImplementedError)):
        return "another error"
    return "error" if GRAMMAR.match(str(error)) else "not in the grammar"


def check(fuzzed: Fuzzed) -> str:
    """Run a call, and return its outcome as a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
        tensors = [
            x for x in (found if isinstance(found, (tuple, list)) else [found]) if isinstance(x, Tensor)
        ]
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
                if a.shape != b.shape or a.dtype != b.dtype or not same(a, b):
                    raise Wrong("the dispatcher gives another result")
        return beside_the_library(fuzzed, found)


def same(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are equal by value, or by their bytes, which may be NaN."""
    return torch.equal(a, b) or np.array_equal(*(x.detach().contiguous().view(torch.uint8) for x in (a, b)))


# -- transforms ------------------------------------------------------------------------------------


@dataclass
class FuzzedTransform:
    """A transform of torchvision, or one that only imgops has, on an image of a random dtype and shape."""

    seed: int
    index: int

    def __post_init__(self) -> None:
        random = Random(f"{self.seed}:{self.index}")
        self.case: Any = random.choice((*CASES, *ROWS))
        self.ours = self.case.make() if isinstance(self.case, Row) else self.case.make(v2)
        self.theirs = None if isinstance(self.case, Row) else self.case.make(reference)
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
        self.image = tv_tensors.Image(image) if isinstance(image, Tensor) and random.random() < 0.3 else image
        self.key = random.randrange(2**40)

    def __str__(self) -> str:
        return f"{self.case}-transform({shown_as(self.image)})"


def check_transform(fuzzed: FuzzedTransform) -> str:
    """Check that the result has torchvision's shape and dtype for the same draws, or that both raise."""

    def result(transform: Any) -> Any:
        try:
            return v2.seeded(transform, fuzzed.key)(fuzzed.image)
        except Exception as error:
            return error

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = result(fuzzed.ours)
        wanted = None if fuzzed.theirs is None else result(fuzzed.theirs)
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
    if fuzzed.case.moves and not torch.equal(found, wanted):
        raise Wrong("not torchvision's pixels")
    return "transform: as torchvision's"


# -- many calls ------------------------------------------------------------------------------------

#: The index of the current call of each process, to identify a call that crashes one.
_AT: Any = [0]
_slot = 0


def run(
    seed: int, start: int, stop: int, patience: float = 60, new: bool = False
) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Count the outcomes of calls, and return those that are wrong."""
    torch.set_num_threads(1)
    found: Counter[str] = Counter()
    wrong = []
    for index in range(start, stop):
        _AT[_slot] = index
        try:
            fuzzed = made(seed, index, new)
        except Exception:  # the sample cannot be made in this dtype
            found["not made"] += 1
            continue
        begin = time.perf_counter()
        try:
            found[checked(fuzzed)] += 1
        except Exception as error:  # also an error of this program, so that nothing is passed over in silence
            found["WRONG"] += 1
            what = str(error) if isinstance(error, Wrong) else traceback.format_exc()[-400:]
            wrong.append((index, str(fuzzed), what))
        if time.perf_counter() - begin > patience:
            wrong.append((index, str(fuzzed), f"took {time.perf_counter() - begin:.0f} s"))
    return found, wrong


def made(seed: int, index: int, new: bool = False) -> Fuzzed | FuzzedTransform | FuzzedNew:
    if new:
        return FuzzedNew(seed, index)
    return FuzzedTransform(seed, index) if index % 5 == 4 else Fuzzed(seed, index)


def checked(fuzzed: Fuzzed | FuzzedTransform | FuzzedNew) -> str:
    if isinstance(fuzzed, FuzzedNew):
        return check_new(fuzzed)
    return check(fuzzed) if isinstance(fuzzed, Fuzzed) else check_transform(fuzzed)


def limited(at: Any, slots: Any) -> None:
    global _AT, _slot
    with slots.get_lock():
        _AT, _slot, slots.value = at, slots.value, slots.value + 1
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def parts(start: int, count: int, size: int = 500) -> Iterator[tuple[int, int]]:
    yield from ((a, min(a + size, count)) for a in range(start, count, size))


def main(report: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, default=-1)
    parser.add_argument("--new", action="store_true", help="the calls of tests/fuzz_new.py")
    o = parser.parse_args()
    if o.only >= 0:
        fuzzed = made(o.seed, o.only, o.new)
        report(str(fuzzed))
        try:
            report(checked(fuzzed))
        except Wrong:
            traceback.print_exc()
        return 0
    total: Counter[str] = Counter()
    kinds: dict[str, tuple[int, str, str]] = {}
    start = time.perf_counter()
    context = get_context("spawn")
    at, slots = context.RawArray("q", [-1] * o.processes), context.Value("i", 0)
    with ProcessPoolExecutor(o.processes, context, limited, (at, slots)) as pool:
        for done in as_completed(
            pool.submit(run, o.seed, a, b, 60, o.new) for a, b in parts(o.start, o.count)
        ):
            try:
                found, wrong = done.result()
            except BrokenProcessPool:
                report(f"a process was ended by one of the calls --only {list(at)}")
                return 1
            total += found
            for index, call, error in wrong:
                kind = re.sub(r"\d+", "0", f"{call.partition('(')[0]}: {error}")[:160]
                if kind not in kinds:
                    kinds[kind] = index, call, error
                    report(f"--only {index}: {call}\n    {error[:300]}")
    report(f"{sum(total.values())} calls in {time.perf_counter() - start:.0f} s, seed {o.seed}")
    for name, count in total.most_common():
        report(f"{count:9} {name}")
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main())
