"""The cost of calling a transform where Python dominates: on 8 x 8 and 32 x 32, compared with torchvision.

``python -m benchmarks.calls`` prints and stores it. The thread's clock measures the times, so other processes
on the machine have less influence. imgops and torchvision take turns in one run, with equal seeds that are
set outside the timed region.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2 as reference

from imgops import transforms as ours

ROUNDS, CALLS = 15, 50
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)

#: Every transform of torchvision that needs only an image; transforms with a probability are always applied.
TRANSFORMS: dict[str, dict[str, Any]] = {
    "Resize": {"size": (6, 6)},
    "CenterCrop": {"size": 6},
    "Pad": {"padding": 1},
    "FiveCrop": {"size": 4},
    "TenCrop": {"size": 4},
    "RandomCrop": {"size": 6},
    "RandomResizedCrop": {"size": 6},
    "RandomHorizontalFlip": {"p": 1.0},
    "RandomVerticalFlip": {"p": 1.0},
    "RandomRotation": {"degrees": 40},
    "RandomAffine": {"degrees": 30},
    "RandomPerspective": {"p": 1.0},
    "ElasticTransform": {},
    "RandomZoomOut": {"p": 1.0},
    "RandomResize": {"min_size": 6, "max_size": 9},
    "RandomShortestSize": {"min_size": [6, 7]},
    "ColorJitter": {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
    "RandomPhotometricDistort": {},
    "Grayscale": {"num_output_channels": 3},
    "RandomGrayscale": {"p": 1.0},
    "RGB": {},
    "RandomChannelPermutation": {},
    "RandomInvert": {"p": 1.0},
    "RandomPosterize": {"bits": 3, "p": 1.0},
    "RandomSolarize": {"threshold": 128, "p": 1.0},
    "RandomAdjustSharpness": {"sharpness_factor": 1.7, "p": 1.0},
    "RandomAutocontrast": {"p": 1.0},
    "RandomEqualize": {"p": 1.0},
    "GaussianBlur": {"kernel_size": 3},
    "GaussianNoise": {},
    "RandomErasing": {"p": 1.0},
    "JPEG": {"quality": (20, 80)},
    "RandAugment": {},
    "TrivialAugmentWide": {},
    "AutoAugment": {},
    "AugMix": {},
    "ToDtype": {"dtype": torch.float32, "scale": True},
    "ToImage": {},
    "ToPureTensor": {},
}


def containers(module: Any) -> dict[str, Any]:
    """Return the containers of transforms."""
    flips = [module.RandomHorizontalFlip(1.0), module.RandomVerticalFlip(1.0)]
    return {
        "Compose": module.Compose(flips),
        "RandomApply": module.RandomApply(flips[:1], p=1.0),
        "RandomChoice": module.RandomChoice(flips),
        "RandomOrder": module.RandomOrder(flips),
    }


def cifar(module: Any, **options: Any) -> Any:
    """Return the usual training pipeline for CIFAR."""
    steps = [
        module.RandomCrop(32, padding=4),
        module.RandomHorizontalFlip(),
        module.ToDtype(torch.float32, scale=True),
        module.Normalize(MEAN, STD),
    ]
    return module.Compose(steps, **options)


def images(side: int, batch: int = 0) -> dict[str, Tensor]:
    """Return an image, or a batch, in both memory formats."""
    lead = (batch,) if batch else ()
    interleaved = torch.randint(0, 256, (*lead, side, side, 3), dtype=torch.uint8).movedim(-1, -3)
    return {"planar": interleaved.contiguous(), "interleaved": interleaved}


def compare(
    calls: dict[str, Callable[[], Any]], count: int = CALLS, rounds: int = ROUNDS
) -> dict[str, float]:
    """Return the median time of each call in microseconds; the calls take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(5):
            call()
    for seed in range(rounds):
        for name, call in calls.items():
            torch.manual_seed(seed)
            start = time.thread_time()
            for _ in range(count):
                call()
            times[name].append((time.thread_time() - start) / count * 1e6)
    return {name: statistics.median(each) for name, each in times.items()}


def frames_of(call: Callable[[], Any]) -> int:
    """Count the calls of Python functions of imgops in a call."""
    found = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal found
        found += event == "call" and "/imgops/" in frame.f_code.co_filename

    call()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def transform_table() -> list[str]:
    """Return the rows of all transforms: time of imgops / time of torchvision; below 1 imgops is faster."""
    warnings.filterwarnings("ignore")
    pairs = [(n, getattr(ours, n)(**o), getattr(reference, n)(**o)) for n, o in TRANSFORMS.items()]
    mine, theirs = containers(ours), containers(reference)
    pairs += [(name, mine[name], theirs[name]) for name in mine]
    lines = [
        "| imgops / torchvision | 8 x 8 planar | 8 x 8 interleaved | 32 x 32 planar | 32 x 32 interleaved | imgops, us |",
        "|---|---|---|---|---|---|",
    ]
    for name, one, other in pairs:
        cells, least = [], []
        for side in (8, 32):
            for image in images(side).values():
                try:
                    found = compare({"ours": partial(one, image), "theirs": partial(other, image)})
                except RuntimeError:  # torchvision's kernel is larger than the image
                    cells.append("–")
                    continue
                cells.append(f"{found['ours'] / found['theirs']:.2f}")
                least.append(found["ours"])
        lines.append(f"| {name} | {' | '.join(cells)} | {min(least):.0f} |")
    return lines


