"""
A learned policy
================

Learn the strengths of ten transforms by gradient descent instead of a search.

AutoAugment searched for the strengths of a policy with thousands of training runs. If a pipeline is differentiable in its
strengths, no search is necessary. Augmented images should look like the images that the model will see, so we minimize the
distance between the two sets of images; its gradient reaches the strengths through the pixels. This is the idea of Faster
AutoAugment (Hataya et al., 2020). This page applies it to ten transforms, with a draw for each sample.
"""

# %%
# Clean digits and transformed digits
# -----------------------------------
#
# The training digits are clean. The digits that the classifier will meet are rotated and shifted and have a
# different contrast; we do not know by how much. We have a few hundred of them.

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy, softplus
from tqdm.auto import tqdm

import imgops
from imgops.transforms import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
images = imgops.resize(images, (16, 16), "bicubic").clamp(0, 1) * 0.8 + 0.1
labels = torch.tensor(digits.target)
train, known, test = torch.randperm(1797).split([900, 400, 497])


def show(batch, title):
    figure, axes = plt.subplots(1, 10, figsize=(11, 1.6), layout="constrained")
    for ax, image in zip(axes, batch, strict=True):
        ax.imshow(image[0], cmap="gray", vmin=0, vmax=1)
        ax.axis("off")
    figure.suptitle(title, x=0.005, ha="left")


show(images[:10], "clean digits")

# %%
# Ten transforms
# --------------
#
# Each transform has one strength. For each sample we draw a uniformly distributed number between -1 and 1. Its product with
# the strength sets the transform's parameter: an angle, a factor or a sigma, for example.

STEPS = {
    "rotate": lambda x, v: F.rotate(x, 45 * v, "bilinear", fill=0.1),
    "shear": lambda x, v: F.affine(x, 0.0, [0, 0], 1.0, [45 * v, 0.0], "bilinear", 0.1),
    "shift x": lambda x, v: F.affine(
        x, 0.0, [8 * v, 0.0], 1.0, [0.0, 0.0], "bilinear", 0.1
    ),
    "shift y": lambda x, v: F.affine(
        x, 0.0, [0.0, 8 * v], 1.0, [0.0, 0.0], "bilinear", 0.1
    ),
    "zoom": lambda x, v: F.affine(
        x, 0.0, [0, 0], 1 + 0.6 * v, [0.0, 0.0], "bilinear", 0.1
    ),
    "blur": lambda x, v: F.gaussian_blur(
        x, [7, 7], (0.1 + 2 * v.abs())[:, None].expand(-1, 2)
    ),
    "brightness": lambda x, v: F.adjust_brightness(x, 1 + v),
    "contrast": lambda x, v: F.adjust_contrast(x, 1 + v),
    "gamma": lambda x, v: imgops.adjust_gamma(x.clamp(1e-3, 1), 1 + v),
    "noise": lambda x, v: imgops.shot_noise(x, torch.randn_like(x), 0.2 * v.abs()),
}


def augment(x, strengths):
    for strength, step in zip(strengths, STEPS.values(), strict=True):
        x = step(x, strength * (torch.rand(len(x)) * 2 - 1))
    return x


hidden = torch.tensor([0.7, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0])
met = augment(images, hidden)
show(met[:10], "the same digits, as the classifier will meet them")

# %%
# A distance between two sets of digits
# -------------------------------------
#
# The energy distance compares pairs of digits: it is 0 if pairs across the two sets are as far apart as pairs within them. We
# compare only digits of the same class.


def apart(a, b, of_a, of_b):
    distances = torch.cdist(a.flatten(1), b.flatten(1))
    return distances[of_a[:, None] == of_b].mean()


def energy(a, b, of_a, of_b):
    within = apart(a, a, of_a, of_a) + apart(b, b, of_b, of_b)
    return 2 * apart(a, b, of_a, of_b) - within


raw = torch.full((10,), -1.5, requires_grad=True)
optimizer, history = torch.optim.Adam([raw], 0.04), []
for _ in tqdm(range(250), desc="policy"):
    ours, theirs = (part[torch.randint(len(part), (128,))] for part in (train, known))
    seen = augment(images[ours], softplus(raw))
    optimizer.zero_grad()
    energy(seen, met[theirs], labels[ours], labels[theirs]).backward()
    optimizer.step()
    history.append(softplus(raw).detach())
learned = torch.stack(history[-50:]).mean(0)

# %%
# What was learned
# ----------------
#
# The rings show the hidden strengths. Where a hidden strength is 0, the learned strength stays slightly above 0, because one
# batch cannot distinguish such a small strength from chance; a blur of half a pixel, for example, is hardly visible.

# sphinx_gallery_thumbnail_number = 3

figure, axes = plt.subplots(
    1, 2, figsize=(11, 3.6), width_ratios=[1.2, 1], layout="constrained"
)
axes[0].bar(list(STEPS), learned, color="#2a7fd4", label="learned")
axes[0].scatter(
    list(STEPS), hidden, s=90, facecolors="none", edgecolors="black", label="hidden"
)
axes[0].tick_params(axis="x", rotation=50)
axes[0].set(ylabel="strength")
axes[0].legend(frameon=False)
for name, values in zip(STEPS, torch.stack(history).T, strict=True):
    strong = hidden[list(STEPS).index(name)] > 0
    axes[1].plot(
        values, color=None if strong else "#bbbbbb", label=name if strong else None
    )
axes[1].set(xlabel="step", title="strengths")
axes[1].legend(frameon=False)

# %%
# To see what the policy is worth, train a classifier on clean digits, without augmentation and with three policies. Then test
# it on transformed digits that it did not see.


def accuracy(strengths, steps=250):
    torch.manual_seed(1)
    parts = [
        nn.Conv2d(1, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1),
    ]
    model = nn.Sequential(
        *parts, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(768, 10)
    )
    weights = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(steps):
        batch = train[torch.randint(len(train), (128,))]
        weights.zero_grad()
        cross_entropy(
            model(augment(images[batch], strengths)), labels[batch]
        ).backward()
        weights.step()
    return (model(met[test]).argmax(1) == labels[test]).float().mean().item()


policies = {
    "none": torch.zeros(10),
    "0.3 each": torch.full((10,), 0.3),
    "learned": learned,
    "hidden": hidden,
}
for name, strengths in policies.items():
    print(f"{name:10} {accuracy(strengths):.1%} of the digits that are met")
