"""Train a patch over a batch that is sharded across processes. The result is the same as with one process.

    torchrun --nproc-per-node 2 examples/train_sharded.py

The batch is a DTensor, and each process holds its part. imgops' operators keep the batch sharded: paste and
resize and their gradients run on the process that holds the images. Only the gradient of the shared patch is
summed over processes.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import imgops

STEPS, RATE = 8, 400.0


def loss(images: Tensor, patch: Tensor, left: int, top: int) -> Tensor:
    """Return how far the images are from mid-gray, at a third of their size."""
    patched = imgops.paste(images, patch.expand(len(images), -1, -1, -1), (left, top))
    return (imgops.resize(patched, (16, 20), "bicubic") - 0.5).square().mean()


def train(images: Tensor, patch: Tensor) -> tuple[Tensor, list[float]]:
    history = []
    places = torch.Generator().manual_seed(0)  # every process draws the same numbers
    for _ in range(STEPS):
        left, top = torch.randint(0, 24, (2,), generator=places).tolist()
        patch = patch.detach().requires_grad_()
        value = loss(images, patch, left, top)
        (gradient,) = torch.autograd.grad(value, patch)
        patch = patch - RATE * gradient
        history.append(_whole(value).item())
    return patch.detach(), history


def _whole(x: Tensor) -> Tensor:
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(6, 3, 48, 60, generator=generator)
    patch = torch.rand(3, 24, 24, generator=generator)

    sharded = distribute_tensor(images, mesh, [Shard(0)])
    shared = distribute_tensor(patch, mesh, [Replicate()])
    trained, history = train(sharded, shared)

    alone, history_alone = train(images, patch)
    difference = (_whole(trained) - alone).abs().max().item()
    if dist.get_rank() == 0:
        print(f"{len(sharded.to_local())} of {len(images)} images in each process")
        print("loss, sharded:    ", " ".join(f"{v:.5f}" for v in history))
        print("loss, one process:", " ".join(f"{v:.5f}" for v in history_alone))
        print(f"largest difference of the patch: {difference:.1e}")
    dist.barrier()  # wait: another process may still be sending
    dist.destroy_process_group()
    assert difference < 1e-6


if __name__ == "__main__":
    main()
