"""The sharding check, on a mesh of one process, which is all that one process can test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from imgops.extend.testing._call import Call


def sharding(call: Call) -> None:
    """Check that a sharded batch stays sharded, with the values of an unsharded batch.

    If placements other than the first dimension matter, test with more processes.
    """
    if call.operator.sharding is None or not dist.is_available():
        return
    stacked = [torch.stack([t.detach()] * 2) for t in call.tensors]
    batch = dict(zip(call.names, stacked, strict=True))
    try:
        wanted = call.outputs(**batch)
    except (TypeError, ValueError):
        return  # the operator does not take batches
    with _mesh() as mesh:
        if mesh is None:
            return
        from torch.distributed.tensor import DTensor, Shard, distribute_tensor

        def split(t: Tensor) -> Tensor:
            return distribute_tensor(t, mesh, [Shard(0)])

        found = call.outputs(**{n: split(t) for n, t in batch.items()})
        for a, b in zip(found, wanted, strict=True):
            assert isinstance(a, DTensor), f"a {type(a).__name__} came out of a sharded call"
            assert a.placements == (Shard(0),), f"a batch that was sharded came out as {a.placements}"
            shapes = tuple(a.shape), tuple(b.shape)
            assert a.shape == b.shape, f"a sharded call and a whole one have the shapes {shapes}"
            torch.testing.assert_close(a.full_tensor(), b)


@contextmanager
def _mesh() -> Iterator[Any]:
    """Yield a mesh of this process, or None if it already belongs to a group of several."""
    own = not dist.is_initialized()
    if own:
        store = dist.HashStore()  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        from torch.distributed.device_mesh import init_device_mesh

        yield init_device_mesh("cpu", (1,)) if dist.get_world_size() == 1 else None
    finally:
        if own:
            dist.destroy_process_group()
