"""encode_image and the decoders, whose output sizes depend on data; jpeg and webp, which compress images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common import check, layout, values
from imgops._common.config import DecodeImage, EncodeImage
from imgops._operator.call import placeholder_size
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import codec as autograd
from imgops.fake import codec as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import codec as cpu
from imgops.kernels.cuda import nvjpeg
from imgops.rules import packed, sharding, vmap

__all__ = ["decode_frames", "decode_image", "decode_images", "encode_image", "jpeg", "webp"]

_PILLOW = "Pillow's codec runs on the CPU"


@operator(
    "imgops::encode_image",
    kernel=cpu.encode_image,
    fake=fake.encode_image,
    dynamic=True,
    host=f'{_PILLOW}; device="cuda" takes nvJPEG, with its own bytes',
)
def _encode_image(image: Tensor, quality: int, format: str) -> Tensor: ...


@operator(
    "imgops::decode_image",
    kernel=cpu.decode_image,
    fake=fake.decode_image,
    dynamic=True,
    host=f'{_PILLOW}; device="cuda" takes nvJPEG, with its own pixels',
)
def _decode_image(
    data: Tensor, max_pixels: int, mode: str, apply_exif_orientation: bool, channels_last: bool
) -> Tensor: ...


@operator(
    "imgops::decode_region",
    kernel=cpu.decode_region,
    fake=fake.decode_region,
    dynamic=True,
    host=_PILLOW,
)
def _decode_region(
    data: Tensor,
    box: Tensor,
    max_pixels: int,
    mode: str,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor: ...


@operator(
    "imgops::decode_packed",
    kernel=cpu.decode_packed,
    fake=fake.decode_packed,
    dynamic=True,
    host=_PILLOW,
)
def decode_packed(
    data: Tensor, ends: Tensor, boxes: Tensor, max_pixels: int, mode: str, apply_exif_orientation: bool
) -> Tensor: ...


@operator(
    "imgops::decode_frames",
    kernel=cpu.decode_frames,
    fake=fake.decode_frames,
    dynamic=True,
    host=_PILLOW,
)
def _decode_frames(
    data: Tensor,
    frames: Tensor,
    max_pixels: int,
    mode: str,
    is_slice: bool,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor: ...


@operator(
    "imgops::jpeg",
    kernel=cpu.jpeg,
    cuda=cuda.Kernel("codec.jpeg"),
    fake=fake.jpeg,
    autograd=Gradient(
        autograd.jpeg_setup_context, autograd.jpeg_backward, autograd.jpeg_jvp, straight_through=True
    ),
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    values={"quality": values.quality},
    packed=packed.keeps_size,
)
def _jpeg(image: Tensor, quality: Tensor) -> Tensor: ...


@operator(
    "imgops::webp",
    kernel=cpu.webp,
    fake=fake.webp,
    autograd=Gradient(
        autograd.webp_setup_context, autograd.webp_backward, autograd.webp_jvp, straight_through=True
    ),
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    host=_PILLOW,
    packed=packed.keeps_size,
)
def _webp(image: Tensor, quality: Tensor) -> Tensor: ...


def encode_image(
    image: Tensor,
    format: str | EncodeImage = "jpeg",
    quality: int = 95,
    *,
    device: str | torch.device | None = None,
) -> Tensor:
    r"""Write an image as the bytes of a file.

    Parameters
    ----------
    image : Tensor
        ``(C, H, W)``, uint8 in [0, 255]: gray or RGB for "jpeg"; gray, gray with alpha, RGB or RGBA for
        "png"; RGB or RGBA for "webp". A "png" of gray, RGB or RGBA also takes uint16. Any device.
    format : {"jpeg", "png", "webp"} or imgops.extend.config.EncodeImage
        "png" is lossless.
    quality : int
        From 1 to 100; "png" does not use it.
    device : str or torch.device, optional
        The device of the bytes. With None, and for every device but CUDA, Pillow encodes on the CPU. For
        CUDA, nvJPEG encodes an RGB image on that device as "jpeg", if TorchCodec (from 0.16) or torchvision
        provides it, but not under a compiler; the bytes are then nvJPEG's.

    Returns
    -------
    Tensor
        ``(n,)`` uint8, on ``device``, by default that of ``image``. In a compiled graph ``n`` is a new
        dynamic size.

    Raises
    ------
    TypeError
        If the dtype does not suit the format.
    ValueError
        If ``format`` is unknown, the number of channels does not suit it, the image is empty or too large for
        it (65,500 pixels a side for JPEG, 16,383 for WebP), or ``quality`` is out of range.

    Notes
    -----
    Reference: :meth:`PIL.Image.Image.save`, with the same bytes; for RGB and RGBA of uint16, which Pillow
    cannot hold, ``cv2.imencode``. The operator is not differentiable, and has
    neither a decomposition nor a batching rule (files differ in length). Autocast does not touch uint8.

    Examples
    --------
    >>> import torch, imgops
    >>> data = imgops.encode_image(torch.zeros(3, 8, 8, dtype=torch.uint8), "png")
    >>> bytes(data[:4].tolist())
    b'\x89PNG'
    """
    check.tensor("encode_image", "image", image)
    if isinstance(format, EncodeImage):
        config = format
        format, quality, device = config.format, config.quality, config.device
    if device is None:
        return _encode_image(image, quality, format)
    place, made = torch.device(device), None
    if format == "jpeg" and _may_use_nvjpeg(place):
        fake.encode_image(placeholder_size, image, quality, format)
        made = nvjpeg.encode(image, quality)
    return (_encode_image(image, quality, format) if made is None else made).to(place)


def _may_use_nvjpeg(device: torch.device) -> bool:
    """Return whether nvJPEG may make a result on a device; a graph leaves files to the operators."""
    return device.type == "cuda" and not is_compiling()


def decode_image(
    data: Tensor | bytes | bytearray | memoryview | str | os.PathLike[str],
    mode: str | DecodeImage = "RGB",
    *,
    box: Sequence[int] | Tensor | None = None,
    apply_exif_orientation: bool = False,
    max_pixels: int = DecodeImage.max_pixels,
    memory_format: torch.memory_format = torch.contiguous_format,
    device: str | torch.device | None = None,
) -> Tensor:
    """Read the bytes of a file as an image: JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 or HEIF.

    Parameters
    ----------
    data : Tensor, bytes or path
        The whole file: ``(n,)`` uint8 on any device, bytes, or where the file lies. In a compiled graph, a
        tensor.
    mode : {"RGB", "L", "LA", "RGBA", "RGB;16", "L;16", "LA;16", "RGBA;16", "unchanged"}, \
