"""Shared code of random calls: values that replace an argument, and the errors that they may raise (:mod:`tests.fuzz`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.specs import SPECS
from tests.specs._maker import ANY_DTYPE, Maker

#: A call: its text, and its check, which returns the outcome as a word.
Made = tuple[str, Callable[[], str]]


class Wrong(AssertionError):
    """A wrong result, which is then kept as a test."""


#: The grammar of an error; it begins with the name of the operator, or of the function that calls it.
GRAMMAR = re.compile(r"^[A-Za-z_][\w.]*: .+ must .+", re.S)
#: PyTorch's own errors when memory is short.
MEMORY = re.compile(
    r"can't allocate memory|not enough memory|Unable to allocate|Storage size calculation overflowed"
)


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


NUMBERS = (
    *(0, 1, 2, 3, 5, 8, 31, -1, -7, 255, 256),
    *(2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, 2**63, -(2**64)),
)
REALS = (0.0, -0.0, 0.5, 1.0, -1.0, 255.0, 1e-30, 1e30, -1e30, float("nan"), float("inf"), float("-inf"))
WORDS = ("", "no such", "Bilinear", "L", "RGB")
OBJECTS: tuple[Any, ...] = (
    *(None, True, "text", b"bytes", [], (), {}, object(), [None], [[1, 2], [3]], 1j),
    *(np.float32(2), np.arange(4)),
)


@cache
def words() -> tuple[str, ...]:
    """Return the words that the samples of all operators use, and some that none does."""
    made = (s.call(Maker(s.dtypes[0])) for spec in SPECS.values() for s in spec.samples)
    used = {v for _, args, keywords in made for v in (*args, *keywords.values()) if isinstance(v, str)}
    return (*WORDS, *sorted(w for w in used if w.isidentifier()))


def changed(random: Random, value: Any) -> Any:
    """Return another value to replace an argument."""
    if random.random() < 0.12:
        return random.choice(OBJECTS)
    if isinstance(value, Tensor):
        return changed_tensor(random, value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice(NUMBERS if random.random() < 0.7 else REALS)
    if isinstance(value, float):
        return random.choice(REALS if random.random() < 0.7 else NUMBERS)
    if isinstance(value, str):
        return random.choice(words())
    if isinstance(value, (tuple, list)) and value:
        items = list(value)
        at = random.randrange(len(items))
        kind = random.randrange(6)
        if kind == 0:
            del items[at]
        elif kind == 1:
            items.insert(at, items[at])
        elif kind == 2 and all(isinstance(v, (int, float)) and not abs(v) >= 1 << 63 for v in items):
            return torch.tensor(items)
        else:
            items[at] = changed(random, items[at])
        return type(value)(items) if type(value) in (tuple, list) else tuple(items)
    if value is None:
        return random.choice((0, 1.5, "text", torch.zeros(()), torch.rand(3, 5, 6)))
    return random.choice(OBJECTS)


def changed_tensor(random: Random, x: Tensor) -> Any:
    kind = random.randrange(13)
    if kind == 0:
        return x.to(random.choice(ANY_DTYPE))
    if kind == 1 and x.ndim:
        return x.narrow(random.randrange(x.ndim), 0, 0)
    if kind == 2 and x.ndim:
        axis = random.randrange(x.ndim)
        return x.narrow(axis, 0, min(1, x.shape[axis]))
    if kind == 3 and x.ndim:
        return x.movedim(random.randrange(x.ndim), random.randrange(x.ndim))
    if kind == 4 and x.ndim:
        return x.select(random.randrange(x.ndim), 0) if 0 not in x.shape else x[..., None]
    if kind == 5:
        return x.unsqueeze(random.randrange(x.ndim + 1))
    if kind == 6 and x.ndim:
        axis = random.randrange(x.ndim)
        return x.repeat_interleave(random.choice((2, 3)), axis)
    if kind == 7 and x.ndim:
        return x.flip(random.randrange(x.ndim)) if x.ndim < 2 else x.as_strided(x.shape, (0,) * x.ndim)
    if kind == 8 and x.is_floating_point():
        return x * random.choice(REALS)
    if kind == 9 and x.numel() == 1 and not x.is_meta:
        return x.item()
    if kind == 10:
        return x.to("meta")
    if (
        kind == 11
        and x.ndim
        and x.shape[0] > 1
        and x.is_floating_point()
        and x.numel() < 100
        and not x.is_meta
    ):
        return x.tolist()
    if kind == 12 and x.is_floating_point() and x.numel():
        x = x.clone(memory_format=torch.contiguous_format)
        for _ in range(random.randrange(1, 4)):
            value = torch.tensor(random.choice((*REALS, 3e38, -3e38, 1e-40)))
            x.view(-1)[random.randrange(x.numel())] = value.to(x.dtype)
        return x
    return torch.full_like(x, random.choice((0, 1)))


def shown_as(value: Any) -> str:
    if isinstance(value, Tensor):
        return (
            f"{str(value.dtype)[6:]}{list(value.shape)}{'' if value.is_cpu else ' on ' + value.device.type}"
        )
    return repr(value)[:60]
