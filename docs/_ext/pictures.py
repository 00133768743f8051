"""The pictures of the pages, which show what each operator and transform does to one photograph.

``python docs/_ext/pictures.py`` makes the picture of the README again, by its example.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

import show
from skimage import data

import imgops
from imgops import transforms

FOLDER = ROOT / "docs" / "_build" / "pictures"
VIEWS = ROOT / "docs" / "views.jpg"
#: The examples on the front page.
CHOSEN = (
    *("paste", "warp_perspective", "RandomGridDistortion", "clahe"),
    *("RandomRain", "canny", "Mosaic", "connected_components"),
)
#: The cat's face and its ear.
_BOXES = [(0.22, 0.2, 0.78, 0.95), (0.7, 0.02, 0.86, 0.35)]


def scene() -> dict[str, Any]:
    photo = torch.from_numpy(data.chelsea()).permute(2, 0, 1)
    return show.sample(show.fit_photo(photo), _BOXES)


def full_name(name: str) -> str:
    """Return the name of the API page that a picture belongs to."""
    return (
        f"imgops.transforms.{name}" if hasattr(transforms, name) and name[0].isupper() else f"imgops.{name}"
    )


def moves(name: str) -> bool:
    """Return whether the picture also shows masks, boxes and keypoints, because the transform moves them."""
    return name[0].isupper() and bool(getattr(getattr(transforms, name), "_moves", False))


def draw_all() -> None:
    """Draw every example, and the photograph itself, with and without its masks, boxes and keypoints."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    before = scene()
    _save(show.picture(before["image"]), "before")
    _save(show.draw_annotated(before), "before-with")
    for name in show.EXAMPLES:
        _save(show.draw(name, before), full_name(name))


def _save(image: Image.Image, name: str) -> None:
    image.save(FOLDER / f"{name}.webp", quality=82)


def views() -> None:
    """Run the example of the README on the photograph, and keep its picture."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    code = re.sub(r"torch\.randint\(.*?\)  # or (.*)", r"\1", code)
    photo = imgops.encode_image(torch.from_numpy(data.chelsea()).permute(2, 0, 1), quality=95)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("photo.jpg").write_bytes(photo.numpy().tobytes())
        exec(code, {})
        VIEWS.write_bytes(Path("views.jpg").read_bytes())


if __name__ == "__main__":
    views()
