"""A long run of mixed calls from many threads: ``python -m tests.soak 1000000 --threads 8``.

The number of a call determines it: an operator or a transform, on an image of a certain size. One thread makes all of them
once; the results of the threads must have the same bits. The memory of the process is read every second; after the first
tenth it must not grow.
"""

from __future__ import annotations

import argparse
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

import imgops
from imgops import transforms as v2

#: The number of different calls.
KINDS = 4000
PIPELINE = v2.Compose([v2.RandomResizedCrop(24), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomErasing()])
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
    lambda r, x: torch.autograd.grad(
        imgops.resize(_real(x), (7, 9)).square().sum(), [_LAST[threading.get_ident()]]
    )[0],
)
_LAST: dict[int, Tensor] = {}


def _real(x: Tensor) -> Tensor:
    _LAST[threading.get_ident()] = real = (x.float() / 255).requires_grad_()
    return real


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--threads", type=int, default=8)
    o = parser.parse_args()
    torch.set_num_threads(1)
    wanted = [made(kind) for kind in range(KINDS)]
    wrong: list[str] = []
    done = [0] * o.threads

    def work(thread: int) -> None:
        own = random.Random(thread)
        for _ in range(o.count // o.threads):
            kind = own.randrange(KINDS)
            try:
                if made(kind) != wanted[kind]:
                    wrong.append(f"call {kind} gives other bits")
            except Exception as error:
                wrong.append(f"call {kind}: {type(error).__name__}: {error}")
            done[thread] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(o.threads)]
    start, curve = time.perf_counter(), []
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        curve.append((sum(done), memory()))
        time.sleep(1 if o.count > 100_000 else 0.1)
    total = sum(done)
    settled = [m for n, m in curve if n > total / 10] or [m for _, m in curve]
    half = len(settled) // 2 or 1
    grown = max(settled[half:] or settled) - max(settled[:half])
    print(f"{total} calls by {o.threads} threads in {time.perf_counter() - start:.0f} s; {len(wrong)} wrong")
    for line in wrong[:10]:
        print(f"  {line}")
    print("calls, MiB: " + ", ".join(f"{n} {m}" for n, m in curve[:: max(len(curve) // 20, 1)]))
    print(f"the second half's most is {grown:+d} MiB beside the first's, after a tenth of all calls")
    return bool(wrong) or grown > 64


if __name__ == "__main__":
    sys.exit(main())
