"""``python -m benchmarks.processors``: the image processors of transformers with each of their backends.

Each class runs with its defaults on a batch of 8 photographs of 1024 x 802, as PIL images, on one thread. The backends
take turns; each number is the median of the rounds' ratios of the backend's time to the time of imgops' exact one.
"""

from __future__ import annotations

import argparse
import time
from datetime import date
from importlib.metadata import version
from statistics import median
from typing import Any

import cv2
import numpy as np
import torch
import transformers
from PIL import Image
from skimage import data

from benchmarks.__main__ import RESULTS
from benchmarks.table import machine
from imgops.integrations.transformers import exact

NAMES = (
    "CLIP",
    "Siglip",
    "ViT",
    "ConvNext",
    "Detr",
    "SmolVLM",
    "Pixtral",
    "Qwen2VL",
    "LlavaNext",
    "Blip",
    "DPT",
    "LlavaOnevision",
    "RTDetr",
    "Segformer",
)


def photographs() -> list[Image.Image]:
    pixels = np.asarray(Image.fromarray(data.astronaut()).resize((1024, 802)))
    return [Image.fromarray(np.roll(pixels, 7 * i, 0)) for i in range(8)]


def seconds_of(processor: Any, images: list[Image.Image]) -> float:
    start = time.perf_counter()
    processor(images, return_tensors="pt")
    return time.perf_counter() - start


def levels_apart(processor: Any, other: Any, image: Image.Image) -> float:
    """Return the largest difference between the pixels that two processors return, in levels."""
    first, second = (
        np.concatenate([np.asarray(x, np.float64).ravel() for x in p(image).pixel_values])
        for p in (processor, other)
    )
    spread = np.mean(processor.image_std) if processor.do_normalize else 1.0
    return float(np.abs(first - second).max() * spread / processor.rescale_factor)


def table(rounds: int) -> list[str]:
    images = photographs()
    lines = [
        "| processor | ms | PIL | torchvision | levels, torchvision | levels, imgops |",
        "|---|---|---|---|---|---|",
    ]
    ratios: dict[str, list[float]] = {"PIL": [], "torchvision": []}
    for name in NAMES:
        of_torchvision = getattr(transformers, f"{name}ImageProcessor")()
        of_pil = getattr(transformers, f"{name}ImageProcessorPil")()
        ours = exact(of_torchvision)
        each = {"imgops": ours, "PIL": of_pil, "torchvision": of_torchvision}
        times: dict[str, list[float]] = {key: [] for key in each}
        for i in range(rounds + 1):
            for key, processor in each.items():
                took = seconds_of(processor, images)
                if i:  # the first round makes tables
                    times[key].append(took)
        cells = []
        for key in ratios:
            found = median(a / b for a, b in zip(times[key], times["imgops"], strict=True))
            ratios[key].append(found)
            cells.append(f"{found:.2f}")
        apart = [f"{levels_apart(p, of_pil, images[0]):.3g}" for p in (of_torchvision, ours)]
        lines.append(f"| {name} | {median(times['imgops']) * 1000:.1f} | {' | '.join([*cells, *apart])} |")
        print(lines[-1], flush=True)
    cells = [f"{median(found):.2f}" for found in ratios.values()]
    return [*lines, f"| median | – | {' | '.join(cells)} | – | – |"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processors")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    transformers.logging.set_verbosity_error()
    facts = machine()
    packages = ", ".join(f"{p} {version(p)}" for p in ("transformers", "torch", "torchvision", "pillow"))
    lines = [
        "# Image processors",
        "",
        f"{facts['cpu']}; {packages}.",
        "",
        *(__doc__ or "").split("\n\n")[1].strip().splitlines(),
        "Levels: the largest difference from the PIL backend, in levels of 255.",
        "",
        *table(options.rounds),
    ]
    path = RESULTS / f"processors-{date.today().isoformat()}-{facts['slug']}.md"
    path.write_text("\n".join(lines) + "\n")
    print(path)


if __name__ == "__main__":
    main()
