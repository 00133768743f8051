"""CPU kernels of encode_image, decode_image, decode_frames, jpeg and webp.

Pillow reads and decodes most files; libjpeg-turbo decodes ordinary JPEGs, with Pillow's pixels.
Decoding a file returns the whole image or the requested box, or raises a ValueError.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from PIL import Image, ImageFile
from PIL import TiffImagePlugin as tiff
from PIL.JpegImagePlugin import JpegImageFile
from PIL.WebPImagePlugin import WebPImageFile
from torch import Tensor

from imgops._common import check, compare, layout, values
from imgops.fake import codec as fake
from imgops.kernels.cpu import _damaged_png, _kinds, _libjpeg, _resample, _threads, _truncated_jpeg
from imgops.kernels.cpu._arguments import number_per_image
from imgops.kernels.cpu._kinds import DataError

#: (left, top, right, bottom) in pixels.
Box = tuple[int, int, int, int]
#: Pillow's modes of 16-bit gray images.
_DEEP = ("I;16", "I;16B", "I;16L", "I;16N")
#: Pillow's modes of images whose numbers have no levels from black to white, with their dtypes.
_NUMBERS = {"I": np.int32, "F": np.float32}


class _Turn(NamedTuple):
    """The steps from a stored image to the one that is shown: it is transposed, then mirrored and flipped."""

    transposes: bool = False
    mirrors: bool = False  # left and right change places
    flips: bool = False  # top and bottom do


_UPRIGHT = _Turn()
_TURNS = {
    2: _Turn(mirrors=True),
    3: _Turn(mirrors=True, flips=True),
    4: _Turn(flips=True),
    5: _Turn(transposes=True),
    6: _Turn(transposes=True, mirrors=True),
    7: _Turn(transposes=True, mirrors=True, flips=True),
    8: _Turn(transposes=True, flips=True),
}
_ORIENTATION = 0x0112

#: The mode of decode_image that keeps the channels and the dtype of a file.
UNCHANGED = "UNCHANGED"

#: An empty tensor on the CPU, like which decoded pixels are allocated.
_HOST = torch.empty(0, dtype=torch.uint8, device="cpu")


def encode_image(image: Tensor, quality: int, format: str) -> Tensor:
    planes = image.detach().numpy()
    if image.dtype == torch.uint16 and len(planes) > 1:
        return _sixteen_bits(planes)
    if len(planes) == 1:
        pixels = np.ascontiguousarray(planes[0])
    elif layout.is_interleaved(image):
        pixels = planes.transpose(1, 2, 0)
    else:  # this is many times faster than NumPy's copy
        pixels = cv2.merge([np.ascontiguousarray(plane) for plane in planes])
    file = io.BytesIO()
    keywords = {} if format == "png" else {"quality": quality}
    Image.fromarray(pixels).save(file, format.upper(), **keywords)
    return torch.frombuffer(bytearray(file.getbuffer()), dtype=torch.uint8)


def _sixteen_bits(planes: np.ndarray) -> Tensor:
    """Write 16 bits of each color of RGB or RGBA as a PNG, by OpenCV: Pillow has no such images."""
    to_bgr = [2, 1, 0, 3][: len(planes)]
    _, file = cv2.imencode(".png", cv2.merge([np.ascontiguousarray(planes[i]) for i in to_bgr]))
    return torch.from_numpy(np.asarray(file).reshape(-1))


def decode_image(
    data: Tensor, max_pixels: int, mode: str, apply_exif_orientation: bool, channels_last: bool
) -> Tensor:
    return _decode(data, None, max_pixels, mode, apply_exif_orientation, channels_last)


def decode_unchanged(
    data: Tensor,
    box: Sequence[int] | None,
    max_pixels: int,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor:
    """Decode a file with its own channels and dtype."""
    part = None if box is None else (box[0], box[1], box[2], box[3])
    return _decode(data.cpu(), part, max_pixels, UNCHANGED, apply_exif_orientation, channels_last)


def decode_region(
    data: Tensor, box: Tensor, max_pixels: int, mode: str, apply_exif_orientation: bool, channels_last: bool
) -> Tensor:
    left, top, right, bottom = box.tolist()
    fake.box_of_integers((left, top, right, bottom))
    return _decode(data, (left, top, right, bottom), max_pixels, mode, apply_exif_orientation, channels_last)


def _decode(
    data: Tensor,
    box: Box | None,
    max_pixels: int,
    mode: str,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor:
    _refuse_truncated("decode_image")
    raw = data.detach().numpy().tobytes()
    with _one_error(raw):
        header, turn = _libjpeg.header(raw), _UPRIGHT
        image = None if header else _kinds.opened(raw, max_pixels)
        if isinstance(image, JpegImageFile) and image.mode in ("L", "RGB"):
            header = *image.size, len(image.mode)
            turn = _turn_of(image) if apply_exif_orientation else _UPRIGHT
        if header:
            _kinds.check_pixels(header[:2], max_pixels)
        if header and not fake.is_deep(mode):
            own = _JPEG_MODES[header[2]] if mode == UNCHANGED else mode
            where = _stored_box(header[:2], turn, box)
            out = _by_libjpeg(raw, header, where, own, turn, channels_last)
            if out is None and box is not None:  # Pillow, too, decodes no rows below the box
                above = _truncated_jpeg.rows_above(raw, where[3])
                image = _kinds.opened(above, max_pixels)
                _kinds.load(above, image, 0)
                _kinds.check_whole(above, image)
                out = _write(image.crop(where), own, turn, channels_last)
            if out is not None:
                return out
        if image is None:
            image = _kinds.opened(raw, max_pixels)
        return _decode_page(raw, image, 0, box, mode, apply_exif_orientation, channels_last)


def _refuse_truncated(op: str) -> None:
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        must = "PIL.ImageFile.LOAD_TRUNCATED_IMAGES must be False, because no image may be decoded in part"
        check.fail(ValueError, op, must, True)


def _decode_page(
    raw: bytes,
    image: Any,
    page: int,
    box: Box | None,
    mode: str,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor:
    """Decode the image that Pillow has opened, or the page of a file to which it has gone."""
    pixels = None
    if _keeps_bits(mode):
        stored = _stored_mode(raw, image)
        if mode not in (UNCHANGED, stored):
            raise DataError(f"data must be an image of mode {mode!r}", f"a {image.format} of mode {stored!r}")
        mode, pixels = _mode_of_8_bits(image), _deep_pixels(raw, image, page)
    # The EXIF data of a PNG may follow its pixels.
    if pixels is None or (apply_exif_orientation and image.format == "PNG"):
        _kinds.load(raw, image, page)
    if pixels is None:
        _kinds.check_whole(raw, image)
    turn = _turn_of(image) if apply_exif_orientation else _UPRIGHT
    left, top, right, bottom = where = _stored_box(image.size, turn, box)
    if pixels is not None:
        return _turned(pixels[top:bottom, left:right], turn, channels_last)
    return _write(image if box is None else image.crop(where), mode, turn, channels_last)


#: The number that stands for None in a slice whose numbers are in a tensor.
NONE_OF_SLICE = -(2**63)


def decode_frames(
    data: Tensor,
    frames: Tensor,
    max_pixels: int,
    mode: str,
    is_slice: bool,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor:
    op = "decode_frames"
    _refuse_truncated(op)
    raw, given = data.detach().cpu().numpy().tobytes(), frames.tolist()
    with _one_error(raw, op):
        image: Any = _kinds.opened(raw, max_pixels)
        count = getattr(image, "n_frames", 1)
        if _keeps_bits(mode) and count > 1 and _is_deep_png(raw, image):
            raise DataError(f"{_ONE_OF_FOUR} for an animated PNG of 16 bits", repr(mode))
        chosen = _chosen(given, is_slice, count)
        if image.format not in _OF_PAGES:
            _check_together(len(chosen), image.size, max_pixels)
        last = max(chosen[0], chosen[-1]) if is_slice and chosen else max(chosen, default=0)
        _kinds.check_frames(raw, image, last, max_pixels)
        pages = _in_order(chosen) if chosen else [(-1, 0)]  # the first frame tells the size of none
        out, current, first = _HOST, -1, image.size
        for place, page in pages:
            if page != current:
                if count > 1:
                    image.seek(page)
                    _kinds.check_tiff(raw, image, max_pixels)
                first = image.size if current < 0 else first
                _check_one_size(image.size, first)
                _check_together(len(chosen), first, max_pixels)
                made = _decode_page(raw, image, page, None, mode, apply_exif_orientation, channels_last)
            if current < 0:
                out = fake.decoded(_HOST, made.dtype, (len(chosen), *made.shape), channels_last)
            if out.shape[1:] != made.shape or out.dtype != made.dtype:
                raise DataError(f"{_ONE_OF_FOUR} for frames of different channels", repr(UNCHANGED))
            if place >= 0:
                out[place].copy_(made)
            current = page
        return out


#: Pillow's formats whose pages may differ in size; it does not decode one page to go to the next.
_OF_PAGES = ("TIFF", "HEIF")
_ONE_OF_FOUR = "mode must be 'L', 'LA', 'RGB' or 'RGBA'"


def _chosen(given: list[int], is_slice: bool, count: int) -> Sequence[int]:
    """Return the indices of frames, from 0, that integers or the numbers of a slice choose."""
    if is_slice:
        return range(count)[slice(*(None if number == NONE_OF_SLICE else number for number in given))]
    for index in given:
        if not -count <= index < count:
            raise DataError(f"frames must be from {-count} to {count - 1}", index)
    return [index % count for index in given]


def _in_order(chosen: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where each frame belongs, and its index, in the order of the file.

    A file may say that it has billions of frames, so the frames of a slice are not listed.
    """
    if isinstance(chosen, range):
        places = range(len(chosen)) if chosen.step > 0 else range(len(chosen) - 1, -1, -1)
        return ((place, chosen[place]) for place in places)
    return iter(sorted(enumerate(chosen), key=lambda pair: pair[1]))


