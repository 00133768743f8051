"""The draws of a converted pipeline, which albumentations' own code makes by its own generators.

A transform without a seed is seeded anew for each draw, by PyTorch's generator, so that
``torch.manual_seed``, the workers of a DataLoader and the keys of ``seeded`` decide it. A transform with a
seed goes on from draw to draw, as albumentations does; only a key stands above it.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from imgops.transforms._core import programs, seeding
from imgops.transforms._core.parameters import Shape

_handles = itertools.count(1)
_lock = threading.RLock()


def drawn_seed() -> int:
    """Draw a seed by PyTorch's generator that a number of a transform can hold."""
    return int(torch.randint(2**53, (), device="cpu"))


class _Generators(threading.local):
    """Generators of NumPy and Python that are seeded anew for each draw, because new ones take longer."""

    def __init__(self) -> None:
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
        self.before = list(_states(self.given)) if is_container(self.given) else None
        if self.before is None:
            self.own = self.given.random_generator, self.given.py_random
        self.given.set_random_state(*_generators.seed(self.seed))

    def __exit__(self, *why: Any) -> None:
        if self.before is None:
            self.given.random_generator, self.given.py_random = self.own
        else:
            for inner, generator, py_random in self.before:
                inner.random_generator, inner.py_random = generator, py_random
        _lock.release()


def is_container(given: Any) -> bool:
    """Return whether something holds transforms; ColorJitter holds functions under the same name."""
    return any(cls.__name__ == "BaseCompose" for cls in type(given).__mro__)


def _states(given: Any) -> Iterator[tuple[Any, Any, Any]]:
    yield given, given.random_generator, given.py_random
    for inner in given.transforms if is_container(given) else ():
        yield from _states(inner)


class Source:
    """A transform of albumentations that draws what its counterpart needs.

    ``forced`` says that a container chose the transform, so that its own probability no longer matters. The
    steps of a sampling program find it by its handle.
    """

    def __init__(self, given: Any, forced: bool = False) -> None:
        self.given, self.forced = given, forced
        self.worker_seed: int | None = None
        self.handle = next(_handles)
        programs.SOURCES[self.handle] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.given, self.forced)

    @property
    def draws_on(self) -> bool:
        """Whether the draws follow a seed of the pipeline, and go on from call to call."""
        return self.given.seed is not None and not seeding.has_key()

    @contextmanager
    def generators(self) -> Iterator[None]:
        """Let the transform draw from the generators that decide this call."""
        if not self.draws_on:
            with seeded_by(self.given, drawn_seed()):
                yield
            return
        with _lock:
            self._part_ways()
            yield

    def _part_ways(self) -> None:
        """Reseed a transform with a seed in a worker of a DataLoader, so that the workers' draws differ."""
        worker = get_worker_info()
        if worker is not None and worker.seed != self.worker_seed:
            self.worker_seed = worker.seed
            seed = seeding.seed_of((self.given.seed, worker.seed))
            self.given.set_random_state(np.random.default_rng(seed), random.Random(seed))

    def chance(self) -> bool:
        """Draw whether the transform is applied."""
        p = self.given.p
        if p <= 0 or p >= 1 or self.forced:
            return p > 0
        if self.draws_on:
            with self.generators():
                return self.given.py_random.random() < p
        return torch.rand(1, dtype=torch.float32, device="cpu").item() < p

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> Any:
        """Return the numbers of the counterpart for an image of a shape, or None if it is not applied."""
        raise NotImplementedError


class Chance(Source):
    """The probability of a transform or of a container, as RandomApply takes it."""

    def chance(self) -> bool:
        # Containers ask their generator whatever their probability is.
        if is_container(self.given) and self.draws_on and not self.forced:
            with self.generators():
                return self.given.py_random.random() < self.given.p
        return super().chance()

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> list[float]:
        return [float(self.chance())]


class Choice(Chance):
    """The transform that OneOf or OneOrOther chooses; the one after the last is none of them."""

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> list[float]:
        given, count = self.given, len(self.given.transforms)
        if type(given).__name__ == "OneOrOther":
            return [0.0 if self.chance() else float(count - 1)]
        if not self.chance():
            return [float(count)]
        with self.generators():
            return [float(given.random_generator.choice(count, p=given.transforms_ps))]


class Order(Chance):
    """The transforms that SomeOf or RandomOrder chooses, in their order; -1 for none."""

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> list[float]:
        if not self.chance():
            return [-1.0] * self.given.n
        with self.generators():
            return [float(i) for i in self.given._get_idx()]
