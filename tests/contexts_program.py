"""What test_contexts.py runs in a process of its own: exported programs, and calls of a sharded batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import imgops.transforms  # registers its operators
from imgops.extend.testing import Call
from tests.specs import OPERATORS, Sample
from tests.specs._maker import Maker


def programs(folder: Path) -> int:
    """Load the saved programs, and compare what they give with what is saved beside them."""
    found = sorted(folder.glob("*.pt2"))
    for path in found:
        module = torch.export.load(path).module()
        for inputs, wanted in torch.load(path.with_suffix(".pt")):
            given = module(*inputs)
            each = given if isinstance(given, (tuple, list)) else [given]
            for a, b in zip((x for x in each if isinstance(x, Tensor)), wanted, strict=True):
                assert torch.equal(a.nan_to_num(), b.nan_to_num()), path.stem
    return len(found)


def shards(folder: Path) -> int:
    """Compare the gradients of each operator for a sharded batch with those for the batch itself."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    count = 0
    for spec in OPERATORS.values():
        if spec.operator.sharding is None or spec.operator.no_gradient or spec.operator.mutates:
            continue
        for sample in spec.samples:
            first = sample is spec.samples[0] or sample.id == "each"
            if first and torch.float32 in sample.dtypes and sample.differentiable:
                count += _compare(sample, mesh)
    dist.destroy_process_group()
    return count


def _compare(sample: Sample, mesh: Any) -> bool:
    """Compare one sample; return whether it has a gradient."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    call = Call(*sample.call(Maker(torch.float32, "planar", (2,), grad=True)))

    def leaf(value: Any, split: bool) -> Any:
        if not isinstance(value, Tensor):
            return value
        made = value.detach().clone()
        if split:
            of_batch = value.ndim > 0 and value.shape[0] == 2 and value.shape != (2,)
            made = distribute_tensor(made, mesh, [Shard(0) if of_batch else Replicate()])
        return made.requires_grad_(value.requires_grad)

    whole, sharded = ([leaf(a, split) for a in call.op_args] for split in (False, True))
    out, found = (call.operator.overload(*args) for args in (whole, sharded))
    if not out.requires_grad:
        return False
    weights = torch.rand(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    (out * weights).sum().backward()
    (found * distribute_tensor(weights, mesh, [Shard(0)])).sum().backward()
    for a, b in zip(whole, sharded, strict=True):
        if isinstance(a, Tensor) and a.grad is not None:
            torch.testing.assert_close(b.grad.full_tensor(), a.grad, msg=lambda text: f"{sample}: {text}")
    return True


if __name__ == "__main__":
    assert imgops.transforms
    print({"programs": programs, "shards": shards}[sys.argv[1]](Path(sys.argv[2])))
