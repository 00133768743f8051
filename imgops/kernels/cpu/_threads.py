"""A pool of as many threads as PyTorch uses, which a forked process starts anew.

It calls Python; the native passes have threads of their own (``_native_threads.h``).
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeVar

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common.torch_private import is_eager

#: Below this many values a second thread costs more than it saves.
VALUES_PER_THREAD = 1 << 18
#: The same for the threads of the native module, which start sooner.
VALUES_PER_NATIVE_THREAD = 1 << 16
#: The same for kernels that only move values or look them up: they wait for memory.
MOVED_VALUES_PER_THREAD = 1 << 21

#: From this many values on ATen divides elementwise work among threads.
ATEN_DIVIDES = 1 << 15

#: A large batch is divided into more parts than there are threads: where another program holds a core, the
#: calling thread takes the parts that no other thread has begun.
_PARTS_PER_THREAD = 4

_movers: set[Callable[..., None]] = set()
_dividers: dict[Callable[..., None], Callable[..., bool]] = {}

Kernel = TypeVar("Kernel", bound=Callable[..., None])

_pool: ThreadPoolExecutor | None = None
_this = threading.local()


def number() -> int:
    """Return how many threads may work on a call: the number of PyTorch, but 1 within a part of a call."""
    if hasattr(_this, "has_a_part"):
        return 1
    return getattr(_this, "number", 0) or torch.get_num_threads()


def waits_for_memory(kernel: Kernel) -> Kernel:
    """Mark a kernel that takes as long as a copy, so that only large batches are worth a second thread."""
    _movers.add(kernel)
    return kernel


def divides(when: Callable[..., bool] = lambda *args: True) -> Callable[[Kernel], Kernel]:
    """Mark a kernel that divides a batch among threads itself, if ``when`` is true of its arguments."""

    def mark(kernel: Kernel) -> Kernel:
        _dividers[kernel] = when
        return kernel

    return mark


def _divides(kernel: Callable[..., None], args: Sequence[Any]) -> bool:
    return kernel in _dividers and _dividers[kernel](*args)


def is_small(image: Tensor) -> bool:
    """Return whether one thread does all the work on an image."""
    return is_for_one_thread(image.numel())


def is_for_one_thread(values: int) -> bool:
    return values < 2 * VALUES_PER_THREAD or number() == 1


def worth(values: int) -> int:
    """Return how many threads a call of the native module is worth."""
    most = values // VALUES_PER_NATIVE_THREAD
    return min(most, number()) if most > 1 else 1  # a small image does not ask for the number


def split(count: int, values: int, work: Callable[[int, int], None]) -> None:
    """Run ``work(start, stop)`` over ``range(count)``, in parallel when there are many ``values``."""
    threads = min(number(), count, max(values // VALUES_PER_THREAD, 1))
    if threads <= 1:
        work(0, count)
        return
    _run_parts(list(_ranges(count, threads)), work)


def _run_parts(
    parts: Sequence[tuple[int, ...]], work: Callable[..., None], *, waits_for_all: bool = True
) -> None:
    """Run the first part in this thread and the others in the pool; within a part nothing is shared again.

    With ``waits_for_all=False`` a part that has not begun when this thread is done is not needed.
    """
    global _pool
    elsewhere = work
    if torch.is_inference_mode_enabled():  # the mode belongs to a thread
        elsewhere = torch.inference_mode()(work)
    before = torch.get_num_threads()
    if _pool is None:
        _pool = ThreadPoolExecutor(os.cpu_count() or 1, "imgops", initializer=_start)
    # Before ``submit``, which holds the pool's lock: what a finalizer calls meanwhile must not wait for it.
    _this.has_a_part = True
    futures: list[Any] = []
    mine = [parts[0]]
    try:
        for i, part in enumerate(parts[1:], 1):
            try:
                futures.append(_pool.submit(elsewhere, *part))
            except RuntimeError as error:
                if "shutdown" not in str(error):
                    raise
                mine += parts[i:]  # the interpreter ends, and starts no more threads
                break
        _set_number_of_aten(1)  # its other threads would spin on the cores of the pool
        for part in mine:
            work(*part)
    finally:
        _set_number_of_aten(before)
        del _this.has_a_part
        # Wait for all threads, because they write into memory that the caller owns; then raise the first
        # error.
        if not waits_for_all:
            futures = [future for future in futures if not future.cancel()]
        for future in futures:
            future.exception()
        for future in futures:
            future.result()


def share(count: int, values: int, work: Callable[[], None]) -> None:
    """Run ``work()`` on several threads if there are many ``values``; each takes parts until none is left.

    The caller takes parts, too, and waits only for threads that have begun.
    """
    threads = min(number(), count, max(values // VALUES_PER_THREAD, 1))
    if threads <= 1:
        work()
    else:
        _run_parts([()] * threads, work, waits_for_all=False)


def split_evenly(offsets: np.ndarray, work: Callable[[int, int], None]) -> None:
    """Run ``work(start, stop)`` over items that end at ``offsets[1:]``, in parts of about equal size."""
    count, values = len(offsets) - 1, int(offsets[-1])
    threads = min(number(), count, max(values // VALUES_PER_THREAD, 1))
    if threads <= 1:
        work(0, count)
        return
    shares = [values * i // threads for i in range(1, threads)]
    edges = [0, *np.searchsorted(offsets, shares).tolist(), count]
    _run_parts(list(pairwise(edges)), work)


class OneATenThread:
    """A context manager in which ATen uses no other threads than this one.

    They wait for each other at a barrier: for milliseconds where another program holds a core, however
    little work there is. ``number`` stays as it is.
    """

    def __enter__(self) -> None:
        self.before = 0
        if _openmp is None or hasattr(_this, "has_a_part") or hasattr(_this, "number"):
            return
        before = torch.get_num_threads()
        if before > 1:
            self.before = _this.number = before
            _openmp(1)

    def __exit__(self, *_: object) -> None:
        if self.before:
            del _this.number
            _openmp(self.before)


def prefers_one_aten_thread(image: Tensor) -> bool:
    """Return whether a transform should use one of ATen's threads: for a small image, or for a batch.

    ATen uses one anyway for less than 2^15 values. The operators divide a batch by its images themselves.
    """
    return image.numel() >= ATEN_DIVIDES and (image.ndim > 3 or image.numel() < 2 * VALUES_PER_THREAD)


def run_without_waiting(work: Callable[..., Any], image: Tensor, *rest: Any) -> Any:
    """Return ``work(image, *rest)``; ATen uses one thread in it for a small image or a batch on the CPU."""
    # ``is_eager`` comes first: a graph must not ask for a size.
    if is_eager() and image.is_cpu and prefers_one_aten_thread(image):
        with OneATenThread():
            return work(image, *rest)
    return work(image, *rest)


def run(kernel: Callable[..., None], trailing: Sequence[int], out: Tensor, args: Sequence[Any]) -> None:
    """Run ``kernel(out, *args)``: a batch by its images on several threads, if it is worth it.

    ATen's threads are left to a single large image, whose kernel may be ATen's and takes longer than a copy.
    """
    is_batch = trailing and args[0].ndim > trailing[0]
    if is_batch and not _divides(kernel, args) and _by_images(kernel, trailing, out, args):
        return
    if kernel in _movers or out.numel() + args[0].numel() < 4 * VALUES_PER_THREAD:
        with OneATenThread():
            kernel(out, *args)
    else:
        kernel(out, *args)


def _by_images(
    kernel: Callable[..., None], trailing: Sequence[int], out: Tensor, args: Sequence[Any]
) -> bool:
    """Run a kernel on a batch by threads; return False if one thread should run all of it.

    ``trailing`` are the numbers of trailing dimensions of the tensors in ``args``, which come first; a tensor
    may lack the leading dimensions, or have some of size 1.
    """
    image = args[0]
    least = MOVED_VALUES_PER_THREAD if kernel in _movers else VALUES_PER_THREAD
    worth = max(out.numel(), image.numel()) // least
    threads = min(number(), worth)
    batch = image.shape[: image.ndim - trailing[0]]
    count = batch.numel()
    if threads <= 1 or count <= 1 or out.numel() == 0:
        return False
    tensors = [_flat(x, batch, n) for x, n in zip(args[: len(trailing)], trailing, strict=True)]
    target, rest = out.detach().flatten(0, len(batch) - 1), args[len(trailing) :]

    def work(start: int, stop: int) -> None:
        own = [x if x is None or len(x) == 1 else x[start:stop] for x in tensors]
        kernel(target[start:stop], *own, *rest)

    threads = min(threads, count)
    parts = list(_ranges(count, min(_PARTS_PER_THREAD * threads, worth, count)))
    _in_turns(parts, threads, lambda part: work(*part))
    return True


def _flat(x: Tensor | None, batch: torch.Size, trailing: int) -> Tensor | None:
    """Return a tensor with one leading dimension: that of the images, or of size 1 if they share it."""
    if x is None:
        return None
    x, own = x.detach(), x.shape[x.ndim - trailing :]
    lead = x.shape[: x.ndim - trailing]
    return x.reshape(1, *own) if lead.numel() == 1 else x.expand(*batch, *own).flatten(0, len(batch) - 1)


def _ranges(count: int, parts: int) -> Iterator[tuple[int, int]]:
    return pairwise(count * i // parts for i in range(parts + 1))


def _start() -> None:
    """Start a thread of the pool, in which ATen uses one thread."""
    _this.has_a_part = True
    torch.get_num_threads()  # ATen sets the number when a thread first asks for it
    _set_number_of_aten(1)


def _set_number_of_aten(number: int) -> None:
    """Set how many threads ATen uses in this thread, if the OpenMP library has a function for it.

    ``torch.set_num_threads`` would also set the number for every thread that starts later.
    """
    if _openmp is not None:
        _openmp(number)


_openmp: Any = None
with suppress(OSError, AttributeError, TypeError):  # PyTorch may use a library other than GNU's
    _openmp = ctypes.CDLL(None).omp_set_num_threads


def each(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(i)`` for each of ``range(count)``; a thread takes the next index when it is done with one.

    ``work`` must not raise; it stores its errors.
    """
    _in_turns(range(count), min(count, number()), work)


