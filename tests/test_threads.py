"""Threads and processes: the number of threads is PyTorch's; calls are safe after a fork and from many threads."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

import imgops
from imgops._operator import call
from imgops.kernels.cpu import _threads, native
from tests.checks import bits_equal
from tests.native_program import WITH_THREADS, WITHOUT_SIMD
from tests.specs import OPERATORS
from tests.specs._draw import Draw
from tests.specs._maker import Maker
from tests.test_random_calls import DRAWN, arguments_of
from tests.tiers import nightly

BIG = (torch.arange(3 * 900 * 1100) * 2654435761 >> 13).to(torch.uint8).reshape(3, 900, 1100)


def work() -> list[int]:
    """Return checksums of calls that divide their work among the threads of imgops, OpenCV and ATen."""
    calls = (
        imgops.resize(BIG, (700, 800), "bicubic"),
        imgops.resize(BIG, (700, 800), antialias=False),
        imgops.pad(BIG, 5, "reflect"),
        imgops.crop(BIG, (3, 3, 900, 800)),
    )
    return [int(t.long().sum()) for t in calls]


def child(queue: multiprocessing.Queue) -> None:
    torch.set_num_threads(1)
    queue.put(work())


def of_child(method: str) -> list[int]:
    """Return what a child process computes."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    found = queue.get(timeout=120)
    process.join(60)
    assert process.exitcode == 0
    return found


@contextmanager
def at_once(*functions: Callable[[], Any]) -> Iterator[None]:
    """Run functions in threads of their own while the block runs, and until they end."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@nightly
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_process(method: str) -> None:
    """A child does not hang and computes the same pixels, although both thread pools ran in the parent."""
    wanted = work()
    cv2.resize(np.zeros((2000, 2000, 3), np.uint8), (1500, 1500))  # this starts OpenCV's pool
    assert of_child(method) == wanted


@nightly
def test_forks_while_other_threads_run(set_threads: Callable[[int], None]) -> None:
    """OpenCV's pool holds a lock while it changes its size; a child that inherits the lock would never return."""
    wanted, stop = work(), threading.Event()

    def run(threads: int) -> None:
        while not stop.is_set():
            set_threads(threads)
            work()

    with at_once(*(partial(run, count) for count in (1, 2, 2))):
        try:
            assert [of_child("fork") for _ in range(8)] == [wanted] * 8
        finally:
            stop.set()


def test_opencv_follows_torch(set_threads: Callable[[int], None]) -> None:
    for threads in (1, 2):
        set_threads(threads)
        imgops.resize(BIG, (700, 800), antialias=False)
        assert cv2.getNumThreads() == threads


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
def threads(monkeypatch: pytest.MonkeyPatch, set_threads: Callable[[int], None]) -> Callable[[int], None]:
    """Return ``torch.set_num_threads``, and let the smallest call be shared among threads."""
    for name in ("VALUES_PER_THREAD", "VALUES_PER_NATIVE_THREAD"):
        monkeypatch.setattr(_threads, name, 1)
    monkeypatch.setattr(call, "ATEN_DIVIDES", 1)
    monkeypatch.setattr(_threads, "MOVED_VALUES_PER_THREAD", 1)
    return set_threads


#: PyTorch's products of matrices (BLAS) add in an order that depends on the number of threads and on the place of a value, and
#: ``pow`` rounds by the place (whole vectors, and a rest).
ROUNDED_BY_PLACE = ("pyr_down_adjoint", "pyr_up_adjoint", "adjust_gamma")
SHARED = [n for n, s in OPERATORS.items() if not s.operator.random and not s.operator.contract.mutates]


def _at(offset: int, image: Tensor) -> Tensor:
    """Return a copy that begins this many values after a multiple of 64 bytes."""
    memory = torch.empty(image.numel() + offset, dtype=image.dtype)
    assert memory.data_ptr() % 64 == 0
    return memory[offset:].view(image.shape).copy_(image)


def _repeated(argument: Any) -> Any:
    """Return a batch of five of an argument that is an image, a mask, noise or a map."""
    if not isinstance(argument, Tensor) or argument.ndim < 3:
        return argument
    return argument.expand(5, *argument.shape).contiguous()