def _check_one_size(size: tuple[int, int], first: tuple[int, int]) -> None:
    """Check that a frame has the size of the first one that is decoded."""
    if size != first:
        got = f"{first[1]} x {first[0]} and {size[1]} x {size[0]}"
        raise DataError("frames must be of one size, or be decoded one by one", got)


def _check_together(count: int, size: tuple[int, int], max_pixels: int) -> None:
    """Check the number of the pixels of all frames, before one of them is decoded."""
    if count * size[0] * size[1] > max_pixels:
        must = f"frames must have at most {max_pixels} pixels together (max_pixels)"
        raise DataError(must, f"{count} of {size[1]} x {size[0]}")


#: The mode of a JPEG that libjpeg-turbo decodes, by its number of channels.
_JPEG_MODES = {1: "L", 3: "RGB"}


def _keeps_bits(mode: str) -> bool:
    """Return whether a mode has the 8 or 16 bits of the file; others have 8 bits of every file."""
    return mode == UNCHANGED or fake.is_deep(mode)


def mode_of_file(data: Tensor, max_pixels: int) -> str:
    """Return the mode of 8 or 16 bits of the image that decode_image returns unchanged."""
    raw = data.detach().numpy().tobytes()
    with _one_error(raw):
        header = _libjpeg.header(raw)
        if header:
            return _JPEG_MODES[header[2]]
        image = _kinds.opened(raw, max_pixels)
        stored = _stored_mode(raw, image)
        if stored in _NUMBERS:
            must = "data must be an image of 8 or 16 bits"
            raise DataError(must, f"a {image.format} of {_NUMBERS[stored].__name__}")
        return stored


