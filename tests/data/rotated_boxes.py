"""Write ``rotated_boxes.json``: results of AlbumentationsX 2.5.1, for tests/test_rotated_boxes.py.

It runs in an environment of its own, because AlbumentationsX and albumentations share a name:

    python -m venv x
    x/bin/pip install albumentationsx==2.5.1 opencv-python-headless torch
    x/bin/python tests/data/rotated_boxes.py

Boxes are the center, width, height and angle, clockwise in degrees. Keypoints change their rows by ``label_mapping``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import albumentations as A
import numpy as np

HEIGHT, WIDTH = 100, 140
BOXES = [[50.0, 40.0, 30.0, 12.0, 20.0], [70.0, 55.0, 24.0, 40.0, -35.0], [60.5, 48.25, 44.0, 9.0, 71.0]]
POINTS = [[20.0, 30.0], [50.0, 32.0], [35.0, 60.0]]


def main() -> None:
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    boxes = A.BboxParams(coord_format="cxcywh", bbox_type="obb", label_fields=["number"])
    found: dict[str, Any] = {"size": [HEIGHT, WIDTH], "boxes": BOXES, "points": POINTS}
    found |= {"moved": {}, "named": {}}
    for name in ("HorizontalFlip", "VerticalFlip", "Transpose"):
        out = A.Compose([getattr(A, name)(p=1)], bbox_params=boxes)(
            image=image, bboxes=BOXES, number=[0, 1, 2]
        )
        found["moved"][name] = np.asarray(out["bboxes"], float).tolist()
        mapping = {name: {"side": {"left": "right", "right": "left"}}}
        points = A.KeypointParams(coord_format="xy", label_fields=["side"], label_mapping=mapping)
        out = A.Compose([getattr(A, name)(p=1)], keypoint_params=points)(
            image=image, keypoints=POINTS, side=["left", "right", "nose"]
        )
        found["named"][name] = np.asarray(out["keypoints"], float).tolist()
    Path(__file__).with_name("rotated_boxes.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
