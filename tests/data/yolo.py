"""Write ``yolo.npz``: results of ultralytics 8.4.190, for tests/test_training_recipes.py.

It runs in an environment of its own, because ultralytics brings many packages:

    python -m venv y
    y/bin/pip install ultralytics==8.4.190
    y/bin/python tests/data/yolo.py

Images are interleaved, of odd sizes. The mosaics have the middles that Python's generator draws after ``random.seed``.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
from ultralytics.data import augment
from ultralytics.data.base import BaseDataset
from ultralytics.utils.instance import Instances

SIDE = 64
SIZES = [(37, 53), (90, 41), (64, 64), (23, 120)]
BOXES = [[3.0, 4.0, 30.0, 20.0], [10.0, 5.0, 22.0, 23.0]]


def scene(height: int, width: int, seed: int) -> np.ndarray:
    return np.random.RandomState(seed).randint(0, 256, (height, width, 3)).astype(np.uint8)


def loaded(image: np.ndarray) -> np.ndarray:
    """Resize an image by the code with which data sets load it."""
    how = {"imgsz": SIDE, "augment": False, "cache": "ram", "cv2_flag": 1}
    stand_in = SimpleNamespace(ims=[None], im_files=[""], npy_files=[Path("missing.npy")], **how)
    read = BaseDataset.load_image.__globals__
    kept, read["imread"] = read["imread"], lambda *_, **__: image
    out, _, _ = BaseDataset.load_image(stand_in, 0)
    read["imread"] = kept
    return out


def labels(image: np.ndarray) -> dict[str, Any]:
    small = loaded(image)
    scale = small.shape[1] / image.shape[1]
    boxes = Instances(np.array(BOXES, np.float32) * scale, bbox_format="xyxy", normalized=False)
    return {
        "img": small,
        "cls": np.arange(2)[:, None],
        "instances": boxes,
        "im_file": "",
        "ori_shape": image.shape[:2],
        "resized_shape": small.shape[:2],
    }


def main() -> None:
    cv2.setNumThreads(1)
    images = [scene(*size, i) for i, size in enumerate(SIZES)]
    found: dict[str, np.ndarray] = {f"image_{i}": image for i, image in enumerate(images)}
    for i, image in enumerate(images):
        for name, how in {"plain": {}, "auto": {"auto": True}, "down": {"scaleup": False}}.items():
            found[f"{name}_{i}"] = augment.LetterBox((SIDE, SIDE), **how)(image=image.copy())
    files = SimpleNamespace(cache=None, get_image_and_label=lambda i: labels(images[i]))
    mosaic = augment.Mosaic(files, imgsz=SIDE)
    mosaic.get_indexes = lambda: [1, 2, 3]
    for seed in range(4):
        random.seed(seed)
        middle = [int(random.uniform(SIDE // 2, 2 * SIDE - SIDE // 2)) for _ in range(2)]
        found[f"middle_{seed}"] = np.array(middle)
        random.seed(seed)
        first = labels(images[0])
        params = mosaic.get_params(first)
        out = mosaic.apply_instances(mosaic.apply_image(first, params), params)
        found[f"mosaic_{seed}"] = out["img"]
        found[f"boxes_{seed}"] = out["instances"].bboxes
    path = Path(__file__).with_name("yolo.npz")
    np.savez_compressed(path, **found)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
