"""Threads and processes: the number of threads is PyTorch's; calls are safe after a fork and from many threads."""

from __future__ import annotations

import multiprocessing
import threading

import cv2
import numpy as np
import pytest
import torch
from checks import bits_equal

import imgops
from imgops.kernels.cpu import _threads

BIG = (torch.arange(3 * 900 * 1100) * 2654435761 >> 13).to(torch.uint8).reshape(3, 900, 1100)


def work() -> list[torch.Tensor]:
    return [
        imgops.resize(BIG, (700, 800), "bicubic"),
        imgops.resize(BIG, (700, 800), antialias=False),
        imgops.pad(BIG, 5, "reflect"),
        imgops.crop(BIG, (3, 3, 900, 800)),
    ]


def child(queue: multiprocessing.Queue) -> None:
    torch.set_num_threads(1)
    queue.put([int(t.long().sum()) for t in work()])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_process(method: str) -> None:
    """A child does not hang and computes the same pixels, although both thread pools ran in the parent."""
    wanted = work()
    cv2.resize(np.zeros((2000, 2000, 3), np.uint8), (1500, 1500))  # this starts OpenCV's pool
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    sums = queue.get(timeout=120)
    process.join(60)
    assert process.exitcode == 0
    assert sums == [int(t.long().sum()) for t in wanted]


def test_forks_while_other_threads_run() -> None:
    """OpenCV's pool holds a lock while it changes its size; a child that inherits the lock would never return."""
    wanted, stop = [int(t.long().sum()) for t in work()], threading.Event()

    def run(threads: int) -> None:
        while not stop.is_set():
            torch.set_num_threads(threads)
            work()

    before = torch.get_num_threads()
    busy = [threading.Thread(target=run, args=(count,)) for count in (1, 2, 2)]
    context = multiprocessing.get_context("fork")
    try:
        for thread in busy:
            thread.start()
        for _ in range(8):
            queue = context.Queue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            assert queue.get(timeout=60) == wanted
            process.join(60)
            assert process.exitcode == 0
    finally:
        stop.set()
        for thread in busy:
            thread.join()
        torch.set_num_threads(before)


def test_opencv_follows_torch() -> None:
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            imgops.resize(BIG, (700, 800), antialias=False)
            assert cv2.getNumThreads() == threads
    finally:
        torch.set_num_threads(before)


def test_many_threads_at_once() -> None:
    wanted, failures = work(), []

    def run() -> None:
        for _ in range(3):
            if not all(map(bits_equal, work(), wanted)):
                failures.append(1)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_split_covers_everything_and_reports_errors() -> None:
    seen: list[int] = []
    _threads.split(7, 1 << 30, lambda a, b: seen.extend(range(a, b)))
    assert sorted(seen) == list(range(7))

    def fail(a: int, b: int) -> None:
        if b == 7:
            raise RuntimeError("in a thread")

    with pytest.raises(RuntimeError, match="in a thread"):
        _threads.split(7, 1 << 30, fail)


def test_the_gil_is_free_while_a_kernel_runs() -> None:
    """Two threads resize at once while a third counts."""
    image, ticks, stop = torch.randint(0, 256, (3, 3000, 3000), dtype=torch.uint8), [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            ticks[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = ticks[0]
    imgops.resize(image, (1500, 1500), "lanczos")
    during = ticks[0] - before
    stop.set()
    counter.join()
    assert during > 0
