"""The rules by which transforms draw, and the native code that follows them.

A transform says in ``_draw_rule`` what its ``_draw_row`` draws: a list of instructions, made by the functions
below. Columns are those of the transform's own numbers, which are neutral unless an instruction writes to
them; if a transform computes its neutral numbers from the size, or its numbers from what is drawn, the rule
writes to the first column. The sizes in the shape are NaN for a rule for images of any size (``ANY_SIZE``).

Where a rule is missing or cannot be followed, torchvision's code draws; the numbers and the state of the
generator afterwards are the same. Before a rule is used, it is compared with torchvision's code.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch

from imgops._common import compare
from imgops._common.torch_private import has_modes
from imgops.transforms._core import seeding
from imgops.transforms._core.parameters import Shape

try:
    _draws: Any = import_module("imgops.transforms._core._draws")
except ImportError:  # built without a C compiler
    _draws = None

# The operations of the native module.
_CHANCE, _WHEN, _PUT, _COPY, _UNIFORM, _INTEGER, _PERMUTATION, _ROTATION = range(8)
_PLACE, _CROP, _ERASE, _POLICY = range(8, 12)
#: About how many calls of PyTorch an operation replaces; 1 of others that draw.
_CALLS = {_PUT: 0, _COPY: 0, _ROTATION: 0, _CROP: 8, _ERASE: 8, _POLICY: 8}
_RELATIONS = {"<": 0, "<=": 1, ">=": 2}
_SINGLE, _SINGLE_ROUNDED, _DOUBLE, _DOUBLE_FUSED = range(4)


class Instruction(NamedTuple):
    """An operation, the column that it reads or writes, its operands, and what runs under its condition."""

    operation: int
    column: int
    operands: tuple[float, ...] = ()
    block: tuple[Instruction, ...] = ()


Rule = list[Instruction]
#: The height and width in the shape of a rule for images of any size; arithmetic with them gives no rule.
ANY_SIZE: Any = (math.nan, math.nan)
#: The sizes for rules that need none.
NO_SIZE = np.ones(2)


def chance(p: float, *block: Instruction, relation: str = "<") -> Instruction:
    """Run a block if ``torch.rand(1) < p``, or if another relation holds."""
    return Instruction(_CHANCE, 0, (_RELATIONS[relation], float(p)), block)


def applied(p: float, *block: Instruction) -> Instruction:
    """Apply a transform whose first number says so with a probability."""
    return chance(p, put(0, 1.0), *block)


def when(column: int, value: int, *block: Instruction) -> Instruction:
    """Run a block if a column that was drawn has a value."""
    return Instruction(_WHEN, column, (value,), block)


def put(column: int, value: float) -> Instruction:
    return Instruction(_PUT, column, (float(value),))


def copy(column: int, source: int) -> Instruction:
    return Instruction(_COPY, column, (source,))


def uniform(column: int, low: float, high: float, rounded: bool = False) -> Instruction:
    """Draw ``torch.empty(1).uniform_(low, high)`` in float32, perhaps rounded to an integer."""
    return Instruction(_UNIFORM, column, (_SINGLE_ROUNDED if rounded else _SINGLE, float(low), float(high)))


def uniform_double(column: int, low: float, high: float) -> Instruction:
    """Draw ``uniform_(low, high)`` in float64."""
    return Instruction(_UNIFORM, column, (_DOUBLE, float(low), float(high)))


def integer(column: int, low: int, count: int, step: int = 1) -> Instruction:
    """Draw ``low + step * torch.randint(count, ())``."""
    return Instruction(_INTEGER, column, (low, step, count))


def permutation(column: int, values: Sequence[float]) -> Instruction:
    """Put values in the order of ``torch.randperm``."""
    return Instruction(_PERMUTATION, column, tuple(values))


def rotation(column: int, length: int) -> Instruction:
    """Move the first of some columns behind the others."""
    return Instruction(_ROTATION, column, (length,))


def _size(shape: Shape) -> tuple[float, float]:
    """Return the height and width of a shape, or zeros for the size that each image has."""
    height, width = shape[2:]
    if height < 1 or width < 1:
        raise ValueError("an image without pixels")  # code_of returns None
    return (0, 0) if height != height else (height, width)


def place(column: int, shape: Shape, dim: int, more: int) -> Instruction:
    """Draw one of the places along a dim of an image, whose number is its side and some more."""
    return Instruction(_PLACE, column, (*_size(shape), dim, more))


def crop(column: int, shape: Shape, scale: Any, log_ratio: Any, ratio: Any) -> Instruction:
    """Draw RandomResizedCrop's top, left, height and width."""
    limits = (*scale, *log_ratio, min(ratio), max(ratio))
    return Instruction(_CROP, column, (*_size(shape), *limits))


