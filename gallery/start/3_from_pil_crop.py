"""
From PIL's crop to an operator
==============================

Turn ``PIL.Image.crop`` into an operator with a gradient, and see two mistakes that cause no warning.

``PIL.Image.crop`` is correct and fast, but PyTorch cannot trace it: the call breaks a compiled graph and has no gradient.
This page makes the crop an operator, step by step. The two mistakes are a fake that returns the wrong shape, and a gradient
that is rounded to 8 bits.
"""

# %%
# The plain function
# ------------------
# Crop a photograph with a box that extends beyond the top edge. PIL fills the outside with 0.

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image
from skimage import data
from torch import Tensor

import imgops

photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1).contiguous()
box = (130, -40, 330, 160)  # left, top, right, bottom


def crop_with_pil(image: Tensor, *box: int) -> Tensor:
    planes = [Image.fromarray(plane.numpy()).crop(box) for plane in image]
    return torch.from_numpy(np.stack([np.asarray(plane) for plane in planes]))


figure, axes = plt.subplots(1, 2, figsize=(8, 4), width_ratios=(1.25, 1))
axes[0].imshow(photo.permute(1, 2, 0))
frame = plt.Rectangle(box[:2], 200, 200, fill=False, color="orange", clip_on=False)
axes[0].add_patch(frame)
axes[1].imshow(crop_with_pil(photo, *box).permute(1, 2, 0))
for ax, title in zip(axes, ("the photograph", "its crop"), strict=True):
    ax.set_title(title)
    ax.axis("off")

# %%
# ``torch.compile`` cannot trace the NumPy array that PIL needs. It breaks the graph there, copies the tensor, and leaves the
# crop to Python. With ``fullgraph=True`` it must not break the graph, so it raises an error:

try:
    torch.compile(crop_with_pil, fullgraph=True, backend="eager")(photo, *box)
except Exception as error:
    print("a graph break:", str(error).splitlines()[0])
    print(*(line for line in str(error).splitlines() if "debug context" in line))

# %%
# The operator, and its fake
# --------------------------
# An operator has a name, a schema and a kernel. A compiler asks only one question about it: what are the shape, dtype and
# strides of the output? The operator's *fake* answers it.


@torch.library.custom_op("page1::crop", mutates_args=())
def crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    return crop_with_pil(image, left, top, right, bottom)


@crop.register_fake
def _(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    return image.new_empty(image.shape[0], bottom - top, right - left)


graph = torch.compile(crop, fullgraph=True, backend="aot_eager")
print("one graph:", torch.equal(graph(photo, *box), crop_with_pil(photo, *box)))

# %%
# A wrong fake
# ------------
# In a second operator, the fake swaps height and width. The operator compiles without a warning, and every value that is
# computed from the shape is wrong. Only :func:`torch.library.opcheck` compares the fake with the kernel:


@torch.library.custom_op("page1::crop_that_lies", mutates_args=())
def liar(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    return crop_with_pil(image, left, top, right, bottom)


@liar.register_fake
def _(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    return image.new_empty(image.shape[0], right - left, bottom - top)


def height(image: Tensor, *where: int) -> int:
    return liar(image, *where).shape[1]


wide = (0, 0, 300, 100)
print("height, eager:", height(photo, *wide))
print(
    "height, compiled:",
    torch.compile(height, fullgraph=True, backend="aot_eager")(photo, *wide),
)
try:
    torch.library.opcheck(liar, (photo, *wide), test_utils="test_faketensor")
except Exception as error:
    print("opcheck:", str(error).split(" on ")[0].strip()[-70:])

# %%
# The gradient of crop is paste
# -----------------------------
# The gradient of the image is the gradient of its crop inside the window that was cut out, and 0 everywhere else. So the
# backward of crop is another operator: :func:`imgops.paste` onto zeros. It compiles and exports like any operator, and its
# own gradient is crop.


def setup_context(ctx, inputs, output) -> None:
    ctx.shape, ctx.place = inputs[0].shape, inputs[1:3]


def backward(ctx, grad: Tensor) -> tuple:
    zeros = grad.new_zeros(ctx.shape)
    return imgops.paste(zeros, grad, ctx.place), None, None, None, None


crop.register_autograd(backward, setup_context=setup_context)

# %%
# It is tempting to let PIL compute the backward too. But a PIL picture has 8 bits per channel, and a gradient needs more:


def gradient_through_8_bits(grad: Tensor, place: tuple[int, int]) -> Tensor:
    levels = (grad * 255).to(torch.uint8)  # ``ToPILImage`` does this to a float image
    canvas = Image.new("RGB", (512, 512))
    canvas.paste(Image.fromarray(levels.permute(1, 2, 0).numpy()), place)
    return torch.from_numpy(np.array(canvas)).permute(2, 0, 1) / 255


image = (photo / 255).requires_grad_()
# Any loss will do: gradients are small and have both signs. This loss looks at edges.
edges = torch.tensor([[0.0, -1, 0], [-1, 4, -1], [0, -1, 0]]) / 10
weights = imgops.filter2d(imgops.crop(photo / 255, box), edges)
wanted = torch.nn.functional.pad(weights[:, 40:], (130, 182, 0, 352))
(exact,) = torch.autograd.grad((crop(image, *box) * weights).sum(), image)
squeezed = gradient_through_8_bits(weights, box[:2])
error = lambda grad: f"{(grad - wanted).abs().max():.3f}"
print(f"the gradient reaches from {weights.min():.3f} to {weights.max():.3f}")
print("largest error, paste:", error(exact))
print("largest error, through PIL:", error(squeezed))

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
titles = "the gradient: paste", "through 8 bits"
for ax, grad, title in zip(axes, (exact, squeezed), titles, strict=True):
    part = imgops.crop(grad, (110, 0, 350, 180))
    shown = ax.imshow(part[1], cmap="RdBu", vmin=-0.08, vmax=0.08)
    ax.set_title(title)
    ax.axis("off")
figure.colorbar(shown, ax=axes, shrink=0.8)

# %%
# Negative gradients wrapped around to almost 1, and small positive gradients were rounded to steps of 1/255. A test of
# shapes would not have found either mistake. :func:`imgops.crop` has a fake and a gradient like these, for every dtype and
# batch, and ``gradcheck`` verifies it to second order:

x = torch.rand(1, 5, 6, dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(lambda x: imgops.crop(x, (-1, 2, 4, 7)), x))
print(torch.autograd.gradgradcheck(lambda x: imgops.crop(x, (-1, 2, 4, 7)), x))
