"""
The registrations of an operator
================================

See what each registration of an operator makes possible, from autograd to DTensor.

An operator that has a kernel and a fake runs and compiles. Gradients, per-sample gradients, ``torch.func``, tensor
subclasses and DTensor each need one more registration with PyTorch. The examples are :func:`imgops.resize` and similar
operators.
"""

# %%
# Autograd: a backward built from operators
# -----------------------------------------
# The backward of resize is its transpose, ``resize_adjoint``, which is also an operator. So the backward compiles, exports,
# and has its own gradient. ``gradcheck`` and ``gradgradcheck`` compare both gradients with finite differences, in double
# precision:

import subprocess
import sys

import matplotlib.pyplot as plt
import torch
from skimage import data
from torchvision import tv_tensors

import imgops

torch.manual_seed(0)
photo = torch.from_numpy(data.chelsea()).permute(2, 0, 1)[:, :280, 60:340].contiguous()
small = torch.rand(2, 6, 7, dtype=torch.float64, requires_grad=True)
resize = lambda x: imgops.resize(x, (4, 9), "bicubic")
print("gradcheck:", torch.autograd.gradcheck(resize, small))
print("gradgradcheck:", torch.autograd.gradgradcheck(resize, small))

# %%
# The adjoint is defined by its inner products: :math:`\langle R x, y \rangle = \langle x, R^\top y \rangle` for every x
# and y. Here y is the resized photograph, and the right picture is :math:`R^\top y`.

x = photo.double() / 255
y = imgops.resize(x, (28, 28))
up = imgops.adjoint(imgops.resize)(y, x, (28, 28))
print("inner products:", (y * y).sum().item(), (x * up).sum().item())

figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained")
titles = "x", "y, its resize", "the adjoint of y"
for ax, image, title in zip(axes, (x, y, up / up.max()), titles, strict=True):
    ax.imshow(image.permute(1, 2, 0))
    ax.set_title(title)
    ax.axis("off")

# %%
# vmap: per-sample gradients
# --------------------------
# A batching rule says how to replace many calls by one larger call. With this rule, :func:`torch.vmap` of
# :func:`torch.func.grad` gives each sample its own gradient; a loss over the batch would add up the gradients. This example
# computes how a score depends on each pixel of the photograph, for five views at five angles, all at once.


def turn(angle: torch.Tensor) -> torch.Tensor:
    """Return the matrix of a rotation around the middle of the photograph."""
    c, s = angle.cos(), angle.sin()
    rows = [c, -s, 140 * (1 - c + s), s, c, 140 * (1 - c - s)]
    return torch.stack(rows).reshape(2, 3)


edges = torch.tensor([[0.0, -1, 0], [-1, 4, -1], [0, -1, 0]])


def score(image: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    view = imgops.warp_affine(image, matrix, (140, 140), "bilinear")
    return imgops.filter2d(view, edges).square().sum()


angles = torch.linspace(-0.6, 0.6, 5)
matrices = torch.vmap(turn)(angles)
per_sample = torch.vmap(torch.func.grad(score), in_dims=(None, 0))(
    photo / 255, matrices
)
# sphinx_gallery_thumbnail_number = 2

figure, axes = plt.subplots(2, 5, figsize=(11, 4.6), layout="constrained")
for (above, below), matrix, grad in zip(axes.T, matrices, per_sample, strict=True):
    view = imgops.warp_affine(photo, matrix, (140, 140), "bilinear")
    above.imshow(view.permute(1, 2, 0))
    below.imshow(grad.abs().sum(0).sqrt(), cmap="magma")
for ax in axes.flat:
    ax.axis("off")
axes[0, 0].set_title("five views of one photograph", loc="left")
axes[1, 0].set_title("the gradient of each view's score", loc="left")

# %%
# torch.func: forward mode
# ------------------------
# Forward mode computes how the output changes when a parameter changes. Here the parameter is the angle of a rotation.


def turned(angle: torch.Tensor) -> torch.Tensor:
    return imgops.warp_affine(photo / 255, turn(angle), None, "bilinear")


angle = torch.tensor(0.2)
picture, motion = torch.func.jvp(turned, (angle,), (torch.ones(()),))
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
axes[0].imshow(picture.permute(1, 2, 0).clamp(0, 1))
axes[1].imshow(motion[1], cmap="RdBu", vmin=-20, vmax=20)
for ax, title in zip(axes, ("turned by 0.2", "d picture / d angle"), strict=True):
    ax.set_title(title)
    ax.axis("off")

# %%
# Tensor subclasses
# -----------------
# torchvision's ``tv_tensors`` keep their type:

image = imgops.crop(tv_tensors.Image(photo), (0, 0, 9, 9))
print(type(image).__name__, tuple(image.shape))

# %%
# DTensor on two processes
# ------------------------
# The sharding rule says which dimensions may stay sharded: the batch dimensions. Two processes, each with
# half of a batch, compute the same result as one process without exchanging pixels. (The code is a separate
# script, because each process runs it.)

script = """
import torch, imgops
import torch.distributed as dist
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
mesh = init_device_mesh("cpu", (2,))
batch = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
view = lambda x: imgops.resize(imgops.crop(x, (4, 4, 28, 28)), (8, 8))
small = view(distribute_tensor(batch, mesh, [Shard(0)]))
same = torch.equal(small.full_tensor(), view(batch))
for rank in range(2):
    dist.barrier()
    if rank == dist.get_rank():
        print(f"process {rank} has {tuple(small.to_local().shape)} of {tuple(small.shape)};",
              "equal to one process:", same, flush=True)
dist.destroy_process_group()
"""
command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
command += ["--nproc-per-node", "2", "--no-python", sys.executable, "-c", script]
done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
print(done.stdout)

# %%
# If an operator lacks a registration, using it raises an error that names the registration:

try:
    torch.vmap(lambda data: imgops.decode_image(data))(
        torch.zeros(2, 10, dtype=torch.uint8)
    )
except Exception as error:
    print(type(error).__name__, "-", str(error).splitlines()[0])
