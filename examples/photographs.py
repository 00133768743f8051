"""Write a folder of JPEG files for the other examples. They are cut from scikit-image's photographs.

    python examples/photographs.py photos --count 200 --corrupt 1

The files are named photos/<class>/<number>.jpg. ``--corrupt`` is the number of truncated files.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from skimage import data

import imgops

CLASSES = {"astronaut": data.astronaut, "cat": data.chelsea, "coffee": data.coffee, "rocket": data.rocket}


def write(folder: Path, count: int, corrupt: int = 0) -> None:
    rng = np.random.default_rng(0)
    whole = {name: torch.from_numpy(photo().copy()).permute(2, 0, 1) for name, photo in CLASSES.items()}
    for number in range(count):
        name = list(CLASSES)[number % len(CLASSES)]
        _, height, width = whole[name].shape
        left, top = (int(rng.integers(0, side - 224)) for side in (width, height))
        right, bottom = (int(rng.integers(a + 200, b)) for a, b in ((left, width), (top, height)))
        part = imgops.crop(whole[name], (left, top, right, bottom))
        file = imgops.encode_image(part, "jpeg", 90).numpy().tobytes()
        path = folder / name / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file[: len(file) // 2] if number < corrupt else file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--corrupt", type=int, default=0, help="how many files are cut off")
    options = parser.parse_args()
    write(options.folder, options.count, options.corrupt)
