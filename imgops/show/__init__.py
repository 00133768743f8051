"""The command ``python -m imgops show PHOTO [NAME ...]``, which shows operators and transforms."""

from __future__ import annotations

import difflib
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from tqdm import tqdm

import imgops
from imgops._common.check import CommandError
from imgops.show._examples import EXAMPLES as EXAMPLES
from imgops.show._examples import draw as draw
from imgops.show._scene import load as load
from imgops.show._scene import sample as sample

#: The width and height of a tile's picture, above the line with its name.
TILE = (216, 144)
_LINE, _GAP = 22, 10


def sheet(
    photo: str | Path, names: Sequence[str] = (), out: str | Path = "sheet.png", columns: int = 6
) -> None:
    """Write a sheet of pictures: the photograph, then each operator and transform in ``names``, or all.

    Raises
    ------
    CommandError
        If the file is not an image, ``out`` cannot be written, or a name is unknown.
    """
    chosen = list(names) or list(EXAMPLES)
    _check(chosen)
    folder = Path(out).absolute().parent
    if not folder.is_dir() or Path(out).is_dir() or not os.access(folder, os.W_OK):
        raise CommandError(f"show: --out must be a file in a folder that can be written, got {str(out)!r}")
    scene = sample(load(photo))
    tiles = [("the photograph", Image.fromarray(scene["image"].permute(1, 2, 0).numpy()))]
    for name in tqdm(chosen, desc="show", unit="picture", mininterval=0.2):
        tiles.append((name, draw(name, scene)))
    _arrange(tiles, min(columns, len(tiles))).save(out, "PNG")


def listing() -> str:
    """Return the names that a sheet can show, as text."""
    groups = {
        "Operators": [name for name in EXAMPLES if name in imgops.__all__],
        "Transforms": [name for name in EXAMPLES if name not in imgops.__all__],
    }
    lines = []
    for title, names in groups.items():
        lines.append(f"{title}:")
        lines += textwrap.wrap(", ".join(names), 100, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(
        [*lines, "python -m imgops show PHOTO [NAME ...] draws them, or all where none is named."]
    )


def _check(names: Sequence[str]) -> None:
    unknown = [n for n in names if n not in EXAMPLES]
    if not unknown:
        return
    lower = {n.lower(): n for n in EXAMPLES}
    told = []
    for name in unknown:
        near = [lower[n] for n in difflib.get_close_matches(name.lower(), lower, 3, 0.5)]
        told.append(f"{name!r} (near: {', '.join(near)})" if near else repr(name))
    raise CommandError(f"show: NAME must be an operator or a transform, got {', '.join(told)}")


def tile(image: Image.Image) -> Image.Image:
    """Fit a picture into a tile with a transparent background."""
    small = image.copy()
    small.thumbnail(TILE, Image.Resampling.LANCZOS)
    ground = Image.new("RGBA", TILE)
    ground.paste(small, ((TILE[0] - small.width) // 2, (TILE[1] - small.height) // 2))
    return ground


def _arrange(tiles: Sequence[tuple[str, Image.Image]], columns: int) -> Image.Image:
    width, height = TILE[0] + _GAP, TILE[1] + _LINE + _GAP
    rows = -(-len(tiles) // columns)
    page = Image.new("RGB", (columns * width + _GAP, rows * height + _GAP), "white")
    draw_text, font = ImageDraw.Draw(page), ImageFont.load_default(15)
    for i, (name, image) in enumerate(tiles):
        left, top = _GAP + i % columns * width, _GAP + i // columns * height
        small = tile(image)
        page.paste(small, (left, top), small)
        middle = left + TILE[0] / 2
        draw_text.text((middle, top + TILE[1] + 3), name, fill="black", font=font, anchor="ma")
    return page
