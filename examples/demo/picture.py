"""The picture of the demonstration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

_INK, _QUIET, _ACCENT = "#1d2733", "#6b7785", "#c8553d"


@dataclass
class Story:
    """The results of the demonstration, for its picture."""

    photo: Tensor
    crop: Tensor
    resize: Tensor
    pad: Tensor
    paste: Tensor
    gradient: Tensor
    target: Tensor
    before: Tensor
    after: Tensor
    patch_before: Tensor
    patch_after: Tensor
    losses: list[float] = field(default_factory=list)


def draw(story: Story, path: str) -> None:
    """Write the panels of ``story`` to ``path`` as PNG."""
    figure = Figure(figsize=(13.0, 12.4), dpi=110, facecolor="white")
    grid = {"left": 0.02, "right": 0.975, "top": 0.95, "bottom": 0.045, "wspace": 0.14, "hspace": 0.17}
    axes = figure.subplots(3, 4, gridspec_kw=grid)
    panels = [
        ("Input", "uint8, 3 × 360 × 320", story.photo),
        ("crop", "PIL.Image.crop", story.crop),
        ("resize", "PIL.Image.resize, 27 × 24 pixels", story.resize),
        ("pad", "cv2.copyMakeBorder, reflect", story.pad),
        ("paste with a mask", "PIL.Image.paste", story.paste),
        None,
        ("Patch before", "noise", story.patch_before),
        ("Patch after", "learned through paste, resize, pad", story.patch_after),
        ("Result before", "paste, resize, pad", story.before),
        ("Result after", "paste, resize, pad", story.after),
        ("Target", "the photograph, resized and padded", story.target),
        None,
    ]
    for axis, panel in zip(axes.flat, panels, strict=True):
        if panel is not None:
            title, note, image = panel
            axis.imshow(_display(image), interpolation="nearest")
            _dress(axis, title, note)
    _gradient(axes[1, 1], story.gradient)
    _losses(axes[2, 3], story.losses)
    figure.savefig(path, format="png")


def _display(image: Tensor) -> np.ndarray:
    array = image.permute(1, 2, 0).numpy()
    return array if array.dtype == np.uint8 else array.clip(0, 1)


def _dress(axis: Any, title: str, note: str) -> None:
    axis.set_title(title, fontsize=12, fontweight="bold", color=_INK, loc="left", pad=20)
    axis.text(0, 1.02, note, transform=axis.transAxes, fontsize=9, color=_QUIET, va="bottom")
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_visible(False)


def _gradient(axis: Any, gradient: Tensor) -> None:
    """Draw the signed gradient, averaged over the colors: red is positive, blue is negative, white is 0."""
    values = gradient.mean(0).numpy()
    limit = float(np.abs(values).max()) or 1.0
    shown = axis.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    _dress(axis, "Gradient of crop", "paste of the weights into zeros, sign kept")
    inset = axis.inset_axes((0.08, 0.12, 0.84, 0.035))
    bar = axis.figure.colorbar(shown, cax=inset, orientation="horizontal")
    bar.outline.set_visible(False)
    inset.tick_params(labelsize=8, colors=_QUIET, length=0)


def _losses(axis: Any, losses: list[float]) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator

    axis.plot(range(1, len(losses) + 1), losses, color=_ACCENT, linewidth=2)
    _dress(axis, "Loss", "by the compiled backward")
    axis.set_yscale("log")
    axis.text(1, -0.1, "step", transform=axis.transAxes, fontsize=9, color=_QUIET, ha="right")
    axis.minorticks_off()
    axis.grid(True, which="major", color="#e6e9ed", linewidth=0.8)
    axis.tick_params(labelsize=8, colors=_QUIET, length=0, labelbottom=True, labelleft=True)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.yaxis.set_major_locator(LogLocator(10))
    axis.set_box_aspect(1.125)