def _stored_mode(raw: bytes, image: Any) -> str:
    """Return one of the modes of 8 and 16 bits, or Pillow's mode of other numbers, of a file's image.

    It raises for a TIFF with a channel that Pillow drops, such as near infrared.
    """
    bands = len(image.getbands())
    if image.format == "TIFF" and image.tag_v2.get(tiff.SAMPLESPERPIXEL, 1) > bands:
        must = "data must be a TIFF all of whose channels Pillow reads, or mode must be one of 8 bits"
        raise DataError(must, f"{image.tag_v2[tiff.SAMPLESPERPIXEL]} channels, of which it reads {bands}")
    if _is_deep_png(raw, image):
        return f"{('L', 'LA', 'RGB', 'RGBA')[_damaged_png.deep_channels(raw) - 1]};16"
    if _is_deep_tiff(image):
        return f"{image.mode};16"
    if image.mode in _DEEP:
        return "L;16"
    return str(image.mode) if image.mode in _NUMBERS else _mode_of_8_bits(image)


def _mode_of_8_bits(image: Image.Image) -> str:
    """Return the mode of our four that has the channels of an image of 8 bits; UNCHANGED for others."""
    if image.mode in _DEEP or image.mode in _NUMBERS:
        return UNCHANGED
    is_clear = "transparency" in image.info
    if image.mode in ("P", "PA"):
        return "RGBA" if image.mode == "PA" or is_clear else "RGB"
    if image.mode == "L" and image.format == "GIF" and is_clear:  # a palette of grays
        return "LA"
    return {"1": "L", "L": "L", "LA": "LA", "La": "LA", "RGBA": "RGBA", "RGBa": "RGBA"}.get(image.mode, "RGB")


