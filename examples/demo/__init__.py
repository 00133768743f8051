"""The demonstration on a photograph: the same pixels, one compiled graph, and gradients."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor
from tqdm import tqdm

import imgops
from examples.demo.picture import Story, draw
from imgops._common import torch_private

HEIGHT, WIDTH = 360, 320


def main(photo: str | None = None, out: str = "demo.png", steps: int = 150) -> Story:
    """Run the whole demonstration and write its picture to ``out``."""
    image = load(photo)
    _check_writable(out)
    backend = "inductor" if _has_compiler() else "aot_eager"
    same_pixels(image)
    one_graph(image, backend)
    story = train(image, backend, steps)
    draw(story, out)
    print(f"\nPicture: {out}")
    return story


def load(path: str | None) -> Tensor:
    """Load a photograph that PIL opens, and resize it with imgops to ``(3, HEIGHT, WIDTH)`` uint8."""
    if path is None:
        import matplotlib.cbook

        path = str(matplotlib.cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    try:
        with Image.open(path) as file:
            picture = ImageOps.exif_transpose(file).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SystemExit(f"demo: PHOTO must be a complete image file, got {path!r} ({reason})") from error
    whole = torch.from_numpy(np.array(picture)).permute(2, 0, 1)
    height, width = whole.shape[-2:]
    scale = min(height / HEIGHT, width / WIDTH)
    left, top = (width - WIDTH * scale) / 2, (height - HEIGHT * scale) / 3
    box = (left, top, min(left + WIDTH * scale, width), min(top + HEIGHT * scale, height))
    return imgops.resize(whole, (HEIGHT, WIDTH), "bicubic", box=box).contiguous()


def _check_writable(out: str) -> None:
    folder = Path(out).absolute().parent
    if not folder.is_dir() or Path(out).is_dir() or not os.access(folder, os.W_OK):
        raise SystemExit(f"demo: --out must be a file in a folder that can be written, got {out!r}")


def _has_compiler() -> bool:
    """Return whether there is a C++ compiler, which torch.compile's inductor needs on the CPU."""
    names = (os.environ.get("CXX"), "g++", "clang++", "c++", "cl")
    return any(name and shutil.which(name) for name in names)


def same_pixels(image: Tensor) -> None:
    """Compare each operator with the library call that it stands for."""
    array = image.permute(1, 2, 0).contiguous().numpy()
    interleaved = torch.from_numpy(array).permute(2, 0, 1)
    picture = Image.fromarray(array)
    patch = imgops.crop(image, (60, 40, 180, 140))
    mask = disc(100, 120)
    canvas = picture.copy()
    canvas.paste(Image.fromarray(_hwc(patch)), (-30, 290), Image.fromarray(mask[0].numpy()))
    calls: list[tuple[str, str, Tensor, np.ndarray]] = [
        (
            "crop",
            "PIL.Image.crop",
            imgops.crop(image, (-40, 20, 200, 420)),
            np.asarray(picture.crop((-40, 20, 200, 420))),
        ),
        ("paste, mask", "PIL.Image.paste", imgops.paste(image, patch, (-30, 290), mask), np.asarray(canvas)),
        *(
            (
                f"resize {name}",
                "PIL.Image.resize",
                imgops.resize(image, (150, 133), name),
                np.asarray(picture.resize((133, 150), getattr(Image.Resampling, name.upper()))),
            )
            for name in ("bilinear", "bicubic", "lanczos")
        ),
        (
            "resize area",
            "cv2.resize",
            imgops.resize(interleaved, (150, 133), "area", antialias=False),
            cv2.resize(array, (133, 150), interpolation=cv2.INTER_AREA),
        ),
        (
            "pad reflect",
            "cv2.copyMakeBorder",
            imgops.pad(image, 40, "reflect"),
            cv2.copyMakeBorder(array, 40, 40, 40, 40, cv2.BORDER_REFLECT_101),
        ),
    ]
    print("(a) The same pixels")
    for name, reference, ours, theirs in calls:
        different = int((_hwc(ours) != theirs).sum())
        print(f"    {name:16} {reference:20} {different} of {theirs.size:,} values differ")


def disc(height: int, width: int) -> Tensor:
    """Return a disc with a soft edge as a mask, (1, height, width) uint8."""
    y, x = torch.meshgrid(
        torch.linspace(-1, 1, height, dtype=torch.float32, device="cpu"),
        torch.linspace(-1, 1, width, dtype=torch.float32, device="cpu"),
        indexing="ij",
    )
    return ((1 - (x.square() + y.square()).sqrt()) * 6).clamp(0, 1).mul(255).to(torch.uint8)[None]


