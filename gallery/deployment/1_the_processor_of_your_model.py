"""
The processor that your model was trained with
==============================================

Give a model of transformers the pixels that it was trained with, and count the answers that change.

A model of transformers comes with a processor, which resizes and normalizes its images. Most processors exist in two versions:
one uses PIL images, which models are trained with, and one uses tensors and torchvision. This page trains a small network on
the pixels of the PIL processor. It then tests the network on the pixels of the torchvision processor and on the exact pixels
of imgops.
"""

# %%
# Three processors
# ----------------
#
# The processor is Qwen2-VL's. It resizes with bicubic interpolation to sides that are multiples of 28, and returns patches
# of 14 x 14 pixels as rows of numbers. This page uses parts of six photographs.

import time

import matplotlib.pyplot as plt
import numpy as np
import torch
from skimage import data
from torch import Tensor, nn
from transformers import Qwen2VLImageProcessor, Qwen2VLImageProcessorPil

from imgops.integrations.transformers import exact

torch.manual_seed(0)
torch.set_num_threads(1)
processors = {
    "PIL": Qwen2VLImageProcessorPil(),
    "torchvision": Qwen2VLImageProcessor(),
    "imgops": exact(Qwen2VLImageProcessor()),
}
names = "astronaut", "chelsea", "coffee", "rocket", "immunohistochemistry"
photographs = [getattr(data, name)() for name in names]
photographs.insert(4, data.hubble_deep_field()[:500, :700])

figure, axes = plt.subplots(1, 6, figsize=(11, 1.8), layout="constrained")
for ax, photograph in zip(axes, photographs, strict=True):
    ax.imshow(photograph)
    ax.axis("off")

# %%
# A small network
# ---------------
#
# The network learns which photograph a patch was cut from. A patch comes from any position, and has sides of
# 99 to 125 pixels, which become 112. The patches from the left half of each photograph are for training, and
# those from the right half are for testing.

# sphinx_gallery_thumbnail_number = 2


def patches(count: int, half: int, seed: int) -> tuple[list[Tensor], Tensor]:
    """Cut patches ``(3, H, W)`` from one half of the photographs, and return them with the numbers of the photographs."""
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, len(photographs), count)
    found = []
    for label in labels:
        picture = photographs[label]
        middle = picture.shape[1] // 2
        picture = picture[:, :middle] if half == 0 else picture[:, middle:]
        high, wide = draws.integers(99, 126, 2)
        top, left = draws.integers(
            0, (picture.shape[0] - high, picture.shape[1] - wide)
        )
        patch = picture[top : top + high, left : left + wide]
        found.append(torch.from_numpy(np.ascontiguousarray(patch.transpose(2, 0, 1))))
    return found, torch.from_numpy(labels)


def rows(name: str, images: list[Tensor]) -> Tensor:
    """Return 64 rows for each image: three channels of two equal frames of 14 x 14 pixels."""
    made = processors[name](images, return_tensors="pt")
    return made.pixel_values.reshape(len(images), 64, 1176)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Sequential(
            nn.Linear(1176, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU()
        )
        self.answer = nn.Linear(128, len(photographs))

    def forward(self, x: Tensor) -> Tensor:
        each = self.embed(x)
        return self.answer(torch.cat([each.mean(1), each.amax(1)], 1))


images, labels = patches(1500, half=0, seed=0)
seen = rows("PIL", images)
network = Network()
optimizer = torch.optim.Adam(network.parameters(), 1e-3)
for _ in range(300):
    at = torch.randint(0, len(seen), (64,))
    loss = nn.functional.cross_entropy(network(seen[at]), labels[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
# The same patches, three times
# -----------------------------

test, wanted = patches(2500, half=1, seed=1)
inputs = {name: rows(name, test) for name in processors}
with torch.no_grad():
    answers = {name: network(x) for name, x in inputs.items()}
deviation = torch.tensor(processors["PIL"].image_std).reshape(3, 1, 1, 1)
apart = {
    name: ((x - inputs["PIL"]).reshape(-1, 64, 3, 2, 14, 14) * deviation * 255).abs()
    for name, x in inputs.items()
}
chances = {name: answer.softmax(1) for name, answer in answers.items()}
print(
    "              accuracy  changed answers  a probability by  values that differ  by up to"
)
for name, answer in answers.items():
    right = (answer.argmax(1) == wanted).double().mean().item()
    changed = int((answer.argmax(1) != answers["PIL"].argmax(1)).sum())
    moved = (chances[name] - chances["PIL"]).abs().max().item()
    differ = (apart[name] > 0.01).double().mean().item()
    print(
        f"{name:12} {right:9.2%} {changed:8} of {len(test)} {moved:17.2%}"
        f" {differ:19.1%} {apart[name].max():9.2f} levels"
    )

# %%
# The torchvision pixels differ by up to 15 levels, but few answers of this network change, if any: its training made it
# robust to such differences, and its accuracy does not reveal them. They matter if results must be reproduced, if a
# threshold was tuned on a probability, if a model reads small print, and if you compare two programs that serve the same
# model. With imgops' pixels no answer changes.
#
# Where pixels differ
# -------------------
#
# The pictures show the patches that differ the most: first the result of PIL's processor, and below it the
# differences between the two other processors and PIL's, in levels of 255.


def picture(of_rows: Tensor) -> Tensor:
    """Put the 64 patches of an image together: blocks of 2 x 2 patches, row by row."""
    blocks = of_rows[:, :, 0].reshape(4, 4, 2, 2, 3, 14, 14)
    return blocks.permute(4, 0, 2, 5, 1, 3, 6).reshape(3, 112, 112)


mean = torch.tensor(processors["PIL"].image_mean).reshape(3, 1, 1, 1)
colors = inputs["PIL"].reshape(-1, 64, 3, 2, 14, 14) * deviation + mean
order = apart["torchvision"].flatten(1).mean(1).argsort(descending=True)
figure, axes = plt.subplots(3, 6, figsize=(11, 5.6), layout="constrained")
for column, index in zip(axes.T, order[:600:100].tolist(), strict=True):
    column[0].imshow(picture(colors[index]).clamp(0, 1).permute(1, 2, 0))
    high, wide = test[index].shape[1:]
    column[0].set_title(f"from {high} x {wide}", fontsize=9)
    for ax, name in zip(column[1:], ("torchvision", "imgops"), strict=True):
        shown = ax.imshow(
            picture(apart[name][index]).amax(0), cmap="magma", vmin=0, vmax=2
        )
        share = (apart[name][index] > 0.01).double().mean()
        ax.set_title(f"{share:.0%} differ", fontsize=9)
for ax in axes.flat:
    ax.set_xticks([])
    ax.set_yticks([])
for ax, name in zip(axes[:, 0], processors, strict=True):
    ax.set_ylabel(name)
figure.colorbar(shown, ax=axes[1:], shrink=0.8, label="levels")

# %%
# Speed
# -----
#
# These are the times for a batch of eight photographs of 512 x 512, on one thread of the machine that built this page. The
# :doc:`page of the processors </transformers>` has timings of fourteen models.

batch = [torch.from_numpy(data.astronaut()).permute(2, 0, 1).contiguous()] * 8
for name, processor in processors.items():
    times = []
    for _ in range(9):
        start = time.perf_counter()
        processor(batch, return_tensors="pt")
        times.append(time.perf_counter() - start)
    print(f"{name:12} {1000 * sorted(times)[4]:6.1f} ms for eight photographs")