def _deep_pixels(raw: bytes, image: Any, page: int) -> Any:
    """Return the 16 bits of a PNG, or of the colors of a TIFF, by OpenCV; None for other files.

    Pillow keeps 8 bits of a color. It reads the 16 bits of a gray TIFF.
    """
    if _is_deep_png(raw, image):
        return _deep_png(raw, image)
    return _deep_tiff(raw, image, page) if _is_deep_tiff(image) else None


def _is_deep_png(raw: bytes, image: Any) -> bool:
    return image.format == "PNG" and _damaged_png.deep_channels(raw) > 0


def _is_deep_tiff(image: Any) -> bool:
    """Return whether a TIFF has 16 bits of RGB or RGBA that Pillow does not convert."""
    if image.format != "TIFF":
        return False
    tags = image.tag_v2
    is_multiplied = tuple(tags.get(tiff.EXTRASAMPLES, ()))[:1] == (1,)  # colors times alpha
    is_rgb = tags.get(tiff.PHOTOMETRIC_INTERPRETATION) == 2
    return set(tags.get(tiff.BITSPERSAMPLE, ())) == {16} and is_rgb and not is_multiplied


def _deep_png(raw: bytes, image: Any) -> Any:
    """Decode a PNG of 16 bits by OpenCV.

    OpenCV reads only the chunks of pixels, so that no other chunk (a color that stands for transparency,
    animations) changes them.
    """
    channels = _damaged_png.deep_channels(raw)
    file = np.frombuffer(_damaged_png.only_pixels(raw), np.uint8)
    pixels = cv2.imdecode(file, cv2.IMREAD_UNCHANGED)
    kept = {1: [0], 2: [0, 3], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]
    pixels = _channels_of(pixels, kept, image)
    if _damaged_png.ends_early(raw, pixels[-1].tobytes()):
        raise _kinds.ending_early("PNG")
    return pixels


def _deep_tiff(raw: bytes, image: Any, page: int) -> Any:
    """Decode a TIFF of 16 bits of RGB or RGBA by OpenCV.

    OpenCV returns what it has decoded of some damaged files. Pillow refuses them when it loads the image, and
    the high bytes must be the pixels that it reads.
    """
    if image.tag_v2.get(tiff.PLANAR_CONFIGURATION, 1) == 2:  # which OpenCV reads as interleaved
        must = "data must be a TIFF that interleaves its channels, or mode must be one of 8 bits"
        raise DataError(must, "planes of 16 bits")
    _kinds.load(raw, image, page)
    file = np.frombuffer(raw, np.uint8)
    if page:
        pages = cv2.imdecodemulti(file, cv2.IMREAD_UNCHANGED, range=(page, page + 1))[1]
        pixels = pages[0] if pages else None
    else:
        pixels = cv2.imdecode(file, cv2.IMREAD_UNCHANGED)
    pixels = _channels_of(pixels, [2, 1, 0, 3][: len(image.mode)], image)
    if not np.array_equal((pixels >> 8).astype(np.uint8), np.asarray(image)):
        got = "a TIFF of 16 bits of which OpenCV and Pillow read different pixels"
        raise _kinds.incomplete(got)
    return pixels


def _channels_of(pixels: Any, kept: list[int], image: Any) -> Any:
    """Return the channels of 16 bits that OpenCV has decoded in our order."""
    what = f"a {image.format} of 16 bits that OpenCV"
    if pixels is None:
        raise _kinds.incomplete(f"{what} cannot decode")
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if pixels.dtype != np.uint16 or pixels.shape[1::-1] != image.size or pixels.shape[2] <= max(kept):
        raise _kinds.incomplete(f"{what} decodes as {pixels.dtype} of {pixels.shape}")
    planes = [np.ascontiguousarray(pixels[..., i]) for i in kept]
    return planes[0] if len(planes) == 1 else cv2.merge(planes)