def cifar_table() -> list[str]:
    """Return the rows of CIFAR's pipeline: time of the other library / time of imgops; above 1 imgops is faster."""
    single, each = cifar(ours), cifar(ours, per_sample=True)
    theirs, peer = cifar(reference), _albumentations()
    lines = [
        "| CIFAR's pipeline, 32 x 32 | planar | interleaved |",
        "|---|---|---|",
    ]
    ratios: dict[str, list[str]] = {"torchvision": [], "albumentations": [], "batch": []}
    for format, image in images(32).items():
        calls = {"ours": lambda x=image: single(x), "theirs": lambda x=image: theirs(x)}
        if peer is not None:
            calls["peer"] = lambda x=image: peer(x)
        found = compare(calls)
        ratios["torchvision"].append(f"{found['theirs'] / found['ours']:.2f}")
        ratios["albumentations"].append(f"{found['peer'] / found['ours']:.2f}" if peer else "–")
        batch = images(32, 128)[format]
        calls = {"ours": lambda x=batch: each(x), "theirs": lambda x=batch: [theirs(i) for i in x]}
        found = compare(calls, 1, 7)
        ratios["batch"].append(f"{found['theirs'] / found['ours']:.2f}")
    lines.append(f"| torchvision / imgops | {' | '.join(ratios['torchvision'])} |")
    lines.append(f"| albumentations / imgops | {' | '.join(ratios['albumentations'])} |")
    lines.append(f"| a loop over torchvision / `per_sample`, batch of 128 | {' | '.join(ratios['batch'])} |")
    return lines


def _albumentations() -> Callable[[Tensor], Any] | None:
    if find_spec("albumentations") is None:
        return None
    import albumentations

    steps = albumentations.Compose(
        [
            albumentations.PadIfNeeded(40, 40),
            albumentations.RandomCrop(32, 32),
            albumentations.HorizontalFlip(),
            albumentations.Normalize(MEAN, STD),
        ]
    )
    return lambda image: steps(image=image.permute(1, 2, 0).numpy())["image"]


def bare_table() -> list[str]:
    """Return the microseconds of a call of one transform in albumentations and in imgops."""
    if find_spec("albumentations") is None:
        return []
    import albumentations as A

    image = images(32)["interleaved"]
    array = image.permute(1, 2, 0).numpy()
    pairs = {
        "flip": (ours.RandomHorizontalFlip(1.0), A.HorizontalFlip(p=1.0)),
        "crop": (ours.RandomCrop(24), A.RandomCrop(24, 24)),
        "center crop": (ours.CenterCrop(24), A.CenterCrop(24, 24)),
        "solarize": (ours.RandomSolarize(128, 1.0), A.Solarize((128 / 255, 128 / 255), p=1.0)),
        "equalize": (ours.RandomEqualize(1.0), A.Equalize(p=1.0)),
        "gray": (ours.RandomGrayscale(1.0), A.ToGray(p=1.0)),
    }
    lines = [
        "| 32 x 32, interleaved, us | imgops | albumentations' call | its `apply` alone |",
        "|---|---|---|---|",
    ]
    for name, (mine, peer) in pairs.items():
        given = peer.get_params()
        given |= peer.get_params_dependent_on_data({**given, "shape": array.shape}, {"image": array})
        calls = {
            "ours": lambda t=mine: t(image),
            "peer": lambda t=peer: t(image=array),
            "bare": lambda t=peer, g=given: t.apply(array, **g),
        }
        found = compare(calls)
        lines.append(f"| {name} | {found['ours']:.1f} | {found['peer']:.1f} | {found['bare']:.1f} |")
    return lines


def frame_table() -> list[str]:
    """Return the number of imgops' Python functions that a call runs."""
    image, batch = images(32)["planar"], images(32, 4)["planar"]
    single = ours.RandomPerspective(p=1.0)
    each = ours.RandomPerspective(p=1.0, per_sample=True)
    return [
        "| transform | Python calls inside of imgops |",
        "|---|---|",
        f"| RandomPerspective, one image | {frames_of(lambda: single(image))} |",
        f"| RandomPerspective, `per_sample`, four images | {frames_of(lambda: each(batch))} |",
    ]


def tables(about: str) -> list[str]:
    """Return all tables as a page, measured on one thread."""
    torch.set_num_threads(1)
    parts = {
        "Time of imgops / time of torchvision; below 1 imgops is faster. FiveCrop and TenCrop return copies, "
        "while torchvision returns views.": transform_table(),
        "CIFAR's pipeline (RandomCrop(32, padding=4), a flip, ToDtype, Normalize); above 1 imgops is faster:": cifar_table(),
        "Compared with albumentations, in microseconds. The extra time of imgops is PyTorch's: the call of a "
        "module, draws that match torchvision's for the same seed, and a tensor for the result.": bare_table(),
        "Python functions of imgops that a call runs:": frame_table(),
    }
    lines = ["# What a transform costs to call", "", about]
    for title, part in parts.items():
        lines += ["", title, "", *part] if part else []
    return [*lines, ""]
