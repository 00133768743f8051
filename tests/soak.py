"""A long run of mixed calls from many threads: ``python -m tests.soak 1000000 --threads 8``, or ``--seconds 600``.

The number of a call determines it: an operator, a transform or a pipeline, on an image of a certain size. One thread makes
all of them once; the results of the threads must have the same bits. With ``--forks`` the main thread starts children
meanwhile, which make some calls and end. The memory of the process is read every second; after the first tenth it must not
grow.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional

import imgops
from imgops import transforms as v2

#: The number of different calls.
KINDS = 4000
PIPELINE = v2.Compose([v2.RandomResizedCrop(24), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomErasing()])
FILES = [
    imgops.encode_image(torch.randint(0, 256, (3, 40 + n, 50), dtype=torch.uint8), "jpeg", 80)
    for n in range(3)
]
PICTURES = [torch.randint(0, 256, (3, 20, 30), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))]
PIXMIX = v2.PixMix(PICTURES, p=1.0)
CORRUPTIONS = [v2.Corruption(n, 2) for n in (*v2.Corruption.COMMON, *v2.Corruption.VALIDATION)]
ELASTIC, FLIP = v2.RandomElastic(p=1.0), v2.RandomHorizontalFlip(swap=[(0, 2)], swap_labels=[(0, 1)])
CALLS: tuple[Callable[[Random, Tensor], Any], ...] = (
    lambda r, x: imgops.crop(x, (r.randint(-9, 9), 2, 30, r.randint(3, 40))),
    lambda r, x: imgops.resize(
        x, (r.randint(1, 60), r.randint(1, 60)), r.choice(("bilinear", "bicubic", "lanczos"))
    ),
    lambda r, x: imgops.resize(x, (r.randint(1, 60), 9), "area", antialias=False),
    lambda r, x: imgops.warp_affine(x, torch.tensor([[0.9, 0.1, 2.0], [-0.1, 1.1, r.random()]])),
    lambda r, x: imgops.gaussian_blur(x, r.choice((3, 5, 7)), r.uniform(0.3, 2)),
    lambda r, x: imgops.adjust_hue(x, r.uniform(-0.5, 0.5)),
    lambda r, x: imgops.adjust_saturation(imgops.adjust_contrast(x, r.random()), 1.4),
    lambda r, x: imgops.equalize(x),
    lambda r, x: imgops.pad(x, r.randint(0, 20), padding_mode=r.choice(("reflect", "edge", "constant"))),
    lambda r, x: imgops.jpeg(x, r.randint(20, 95)),
    lambda r, x: imgops.decode_image(imgops.encode_image(x, r.choice(("jpeg", "png", "webp")), 80)),
    lambda r, x: imgops.median_blur(x, 3),
    lambda r, x: v2.seeded(PIPELINE, r.getrandbits(40))(x),
    lambda r, x: imgops.resize(imgops.PackedImages.of(_ragged(r, x)), (r.randint(1, 30), 12)),
    lambda r, x: imgops.gaussian_blur(imgops.PackedImages.of(_ragged(r, x)), 5, r.uniform(0.5, 2)).data,
    lambda r, x: imgops.decode_image(r.choice(FILES), box=(r.randint(0, 9), 3, r.randint(12, 50), 30)),
    lambda r, x: v2.seeded(r.choice(CORRUPTIONS), r.getrandbits(40))(x),
    lambda r, x: v2.seeded(PIXMIX, r.getrandbits(40))(x),
    lambda r, x: _annotated(ELASTIC, r, x),
    lambda r, x: _annotated(FLIP, r, x),
    lambda r, x: _of_own_generator(r, torch.stack([x, x.flip(-1), 255 - x]), per_sample=True),
    lambda r, x: _of_own_generator(r, x),
    lambda r, x: functional.pil_to_tensor(_of_own_generator(r, functional.to_pil_image(x))),
    lambda r, x: torch.autograd.grad(
        imgops.resize(_real(x), (7, 9)).square().sum(), [_LAST[threading.get_ident()]]
    )[0],
)
_LAST: dict[int, Tensor] = {}


def _real(x: Tensor) -> Tensor:
    _LAST[threading.get_ident()] = real = (x.float() / 255).requires_grad_()
    return real


def _ragged(r: Random, x: Tensor) -> list[Tensor]:
    return [x, x[:, : r.randint(1, 12)], x[:, 2:9, : r.randint(1, 12)]]


def _of_own_generator(r: Random, x: Any, per_sample: bool = False) -> Any:
    """Return the third result of a pipeline: a plan gives it where there is one."""
    own = torch.Generator().manual_seed(r.getrandbits(40))
    more = {"generator": own, "per_sample": per_sample}
    pipeline = v2.Compose(
        [
            v2.RandomResizedCrop(r.randint(8, 40), **more),
            v2.RandomHorizontalFlip(**more),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1, **more)], p=0.8, **more),
            r.choice(
                [
                    v2.RandomGrayscale(0.5, **more),
                    v2.RandomChoice([v2.RandomInvert(**more), v2.RandomSolarize(99, **more)], **more),
                    v2.RandomOrder([v2.RandomInvert(**more), v2.RandomSolarize(99, **more)], **more),
                    v2.TrivialAugmentWide(**more),
                ]
            ),
        ]
    )
    pipeline(x), pipeline(x)
    return pipeline(x)


def _annotated(transform: Any, r: Random, x: Tensor) -> Tensor:
    """Return the numbers of boxes with an angle, keypoints and labels that go with an image."""
    canvas = {"canvas_size": tuple(x.shape[-2:])}
    boxes = torch.tensor([[r.uniform(4, 9), 8, 9, 5, r.uniform(-180, 180)], [9.0, 9, 4, 4, 30]])
    sample = {
        "image": tv_tensors.Image(x),
        "boxes": tv_tensors.BoundingBoxes(boxes, format="CXCYWHR", **canvas),
        "points": tv_tensors.KeyPoints([[[r.uniform(0, 9), 3.0], [4.0, 5.0], [6.0, 7.0]]], **canvas),
        "labels": torch.tensor([0, 1]),
    }
    out = v2.seeded(transform, r.getrandbits(40))(sample)
    return torch.cat([out[key].as_subclass(Tensor).flatten().float() for key in sample])


def made(kind: int) -> int:
    """Return a checksum of the result of call ``kind``."""
    r = Random(kind)
    size = r.randint(12, 90), r.randint(12, 90)
    image = torch.randint(
        0, 256, (3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(kind)
    )
    out = CALLS[kind % len(CALLS)](r, image)
    return zlib.crc32(out.contiguous().view(torch.uint8).numpy().tobytes())


def memory() -> int:
    """Return the resident memory of the process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


