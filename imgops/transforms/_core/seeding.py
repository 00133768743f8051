"""Draws that depend on a sample's key alone, not on the worker, the batch or the machine."""

from __future__ import annotations

import hashlib
import operator
import os
import random
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torchvision import transforms as v1

Key = int | str | bytes | tuple[Any, ...]


class Seeded:
    """The callable that :func:`seeded` returns; it can be pickled."""

    def __init__(self, transform: Callable[..., Any], seeds: int | list[int]) -> None:
        self.transform, self.seeds = transform, seeds

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        transform = partial(self.transform, **named) if named else self.transform
        if isinstance(self.seeds, list):
            with _exchange, _use_keys([torch.Generator().manual_seed(seed) for seed in self.seeds]):
                before = torch.get_rng_state()
                try:
                    out = transform(*inputs)
                finally:
                    after = torch.get_rng_state()
                    torch.set_rng_state(before)
            if not torch.equal(before, after):
                must = "transform must sample for each image alone (per_sample=True) where key is a list"
                raise ValueError(f"seeded: {must}, got one that drew for the whole batch")
            return out
        with _use_keys(None), exchange_generator(torch.Generator().manual_seed(self.seeds)):
            return transform(*inputs)

    def __repr__(self) -> str:
        return f"seeded({self.transform!r}, seeds={self.seeds})"


def seeded(transform: Callable[..., Any], key: Key | list[Key]) -> Seeded:
    """Return the transform with draws that depend on a key alone.

    The same sample gets the same draw whatever the number of workers, its batch and the machine. The state of
    PyTorch's generator is restored afterwards.

    Parameters
    ----------
    transform : callable
        A transform or a pipeline, compiled or not; or another function that draws from PyTorch's generator on
        the CPU.
    key : int, str, bytes, a tuple of keys, or a list
        The name of a sample: ``(epoch, path)``, for example. A list has one key for each image of a batch
        ``(N, ..., C, H, W)``, and needs ``per_sample=True``.

    Returns
    -------
    callable
        The result takes what the transform takes. It can be pickled, and is cheap: make a new one for each
        call.

    Raises
    ------
    TypeError
        If ``transform`` is not callable, or a key has another type.
    ValueError
        If a transform inside has a ``generator`` of its own. With a list, when the result is called: if the
        length of the list is not that of the batch, or something is sampled for the whole batch.

    Notes
    -----
    The seed is 63 bits of the BLAKE2b hash of the key, the same everywhere and in every version. Do not
    compile the result: compile ``transform``. Threads that draw at the same time wait for each other;
    processes do not.

    Examples
    --------
    >>> import torch
    >>> from imgops import transforms as v2
    >>> crop = v2.RandomCrop(2, per_sample=True)
    >>> images = torch.arange(2 * 36).reshape(2, 1, 6, 6).byte()
    >>> both = v2.seeded(crop, [(0, "a.jpg"), (0, "b.jpg")])(images)
    >>> torch.equal(both[1], v2.seeded(crop, (0, "b.jpg"))(images[1]))
    True
    """
    if not callable(transform):
        raise TypeError(f"seeded: transform must be callable, got {type(transform).__name__}")
    for inner in inside(transform):
        if getattr(inner, "generator", None) is not None:
            got = f"{type(inner).__name__} with a generator of its own"
            raise ValueError(f"seeded: transform must draw from PyTorch's generator, got {got}")
    return Seeded(transform, [seed_of(k) for k in key] if isinstance(key, list) else seed_of(key))


def inside(transform: Any) -> Iterator[Any]:
    """Yield a transform and those inside."""
    yield transform
    for inner in parts_of(transform):
        yield from inside(inner)


def parts_of(transform: Any) -> list[Any]:
    """Return the transforms inside; PyTorch does not search the lists in which containers keep them."""
    listed = getattr(transform, "transforms", ())
    parts: list[Any] = list(transform.children()) if isinstance(transform, nn.Module) else []
    parts += [part for part in listed if part not in parts] if isinstance(listed, (list, tuple)) else []
    if isinstance(transform, types.MethodType):
        parts.append(transform.__self__)
    elif isinstance(transform, partial):
        parts.append(transform.func)
    elif isinstance(transform, v1.Lambda):  # which is no module
        parts.append(transform.lambd)
    return parts


