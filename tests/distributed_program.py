"""The checks that two processes run together; started by test_distributed.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

import imgops
from imgops._operator.record import Contract
from tests.specs import OPERATORS, Sample
from tests.specs._maker import Maker


def compare(sample: Sample, mesh: Any) -> bool:
    """Compare the result and the gradients of a sharded batch with those of the whole; return whether there are any."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    dtype = torch.float32 if torch.float32 in sample.dtypes and sample.differentiable else sample.dtypes[0]
    call, alone = (sample.checked(Maker(dtype, batch=batch, grad=True)) for batch in ((4,), ()))
    whole = {name: t.detach().requires_grad_(t.requires_grad) for name, t in zip(call.names, call.tensors)}
    parts = {
        name: distribute_tensor(t.detach(), mesh, [Shard(0) if t.ndim > one.ndim else Replicate()])
        for (name, t), one in zip(whole.items(), alone.tensors, strict=True)
    }
    for name, t in parts.items():
        t.requires_grad_(whole[name].requires_grad)

    def check(found: Any, wanted: Tensor) -> None:
        own = wanted.chunk(mesh.size())[mesh.get_rank()]  # gloo does not gather all dtypes
        torch.testing.assert_close(
            found.to_local(), own, rtol=1e-6, atol=1e-6, equal_nan=True, msg=str(sample)
        )

    out, found = call.outputs(**whole), call.outputs(**parts)
    for a, b in zip(found, out, strict=True):
        assert a.placements == (Shard(0),), f"{sample}: {a.placements}"
        check(a.detach(), b.detach())
    if not out[0].requires_grad:
        return False
    weights = torch.rand(out[0].shape, dtype=out[0].dtype, generator=torch.Generator().manual_seed(1))
    (out[0] * weights).sum().backward()
    (found[0] * distribute_tensor(weights, mesh, [Shard(0)])).sum().backward()
    for name, t in whole.items():
        if t.grad is not None:
            grad = parts[name].grad.full_tensor()
            torch.testing.assert_close(
                grad, t.grad, rtol=1e-5, atol=1e-5, msg=lambda text: f"{sample}, {name}: {text}"
            )
    return True


def main(rank: int, world: int, path: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (world,))
    generator = torch.Generator().manual_seed(0)
    x, s, m = (torch.rand(4, c, h, w, generator=generator) for c, h, w in ((3, 8, 9), (3, 3, 4), (1, 3, 4)))
    BATCH = Shard(0)

    def split(t: Tensor, placement: Any = BATCH) -> DTensor:
        return distribute_tensor(t.clone(), mesh, [placement])

    def same(found: Any, wanted: Tensor, placement: Any = BATCH) -> None:
        assert isinstance(found, DTensor), type(found)
        assert found.placements == (placement,), f"{found.placements} for {placement}"
        assert found.shape == wanted.shape, f"{tuple(found.shape)} for {tuple(wanted.shape)}"
        torch.testing.assert_close(found.full_tensor(), wanted, rtol=1e-6, atol=1e-6)

    X, S, M = split(x), split(s), split(m)

    # The batch stays sharded in every operator with a rule; a backward that creates tensors creates those of all ranks.
    compared = 0
    for spec in OPERATORS.values():
        if spec.operator.sharding is not None and spec.operator.contract is Contract.FUNCTIONAL:
            for sample in (s for s in spec.samples if s is spec.samples[0] or s.id == "each"):
                compared += compare(sample, mesh)
    assert compared > 30, compared
    # A different box or size gives a different shape.
    for box in ((0, 0, 4, 4), (1, 2, 6, 5), (0, 0, 9, 8), (-2, -3, 4, 4), (0, 0, 4, 4)):
        same(imgops.crop(X, box), imgops.crop(x, box))
        same(imgops.crop(X, torch.tensor(box)), imgops.crop(x, box))
    for size, box in product(((4, 5), (10, 3), (4, 5)), (None, (0, 0, 4, 4), (1.5, 0, 7, 6.5))):
        same(imgops.resize(X, size, "lanczos", box=box), imgops.resize(x, size, "lanczos", box=box))
    videos = torch.stack([x, x + 1], 1)
    same(imgops.resize(split(videos, Shard(1)), (3, 4)), imgops.resize(videos, (3, 4)), Shard(1))
    # Image dimensions are replicated first.
    for placement in (Shard(1), Shard(2), Shard(3), Replicate()):
        same(imgops.resize(split(x, placement), (4, 4)), imgops.resize(x, (4, 4)), Replicate())

    # In place, and into given buffers.
    image, expected = split(x), x.clone()
    assert imgops.paste_(image, S, (1, 1), M) is image
    same(image, imgops.paste_(expected, s, (1, 1), m))
    total, count = split(torch.zeros_like(x)), split(torch.zeros_like(x[:, :1]))
    whole_total, whole_count = torch.zeros_like(x), torch.zeros_like(x[:, :1])
    for position in ((1, 1), (4, 2)):
        imgops.accumulate(total, count, S, position, M)
        imgops.accumulate(whole_total, whole_count, s, position, m)
    same(total, whole_total)
    same(count, whole_count)

    # Backward, eager and compiled, with boxes and sizes that change from call to call.
    def loss(x: Tensor, s: Tensor, box: tuple[int, ...], size: tuple[int, int]) -> Tensor:
        patched = imgops.paste(x, s, (1, 1))
        return (
            imgops.resize(imgops.pad(imgops.crop(patched, box), 2, "reflect"), size, "bicubic").square().sum()
        )

    # torch 2.13 loses track of a DTensor's dynamic sizes; 2.11 and 2.15 do not.
    dynamic = not torch.__version__.startswith("2.13")
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    inductor = torch.compile(loss, fullgraph=True, dynamic=dynamic)
    functions: list[Callable[..., Tensor]] = [loss, compiled, inductor]
    for function in functions:
        for box, size in (((0, 0, 4, 4), (5, 5)), ((1, 1, 8, 7), (3, 6)), ((2, 0, 9, 8), (5, 5))):
            leaves = split(x).requires_grad_(), split(s).requires_grad_()
            plain = x.clone().requires_grad_(), s.clone().requires_grad_()
            function(*leaves, box, size).backward()
            loss(*plain, box, size).backward()
            for a, b in zip(leaves, plain, strict=True):
                same(a.grad, b.grad)
    image, source = split(x).requires_grad_(), split(s).requires_grad_()
    changed = image * 2
    imgops.paste_(changed, source, (1, 1))
    (changed * X).sum().backward()
    share = 2 * x
    share[..., 1:4, 1:5] = 0
    same(image.grad, share)
    same(source.grad, x[..., 1:4, 1:5])

    # An operator without a rule raises an error that names the missing facet.
    for call in (
        lambda: imgops.paste_out(X, S, (1, 1), out=split(x)),
        lambda: imgops.encode_image(split(torch.zeros(3, 4, 4, dtype=torch.uint8), Replicate())),
    ):
        try:
            call()
        except (NotImplementedError, RuntimeError) as error:
            messages = f"{error} {error.__cause__}"
            assert "sharding" in messages.lower(), messages
        else:
            raise AssertionError("an operator without a rule ran")
    dist.barrier()
    dist.destroy_process_group()
    print(f"process {rank}: done", flush=True)


if __name__ == "__main__":
    mp.start_processes(main, (2, sys.argv[1]), nprocs=2, start_method="spawn")
