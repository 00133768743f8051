"""The memory of large outputs: it is used again once nothing reaches it, and never before."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import runpy
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import imgops
from imgops._common import memory
from tests.checks import run_python
from tests.test_threads import at_once
from tests.tiers import nightly

pytestmark = pytest.mark.needs("memory")
SIZE = (2, 3, 512, 512)


def output(value: int = 7, size: tuple[int, ...] = SIZE) -> Tensor:
    """Return an output whose memory is of the pool: that of a call which is repeated."""
    image = torch.full(size, value, dtype=torch.uint8)
    return imgops.solarize(image, 0)


def in_use() -> int:
    return memory.statistics()["in use"]


@pytest.fixture(autouse=True)
def _known_calls() -> Iterator[None]:
    output()
    gc.collect()
    yield
    memory._memory.set_limit(1 << 30)


def test_memory_is_used_again() -> None:
    before = in_use()
    first = output()
    assert in_use() - before >= first.nbytes
    address = first.data_ptr()
    del first
    assert output().data_ptr() == address


@nightly
@pytest.mark.parametrize(
    "keep",
    [
        lambda x: x[0, 0, 5],
        lambda x: x.numpy(),
        lambda x: x.untyped_storage(),
        lambda x: np.asarray(x)[0, 0],
        lambda x: memoryview(x.numpy()),
        lambda x: x.view(torch.int32),
        lambda x: x.detach(),
        lambda x: torch.nn.Parameter(x, requires_grad=False),
        lambda x: torch.utils.dlpack.to_dlpack(x),
    ],
)
def test_memory_that_a_view_reaches_is_not_used(keep: Any) -> None:
    first = output(1)
    address, kept = first.data_ptr(), keep(first)
    del first
    others = [output(value) for value in range(2, 6)]
    assert address not in {x.data_ptr() for x in others}
    del kept
    gc.collect()
    assert output().data_ptr() == address


def test_outputs_are_ordinary_tensors() -> None:
    x = output()
    assert not x._is_view() and x.is_contiguous() and x.device.type == "cpu"
    assert torch.equal(copy.deepcopy(x), x) and torch.equal(pickle.loads(pickle.dumps(x)), x)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert torch.equal(torch.load(file), x)
    wanted = x.clone()
    x.share_memory_()
    assert x.is_shared() and torch.equal(x, wanted)
    x += 1
    assert torch.equal(x, wanted + 1)
    with pytest.raises(RuntimeError, match="not resizable"):
        output().resize_(3, 1024, 1024)
    assert output().resize_(6).shape == (6,)


def test_gradients_and_inference_mode() -> None:
    image = torch.rand(2, 3, 512, 512, requires_grad=True)
    for _ in range(3):
        out = imgops.adjust_brightness(image, 0.5)
        (grad,) = torch.autograd.grad(out.mul_(2).sum(), image)
        assert torch.equal(grad, torch.ones_like(image)) and not out._is_view() | (out.grad_fn is None)
    with torch.inference_mode():
        for _ in range(3):
            out = imgops.adjust_brightness(image, 0.5)
            assert out.is_inference() and torch.equal(out, image.detach() * 0.5)


def test_interleaved_images_and_every_dtype() -> None:
    for dtype in (torch.uint8, torch.float32, torch.bfloat16, torch.float64):
        image = torch.arange(3 * 700 * 701).remainder(7).reshape(1, 3, 700, 701).to(dtype)
        for format in (torch.contiguous_format, torch.channels_last):
            given = image.contiguous(memory_format=format)
            wanted = given.flip(-1)
            for _ in range(3):
                out = imgops.crop(imgops.flip(given), (0, 0, 701, 700))
                assert torch.equal(out, wanted) and out.is_contiguous(memory_format=format)


def test_the_limit() -> None:
    kept = [output() for _ in range(8)]
    nbytes = memory.statistics()["in use"]
    assert nbytes >= 8 * kept[0].nbytes
    kept.clear()
    assert memory.statistics()["kept"] >= nbytes // 2
    memory._memory.set_limit(4 << 20)
    assert memory.statistics()["kept"] <= 4 << 20
    memory._memory.set_limit(0)
    output()
    assert memory.statistics()["kept"] == 0


@nightly
def test_memory_that_is_no_longer_needed_is_freed() -> None:
    """The pool keeps what was in use at once lately, not what was in use once."""
    large = [output(size=(8, 3, 512, 512)) for _ in range(4)]
    del large
    for _ in range(600):
        output()
    assert memory.statistics()["kept"] <= 32 << 20


def test_outputs_of_a_few_sizes_in_turn_find_a_block() -> None:
    sizes = [(1, 3, 400 + 16 * i, 1024) for i in range(8)]
    for _ in range(3):
        addresses = {output(size=size).data_ptr() for size in sizes}
        found = memory.statistics()["kept"]
    assert len(addresses) <= 8 and memory.statistics()["kept"] == found <= 32 << 20


def test_outputs_that_are_not_dense() -> None:
    for fake in (
        lambda x: x.new_empty_strided(x.shape, (3 * 512 * 544, 512 * 544, 544, 1)),
        lambda x: x.new_empty((*x.shape[:-1], 2 * x.shape[-1]))[..., ::2],
        lambda x: x.new_empty(x.shape).transpose(0, 1).contiguous().transpose(0, 1),
    ):
        memory.empty_strided(SIZE, fake(torch.zeros(SIZE)).stride(), dtype=torch.float32).fill_(1)


def test_release_returns_memory() -> None:
    output()
    memory.release()
    assert memory.statistics()["kept"] == 0 and torch.equal(output(), output())


def test_determinism_fills_outputs() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        x = memory.empty_strided((1 << 20,), (1,), dtype=torch.float32)
    finally:
        torch.use_deterministic_algorithms(before)
    assert x.isnan().all()


@nightly
def test_threads_share_the_pool() -> None:
    """Tensors are made and freed in different threads, and each keeps its values as long as it lives."""
    wrong: list[Any] = []
    handed: list[Tensor] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        mine: list[tuple[int, Tensor]] = []
        for _ in range(60):
            value, rows = (int(torch.randint(n, (), generator=generator)) for n in (200, 4))
            mine.append((255 - value, output(value, (1, 3, 400 + 8 * rows, 1024))))
            handed.append(mine[-1][1])
            if len(mine) > 3:
                wanted, x = mine.pop(0)
                wrong.extend([wanted] if not bool((x == wanted).all()) else [])
            if len(handed) > 6:
                handed.pop(0)

    with at_once(*(partial(work, seed) for seed in range(6))):
        pass
    assert not wrong


#: The garbage collector may run while a call hands its parts to threads; threads end before the handlers; outputs stay alive.
END = """
import atexit, gc, torch, imgops
torch.set_num_threads(2)
image = torch.zeros(4, 3, 600, 600, dtype=torch.uint8)
kept = [imgops.solarize(image, 0) for _ in range(2)]
torch.kept = kept.pop()
class Last:
    def __del__(self):
        imgops.solarize(image, 0)
