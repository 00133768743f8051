"""Images that are still files; a transform decodes them, or only the part that it needs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common import check, torch_private
from imgops._common.config import DecodeImage
from imgops._operator.call import placeholder_size
from imgops.batches import operators
from imgops.batches.packed import PackedImages
from imgops.fake import codec as fake
from imgops.kernels.cpu import codec as cpu
from imgops.ops import codec

__all__ = ["EncodedImage", "EncodedImages"]


class EncodedImage:
    """An image that is still a file; the first transform of a pipeline decodes it.

    Pass it to a pipeline instead of an image. If there are no other inputs, ``RandomResizedCrop``,
    ``RandomCrop`` without padding and ``CenterCrop`` decode only the part that they keep; every other
    transform decodes the whole image. The draws and the pixels are the same as for the decoded image. Alone,
    it becomes a tensor; in a structure with masks, boxes or keypoints it becomes a ``tv_tensors.Image``.

    Parameters
    ----------
    data : Tensor, bytes or path
        The whole file, as :func:`decode_image` takes it. Only the header is read at once.
    mode : {"RGB", "L", "LA", "RGBA", "unchanged"} or torchvision.io.ImageReadMode
        The mode that the file is converted to: 3, 1, 2 or 4 channels. "unchanged" keeps the channels of the
        file and its 8 or 16 bits, as :func:`decode_image` does; the attribute is then the mode of the file,
        such as "RGB" or "L;16".
    apply_exif_orientation : bool
        Apply the orientation of the EXIF data.
    max_pixels : int
        The largest number of pixels; a larger image raises at once. The default is Pillow's limit.

    Attributes
    ----------
    shape : (int, int, int)
        The shape ``(C, H, W)`` of the decoded image, read from the header. ``decode(box=None)`` returns the
        decoded image, or a box of it, as :func:`decode_image` does.

    Raises
    ------
    ValueError
        If the header is not one that :func:`decode_image` reads, or the image has more than ``max_pixels``.
    TypeError
        If ``data`` is neither a uint8 tensor nor bytes nor a path, or in a compiled graph: make the object
        before, and pass it in.
    OSError
        If a path cannot be read.

    Examples
    --------
    >>> import torch, imgops
    >>> from imgops import transforms as v2
    >>> pixels = torch.zeros(3, 40, 60, dtype=torch.uint8)
    >>> image = imgops.EncodedImage(imgops.encode_image(pixels))
    >>> image.shape, v2.RandomResizedCrop(16)(image).shape
    ((3, 40, 60), torch.Size([3, 16, 16]))
    """

    #: The path of the file, if it was passed as a path, for error messages.
    _paths: list[str | None] | None = None

    def __init__(
        self,
        data: Tensor | bytes | bytearray | memoryview | str | os.PathLike[str],
        mode: str = "RGB",
        *,
        apply_exif_orientation: bool = False,
        max_pixels: int = DecodeImage.max_pixels,
    ) -> None:
        must = "data must be wrapped outside of a compiled graph"
        check.refuse_in_graph(TypeError, "EncodedImage", must, "a call inside of it")
        self.data, self._paths = codec.file_of(data).cpu(), [codec.path_of(data)]
        self.mode = codec.mode_of(mode)
        self.apply_exif_orientation = check.switch(
            "EncodedImage", "apply_exif_orientation", apply_exif_orientation
        )
        self.max_pixels = max_pixels
        known = "RGB" if self.mode == cpu.UNCHANGED else self.mode
        fake.decode_image(placeholder_size, self.data, max_pixels, known, apply_exif_orientation, False)
        with _naming(self):
            if self.mode == cpu.UNCHANGED:
                self.mode = cpu.mode_of_file(self.data, max_pixels)
            self.height, self.width = cpu.size_of_file(self.data, max_pixels, apply_exif_orientation)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape ``(C, H, W)`` of the decoded image."""
        return fake.MODES[self.mode], self.height, self.width

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the decoded image: uint8, or uint16 for a mode of 16 bits."""
        return fake.dtype_of(self.mode)

    def decode(
        self,
        box: Sequence[int] | Tensor | None = None,
        *,
        memory_format: torch.memory_format = torch.contiguous_format,
    ) -> Tensor:
        """Return the decoded image, or a box of it, by :func:`decode_image`."""
        with _naming(self):
            return codec.decode_image(
                self.data,
                self.mode,
                box=box,
                apply_exif_orientation=self.apply_exif_orientation,
                max_pixels=self.max_pixels,
                memory_format=memory_format,
            )

    def __repr__(self) -> str:
        return f"EncodedImage({len(self.data)} bytes, shape={self.shape})"


def _naming(files: EncodedImage | EncodedImages) -> AbstractContextManager[None]:
    """Name the paths of files in errors; a graph does not read paths, or each one would recompile it."""
    return nullcontext() if is_compiling() else cpu.naming(files._paths)


class _File(NamedTuple):
    """The bytes of a file, and what its header says."""

    data: Tensor
    height: int
    width: int
    mode: str


class EncodedImages:
    """A batch of images that are still files; the first transform of a pipeline decodes them on threads.

    Pass it, instead of a batch, to a pipeline with ``per_sample=True``, or to one that draws nothing.
    ``RandomResizedCrop``, ``RandomCrop`` without padding and ``CenterCrop``, which may follow a ``Resize``,
    decode only the part of each image that they need. The draws and the pixels are the same as in a loop over
    the decoded images. Decoding uses as many threads as PyTorch. The object consists of three tensors, so a
    compiled pipeline needs one graph for files of any size.

    Parameters
    ----------
    files : iterable of Tensor, bytes or path
        The files, each as :func:`decode_image` takes it; paths are read, and headers, at once.
    mode : {"RGB", "L", "LA", "RGBA", "unchanged"} or torchvision.io.ImageReadMode
        The mode that every file is converted to: 3, 1, 2 or 4 channels. "unchanged" keeps the channels and
        the 8 or 16 bits of the files, which must be those of the first one.
    skipped : list, optional
        Replace files that cannot be decoded by black images, so that the batch keeps its length, and append
        ``(index, error)`` to this list for each of them. A file without a valid header gets the size of the
        first file that has one. By default the first such file raises. Copies by pytree functions have no
        list.
    apply_exif_orientation, max_pixels
        As in :func:`decode_image`.

    Attributes
    ----------
    sizes : Tensor
        The height and width of each image, ``(N, 2)``, int64, read from the headers.

    Raises
    ------
    ValueError
        If there is no file, or a header is not one that :func:`decode_image` reads: the message names its
        index, and its path if it was given as one.
    TypeError
        If a file is neither a uint8 tensor nor bytes nor a path, or in a compiled graph: make the object
        before, and pass it in, without ``skipped``.
    OSError
        If a path cannot be read.

    Examples
    --------
    >>> import torch, imgops
    >>> from imgops import transforms as v2
    >>> files = [imgops.encode_image(torch.zeros(3, h, 60, dtype=torch.uint8)) for h in (40, 50)]
    >>> v2.RandomResizedCrop(16, per_sample=True)(imgops.EncodedImages(files)).shape
    torch.Size([2, 3, 16, 16])
    """

    #: The path of each file that was passed as a path, for error messages; pytree functions drop them.
    _paths: list[str | None] | None = None

    def __init__(
        self,
        files: Iterable[Tensor | bytes | bytearray | memoryview | str | os.PathLike[str]],
        mode: str = "RGB",
        *,
        skipped: list[tuple[int, Exception]] | None = None,
        apply_exif_orientation: bool = False,
        max_pixels: int = DecodeImage.max_pixels,
    ) -> None:
        operators.register()  # a compiled pipeline cannot
        files = codec.list_of_files("EncodedImages", files)
        if not files:
            check.fail(ValueError, "EncodedImages", "files must be one or more files", "none")
        if skipped is not None and not isinstance(skipped, list):
            check.fail(TypeError, "EncodedImages", "skipped must be a list", type(skipped).__name__)
        self.mode, self.skipped = codec.mode_of(mode), skipped
        self._paths = [codec.path_of(file) for file in files]
        self._reported: set[int] = set()
        self.apply_exif_orientation = check.switch(
            "EncodedImages", "apply_exif_orientation", apply_exif_orientation
        )
        self.max_pixels = max_pixels
        codec.require_settings("EncodedImages", mode, max_pixels)

        def read(i: int) -> _File:
            data = codec.file_of(files[i])
            size = cpu.size_of_ordinary_jpeg(data, max_pixels) if self.mode != cpu.UNCHANGED else None
            if size is not None:
                return _File(data, *size, self.mode)
            image = EncodedImage(
                data, mode, apply_exif_orientation=apply_exif_orientation, max_pixels=max_pixels
            )
            return _File(image.data, image.height, image.width, image.mode)

        new: list[tuple[int, Exception]] | None = None if skipped is None else []
        with _naming(self):
            found: list[_File | None] = cpu.on_threads(len(files), read, new)
        self._report(new or [])
        nothing = torch.empty(0, dtype=torch.uint8, device="cpu")
        first = next(filter(None, found), _File(nothing, 1, 1, "RGB"))
        self.mode = first.mode if self.mode == cpu.UNCHANGED else self.mode
        for i, file in enumerate(found):
            if file is not None and file.mode != self.mode:
                path = cpu.named(self._paths[i])
                must = f"files[{i}]{path} must have mode {self.mode!r}, as other files, for 'unchanged'"
                check.fail(ValueError, "EncodedImages", must, repr(file.mode))
        skipped_file = first._replace(data=nothing)
        kept = [skipped_file if file is None else file for file in found]
        sizes = [(file.height, file.width) for file in kept]
        self.sizes = torch.tensor(sizes, dtype=torch.int64, device="cpu")
        parts = [file.data for file in kept]
        self.data = torch.cat(parts)
        lengths = torch.tensor([0, *map(len, parts)], dtype=torch.int64, device="cpu")
        self.offsets = lengths.cumsum(0)

    def __setstate__(self, state: dict[str, Any]) -> None:
        operators.register()
        self.__dict__.update(state)

    @property
    def num_channels(self) -> int:
        """The number of channels of the mode."""
        return fake.MODES[self.mode]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the decoded images: uint8, or uint16 for a mode of 16 bits."""
        return fake.dtype_of(self.mode)

    def __len__(self) -> int:
        return self.sizes.shape[0]

    def decode(self, boxes: Tensor | None = None) -> Any:
        """Return the images, or a box ``(left, top, right, bottom)`` of each, as :class:`PackedImages`."""
        where = self._boxes(boxes)
        how = self.data, self.offsets, where, self.max_pixels, self.mode, self.apply_exif_orientation
        if self.skipped is None:
            with _naming(self):
                data = codec.decode_packed(*how)
        else:
            must = "skipped must be None in a compiled graph, which cannot report a file"
            check.refuse_in_graph(TypeError, "EncodedImages.decode", must, "a list")
            new: list[tuple[int, Exception]] = []
            data = cpu.decode_boxes(*how, new)
            self._report(new)
        sizes = torch.stack([where[:, 3] - where[:, 1], where[:, 2] - where[:, 0]], 1)
        return PackedImages(data, sizes, self.num_channels)

    def _run_program(self, out: Tensor, steps: Any, numbers: Any, tables: Tensor | None) -> bool:
        """Run a program whose first step is a window of each file; return False if nothing was done."""
        new: list[tuple[int, Exception]] | None = None if self.skipped is None else []
        with _naming(self):
            how = self.max_pixels, self.mode, self.apply_exif_orientation, new
            done = cpu.run_program(out, self.data, self.offsets, self.sizes, steps, numbers, tables, *how)
        self._report(new or [])
        return done

    def _report(self, new: list[tuple[int, Exception]]) -> None:
        """Report each file that cannot be read, once."""
        for i, error in sorted(new, key=itemgetter(0)):  # threads find them in any order
            if self.skipped is not None and i not in self._reported:
                self._reported.add(i)
                self.skipped.append((i, cpu.name_path(error, self._paths)))

    def _boxes(self, boxes: Tensor | None) -> Tensor:
        """Return the boxes, by default of whole images, and check that they lie in their images."""
        height, width = self.sizes.unbind(1)
        zero = torch.zeros_like(height)
        if boxes is None:
            return torch.stack([zero, zero, width, height], 1)
        check.tensor("EncodedImages.decode", "boxes", boxes)
        count = height.shape[0]  # in an exported graph len would be a constant
        if boxes.dtype != torch.int64 or boxes.shape != (count, 4):
            must = f"boxes must be int64 of shape ({count}, 4)"
            check.fail(ValueError, "EncodedImages.decode", must, f"{boxes.dtype} of {tuple(boxes.shape)}")
        left, top, right, bottom = boxes.unbind(1)
        bad = (left < 0) | (top < 0) | (left >= right) | (top >= bottom) | (right > width) | (bottom > height)
        if not check.is_any(bad):  # the operator checks the boxes of a graph
            return boxes
        for i in bad.nonzero()[:, 0].tolist():
            path = cpu.named(self._paths[i] if self._paths else None, "box")
            must = f"boxes[{i}]{path} must be pixels of its image of {int(height[i])} x {int(width[i])}"
            check.fail(ValueError, "EncodedImages.decode", must, tuple(boxes[i].tolist()))
        return boxes

    def __repr__(self) -> str:
        return f"EncodedImages({len(self)} files, mode={self.mode!r})"


def _flatten(files: EncodedImages) -> tuple[list[Any], tuple[str, bool, int]]:
    context = files.mode, files.apply_exif_orientation, files.max_pixels
    return [files.data, files.offsets, files.sizes], context


def _unflatten(values: Any, context: tuple[str, bool, int]) -> EncodedImages:
    new = EncodedImages.__new__(EncodedImages)
    new.data, new.offsets, new.sizes = values
    new.mode, new.apply_exif_orientation, new.max_pixels = context
    new.skipped, new._reported = None, set()
    return new


#: So that ``torch.load`` takes them in its default, safe mode.
torch.serialization.add_safe_globals([EncodedImage, EncodedImages])
torch_private.register_pytree(EncodedImages, _flatten, _unflatten, ("data", "offsets", "sizes"))
#: A file has no tensors. It is registered so that transforms of torchvision raise; they would return it.
torch_private.register_pytree(
    EncodedImage, lambda image: ([], (image,)), lambda leaves, context: context[0], ()
)
