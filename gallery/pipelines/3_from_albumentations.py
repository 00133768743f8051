"""
From albumentations to one compiled graph
=========================================

Convert an albumentations pipeline, keep its draws and pixels, and compile it with the model.

You call the converted pipeline in the same way, and for the same seed it makes the same draws and gives the same pixels. It
also takes tensors, draws separately for each image of a batch, and compiles into one graph with the model.
"""

# %%
# One call
# --------
# Call the converted pipeline by keyword, as before, or with a tensor, as you call imgops' transforms.

import os
import time

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # no search for a newer version

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
ours = transforms.convert(theirs)
print(ours)
view = ours(image=frame)["image"]
figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for ax, shown in zip(axes, (image / 255, ours(image) / 4.8 + 0.45), strict=True):
    ax.imshow(shown.clamp(0, 1).permute(1, 2, 0))
    ax.axis("off")

# %%
# If transforms or arguments have no counterpart, an error names all of them and gives the reasons.

try:
    transforms.convert(
        A.Compose([A.Blur(), A.Mosaic(), A.ToGray(num_output_channels=1)])
    )
except ValueError as error:
    print(error)

# %%
# The same draws, the same pixels
# -------------------------------
#
# albumentations' own code also draws in the converted pipeline. With a seed, both pipelines make the same draws, call by
# call:

# sphinx_gallery_thumbnail_number = 2

drawn = {
    "warp": A.Affine(rotate=40, shear=12, p=1),
    "elastic": A.ElasticTransform(alpha=300, sigma=12, p=1),
    "holes": A.CoarseDropout(num_holes_range=(3, 6), p=1),
    "noise": A.GaussNoise(std_range=(0.1, 0.3), p=1),
    "some of them": A.SomeOf(
        [A.CLAHE(p=1), A.ToSepia(p=1), A.MotionBlur(15, p=1)], n=2
    ),
    "rain": A.RandomRain(p=1),
}
figure, axes = plt.subplots(2, 6, figsize=(11, 4.2), layout="constrained")
for (name, transform), (above, below) in zip(drawn.items(), axes.T, strict=True):
    given = A.Compose([transform], seed=7)
    converted = transforms.convert(
        given
    )  # before the first call: it continues from the state of the original
    wanted = given(image=frame)["image"]
    found = converted(image=frame)["image"]
    above.imshow(wanted)
    below.imshow(found)
    above.set_title(name, fontsize=9)
    below.set_title(f"{(found != wanted).mean():.2%} differ", fontsize=9)
for ax in axes.flat:
    ax.set_axis_off()
beside = {"rotation": 90, "va": "center", "ha": "right"}
for ax, library in zip(axes[:, 0], ("albumentations", "imgops"), strict=True):
    ax.text(-0.06, 0.5, library, transform=ax.transAxes, **beside)

# %%
# Boxes, keypoints and labels come back as albumentations returns them:

detection = A.Compose(
    [A.RandomSizedBBoxSafeCrop(200, 200), A.Affine(rotate=20, p=1)],
    bbox_params=A.BboxParams("pascal_voc", label_fields=["names"]),
    seed=7,
)
converted = transforms.convert(detection)
scene = {
    "image": frame,
    "bboxes": [[120, 20, 230, 170], [0, 200, 90, 380]],
    "names": ["face", "flag"],
}
for result in (detection(**scene), converted(**scene)):
    print(result["names"], np.round(result["bboxes"], 1).tolist())

# %%
# One graph
# ---------
#
# Compile the pipeline and call it on a batch, with a draw for each image. The graph has no breaks. For equal seeds it makes
# the same draws as eager mode, and 20 calls with new draws need one compilation.

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
# Images per second
# -----------------
#
# These timings are from one thread of the machine that built this page. Both libraries spend most of their time in OpenCV,
# and a graph does not change that time. A graph, or a batch, takes all images in one call.


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
    "imgops, by keyword": lambda: [ours(image=frame) for _ in range(16)],
    "imgops, one by one": lambda: [ours(image) for _ in range(16)],
    "imgops, a batch": lambda: each(batch),
    "imgops, a batch in one graph": lambda: graph(batch),
}
for name, call in calls.items():
    torch.manual_seed(0)
    print(f"{name:30} {images_a_second(call, 16):6.0f} images/s")