torchvision.io.ImageReadMode or imgops.extend.config.DecodeImage
        The mode that the file is converted to: 3, 1, 2 or 4 channels. Lowercase letters and the names of
        torchvision ("GRAY", "GRAY_ALPHA", "RGB_ALPHA") will do. "unchanged" keeps the channels of the file,
        the 16 bits of a PNG or a TIFF that has them, and the numbers of a TIFF of 32 bits or of
        floating-point numbers; a compiled graph does not take it. A mode of 16 bits, which a graph takes,
        is "unchanged" for a file that has these channels of 16 bits, and refuses any other file.
    box : sequence of 4 int or Tensor, optional
        ``(left, top, right, bottom)`` in pixels of the image, inside of it; ``right`` and ``bottom`` are
        exclusive. Only these pixels are returned, and of an ordinary JPEG only these are decoded. An integer
        tensor of shape ``(4,)`` is read on the host.
    apply_exif_orientation : bool
        Apply the orientation of the EXIF data; a box is then one of the turned image. The default keeps the
        image as stored, as :func:`torchvision.io.decode_image` does; the image decoder of TorchCodec, for
        which torchvision 0.29 deprecates its own, always applies the orientation. Pillow applies the
        orientation of a TIFF, and pillow-heif that of a HEIF, whatever this argument says.
    max_pixels : int
        The largest number of pixels; a larger image raises as soon as the header has been read, whatever the
        box. The default is Pillow's limit.
    memory_format : torch.memory_format
        ``torch.contiguous_format``, planar, or ``torch.channels_last``, interleaved.
    device : str or torch.device, optional
        The device of the image. With None, and for every device but CUDA, the CPU decodes. For CUDA, nvJPEG
        decodes a JPEG in mode "RGB" or "L" without a box, if TorchCodec (from 0.16) or torchvision provides
        it, but not under a compiler. The CPU decodes the files that nvJPEG refuses, and every other file.

    Returns
    -------
    Tensor
        ``(C, H, W)`` uint8 in [0, 255], on ``device``, by default that of ``data``; with "unchanged", uint16
        in [0, 65535] for 16 bits, int32 or float32 for a TIFF of such numbers. In a compiled graph H and W
        are new dynamic sizes, unless there is a box.

    Raises
    ------
    ValueError
        If ``data`` is not a file of these kinds, is truncated or corrupt as far as the format can tell, or
        has more than ``max_pixels``; if Pillow cannot read the kind (AVIF from Pillow 11.3, if it was built
        with it; HEIF after ``pillow_heif.register_heif_opener()``); or if the box is empty or reaches out of
        the image. A partly decoded image is never returned, so ``PIL.ImageFile.LOAD_TRUNCATED_IMAGES`` raises
        too.
    TypeError
        If ``data`` is neither a uint8 tensor nor bytes nor a path.
    OSError
        If a path cannot be read.

    Notes
    -----
    Reference: ``PIL.Image.open(...).convert(mode)``, bit-exact. libjpeg-turbo decodes
    ordinary JPEGs, where imgops was built with it (:func:`show_config`): gray or color, sequential or
    progressive, complete. At its first error or warning, for all other files, and without it, Pillow decodes
    (with libjpeg-turbo, zlib, libwebp). Palettes are looked up; CMYK is converted to RGB by Pillow's formula;
    converting to RGB or L drops alpha and does not blend; 16-bit values keep their high byte, gray as well as
    color (Pillow would clip gray). A TIFF of 32-bit integers or floating-point numbers has no levels from
    black to white, and is refused, except in the mode "unchanged". Of several frames or pages the first one
    is read; :func:`decode_frames` reads the others. Only the kinds of files named above reach a decoder.

    In the mode "unchanged", the reference of a PNG or a TIFF of 16 bits is ``cv2.imdecode`` with
    ``cv2.IMREAD_UNCHANGED``, in the order gray, alpha or red, green, blue, alpha; Pillow reads 16 bits of
    gray alone. Other files have Pillow's pixels in the mode with their channels: 1 bit and gray are "L"; a
    palette is looked up, and is "RGBA" if it has transparency, else "RGB"; CMYK is converted to "RGB". A
    single transparent color of a PNG without a palette is ignored. 8 bits are kept of a TIFF of 16 bits whose
    colors Pillow converts (CMYK, premultiplied alpha), and of 16 bits of color in an AVIF, a JPEG 2000 or a
    HEIF. A TIFF with a channel that Pillow drops, such as near infrared after three colors, is refused.

    A JPEG has no checksum: a wrong bit inside its data gives other pixels in every decoder. The data of a
    sequential JPEG below a box are not read, so a file that is damaged or ends there is not refused. The data
    above a box, and all of a progressive JPEG, are read as without a box.

    nvJPEG's pixels differ from Pillow's by some levels (``python -m benchmarks.cuda`` prints how many),
    because its inverse transform and its upsampling of color are not libjpeg-turbo's, and it may not report
    that a file is truncated. The function is not differentiable, and has neither a decomposition nor a
    batching rule; autocast does not touch uint8.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.arange(12, dtype=torch.uint8).reshape(1, 3, 4)
    >>> file = imgops.encode_image(image, "png")
    >>> bool((imgops.decode_image(file, "L") == image).all())
    True
    >>> imgops.decode_image(file, "L", box=(1, 0, 4, 2))
    tensor([[[1, 2, 3],
             [5, 6, 7]]], dtype=torch.uint8)
    """
    file = file_of(data)
    how = mode, box, apply_exif_orientation, max_pixels, memory_format, device
    if isinstance(data, (str, os.PathLike)):
        with cpu.naming([os.fspath(data)]):
            return _decode(file, *how)
    return _decode(file, *how)


def _decode(
    file: Tensor,
    mode: Any,
    box: Any,
    apply_exif_orientation: bool,
    max_pixels: int,
    memory_format: Any,
    device: Any,
) -> Tensor:
    if isinstance(mode, DecodeImage):
        config = mode
        mode, box, max_pixels, device = config.mode, config.box, config.max_pixels, config.device
        apply_exif_orientation, memory_format = config.apply_exif_orientation, config.memory_format
    mode = mode_of(mode)
    check.choice("decode_image", "mode", mode, _MODES)
    last = _is_channels_last("decode_image", memory_format)
    if mode == cpu.UNCHANGED:
        return _decode_unchanged(file, box, max_pixels, apply_exif_orientation, last, device)
    how = max_pixels, mode, apply_exif_orientation, last
    if box is not None:
        image = _decode_box(file, box, how)
        return image if device is None else image.to(device)
    if device is None:
        return _decode_image(file, *how)
    place, made = torch.device(device), None
    if _may_use_nvjpeg(place) and file.device.type == "cpu":
        fake.decode_image(placeholder_size, file, *how)
        made = None if apply_exif_orientation else nvjpeg.decode(file, mode, max_pixels, place)
        if made is not None and last:
            made = made.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    return (_decode_image(file, *how) if made is None else made).to(place)


#: The modes of the decoders. Those of 16 bits are modes of files, which EncodedImage passes.
_MODES = (*fake.MODES, cpu.UNCHANGED)


def _is_channels_last(op: str, memory_format: Any) -> bool:
    """Return whether a memory format is interleaved, after a check that it is one of the two."""
    if memory_format not in (torch.contiguous_format, torch.channels_last):
        must = "memory_format must be torch.contiguous_format or torch.channels_last"
        check.fail(ValueError, op, must, memory_format)
    return memory_format is torch.channels_last


def _refuse_unchanged_in_graph(op: str) -> None:
    must = "mode must name channels in a compiled graph, which fixes channels and dtype"
    check.refuse_in_graph(ValueError, op, must, "'UNCHANGED'")


def _require_data(op: str, file: Tensor) -> None:
    if file.is_meta:
        must = "data must have data, which decide the size of the result"
        check.fail(NotImplementedError, op, must, "a meta tensor")


#: The names of the numbers of a box.
_CORNERS = ("left", "top", "right", "bottom")


def _decode_unchanged(
    file: Tensor,
    box: Any,
    max_pixels: int,
    apply_exif_orientation: bool,
    channels_last: bool,
    device: str | torch.device | None,
) -> Tensor:
    """Decode a file whose channels and dtype no operator knows before it reads the file."""
    _refuse_unchanged_in_graph("decode_image")
    how = max_pixels, "RGB", apply_exif_orientation, channels_last  # the fake only checks the arguments
    if box is None:
        fake.decode_image(placeholder_size, file, *how)
    else:
        if not isinstance(box, Tensor):
            corners = check.integers("decode_image", "box", box, _CORNERS)
            box = check.integers_tensor("decode_image", "box", corners)
        fake.decode_region(placeholder_size, file, box, *how)
        box = box.tolist()
        fake.box_of_integers(tuple(box))
    _require_data("decode_image", file)
    image = cpu.decode_unchanged(file, box, max_pixels, apply_exif_orientation, channels_last)
    return image.to(file.device if device is None else device)


def _decode_box(file: Tensor, box: Any, how: tuple[int, str, bool, bool]) -> Tensor:
    if isinstance(box, Tensor):
        return _decode_region(file, box, *how)
    corners = check.integers("decode_image", "box", box, _CORNERS)
    fake.box_of_integers(corners)
    image = _decode_region(file, check.integers_tensor("decode_image", "box", corners), *how)
    # In a graph the size looks unknown, because the operator reads the box from a tensor.
    left, top, right, bottom = corners
    torch._check(image.shape[-2] == bottom - top)
    torch._check(image.shape[-1] == right - left)
    return image


#: Pillow's modes by the names that torchvision's ImageReadMode has for them.
_READ_MODES = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB_ALPHA": "RGBA"}


def mode_of(mode: Any) -> str:
    name = getattr(mode, "name", mode)  # of a member of ImageReadMode
    if not isinstance(name, str):
        return mode  # which the fake refuses
    return _READ_MODES.get(name.upper(), name.upper())


def file_of(data: Any, op: str = "decode_image") -> Tensor:
    if isinstance(data, Tensor):
        return data
    must = "data must be a Tensor in a compiled graph"
    check.refuse_in_graph(TypeError, op, must, type(data).__name__)
    if isinstance(data, (str, os.PathLike)):
        data = Path(data).read_bytes()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        must = "data must be a Tensor, bytes or a path"
        check.fail(TypeError, op, must, type(data).__name__)
    data = bytearray(data)  # frombuffer requires writable memory that is not empty
    return (
        torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8, device="cpu")
    )


def path_of(data: Any) -> str | None:
    """Return the path of a file that was passed as a path."""
    return os.fspath(data) if isinstance(data, (str, os.PathLike)) else None


def decode_images(
    files: Iterable[Tensor | bytes | bytearray | memoryview | str | os.PathLike[str]],
    mode: str = "RGB",
    *,
    box: Sequence[int] | Sequence[Sequence[int] | Tensor | None] | Tensor | None = None,
    skipped: list[tuple[int, Exception]] | None = None,
    apply_exif_orientation: bool = False,
    max_pixels: int = DecodeImage.max_pixels,
    memory_format: torch.memory_format = torch.contiguous_format,
) -> list[Tensor]:
    """Read files as images, on as many threads as PyTorch uses.

    Parameters
    ----------
    files : iterable of Tensor, bytes or path
        The files; each as :func:`decode_image` takes it.
    mode : {"RGB", "L", "LA", "RGBA", "unchanged"} or torchvision.io.ImageReadMode
        The mode that every file is converted to: 3, 1, 2 or 4 channels; "unchanged" keeps the channels and
        the dtype of each file.
    box : sequence or Tensor, optional
        The part of the image that is decoded, ``(left, top, right, bottom)``: one box for all files, or a
        sequence with one for each file (None decodes all of it), or an integer tensor of shape ``(n, 4)``.
    skipped : list, optional
        Leave out the files that cannot be decoded, and append ``(index, error)`` to this list for each of
        them. By default the first one raises.
    apply_exif_orientation, max_pixels, memory_format
        As in :func:`decode_image`.

    Returns
    -------
    list of Tensor
        The images ``(C, H, W)``, uint8 in [0, 255], in the order of the files; with "unchanged" the dtypes of
        :func:`decode_image`.

    Raises
    ------
    ValueError
        If a file cannot be decoded, or its box does not fit: the message names its index, and its path if it
        was given as one. If there are not as many boxes as files.
    TypeError
        If a file is neither a tensor nor bytes nor a path.
    OSError
        If a path cannot be read.

    Notes
    -----
    Reference: :func:`decode_image` of each file. The threads decode without Python's global lock. It is not
    an operator: in a compiled graph, call :func:`decode_image` for each file.

    Examples
    --------
    >>> import torch, imgops
    >>> files = [imgops.encode_image(torch.zeros(3, h, 4, dtype=torch.uint8), "png") for h in (2, 3)]
    >>> [tuple(image.shape) for image in imgops.decode_images(files)]
    [(3, 2, 4), (3, 3, 4)]
    """
    op = "decode_images"
    files = list_of_files(op, files)
    require_settings(op, mode, max_pixels)
    if not (box is None or isinstance(box, Tensor) or check.is_sequence(box)):
        check.fail(TypeError, op, "box must be one box, or one for each of the files", type(box).__name__)
    if isinstance(box, np.ndarray):
        box = torch.from_numpy(layout.readable(box))
    one = box is None or (
        box.ndim < 2 if isinstance(box, Tensor) else len(box) > 0 and isinstance(box[0], (int, np.integer))
    )
    boxes: list[Any] = [box] * len(files) if one else list(box)  # type: ignore[arg-type]
    if len(boxes) != len(files):
        must = f"box must be one box, or one for each of the {len(files)} files"
        check.fail(ValueError, op, must, f"{len(boxes)} of them")

    def one_file(i: int) -> Tensor:
        return decode_image(
            files[i],
            mode,
            box=boxes[i],
            apply_exif_orientation=apply_exif_orientation,
            max_pixels=max_pixels,
            memory_format=memory_format,
        )

    return [image for image in cpu.on_threads(len(files), one_file, skipped) if image is not None]


def decode_frames(
    data: Tensor | bytes | bytearray | memoryview | str | os.PathLike[str],
    frames: Sequence[int] | slice | Tensor | None = None,
    mode: str = "RGB",
    *,
    apply_exif_orientation: bool = False,
    max_pixels: int = DecodeImage.max_pixels,
    memory_format: torch.memory_format = torch.contiguous_format,
) -> Tensor:
    """Read the frames of an animation, or the pages of a TIFF, as a batch of images.

    Parameters
    ----------
    data : Tensor, bytes or path
        The whole file, as :func:`decode_image` takes it: an animated GIF, WebP, AVIF or PNG, a TIFF of
        several pages, or a HEIF of several images. A file of one image has one frame.
    frames : sequence of int, slice or Tensor, optional
        The indices of the frames, in any order, more than once if you like; negative ones count from the
        last frame. A slice is that of a list of all frames; None returns all of them. An integer tensor of
        shape ``(T,)`` is read on the host, and may change between calls of a compiled graph.
    mode : {"RGB", "L", "LA", "RGBA", "unchanged"} or torchvision.io.ImageReadMode
        The mode that every frame is converted to, as in :func:`decode_image`, whose modes of 16 bits it also
        takes. With "unchanged" all frames must have the same channels and dtype; a compiled graph does not
        take it.
    apply_exif_orientation : bool
        Apply the orientation of the EXIF data.
    max_pixels : int
        The largest number of pixels of all frames that are returned, together; more raise before they are
        decoded. The default is Pillow's limit for one image.
    memory_format : torch.memory_format
        ``torch.contiguous_format``, planar, or ``torch.channels_last``, interleaved.

    Returns
    -------
    Tensor
        ``(T, C, H, W)`` uint8 in [0, 255], on the device of ``data``, in the order of ``frames``; with
        "unchanged" the dtypes of :func:`decode_image`. In a compiled graph H and W are new dynamic sizes, and
        T is one for a slice or None.

    Raises
    ------
    ValueError
        If a frame does not exist, the frames have different sizes (decode such pages of a TIFF one by one) or
        more than ``max_pixels``; or if the file is refused, as by :func:`decode_image`.
    TypeError
        If ``data`` is neither a uint8 tensor nor bytes nor a path, or ``frames`` are not integers.
    OSError
        If a path cannot be read.

    Notes
    -----
    Reference: ``PIL.Image.Image.seek``, then ``convert(mode)``, bit-exact: a frame is what is shown, so
    that of a GIF, a WebP or a PNG is drawn over the frames before it, which are decoded, too. Each frame is
    decoded once. The function is not differentiable, and has neither a decomposition nor a batching rule;
    autocast does not touch uint8.

    A video is decoded by TorchCodec, whose ``VideoDecoder.get_frames_at`` also returns ``(T, C, H, W)``.

    Examples
    --------
    >>> import io, imgops
    >>> from PIL import Image
    >>> images = [Image.new("L", (5, 4), level) for level in (10, 20, 30)]
    >>> file = io.BytesIO()
    >>> images[0].save(file, "GIF", save_all=True, append_images=images[1:])
    >>> imgops.decode_frames(file.getvalue(), mode="L").shape
    torch.Size([3, 1, 4, 5])
    >>> imgops.decode_frames(file.getvalue(), [-1, 0], "L")[:, 0, 0, 0]
    tensor([30, 10], dtype=torch.uint8)
    """
    op = "decode_frames"
    file = file_of(data, op)
    mode = mode_of(mode)
    check.choice(op, "mode", mode, _MODES)
    last = _is_channels_last(op, memory_format)
    chosen, is_slice = _frames_of(frames)
    how = max_pixels, mode, is_slice, apply_exif_orientation, last
    if mode == cpu.UNCHANGED:
        _refuse_unchanged_in_graph(op)
        # The fake only checks the arguments.
        known = max_pixels, "RGB", is_slice, apply_exif_orientation, last
        fake.decode_frames(placeholder_size, file, chosen, *known)
        _require_data(op, file)
        with cpu.naming([path_of(data)]):
            return cpu.decode_frames(file, chosen, *how).to(file.device)
    if isinstance(data, Tensor):
        return _decode_frames(file, chosen, *how)
    with cpu.naming([path_of(data)]):
        return _decode_frames(file, chosen, *how)


def _frames_of(frames: Any) -> tuple[Tensor, bool]:
    """Return the indices of frames, or the numbers of a slice, as a tensor, and whether they are a slice."""
    op, must = "decode_frames", "frames must be integers, a slice of integers or None"
    if frames is None or isinstance(frames, slice):
        numbers = (None, None, None) if frames is None else (frames.start, frames.stop, frames.step)
        if numbers[2] is not None and check.violates(numbers[2] != 0):
            check.fail(ValueError, op, "frames must have a step that is not 0", check.number(numbers[2]))
        values = [cpu.NONE_OF_SLICE if x is None else check.integer(op, must, x) for x in numbers]
        return check.integers_tensor(op, "frames", values), True
    if isinstance(frames, Tensor):
        if frames.dtype.is_floating_point or frames.dtype.is_complex or frames.dtype == torch.bool:
            check.fail(TypeError, op, must, frames.dtype)
        if frames.is_meta:
            check.fail(ValueError, op, must, "a tensor on meta, which has no values")
        return frames.to("cpu", torch.int64), False
    if not check.is_sequence(frames):
        check.fail(TypeError, op, must, type(frames).__name__)
    return check.integers_tensor(op, "frames", [check.integer(op, must, x) for x in frames]), False


def list_of_files(op: str, files: Any) -> list[Any]:
    must = "files must be decoded outside of a compiled graph, or one by one with decode_image"
    check.refuse_in_graph(TypeError, op, must, type(files).__name__)
    if isinstance(files, (str, bytes, bytearray, memoryview, os.PathLike)) or not isinstance(files, Iterable):
        check.fail(TypeError, op, "files must be a sequence of files", type(files).__name__)
    return list(files)


def require_settings(op: str, mode: Any, max_pixels: Any) -> None:
    """Check the arguments that all files share: their errors must not be skipped as those of a file."""
    check.choice(op, "mode", mode_of(mode), _MODES)
    if check.integer(op, "max_pixels must be an integer", max_pixels) < 1:
        check.fail(ValueError, op, "max_pixels must be at least 1", max_pixels)


def jpeg(image: Tensor, quality: int | Tensor) -> Tensor:
    """Compress an image as a JPEG file does, and decode it again.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)`` with 1 or 3 channels, uint8, or floating point in [0, 1], which is rounded to the
        256 levels of a JPEG first. Any device.
    quality : int or Tensor
        From 1 to 100, or 0, which leaves an image as it is. A tensor of shape ``()`` or ``(...)``
        (one per sample) can change between calls without a recompile.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``quality`` is not made of numbers.
    ValueError
        If there are not 1 or 3 channels, a side is longer than 65,500, or ``quality`` is out of range, or not
        one value or one per sample.

    Notes
    -----
    Reference: ``PIL.Image.save`` with "JPEG" and ``PIL.Image.open``, bit-exact (color at half the resolution,
    which is Pillow's default). On CUDA no file is made: a kernel computes what libjpeg-turbo keeps of an
    image. Where Pillow was built with another JPEG library, and on other devices, the codec runs on the CPU.
    Rounding makes the true derivative 0 almost everywhere; the gradient is the
    straight-through one: that of the identity, for ``image`` alone. The operator has no decomposition.
    Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.arange(64, dtype=torch.uint8).reshape(1, 8, 8)
    >>> int((imgops.jpeg(image, 90).int() - image.int()).abs().max())
    1
    """
    check.tensor_or_batch("jpeg", image)
    return _jpeg(image, check.real("jpeg", "quality", quality))


def webp(image: Tensor, quality: int | Tensor) -> Tensor:
    """Compress an image as a WebP file does, and decode it again.

    Parameters
    ----------
    image : Tensor
        ``(..., 3, H, W)``, uint8, or floating point in [0, 1], which is rounded to 256 levels first. Any
        device; the codec runs on the CPU.
    quality : int or Tensor
        From 1 to 100, or 0, which leaves an image as it is. A tensor of shape ``()`` or ``(...)`` (one per
        sample) can change between calls without a recompile.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``quality`` is not made of numbers.
    ValueError
        If there are not 3 channels, a side is longer than 16,383, or ``quality`` is out of range, or not one
        value or one per sample.

    Notes
    -----
    Reference: ``PIL.Image.save`` with "WEBP" (lossy) and ``PIL.Image.open``, bit-exact. The gradient is the
    straight-through one, as for :func:`jpeg`: that of the identity, for ``image`` alone. The operator has no
    decomposition. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.full((3, 8, 8), 100, dtype=torch.uint8)
    >>> imgops.webp(image, 80).shape
    torch.Size([3, 8, 8])
    """
    check.tensor_or_batch("webp", image)
    return _webp(image, check.real("webp", "quality", quality))
