"""
From PIL's crop to an operator
==============================

``PIL.Image.crop`` is right, fast and invisible to PyTorch: it breaks a compiled graph and has no gradient. This page
makes an operator of it, step by step, and shows the two mistakes that nobody warns of: a fake that lies, and a gradient
that goes through 8 bits.
"""

# %%
# The plain function
# ------------------
# A photograph, and a crop whose box hangs over the edge: PIL fills with 0.

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image
from skimage import data
from torch import Tensor

import imgops

photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1).contiguous()
box = (130, -40, 330, 160)  # left, top, right, bottom


def crop_with_pil(
    image: Tensor, left: int, top: int, right: int, bottom: int
) -> Tensor:
    picture = Image.fromarray(image.permute(1, 2, 0).numpy())
    return torch.from_numpy(np.array(picture.crop((left, top, right, bottom)))).permute(
        2, 0, 1
    )


figure, axes = plt.subplots(1, 2, figsize=(8, 4), width_ratios=(1.25, 1))
axes[0].imshow(photo.permute(1, 2, 0))
axes[0].add_patch(
    plt.Rectangle(
        box[:2], 200, 200, fill=False, color="orange", linewidth=2, clip_on=False
    )
)
axes[1].imshow(crop_with_pil(photo, *box).permute(1, 2, 0))
for ax, title in zip(axes, ("the photograph", "its crop"), strict=True):
    ax.set_title(title)
    ax.axis("off")

# %%
# A compiler cannot look into PIL, and says so when it must not break the graph:

try:
    torch.compile(crop_with_pil, fullgraph=True, backend="eager")(photo, *box)
except Exception as error:
    print("\n".join(str(error).splitlines()[:3]))

# %%
# The operator, and its fake
# --------------------------
# An operator is a name, a schema and a kernel. Its *fake* answers the only question that a compiler asks: what shape,
# dtype and strides come out?


@torch.library.custom_op("page1::crop", mutates_args=())
def crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    return crop_with_pil(image, left, top, right, bottom).contiguous()


@crop.register_fake
def _(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    return image.new_empty(image.shape[0], bottom - top, right - left)


graph = torch.compile(crop, fullgraph=True, backend="aot_eager")
print("one graph:", torch.equal(graph(photo, *box), crop_with_pil(photo, *box)))

# %%
# A wrong fake
# ------------
# Swap height and width in the fake of a second operator. It compiles without a word, and what is computed from the shape
# is wrong. Only :func:`torch.library.opcheck` compares the two:


@torch.library.custom_op("page1::crop_that_lies", mutates_args=())
def liar(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    return crop_with_pil(image, left, top, right, bottom).contiguous()


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
# What was cut out came from one place; its gradient goes back there. So the backward of crop is another operator,
# :func:`imgops.paste`, onto zeros. Nothing is written by hand, and paste's own gradient is crop: double backward is free.
#
# The tempting way is to let PIL do the backward too. PIL's pixels have 8 bits, and gradients have not:


def gradient_through_8_bits(
    grad: Tensor, left: int, top: int, size: tuple[int, int]
) -> Tensor:
    levels = (grad * 255).to(torch.uint8)  # what ``ToPILImage`` does to a float image
    canvas = Image.new("RGB", (size[1], size[0]))
    canvas.paste(
        Image.fromarray(levels.permute(1, 2, 0).contiguous().numpy()), (left, top)
    )
    return torch.from_numpy(np.array(canvas)).permute(2, 0, 1).float() / 255


image = (photo.float() / 255).requires_grad_()
# Any loss will do: gradients are small, and of both signs. This one looks at edges.
kernel = torch.tensor([[0.0, -1, 0], [-1, 4, -1], [0, -1, 0]]) / 10
weights = imgops.filter2d(imgops.crop(photo / 255, box), kernel)
(exact,) = torch.autograd.grad((imgops.crop(image, box) * weights).sum(), image)
squeezed = gradient_through_8_bits(weights, box[0], box[1], (512, 512))
wanted = imgops.paste(torch.zeros(3, 512, 512), weights, box[:2])
error = lambda grad: f"{(grad - wanted).abs().max():.3f}"
print(f"the gradient reaches from {weights.min():.3f} to {weights.max():.3f}")
print("largest error, imgops.crop:", error(exact))
print("largest error, through PIL:", error(squeezed))

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, grad, title in zip(
    axes,
    (wanted, exact, squeezed),
    ("the gradient", "imgops.crop", "through 8 bits"),
    strict=True,
):
    part = imgops.crop(grad, (110, 0, 350, 180))
    shown = ax.imshow(part[1], cmap="RdBu", vmin=-0.08, vmax=0.08)
    ax.set_title(title)
    ax.axis("off")
figure.colorbar(shown, ax=axes, shrink=0.8)

# %%
# Negative gradients wrapped round to almost 1, small positive ones were rounded to steps of 1/255, and no test of shapes
# would have told. In :func:`imgops.crop` all of this has been done once, and checked by ``gradcheck`` to second order:

x = torch.rand(1, 5, 6, dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(lambda x: imgops.crop(x, (-1, 2, 4, 7)), x))
print(torch.autograd.gradgradcheck(lambda x: imgops.crop(x, (-1, 2, 4, 7)), x))
