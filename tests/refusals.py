"""The table of refusals: every call that must fail, with its exact message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from imgops import crop, pad, paste, resize


@dataclass(frozen=True)
class Refusal:
    id: str
    error: type[Exception]
    message: str
    call: Callable[[Tensor], Any]
    dtype: torch.dtype = torch.float32
    value: bool = False  # found where a tensor's values are read: not on the meta device

    def __str__(self) -> str:
        return self.id


def _float64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


CROP_BOX = "crop: box must have 4 integers (left, top, right, bottom)"
RESIZE_SIZE = "resize: size must have 2 integers (height, width)"
RESIZE_BOX = "resize: box must have 4 numbers (left, top, right, bottom)"
ONE_BOX = f"{RESIZE_BOX}, one box or one for each image"
REGION = "resize: box must satisfy 0 <= left <= right <= 6 and 0 <= top <= bottom <= 5"
PADDING = "pad: padding must have 4 integers (left, top, right, bottom)"
FILL = "pad: fill must be a number or one per channel"
FILTERS = "'nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos' with antialias=True"
PLAIN = "'nearest', 'bilinear', 'bicubic', 'area', 'lanczos' with antialias=False"
DIMENSIONS = "must have at least 3 dimensions (..., C, H, W)"

# The image of every call is (2, 3, 5, 6).
REFUSALS: tuple[Refusal, ...] = (
    # crop
    Refusal(
        "crop-not-a-tensor",
        TypeError,
        "crop: image must be a Tensor, got list",
        lambda x: crop([1], (0, 0, 1, 1)),
    ),
    Refusal(
        "crop-2d",
        ValueError,
        f"crop: image {DIMENSIONS}, got shape (5, 6)",
        lambda x: crop(x[0, 0], (0, 0, 1, 1)),
    ),
    Refusal("crop-3-values", ValueError, f"{CROP_BOX}, got 3", lambda x: crop(x, (0, 0, 1))),
    Refusal("crop-number", TypeError, f"{CROP_BOX}, got int", lambda x: crop(x, 3)),
    Refusal("crop-text", TypeError, f"{CROP_BOX}, got str", lambda x: crop(x, "0123")),
    Refusal("crop-float", TypeError, f"{CROP_BOX}, got float 1.5", lambda x: crop(x, (0, 0, 1.5, 2))),
    Refusal("crop-none", TypeError, f"{CROP_BOX}, got NoneType None", lambda x: crop(x, (0, 0, None, 2))),
    Refusal(
        "crop-float-tensor",
        TypeError,
        f"{CROP_BOX}, got torch.float64",
        lambda x: crop(x, _float64(0, 0, 1, 1)),
    ),
    Refusal(
        "crop-tensor-of-3",
        ValueError,
        f"{CROP_BOX}, got shape (3,)",
        lambda x: crop(x, torch.tensor([0, 0, 1])),
    ),
    Refusal(
        "crop-right-left",
        ValueError,
        "crop: box must have right >= left, got (3, 0, 1, 2)",
        lambda x: crop(x, (3, 0, 1, 2)),
    ),
    Refusal(
        "crop-bottom-top",
        ValueError,
        "crop: box must have bottom >= top, got (0, 2, 1, 1)",
        lambda x: crop(x, (0, 2, 1, 1)),
    ),
    Refusal(
        "crop-64-bit",
        ValueError,
        "crop: box must have 32-bit coordinates, got (0, 0, 4294967296, 1)",
        lambda x: crop(x, (0, 0, 2**32, 1)),
    ),
    Refusal(
        "crop-huge",
        ValueError,
        "crop: box must span fewer than 2**31 pixels, got 32768 x 65536",
        lambda x: crop(x, (0, 0, 2**16, 2**15)),
    ),
    # paste
    Refusal(
        "paste-image", TypeError, "paste: image must be a Tensor, got int", lambda x: paste(1, x, (0, 0))
    ),
    Refusal(
        "paste-source",
        TypeError,
        "paste: source must be a Tensor, got NoneType",
        lambda x: paste(x, None, (0, 0)),
    ),
    Refusal(
        "paste-mask", TypeError, "paste: mask must be a Tensor, got float", lambda x: paste(x, x, (0, 0), 0.5)
    ),
    Refusal(
        "paste-position",
        ValueError,
        "paste: position must have 2 integers (left, top), got 3",
        lambda x: paste(x, x, (0, 0, 0)),
    ),
    Refusal(
        "paste-position-float",
        TypeError,
        "paste: position must have 2 integers (left, top), got float 0.5",
        lambda x: paste(x, x, (0, 0.5)),
    ),
    Refusal(
        "paste-position-64-bit",
        ValueError,
        "paste: position must have 32-bit coordinates, got (0, -8589934592)",
        lambda x: paste(x, x, (0, -(2**33))),
    ),
    Refusal(
        "paste-2d",
        ValueError,
        f"paste: source {DIMENSIONS}, got shape (5, 6)",
        lambda x: paste(x, x[0, 0], (0, 0)),
    ),
    Refusal(
        "paste-dtype",
        TypeError,
        "paste: source must have the dtype of image (torch.float32), got torch.float64",
        lambda x: paste(x, x.double(), (0, 0)),
    ),
    Refusal(
        "paste-channels",
        ValueError,
        "paste: source must have the channels of image (3), got 1",
        lambda x: paste(x, x[:, :1], (0, 0)),
    ),
    Refusal(
        "paste-batch",
        ValueError,
        "paste: source must have the leading dimensions of image (2,), got (3,)",
        lambda x: paste(x, x[:1].repeat(3, 1, 1, 1), (0, 0)),
    ),
    Refusal(
        "paste-mask-size",
        ValueError,
        "paste: mask must be (..., 1, 5, 6) as source is, got (2, 1, 4, 6)",
        lambda x: paste(x, x, (0, 0), x[:, :1, :4]),
    ),
    Refusal(
        "paste-mask-channels",
        ValueError,
        "paste: mask must be (..., 1, 5, 6) as source is, got (2, 3, 5, 6)",
        lambda x: paste(x, x, (0, 0), x),
    ),
    Refusal(
        "paste-mask-int",
        TypeError,
        "paste: mask must be floating point, uint8 or bool, got torch.int64",
        lambda x: paste(x, x, (0, 0), x[:, :1].long()),
    ),
    Refusal(
        "paste-mask-of-int64",
        TypeError,
        "paste: mask must be bool for an image of torch.int64, got torch.float32",
        lambda x: paste(x, x, (0, 0), x[:, :1].float()),
        torch.int64,
    ),
    # pad
    Refusal("pad-image", TypeError, "pad: image must be a Tensor, got NoneType", lambda x: pad(None, 1)),
    Refusal("pad-2d", ValueError, f"pad: image {DIMENSIONS}, got shape (5, 6)", lambda x: pad(x[0, 0], 1)),
    Refusal(
        "pad-negative",
        ValueError,
        "pad: padding must not be negative, got (-1, -1, -1, -1)",
        lambda x: pad(x, -1),
    ),
    Refusal("pad-3-values", ValueError, f"{PADDING}, got 3", lambda x: pad(x, (1, 2, 3))),
    Refusal("pad-float", TypeError, f"{PADDING}, got float", lambda x: pad(x, 1.5)),
    Refusal(
        "pad-mode",
        ValueError,
        "pad: mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'mirror'",
        lambda x: pad(x, 1, "mirror"),
    ),
    Refusal(
        "pad-fill-count",
        ValueError,
        "pad: fill must be one value or one for each of 3 channels, got shape (2,)",
        lambda x: pad(x, 1, fill=(1, 2)),
    ),
    Refusal("pad-fill-text", TypeError, f"{FILL}, got str", lambda x: pad(x, 1, fill="red")),
    Refusal("pad-fill-none", TypeError, f"{FILL}, got NoneType", lambda x: pad(x, 1, fill=(1, None, 2))),
    Refusal(
        "pad-fill-inf",
        ValueError,
        "pad: fill must be finite for torch.uint8, got inf",
        lambda x: pad(x, 1, fill=float("inf")),
        torch.uint8,
    ),
    Refusal(
        "pad-fill-nan-tensor",
        ValueError,
        "pad: fill must be finite for torch.uint8, got nan",
        lambda x: pad(x, 1, fill=_float64(float("nan"))),
        torch.uint8,
        value=True,
    ),
    Refusal(
        "pad-fill-complex",
        TypeError,
        "pad: fill must be real, got torch.complex64",
        lambda x: pad(x, 1, fill=torch.tensor(1j)),
    ),
    Refusal(
        "pad-empty",
        ValueError,
        "pad: image must have at least one pixel for mode 'edge', got shape (2, 3, 0, 6)",
        lambda x: pad(x[:, :, :0], 1, "edge"),
    ),
    Refusal(
        "pad-64-bit",
        ValueError,
        "pad: padding must be 32-bit, got (4294967296, 0, 4294967296, 0)",
        lambda x: pad(x, (2**32, 0)),
    ),
    Refusal(
        "pad-huge",
        ValueError,
        "pad: the padded image must span fewer than 2**31 pixels, got 65541 x 65542",
        lambda x: pad(x, 2**15),
    ),
    # resize
    Refusal(
        "resize-image",
        TypeError,
        "resize: image must be a Tensor, got str",
        lambda x: resize("cat.png", (1, 1)),
    ),
    Refusal(
        "resize-2d",
        ValueError,
        f"resize: image {DIMENSIONS}, got shape (6,)",
        lambda x: resize(x[0, 0, 0], (1, 1)),
    ),
    Refusal(
        "resize-zero",
        ValueError,
        "resize: size must be at least (1, 1), got (0, 3)",
        lambda x: resize(x, (0, 3)),
    ),
    Refusal(
        "resize-negative",
        ValueError,
        "resize: size must be at least (1, 1), got (3, -1)",
        lambda x: resize(x, (3, -1)),
    ),
    Refusal("resize-number", TypeError, f"{RESIZE_SIZE}, got int", lambda x: resize(x, 3)),
    Refusal("resize-3-values", ValueError, f"{RESIZE_SIZE}, got 3", lambda x: resize(x, (3, 4, 5))),
    Refusal("resize-float", TypeError, f"{RESIZE_SIZE}, got float 4.0", lambda x: resize(x, (3, 4.0))),
    Refusal(
        "resize-huge",
        ValueError,
        "resize: size must span fewer than 2**31 pixels, got 65536 x 32768",
        lambda x: resize(x, (2**16, 2**15)),
    ),
    Refusal(
        "resize-empty",
        ValueError,
        "resize: image must have at least one pixel, got shape (2, 3, 5, 0)",
        lambda x: resize(x[..., :0], (2, 2)),
    ),
    Refusal(
        "resize-int32",
        TypeError,
        "resize: image must be uint8 or floating point for interpolation 'bilinear', got torch.int32",
        lambda x: resize(x, (2, 2)),
        torch.int32,
    ),
    Refusal(
        "resize-complex128",
        TypeError,
        "resize: image must have at most 8 bytes a value, got torch.complex128",
        lambda x: resize(x, (2, 2), "nearest"),
        torch.complex128,
    ),
    Refusal(
        "resize-filter",
        ValueError,
        f"resize: interpolation must be one of {FILTERS}, got 'area'",
        lambda x: resize(x, (2, 2), "area"),
    ),
    Refusal(
        "resize-plain-filter",
        ValueError,
        f"resize: interpolation must be one of {PLAIN}, got 'hamming'",
        lambda x: resize(x, (2, 2), "hamming", antialias=False),
    ),
    Refusal(
        "resize-box-plain",
        ValueError,
        "resize: box must be None with antialias=False, got a box",
        lambda x: resize(x, (2, 2), antialias=False, box=(0, 0, 2, 2)),
    ),
    Refusal("resize-box-count", ValueError, f"{RESIZE_BOX}, got 2", lambda x: resize(x, (2, 2), box=(0, 0))),
    Refusal("resize-box-number", TypeError, f"{RESIZE_BOX}, got float", lambda x: resize(x, (2, 2), box=1.0)),
    Refusal(
        "resize-box-text",
        TypeError,
        f"{RESIZE_BOX}, got str",
        lambda x: resize(x, (2, 2), box=(0, 0, 1, "a")),
    ),
    Refusal(
        "resize-box-outside",
        ValueError,
        f"{REGION}, got (0.0, 0.0, 6.5, 5.0)",
        lambda x: resize(x, (2, 2), box=(0, 0, 6.5, 5)),
    ),
    Refusal(
        "resize-box-turned",
        ValueError,
        f"{REGION}, got (3.0, 0.0, 2.0, 5.0)",
        lambda x: resize(x, (2, 2), box=(3, 0, 2, 5)),
    ),
    Refusal(
        "resize-box-nan",
        ValueError,
        f"{REGION}, got (nan, 0.0, 2.0, 5.0)",
        lambda x: resize(x, (2, 2), box=(float("nan"), 0, 2, 5)),
    ),
    Refusal(
        "resize-box-tensor-value",
        ValueError,
        f"{REGION}, got (0.0, 0.0, 7.0, 5.0)",
        lambda x: resize(x, (2, 2), box=_float64(0, 0, 7, 5)),
        value=True,
    ),
    Refusal(
        "resize-box-second",
        ValueError,
        f"{REGION}, got (0.0, 0.0, 7.0, 5.0)",
        lambda x: resize(x, (2, 2), box=torch.stack([_float64(0, 0, 6, 5), _float64(0, 0, 7, 5)])),
        value=True,
    ),
    Refusal(
        "resize-box-float32",
        TypeError,
        "resize: box must be float64, got torch.float32",
        lambda x: resize(x, (2, 2), box=_float64(0, 0, 2, 2).float()),
    ),
    Refusal(
        "resize-box-shape",
        ValueError,
        f"{ONE_BOX}, got shape (3, 4)",
        lambda x: resize(x, (2, 2), box=torch.zeros(3, 4, dtype=torch.float64)),
    ),
    # the adjoints, called as operators
    Refusal(
        "pad_adjoint-int",
        TypeError,
        "pad_adjoint: grad must be floating point, got torch.int64",
        lambda x: torch.ops.imgops.pad_adjoint(x, 1, 1, 1, 1, "edge"),
        torch.int64,
    ),
    Refusal(
        "pad_adjoint-size",
        ValueError,
        "pad_adjoint: padding must leave a part of grad, got (3, 0, 3, 0) for shape (2, 3, 5, 6)",
        lambda x: torch.ops.imgops.pad_adjoint(x, 3, 0, 3, 0, "edge"),
    ),
    Refusal(
        "resize_adjoint-uint8",
        TypeError,
        "resize_adjoint: grad must be floating point, got torch.uint8",
        lambda x: torch.ops.imgops.resize_adjoint(x, None, 4, 4, "bilinear", True),
        torch.uint8,
    ),
    Refusal(
        "resize_adjoint-size",
        ValueError,
        "resize_adjoint: size must be at least (1, 1), got (0, 4)",
        lambda x: torch.ops.imgops.resize_adjoint(x, None, 0, 4, "bilinear", True),
    ),
)
