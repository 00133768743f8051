"""
On the GPU
==========

Run the operators on CUDA, with PIL's pixels and the draws of the CPU.

An image on CUDA stays on the device: almost every operator runs there, as a Triton kernel or with ATen, and gives PIL's and
OpenCV's own pixels. The machine that built these pages may have had no GPU. Then Triton's interpreter ran the kernels' own
code on the CPU, slowly but with the same arithmetic; or, without Triton, the CPU kernels ran. The page says which code ran.
"""

# %%
# A call on the device
# --------------------
# A call looks the same on every device. Without a GPU, this one runs on the CPU.

import os

# Triton reads this variable when it is imported; a GPU does not need it.
os.environ.setdefault("TRITON_INTERPRET", "1")

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image
from skimage import data
from torch.nn import functional as F

import imgops
from imgops import transforms as v2

photo = torch.from_numpy(data.astronaut()[:256, 100:356]).permute(2, 0, 1)
device = "cuda" if torch.cuda.is_available() else "cpu"
small = imgops.resize(photo.to(device), (64, 64))
figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for ax, image in zip(axes, (photo, small.cpu()), strict=True):
    ax.imshow(image.permute(1, 2, 0))
    ax.axis("off")

# %%
# What runs on this machine
# -------------------------
# The rest of this page calls the CUDA kernels by their names, so that Triton's interpreter runs them where there is no GPU.

if torch.cuda.is_available():
    device, how = torch.device("cuda"), torch.cuda.get_device_name()
    os.environ.pop("TRITON_INTERPRET")
else:
    device, how = torch.device("cpu"), "Triton's interpreter, on the CPU"


def on_the_device(name: str, *args):
    """Run the operator's CUDA kernel, on the CPU with Triton's interpreter."""
    if device.type == "cuda":
        return getattr(torch.ops.imgops, name)(*args)
    return imgops.extend.testing.cuda_kernel(f"imgops::{name}")(*args)


try:
    on_the_device("crop", photo.to(device), 0, 0, 8, 8)
except RuntimeError:
    how = "the CPU kernels: Triton is not here, or was imported without its interpreter"
    on_the_device = lambda name, *args: getattr(torch.ops.imgops, name)(*args)
print("These kernels are run by", how)

# %%
# PIL's pixels
# ------------
# Resize to a quarter, with antialiasing, using PIL, the kernel, and ``interpolate``, which other libraries use on a GPU.

image, size = photo.to(device), (64, 64)
ours = on_the_device("resize", image, None, *size, "bilinear", True).cpu()
pil = np.asarray(Image.fromarray(data.astronaut()[:256, 100:356]).resize(size, 2))
pil = torch.from_numpy(pil.copy()).permute(2, 0, 1)
# sphinx_gallery_thumbnail_number = 2

other = F.interpolate(image[None].float(), size, mode="bilinear", antialias=True)
other = other[0].round().clamp(0, 255).to(torch.uint8).cpu()

figure, axes = plt.subplots(1, 4, figsize=(10, 3.4), layout="constrained")
axes[0].imshow(pil.permute(1, 2, 0))
axes[0].set_title("PIL")
axes[1].imshow(ours.permute(1, 2, 0))
axes[1].set_title("imgops' CUDA kernel")
for ax, (found, title) in zip(
    axes[2:], ((ours, "imgops"), (other, "interpolate")), strict=True
):
    apart = (found.int() - pil.int()).abs().amax(0)
    share = float((found != pil).double().mean())
    ax.imshow(apart, cmap="magma", vmin=0, vmax=2)
    ax.set_title(f"{title} compared with PIL:\n{share:.0%} of the values differ")
for ax in axes:
    ax.axis("off")

# %%
# A box, an order and a matrix for each image
# -------------------------------------------
# If parameters are on the CPU, imgops copies them to the device in one asynchronous copy. If they are on the device, the host
# never reads them, and you can capture a CUDA graph. One kernel processes all images of the batch.

batch = image.expand(4, -1, -1, -1)
boxes = torch.tensor(
    [[0, 0, 256, 256], [60, 20, 220, 180], [90, 40, 150, 100], [0, 128, 256, 256]]
)
crops = on_the_device("resized_crop", batch, boxes, 72, 72, "bicubic", True)
order = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, -1, -1], [-1, -1, -1, -1]])
amounts = torch.tensor(
    [
        [1.3, 1.2, 0.6, 0.0],
        [0.9, 1.3, 1.5, -0.06],
        [1.1, 1.6, 1.0, 0.55],
        [1.0, 1.0, 1.0, 0.0],
    ],
    dtype=torch.float64,
)
names = "brightness,contrast,saturation,hue"
jittered = on_the_device("color_sequence", crops, order, amounts, names)
angle = torch.tensor([0.0, 0.3, -0.4, 0.8], dtype=torch.float64)
cos, sin = angle.cos(), angle.sin()
rows = (cos, -sin, 36 * (1 - cos + sin), sin, cos, 36 * (1 - cos - sin))
matrix = torch.stack(rows, -1).reshape(4, 2, 3)
turned = on_the_device(
    "warp_affine", jittered, matrix, None, 72, 72, "bilinear", "reflect"
)

figure, axes = plt.subplots(3, 4, figsize=(8, 6), layout="constrained")
for row, (images, title) in zip(
    axes,
    ((crops, "resized crop"), (jittered, "colors"), (turned, "turned")),
    strict=True,
):
    for i, (ax, one) in enumerate(zip(row, images.cpu(), strict=True)):
        ax.imshow(one.permute(1, 2, 0))
        ax.set_title(f"{title} {i}", fontsize=9)
        ax.axis("off")

# %%
# The same seed, the same pixels
# ------------------------------
# A pipeline always draws on the host, so the same seed gives the same pixels on the GPU and on the CPU. The
# pipeline copies all its draws to the device at once.

pipeline = v2.Compose(
    [
        v2.RandomResizedCrop(64, per_sample=True),
        v2.RandomHorizontalFlip(per_sample=True),
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1, per_sample=True),
        v2.GaussianBlur(9, per_sample=True),
    ]
)
torch.manual_seed(0)
here = pipeline(batch)
torch.manual_seed(0)
there = pipeline(batch.cpu())
print(
    "a pipeline on",
    here.device,
    "has the pixels of the CPU:",
    torch.equal(here.cpu(), there),
)

# %%
# Gradients
# ---------
# Backwards are also operators, so they run on the device of their images. Here gradient descent finds a strength on the
# device:

target = imgops.adjust_contrast(image / 255, 1.5)
factor = torch.tensor(1.0, device=device, requires_grad=True)
optimizer = torch.optim.Adam([factor], 0.1)
for _ in range(60):
    optimizer.zero_grad()
    loss = (imgops.adjust_contrast(image / 255, factor) - target).square().mean()
    loss.backward()
    optimizer.step()
print(f"found {factor.item():.3f}, it was 1.5; on {factor.device}")

# %%
# More on kernels
# ---------------
# :doc:`The table of operators </operators>` says which operators are Triton kernels, which ones ATen computes and which ones
# run on the host. :doc:`/benchmarks` says how much memory each kernel moves, compared with the least possible.
