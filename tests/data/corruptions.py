"""Write ``corruptions.npz``: results of imagecorruptions 1.1.2, for tests/test_corruptions.py.

It runs in an environment of its own, because imagecorruptions needs an old scikit-image and NumPy:

    python -m venv old
    old/bin/pip install imagecorruptions==1.1.2 scikit-image==0.19.3 "numpy<1.25" "scipy<1.11" "opencv-python-headless<4.9" "setuptools<81"
    old/bin/python tests/data/corruptions.py

Before each call NumPy's generator is seeded with 1000 * severity + the number of the corruption, which the test does too. The noise
of scikit-image, which has a generator of its own, gets this seed. Frost adds a picture from the file.
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
    path = Path(__file__).with_name("corruptions.npz")
    np.savez_compressed(path, image=image, frost=frost, names=names, results=results)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
