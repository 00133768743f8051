"""Random calls of a kind: ``python -m tests.fuzz 1000000 --kind calls``.

A seed and an index determine a call. It is checked by its oracle: a library, a loop, the dispatcher; or it raises one ValueError,
TypeError or NotImplementedError, ``op: argument must ..., got ...``. ``--only N`` runs call N again, and prints it.
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
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))  # as under pytest

from tests import fuzz_calls, fuzz_new, fuzz_pipelines
from tests.fuzz_values import Made, Wrong, kind_of

#: The limit of the address space, so that an absurd size raises an error and does not exhaust the machine.
LIMIT = 12 << 30


def _operator_or_transform(seed: int, index: int) -> Made:
    make = fuzz_calls.transform if index % 5 == 4 else fuzz_calls.function
    return make(Random(f"{seed}:{index}"))


#: Makers of a call by seed and index: its text, and its check, which returns the outcome as a word.
KINDS: dict[str, Callable[[int, int], Made]] = {
    "calls": _operator_or_transform,
    "new": lambda seed, index: fuzz_new.made(Random(f"new {seed}:{index}")),
    "pipelines": lambda seed, index: fuzz_pipelines.made(seed + index),
}

#: The index of the current call of each process, to identify a call that crashes one.
_AT: Any = [0]
_slot = 0


def outcome(check: Callable[[], str]) -> str:
    """Return the outcome of a call as a word, the name of its error if that is an allowed one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return check()
        except AssertionError:
            raise
        except Exception as error:
            kind = kind_of(error)
            if kind in ("error", "memory"):
                return type(error).__name__
            raise Wrong(f"{kind}: {type(error).__name__}: {error}") from error


def run(
    kind: str, seed: int, start: int, stop: int, patience: float = 60
) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Count the outcomes of calls, and return those that are wrong."""
    torch.set_num_threads(1)
    found: Counter[str] = Counter()
    wrong = []
    for index in range(start, stop):
        _AT[_slot] = index
        try:
            text, check = KINDS[kind](seed, index)
        except Exception:  # the sample cannot be made in this dtype
            found["not made"] += 1
            continue
        begin = time.perf_counter()
        try:
            found[outcome(check)] += 1
        except Exception as error:  # also an error of this program, so that nothing is passed over in silence
            found["WRONG"] += 1
            wrong.append(
                (index, text, str(error) if isinstance(error, Wrong) else traceback.format_exc()[-400:])
            )
        if time.perf_counter() - begin > patience:
            wrong.append((index, text, f"took {time.perf_counter() - begin:.0f} s"))
    return found, wrong


def limited(at: Any, slots: Any) -> None:
    global _AT, _slot
    with slots.get_lock():
        _AT, _slot, slots.value = at, slots.value, slots.value + 1
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--kind", choices=KINDS, default="calls")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, help="the index of a call")
    o = parser.parse_args()
    if o.only is not None:
        text, check = KINDS[o.kind](o.seed, o.only)
        print(text)
        print(outcome(check))
        return 0
    total: Counter[str] = Counter()
    kinds: set[str] = set()
    start, context = time.perf_counter(), get_context("spawn")
    at, slots = context.RawArray("q", [-1] * o.processes), context.Value("i", 0)
    with ProcessPoolExecutor(o.processes, context, limited, (at, slots)) as pool:
        parts = [(a, min(a + 500, o.count)) for a in range(o.start, o.count, 500)]
        for done in as_completed(pool.submit(run, o.kind, o.seed, *part) for part in parts):
            try:
                found, wrong = done.result()
            except BrokenProcessPool:
                print(f"a process was ended by one of the calls --only {list(at)}")
                return 1
            total += found
            for index, call, error in wrong:
                kind = re.sub(r"\d+", "0", f"{call.partition('(')[0]}: {error}")[:160]
                if kind not in kinds:
                    kinds.add(kind)
                    print(f"--only {index}: {call}\n    {error[:300]}")
    print(f"{sum(total.values())} calls in {time.perf_counter() - start:.0f} s, seed {o.seed}")
    for name, count in total.most_common():
        print(f"{count:9} {name}")
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main())