def erase(column: int, shape: Shape, scale: Any, log_ratio: Any) -> Instruction:
    """Draw RandomErasing's left, top, right and bottom."""
    return Instruction(_ERASE, column, (*_size(shape), *scale, *log_ratio))


def policy(column: int, magnitudes: int, kinds: Sequence[tuple[bool, bool]]) -> Instruction:
    """Draw the index of a step, of its magnitude, and whether its sign is changed.

    ``kinds`` says for each step whether it has a magnitude, and a sign. Without a number of magnitudes none
    is drawn.
    """
    flags = (has_magnitude + 2 * (has_magnitude and is_signed) for has_magnitude, is_signed in kinds)
    return Instruction(_POLICY, column, (magnitudes, *flags))


# -- rules as numbers ------------------------------------------------------------------------------------


class Code(NamedTuple):
    """A rule as numbers, and about how many calls of PyTorch it replaces."""

    numbers: list[float]
    calls: int


def encode(rule: Sequence[Instruction], start: int) -> Code:
    """Return instructions as numbers for rows in which the columns of the transform begin at ``start``."""
    numbers: list[float] = []
    calls = 0
    for operation, column, operands, block in rule:
        inside = encode(block, start) if block else Code([], 0)
        if operation == _COPY:
            operands = (operands[0] + start,)
        elif operation == _UNIFORM and operands[0] == _DOUBLE and compare.results.get("draws") == "fused":
            operands = (_DOUBLE_FUSED, *operands[1:])
        numbers += (operation, start + column, len(operands), len(inside.numbers), *operands, *inside.numbers)
        calls += _CALLS.get(operation, 1) + inside.calls
    return Code(numbers, calls)


def under(conditions: Sequence[tuple[int, int]], code: Code) -> Code:
    """Return code that runs under conditions on columns of the row: a value, or -1 for any above 0."""
    numbers = code.numbers
    for column, value in reversed(conditions):
        numbers = [_WHEN, column, 1, len(numbers), value, *numbers]
    return Code(numbers, code.calls)


def code_of(transform: Any, shape: Shape, start: int) -> Code | None:
    """Return the code of a transform's rule; None if torchvision's code must draw.

    It is for images of a shape, and for rows in which the transform's numbers begin at ``start``.
    """
    if (
        _draws is None
        or not _has_rule(transform.__class__)
        or getattr(transform, "_source", None) is not None
        or getattr(transform, "_draws_itself", False)
    ):
        return None
    if not compare.agrees("draws"):
        return None
    try:
        rule = transform._draw_rule(shape)
        if rule is None:
            return None
        code = encode(rule, start)
        wide = start + transform._count_numbers(shape)
        if not _draws.check(np.array(code.numbers, np.float64), wide):
            return None
        return code if _agrees(transform) else None
    except Exception:  # arguments that torchvision's code refuses, or reads otherwise
        return None


#: The methods that decide what is drawn.
_METHODS = (
    *("make_params", "_draw", "_draw_row", "_numbers_from", "_neutral_numbers"),
    "_torchvision_forward",  # which the policies record
)


@lru_cache(maxsize=1024)
def _has_rule(cls: Any) -> bool:
    """Return whether a class has a rule, and no subclass of the rule's overrides what the rule stands for."""
    for owner in cls.__mro__:
        if "_draw_rule" in vars(owner):
            return True
        if any(name in vars(owner) for name in _METHODS):
            return False
    return False


def can_draw() -> bool:
    """Return whether PyTorch's calls would now draw from a generator on the CPU as the native code does."""
    return _draws is not None and torch.get_default_dtype() is torch.float32 and not has_modes()