def seed_of(key: Key) -> int:
    """Return the seed of a key, in [0, 2**63)."""
    digest = hashlib.blake2b(_encode(key), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _encode(key: Any) -> bytes:
    """Encode a key as bytes that no other key has."""
    if isinstance(key, tuple):
        parts = [_encode(part) for part in key]
        return b"t" + b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogateescape")
    if isinstance(key, bytes):
        return b"b" + key
    try:
        return b"i%d" % operator.index(key)
    except TypeError:
        must = "key must be an int, a str, bytes or a tuple of these, or a list of such keys"
        raise TypeError(f"seeded: {must}, got {type(key).__name__}") from None


# -- the generator of the process, and one for each image of a batch ------------------------------

_exchange = threading.RLock()


def hold_at_fork(lock: Any) -> None:
    """Let a fork wait until no other thread has a lock, which the child could not release."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


hold_at_fork(_exchange)


class _Exchange:
    """Exchange the states of the global generator and of another one in a context."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator, self.before = generator, torch.default_generator.get_state()

    def __enter__(self) -> None:
        torch.default_generator.set_state(self.generator.get_state())

    def __exit__(self, *_: object) -> None:
        try:
            self.generator.set_state(torch.default_generator.get_state())
        finally:
            torch.default_generator.set_state(self.before)


@contextmanager
def exchange_generator(generator: torch.Generator | None) -> Iterator[None]:
    """Give PyTorch's global generator the state of another one in the context; do nothing for None.

    The two generators exchange their states until the context ends, so another thread that draws from the
    global generator meanwhile gets numbers of the other generator.
    """
    if generator is None:
        yield
        return
    # Ctrl-C may come where the inner context ends, before it restores the state: then the outer one does.
    with _exchange, _Exchange(torch.default_generator), _Exchange(generator):
        yield


class _Draws(threading.local):
    has_key = False
    rows: list[torch.Generator] | None = None


_draws = _Draws()


@contextmanager
def _use_keys(rows: list[torch.Generator] | None) -> Iterator[None]:
    """Mark draws as keyed, for each image of a batch or for all; the keys replace those of an outer call."""
    outer = _draws.has_key, _draws.rows
    _draws.has_key, _draws.rows = True, rows
    try:
        yield
    finally:
        _draws.has_key, _draws.rows = outer


def sample_generators(count: int) -> list[torch.Generator] | None:
    """Return a generator for each of ``count`` samples if each has a key, else None."""
    generators = _draws.rows
    if generators is not None and len(generators) != count:
        must = f"key must be a list of {count}, one for each image sampled alone (per_sample=True)"
        raise ValueError(f"seeded: {must}, got {len(generators)}")
    return generators


def has_key() -> bool:
    """Return whether the draws of this call depend on keys."""
    return _draws.has_key


@contextmanager
def own_generators() -> Iterator[None]:
    """Let code that draws by Python's and NumPy's generators depend on the key of a sample, if it has one."""
    if not _draws.has_key:
        yield
        return
    seed = int(torch.randint(2**32, (), device="cpu"))
    before = random.getstate(), np.random.get_state()
    try:
        random.seed(seed)
        np.random.seed(seed)
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def share() -> torch.Tensor:
    """Return ``torch.rand(1)``, in the default dtype, as torchvision draws it."""
    return torch.rand(1, dtype=torch.get_default_dtype(), device="cpu")


def is_left_out(p: Any) -> bool:
    """Draw as torchvision whether a transform with a probability is left out."""
    drawn = share()
    if type(p) is float and drawn.dtype is torch.float32:
        return drawn.item() >= _in_float32(p)
    return bool(drawn >= p)


@lru_cache(maxsize=256)
def _in_float32(p: float) -> float:
    """Round a probability to float32, because torchvision compares it with a tensor of float32."""
    return float(np.float32(p))


def noise(out: torch.Tensor) -> None:
    """Fill an image with standard normal noise; on an accelerator, keyed noise comes from a drawn seed."""
    if out.is_cpu or not _draws.has_key:
        out.normal_()
        return
    seed = int(torch.randint(2**62, (), device="cpu"))
    out.normal_(generator=torch.Generator(out.device).manual_seed(seed))
