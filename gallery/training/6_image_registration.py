r"""
Image registration by gradient descent
======================================

Find the homography between two views by gradient descent through a warp.

Two views of one plane are related by a homography. :func:`imgops.warp_perspective` has an exact gradient with respect to its
matrix, so eight numbers and an optimizer are enough if the search proceeds from coarse to fine.
"""

# %%
# Two views
# ---------
# We make the second view with a known homography, so that we can check the answer. Then we change its brightness and add
# noise.

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor
from tqdm.auto import tqdm

import imgops

torch.manual_seed(0)
photo = torch.from_numpy(data.coffee()).permute(2, 0, 1)[:, :400, 100:500].float() / 255
truth = torch.tensor([[0.86, 0.19, 18.0], [-0.15, 0.93, 62.0], [-3e-4, 2e-4, 1.0]])
first = imgops.resize(photo, (256, 256))
shrink = torch.diag(torch.tensor([256 / 400, 256 / 400, 1.0]))
truth = shrink @ truth @ shrink.inverse()
second = imgops.warp_perspective(first, truth, interpolation="bicubic")
second = (
    imgops.adjust_brightness(second.clamp(0, 1), 0.9) + 0.02 * torch.randn_like(second)
).clamp(0, 1)

figure, axes = plt.subplots(1, 2, figsize=(6, 3.2), layout="constrained")
for ax, view in zip(axes, (first, second), strict=True):
    ax.imshow(view.permute(1, 2, 0))
    ax.axis("off")

# %%
# Eight numbers
# -------------
# The parameters are the positions, in pixels, that the four corners of the picture move to. All eight numbers
# have the same scale, which helps the optimizer. Solving a linear system gives the matrix for the four pairs
# of corners, with a gradient.

corners = torch.tensor([[0.0, 0], [255, 0], [255, 255], [0, 255]])


def homography(moved: Tensor) -> Tensor:
    (x, y), (u, v) = corners.T, moved.T
    one, zero = torch.ones(4), torch.zeros(4)
    rows = [torch.stack([x, y, one, zero, zero, zero, -u * x, -u * y], -1)]
    rows.append(torch.stack([zero, zero, zero, x, y, one, -v * x, -v * y], -1))
    found = torch.linalg.solve(torch.cat(rows), torch.cat([u, v]))
    return torch.cat([found, torch.ones(1)]).reshape(3, 3)


# %%
# Coarse to fine
# --------------
# A gradient is useful only if the displacement is smaller than the width of an edge. So we blur both views, strongly at
# first and then less and less. A warped mask shows where the warped view has pixels, and the loss uses only these pixels.

mask = torch.ones(1, 256, 256)
offset = torch.zeros(4, 2, requires_grad=True)
losses, states = [], [homography(corners)]
progress = tqdm(total=4 * 60, desc="registration")
for sigma, rate in ((12.0, 4.0), (6.0, 2.0), (2.0, 0.8), (0.7, 0.25)):
    size = 2 * round(3 * sigma) + 1
    source, target = (imgops.gaussian_blur(x, size, sigma) for x in (first, second))
    optimizer = torch.optim.Adam([offset], rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60, rate / 10)
    for _ in range(60):
        matrix = homography(corners + offset)
        warped = imgops.warp_perspective(source, matrix, interpolation="bilinear")
        inside = imgops.warp_perspective(
            mask, matrix, interpolation="bilinear"
        ).detach()
        gain = (target * inside).sum() / (warped * inside).sum().clamp(
            min=1
        )  # the brightness may differ
        loss = (
            (gain.detach() * warped - target).square() * inside
        ).sum() / inside.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.update()
    states.append(matrix.detach())
progress.close()

# %%
# Before, during, after
# ---------------------
# The pictures show the warped first view in red and the second view in cyan. The pictures are gray where the views agree.

# sphinx_gallery_thumbnail_number = 2

error = lambda m: (
    (_points(m, corners) - _points(truth, corners)).norm(dim=-1).mean().item()
)


def _points(matrix: Tensor, points: Tensor) -> Tensor:
    moved = torch.cat([points, torch.ones(len(points), 1)], -1) @ matrix.T
    return moved[:, :2] / moved[:, 2:]


figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for ax, i in zip(axes, (0, 1, 2, 4), strict=True):
    red = imgops.grayscale(
        imgops.warp_perspective(first, states[i], interpolation="bilinear")
    )
    cyan = imgops.grayscale(second)
    ax.imshow(torch.cat([red, cyan, cyan]).permute(1, 2, 0).clamp(0, 1))
    ax.set_title(
        f"{'before' if i == 0 else f'after level {i}'}: {error(states[i]):.2f} pixels"
    )
    ax.axis("off")

# %%
# At the end, the corners are within a small fraction of a pixel of their true positions.

figure, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.semilogy(losses, color="#2a7fd4")
for step in (60, 120, 180):
    ax.axvline(step, color="gray", linewidth=0.6)
ax.set(xlabel="step; at each line the views are blurred less", ylabel="loss")
ax.spines[["top", "right"]].set_visible(False)
print(f"mean error of the corners: {error(states[-1]):.3f} pixels")

# %%
# The flow follows
# ----------------
# The homography gives the optical flow from the first view to the second: how far, and in which direction, each pixel moves.
# Networks for optical flow are trained with augmented pairs, so the flow must move as the two images do. As
# ``annotations.Flow`` it follows: its pixels move, and a rotation turns its vectors, a resize scales them, and a flip
# negates a component. In the same way ``annotations.Camera`` follows, the matrix of a camera.

from torchvision import tv_tensors

from imgops import transforms as v2
from imgops.transforms.annotations import Flow

rows, columns = torch.meshgrid(torch.arange(256.0), torch.arange(256.0), indexing="ij")
pixels = torch.stack([columns, rows, torch.ones_like(rows)])
moved = torch.einsum("ij,jhw->ihw", truth, pixels)
flow = Flow(moved[:2] / moved[2:] - pixels[:2])

bilinear = v2.InterpolationMode.BILINEAR
augment = v2.Compose(
    [
        v2.RandomAffine((50, 50), scale=(1.5, 1.5), interpolation=bilinear),
        v2.RandomHorizontalFlip(p=1.0),
        v2.CenterCrop(170),
    ]
)
pair = tv_tensors.Image(first), tv_tensors.Image(second), flow
figure, axes = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
for line, (one, other, vectors) in zip(axes, (pair, augment(pair)), strict=True):
    side = one.shape[-1]
    start = torch.arange(15, side, side // 7)
    x, y = torch.meshgrid(start, start, indexing="xy")
    u, v = vectors[:, y, x]
    line[0].imshow(one.permute(1, 2, 0))
    line[0].quiver(x, y, u, v, angles="xy", scale_units="xy", scale=1, color="yellow")
    line[1].imshow(other.clamp(0, 1).permute(1, 2, 0))
    line[1].plot((x + u).flatten(), (y + v).flatten(), "o", color="yellow", ms=3)
    for ax in line:
        ax.set(xlim=(0, side), ylim=(side, 0))
        ax.axis("off")
axes[0, 0].set_title("the first view and its flow")
axes[0, 1].set_title("the second view, with the ends of the arrows")
