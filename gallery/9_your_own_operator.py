"""
Write your own operator
=======================

A median filter of OpenCV's, as an operator with everything: one graph, a gradient to second order, ``torch.vmap``,
``torch.func``, DTensor, export, CUDA. Five steps, and then the generic tests of imgops run on it.
"""

# %%
# 1. The fake
# -----------
# It validates and says what comes out; it never looks at data. The same errors are raised in eager mode, in a graph and
# on meta tensors.

import cv2
import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor

import imgops


def fake(image: Tensor, size: int) -> Tensor:
    if image.dtype not in (torch.uint8, torch.float32):
        raise TypeError(f"median: image must be uint8 or float32, got {image.dtype}")
    if size not in (3, 5):
        raise ValueError(f"median: size must be 3 or 5, got {size}")
    return image.new_empty(image.shape)


# %%
# 2. The kernel
# -------------
# It fills what the fake allocated: here plane by plane, by OpenCV.


def kernel(out: Tensor, image: Tensor, size: int) -> None:
    planes = image.contiguous().flatten(0, -3).numpy()
    for plane, result in zip(planes, out.flatten(0, -3).numpy(), strict=True):
        cv2.medianBlur(plane, size, dst=result)


# %%
# 3. The decomposition
# --------------------
# The same in PyTorch's own operators. An exported program that runs without imgops holds this, and the gradient is derived
# from it, in an operator that a compiler does not look into.


def by_atoms(image: Tensor, size: int) -> Tensor:
    x = torch.nn.functional.pad(
        image.flatten(0, -3), (size // 2,) * 4, mode="replicate"
    )
    windows = x.unfold(-2, size, 1).unfold(-2, size, 1).flatten(-2)
    return windows.median(-1).values.reshape(image.shape)


# %%
# 4. The row
# ----------
# A typed signature without a body is the schema. A rule of ``imgops.vmap`` and one of ``imgops.sharding`` serve every
# operator over ``(..., C, H, W)``.


@imgops.operator(
    "gallery::median",
    kernel=kernel,
    fake=fake,
    decomposition=by_atoms,
    vmap=imgops.vmap.leading(3),
    sharding=imgops.sharding.leading(3),
)
def median(image: Tensor, size: int) -> Tensor: ...


# %%
# 5. The samples
# --------------
# Each sample drives all generic tests: opcheck, gradcheck and gradgradcheck, forward mode, vmap, compile with a count of
# recompiles, untouched inputs, strides. A test that cannot fail would be worth nothing, so a lie is told, too:

samples = [
    (torch.rand(3, 8, 9), 3),
    (torch.randint(0, 256, (2, 1, 7, 6), dtype=torch.uint8), 5),
]
imgops.testing.check_operator(median, samples)
print("all generic tests pass")


@imgops.operator(
    "gallery::median_that_lies",
    kernel=kernel,
    fake=lambda x, size: x.new_empty(x.shape[::-1]),
)
def liar(image: Tensor, size: int) -> Tensor: ...


try:
    imgops.testing.check_operator(liar, samples[:1])
except Exception as error:
    print("and the lie is found:", type(error).__name__)

# %%
# In use
# ------
# Salt and pepper on a photograph; the filter in a compiled graph, between other operators, with a gradient.

torch.manual_seed(0)
photo = torch.from_numpy(data.chelsea()).permute(2, 0, 1)[:, :300, :300] / 255
chance = torch.rand(1, 300, 300)
noisy = torch.where(
    chance < 0.04, 0.0, torch.where(chance > 0.96, 1.0, photo)
).requires_grad_()
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