def draw(
    generator: torch.Generator,
    code: np.ndarray,
    neutral: np.ndarray,
    gate: np.ndarray,
    sizes: Any,
    rows: np.ndarray,
    first: int,
) -> int:
    """Draw the rows of samples from ``first`` on, those with an open gate; the others become neutral.

    ``sizes`` are the height and width of all images or of each, as float64. Return the index of the first
    sample that was not drawn: torchvision's code must draw its numbers, because they depend on the last bits
    of ``torch.exp``, or to raise.
    """
    return _draws.draw(generator, _take, code, neutral, gate, sizes, rows, first)  # type: ignore[no-any-return]


class _Words(threading.local):
    """The memory of a thread for a few words, with which a single draw takes less time."""

    most = 32

    def __init__(self) -> None:
        self.of: dict[int, tuple[torch.Tensor, np.ndarray]] = {}


_words = _Words()


def _take(generator: torch.Generator, count: int) -> np.ndarray:
    """Take words from a generator, in one call of PyTorch."""
    found = _words.of.get(count)
    if found is None:
        with torch.inference_mode(False):  # later calls may change it outside of this mode
            words = torch.empty(count, dtype=torch.int32, device="cpu")
        found = words, words.numpy()
        if count <= _words.most:
            _words.of[count] = found
    found[0].random_(generator=generator)
    return found[1]


_OPEN = np.ones(1, dtype=np.uint8)


def draw_row(generator: torch.Generator, code: np.ndarray, sizes: Any, row: np.ndarray) -> bool:
    """Draw the numbers of one sample into its row; return False, with nothing drawn, if PyTorch must."""
    return draw(generator, code, row, _OPEN, sizes, row, 0) == 1


#: The fewest calls of PyTorch that native code replaces in less time, if it draws for one sample.
FEWEST_CALLS = 4


class SingleRule:
    """A rule for the draws of one sample, whose numbers are a list."""

    def __init__(self, transform: Any, shape: Shape, code: Code) -> None:
        self.code = np.array(code.numbers, dtype=np.float64)
        self.finish = transform._numbers_of_draw
        self.neutral = np.array(transform._neutral_numbers(shape), dtype=np.float64)
        #: Whether all is under one chance; the first number is then NaN if it is not taken.
        self.may_do_nothing = code.numbers[0] == _CHANCE and len(code.numbers) == 6 + code.numbers[3]
        if self.may_do_nothing:
            self.neutral[0] = math.nan
        kinds = [p.kind for p in transform._random_parameters for _ in range(p.count(transform, shape))]
        #: The columns of torchvision's integers.
        self.whole = [i for i, kind in enumerate(kinds) if kind is int]

    def draw(self, generator: torch.Generator, size: Sequence[int]) -> Any:
        """Return the numbers, None if nothing happens, or NotImplemented if PyTorch must draw them."""
        row = np.empty_like(self.neutral)
        channels, height, width = size[-3:]
        sizes = _PAIR.pack(height, width)
        if draw(generator, self.code, self.neutral, _OPEN, sizes, row, 0) != 1:
            return NotImplemented
        drawn = row.tolist()
        if self.may_do_nothing and math.isnan(drawn[0]):
            return None
        if self.finish:
            return self.finish(drawn, (1, channels, height, width))
        for i in self.whole:
            drawn[i] = int(drawn[i])
        return drawn


_PAIR = struct.Struct("dd")


def single_rule(transform: Any, size: Sequence[int]) -> tuple[Sequence[int], SingleRule | None]:
    """Return the rule for single draws, None if PyTorch draws faster or must draw.

    It is for images ``(..., C, H, W)`` whose size ends like the one that is returned, too.
    """
    for known, shape in ((size[-3:-2], (1, size[-3], *ANY_SIZE)), (size[-3:], (1, *size[-3:]))):
        code = code_of(transform, shape, 0)
        if code is not None:
            return known, SingleRule(transform, shape, code) if code.calls >= FEWEST_CALLS else None
    return size[-3:], None


# -- comparisons -------------------------------------------------------------------------------------------


