"""
The same pixels everywhere
==========================

See how much the bilinear resizes of four libraries differ, and how that changes a prediction.

"Resize to a quarter, bilinear" gives a different picture in every library. imgops gives PIL's or OpenCV's picture, bit-exact;
you choose which.
"""

# %%
# One photograph, two resizes
# ---------------------------
# PIL averages all pixels that an output pixel covers. OpenCV reads four of them, so fine lines become jagged.

import cv2
import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image
from skimage import data
from torch import Tensor, nn
from torch.nn import functional as F

import imgops


def by_pil(x: Tensor, size: int) -> Tensor:
    pictures = [Image.fromarray(plane.numpy()) for plane in x]
    small = [p.resize((size, size), Image.Resampling.BILINEAR) for p in pictures]
    return torch.from_numpy(np.stack([np.asarray(p) for p in small]))


def by_opencv(x: Tensor, size: int) -> Tensor:
    return torch.from_numpy(np.stack([cv2.resize(p.numpy(), (size, size)) for p in x]))


photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1).contiguous()
figure, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for ax, way in zip(axes, (by_pil, by_opencv), strict=True):
    ax.imshow(way(photo, 128)[:, 10:60, 35:85].permute(1, 2, 0))
    ax.set_title("PIL" if way is by_pil else "OpenCV")
    ax.axis("off")

# %%
# Six resizes
# -----------
# ``interpolate`` is PyTorch's own resize. torchvision and kornia call it for tensors.


def by_torch(x: Tensor, size: int, smooth: bool = False) -> Tensor:
    small = F.interpolate(x[None].float(), size, mode="bilinear", antialias=smooth)
    return small[0].round().clamp(0, 255).to(torch.uint8)


ways = {
    "PIL": by_pil,
    "OpenCV": by_opencv,
    "torch interpolate": by_torch,
    "interpolate, antialias": lambda x, n: by_torch(x, n, smooth=True),
    "imgops": lambda x, n: imgops.resize(x, (n, n)),
    "imgops, antialias=False": lambda x, n: imgops.resize(x, (n, n), antialias=False),
}

# %%
# The lower pictures show how far each result is from PIL's, in levels of 255. The visible difference comes from
# antialiasing. The remaining difference is rounding, which matters when you compare bits.

# sphinx_gallery_thumbnail_number = 2

small = {name: way(photo, 128) for name, way in ways.items()}
figure, axes = plt.subplots(2, 6, figsize=(13, 4.7), layout="constrained")
for column, (name, picture) in zip(axes.T, small.items(), strict=True):
    apart = (picture.int() - small["PIL"].int()).abs()
    column[0].imshow(picture[:, 10:60, 35:85].permute(1, 2, 0), interpolation="nearest")
    column[0].set_title(name, fontsize=10)
    shown = column[1].imshow(apart.amax(0), cmap="magma", vmin=0, vmax=60)
    column[1].set_title(
        f"most {apart.max()}, {100 * (apart > 0).double().mean():.1f} % differ",
        fontsize=9,
    )
for ax in axes.flat:
    ax.axis("off")
figure.colorbar(shown, ax=axes[1], shrink=0.9)

# %%
print("imgops is PIL:   ", torch.equal(small["imgops"], small["PIL"]))
print(
    "imgops is OpenCV:", torch.equal(small["imgops, antialias=False"], small["OpenCV"])
)

# %%
# A classifier of textures
# ------------------------
# We train a classifier of brick, grass and gravel, at a quarter of their size. The training pipeline uses PIL, as most do.

textures = [
    torch.from_numpy(np.asarray(getattr(data, name)()))
    for name in ("brick", "grass", "gravel")
]


def patches(count: int, rows: range, way) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows.start)
    views, labels = [], torch.arange(3).repeat_interleave(count)
    for texture in textures:
        for _ in range(count):
            left, top = torch.rand(2, generator=generator).tolist()
            left, top = int(left * 384), int(rows.start + top * (len(rows) - 128))
            patch = imgops.crop(texture[None], (left, top, left + 128, top + 128))
            views.append(way(patch, 32).flatten().float())
    views = torch.stack(views)
    views = (views - views.mean(1, keepdim=True)) / views.std(1, keepdim=True)
    return views.reshape(-1, 1, 32, 32), labels


torch.manual_seed(0)
model = nn.Sequential(
    *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.Conv2d(16, 16, 5, stride=2), nn.ReLU()),
    *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3)),
)
images, labels = patches(150, range(320), by_pil)
optimizer = torch.optim.Adam(model.parameters(), 5e-3)
for _ in range(200):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
# The same model, other pixels
# ----------------------------
# Now each library resizes patches from another part of the same photographs, for a model with the same weights:

right = {}
for name, way in ways.items():
    views, labels = patches(100, range(320, 512), way)
    with torch.no_grad():
        hits = model(views).argmax(-1) == labels
    right[name] = 100 * hits.double().mean().item()

figure, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
colors = ["#2a7fd4" if name.startswith("imgops") else "#e08a2e" for name in ways]
bars = ax.barh(list(right), list(right.values()), color=colors)
ax.bar_label(bars, [f"{value:.1f} %" for value in right.values()], padding=3)
ax.set(xlabel="patches that are recognized", xlim=(0, 110))
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)

# %%
# The model recognizes fewer patches if another library's resize makes its inputs. Serve a model with the pixels
# that it was trained on.
