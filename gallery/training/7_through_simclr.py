r"""
Gradients through a whole pipeline
==================================

Find the image that a classifier sees best under all of SimCLR's views, by gradient descent through the views.

If the score of a class is maximized over the pixels of an image, the result looks like noise: it uses every weakness of the
network. An image whose *views* all have a high score cannot, so it shows what the network looks for (Olah et al., *Feature
Visualization*, 2017). The gradient has to pass through the augmentation: SimCLR's crop, flip, color jitter, grayscale and
blur, with draws for each sample.
"""

# %%
# A classifier of colored digits
# ------------------------------
# scikit-learn's digits, in a random color on another one.

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import Tensor

import imgops
from imgops import transforms as v2

SIZE = 32
digits = load_digits()
strokes = imgops.resize(
    torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16,
    (SIZE, SIZE),
    "bicubic",
).clamp(0, 1)
labels = torch.tensor(digits.target)


def colored(strokes: Tensor) -> Tensor:
    paper, ink = torch.rand(2, len(strokes), 3, 1, 1)
    return paper * 0.5 + strokes * (0.5 * (1 - paper) + 0.5 * ink)


simclr = v2.Compose(
    [
        v2.RandomResizedCrop(SIZE, scale=(0.6, 1.0)),
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(5)], p=0.5),
    ],
    per_sample=True,
)
torch.manual_seed(0)
shown = colored(strokes[:10])
figure, axes = plt.subplots(2, 10, figsize=(10, 2.4), layout="constrained")
for ax, image in zip(axes.flat, torch.cat([shown, simclr(shown)]), strict=True):
    ax.imshow(image.permute(1, 2, 0))
    ax.axis("off")

# %%
# Each digit and one of its views; a small network learns the digits.

from torch import nn
from torch.nn import functional as F
from tqdm.auto import tqdm

model = nn.Sequential(
    *(nn.Conv2d(3, 24, 3, 2, 1), nn.ReLU(), nn.Conv2d(24, 48, 3, 2, 1), nn.ReLU()),
    *(nn.Conv2d(48, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10)),
)
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for _ in tqdm(range(200), desc="train"):
    chosen = torch.randint(len(labels), (128,))
    loss = F.cross_entropy(model(colored(strokes[chosen])), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"accuracy {(model(colored(strokes)).argmax(1) == labels).float().mean():.3f}")

# %%
# Ten images, with and without views
# ----------------------------------
# The pixels are the parameters. Each step draws four views of each image; without views it shows the images themselves.

classes = torch.arange(10)


def searched(views: bool) -> Tensor:
    pixels = torch.zeros(10, 3, SIZE, SIZE).normal_(0, 0.01).requires_grad_()
    search = torch.optim.Adam([pixels], 0.05)
    for _ in tqdm(range(150), desc="with views" if views else "without"):
        images = torch.sigmoid(pixels)
        shown = simclr(images.repeat(4, 1, 1, 1)) if views else images
        loss = F.cross_entropy(model(shown), classes.repeat(4) if views else classes)
        search.zero_grad()
        loss.backward()
        search.step()
    return torch.sigmoid(pixels).detach()


torch.manual_seed(1)
found = {
    name: searched(views)
    for name, views in (("the image itself", False), ("its views", True))
}
figure, axes = plt.subplots(2, 10, figsize=(10, 2.4), layout="constrained")
for row, (name, images) in zip(axes, found.items(), strict=True):
    row[0].set_ylabel(name, fontsize=8)
    for ax, image in zip(row, images, strict=True):
        ax.imshow(image.permute(1, 2, 0))
        ax.set(xticks=[], yticks=[])

# %%
# Both rows have a loss near 0. Only the second one still has it under new views:

for name, images in found.items():
    views = simclr(images.repeat(20, 1, 1, 1))
    right = (model(views).argmax(1) == classes.repeat(20)).float().mean()
    print(
        f"optimized for {name}: {right:.2f} of 200 new views are classified as intended"
    )

# %%
# Time and memory
# ---------------
# This section runs the same pipeline in kornia, forward and backward, on 16 images of 128 x 128 pixels. A backward pass in
# imgops recomputes intermediate images, so autograd keeps few of them between the two passes. Hooks count the memory that it
# keeps.

import time

import kornia.augmentation as K

weights = torch.tensor([0.299, 0.587, 0.114])
theirs = K.AugmentationSequential(
    K.RandomResizedCrop((128, 128), scale=(0.6, 1.0)),
    K.ColorJitter(0.4, 0.4, 0.4, 0.1, p=1.0),
    K.RandomGrayscale(weights, p=0.2),
    K.RandomGaussianBlur((5, 5), (0.1, 2.0), p=0.5),
    data_keys=["input"],
)
ours = v2.Compose(
    [v2.RandomResizedCrop(128, scale=(0.6, 1.0)), *simclr.transforms[1:]],
    per_sample=True,
)
batch = torch.rand(16, 3, 128, 128, requires_grad=True)


def passes(augment: nn.Module) -> tuple[float, float]:
    """Return the milliseconds of both passes, and what is kept between them, in batches."""
    kept = {}

    def keep(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        augment(batch).sum().backward()
    times = []
    for seed in range(7):
        torch.manual_seed(seed)
        start = time.perf_counter()
        augment(batch).sum().backward()
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times)[3], sum(kept.values()) / batch.nbytes


for name, augment in (("imgops", ours), ("kornia", theirs)):
    milliseconds, images = passes(augment)
    print(f"{name}: {milliseconds:.0f} ms, {images:.1f} batches kept")

# %%
# ``python -m benchmarks.gradients`` compares every operator and transform that has a gradient, alone:
# :doc:`/benchmarks`.
