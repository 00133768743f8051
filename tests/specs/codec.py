"""encode_image, decode_image, decode_frames, jpeg and webp."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.v2 import functional as tv

import imgops
from imgops import decode_frames, decode_image, encode_image
from tests.specs import _benchmarks as bench
from tests.specs._draw import numbers_of
from tests.specs._libraries import Array, chw, photo_frame, photo_pil
from tests.specs._maker import Maker
from tests.specs._spec import Benchmark, ErrorInput, OpSpec, Refused, Sample, Tolerance, merged

BYTES = torch.zeros(10, dtype=torch.uint8)
PIXELS = torch.zeros(3, 4, 5, dtype=torch.uint8)
DEEP = PIXELS.to(torch.uint16)


def _levels(m: Maker, channels: int) -> Tensor:
    return replace(m, dtype=torch.uint8, batch=(), grad=False).image(channels, 6, 7)


def _encoded(m: Maker, format: str) -> Tensor:
    return imgops.encode_image(_levels(replace(m, format="planar"), 3), format)


@cache
def _jpeg_of(pixels: bytes, size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.frombytes("RGB", size, pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def _jpeg(x: Tensor) -> bytes:
    return _jpeg_of(photo_frame(x).tobytes(), (x.shape[-1], x.shape[-2]))


def _tensor(raw: bytes) -> Tensor:
    return torch.tensor(list(raw), dtype=torch.uint8)


@cache
def _animation(kind: str = "PNG", count: int = 3) -> Tensor:
    """Return an animation of gray images of 4 x 5 pixels."""
    images = [Image.new("L", (5, 4), 60 * (i + 1)) for i in range(count)]
    buffer = io.BytesIO()
    images[0].save(buffer, kind, save_all=True, append_images=images[1:])
    return _tensor(buffer.getvalue())


ENCODE_IMAGE = OpSpec(
    "encode_image",
    samples=tuple(
        Sample(
            f"{format}-{channels}",
            lambda m, f=format, c=channels: (_levels(m, c), f, 90),
            differentiable=False,
        )
        for format, channels in (("jpeg", 1), ("jpeg", 3), ("png", 1), ("png", 2), ("png", 4), ("webp", 3))
    ),
    refused={
        TypeError: {
            "image must be a Tensor, got list": lambda x: encode_image([1]),
            "image must be uint8, or uint16 for png, got torch.float32": lambda x: encode_image(
                PIXELS.float()
            ),
            "image must be uint8 for jpeg, got torch.uint16": lambda x: encode_image(DEEP),
            "quality must be an int, got 1.0": lambda x: encode_image(PIXELS, "png", 1.0),  # type: ignore[arg-type]
        },
        ValueError: {
            "image must have 1 or 3 channels for jpeg, got 2": lambda x: encode_image(PIXELS[:2]),
            "image must have 1 or 3 or 4 channels for png of uint16, got 2": lambda x: encode_image(
                DEEP[:2], "png"
            ),
            "image must be (C, H, W), got shape (1, 3, 4, 5)": lambda x: encode_image(PIXELS[None]),
            "image must have at least one pixel, got shape (3, 0, 5)": lambda x: encode_image(PIXELS[:, :0]),
            "quality must be from 1 to 100, got 0": lambda x: encode_image(PIXELS, quality=0),
            "format must be one of 'jpeg', 'png', 'webp', got 'gif'": lambda x: encode_image(PIXELS, "gif"),
            "image must have sides of at most 16383 for webp, got (1, 16384)": lambda x: encode_image(
                PIXELS[:, :1, :1].expand(3, 1, 16384), "webp"
            ),
        },
        NotImplementedError: {
            "image must have data, which decide the size of the result, got a meta tensor": lambda x: (
                encode_image(PIXELS.to("meta"))
            ),
        },
    },
    reference="tests/test_codec.py::test_encoded_bytes_are_pillows",
    dtypes=(torch.uint8,),
    reference_name="`PIL.Image.save`",
    difference="0 (bytes)",
    dtype_names="uint8; png: uint16",
    section="Files",
    formula=r"\text{bytes} = \operatorname{PIL.save}(x)",
    border="no pixel looks at another",
    photo=(lambda x: encode_image(x, "jpeg", 90), lambda x: _tensor(_jpeg(x))),
    picture=lambda x: imgops.decode_image(imgops.encode_image(x, "webp", 1)),
)

DECODE_IMAGE = OpSpec(
    "decode_image",
    samples=tuple(
        Sample(f"{format}-{mode}", lambda m, f=format, o=mode: (_encoded(m, f), o), differentiable=False)
        for format, mode in (("jpeg", "RGB"), ("png", "L"), ("webp", "RGBA"), ("png", "LA"))
    ),
    refused={
        TypeError: {
            "data must be uint8, got torch.float32": lambda x: decode_image(BYTES.float()),
        },
        ValueError: {
            "data must have 1 dimension, got shape (1, 10)": lambda x: decode_image(BYTES[None]),
            "mode must be one of 'L', 'LA', 'RGB', 'RGBA', 'L;16', 'LA;16', 'RGB;16', 'RGBA;16', 'UNCHANGED', got 'CMYK'": lambda x: (
                decode_image(BYTES, "CMYK")
            ),
            "max_pixels must be at least 1, got 0": lambda x: decode_image(BYTES, max_pixels=0),
            "memory_format must be torch.contiguous_format or torch.channels_last, "
            "got torch.preserve_format": lambda x: decode_image(BYTES, memory_format=torch.preserve_format),
        },
    },
    reference="tests/test_kinds_of_files.py::test_every_kind_has_the_pixels_of_pillow",
    dtypes=(torch.uint8,),
    reference_name="`PIL.Image.open`",
    dtype_names="uint8; of 16 bits: uint16",
    section="Files",
    words="``data``, ``apply_exif_orientation``, ``max_pixels``",
    formula=r"x = \operatorname{PIL.open}(\text{bytes})",
    border="no pixel looks at another",
    photo=(
        lambda x: decode_image(_tensor(_jpeg(x))),
        lambda x: chw(Image.open(io.BytesIO(_jpeg(x)))),
    ),
    picture=lambda x: imgops.decode_image(imgops.encode_image(x, "jpeg", 4)),
)

DECODE_REGION = OpSpec(
    "decode_region",
    samples=tuple(
        Sample(
            f"{format}-{mode}",
            lambda m, f=format, o=mode, last=last: (
                _encoded(m, f),
                torch.tensor([1, 2, 5, 4]),
                10**6,
                o,
                False,
                last,
            ),
            differentiable=False,
        )
        for format, mode, last in (("jpeg", "RGB", False), ("png", "L", False), ("webp", "RGBA", True))
    ),
    refused={
        ValueError: {
            "decode_image: box must have 4 integers (left, top, right, bottom), got 3": lambda x: (
                decode_image(BYTES, box=(1, 2, 3))
            ),
            "decode_image: box must have 0 <= left < right and 0 <= top < bottom, got (2, 0, 2, 4)": lambda x: (
                decode_image(BYTES, box=(2, 0, 2, 4))
            ),
            "decode_image: box must have 0 <= left < right and 0 <= top < bottom, got (0, -1, 2, 4)": lambda x: (
                decode_image(BYTES, box=(0, -1, 2, 4))
            ),
            "decode_image: box must have 4 integers (left, top, right, bottom), got shape (1, 4)": lambda x: (
                decode_image(BYTES, box=torch.zeros(1, 4, dtype=torch.int64))
            ),
            "decode_image: data must have 1 dimension, got shape (1, 10)": lambda x: decode_image(
                BYTES[None], box=(0, 0, 1, 1)
            ),
        },
        TypeError: {
            "decode_image: box must have 4 integers (left, top, right, bottom), got torch.float32": lambda x: (
                decode_image(BYTES, box=torch.zeros(4))
            ),
            "decode_image: data must be uint8, got torch.int64": lambda x: decode_image(
                BYTES.long(), box=(0, 0, 1, 1)
            ),
        },
    },
    reference="tests/test_kinds_of_files.py::test_every_kind_has_the_pixels_of_pillow",
    dtypes=(torch.uint8,),
    reference_name="`PIL.Image.open`, `PIL.Image.crop`",
    dtype_names="uint8",
    formula=r"x = \operatorname{PIL.open}(\text{bytes})_{box}",
    border="no pixel looks at another",
)

_WHERE = torch.tensor([0, 10]), torch.tensor([[0, 0, 1, 1]])


def _decode_packed(*args: Any) -> Tensor:
    return torch.ops.imgops.decode_packed(*args, 10**6, "RGB", False)


def _packed_files(m: Maker, format: str, mode: str) -> tuple[Any, ...]:
    """Return two files in one buffer, a box of each, and how to decode them."""
    files = [_encoded(m, format) for _ in range(2)]
    ends = torch.tensor([0, *map(len, files)]).cumsum(0)
    return torch.cat(files), ends, torch.tensor([[1, 2, 5, 4], [0, 0, 3, 1]]), 10**6, mode, False


DECODE_PACKED = OpSpec(
    "decode_packed",
    samples=tuple(
        Sample(f"{format}-{mode}", lambda m, f=format, o=mode: _packed_files(m, f, o), differentiable=False)
        for format, mode in (("jpeg", "RGB"), ("png", "L"), ("webp", "RGBA"))
    ),
    refused={
        TypeError: {
            "decode_images: offsets must be int64, got torch.int32": lambda x: _decode_packed(
                BYTES, _WHERE[0].int(), _WHERE[1]
            ),
        },
        ValueError: {
            "decode_images: offsets must have one number more than there are files, got shape (3,)": lambda x: (
                _decode_packed(BYTES, torch.tensor([0, 5, 10]), _WHERE[1])
            ),
            "decode_images: offsets must be those of files that fill data, got 1 files for 10 bytes": ErrorInput(
                lambda x: _decode_packed(BYTES, torch.tensor([0, 11]), _WHERE[1]), reads_values=True
            ),
            "decode_images: boxes must have shape (N, 4), one box for each file, got shape (4,)": lambda x: (
                _decode_packed(BYTES, _WHERE[0], _WHERE[1][0])
            ),
            "decode_images: box[0] must have 0 <= left < right and 0 <= top < bottom, got (0, 0, 0, 1)": ErrorInput(
                lambda x: _decode_packed(BYTES, _WHERE[0], torch.tensor([[0, 0, 0, 1]])), reads_values=True
            ),
            "decode_images: box[0] must have at most 1000000 pixels (max_pixels), got (0, 0, 1001, 1000)": ErrorInput(
                lambda x: _decode_packed(BYTES, _WHERE[0], torch.tensor([[0, 0, 1001, 1000]])),
                reads_values=True,
            ),
        },
    },
    reference="tests/test_kinds_of_files.py::test_every_kind_has_the_pixels_of_pillow",
    dtypes=(torch.uint8,),
    reference_name="`PIL.Image.open`, `PIL.Image.crop`",
    dtype_names="uint8",
    formula=r"x_i = \operatorname{PIL.open}(\text{bytes}_i)_{box_i}",
    border="no pixel looks at another",
)


ANIMATION = _animation()
DECODE_FRAMES = OpSpec(
    "decode_frames",
    samples=tuple(
        Sample(
            f"{kind}-{mode}",
            lambda m, k=kind, f=frames, o=mode: (_animation(k), f, o),
            differentiable=False,
        )
        for kind, mode, frames in (
            ("GIF", "RGB", None),
            ("PNG", "L", [2, -3, 2]),
            ("WEBP", "RGBA", slice(None, None, -2)),
            ("TIFF", "LA", []),
        )
    ),
    refused={
        ValueError: {
            "frames must be from -3 to 2, got 3": ErrorInput(
                lambda x: decode_frames(ANIMATION, [0, 3]), reads_values=True
            ),
            "frames must have at most 59 pixels together (max_pixels), got 3 of 4 x 5": ErrorInput(
                lambda x: decode_frames(ANIMATION, max_pixels=59), reads_values=True
            ),
            "frames must have a step that is not 0, got 0": lambda x: decode_frames(BYTES, slice(0, 2, 0)),
            "frames must have 1 dimension, got shape (1, 2)": lambda x: decode_frames(
                BYTES, torch.zeros(1, 2, dtype=torch.int64)
            ),
            "mode must be one of 'L', 'LA', 'RGB', 'RGBA', 'L;16', 'LA;16', 'RGB;16', 'RGBA;16', 'UNCHANGED', got 'CMYK'": lambda x: (
                decode_frames(BYTES, mode="CMYK")
            ),
        },
        TypeError: {
            "frames must be integers, a slice of integers or None, got int": lambda x: decode_frames(
                BYTES, 1
            ),
            "frames must be integers, a slice of integers or None, got torch.float32": lambda x: (
                decode_frames(BYTES, torch.zeros(2))
            ),
            "data must be uint8, got torch.float32": lambda x: decode_frames(BYTES.float()),
        },
    },
    reference="tests/test_kinds_of_files.py::test_frames_are_pillows",
    dtypes=(torch.uint8,),
    reference_name="`PIL.Image.open`, `PIL.Image.Image.seek`",
    dtype_names="uint8; of 16 bits: uint16",
    section="Files",
    words="``data``, ``frames``, ``apply_exif_orientation``, ``max_pixels``",
    formula=r"x_i = \operatorname{PIL.open}(\text{bytes}).\operatorname{seek}(t_i)",
    border="no pixel looks at another",
    picture=lambda x: torch.cat(list(decode_frames(_flipbook(x))[..., ::2]), -1),
)


def _flipbook(x: Tensor) -> Tensor:
    """Return an animated PNG of a photograph and its mirror image."""
    frames = [Image.fromarray(f.permute(1, 2, 0).contiguous().numpy()) for f in (x, x.flip(-1))]
    buffer = io.BytesIO()
    frames[0].save(buffer, "PNG", save_all=True, append_images=frames[1:])
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def file_reference(format: str, image: Array, quality: float) -> Array:
    """Save the image with Pillow, and read the file with Pillow."""
    levels = image
    if image.dtype != np.uint8:
        real = image if image.dtype == np.float64 else image.astype(np.float32)
        levels = np.rint(np.clip(real, 0, 1) * real.dtype.type(255)).astype(np.uint8)
    pixels = levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, format, quality=int(quality))
    out = np.array(Image.open(file))
    out = out[None] if out.ndim == 2 else out.transpose(2, 0, 1)
    return out if image.dtype == np.uint8 else out.astype(real.dtype) / real.dtype.type(255)


def _file_calls(name: str) -> Any:
    def calls(case: Any) -> bench.Calls:
        x = case.image()
        ours = getattr(imgops, name)
        frame = photo_pil(x if x.dtype == torch.uint8 else (x * 255).to(torch.uint8))

        def raw() -> Any:
            file = io.BytesIO()
            frame.save(file, name.upper(), quality=50)
            return np.array(Image.open(file))

        theirs = lambda: tv.jpeg(x, 50)
        return lambda: ours(x, 50), raw, theirs if name == "jpeg" and x.dtype == torch.uint8 else None, None

    return calls


def _through_a_file(name: str, samples: tuple[Sample, ...], refused: Refused, **facts: Any) -> OpSpec:
    call = getattr(imgops, name)
    return OpSpec(
        name,
        samples=samples,
        refused=merged(
            refused,
            {
                ValueError: {
                    "quality must be a whole number from 1 to 100, or 0 for none, got 101.0": ErrorInput(
                        lambda x: call(x, 101), reads_values=True
                    ),
                },
            },
        ),
        comparable=lambda args, changed: (
            not any(a is False or isinstance(a, list) or 0 in numbers_of(a) for a in args[1:])
        ),
        colors=(),
        reference=lambda image, quality: file_reference(name.upper(), image, quality),
        tolerance={d: Tolerance(4e-3) for d in (torch.bfloat16, torch.float16)},
        reference_name="`PIL.Image.save`, `PIL.Image.open`",
        section="Files",
        formula=r"y = \operatorname{PIL.open}(\operatorname{PIL.save}(x, q)), \quad \partial y / \partial x := 1",
        photo=(
            lambda x: call(x, 20),
            lambda x: file_reference(name.upper(), x.numpy(), 20).transpose(1, 2, 0),
        ),
        benchmarks=(Benchmark(name, "`PIL.Image.save` and `open`", _file_calls(name)),),
        **facts,
    )


def _sample(id: str, channels: int, height: int, width: int, *qualities: int) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        quality = m.per_sample(*qualities).long() if len(qualities) > 1 else qualities[0]
        return m.image(channels, height, width), quality

    return Sample(id, arguments, differentiable=False, gradcheck=False)


JPEG = _through_a_file(
    "jpeg",
    (
        _sample("rgb", 3, 9, 17, 60),
        _sample("gray", 1, 8, 7, 95),
        _sample("each", 3, 16, 12, 30, 80, 100),
        _sample("narrow", 3, 5, 4, 20),
    ),
    refused={
        ValueError: {
            "image must have 1 or 3 channels, because JPEG files hold gray or RGB, got 2": lambda x: (
                imgops.jpeg(x[:, :2], 50)
            ),
            "image must have sides of at most 65500, got (1, 65501)": lambda x: imgops.jpeg(
                x[..., :1, :1].expand(2, 3, 1, 65501), 50
            ),
        },
    },
    border="blocks of 8 or 16 pixels at a side; those at the edge are filled up by libjpeg",
    transforms=("JPEG", "Corruption", "RandomCompression"),
    picture=lambda x: imgops.jpeg(x, 8),
)
WEBP = _through_a_file(
    "webp",
    (_sample("rgb", 3, 9, 17, 60), _sample("each", 3, 16, 12, 30, 80, 100)),
    refused={
        ValueError: {
            "image must have 3 channels, because WebP files hold RGB, got 1": lambda x: imgops.webp(
                x[:, :1], 50
            ),
            "image must have sides of at most 16383, got (1, 16384)": lambda x: imgops.webp(
                x[..., :1, :1].expand(2, 3, 1, 16384), 50
            ),
        },
    },
    border="blocks of 4 to 16 pixels at a side; those at the edge are filled up by libwebp",
    transforms=("RandomCompression",),
    picture=lambda x: imgops.webp(x, 4),
)

SPECS = (ENCODE_IMAGE, DECODE_IMAGE, DECODE_FRAMES, DECODE_REGION, DECODE_PACKED, JPEG, WEBP)
