"""
One augmentation, five ways
===========================

Run one augmentation in five ways, and get the same bits each time.

This page makes the same four draws image by image in eager mode, for a whole batch at once, in one compiled graph, from an
exported program, and in two worker processes. So you can try an augmentation in one way and use it in another.
"""

# %%
# The augmentation
# ----------------
# Nothing in the pipeline says how it will run. ``per_sample=True`` gives each image of a batch its own draws.

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from imgops import transforms as v2


def augmentation(**options: bool) -> v2.Compose:
    return v2.Compose(
        [
            v2.RandomResizedCrop(160, scale=(0.3, 1.0)),
            v2.RandomRotation(25, interpolation=v2.InterpolationMode.BILINEAR),
            v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        ],
        **options,
    )


photo = torch.from_numpy(data.chelsea().copy()).permute(2, 0, 1)[..., 40:340]
batch = photo.expand(4, -1, -1, -1).contiguous()

# %%
# 1. Eager, image by image
# ------------------------
# ``seeded`` makes the draws depend only on a key. Here the key is the epoch and the number of the image.

keys = [(0, number) for number in range(4)]
eager = torch.stack([v2.seeded(augmentation(), key)(photo) for key in keys])

fig, axes = plt.subplots(1, 5, figsize=(10, 2.2), layout="constrained")
for axis, image in zip(axes, (photo, *eager), strict=True):
    axis.imshow(image.permute(1, 2, 0))
    axis.axis("off")
axes[0].set_title("the photograph")
plt.show()

# %%
# 2. Each image of a batch
# ------------------------
# One call of the pipeline draws for all four images, and calls one operator for each step.

each = augmentation(per_sample=True)
print(torch.equal(v2.seeded(each, keys)(batch), eager))

# %%
# 3. In one graph
# ---------------
# New draws need at most two compilations. (``backend="aot_eager"`` needs no C++ compiler.)

graph = torch.compile(each, fullgraph=True, backend="aot_eager")
print(torch.equal(v2.seeded(graph, keys)(batch), eager))

# %%
# 4. From an exported program
# ---------------------------
# The exported program also draws: one node samples the parameters of the whole pipeline.


class Augmented(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = each

    def forward(self, images: Tensor) -> Tensor:
        return self.steps(images)


program = torch.export.export(Augmented(), (batch,))
names = [str(node.target) for node in program.graph.nodes]
print([name for name in names if name.startswith("imgops")])
print(torch.equal(v2.seeded(program.module(), keys)(batch), eager))

# %%
# 5. In two processes
# -------------------
# Each worker process has its own generator, so the draws usually change with the number of workers. Draws that depend only
# on a key do not.


class Photographs(Dataset):
    def __len__(self) -> int:
        return len(keys)

    def __getitem__(self, number: int) -> Tensor:
        return v2.seeded(augmentation(), keys[number])(photo)


loader = DataLoader(Photographs(), batch_size=2, num_workers=2)
print(torch.equal(torch.cat(list(loader)), eager))
