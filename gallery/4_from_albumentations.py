"""
From albumentations to one compiled graph
=========================================

This page converts a pipeline that is written in albumentations. The converted pipeline makes the same OpenCV calls, so it
gives the same pixels. But it works on tensors, draws for each image of a batch, and is one graph that can be compiled
together with the model.
"""

# %%
# One call
# --------

import os
import time

os.environ["NO_ALBUMENTATIONS_UPDATE"] = (
    "1"  # albumentations would look for a newer version online
)

import albumentations as A
import matplotlib.pyplot as plt
import numpy as np
import torch
from skimage import data

from imgops import transforms

torch.set_num_threads(1)
frame = np.ascontiguousarray(data.astronaut()[:384, 60:444])
image = torch.from_numpy(frame).permute(2, 0, 1)  # no copy: an image is (C, H, W)

theirs = A.Compose(
    [
        A.HorizontalFlip(p=0.5),
        A.RandomBrightnessContrast(p=0.5),
        A.CLAHE(p=0.5),
        A.OneOf([A.MotionBlur(), A.MedianBlur()], p=0.5),
        A.GridDistortion(p=0.5),
        A.CoarseDropout(num_holes_range=(2, 4), p=0.5),
        A.Normalize(),
        A.ToTensorV2(),
    ]
)
ours = transforms.from_albumentations(theirs)
print(ours)

# %%
# If transforms or arguments have no counterpart, an error names every one. The migration page says why.

try:
    transforms.from_albumentations(
        A.Compose([A.Blur(), A.Superpixels(), A.RandomSnow(method="texture")])
    )
except ValueError as error:
    print(error)

# %%
# The same pixels
# ---------------
#
# Each library draws its parameters from its own generator. To compare pixels, fix the parameters, so that neither library
# draws anything:

fixed = {
    "brightness, contrast": A.RandomBrightnessContrast((0.1, 0.1), (0.4, 0.4), p=1),
    "CLAHE": A.CLAHE((4, 4), p=1),
    "median": A.MedianBlur((7, 7), p=1),
    "hue, saturation, value": A.HueSaturationValue((30, 30), (40, 40), (0, 0), p=1),
    "snow": A.RandomSnow(snow_point_range=(0.5, 0.5), p=1),
    "lens": A.OpticalDistortion((0.7, 0.7), p=1),
}
figure, axes = plt.subplots(2, 6, figsize=(11, 4.2), layout="constrained")
for (name, transform), (above, below) in zip(fixed.items(), axes.T, strict=True):
    wanted = transform(image=frame)["image"]
    found = transforms.from_albumentations(transform)(image).permute(1, 2, 0).numpy()
    off = np.abs(found.astype(int) - wanted)
    above.imshow(wanted)
    below.imshow(found)
    above.set_title(name, fontsize=9)
    below.set_title(f"{(off > 0).mean():.2%} differ, by {off.max()}", fontsize=9)
for ax in axes.flat:
    ax.set_axis_off()
beside = {"rotation": 90, "va": "center", "ha": "right"}
for ax, library in zip(axes[:, 0], ("albumentations", "imgops"), strict=True):
    ax.text(-0.06, 0.5, library, transform=ax.transAxes, **beside)

# %%
# One graph
# ---------
#
# Compile the pipeline and call it on a batch, with a draw for each image. The graph has no break. Equal seeds draw the same
# as in eager mode, and 20 calls with fresh draws need one compilation.

torch._dynamo.utils.counters.clear()  # they have counted since the process began
batch = torch.stack([image.contiguous()] * 16)
each = transforms.Compose([ours], per_sample=True)
graph = torch.compile(each, fullgraph=True, backend="aot_eager")
same = []
for seed in range(20):
    torch.manual_seed(seed)
    found = graph(batch)
    torch.manual_seed(seed)
    same.append(torch.allclose(found, each(batch), atol=1e-5))
print(f"equal to eager mode: {sum(same)} of 20")
print("graphs:", torch._dynamo.utils.counters["stats"]["unique_graphs"])

torch.manual_seed(3)
views = each(batch) * torch.tensor([0.229, 0.224, 0.225]).reshape(3, 1, 1)
views = (views + torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1)).clamp(0, 1)
figure, axes = plt.subplots(2, 8, figsize=(11, 2.9), layout="constrained")
for ax, view in zip(axes.flat, views, strict=True):
    ax.imshow(view.permute(1, 2, 0))
    ax.set_axis_off()

# %%
# Images a second
# ---------------
#
# These timings are from one thread of the machine that built this page. Both libraries spend most of their time in OpenCV,
# which a graph makes neither slower nor faster.


def images_a_second(call, images, rounds=5):
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return images / sorted(times)[rounds // 2]


calls = {
    "albumentations": lambda: [theirs(image=frame) for _ in range(16)],
    "imgops, one by one": lambda: [ours(image) for _ in range(16)],
    "imgops, a batch": lambda: each(batch),
    "imgops, a batch in one graph": lambda: graph(batch),
}
for name, call in calls.items():
    torch.manual_seed(0)
    print(f"{name:30} {images_a_second(call, 16):6.0f} images/s")