def _hwc(image: Tensor) -> np.ndarray:
    return image.permute(1, 2, 0).contiguous().numpy()


def one_graph(image: Tensor, backend: str) -> None:
    """Compile a pipeline into one graph, and call it with twenty boxes that it has not seen."""

    def pipeline(x: Tensor, left: int, top: int, width: int, height: int) -> Tensor:
        piece = imgops.crop(x, (left, top, left + width, top + height))
        small = imgops.resize(piece, (96, 96), "bicubic")
        framed = imgops.pad(small, 16, "symmetric")
        return imgops.paste(framed, small, (left // 8, top // 8)).float().div(255)

    counting = torch_private.CountingBackend(backend)
    compiled = torch.compile(pipeline, fullgraph=True, dynamic=True, backend=counting)
    rng, equal = random.Random(0), 0
    for _ in range(20):
        draw = rng.randrange(2, 150), rng.randrange(2, 150), rng.randrange(40, 170), rng.randrange(40, 170)
        equal += torch.equal(compiled(image, *draw), pipeline(image, *draw))
    print(f"\n(b) One graph (fullgraph=True, {backend})")
    print(f"    graph breaks     {torch_private.graph_breaks()}")
    print(f"    recompiles       {counting.count - 1} over 20 random boxes")
    print(f"    equal to eager   {equal} of 20")


def train(image: Tensor, backend: str, steps: int) -> Story:
    """Learn the pixels of a patch through paste, resize and pad, by the compiled backward."""
    photo = image.float().div(255)
    top, left, height, width = HEIGHT // 12, WIDTH // 4, HEIGHT // 2, WIDTH // 2
    true_patch = imgops.crop(photo, (left, top, left + width, top + height))
    mask = disc(height, width).float().div(255)
    hole = imgops.paste(photo, torch.full_like(true_patch, 0.5), (left, top), mask)

    def view(patch: Tensor) -> Tensor:
        whole = imgops.paste(hole, patch, (left, top), mask)
        return imgops.pad(imgops.resize(whole, (396, 352), "bicubic"), (24, 27), "reflect")

    target = imgops.pad(imgops.resize(photo, (396, 352), "bicubic"), (24, 27), "reflect")
    generator = torch.Generator().manual_seed(0)
    patch = torch.rand(
        true_patch.shape, generator=generator, dtype=torch.float32, device="cpu"
    ).requires_grad_()
    first = patch.detach().clone()

    def loss_of(patch: Tensor) -> Tensor:
        return (view(patch) - target).square().mean()

    compiled = torch.compile(loss_of, fullgraph=True, backend=backend)
    losses = _descend(compiled, patch, steps, backend)
    with torch.no_grad():
        before, after = view(first), view(patch)
    error = (after - target).abs().max() * 255
    print(f"    loss             {losses[0]:.2e} -> {losses[-1]:.2e}")
    print(f"    largest error    {error:.2f} of 255 levels in the picture that was matched")

    box = (WIDTH // 4, HEIGHT // 12, 3 * WIDTH // 4, 7 * HEIGHT // 12)
    leaf = photo.clone().requires_grad_()
    weight = imgops.crop(photo, box) - 0.5
    (gradient,) = torch.autograd.grad(imgops.crop(leaf, box).mul(weight).sum(), leaf)
    return Story(
        photo=image,
        crop=imgops.crop(image, box),
        resize=imgops.resize(image, (27, 24), "bilinear"),
        pad=imgops.pad(imgops.resize(image, (180, 160), "lanczos"), (80, 90), "reflect"),
        paste=imgops.paste(image, imgops.resize(image, (120, 106)), (190, 220), disc(120, 106)),
        gradient=gradient,
        target=target,
        before=before,
        after=after,
        patch_before=first,
        patch_after=patch.detach(),
        losses=losses,
    )


def _descend(loss_of: Callable[[Tensor], Any], patch: Tensor, steps: int, backend: str) -> list[float]:
    print(f"\n(c) Training through paste, resize and pad (compiled backward, {backend})")
    optimizer = torch.optim.Adam([patch], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1), eta_min=1e-3)
    losses: list[float] = []
    # A log cannot show a bar that repaints itself, so print a line now and then.
    log = not sys.stderr.isatty()
    with tqdm(range(max(steps, 1)), desc="    patch", ncols=78, disable=log) as bar:
        for _ in bar:
            optimizer.zero_grad()
            loss = loss_of(patch)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            bar.set_postfix_str(f"loss {losses[-1]:.1e}")
            if log and (len(losses) % max(steps // 4, 1) == 0 or len(losses) == steps):
                print(f"    patch: step {len(losses)} of {steps}, loss {losses[-1]:.1e}", file=sys.stderr)
    return losses