@pytest.mark.parametrize("name", SHARED)
def test_bits_depend_on_no_thread_and_no_place(
    name: str, threads: Callable[[int], None], whole: bool
) -> None:
    """A batch is shared by images, a single image by planes or rows; neither changes a bit.

    An image has the same bits alone, anywhere in a batch, and wherever its memory begins.
    """
    spec, compared = OPERATORS[name], 0
    call = getattr(torch.ops.imgops, name)
    for seed in range(40 if whole else 3):
        found = []
        try:
            image, *others = arguments_of(spec, Draw(seed))
            for number in (1, 2, 5) if whole else (1, 3):
                threads(number)
                found.append(call(image, *others))
            if name in DRAWN and image.is_contiguous():
                found += [call(_at(3, image), *others), *call(*(_repeated(a) for a in (image, *others)))]
        except ValueError:  # a sample that does not fit another size
            assert spec.draw is None
            continue
        for other in found[1:]:
            if name in ROUNDED_BY_PLACE:
                torch.testing.assert_close(other, found[0])
            else:
                assert bits_equal(other, found[0]), (seed, image.dtype, image.shape, others)
        compared += 1
    assert not whole or compared


#: Operators that run in one thread: those of one file, and a sum over the labels of a batch.
ALONE = ("encode_image", "decode_image", "decode_region", "decode_frames", "component_statistics")


@pytest.fixture
def shared(threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the calls that are shared among threads, by the pool or in the native module."""
    found: list[str] = []
    module = native.module

    class Native:
        def __getattr__(self, name: str) -> Any:
            function = getattr(module, name)

            def watched(*args: Any) -> Any:
                place = -1 if name in WITHOUT_SIMD else -2
                found.extend([name] * (name in WITH_THREADS and args[place] > 1))
                return function(*args)

            return watched if callable(function) else function

    run_parts = _threads._run_parts
    watched = lambda *args, **options: (found.append("pool"), run_parts(*args, **options))[1]
    threads(3)
    monkeypatch.setattr(_threads, "_run_parts", watched)
    if native.is_built():
        monkeypatch.setattr(native, "module", Native())
    return found


@pytest.mark.parametrize("name", [name for name in SHARED if name not in ALONE])
def test_a_batch_is_shared_in_each_dtype_and_layout(name: str, shared: list[str], whole: bool) -> None:
    """A kernel that does not divide a batch itself, because its native pass does not take it, is divided by images."""
    spec = OPERATORS[name]
    nearest = [sample for sample in spec.samples if "nearest" in sample.id]
    for sample in spec.samples if whole else (spec.samples[0], *nearest[:1]):
        for dtype, layout in product(sample.dtypes, ("planar", "interleaved", "sliced")):
            made = sample.checked(Maker(dtype, layout, (4,)))
            shared.clear()
            out = getattr(torch.ops.imgops, name)(*made.op_args, **made.op_keywords)
            assert shared or out.numel() == 0, (sample, dtype, layout)


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

    with at_once(*[run] * 6):
        pass
    assert found == [3] * 6
    assert torch.get_num_threads() == 3


@nightly
def test_the_gil_is_free_while_a_kernel_runs() -> None:
    """Another thread counts while one resizes."""
    image, ticks, stop = torch.randint(0, 256, (3, 3000, 3000), dtype=torch.uint8), [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            ticks[0] += 1

    with at_once(count):
        before = ticks[0]
        imgops.resize(image, (1500, 1500), "lanczos")
        during = ticks[0] - before
        stop.set()
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


def test_aten_uses_one_thread_for_small_images(set_threads: Callable[[int], None]) -> None:
    """Its threads wait for each other at a barrier, for milliseconds where other programs hold the cores."""
    seen: list[tuple[int, int]] = []

    def numbers() -> tuple[int, int]:
        return torch.get_num_threads(), _threads.number()

    def kernel(out: torch.Tensor, image: torch.Tensor) -> None:
        seen.append(numbers())
        if out.numel() == 7:
            raise ValueError("no kernel")

    @imgops.extend.operator("test_threads::count", kernel=kernel, fake=lambda image: torch.empty_like(image))
    def count(image: torch.Tensor) -> torch.Tensor: ...

    class Watched(imgops.transforms.RandomInvert):
        def _image(self, *args: object) -> torch.Tensor:
            seen.append(numbers())
            return super()._image(*args)  # type: ignore[arg-type]

    set_threads(3)
    with pytest.raises(ValueError, match="no kernel"), _threads.OneATenThread():
        count(torch.zeros(7))
    assert numbers() == (3, 3)
    with _threads.OneATenThread(), _threads.OneATenThread():
        assert numbers() == (1, 3)
    small, large = (torch.zeros(3, side, side, dtype=torch.uint8) for side in (200, 600))
    for function, image, wanted in (
        (count, torch.zeros(1, 64, 64), 3),
        (count, torch.zeros(1, 200, 200), 1),
        (count, torch.zeros(1, 1200, 1200), 3),
        (Watched(p=1.0), small, 1),
        (Watched(p=1.0), small.expand(20, -1, -1, -1), 1),
        (Watched(p=1.0), large, 3),  # it may be worth ATen's threads
    ):
        function(image)
        assert seen[-1] == (wanted, 3) and numbers() == (3, 3)
