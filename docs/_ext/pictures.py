"""The pictures of the pages, which show what each operator and transform does to one photograph.

``python docs/_ext/pictures.py`` draws the strip of the README again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

import show
from skimage import data

from imgops import transforms

FOLDER = ROOT / "docs" / "_build" / "pictures"
STRIP = ROOT / "docs" / "strip.jpg"
#: The examples on the front page and in the README.
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


def strip() -> None:
    """Draw the strip: eight pictures with their names."""
    width, height, line, gap = 300, 200, 40, 12
    page = Image.new("RGB", (4 * (width + gap) - gap, 2 * (height + line)), "white")
    text, font = ImageDraw.Draw(page), ImageFont.load_default(22)
    before = scene()
    for i, name in enumerate(CHOSEN):
        left, top = i % 4 * (width + gap), i // 4 * (height + line)
        page.paste(show.draw(name, before).resize((width, height), Image.Resampling.LANCZOS), (left, top))
        text.text((left + width / 2, top + height + 6), name, fill="black", font=font, anchor="ma")
    page.save(STRIP, quality=85)


if __name__ == "__main__":
    strip()
