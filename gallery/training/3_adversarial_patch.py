r"""
An adversarial patch
====================

Train a sticker that makes a classifier see a digit that is not there.

The patch (Brown et al., *Adversarial Patch*, 2017) is trained through the picture: in each image it lies at another position
and has another angle, so it must work in all of them. :func:`imgops.paste` takes a position for each image of a batch, and
:func:`imgops.rotate` an angle, as tensors. So there is no loop over the images, and one compiled graph serves every draw.
"""

# %%
# The images
# ----------
# The images are scikit-learn's digits, resized to 16 x 16 pixels.

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

import imgops

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
images = imgops.resize(images, (16, 16), "bicubic").clamp(0, 1)
labels = torch.tensor(digits.target)
train, test = torch.randperm(1797).split([1200, 597])

figure, axes = plt.subplots(1, 8, figsize=(10, 1.4), layout="constrained")
for ax, image in zip(axes, images[test[:8]], strict=True):
    ax.imshow(image[0], cmap="gray", vmin=0, vmax=1)
    ax.axis("off")

# %%
# A classifier
# ------------
# We train a small network on the digits. It never sees a patch.

model = nn.Sequential(
    *(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(24, 48, 3, padding=1), nn.ReLU()),
    *(nn.Conv2d(48, 48, 3, padding=1), nn.ReLU()),
    *(nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(4 * 48, 10)),
)
weights = torch.optim.Adam(model.parameters(), 2e-3)
for _ in tqdm(range(250), desc="classifier"):
    chosen = train[torch.randint(len(train), (128,))]
    loss = F.cross_entropy(model(images[chosen]), labels[chosen])
    weights.zero_grad()
    loss.backward()
    weights.step()
model.requires_grad_(False)

# %%
# A place for each image
# ----------------------
# ``positions`` is ``(N, 2)``: the left and top edge of the patch in each image. ``angles`` is ``(N,)``. The mask is a disk, which
# turns with the patch. A part of the patch that lies outside of its image is clipped.

SIDE = 10
row = torch.arange(SIDE) - (SIDE - 1) / 2
disk = (row[:, None].square() + row.square() < (SIDE / 2) ** 2).float()[None]


def apply(batch: Tensor, patch: Tensor, positions: Tensor, angles: Tensor) -> Tensor:
    count = len(batch)
    turned = imgops.rotate(patch.expand(count, -1, -1, -1), angles)
    mask = imgops.rotate(disk.expand(count, -1, -1, -1), angles)
    return imgops.paste(batch, turned, positions, mask)


def draw(count: int) -> tuple[Tensor, Tensor]:
    return torch.randint(-1, 16 - SIDE + 2, (count, 2)), torch.rand(count) * 90 - 45


# %%
# Training
# --------
# The loss is small where the classifier sees an 8. The gradient goes through the classifier, the paste and the rotation to
# the pixels of the patch. The graph is compiled once, although all positions and angles change in each step.

TARGET = 8


@torch.compile(fullgraph=True, backend="aot_eager")
def objective(batch: Tensor, raw: Tensor, positions: Tensor, angles: Tensor) -> Tensor:
    scores = model(apply(batch, raw.sigmoid(), positions, angles))
    return -scores.log_softmax(-1)[:, TARGET].mean()


raw = torch.zeros(1, SIDE, SIDE, requires_grad=True)
optimizer = torch.optim.Adam([raw], 0.1)
losses = []
for _ in tqdm(range(120), desc="patch"):
    chosen = train[torch.randint(len(train), (64,))]
    loss = objective(images[chosen], raw, *draw(64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
patch = raw.sigmoid().detach()

# %%
# What the classifier sees
# ------------------------
# On images that neither the classifier nor the patch was trained with, at new positions and angles:


def seen_as_target(patch: Tensor) -> float:
    others = test[labels[test] != TARGET]
    torch.manual_seed(1)
    patched = apply(images[others], patch, *draw(len(others)))
    return (model(patched).argmax(-1) == TARGET).double().mean().item()


noise = torch.rand(1, SIDE, SIDE)
print(f"seen as an {TARGET}, with noise:     {seen_as_target(noise):.0%}")
print(f"seen as an {TARGET}, with the patch: {seen_as_target(patch):.0%}")

# sphinx_gallery_thumbnail_number = 2

shown = test[:8]
torch.manual_seed(3)
patched = apply(images[shown], patch, *draw(8))
figure, axes = plt.subplots(2, 8, figsize=(10, 3), layout="constrained")
for line, batch in zip(axes, (images[shown], patched), strict=True):
    for ax, image, guess in zip(line, batch, model(batch).argmax(-1), strict=True):
        ax.imshow(image[0], cmap="gray", vmin=0, vmax=1)
        ax.set_title(f"seen as {guess}", fontsize=9)
        ax.axis("off")

# %%
# The patch, and the loss while it was trained:

figure, axes = plt.subplots(
    1, 2, figsize=(8, 2.6), layout="constrained", width_ratios=(1, 3)
)
axes[0].imshow((patch * disk)[0], cmap="gray", vmin=0, vmax=1)
axes[0].axis("off")
axes[1].plot(losses, color="#2a7fd4")
axes[1].set(xlabel="step", ylabel="loss")
axes[1].spines[["top", "right"]].set_visible(False)