def _agrees(transform: Any) -> bool:
    """Return whether a class draws by its rule what torchvision's code draws, compared at its first use."""
    name = name_of(type(transform))
    if name not in compare.results:
        compare.comparisons[name] = "torchvision", partial(_has_numbers_of, transform)
    return bool(compare.agrees(name))


def name_of(cls: type) -> str:
    """Return the name of the comparison of a class, which no other class has."""
    place = "" if cls.__module__.startswith("imgops.transforms.") else f"{cls.__module__}."
    return f"{place}{cls.__name__.strip('_')}'s draws"


def _has_numbers_of(transform: Any) -> bool:
    """Return whether a rule gives the numbers of ``_draw_row``, and leaves the generator in its state."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # plans are also made in another one, in which no rule draws
    try:
        return _draws_rows_alike(transform)
    finally:
        torch.set_default_dtype(dtype)


def _draws_rows_alike(transform: Any) -> bool:
    shape = 1, 3, 40, 60
    code = np.array(encode(transform._draw_rule(shape), 0).numbers, np.float64)
    neutral = np.array(transform._neutral_numbers(shape), np.float64)
    finish = getattr(transform, "_numbers_of_draw", None)
    for seed in range(4):
        one, other = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
        with seeding.exchange_generator(other):
            wanted = transform._draw_row(shape)
        row = neutral.copy()
        row[:1] = np.nan if finish else row[:1]
        if not draw_row(one, code, NO_SIZE, row):
            continue
        found = row.tolist()
        if finish:
            found = neutral.tolist() if np.isnan(row[0]) else finish(found, shape)
        if wanted is None:
            wanted = neutral.tolist()
        if not torch.equal(one.get_state(), other.get_state()) or not np.array_equal(found, wanted):
            return False
    return True


def _kinds() -> dict[str, tuple[Instruction, int, Callable[[torch.Generator], torch.Tensor]]]:
    """Return instructions, how many numbers they draw, and PyTorch's calls that draw the same."""
    low, high = -0.3, 1.93

    def real(dtype: torch.dtype) -> Callable[[torch.Generator], torch.Tensor]:
        return lambda g: torch.empty(1, dtype=dtype, device="cpu").uniform_(low, high, generator=g)

    def whole(count: int) -> Callable[[torch.Generator], torch.Tensor]:
        return lambda g: torch.randint(count, (1,), generator=g, device="cpu")

    counts = (1, 7, 2**28 - 1, 2**28, 2**32, 2**53)
    return {
        "float32": (uniform(0, low, high), 1, real(torch.float32)),
        "float64": (uniform_double(0, low, high), 1, real(torch.float64)),
        **{f"below {n}": (integer(0, 0, n), 1, whole(n)) for n in counts},
        "randperm": (permutation(0, range(5)), 5, lambda g: torch.randperm(5, generator=g, device="cpu")),
    }


def _compare_kinds() -> str:
    """Return "fused" or "plain" if the native code draws as PyTorch does, else "".

    The name says how PyTorch rounds in float64, which depends on the machine.
    """
    instructions = _kinds()
    for how, arithmetic in (("fused", _DOUBLE_FUSED), ("plain", _DOUBLE)):
        instruction, count, call = instructions["float64"]
        ours = instruction._replace(operands=(arithmetic, *instruction.operands[1:]))
        instructions["float64"] = ours, count, call
        if all(_draws_alike(*kind) for kind in instructions.values()):
            return how
    return ""


def _draws_alike(instruction: Instruction, count: int, call: Callable[[torch.Generator], Any]) -> bool:
    code = np.array(encode([instruction], 0).numbers, np.float64)
    one, other = torch.Generator().manual_seed(count), torch.Generator().manual_seed(count)
    rows = np.empty((40, count))
    try:
        draw(one, code, np.zeros(count), np.ones(len(rows), np.uint8), NO_SIZE, rows, 0)
    except (TypeError, ValueError, AttributeError):  # the state has another form
        return False
    wanted = [call(other).tolist() for _ in rows]
    return np.array_equal(rows, wanted) and torch.equal(one.get_state(), other.get_state())


if _draws is not None:
    compare.comparison("draws", "PyTorch")(_compare_kinds)