class Cycle:
    def __init__(self):
        self.me, self.last = self, Last()
gc.set_threshold(100)
for _ in range(60):
    Cycle()
    assert imgops.resize(image, (300, 300)).shape[-1] == 300
gc.collect()  # PyTorch aborts if finalizers use tensors after the interpreter's end has begun
atexit.register(lambda: print(int(imgops.resize(image, (300, 300)).sum())))
"""
#: A child process has a pool of its own.
FORK = """
import os, torch, imgops
torch.set_num_threads(1)  # ATen's own threads do not survive a fork
image = torch.full((2, 3, 512, 512), 3, dtype=torch.uint8)
kept = [imgops.solarize(image, 0) for _ in range(3)]
free = imgops.solarize(image, 0); del free
child = os.fork()
for value in range(20):
    other = imgops.solarize(torch.full_like(image, value), 0)
    assert (other == 255 - value).all()
assert all((x == 252).all() for x in kept)
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(0)
"""


@nightly
@pytest.mark.parametrize("program", [END, FORK], ids=["end", "fork"])
def test_programs(program: str) -> None:
    assert run_python("-c", program).split() == ["0"]


@nightly
@pytest.mark.parametrize("value", ["12345", "", "0", str(1 << 64)])
def test_a_variable_of_the_environment_sets_the_limit(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMGOPS_MEMORY_POOL", value)
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: None)
    made = runpy.run_path(memory.__file__)
    assert made["limit"] == (min(int(value), sys.maxsize) if value else None)
    assert (made["_memory"] is None) == (value == "0")
    assert value == "0" or memory.statistics()["limit"] == (made["limit"] or 1 << 30)
