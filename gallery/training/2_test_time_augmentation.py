"""
Test-time augmentation
======================

Average the maps that a network computes from many views of one photograph.

The network gets one photograph many times, mirrored, cropped and scaled. ``invert`` takes its maps back to the photograph, and
their mean is better than a single map.
"""

# %%
# The photograph
# --------------

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor, nn

from imgops import transforms as v2

photo = torch.from_numpy(data.chelsea().copy()).permute(2, 0, 1)
photo = photo[..., :296, 40:408].float() / 255
figure, ax = plt.subplots(figsize=(4, 3), layout="constrained")
ax.imshow(photo.permute(1, 2, 0))
ax.axis("off")

# %%
# A small network
# ---------------
# Its fixed layers find edges: eight filters respond to edges of a smoothed image, a pooling layer reduces the map to
# an eighth of the image's size, and a last layer adds the channels. Like many networks it returns a coarse map. Here it
# is repeated to the size of the input, so that each value fills a block of 8 x 8 pixels.

torch.manual_seed(0)
edges = torch.tensor(
    [
        [[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]],
        [[-1.0, -2, -1], [0, 0, 0], [1, 2, 1]],
        [[0.0, 1, 2], [-1, 0, 1], [-2, -1, 0]],
        [[2.0, 1, 0], [1, 0, -1], [0, -1, -2]],
    ]
)


def network(pool: nn.Module, stride: int) -> nn.Sequential:
    first = nn.Conv2d(3, 8, 3, padding=1, padding_mode="replicate", bias=False)
    last = nn.Conv2d(8, 1, 1, bias=False)
    with torch.no_grad():
        first.weight.copy_(torch.cat([edges, -edges])[:, None] / 3)
        last.weight.fill_(0.25)
    smooth = nn.AvgPool2d(5, 1, padding=2, count_include_pad=False)
    repeat = nn.Upsample(scale_factor=stride)
    return nn.Sequential(smooth, first, nn.ReLU(), pool, last, repeat)


coarse = network(nn.AvgPool2d(8), stride=8)

# %%
# There and back
# --------------
# ``sample`` draws the parameters, ``apply`` changes the photograph, and ``invert`` brings the map back. A crop shows
# only a part of the photograph. ``with_known=True`` also returns the pixels that it shows, so that the mean of each
# pixel is that of the views that show it.

views = v2.Compose(
    [
        v2.RandomHorizontalFlip(),
        v2.RandomVerticalFlip(),
        v2.RandomResizedCrop((256, 320), scale=(0.6, 0.9), ratio=(1.1, 1.4)),
    ]
)


@torch.no_grad()
def average(image: Tensor, count: int) -> tuple[Tensor, Tensor]:
    # The first view is the photograph itself.
    total, times = coarse(image[None])[0], torch.ones(image.shape[-2:])
    for _ in range(count):
        params = views.sample(image)
        view = views.apply(image, params)
        back, known = views.invert(coarse(view[None])[0], params, with_known=True)
        total, times = total + back, times + known
    return total / times, times


mean, times = average(photo, 48)
print(f"each pixel is in {int(times.min())} to {int(times.max())} of 49 views")

# %%
# A comparison
# ------------
# The same network without a stride computes a value for every pixel, which takes more time and memory in a large
# network. The mean of the views is nearer to it than one map.

every = network(nn.AvgPool2d(9, 1, padding=4, count_include_pad=False), stride=1)
with torch.no_grad():
    one, dense = coarse(photo[None])[0], every(photo[None])[0]
    for name, found in (("one view", one), ("49 views", mean)):
        print(f"{name}: mean difference {(found - dense).abs().mean():.4f}")

# sphinx_gallery_thumbnail_number = 2

fig, axes = plt.subplots(1, 4, figsize=(10, 2.4), layout="constrained")
titles = ("the photograph", "one view", "49 views", "all pixels")
for axis, title, picture in zip(
    axes, titles, (photo.permute(1, 2, 0), one[0], mean[0], dense[0]), strict=True
):
    axis.imshow(picture, vmin=0, vmax=float(dense.max()))
    axis.set_title(title)
    axis.axis("off")
plt.show()

# %%
# A batch of views
# ----------------
# With ``per_sample=True`` the views are one batch, and each has draws of its own. The network and the way back take one
# call.

each = v2.Compose(list(views.transforms), per_sample=True)
batch = photo.expand(8, -1, -1, -1)
params = each.sample(batch)
with torch.no_grad():
    maps, known = each.invert(
        coarse(each.apply(batch, params)), params, with_known=True
    )
together = (maps * known[:, None]).sum(0) / known.sum(0).clamp(min=1)

fig, axes = plt.subplots(2, 4, figsize=(10, 4.2), layout="constrained")
for axis, one_map in zip(axes.flat, (*maps[:7], together), strict=True):
    axis.imshow(one_map[0], vmin=0, vmax=float(dense.max()))
    axis.axis("off")
axes.flat[-1].set_title("the mean of all eight")
plt.show()