@contextmanager
def _one_error(raw: bytes, op: str = "decode_image") -> Iterator[None]:
    """Raise a ValueError for any fault of a file."""
    try:
        yield
    except DataError as refused:
        check.fail(ValueError, op, *refused.args)
    except Exception as error:  # Pillow raises a dozen types of errors for hostile data
        got = f"{len(raw)} bytes that Pillow cannot decode ({type(error).__name__}: {error})"
        must = f"{op}: data must be a complete {_kinds.kind_of(raw)} image"
        raise ValueError(f"{must}, got {got}") from error


def _by_libjpeg(
    raw: bytes, header: tuple[int, int, int], box: Box, mode: str, turn: _Turn, channels_last: bool
) -> Tensor | None:
    """Decode a JPEG of known width, height and channels; return None where Pillow should decode it."""
    (left, top, right, bottom), (*size, channels) = box, header
    height, width = bottom - top, right - left
    if turn is _UPRIGHT and (mode == "RGB" or (mode == "L" and channels == 1)):
        out = fake.decoded(_HOST, torch.uint8, (len(mode), height, width), channels_last)
        return out if _libjpeg.decode(out.permute(1, 2, 0).numpy(), raw, left, top, size) else None
    pixels = np.empty((height, width, channels), np.uint8)
    if not _libjpeg.decode(pixels, raw, left, top, size):
        return None
    stored = Image.fromarray(pixels.squeeze(-1) if channels == 1 else pixels)
    return _write(stored, mode, turn, channels_last)


def size_of_ordinary_jpeg(data: Tensor, max_pixels: int) -> tuple[int, int] | None:
    """Return the height and width of a JPEG without EXIF data; None for other files and for larger images."""
    if data.dtype != torch.uint8 or data.ndim != 1 or not data.is_cpu or not data.is_contiguous():
        return None
    header = _libjpeg.header(data.detach().numpy())
    return header[1::-1] if header and header[0] * header[1] <= max_pixels else None


def size_of_file(data: Tensor, max_pixels: int, apply_exif_orientation: bool) -> tuple[int, int]:
    """Return the height and width of the image that decode_image would return, or raise its error."""
    size = size_of_ordinary_jpeg(data, max_pixels)
    if size is not None:
        return size
    raw = data.detach().numpy().tobytes()
    with _one_error(raw):
        image = _kinds.opened(raw, max_pixels)
        if not apply_exif_orientation:
            return image.height, image.width
        if not isinstance(image, JpegImageFile):
            image.load()  # the EXIF data of a PNG may follow its pixels
        return image.size if _turn_of(image).transposes else image.size[::-1]


def decode_each(out: Tensor, files: list[Tensor], boxes: list[Box], mode: str) -> list[bool]:
    """Decode boxes of ordinary JPEGs on threads, planar and one after the other in ``out``.

    Return for each file whether it was decoded. Otherwise ``decode_image`` decodes it by other means, or
    raises.
    """
    channels = fake.MODES[mode]
    if mode not in ("L", "RGB") or ImageFile.LOAD_TRUNCATED_IMAGES:
        return [False] * len(files)
    found, arrays, facts, offset = [], [], [], 0
    for i, (file, (left, top, right, bottom)) in enumerate(zip(files, boxes, strict=True)):
        array = file.numpy()
        header = _libjpeg.header(array)
        if (
            header is not None
            and (mode == "RGB" or header[2] == 1)
            and right <= header[0]
            and bottom <= header[1]
        ):
            found.append(i)
            arrays.append(array)
            facts.append((offset, left, top, bottom - top, right - left, header[1], header[0]))
        offset += channels * (bottom - top) * (right - left)
    done = [False] * len(files)
    if found:
        rows = np.array(facts, np.int64)
        for i, was_decoded in zip(
            found, _libjpeg.decode_each(out.numpy(), arrays, rows, channels, False), strict=True
        ):
            done[i] = bool(was_decoded)
    return done


def decode_packed(
    data: Tensor, ends: Tensor, boxes: Tensor, max_pixels: int, mode: str, apply_exif_orientation: bool
) -> Tensor:
    return decode_boxes(data, ends, boxes, max_pixels, mode, apply_exif_orientation, None)


