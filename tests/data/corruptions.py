"""Write ``corruptions.npz``: results of imagecorruptions 1.1.2, for tests/test_corruptions.py.

It runs in an environment of its own, because imagecorruptions needs an old scikit-image and NumPy:

    python -m venv old
    old/bin/pip install imagecorruptions==1.1.2 scikit-image==0.19.3 "numpy<1.25" "scipy<1.11" "opencv-python-headless<4.9" "setuptools<81"
    old/bin/python tests/data/corruptions.py

Before each call NumPy's generator is seeded with 1000 * severity + the number of the corruption, which the test does too. The noise
of scikit-image, which has a generator of its own, gets this seed. Frost adds a picture from the file.

Zoom blur rounds sizes, and height and width apart from each other; so ``zoomed`` holds it for a column of pixels of each height in
``heights``, all five severities, one after the other. ``snow`` is that corruption on ``wide``, whose flakes are zoomed to more than its width.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")

from imagecorruptions import corrupt, corruptions, get_corruption_names  # noqa: E402
from PIL import Image  # noqa: E402


def scene(height: int, width: int, seed: int) -> np.ndarray:
    """Return a picture with smooth areas, edges and noise."""
    random = np.random.RandomState(seed)
    small = Image.fromarray(random.randint(0, 256, (5, 6, 3)).astype(np.uint8))
    smooth = np.asarray(small.resize((width, height), Image.BICUBIC)).astype(int)
    y, x = np.mgrid[:height, :width]
    smooth[(y - height / 2) ** 2 + (x - width / 3) ** 2 < (height / 4) ** 2] = (230, 40, 60)
    smooth[y > height * 0.8] //= 3
    return np.clip(smooth + random.randint(-9, 10, smooth.shape), 0, 255).astype(np.uint8)


#: The number of images of snow at each severity: flakes fall from the right in some, and from the left in others.
SNOWFALLS = 5
#: The sides of images of data sets and of networks, and others.
_SIDES = """
2 3 5 7 28 31 32 33 48 56 64 72 84 96 100 112 128 144 160 176 192 200 208 224 240 256 272 288 299 300
320 331 333 336 352 375 380 384 400 416 427 432 448 456 480 500 512 518 528 560 576 600 608 640 672 720
768 800 896 960 1000 1024 1080 1280 1333
"""
HEIGHTS = [int(side) for side in _SIDES.split()]


def columns() -> np.ndarray:
    """Return a column of pixels of each height, one below the other."""
    random = np.random.RandomState(3)
    each = [(np.cumsum(random.randint(-40, 41, height)) + 128) % 256 for height in HEIGHTS]
    return np.concatenate(each).astype(np.uint8)


def main() -> None:
    image, frost = scene(36, 44, 1), scene(50, 48, 2)
    names = get_corruption_names("all")
    corruptions.cv2.imread = lambda name: frost[..., ::-1]
    noise = corruptions.sk.util.random_noise
    results = np.empty((len(names), 5, *image.shape), np.uint8)
    for i, name in enumerate(names):
        for severity in range(1, 6):
            seed = 1000 * severity + i
            np.random.seed(seed)
            corruptions.sk.util.random_noise = partial(noise, seed=seed)
            results[i, severity - 1] = corrupt(image, severity, name)
    column = columns()
    parts = np.split(column, np.cumsum(HEIGHTS)[:-1])
    images = [np.repeat(part[:, None, None], 3, 2) for part in parts]
    zoomed = [[corruptions.zoom_blur(x, level)[:, 0, 0] for x in images] for level in range(1, 6)]
    wide = scene(40, 64, 4)
    snow = np.empty((5, SNOWFALLS, *wide.shape), np.uint8)
    for severity in range(1, 6):
        for seed in range(SNOWFALLS):
            np.random.seed(seed)
            snow[severity - 1, seed] = corrupt(wide, severity, "snow")
    own = {"wide": wide, "snow": snow, "heights": HEIGHTS, "column": column}
    own["zoomed"] = np.stack([np.concatenate(each) for each in zoomed]).astype(np.uint8)
    path = Path(__file__).with_name("corruptions.npz")
    np.savez_compressed(path, image=image, frost=frost, names=names, results=results, **own)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