def _in_turns(items: Iterable[Any], threads: int, work: Callable[[Any], None]) -> None:
    """Run ``work(item)`` for each item of a list or a range; a thread that is done takes the next item."""
    left = iter(items)  # taking the next item is atomic in the interpreter

    def take() -> None:
        for item in left:
            work(item)

    if threads <= 1:
        take()
    else:
        _run_parts([()] * threads, take, waits_for_all=False)


class _OpenCV:
    """A context manager that counts the threads inside of OpenCV: a fork waits until there are none.

    OpenCV's pool is stopped before a fork, while its threads still exist, because a child that inherits its
    locks would hang; it is never stopped while another thread uses it.
    """

    def __init__(self) -> None:
        self.idle = threading.Condition()
        self.running = 0

    def __enter__(self) -> None:
        threads = number()
        with self.idle:
            if not self.running and cv2.getNumThreads() != threads:
                cv2.setNumThreads(threads)
            self.running += 1

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        with self.idle:
            self.running -= 1
            if not self.running:
                self.idle.notify_all()
        if isinstance(error, cv2.error) and re.search("bad_alloc|Insufficient memory", str(error)):
            raise MemoryError(f"OpenCV: {error}") from error


#: The context for calls that use OpenCV's threads, ``with opencv:``; it gives OpenCV as many as torch has.
opencv = _OpenCV()

_before = 1


def _before_fork() -> None:
    opencv.idle.acquire()
    while opencv.running:
        opencv.idle.wait()
    global _before
    _before = cv2.getNumThreads()
    cv2.setNumThreads(1)


def _in_parent() -> None:
    cv2.setNumThreads(_before)
    opencv.idle.release()


def _in_child() -> None:
    global _pool
    _pool = None
    opencv.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