def decode_boxes(
    data: Tensor,
    ends: Tensor,
    boxes: Tensor,
    max_pixels: int,
    mode: str,
    apply_exif_orientation: bool,
    skipped: list[tuple[int, Exception]] | None,
) -> Tensor:
    """Decode a box of each file of one buffer, planar and one after the other; a skipped file is black."""
    rows, files = boxes.tolist(), _files_of(data.detach(), ends)
    channels = fake.MODES[mode]
    sizes = [channels * (bottom - top) * (right - left) for left, top, right, bottom in rows]

    def checked(i: int) -> None:
        fake.box_of_integers(rows[i])
        if sizes[i] > channels * max_pixels:
            must = f"box must have at most {max_pixels} pixels (max_pixels)"
            check.fail(ValueError, "decode_image", must, tuple(rows[i]))

    on_threads(len(rows), checked, None)
    out = torch.empty(sum(sizes), dtype=fake.dtype_of(mode), device="cpu")
    done = decode_each(out, files, rows, mode)

    def one(i: int) -> Tensor | None:
        if done[i]:
            return None
        return _decode(files[i], rows[i], max_pixels, mode, apply_exif_orientation, False)

    if not all(done):
        made = on_threads(len(files), one, skipped)
        for target, was_done, pixels in zip(out.split(sizes), done, made, strict=True):
            if not was_done:
                target.zero_() if pixels is None else target.copy_(pixels.reshape(-1))
    return out


def run_program(
    out: Tensor,
    data: Tensor,
    ends: Tensor,
    sizes: Tensor,
    steps: np.ndarray,
    numbers: np.ndarray,
    tables: Tensor | None,
    max_pixels: int,
    mode: str,
    apply_exif_orientation: bool,
    skipped: list[tuple[int, Exception]] | None,
) -> bool:
    """Run a program on the files of one buffer; its first step is a window of each, which alone is decoded.

    Return False if nothing was done. A skipped file is black.
    """
    data, facts = data.detach(), _resample.facts_of(sizes, ends)
    decoder = None if ImageFile.LOAD_TRUNCATED_IMAGES else _libjpeg.decoder()
    done: np.ndarray | None = np.zeros(len(facts), np.uint8)
    if decoder is not None:
        raw = data.numpy()
        for i, (start, stop, height, width) in enumerate(facts.tolist()):
            header = _libjpeg.header(raw[start:stop])
            if header is None or header[:2] != (width, height):
                facts[i, 1] = start  # an empty file, which is left to Pillow
        done = _resample.run_windows(out, data, facts, decoder, steps, numbers, tables, False)
    if done is None or done.all():
        return done is not None
    files = _files_of(data, ends)

    def one(i: int) -> None:
        if done[i]:
            return
        left, top, right, bottom = map(int, numbers[i, :4])
        pixels = None
        try:
            pixels = _decode(
                files[i], (left, top, right, bottom), max_pixels, mode, apply_exif_orientation, False
            )
        finally:
            if pixels is None:  # the image is black
                pixels = torch.zeros((len(mode), bottom - top, right - left), dtype=torch.uint8, device="cpu")
            row = numbers[i : i + 1].copy()
            row[:, :4] = 0, 0, *pixels.shape[:0:-1]
            where = np.array([[0, pixels.numel(), *pixels.shape[1:]]])
            _resample.run_windows(out[i : i + 1], pixels.reshape(-1), where, None, steps, row, tables, False)

    on_threads(len(files), one, skipped)
    return True


def _files_of(data: Tensor, ends: Tensor) -> list[Tensor]:
    """Return the files that lie in one buffer, from each of the ends to the next."""
    marks = ends.tolist()
    lengths = [b - a for a, b in itertools.pairwise(marks)]
    if not marks or marks[0] != 0 or marks[-1] != len(data) or min(lengths, default=0) < 0:
        must = "offsets must be those of files that fill data"
        check.fail(ValueError, "decode_images", must, f"{len(lengths)} files for {len(data)} bytes")
    return list(data.contiguous().split(lengths))


def on_threads(
    count: int, call: Callable[[int], Any], skipped: list[tuple[int, Exception]] | None
) -> list[Any]:
    """Return ``call(i)`` for each index; None for a file that cannot be read, if ``skipped`` is a list."""
    found: list[Any] = [None] * count

    def work(i: int) -> None:
        try:
            found[i] = call(i)
        except Exception as error:
            found[i] = error

    _threads.each(count, work)
    for i, result in enumerate(found):
        if not isinstance(result, Exception):
            continue
        if skipped is None or not isinstance(result, (ValueError, OSError)):
            raise _of_file(result, i)
        skipped.append((i, _of_file(result, i)))
        found[i] = None
    return found


