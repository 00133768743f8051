"""DTensor: two real processes, each with its shard of a batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.tiers import nightly

ROOT = Path(__file__).parent.parent


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    return done.stdout


def test_two_processes(tmp_path: Path, whole: bool) -> None:
    """Forward, backward and compiled, nightly by inductor too, with boxes that change between calls."""
    out = run("tests/distributed_program.py", str(tmp_path / "store"), *(["inductor"] if whole else []))
    assert "process 0: done" in out and "process 1: done" in out


@nightly
def test_the_example_trains_as_one_process_does() -> None:
    out = run("-m", "torch.distributed.run", "--nproc-per-node", "2", "examples/train_sharded.py")
    assert "3 of 6 images in each process" in out
    sharded, alone = (line.split(":")[1].split() for line in out.splitlines() if line.startswith("loss"))
    assert float(sharded[-1]) < 0.9 * float(sharded[0])
    assert all(abs(float(a) - float(b)) < 1e-4 for a, b in zip(sharded, alone))


def test_dtensor_is_not_imported_for_those_who_do_not_use_it() -> None:
    code = (
        "import sys, torch, imgops; imgops.crop(torch.zeros(3, 4, 4), (0, 0, 2, 2));"
        "assert 'torch.distributed.tensor' not in sys.modules;"
        "from imgops._common import torch_private; assert torch_private._deferred"
    )
    run("-c", code)


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
    run("-c", code)
