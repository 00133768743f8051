r"""
Differentiable augmentation in training
=======================================

Learn the strength of rotations and shifts by gradient descent, together with a classifier.

How strong should an augmentation be? If it is too weak, the model learns the pose of its training set; if it is too strong,
a 6 becomes a 9. This page learns the strength together with a small classifier of scikit-learn's digits (after Benton et al.,
*Learning Invariances in Neural Networks*, 2020). This needs only a warp that takes an angle and a shift for each sample, and
has a gradient with respect to them.
"""

# %%
# A warp for each sample
# ----------------------
# ``strength`` holds two numbers: degrees and pixels. The angle and the shifts of each image are drawn
# uniformly within these ranges. The draws have no gradient, but the strengths do, through the matrix.

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

import imgops

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
images = imgops.resize(images, (16, 16), "bicubic").clamp(0, 1)
labels = torch.tensor(digits.target)
train, test = torch.randperm(1797, generator=torch.manual_seed(0)).split([600, 1197])


def augment(batch: Tensor, strength: Tensor) -> Tensor:
    turn, x, y = torch.rand(3, len(batch)) * 2 - 1
    return imgops.affine(batch, strength[0] * turn, (strength[1] * x, strength[1] * y))


torch.manual_seed(1)
figure, axes = plt.subplots(1, 8, figsize=(10, 1.5), layout="constrained")
for ax, view in zip(axes, augment(images[:8], torch.tensor([30.0, 2.0])), strict=True):
    ax.imshow(view[0], cmap="gray_r")
    ax.axis("off")
figure.suptitle("rotated by up to 30 degrees, moved by up to 2 pixels", fontsize=10)

# %%
# Training
# --------
# The loss is the classifier's loss minus a small reward for strength. So the augmentation becomes as strong as it can while
# the digits can still be told apart.


def classifier() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(48 * 16, 10)),
    )


def learn(augments: bool, push: float = 0.2) -> tuple[nn.Module, dict[str, list]]:
    torch.manual_seed(1)
    model, raw = classifier(), torch.full((2,), -2.0, requires_grad=True)
    unit = torch.tensor([30.0, 2.0])  # what a strength of 1 means
    weights = torch.optim.Adam(model.parameters(), 2e-3)
    strengths = torch.optim.Adam([raw], 1e-2)
    history = {"loss": [], "strength": []}
    for _ in tqdm(range(700), desc="augmented" if augments else "not augmented"):
        chosen = train[torch.randint(len(train), (128,))]
        strength = F.softplus(raw) * unit
        batch = augment(images[chosen], strength) if augments else images[chosen]
        loss = F.cross_entropy(model(batch), labels[chosen])
        whole = loss - push * F.softplus(raw).sum() if augments else loss
        weights.zero_grad()
        strengths.zero_grad()
        whole.backward()
        weights.step()
        strengths.step()  # without augmentation there is no gradient to follow
        history["loss"].append(loss.item())
        history["strength"].append((F.softplus(raw) * unit).detach())
    return model, history


plain, plain_history = learn(augments=False)
model, history = learn(augments=True)

# %%
# What was learned
# ----------------

strengths = torch.stack(history["strength"])
degrees, pixels = strengths.unbind(-1)
smooth = lambda values: torch.tensor(values).unfold(0, 25, 1).mean(-1)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].semilogy(smooth(plain_history["loss"]), color="#e08a2e", label="not augmented")
axes[0].semilogy(smooth(history["loss"]), color="#2a7fd4", label="augmented")
axes[0].set(xlabel="step", title="loss")
axes[1].plot(degrees, color="#2a7fd4", label=f"rotation: ± {degrees[-1]:.0f}°")
axes[1].set(xlabel="step", title="strength", ylabel="degrees")
other = axes[1].twinx()
other.plot(pixels, color="#c9503c", label=f"shift: ± {pixels[-1]:.1f} pixels")
other.set(ylabel="pixels", ylim=(0, 1))
axes[0].legend(frameon=False)
axes[1].legend(handles=[*axes[1].lines, *other.lines], frameon=False)

# %%
# Compare the accuracy on the test set: for the original digits, turned digits, moved digits, and both.


@torch.no_grad()
def accuracy(network: nn.Module, strength: Tensor) -> float:
    torch.manual_seed(0)
    moved = augment(images[test], strength)
    return (network(moved).argmax(-1) == labels[test]).double().mean().item()


poses = {"as they are": torch.zeros(2), "turned ± 30°": torch.tensor([30.0, 0])}
poses |= {"moved ± 2 pixels": torch.tensor([0.0, 2]), "both": torch.tensor([30.0, 2])}
figure, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
for i, (name, network) in enumerate(
    (("without augmentation", plain), ("with what was learned", model))
):
    found = [100 * accuracy(network, s) for s in poses.values()]
    bars = ax.bar(
        [j + 0.4 * i for j in range(4)],
        found,
        0.38,
        color=("#e08a2e", "#2a7fd4")[i],
        label=name,
    )
    ax.bar_label(bars, [f"{f:.1f}" for f in found], padding=2, fontsize=9)
ax.set_xticks([j + 0.2 for j in range(4)], list(poses))
ax.set(ylabel="% right", ylim=(0, 118))
ax.legend(frameon=False, ncols=2, loc="upper right")

# %%
# These are ten training digits, and below them the classifier's inputs at the end of training:

# sphinx_gallery_thumbnail_number = 4

figure, axes = plt.subplots(2, 10, figsize=(11, 2.4), layout="constrained")
ten = torch.stack([images[train][labels[train] == d][0] for d in range(10)])
for row, shown in zip(axes, (ten, augment(ten, strengths[-1])), strict=True):
    for ax, image in zip(row, shown, strict=True):
        ax.imshow(image[0], cmap="gray_r")
        ax.axis("off")
