"""Threads: as many as PyTorch uses; none of them is kept across a fork."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import cv2
import torch

#: Below this many values a second thread costs more than it saves.
SHARED = 1 << 18

_pool: ThreadPoolExecutor | None = None


def split(count: int, values: int, work: Callable[[int, int], None]) -> None:
    """Run ``work(start, stop)`` over ``range(count)``, in parallel when there are many ``values``."""
    threads = min(torch.get_num_threads(), count, max(values // SHARED, 1))
    if threads <= 1:
        work(0, count)
        return
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="imgops")
    edges = [count * i // threads for i in range(threads + 1)]
    first, *rest = pairwise(edges)
    futures = [_pool.submit(work, *part) for part in rest]
    try:
        work(*first)
    finally:
        for future in futures:
            future.exception()  # wait for all threads: they write into memory that the caller owns
    for future in futures:
        future.result()


def each(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(i)`` for each of ``range(count)``; a thread takes the next one when it is done with one.

    ``work`` must not raise: it keeps its own errors.
    """
    numbers = iter(range(count))  # to take the next one is one step of the interpreter

    def take(start: int, stop: int) -> None:
        for i in numbers:
            work(i)

    split(min(count, torch.get_num_threads()), count * SHARED, take)


_NO_MEMORY = re.compile("bad_alloc|Insufficient memory")


class _OpenCV:
    """A context manager that counts the threads inside of OpenCV: a fork waits until there are none.

    OpenCV's pool is ended before a fork, while its threads still exist, because a child that inherits its
    locks would hang; but never while another thread works with the pool.
    """

    def __init__(self) -> None:
        self.idle = threading.Condition()
        self.running = 0

    def __enter__(self) -> None:
        threads = torch.get_num_threads()
        with self.idle:
            if not self.running and cv2.getNumThreads() != threads:
                cv2.setNumThreads(threads)
            self.running += 1

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        with self.idle:
            self.running -= 1
            if not self.running:
                self.idle.notify_all()
        if isinstance(error, cv2.error) and _NO_MEMORY.search(str(error)):
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