#: The argument that an error of decode_image or decode_images is about, with its index and before its path.
_SUBJECT = re.compile(r"^decode_(?:images?|frames): (data|files|box)(?:\[(\d+)\])?(?= must| \(| for )")


def _of_file(error: Exception, index: int) -> Exception:
    """Return an error of decode_image as one of decode_images, which names the index of the file."""
    text, found = str(error), _SUBJECT.match(str(error))
    if found:
        text = f"decode_image: {'box' if found[1] == 'box' else 'files'}[{index}]{text[found.end() :]}"
    if not text.startswith("decode_image: "):
        return error
    return type(error)(f"decode_images: {text.removeprefix('decode_image: ')}")


@contextmanager
def naming(paths: Sequence[str | None] | None) -> Iterator[None]:
    """Add the path of a file to errors about it, if the file was passed as a path."""
    try:
        yield
    except ValueError as error:
        with_path = name_path(error, paths)
        if with_path is error:
            raise
        raise with_path from error.__cause__


def name_path(error: Exception, paths: Sequence[str | None] | None) -> Exception:
    """Return an error about a file with its path, if it has one that the error does not name yet."""
    text, found = str(error), _SUBJECT.match(str(error))
    if not paths or not found or not text.startswith(" must", found.end()):
        return error
    path = named(paths[int(found[2] or 0)], found[1])
    return type(error)(f"{found[0]}{path}{text[found.end() :]}") if path else error


def named(path: str | None, argument: str = "files") -> str:
    """Return the part of an error message that names a path, after an argument: the file, or a box in it."""
    return "" if path is None else f" for {path!r}" if argument == "box" else f" ({path!r})"


def _turn_of(image: Image.Image) -> _Turn:
    orientation: Any = image.getexif().get(_ORIENTATION)
    return _TURNS.get(orientation, _UPRIGHT)


def _stored_box(size: tuple[int, int], turn: _Turn, box: Box | None) -> Box:
    """Return where the file stores a box of the image that it shows; ``size`` is its (width, height)."""
    if box is None:
        return (0, 0, *size)
    width, height = size[::-1] if turn.transposes else size
    left, top, right, bottom = box
    if right > width or bottom > height:
        raise DataError(f"box must lie inside of the image of {height} x {width}", box)
    if turn.mirrors:
        left, right = width - right, width - left
    if turn.flips:
        top, bottom = height - bottom, height - top
    return (top, left, bottom, right) if turn.transposes else (left, top, right, bottom)


def _write(image: Image.Image, mode: str, turn: _Turn, channels_last: bool) -> Tensor:
    """Return an image as a tensor, in another mode, and turned as its EXIF data say."""
    if mode != UNCHANGED and image.mode in _NUMBERS:
        must = "data must be an image of levels, or mode must be 'unchanged'"
        raise DataError(must, f"a {image.format or 'file'} of {_NUMBERS[image.mode].__name__}")
    if mode == UNCHANGED:
        pixels = np.asarray(image)
        pixels = pixels.astype(_NUMBERS.get(image.mode, np.uint16))
    elif image.mode in _DEEP:  # the high byte, as Pillow itself reads 16-bit color
        pixels = np.asarray(Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert(mode))
    else:
        pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    return _turned(pixels, turn, channels_last)


#: The dtypes of decoded pixels.
_DTYPES = {np.dtype(t): getattr(torch, t) for t in ("uint8", "uint16", "int32", "float32")}


def _turned(pixels: np.ndarray, turn: _Turn, channels_last: bool) -> Tensor:
    """Return pixels ``(H, W)`` or ``(H, W, C)`` as a tensor, turned as their EXIF data say."""
    if turn.transposes:
        pixels = cv2.transpose(pixels)
    if turn.mirrors or turn.flips:
        pixels = cv2.flip(pixels, -1 if turn.mirrors and turn.flips else int(turn.mirrors))
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    out = fake.decoded(_HOST, _DTYPES[pixels.dtype], (channels, height, width), channels_last)
    if pixels.ndim == 2:
        out.numpy()[0] = pixels
    elif out.is_contiguous():  # many times faster than NumPy's copy
        cv2.split(pixels, list(out.numpy()))
    else:
        out.permute(1, 2, 0).numpy()[:] = pixels
    return out


