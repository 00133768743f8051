"""The draws of a converted pipeline, which albumentations' own code makes by its own generators.

A transform without a seed is seeded anew for each draw, by PyTorch's generator, so that
``torch.manual_seed``, the workers of a DataLoader and the keys of ``seeded`` decide it. A transform with a
seed goes on from draw to draw, as albumentations does; only a key stands above it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from imgops.integrations.albumentations.rules import (
    bases_of,
    changed_names,
    drawn_indices,
    is_container,
    parts_of,
)
from imgops.transforms._core import programs, seeding
from imgops.transforms._core.parameters import Shape

#: The attribute of a copied transform that holds the seed of the worker whose draws it has.
_PARTED = "_imgops_worker_seed"
#: The attribute of a copied transform that draws from generators that it was given, without a seed.
_SHARES = "_imgops_shares"
_lock = threading.RLock()
seeding.hold_at_fork(_lock)


def drawn_seed() -> int:
    """Draw a seed by PyTorch's generator that a number of a transform can hold."""
    return int(_generators.whole.random_(0, 2**53).item())


class _Generators(threading.local):
    """Generators of NumPy and Python that are seeded anew for each draw, because new ones take longer.

    So do new tensors for PyTorch's generator: these are filled as ``torch.rand`` and ``torch.randint`` do.
    """

    def __init__(self) -> None:
        self.share = torch.empty(1, device="cpu", dtype=torch.float32)
        self.whole = torch.empty((), device="cpu", dtype=torch.int64)
        self.python = random.Random(0)
        self.numpy = np.random.Generator(np.random.PCG64(0))
        self.state = self.numpy.bit_generator.state

    def seed(self, seed: int) -> tuple[np.random.Generator, random.Random]:
        self.python.seed(seed)
        self.state["state"]["state"] = seed * _SPREAD & _WHOLE
        self.numpy.bit_generator.state = self.state
        return self.numpy, self.python


_generators = _Generators()
#: PCG64's own multiplier spreads a seed over the 128 bits of its state.
_SPREAD, _WHOLE = 47026247687942121848144207491837523525, (1 << 128) - 1


class seeded_by:
    """Let a transform, and all inside of it, draw from a seed."""

    def __init__(self, given: Any, seed: int) -> None:
        self.given, self.seed = given, seed

    def __enter__(self) -> None:
        _lock.acquire()
        given = self.given
        self.before = given.random_generator, given.py_random
        _give(given, *_generators.seed(self.seed))

    def __exit__(self, *why: Any) -> None:
        _give(self.given, *self.before)
        _lock.release()


class _ongoing:
    """Let a transform draw from its own generators."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __enter__(self) -> None:
        _lock.acquire()
        self.source.part_ways()

    def __exit__(self, *why: Any) -> None:
        _lock.release()


def _give(given: Any, generator: np.random.Generator, python: random.Random) -> None:
    """Let a transform draw from other generators, but not the transforms inside of a container."""
    if hasattr(given, "apply"):
        given.set_random_state(generator, python)
    else:
        given.random_generator, given.py_random = generator, python


def set_seed(given: Any, seed: int | None) -> None:
    """Seed a transform, and all inside of it, as albumentations does.

    In a worker of a DataLoader these draws are those of the seed alone.
    """
    with _lock:
        given.set_random_seed(seed)
        _mark(given, False)


def set_state(given: Any, generator: np.random.Generator, python: random.Random) -> None:
    """Let a transform, and all inside of it, draw from generators of the user."""
    with _lock:
        given.set_random_state(generator, python)
        _mark(given, True)


def _mark(given: Any, shares: bool) -> None:
    worker = get_worker_info()
    for part in parts_of(given):
        known = part.__dict__
        known.update({_SHARES: True} if shares else {})
        for name in (_PARTED,) if shares else (_PARTED, _SHARES):
            known.pop(name, None)
        if worker is not None:
            known[_PARTED] = worker.seed


def sampled(given: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that a transform draws for an image and its annotations."""
    params = given.update_transform_params(given.get_params(), data)
    params.update(given.get_params_dependent_on_data(params, data))
    return params


