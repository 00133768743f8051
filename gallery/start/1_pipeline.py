"""
A pipeline in one graph
=======================

Build SimCLR's augmentation in torchvision and in imgops, and compile it into one graph.

The classes and arguments are the same in both libraries, and so are the draws for the same seed. Only the imgops pipeline
compiles into one graph.
"""

# %%
# The only difference: one import
# -------------------------------

import time

import matplotlib.pyplot as plt
import torch
from skimage import data
from torchvision.transforms import v2 as torchvision_v2

from imgops import transforms as imgops_v2

torch.set_num_threads(1)
photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1)[:, :375, :500].contiguous()


def simclr(v2, last=True):
    views = [
        v2.RandomResizedCrop(224, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        v2.RandomApply([v2.GaussianBlur(23)], p=0.5),
        v2.RandomGrayscale(0.2),
    ]
    tensor = [
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    return v2.Compose([*views, *tensor] if last else views)


theirs, ours = simclr(torchvision_v2), simclr(imgops_v2)

# %%
# The same seed, the same pictures
# --------------------------------

figure, axes = plt.subplots(2, 6, figsize=(12, 4.4), layout="constrained")
for row, (name, module) in enumerate(
    (("torchvision", torchvision_v2), ("imgops", imgops_v2))
):
    views = simclr(module, last=False)
    for seed in range(6):
        torch.manual_seed(seed)
        axes[row, seed].imshow(views(photo).permute(1, 2, 0))
        axes[row, seed].set_xticks([])
        axes[row, seed].set_yticks([])
    axes[row, 0].set_ylabel(name, fontsize=12)

# %%
# Graph breaks
# ------------
# A compiler leaves code that it cannot trace to Python, and compiles the pieces in between. Count the pieces:

for name, pipeline in (("torchvision", theirs), ("imgops", ours)):
    torch.compiler.reset()
    torch.manual_seed(0)
    found = torch._dynamo.explain(pipeline)(photo)
    print(f"{name:12} {found.graph_count} graphs, {found.graph_break_count} breaks")

# %%
# Call the compiled pipeline 50 times with fresh draws: it compiles once, and makes the same draws as eager mode.

torch.compiler.reset()
torch._dynamo.utils.counters.clear()
graph = torch.compile(ours, fullgraph=True)
same = []
for seed in range(50):
    torch.manual_seed(seed)
    compiled = graph(photo)
    torch.manual_seed(seed)
    same.append(torch.allclose(compiled, ours(photo), atol=1e-5))
print("compiled and eager agree:", all(same))
print("graphs:", torch._dynamo.utils.counters["stats"]["unique_graphs"])

# %%
# Time
# ----
# These are medians on one thread, one photograph at a time; the pipelines take turns in each round. (They were measured when
# this page was built. The :doc:`benchmarks </benchmarks>` also compare with other libraries.) On one photograph the graph is
# slower than eager mode: dynamo checks its guards in every call, and operators run even if their draw changes nothing. On a
# batch, both costs are negligible.

calls = {
    "torchvision": lambda: theirs(photo),
    "imgops": lambda: ours(photo),
    "imgops, compiled": lambda: graph(photo),
}
times = {name: [] for name in calls}
for seed in range(25):
    for name, call in calls.items():
        torch.manual_seed(seed)
        start = time.perf_counter()
        for _ in range(4):
            call()
        times[name].append((time.perf_counter() - start) / 4 * 1e3)

medians = {name: sorted(t)[len(t) // 2] for name, t in times.items()}
figure, ax = plt.subplots(figsize=(8, 2.2), layout="constrained")
bars = ax.barh(
    list(medians), list(medians.values()), color=["#e08a2e", "#2a7fd4", "#7db4e6"]
)
ax.bar_label(bars, [f"{m:.2f} ms" for m in medians.values()], padding=4)
ax.invert_yaxis()
ax.margins(x=0.12)
ax.set_xlabel("milliseconds an image")
ax.spines[["top", "right"]].set_visible(False)

# %%
# A draw for each image
# ---------------------
# torchvision draws once for a whole batch. With ``per_sample=True`` each transform draws for each image, in one graph:

each = imgops_v2.Compose(
    [
        imgops_v2.RandomResizedCrop(128, per_sample=True),
        imgops_v2.RandomHorizontalFlip(per_sample=True),
        imgops_v2.ColorJitter(0.4, 0.4, 0.4, 0.1, per_sample=True),
    ]
)
batch = torch.compile(each, fullgraph=True)(photo.expand(8, -1, -1, -1).contiguous())
figure, axes = plt.subplots(1, 8, figsize=(12, 1.7), layout="constrained")
for ax, view in zip(axes, batch, strict=True):
    ax.imshow(view.permute(1, 2, 0))
    ax.axis("off")
