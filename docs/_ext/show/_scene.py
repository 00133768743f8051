"""Scenes: a photograph with masks, boxes and keypoints, and the functions that draw it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor
from torchvision import tv_tensors

import imgops
from imgops import transforms

#: The largest height and width of the photograph in a picture.
HEIGHT, WIDTH = 240, 360
_COLORS = [(255, 196, 0), (0, 220, 255), (255, 80, 160)]


def fit_photo(photo: Tensor) -> Tensor:
    return imgops.contain(photo, (HEIGHT, WIDTH), "bicubic").contiguous()


def sample(photo: Tensor, boxes: Sequence[Sequence[float]] | None = None) -> dict[str, Any]:
    """Return a photograph as a sample of a detection data set, with two default boxes if none are given."""
    height, width = photo.shape[-2:]
    shares = boxes or [(0.28, 0.2, 0.72, 0.85), (0.05, 0.55, 0.3, 0.95)]
    corners = torch.tensor(shares, dtype=torch.float32, device="cpu") * torch.tensor(
        [width, height, width, height], dtype=torch.float32, device="cpu"
    )
    return {
        "image": tv_tensors.Image(photo),
        "boxes": tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=(height, width)),
        "masks": tv_tensors.Mask(torch.stack([_ellipse(height, width, box) for box in corners.tolist()])),
        "labels": torch.arange(len(corners), dtype=torch.int64, device="cpu"),
        "points": tv_tensors.KeyPoints((corners[:, :2] + corners[:, 2:]) / 2, canvas_size=(height, width)),
    }


def _ellipse(height: int, width: int, box: Sequence[float]) -> Tensor:
    mask = Image.new("L", (width, height))
    ImageDraw.Draw(mask).ellipse(tuple(box), fill=1)
    return torch.from_numpy(np.array(mask))


def picture(image: Tensor) -> Image.Image:
    """Convert an image of any dtype to an 8-bit RGB picture."""
    plain = image.as_subclass(Tensor).detach().cpu()
    if plain.dtype == torch.int32:  # each label gets a color
        spread = (
            plain.long()
            * torch.tensor([37, 101, 197], dtype=torch.float32, device="cpu")[:, None, None]
            % 200
            + 55
        ).byte()
        plain = torch.where(plain > 0, spread, 0).byte()
    elif plain.dtype == torch.int16:  # show the absolute value of a derivative
        plain = plain.abs().clamp(max=255).byte()
    elif plain.dtype != torch.uint8:
        real = plain.float()
        plain = (real / max(float(real.max()), 1e-6) * 255).clamp(0, 255).byte()
    frame = plain.permute(1, 2, 0).numpy()
    if frame.shape[2] == 4:
        ground = Image.new("RGBA", (frame.shape[1], frame.shape[0]), "white")
        return Image.alpha_composite(ground, Image.fromarray(np.ascontiguousarray(frame))).convert("RGB")
    return Image.fromarray(np.ascontiguousarray(frame[..., 0] if frame.shape[2] == 1 else frame)).convert(
        "RGB"
    )


def draw_annotated(scene: dict[str, Any]) -> Image.Image:
    """Draw an image with its masks, boxes and keypoints."""
    out = picture(scene["image"])
    for i, mask in enumerate(scene["masks"].as_subclass(Tensor)):
        tint = Image.new("RGB", out.size, _COLORS[i % 3])
        out.paste(Image.blend(out, tint, 0.4), mask=Image.fromarray(mask.byte().mul(255).numpy()))
    draw = ImageDraw.Draw(out)
    boxes = transforms.ConvertBoundingBoxFormat("XYXY")(scene["boxes"]).as_subclass(Tensor).tolist()
    for i, (left, top, right, bottom) in enumerate(boxes):
        if right > left and bottom > top:
            draw.rectangle((left, top, right - 1, bottom - 1), outline=_COLORS[i % 3], width=3)
    for i, (x, y) in enumerate(scene["points"].as_subclass(Tensor).tolist()):
        draw.ellipse((x - 5, y - 5, x + 5, y + 5), fill=_COLORS[i % 3], outline="black", width=2)
    return out
