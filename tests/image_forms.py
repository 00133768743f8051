"""The forms in which programs have their images: modes of PIL, arrays, tensors, and lists of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from PIL import Image
from skimage import data
from torchvision import tv_tensors

HEIGHT, WIDTH = 21, 27

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES += ("float16", "float32", "float64", "longdouble", "object")


@cache
def photo(height: int, width: int, mode: str = "RGB") -> Image.Image:
    """Return a photograph with small details, in one of PIL's modes."""
    image = Image.fromarray(data.astronaut()).resize((width, height))
    if mode == "RGBA":
        image.putalpha(Image.fromarray(data.camera()).resize((width, height)))
    return image if mode in ("RGB", "RGBA") else image.convert(mode)


def levels(mode: str = "RGB") -> np.ndarray:
    return np.array(photo(HEIGHT, WIDTH, mode))


def cast(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return levels in another dtype: floats in [0, 1], and integers that a signed byte can hold."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return (array / 255).astype(dtype)
    return array > 120 if kind == "b" else (array // 3).astype(dtype)


# -- images of PIL -----------------------------------------------------------------------------------


def in_mode(mode: str) -> Image.Image:
    if mode == "LAB":
        return Image.frombytes(mode, (WIDTH, HEIGHT), levels().tobytes())
    if mode.startswith("I;16"):
        order = ">u2" if mode == "I;16B" else "<u2"
        return Image.frombytes(
            mode, (WIDTH, HEIGHT), (levels("L").astype(np.uint16) * 200).astype(order).tobytes()
        )
    opaque = {"La": "LA", "LA": "LA", "PA": "PA", "RGBA": "RGBA", "RGBa": "RGBA"}
    if mode in opaque:
        return photo(HEIGHT, WIDTH, "RGBA").convert(opaque[mode]).convert(mode)
    return photo(HEIGHT, WIDTH).convert(mode)


def transparent(mode: str, value: Any) -> Image.Image:
    image = photo(HEIGHT, WIDTH, mode).copy()
    image.info["transparency"] = value
    return image


def of_file(kind: str, mode: str = "RGB") -> Image.Image:
    buffer = io.BytesIO()
    photo(HEIGHT, WIDTH, mode).save(buffer, kind)
    return Image.open(buffer)


MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB")
MODES += ("I", "F", "I;16", "I;16B", "I;16L")
PIL: dict[str, Callable[[], Any]] = {f"PIL {mode}": lambda mode=mode: in_mode(mode) for mode in MODES}
PIL |= {f"PIL of a {kind}": lambda kind=kind: of_file(kind) for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF")}
PIL |= {
    "PIL of a JPEG, CMYK": lambda: of_file("JPEG", "CMYK"),
    "PIL P, a transparent color": lambda: transparent("P", 3),
    "PIL P, transparent colors": lambda: transparent("P", bytes(range(256))),
    "PIL L, a transparent level": lambda: transparent("L", 100),
    "PIL RGB, a transparent color": lambda: transparent("RGB", (10, 20, 30)),
    "PIL RGB, no transparent color": lambda: transparent("RGB", None),
    "PIL 1x1": lambda: photo(1, 1),
    "PIL 1x9": lambda: photo(1, 9),
    "PIL of three modes": lambda: [in_mode("RGB"), in_mode("L"), in_mode("RGBA")],
    "PIL tuple": lambda: (in_mode("RGB"), in_mode("RGB")),
    "PIL nested": lambda: [[in_mode("RGB")], [in_mode("RGB"), in_mode("RGB")]],
}

# -- arrays ----------------------------------------------------------------------------------------------


def _in_every_second(array: np.ndarray) -> np.ndarray:
    return np.repeat(np.repeat(array, 2, 0), 2, 1)[::2, 1::2]


def _in_record(array: np.ndarray) -> np.ndarray:
    """Put values between others, so that no stride is a multiple of their size."""
    records = np.zeros(array.shape, [("other", "u1"), ("value", array.dtype)])
    records["value"] = array
    return records["value"]


def _unaligned(array: np.ndarray) -> np.ndarray:
    buffer = np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:]
    return buffer.view(array.dtype).reshape(array.shape)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "last": lambda array: array,
    "first": lambda array: np.ascontiguousarray(np.moveaxis(array, -1, 0)),
    "reversed channels": lambda array: array[..., ::-1],
    "reversed rows": lambda array: array[::-1],
    "reversed, first": lambda array: np.moveaxis(array, -1, 0)[::-1, ::-1, ::-1],
    "every second": _in_every_second,
    "read-only": _read_only,
    "Fortran": np.asfortranarray,
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "record": lambda array: _in_record(array) if array.dtype != object else array,
    "unaligned": lambda array: _unaligned(array) if array.dtype != object else array,
    "broadcast": lambda array: np.broadcast_to(array[..., :1], array.shape),
}
CHANNELS: dict[str, Callable[[], np.ndarray]] = {
    "2-D": lambda: levels("L"),
    "gray": lambda: levels("L")[..., None],
    "RGBA": lambda: levels("RGBA"),
    "two channels": lambda: levels()[..., :2],
    "five channels": lambda: np.concatenate([levels(), levels()[..., :2]], -1),
}
ARRAYS: dict[str, Callable[[], Any]] = {
    f"array {dtype}, {layout}": lambda dtype=dtype, change=change: change(cast(levels(), dtype))
    for dtype in DTYPES
    for layout, change in LAYOUTS.items()
}
ARRAYS |= {
    f"array {dtype}, {channels}, {layout}": lambda dtype=dtype, make=make, layout=layout: LAYOUTS[layout](
        cast(make(), dtype)
    )
    for dtype in ("bool", "uint8", "uint16", "float32", "float64")
    for channels, make in CHANNELS.items()
    for layout in ("last", "first", "reversed rows")
}
ARRAYS |= {
    f"array {dtype} of levels": lambda dtype=dtype: levels().astype(dtype)
    for dtype in ("uint16", "int32", "float16", "float32", "float64", ">f4")
}
ARRAYS |= {
    "array in [-1, 1]": lambda: (levels() / 127.5 - 1).astype(np.float32),
    "array of levels and a half": lambda: levels() * np.float32(0.7),
    "array above the levels": lambda: levels() * np.float32(1.5),
    "array int above": lambda: levels().astype(np.int32) * 3,
    "array int below": lambda: levels().astype(np.int32) - 100,
    "array nan": lambda: np.where(levels() > 200, np.nan, levels() / 255),
    "array inf": lambda: np.where(levels() > 200, np.inf, levels() / 255),
    "array of zeros": lambda: np.zeros((HEIGHT, WIDTH, 3), np.float32),
    "array of ones": lambda: np.ones((HEIGHT, WIDTH, 3)),
    "array of one level": lambda: np.broadcast_to(np.uint8(7), (HEIGHT, WIDTH, 3)),
    "array 1x1": lambda: levels()[:1, :1],
    "array 1x1, first": lambda: levels()[:1, :1].transpose(2, 0, 1),
    "array 1x27": lambda: levels()[:1],
    "array 21x1": lambda: levels()[:, :1],
    "array 3x27": lambda: levels()[:3],
    "array 3x3": lambda: levels()[:3, :3],
    "array 0x27": lambda: levels()[:0],
    "array 1-D": lambda: levels().ravel(),
    "array 0-D": lambda: np.array(3, np.uint8),
}

# -- tensors -----------------------------------------------------------------------------------------


def tensor(dtype: str = "uint8", mode: str = "RGB") -> torch.Tensor:
    """Return an image with its channels last."""
    kind: torch.dtype = getattr(torch, dtype)
    whole = torch.from_numpy(levels(mode) // 3)
    return (
        (whole.double() / 85).to(kind)
        if kind.is_floating_point
        else (whole > 40 if kind == torch.bool else whole).to(kind)
    )


TENSORS: dict[str, Callable[[], Any]] = {
    f"tensor {dtype}": lambda dtype=dtype: tensor(dtype).permute(2, 0, 1).contiguous()
    for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64")
    + ("float16", "bfloat16", "float32", "float64")
}
TENSORS |= {
    "tensor last": tensor,
    "tensor interleaved": lambda: tensor().permute(2, 0, 1),
    "tensor transposed": lambda: tensor("float32").permute(2, 1, 0),
    "tensor every second": lambda: torch.from_numpy(np.repeat(levels(), 2, 1))[:, ::2],
    "tensor expanded": lambda: tensor()[..., :1].expand(-1, -1, 3),
    "tensor of one level": lambda: torch.tensor(7, dtype=torch.uint8).expand(3, HEIGHT, WIDTH),
    "tensor 2-D": lambda: tensor()[..., 0],
    "tensor RGBA": lambda: tensor(mode="RGBA").permute(2, 0, 1),
    "tensor float32 RGBA": lambda: tensor("float32", "RGBA").permute(2, 0, 1),
    "tensor 1x1": lambda: tensor()[:1, :1],
    "tensor batch": lambda: torch.stack([tensor()] * 2).permute(0, 3, 1, 2),
    "tensor batch, last": lambda: torch.stack([tensor()] * 2),
    "tensor batch of one": lambda: tensor()[None],
    "tensor batch of none": lambda: tensor()[None][:0],
    "tensor list": lambda: [tensor(), tensor()[:9]],
    "tensor nested": lambda: [[tensor()], [tensor()]],
    "tensor of torchvision": lambda: tv_tensors.Image(tensor().permute(2, 0, 1)),
    "tensor parameter": lambda: torch.nn.Parameter(tensor("float32").permute(2, 0, 1), requires_grad=False),
    "tensor negated": lambda: torch._neg_view(-tensor("float32").permute(2, 0, 1)),
}

# -- several images, and what is none ---------------------------------------------------------------

SEVERAL: dict[str, Callable[[], Any]] = {
    "batch last": lambda: np.stack([levels(), levels()[::-1]]),
    "batch first": lambda: np.stack([levels(), levels()[::-1]]).transpose(0, 3, 1, 2),
    "batch reversed": lambda: np.stack([levels(), levels()[::-1]])[::-1, ..., ::-1],
    "batch of one": lambda: levels()[None],
    "batch of none": lambda: levels()[None][:0],
    "batch gray": lambda: np.stack([levels("L")[..., None]] * 2),
    "5-D": lambda: levels()[None, None],
    "list": lambda: [levels(), levels()[::-1, :, ::-1]],
    "list of sizes": lambda: [levels(), levels()[:9], levels()[:, 3:]],
    "list of dtypes": lambda: [levels(), cast(levels(), np.float32)],
    "list of 2-D": lambda: [levels("L"), levels("L")],
    "list of kinds": lambda: [levels(), photo(HEIGHT, WIDTH), tensor()],
    "list of batches": lambda: [np.stack([levels()] * 2), levels()[None]],
    "tuple": lambda: (levels(), levels()),
    "nested": lambda: [[levels()], [levels(), levels()[..., ::-1]]],
    "empty list": list,
    "empty nested": lambda: [[]],
    "numbers": lambda: levels().tolist(),
    "None": lambda: None,
    "list of None": lambda: [None],
    "bytes": lambda: b"abc",
    "int": lambda: 3,
}

FORMS: dict[str, Callable[[], Any]] = PIL | ARRAYS | TENSORS | SEVERAL
