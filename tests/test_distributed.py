"""DTensor: two real processes, each with its shard of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from imgops.extend.testing import _sharded
from tests.checks import run_python
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import Maker
from tests.tiers import nightly, nightly_unless

SHARDED = [
    s for s in SAMPLES if OPERATORS[s.op].operator.sharding and not OPERATORS[s.op].operator.contract.mutates
]


@pytest.mark.parametrize(
    "sample", nightly_unless(lambda s: s is OPERATORS[s.op].samples[0], SHARDED), ids=str
)
def test_a_batch_stays_sharded(sample: Sample) -> None:
    dtype = next((d for d in sample.dtypes if d != torch.uint16), None)
    if dtype is None:
        pytest.skip("gloo sends no uint16")
    _sharded.sharding(sample.checked(Maker(dtype)))


@nightly
def test_two_processes(tmp_path: Path) -> None:
    """Forward, backward, compiled and by inductor, with boxes that change between calls."""
    out = run_python("-m", "tests.distributed_program", str(tmp_path / "store"))
    assert "process 0: done" in out and "process 1: done" in out


@nightly
def test_the_example_trains_as_one_process_does() -> None:
    out = run_python("-m", "torch.distributed.run", "--nproc-per-node", "2", "examples/train_sharded.py")
    assert "3 of 6 images in each process" in out
    sharded, alone = (line.split(":")[1].split() for line in out.splitlines() if line.startswith("loss"))
    assert float(sharded[-1]) < 0.9 * float(sharded[0])
    assert all(abs(float(a) - float(b)) < 1e-4 for a, b in zip(sharded, alone))


@nightly
def test_dtensor_is_not_imported_for_those_who_do_not_use_it() -> None:
    code = (
        "import sys, torch, imgops; imgops.crop(torch.zeros(3, 4, 4), (0, 0, 2, 2));"
        "assert 'torch.distributed.tensor' not in sys.modules;"
        "from imgops._common import torch_private; assert torch_private._deferred"
    )
    run_python("-c", code)


@nightly
def test_the_cache_key_has_every_argument() -> None:
    """The stock key of register_sharding begins at the first int, so it would ignore a float box before it."""
    code = """
import torch, imgops
from torch.distributed.tensor import DTensor
torch.ops.imgops.crop(torch.zeros(3, 4, 4, requires_grad=True), 0, 0, 2, 2)
info = DTensor._op_dispatcher.sharding_propagator.op_to_schema_info
for name, row in imgops._operator.record.operators().items():
    assert info[row.overload].static_argnum == row.tensors, name
"""
    run_python("-c", code)
