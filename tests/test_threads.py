"""Threads and processes: the number of threads is PyTorch's; calls are safe after a fork and from many threads."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator

import cv2
import numpy as np
import pytest
import torch
from checks import bits_equal

import imgops
from imgops._operator import call
from imgops.kernels.cpu import _threads
from tests.specs import OPERATORS
from tests.specs._draw import Draw
from tests.test_random_calls import arguments_of
from tests.tiers import nightly

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


@nightly
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


@nightly
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


@nightly
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


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return ``torch.set_num_threads``, and let the smallest call be shared among threads."""
    before = torch.get_num_threads()
    monkeypatch.setattr(_threads, "VALUES_PER_THREAD", 1)
    monkeypatch.setattr(call, "ATEN_DIVIDES", 1)
    monkeypatch.setattr(_threads, "MOVED_VALUES_PER_THREAD", 1)
    yield torch.set_num_threads
    torch.set_num_threads(before)


#: MKL adds in an order that depends on the number of threads.
BY_MKL = ("pyr_down_adjoint", "pyr_up_adjoint")
SHARED = [
    name
    for name, spec in OPERATORS.items()
    if not spec.operator.random and not spec.operator.contract.mutates and name not in BY_MKL
]


@pytest.mark.parametrize("name", SHARED)
def test_bits_do_not_depend_on_the_number_of_threads(
    name: str, threads: Callable[[int], None], whole: bool
) -> None:
    """A batch is shared by images, a single image by planes or rows; neither changes a bit."""
    spec = OPERATORS[name]
    call = getattr(torch.ops.imgops, name)
    for seed in range(25 if whole else 2):
        found = []
        for number in (1, 2, 5) if whole else (1, 3):
            threads(number)
            try:
                args = arguments_of(spec, Draw(seed))
                found.append(call(*args))
            except ValueError:  # a sample that does not fit another size
                break
        for other in found[1:]:
            assert bits_equal(found[0], other), (seed, tuple(other.shape), args)


def test_a_batch_is_shared_by_images(threads: Callable[[int], None]) -> None:
    seen: list[tuple[str, int, list[int]]] = []

    def kernel(out: torch.Tensor, image: torch.Tensor, amount: torch.Tensor) -> None:
        seen.append((threading.current_thread().name, len(image), amount.shape[:1].numel()))
        assert _threads.number() == (1 if out.ndim == 4 else 3)
        assert not image.requires_grad
        out.copy_(image * amount[..., None, None, None])

    def fake(image: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(image)

    @imgops.extend.operator(
        "test_threads::scale", kernel=kernel, fake=fake, vmap=imgops.extend.vmap.leading(3, 0)
    )
    def scale(image: torch.Tensor, amount: torch.Tensor) -> torch.Tensor: ...

    threads(3)
    image = torch.rand(2, 4, 3, 5, 6)
    for amount in (torch.tensor(2.0), torch.arange(4.0), torch.arange(8.0).reshape(2, 4), torch.ones(2, 1)):
        seen.clear()
        assert bits_equal(scale(image, amount), image * amount[..., None, None, None])
        assert [part[1] for part in seen] == [1] * 8  # parts that a thread takes when it is done with one
    with torch.inference_mode():
        assert bits_equal(scale(image, torch.tensor(2.0)), image * 2)
    seen.clear()
    scale(image[0, 0], torch.tensor(2.0))  # not a batch
    scale(image[:0], torch.tensor(2.0))
    assert [part[0] for part in seen] == [threading.current_thread().name] * 2
    assert _threads.number() == 3


def test_the_pool_leaves_the_number_of_threads_alone(threads: Callable[[int], None]) -> None:
    """ATen uses one thread in a part of a call, and as many as before in all other threads, also in new ones."""
    threads(3)
    _threads._pool = None
    inside: list[int] = []
    _threads.split(3, 3, lambda a, b: inside.append(torch.get_num_threads()))
    assert inside == [1, 1, 1]
    _threads._pool = None
    found: list[int] = []

    def run() -> None:  # while the pool starts
        _threads.split(3, 3, lambda a, b: None)
        found.append(torch.get_num_threads())

    others = [threading.Thread(target=run) for _ in range(6)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert found == [3] * 6
    assert torch.get_num_threads() == 3


@nightly
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


def test_sides_of_one_pixel() -> None:
    """Strides of such sides may be any, and a part of a batch may be one image."""
    x = torch.randint(0, 256, (1, 3, 4, 4), dtype=torch.uint8)
    for part in (
        x[:, :, :1, :1],
        x[:, :, :1],
        x[..., :1],
        x[:, :1, :1, :1],
        x[:, :, 1:2, 2:3].expand(6, 3, 1, 1),
    ):
        assert bits_equal(imgops.resize(part, (8, 9)), imgops.resize(part.clone(), (8, 9)))


def test_aten_uses_one_thread_for_small_images() -> None:
    """Its threads wait for each other at a barrier, for milliseconds where other programs hold the cores."""
    seen: list[tuple[int, int]] = []

    def kernel(out: torch.Tensor, image: torch.Tensor) -> None:
        seen.append((torch.get_num_threads(), _threads.number()))
        if out.numel() == 7:
            raise ValueError("no kernel")

    @imgops.extend.operator("test_threads::count", kernel=kernel, fake=lambda image: torch.empty_like(image))
    def count(image: torch.Tensor) -> torch.Tensor: ...

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        for size, wanted in ((64, 3), (200, 1), (1200, 3)):
            count(torch.zeros(1, size, size))
            assert seen[-1] == (wanted, 3)
        with pytest.raises(ValueError, match="no kernel"), _threads.OneATenThread():
            count(torch.zeros(7))
        assert torch.get_num_threads() == 3 and _threads.number() == 3
        with _threads.OneATenThread(), _threads.OneATenThread():
            assert (torch.get_num_threads(), _threads.number()) == (1, 3)
        assert (torch.get_num_threads(), _threads.number()) == (3, 3)
        image = torch.randint(0, 256, (3, 200, 200), dtype=torch.uint8)

        class Watched(imgops.transforms.RandomInvert):
            def _image(self, *args: object) -> torch.Tensor:
                seen.append((torch.get_num_threads(), _threads.number()))
                return super()._image(*args)  # type: ignore[arg-type]

        Watched(p=1.0)(image)
        assert seen[-1] == (1, 3)
        Watched(p=1.0)(image.expand(20, -1, -1, -1))
        assert seen[-1] == (1, 3)
        Watched(p=1.0)(
            torch.zeros(3, 600, 600, dtype=torch.uint8)
        )  # a large image may be worth ATen's threads
        assert seen[-1] == (3, 3)
    finally:
        torch.set_num_threads(before)
