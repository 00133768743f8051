"""A long run of mixed calls from many threads: ``python -m tests.soak 1000000 --threads 8``, or ``--seconds 600``.

The number of a call determines it: a sample of an operator in a random size, a transform, a pipeline or a file. One thread makes
all of them once; the results of the threads must have the same bits. The memory of the process is read every second; after the
first tenth it must not grow.
"""

from __future__ import annotations

import argparse
import itertools
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
from torch.utils._pytree import tree_leaves
from torchvision.transforms.v2 import functional

sys.path.insert(0, str(Path(__file__).parent))  # as under pytest

import imgops
from imgops import transforms as v2
from imgops.extend.testing import Call
from tests.added_cases import ROWS
from tests.specs import OPERATORS
from tests.specs._draw import Draw
from tests.test_threads import ROUNDED_BY_PLACE
from tests.transform_cases import CASES, sample

#: The number of different calls.
KINDS = 4000
FILES = [
    imgops.encode_image(torch.randint(0, 256, (3, 40 + n, 50), dtype=torch.uint8), "jpeg") for n in range(3)
]
#: One of each transform that takes an image with boxes, masks and keypoints.
TRANSFORMS = [row for row in (*CASES, *ROWS) if "Aug" not in row.name and row.name != "Pad"]
#: Noise is drawn from the global generator.
SAMPLES = [
    sample
    for name, spec in OPERATORS.items()
    if not spec.operator.random and not spec.operator.contract.mutates and name not in ROUNDED_BY_PLACE
    for sample in spec.samples
]
CALLS: tuple[Callable[[Random, Tensor], Any], ...] = (
    *([lambda r, x: _sampled(r)] * 12),
    lambda r, x: imgops.decode_image(imgops.encode_image(x, r.choice(("jpeg", "png", "webp")), 80)),
    lambda r, x: imgops.decode_image(r.choice(FILES), box=(r.randint(0, 9), 3, r.randint(12, 50), 30)),
    lambda r, x: imgops.resize(imgops.PackedImages.of(_ragged(r, x)), (r.randint(1, 30), 12)),
    lambda r, x: imgops.gaussian_blur(imgops.PackedImages.of(_ragged(r, x)), 5, r.uniform(0.5, 2)).data,
    *([lambda r, x: v2.seeded(r.choice(TRANSFORMS).make(), r.getrandbits(40))(sample(x))] * 6),
    lambda r, x: _of_own_generator(r, torch.stack([x, x.flip(-1), 255 - x]), per_sample=True),
    lambda r, x: _of_own_generator(r, x),
    lambda r, x: functional.pil_to_tensor(_of_own_generator(r, functional.to_pil_image(x))),
    lambda r, x: torch.func.grad(lambda image: imgops.resize(image, (7, 9)).square().sum())(x / 255),
)


def _sampled(r: Random) -> Any:
    draw, chosen = Draw(r.randrange(1 << 30)), r.choice(SAMPLES)
    return Call(*chosen.call(draw.maker(chosen.dtypes))).outputs()


def _ragged(r: Random, x: Tensor) -> list[Tensor]:
    return [x, x[:, : r.randint(1, 12)], x[:, 2:9, : r.randint(1, 12)]]


def _of_own_generator(r: Random, x: Any, per_sample: bool = False) -> Any:
    """Return the third result of a pipeline: a plan gives it where there is one."""
    more: dict[str, Any] = {
        "generator": torch.Generator().manual_seed(r.getrandbits(40)),
        "per_sample": per_sample,
    }
    pair = [v2.RandomInvert(**more), v2.RandomSolarize(99, **more)]
    last = [v2.RandomGrayscale(0.5, **more), v2.RandomChoice(pair, **more), v2.RandomOrder(pair, **more)]
    pipeline = v2.Compose(
        [
            v2.RandomResizedCrop(r.randint(8, 40), **more),
            v2.RandomHorizontalFlip(**more),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1, **more)], p=0.8, **more),
            r.choice([*last, v2.TrivialAugmentWide(**more)]),
        ]
    )
    pipeline(x), pipeline(x)
    return pipeline(x)


def made(kind: int) -> int:
    """Return a checksum of the result of call ``kind``."""
    r = Random(kind)
    shape = 3, r.randint(12, 90), r.randint(12, 90)
    image = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(kind))
    value = 0
    try:
        result = CALLS[kind % len(CALLS)](r, image)
    except (
        TypeError,
        ValueError,
    ):  # a sample that does not fit another size, or a transform that refuses boxes
        return value
    for out in (x for x in tree_leaves(result) if isinstance(x, Tensor)):
        flat = out.as_subclass(Tensor).contiguous().reshape(-1)
        value = zlib.crc32(flat.view(torch.uint8).numpy().tobytes(), value)
    return value


def memory() -> int:
    """Return the resident memory of the process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, help="run for this time instead of a number of calls")
    o = parser.parse_args()
    torch.set_num_threads(1)
    wanted = [made(kind) for kind in range(min(KINDS, o.count))]
    wrong: list[str] = []
    done = [0] * o.threads
    start = time.perf_counter()

    def work(thread: int) -> None:
        own = Random(thread)
        for _ in range(o.count // o.threads) if o.seconds is None else itertools.count():
            if o.seconds is not None and time.perf_counter() - start > o.seconds:
                break
            kind = own.randrange(len(wanted))
            try:
                if made(kind) != wanted[kind]:
                    wrong.append(f"call {kind} gives other bits")
            except Exception as error:
                wrong.append(f"call {kind}: {type(error).__name__}: {error}")
            done[thread] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(o.threads)]
    for thread in threads:
        thread.start()
    curve: list[tuple[int, int]] = []
    while any(thread.is_alive() for thread in threads):
        curve.append((sum(done), memory()))
        time.sleep(1 if o.seconds or o.count > 100_000 else 0.1)
    settled = [m for n, m in curve if n > sum(done) / 10] or [m for _, m in curve]
    half = len(settled) // 2 or 1
    grown = max(settled[half:] or settled) - max(settled[:half])
    print(
        f"{sum(done)} calls by {o.threads} threads in {time.perf_counter() - start:.0f} s; {len(wrong)} wrong"
    )
    print(*(f"  {line}" for line in wrong[:10]), sep="\n")
    print("calls, MiB: " + ", ".join(f"{n} {m}" for n, m in curve[:: max(len(curve) // 20, 1)]))
    print(f"the second half's most is {grown:+d} MiB beside the first's, after a tenth of all calls")
    return bool(wrong) or grown > 64


if __name__ == "__main__":
    sys.exit(main())