def fork(kinds: list[int], wanted: list[int]) -> str:
    """Make calls in a child process; return what is wrong."""
    child = os.fork()
    if not child:
        os._exit(0 if all(made(kind) == wanted[kind] for kind in kinds) else 1)
    for _ in range(1200):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return f"a child that made the calls {kinds} ended with {status}" if status else ""
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return f"a child that made the calls {kinds} did not end within a minute"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, help="run for this time instead of a number of calls")
    parser.add_argument("--forks", action="store_true", help="start children while the threads run")
    o = parser.parse_args()
    torch.set_num_threads(1)
    wanted = [made(kind) for kind in range(KINDS)]
    wrong: list[str] = []
    done = [0] * o.threads
    end = None if o.seconds is None else time.perf_counter() + o.seconds

    def work(thread: int) -> None:
        own = random.Random(thread)
        for _ in range(o.count // o.threads) if end is None else itertools.count():
            if end is not None and time.perf_counter() > end:
                break
            kind = own.randrange(KINDS)
            try:
                if made(kind) != wanted[kind]:
                    wrong.append(f"call {kind} gives other bits")
            except Exception as error:
                wrong.append(f"call {kind}: {type(error).__name__}: {error}")
            done[thread] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(o.threads)]
    start, curve, forks, shown, draw = time.perf_counter(), [], 0, 0.0, random.Random(-1)
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        curve.append((sum(done), memory()))
        if o.seconds and time.perf_counter() - start > shown:
            print(f"{shown:.0f} s: {curve[-1][0]} calls, {forks} forks, {curve[-1][1]} MiB", flush=True)
            shown += 30
        if o.forks:
            wrong += filter(None, [fork(draw.sample(range(KINDS), 12), wanted)])
            forks += 1
        time.sleep(1 if o.seconds or o.count > 100_000 else 0.1)
    total = sum(done)
    settled = [m for n, m in curve if n > total / 10] or [m for _, m in curve]
    half = len(settled) // 2 or 1
    grown = max(settled[half:] or settled) - max(settled[:half])
    print(
        f"{total} calls by {o.threads} threads, {forks} forks in {time.perf_counter() - start:.0f} s; {len(wrong)} wrong"
    )
    for line in wrong[:10]:
        print(f"  {line}")
    print("calls, MiB: " + ", ".join(f"{n} {m}" for n, m in curve[:: max(len(curve) // 20, 1)]))
    print(f"the second half's most is {grown:+d} MiB beside the first's, after a tenth of all calls")
    return bool(wrong) or grown > 64


if __name__ == "__main__":
    sys.exit(main())
