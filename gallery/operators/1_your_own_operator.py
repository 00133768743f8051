"""
Write your own operator
=======================

Turn OpenCV's median filter into a complete operator in five steps.

The operator compiles into one graph, has a gradient to second order, and supports ``torch.vmap``, ``torch.func``, DTensor,
export and CUDA. The last step runs imgops' generic tests on the operator.
"""

# %%
# The filter
# ----------
# A median filter removes salt and pepper noise. OpenCV's filter takes arrays, so it breaks a graph and has no gradient.

import cv2
import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor

import imgops

torch.manual_seed(0)
photo = torch.from_numpy(data.chelsea()).permute(2, 0, 1)[:, :300, :300] / 255
chance = torch.rand(1, 300, 300)
noisy = torch.where(chance < 0.04, 0.0, torch.where(chance > 0.96, 1.0, photo))
frame = noisy.permute(1, 2, 0).contiguous().numpy()

figure, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for ax, image in zip(axes, (frame, cv2.medianBlur(frame, 3)), strict=True):
    ax.imshow(image)
    ax.axis("off")

# %%
# 1. The fake
# -----------
# The fake validates the arguments, and returns an empty tensor with the shape, dtype and strides of the
# output. It never reads data, so eager mode and meta tensors raise the same errors; a compiler includes the
# error message in its own error.


def fake(image: Tensor, size: int) -> Tensor:
    if image.dtype not in (torch.uint8, torch.float32):
        raise TypeError(f"median: image must be uint8 or float32, got {image.dtype}")
    if size not in (3, 5):
        raise ValueError(f"median: size must be 3 or 5, got {size}")
    return image.new_empty(image.shape)


# %%
# 2. The kernel
# -------------
# The kernel fills the tensor that the fake allocated. Here OpenCV does this plane by plane.


def kernel(out: Tensor, image: Tensor, size: int) -> None:
    planes = image.contiguous().flatten(0, -3).numpy()
    for plane, result in zip(planes, out.flatten(0, -3).numpy(), strict=True):
        cv2.medianBlur(plane, size, dst=result)


# %%
# 3. The decomposition
# --------------------
# The decomposition computes the same result with PyTorch's own operators. An exported program that runs without imgops
# contains the decomposition. imgops also derives the gradient from it, in an operator that a compiler does not trace into.


def by_atoms(image: Tensor, size: int) -> Tensor:
    x = torch.nn.functional.pad(
        image.flatten(0, -3), (size // 2,) * 4, mode="replicate"
    )
    windows = x.unfold(-2, size, 1).unfold(-2, size, 1).flatten(-2)
    return windows.median(-1).values.reshape(image.shape)


# %%
# 4. The declaration
# ------------------
# The schema is a typed signature without a body. The batching rule ``imgops.extend.vmap.leading(3)`` and the sharding rule
# ``imgops.extend.sharding.leading(3)`` fit every operator on an image ``(..., C, H, W)``. The size of the window is an int, so each
# size has its own graph. A number that changes from call to call is a tensor in the signature: :doc:`/pytorch` has an example.


@imgops.extend.operator(
    "gallery::median",
    kernel=kernel,
    fake=fake,
    decomposition=by_atoms,
    vmap=imgops.extend.vmap.leading(3),
    sharding=imgops.extend.sharding.leading(3),
)
def median(image: Tensor, size: int) -> Tensor: ...


# %%
# 5. The samples
# --------------
# ``check_operator`` runs all generic tests on each sample: opcheck, gradcheck and gradgradcheck, forward mode, vmap, compile
# with a count of recompilations, untouched inputs, strides. To see that the tests can fail, we also test an operator that has
# a wrong fake:

samples = [
    (torch.rand(3, 8, 9), 3),
    (torch.randint(0, 256, (2, 1, 7, 6), dtype=torch.uint8), 5),
]
imgops.extend.testing.check_operator(median, samples)
print("all generic tests pass")


@imgops.extend.operator(
    "gallery::median_that_lies",
    kernel=kernel,
    fake=lambda x, size: x.new_empty(x.shape[::-1]),
)
def liar(image: Tensor, size: int) -> Tensor: ...


try:
    imgops.extend.testing.check_operator(liar, samples[:1])
except Exception as error:
    print("and the lie is found:", type(error).__name__)

# %%
# In use
# ------
# We use the filter in a compiled graph with another operator, and compute a gradient through both.

# sphinx_gallery_thumbnail_number = 2

noisy.requires_grad_()
restore = torch.compile(
    lambda x: imgops.adjust_contrast(median(x, 3), 1.1),
    fullgraph=True,
    backend="aot_eager",
)
restored = restore(noisy)
(grad,) = torch.autograd.grad((restored - photo).square().sum(), noisy)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
shown = (
    noisy.detach(),
    restored.detach().clamp(0, 1),
    (grad.abs().sum(0, keepdim=True) * 2).clamp(0, 1),
)
for ax, image, title in zip(
    axes,
    shown,
    ("noisy", "median, then contrast", "where a gradient arrives"),
    strict=True,
):
    ax.imshow(image.permute(1, 2, 0), cmap="magma")
    ax.set_title(title)
    ax.axis("off")
