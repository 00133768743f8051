"""Random pipelines: ``python -m tests.fuzz 100000 --kind pipelines``.

A pipeline is a Compose of random transforms, some of them in containers. The native module runs as many of its steps as it
can on each image before the next one begins; the result must have the bits and the memory format of a loop that calls the
transforms one by one. With ``per_sample=True``, the loop goes over the samples, too.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode

sys.path.insert(0, str(Path(__file__).parent))  # as under pytest

from imgops import transforms as v2
from imgops.transforms import containers
from imgops.transforms._core.plans import Plan
from tests.checks import difference
from tests.fuzz_values import Made, Wrong
from tests.transform_cases import CASES

#: Transforms that a sampler cannot sample ahead: in a loop over the samples, each sample draws all of its numbers first.
_NOT_AHEAD = ("GaussianNoise", "ElasticTransform", "AugMix")
_CASES = [case for case in CASES if not case.boxes and not case.sized]
#: Those that take any number of channels.
_ANY = (
    *(
        "Resize",
        "CenterCrop",
        "Pad",
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "RandomCrop",
        "RandomInvert",
    ),
    *("RandomResizedCrop", "RandomPosterize", "RandomSolarize", "RandomEqualize", "RandomErasing"),
    "GaussianBlur",
)
_MODES = ["constant", "edge", "reflect", "symmetric"]


def _pads(random: Random, channels: int) -> Any:
    """Return a transform with a border, whose arguments are random."""
    fill = random.choice([0, None, 7, 255.0, [9], [3 + i for i in range(channels)], 0.5])
    how = {"fill": fill, "padding_mode": random.choice(_MODES)}
    what = random.randrange(5)
    if what == 0:
        low = random.choice([-9, 0, 0])
        return v2.Pad([random.randrange(low, 12) for _ in range(random.choice([1, 2, 4]))], **how)
    if what == 1:
        return v2.RandomCrop(
            random.randrange(10, 26), padding=random.choice([4, (3, 0), (0, 5, 9, 2)]), **how
        )
    if what == 2:
        return v2.RandomCrop([random.randrange(10, 99) for _ in range(2)], pad_if_needed=True, **how)
    if what == 3:
        return v2.CenterCrop([random.randrange(10, 99) for _ in range(2)])
    return v2.RandomZoomOut(fill, (1.0, random.choice([1.0, 1.5])), p=random.choice([0.0, 0.5, 1.0]))


def _colors(random: Random, channels: int) -> Any:
    """Return a change of color, whose arguments are random."""
    p, mixed = random.choice([0.5, 1.0]), [(random.choice([0.0, 0.3, 1.0]), 1.7), None, 0.4]
    makers = [
        lambda: v2.RandomPosterize(random.randrange(9), p),
        lambda: v2.RandomSolarize(random.choice([0, 99.5, 200, 255]), p),
        lambda: v2.RandomAdjustSharpness(random.choice([0.0, 0.4, 2.5]), p),
        lambda: v2.RandomInvert(p),
        lambda: v2.RandomEqualize(p),
        lambda: v2.RandomAutocontrast(p),
        lambda: v2.ColorJitter(*(random.choice(mixed) for _ in range(3)), random.choice([None, 0.2])),
        lambda: v2.RandomGrayscale(p),
    ]
    return random.choice(makers if channels in (1, 3) else makers[:5])()


def _warps(random: Random, channels: int) -> Any:
    """Return a warp, whose arguments are random."""
    fill = random.choice([0, None, 7, [9.0], [3 + i for i in range(channels)], 0.5])
    name = random.choice(["nearest", "bilinear", "bilinear"])
    how: dict[str, Any] = {"interpolation": InterpolationMode(name), "fill": fill}
    policies = v2.RandAugment, v2.TrivialAugmentWide, v2.AutoAugment
    makers = [
        lambda: v2.RandomRotation(random.choice([0, 30, 180]), **how),
        lambda: v2.RandomAffine(25, (0.2, 0.1), random.choice([None, (0.1, 1.2)]), (-9, 9, -5, 5), **how),
        lambda: random.choice(policies)(**how),
    ]
    return random.choice(makers if channels in (1, 3) else makers[:2])()


#: Makers of transforms of many arguments, which take turns with the cases of ``transform_cases``.
_MAKERS = [_pads, _colors, _warps]


def make(seed: int) -> tuple[list[Any], Any, int]:
    """Return the transforms of a pipeline, its images and a seed."""
    random = Random(seed)
    channels, sides = random.choice([1, 1, 2, 3, 3, 3, 3, 3, 4]), [random.randrange(25, 90) for _ in range(2)]
    batch = random.choice([(), (1,), (3,), (5,), (2, 3)])
    image = torch.randint(0, 256, (*batch, *sides, channels), generator=torch.Generator().manual_seed(seed))
    image = image.to(torch.uint8).movedim(-1, -3)
    if random.random() < 0.6:
        image = image.contiguous()

    cases = _CASES if channels in (1, 3) else [case for case in _CASES if case.name in _ANY]

    def leaf() -> Any:
        if random.random() < 0.3:
            return random.choice(_MAKERS)(random, channels)
        return random.choice(cases).make(v2)

    def step() -> Any:
        what = random.random()
        if what > 0.25:
            return leaf()
        if what > 0.23:  # the size changes, and then changes back
            pads = v2.Pad(random.randrange(1, 9))
            back = random.choice([v2.CenterCrop, v2.RandomCrop, v2.RandomResizedCrop])(sides)
            return v2.RandomApply([pads, back], p=random.choice([0.5, 1.0]))
        if what > 0.15:
            return v2.RandomApply(
                [leaf() for _ in range(random.randrange(1, 3))], p=random.choice([0.0, 0.5, 1.0])
            )
        if what > 0.1:
            return v2.Compose([leaf(), leaf()])
        return random.choice([v2.RandomChoice, v2.RandomOrder])(
            [leaf() for _ in range(random.randrange(1, 4))]
        )

    steps = [step() for _ in range(random.randrange(1, 7))]
    if random.random() < 0.5:
        steps.append(v2.ToDtype(torch.float32, scale=True))
        if random.random() < 0.7:
            count = random.choice([1, channels])
            steps.append(v2.Normalize([0.4, 0.5, 0.6][:count], [0.2, 0.3, 0.4][:count]))
    return steps, image, random.randrange(1 << 30)


@contextmanager
def _without_programs() -> Iterator[None]:
    with (
        mock.patch.object(containers, "_pending", side_effect=lambda image, *_: image),
        mock.patch.object(containers._Container, "_plan_of", return_value=None),
    ):
        yield


def one_by_one(steps: list[Any], image: Tensor) -> Any:
    """Call the transforms in a loop; containers, too, call theirs one by one."""
    with _without_programs():
        for step in steps:
            image = step(image)
    return image


def result(call: Any, seed: int) -> tuple[Any, Tensor]:
    """Return what a call returns or raises, and the state of the generator after it."""
    torch.manual_seed(seed)
    try:
        out = call()
    except (ValueError, TypeError, NotImplementedError) as error:
        out = f"{type(error).__name__}: {error}"
    return out, torch.get_rng_state()


def differences(seed: int, counts: Counter[str]) -> list[str]:
    """Run a pipeline in both ways; return what differs."""
    steps, image, draw = make(seed)
    found = []
    kept = image.clone()
    wanted, state = result(lambda: one_by_one(steps, image), draw)
    pipeline = v2.Compose(steps)
    for turn in range(3):  # from the second on a plan may run
        out, after = result(lambda: pipeline(image), draw)
        found += compared(f"one draw, call {turn}", wanted, out)
        if out is image and wanted is not image:  # the user may write to what was a copy
            found.append(f"one draw, call {turn}: the image itself in place of a copy")
        if not isinstance(wanted, str) and not torch.equal(state, after):
            found.append(f"one draw, call {turn}: another state of the generator")
    counts["plans"] += any(isinstance(plan, Plan) for plan in vars(pipeline).get("_plans", {}).values())
    counts["raised" if isinstance(wanted, str) else "one draw"] += 1
    names = repr(steps)
    if image.ndim > 3 and not any(name in names for name in _NOT_AHEAD):
        whole = v2.Compose(steps, per_sample=True)
        each_time = [result(lambda: whole(image), draw) for _ in range(3)]
        out, after = each_time[0]
        found += compared("per sample, call 1", out, each_time[1][0])
        found += compared("per sample, call 2", out, each_time[2][0])
        if not isinstance(out, str) and not all(torch.equal(after, state) for _, state in each_time):
            found.append("per sample: another state of the generator")
        counts["plans per sample"] += any(
            isinstance(plan, Plan) for plan in vars(whole).get("_plans", {}).values()
        )
        with _without_programs():
            wanted, state = result(lambda: whole(image), draw)
        found += compared("per sample", wanted, out)
        if not isinstance(wanted, str):
            counts["per sample"] += 1
            each, state = result(lambda: torch.stack([one_by_one(steps, x) for x in image]), draw)
            if isinstance(each, Tensor):
                found += compared("a loop over the samples", each, out, strides=False)
                if not torch.equal(state, after):
                    found.append("per sample: another state of the generator")
    if not torch.equal(image, kept):
        found.append("the input was written to")
    return found


def compared(name: str, wanted: Any, found: Any, strides: bool = True) -> list[str]:
    differs = difference(found, wanted)
    out = [f"{name}: {differs}"] if differs else []
    if differs or isinstance(wanted, str):
        return out
    alike = zip(wanted.shape, wanted.stride(), found.stride(), strict=True)
    if strides and any(size > 1 and a != b for size, a, b in alike):
        out.append(f"{name}: strides {wanted.stride()} and {found.stride()}")
    return out


def made(seed: int) -> Made:
    """Return a pipeline for :mod:`tests.fuzz`."""

    def check() -> str:
        counts: Counter[str] = Counter()
        found = differences(seed, counts)
        if found:
            raise Wrong("; ".join(found))
        return ", ".join(sorted(counts))

    return f"pipeline({seed})", check


def run(first: int, count: int) -> tuple[Counter[str], list[tuple[int, list[str]]]]:
    counts: Counter[str] = Counter()
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            found = differences(seed, counts)
            if found:
                wrong.append((seed, found))
    return counts, wrong
