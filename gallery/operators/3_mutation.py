"""
Mutable, in-place and out=
==========================

Write into existing memory with the right gradient, or with an error instead of a wrong one.

An operator may write into existing memory. There are three contracts for this, and each makes a promise to
autograd and to the compiler. ``torch.library`` alone keeps the promise to the compiler but breaks the promise to
autograd: the gradient is wrong, and PyTorch does not warn.
"""

# %%
# A stock mutable operator
# ------------------------
# The next operator puts a stamp (right) onto a canvas (left), in place.

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor

import imgops

photo = torch.from_numpy(data.coffee()).permute(2, 0, 1)[:, :400, 100:500] / 255
stamp = torch.from_numpy(data.chelsea()).permute(2, 0, 1)[:, 60:210, 150:320] / 255
place = (30, 40)

figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for ax, image in zip(axes, (photo, stamp), strict=True):
    ax.imshow(image.permute(1, 2, 0))
    ax.axis("off")

# %%
# Autograd should know two things: the canvas depends on the stamp, and it no longer depends on the pixels under the stamp.


@torch.library.custom_op("page2::stamp_", mutates_args=("canvas",))
def stamp_(canvas: Tensor, stamp: Tensor, left: int, top: int) -> None:
    height, width = stamp.shape[-2:]
    canvas[:, top : top + height, left : left + width] = stamp


def gradients(put) -> tuple[Tensor, Tensor | None]:
    image, patch = (photo.clone().requires_grad_(), stamp.clone().requires_grad_())
    canvas = image * 1
    put(canvas, patch)
    canvas.sum().backward()
    return image.grad, patch.grad


stock = gradients(lambda canvas, patch: stamp_(canvas, patch, *place))
ours = gradients(lambda canvas, patch: imgops.paste_(canvas, patch, place))
print("stock:  stamp.grad is", stock[1])
print("paste_: stamp.grad is 1 everywhere:", bool((ours[1] == 1).all()))

# %%
# The stock operator raises no error and gives no warning. The photograph's gradient is 1 even where the stamp covers it:

# sphinx_gallery_thumbnail_number = 2

result = imgops.paste(photo, stamp, place)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
axes[0].imshow(result.permute(1, 2, 0))
axes[0].set_title("the canvas after the stamp")
for ax, (grad, _), title in zip(
    axes[1:],
    (stock, ours),
    ("d canvas / d photograph: stock", "imgops.paste_"),
    strict=True,
):
    shown = ax.imshow(grad[0], cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
for ax in axes:
    ax.set(xticks=[], yticks=[])
figure.colorbar(shown, ax=axes, shrink=0.8)

# %%
# Three contracts
# ---------------
# **In place.** The operator writes to its first argument and returns it; its name ends with an underscore. Autograd records
# the gradient of the functional operator. A leaf that requires a gradient raises, as in PyTorch's own operators:

leaf = torch.zeros(3, 8, 8, requires_grad=True)
try:
    imgops.paste_(leaf, torch.ones(3, 2, 2), (1, 1))
except RuntimeError as error:
    print(error)

# %%
# **out=.** The operator writes its result into the caller's memory, for example into one image of a batch. Such an operator
# has no gradient, and raises an error if you ask for one:

batch = torch.empty(4, 3, 100, 100)
for i in range(4):
    imgops.resize_out(
        imgops.crop(photo, (i * 60, 0, i * 60 + 200, 400)), (100, 100), out=batch[i]
    )
try:
    imgops.resize_out(photo.clone().requires_grad_(), (100, 100), out=batch[0])
except RuntimeError as error:
    print(error)

# %%
# **Buffers.** The operator writes to several arguments and returns nothing. :func:`imgops.accumulate` adds tiles to a sum
# and a count, which blends the seams of a sliding window. Here each tile is sharpened separately and has a soft edge:

total, count = torch.zeros(3, 400, 400), torch.zeros(1, 400, 400)
ramp = torch.hann_window(160, periodic=False).clamp(min=0.01)
weight = (ramp[:, None] * ramp[None, :])[None]
for top in range(0, 241, 80):
    for left in range(0, 241, 80):
        tile = imgops.adjust_sharpness(
            imgops.crop(photo, (left, top, left + 160, top + 160)), 6.0
        )
        imgops.accumulate(total, count, tile, (left, top), weight)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
images = (
    total.permute(1, 2, 0),
    count[0],
    (total / count).permute(1, 2, 0).clamp(0, 1),
)
for ax, image, title in zip(
    axes, images, ("the sum", "the count", "sum / count"), strict=True
):
    ax.imshow(image / image.max(), cmap="gray")
    ax.set_title(title)
    ax.axis("off")

# %%
# All three kinds of operators validate their arguments before they write anything, so an error leaves the memory unchanged.
# In a compiled graph, the compiler reuses the memory that you pass, without a copy.

before = batch.clone()
try:
    imgops.paste_(batch, torch.ones(4, 1, 9, 9), (0, 0))
except ValueError as error:
    print(error)
print("untouched:", torch.equal(batch, before))