def jpeg(out: Tensor, image: Tensor, quality: Tensor) -> None:
    _through_files("jpeg", out, image, quality)


def webp(out: Tensor, image: Tensor, quality: Tensor) -> None:
    _through_files("webp", out, image, quality)


def _through_files(op: str, out: Tensor, image: Tensor, quality: Tensor) -> None:
    values.quality(op, "quality", quality)
    if image.numel() == 0:
        return
    image, qualities = image.detach(), [int(q) for q in number_per_image(quality, image)]
    sources, targets = (x.flatten(0, -4) if x.ndim > 3 else x[None] for x in (image, out))

    def work(start: int, stop: int) -> None:
        for source, target, value in zip(
            sources[start:stop], targets[start:stop], qualities[start:stop], strict=True
        ):
            if value == 0:
                target.copy_(source)
            else:
                _compress(op, target, source, value)

    _threads.split(len(sources), image.numel(), work)


#: The class with which Pillow reads what it just wrote.
_READERS = {"jpeg": JpegImageFile, "webp": WebPImageFile}


def _compress(format: str, target: Tensor, image: Tensor, quality: int) -> None:
    levels = image
    if image.dtype != torch.uint8:
        real = image if image.dtype == torch.float64 else image.float()
        levels = (real.nan_to_num().clamp(0, 1) * 255).round().to(torch.uint8)
    by_opencv = format == "jpeg" and max(image.shape) <= _JPEG_SIDE and opencv_is_pillow()
    found = torch.from_numpy((_by_opencv if by_opencv else _by_pillow)(format, levels, quality))
    if target.dtype == torch.uint8 and target.is_contiguous() and found.ndim == 3:
        cv2.split(found.numpy(), list(target.numpy()))  # much faster than PyTorch's copy
        return
    decoded = found[None] if found.ndim == 2 else found.permute(2, 0, 1)
    target.copy_(decoded if image.dtype == torch.uint8 else decoded.to(real.dtype) / 255)


def _by_pillow(format: str, levels: Tensor, quality: int) -> np.ndarray:
    pixels = levels[0] if len(levels) == 1 else levels.permute(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(file, format.upper(), quality=quality)
    file.seek(0)
    return np.array(_READERS[format](file))


_JPEG_SIDE = 65_500


def _by_opencv(format: str, levels: Tensor, quality: int) -> np.ndarray:
    """Compress and decompress by OpenCV, in BGR: the same JPEG library as Pillow's, without its copies."""
    planes = levels.numpy()
    if len(planes) == 1:
        pixels, flag = np.ascontiguousarray(planes[0]), cv2.IMREAD_GRAYSCALE
    else:
        flag = cv2.IMREAD_COLOR_RGB
        if layout.is_interleaved(levels):
            pixels = cv2.cvtColor(planes.transpose(1, 2, 0), cv2.COLOR_RGB2BGR)
        else:
            pixels = cv2.merge([np.ascontiguousarray(plane) for plane in planes[::-1]])
    written, file = cv2.imencode(".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, quality))
    found = cv2.imdecode(file, flag) if written else None
    return _by_pillow(format, levels, quality) if found is None else np.asarray(found)


@compare.comparison("jpeg", "Pillow")
def opencv_is_pillow() -> bool:
    """Return whether OpenCV and Pillow, which may have different JPEG libraries, give the same pixels."""
    if not hasattr(cv2, "IMREAD_COLOR_RGB"):
        return False
    rng = np.random.default_rng(0)
    coarse = cv2.resize(rng.integers(0, 256, (7, 9, 3)).astype(np.uint8), (83, 61))
    fine = rng.integers(0, 256, (61, 83, 3)).astype(np.uint8)
    for frame in (coarse, fine):
        for channels in (1, 3):
            levels = torch.from_numpy(np.ascontiguousarray(frame[..., :channels].transpose(2, 0, 1)))
            for quality in (3, 40, 75, 96, 100):
                ours, theirs = (f("jpeg", levels, quality) for f in (_by_opencv, _by_pillow))
                if not np.array_equal(ours, theirs):
                    return False
    return True