class Source:
    """A transform of albumentations that draws the parameters of its counterpart.

    :attr:`name` is that of albumentations' class, or "" if other code runs in its place.

    ``forced`` says that a container chose the transform, so that its own probability no longer matters. The
    steps of a sampling program find it by its handle.
    """

    def __init__(self, given: Any, forced: bool = False) -> None:
        self.given, self.forced = given, forced
        changed = changed_names(given)
        self.name = "" if changed else next(bases_of(given), "")
        #: Whether the code that draws, or any of it, is not albumentations' own.
        self.is_foreign, self.has_own_chance = bool(changed), "should_apply" in changed
        self.is_container = is_container(given)
        self.handle = programs.new_handle()
        programs.SOURCES[self.handle] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.given, self.forced)

    @property
    def shares(self) -> bool:
        """Whether the transform draws from generators that it was given, which others may share."""
        return _SHARES in self.given.__dict__

    @property
    def has_state(self) -> bool:
        """Whether the transform has a seed, or generators that it was given."""
        return self.given.seed is not None or self.shares

    @property
    def draws_on(self) -> bool:
        """Whether the draws go on from call to call, and no key stands above them."""
        return self.has_state and not seeding.has_key()

    def generators(self) -> AbstractContextManager[None]:
        """Let the transform draw from the generators that decide this call."""
        return _ongoing(self) if self.draws_on else seeded_by(self.given, drawn_seed())

    def part_ways(self) -> None:
        """Reseed a transform with a seed in a worker of a DataLoader, so that the workers' draws differ."""
        worker, known = get_worker_info(), self.given.__dict__
        if worker is not None and worker.seed != known.get(_PARTED):
            known[_PARTED] = worker.seed
            first = self.given.py_random.getrandbits(53) if self.shares else self.given.seed
            seed = seeding.seed_of((first, worker.seed))
            _give(self.given, np.random.default_rng(seed), random.Random(seed))

    def chance(self, forced: bool = False) -> bool:
        """Draw whether the transform is applied; ``forced`` says that the caller of this call chose it."""
        p, forced = self.given.p, forced or self.forced
        if self.has_own_chance:
            with self.generators():
                return bool(self.given.should_apply(force_apply=forced))
        if p <= 0 or p >= 1 or forced:
            return p > 0
        if self.draws_on:
            with _lock:
                self.part_ways()
                return self.given.py_random.random() < p
        return _generators.share.uniform_().item() < p

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> Any:
        """Return the numbers of the counterpart for an image of a shape, or None if it is not applied."""
        raise NotImplementedError


class Chance(Source):
    """The probability of a transform or of a container, as RandomApply takes it."""

    def chance(self, forced: bool = False) -> bool:
        # Containers ask their generator whatever their probability is; one that was chosen has no other.
        if self.is_container and (forced or self.forced):
            return True
        if self.is_container and self.draws_on:
            with self.generators():
                return self.given.py_random.random() < self.given.p
        return super().chance(forced)

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> list[float]:
        return [float(self.chance())]


class Choice(Chance):
    """The transform that OneOf or OneOrOther chooses; the one after the last is none of them."""

    def __init__(self, given: Any, forced: bool = False) -> None:
        super().__init__(given, forced)
        if self.name == "OneOrOther":  # its probability is that of the first transform
            self.forced = False

    def index(self, forced: bool = False) -> int:
        """Draw the index of a transform."""
        given, count = self.given, len(self.given.transforms)
        if self.name == "OneOrOther":
            return 0 if self.chance() else count - 1
        if not self.chance(forced):
            return count
        with self.generators():
            return int(given.random_generator.choice(count, p=given.transforms_ps))

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> list[float]:
        return [float(self.index())]


class Order(Chance):
    """The transforms that SomeOf or RandomOrder chooses, in their order; -1 for none."""

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> list[float]:
        if not self.chance():
            return [-1.0] * self.given.n
        with self.generators():
            return [float(i) for i in drawn_indices(self.given)]
