"""
Train a network
===============

Train a small network with an augmentation inside the compiled training step.

Workers of a ``DataLoader`` load the images. The compiled training step augments them, with separate parameters for each image,
and runs the network. In the training images, the shapes are upright and centered; in the test images, they vary in angle,
position and size. Only augmentation can close this gap.
"""

# %%
# The data
# --------
# The images show four shapes, which a function draws:

import math

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

from imgops import transforms as v2

torch.manual_seed(0)
torch.set_num_threads(1)
NAMES = ("disk", "square", "triangle", "cross")


def inside(label: int, x: Tensor, y: Tensor) -> Tensor:
    """Return which of the positions ``(x, y)`` lie inside a shape around the origin."""
    far = (x * x + y * y).sqrt()
    return (
        far < 1,
        (x.abs() < 0.85) & (y.abs() < 0.85),
        (y < 0.6) & (y > 1.9 * x.abs() - 1),
        ((x.abs() < 0.3) | (y.abs() < 0.3)) & (far < 1.1),
    )[label]


y, x = torch.meshgrid(*[torch.linspace(-1.7, 1.7, 64)] * 2, indexing="ij")
figure, axes = plt.subplots(1, 4, figsize=(6, 1.8), layout="constrained")
for label, ax in enumerate(axes):
    ax.imshow(inside(label, x, y), cmap="gray")
    ax.set_title(NAMES[label])
    ax.axis("off")

# %%
# This dataset draws its images instead of reading files: the shapes have random bright colors on a dark background, with
# noise. In the training images, all shapes are upright, centered and the same size. In the test images, they are rotated,
# moved, and smaller or larger.

# sphinx_gallery_thumbnail_number = 2


class Shapes(Dataset):
    def __init__(self, count: int, seed: int, moved: bool) -> None:
        self.count, self.seed, self.moved = count, seed, moved

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        generator = torch.Generator().manual_seed(self.seed + index)
        between = lambda low, high: (
            low + (high - low) * torch.rand((), generator=generator).item()
        )
        angle, left, up, size = 0.0, 0.0, 0.0, 9.0
        if self.moved:
            angle, size = between(0, 2 * math.pi), between(6, 11)
            left, up = between(-5, 5), between(-5, 5)
        y, x = torch.meshgrid(
            torch.arange(32) - 15.5 - up, torch.arange(32) - 15.5 - left, indexing="ij"
        )
        c, s = math.cos(angle) / size, math.sin(angle) / size
        x, y = c * x + s * y, c * y - s * x
        label = index % len(NAMES)
        paper, ink = torch.rand(2, 3, 1, 1, generator=generator)
        image = torch.where(inside(label, x, y), 0.5 + 0.5 * ink, 0.3 * paper)
        image = image + 0.05 * torch.randn(3, 32, 32, generator=generator)
        return (image.clamp(0, 1) * 255).byte(), label


train, test = Shapes(400, 0, moved=False), Shapes(400, 10_000, moved=True)
figure, axes = plt.subplots(2, 10, figsize=(11, 2.5), layout="constrained")
for row, dataset, title in zip(axes, (train, test), ("training", "test"), strict=True):
    for index, ax in enumerate(row):
        ax.imshow(dataset[index][0].permute(1, 2, 0))
        ax.axis("off")
    row[0].set_title(f"{title} images", loc="left")

# %%
# The augmentation
# ----------------
# The pipeline looks the same as in torchvision. With ``per_sample=True`` each image of a batch has its own
# angle, position, scale and colors. The images are uint8 until ``ToDtype``.

scale = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
augment = v2.Compose(
    [
        v2.RandomAffine(180, translate=(0.16, 0.16), scale=(0.65, 1.25), fill=40),
        v2.ColorJitter(0.2, 0.2, 0.2),
        *scale,
    ],
    per_sample=True,
)
prepare = v2.Compose(scale)
batch = torch.stack([train[index][0] for index in range(10)])
views = v2.Compose(augment.transforms[:2], per_sample=True)(batch)
figure, axes = plt.subplots(1, 10, figsize=(11, 1.4), layout="constrained")
for ax, view in zip(axes, views, strict=True):
    ax.imshow(view.permute(1, 2, 0))
    ax.axis("off")
figure.suptitle("ten training images, augmented", x=0.005, ha="left")

# %%
# The network
# -----------
# This is a residual network with three blocks.


class Block(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, 2, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(after) for _ in range(2))
        self.shortcut = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(before, after, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + self.shortcut(x)).relu()


def network() -> nn.Module:
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(NAMES)))
    return nn.Sequential(Block(3, 16), Block(16, 32), Block(32, 64), *head)


# %%
# The training
# ------------
# One compiled function contains the augmentation, the network and the loss. Each batch has 50 images, so there is one graph.
# :doc:`The recipe </recipes/classification>` says what to do if the last batch is smaller. The backend ``aot_eager`` needs
# no C++ compiler; leave it out to let PyTorch's inductor generate code for the network.


def accuracy(model: nn.Module) -> float:
    model.eval()
    with torch.inference_mode():
        right = [
            (model(prepare(x)).argmax(1) == y).float() for x, y in DataLoader(test, 100)
        ]
    model.train()
    return torch.cat(right).mean().item()


def training(pipeline: nn.Module, epochs: int) -> tuple[nn.Module, list[float]]:
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(
        train,
        batch_size=50,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 8e-3, total_steps=epochs * len(loader)
    )

    @torch.compile(fullgraph=True, backend="aot_eager")
    def loss_of(images: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(pipeline(images)), labels)

    accuracies = [accuracy(model)]
    for _ in tqdm(range(epochs)):
        for images, labels in loader:
            loss = loss_of(images, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        accuracies.append(accuracy(model))
    return model, accuracies


torch._dynamo.utils.counters.clear()
model, augmented = training(augment, 20)
print("graphs:", torch._dynamo.utils.counters["stats"]["unique_graphs"])
_, plain = training(prepare, 20)

# %%
# The result
# ----------
# Without augmentation, the network has learned only upright, centered shapes, and fails on the others.

print(f"test accuracy without augmentation: {plain[-1]:.1%}")
print(f"test accuracy with augmentation:    {augmented[-1]:.1%}")
figure, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
for accuracies, color, name in (
    (augmented, "#2a7fd4", "with augmentation"),
    (plain, "gray", "without"),
):
    ax.plot(accuracies, color=color)
    ax.annotate(
        name,
        (len(accuracies) - 1, accuracies[-1]),
        (6, 0),
        textcoords="offset points",
        color=color,
        va="center",
    )
ax.axhline(1 / len(NAMES), color="gray", linewidth=0.6, linestyle=":")
ax.set(xlabel="epoch", ylabel="test accuracy", ylim=(0, 1.02), xlim=(0, 24))
ax.set_xticks(range(0, 21, 5))
ax.spines[["top", "right"]].set_visible(False)
