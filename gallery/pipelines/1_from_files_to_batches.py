"""
From files to batches
=====================

Turn JPEG files into a training batch in one call, on threads and without worker processes.

Photographs have different sizes, but all images of a batch must have the same size. After the first batch, this page skips a
corrupt file, makes the draws depend on the file names, and resumes in the middle of an epoch.
"""

# %%
# Six files
# ---------
# This page uses six photographs of different sizes. It passes the bytes of each file; a path also works.

import time

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch.utils.data import DataLoader, Dataset

import imgops
from imgops import transforms as v2

photos = [
    torch.from_numpy(image).permute(2, 0, 1)
    for image in (
        data.astronaut(),
        data.chelsea(),
        data.coffee(),
        data.rocket(),
        data.astronaut()[:300, 120:360],
        data.colorwheel(),
    )
]
files = [
    bytes(imgops.encode_image(photo.contiguous(), quality=90).numpy())
    for photo in photos
]
print([tuple(photo.shape[1:]) for photo in photos])

fig, axes = plt.subplots(1, 6, figsize=(12, 2))
for ax, photo in zip(axes, photos, strict=True):
    ax.imshow(photo.permute(1, 2, 0))
    ax.axis("off")

# %%
# One call
# --------
# :class:`imgops.EncodedImages` is a batch of files. A pipeline with ``per_sample=True`` makes the same draws
# for each image as a loop. Its first transform decodes only the part of each file that the crop keeps, on as
# many threads as PyTorch uses.

augment = v2.Compose(
    [
        v2.RandomResizedCrop(160, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.3, 0.3, 0.3, 0.05),
        v2.ToDtype(torch.float32, scale=True),
    ],
    per_sample=True,
)

torch.manual_seed(0)
batch = augment(imgops.EncodedImages(files))
print(batch.shape)

# sphinx_gallery_thumbnail_number = 2

fig, axes = plt.subplots(1, 6, figsize=(12, 2))
for ax, made in zip(axes, batch, strict=True):
    ax.imshow(made.permute(1, 2, 0))
    ax.axis("off")

# %%
# The pixels and the draws are those of a loop over decoded images.

one_by_one = v2.Compose(augment.transforms)
torch.manual_seed(0)
loop = torch.stack([one_by_one(imgops.decode_image(file)) for file in files])
assert torch.equal(batch, loop)

# %%
# Evaluation needs no draws: the short side of each image gets one length, and its middle is kept. Only the pixels that
# the middle needs are decoded.

evaluate = v2.Compose(
    [
        v2.Resize(176, antialias=True),
        v2.CenterCrop(160),
        v2.ToDtype(torch.float32, scale=True),
    ]
)
middles = evaluate(imgops.EncodedImages(files))
assert torch.equal(
    middles, torch.stack([evaluate(imgops.decode_image(file)) for file in files])
)

# %%
# Images of different sizes
# -------------------------
# Decoded images of different sizes form :class:`imgops.PackedImages`: one buffer, and the size of each image. Functions that
# give all images one size return a batch; others return packed images. Parameters may differ from image to image.

packed = imgops.EncodedImages(files).decode()
print(packed, packed.sizes.tolist())

brighter = imgops.adjust_brightness(packed, torch.linspace(0.5, 1.5, 6))
small = imgops.fit(brighter, (120, 160))
print(small.shape)

fig, axes = plt.subplots(1, 6, figsize=(12, 1.8))
for ax, made in zip(axes, small, strict=True):
    ax.imshow(made.permute(1, 2, 0))
    ax.axis("off")

# %%
# One graph takes all sizes. PyTorch compiles this function at most twice: for the first sizes, and for all others.


def prepare(images):
    return imgops.resize(imgops.flip(images), (64, 64)).float().mean((1, 2, 3))


compiled = torch.compile(prepare, fullgraph=True, backend="aot_eager")
for some in (packed, packed[:4], packed[1:]):
    torch.testing.assert_close(compiled(some), prepare(some))

# %%
# A corrupt file
# --------------
# By default a file that cannot be decoded raises an error that names its index. If you pass a list for the errors, the file
# becomes a black image, and the batch keeps its length; drop the image together with its label.

broken = [*files[:2], files[2][:5000], *files[3:]]
skipped = []
batch = augment(imgops.EncodedImages(broken, skipped=skipped))
print(skipped)
bad = {i for i, _ in skipped}
good = [i for i in range(len(broken)) if i not in bad]
print(batch[good].shape)

# %%
# The same draws for the same name
# --------------------------------
# The draws above depend on all earlier draws. :func:`imgops.transforms.seeded` makes them depend on a key instead. It takes
# one key for each image, such as the epoch and the name of its file. Then neither the order nor the batch matters, and
# threads and processes give the same result.

names = ["astronaut", "chelsea", "coffee", "rocket", "portrait", "colorwheel"]
whole = v2.seeded(augment, [(0, name) for name in names])(imgops.EncodedImages(files))
part = v2.seeded(augment, [(0, name) for name in names[3:]])(
    imgops.EncodedImages(files[3:])
)
assert torch.equal(whole[3:], part)

# %%
# Resuming in the middle of an epoch
# ----------------------------------
# If draws depend on keys, the state of a loader is two numbers. This loader has the methods of torchdata's
# ``StatefulDataLoader``; the loader in ``examples/threads_loader.py`` also prepares batches ahead and keeps its state in a
# file.


class Batches:
    def __init__(self, files, names, size):
        self.files, self.names, self.size = files, names, size
        self.epoch, self.done = 0, 0

    def state_dict(self):
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state):
        self.epoch, self.done = state["epoch"], state["done"]

    def __iter__(self):
        order = torch.randperm(
            len(self.files), generator=torch.Generator().manual_seed(self.epoch)
        ).tolist()
        while self.done < len(order):
            chosen = order[self.done : self.done + self.size]
            keys = [(self.epoch, self.names[i]) for i in chosen]
            self.done += len(chosen)
            yield v2.seeded(augment, keys)(
                imgops.EncodedImages([self.files[i] for i in chosen])
            )
        self.epoch, self.done = self.epoch + 1, 0


batches = Batches(files, names, 2)
seen = []
for images in batches:
    seen.append(images)
    if len(seen) == 1:
        state = batches.state_dict()

again = Batches(files, names, 2)
again.load_state_dict(state)
rest = list(again)
assert all(map(torch.equal, rest, seen[1:]))
print(f"stopped after batch 1 of {len(seen)}, and continued with the other {len(rest)}")

# %%
# Comparison with a DataLoader
# ----------------------------
# A ``DataLoader`` makes the same images, one by one in worker processes. A process must start, import its modules and send
# each batch; threads need none of this. Run the comparison on your machine; :doc:`the benchmarks </benchmarks>` compare with
# more libraries.


class Photos(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return one_by_one(imgops.EncodedImage(self.files[i]))


def images_per_second(batches):
    start, count = time.perf_counter(), 0
    for images in batches:
        count += len(images)
    return count / (time.perf_counter() - start)


many = files * 40
for workers in (0, 2):
    loader = DataLoader(Photos(many), 24, num_workers=workers)
    print(f"DataLoader, {workers} workers: {images_per_second(loader):.0f} images/s")
before = torch.get_num_threads()
for threads in (1, 2):
    torch.set_num_threads(threads)
    batches = Batches(many, [str(i) for i in range(len(many))], 24)
    print(f"{threads} threads: {images_per_second(batches):.0f} images/s")
torch.set_num_threads(before)
