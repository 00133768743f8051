"""Images of different sizes in one buffer, which operators take instead of an image."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import default_collate

from imgops._common import check, layout, packing, torch_private
from imgops._operator import subclass
from imgops._operator.record import Operator, table
from imgops.batches import operators


class PackedImages:
    """A batch of images of different sizes, one after the other in one buffer.

    Functions that give all images one size take it instead of an image, in one call, and return a batch
    ``(N, C, height, width)``: :func:`resize`, :func:`resized_crop` and others. Functions that keep the size
    of an image (colors, lookups, blurs, flips) return packed images. Tensors of parameters may have ``N`` as
    their leading dimension. The result of each image has the same bits as a separate call on one thread, and
    gradients go back to the buffer.

    To a compiler the object is three tensors and two numbers, so a graph does not depend on the sizes. It can
    be pickled and saved, and moved to a device in one copy.

    Parameters
    ----------
    data : Tensor
        The values of all images, ``(M,)``: each planar ``(C, H, W)``, or ``(H, W, C)`` if ``interleaved``.
    sizes : Tensor
        The height and width of each image, ``(N, 2)``, int64 on the CPU.
    num_channels : int
        The number of channels, which all images share.
    interleaved : bool
        Whether the channels of a pixel lie next to each other.

    Raises
    ------
    TypeError, ValueError
        If the sizes are not those of images that fill ``data``.

    Methods
    -------
    of(images, interleaved=None)
        Pack a list of images ``(C, H, W)``.
    unpack()
        Return the images as views of the buffer. ``batch[i]``, ``batch[i:j]``, ``len`` and loops work, too.
    padded(size=None, fill=0), mask(size)
        Return each image in the corner of a canvas, and where its pixels are.
    collate(samples)
        Pack the images of samples, as a DataLoader's ``collate_fn``.
    to, cuda, cpu, float, pin_memory, detach, requires_grad_
        As those of a tensor, of the buffer.

    Notes
    -----
    The table of operators shows which operators take packed images; ``contain``, ``cover``, ``fit``, ``flip``
    and ``invert`` take them too. ``contain``, ``cover``, and ``resize`` with a tensor of sizes give each
    image its own size. The operators have no batching rule: :func:`torch.vmap` raises.

    Examples
    --------
    >>> import torch, imgops
    >>> images = [torch.rand(3, 4, 6), torch.rand(3, 5, 2)]
    >>> batch = imgops.PackedImages.of(images)
    >>> batch
    PackedImages(2 images of 3 channels, torch.float32)
    >>> imgops.resize(batch, (8, 8)).shape
    torch.Size([2, 3, 8, 8])
    >>> torch.equal(imgops.invert(batch)[1], imgops.invert(images[1]))
    True
    """

    __module__ = "imgops"  # under this name it is pickled

    data: Tensor
    sizes: Tensor
    offsets: Tensor
    num_channels: int
    interleaved: bool

    def __init__(self, data: Tensor, sizes: Tensor, num_channels: int = 3, interleaved: bool = False) -> None:
        for name, value in (("data", data), ("sizes", sizes)):
            check.tensor("PackedImages", name, value)
        channels = check.integer("PackedImages", "num_channels must be an integer", num_channels)
        self.data, self.sizes, self.num_channels = data, sizes, channels
        self.interleaved = check.switch("PackedImages", "interleaved", interleaved)
        packing.require_sizes("PackedImages", sizes)
        operators.register()
        if channels < 1:
            check.fail(ValueError, "PackedImages", "num_channels must be at least 1", channels)
        if sizes.device.type != "cpu":
            check.fail(ValueError, "PackedImages", "sizes must be on the CPU", sizes.device)
        ends = (sizes.prod(1) * channels).cumsum(0)
        self.offsets = torch.cat([torch.zeros(1, dtype=torch.int64, device="cpu"), ends])
        if torch_private.is_eager():  # elsewhere the operators check
            packing.require_fit("PackedImages", data, sizes, self.offsets, channels)

    @staticmethod
    def __imgops_operator__(operator: Operator, args: Sequence[Any]) -> Any:
        """Call an operator whose first argument is packed images."""
        return operators.call(operator, args)

    @staticmethod
    def of(images: Sequence[Tensor], interleaved: bool | None = None) -> PackedImages:
        """Pack images ``(C, H, W)`` of one dtype, device and number of channels.

        ``interleaved`` is the memory format; by default that of the first image. Gradients go back to each
        image.
        """
        if isinstance(images, PackedImages) or not check.is_sequence(images) or len(images) == 0:
            must = "images must be a sequence of one or more Tensors"
            is_list = not isinstance(images, PackedImages) and check.is_sequence(images)
            got = "none" if is_list else type(images).__name__
            check.fail(ValueError, "PackedImages.of", must, got)
        for image in images:
            if not isinstance(image, Tensor):
                must = "images must be a sequence of Tensors"
                check.fail(TypeError, "PackedImages.of", must, f"one of {type(image).__name__}")
            if not subclass.shows_image(image):
                must = "images must be Tensors or Images"
                check.fail(TypeError, "PackedImages.of", must, f"one of {type(image).__name__}")
            if image.ndim != 3:
                must = "each image must have 3 dimensions (C, H, W)"
                check.fail(ValueError, "PackedImages.of", must, f"shape {check.written(image.shape)}")
        first = images[0]
        for i, image in enumerate(images):
            check.same_dtype_and_device("PackedImages.of", f"image {i}", image, "image 0", first)
            if image.shape[0] != first.shape[0]:
                must = f"image {i} must have the channels of image 0 ({first.shape[0]})"
                check.fail(ValueError, "PackedImages.of", must, image.shape[0])
        if interleaved is None:
            interleaved = layout.is_interleaved(first)
        interleaved = check.switch("PackedImages.of", "interleaved", interleaved)
        sizes = torch.tensor([list(image.shape[1:]) for image in images], dtype=torch.int64, device="cpu")
        parts = [(x.permute(1, 2, 0) if interleaved else x).reshape(-1) for x in images]
        return PackedImages(torch.cat(parts), sizes, first.shape[0], interleaved)

    @staticmethod
    def collate(samples: Sequence[Any]) -> Any:
        """Collate samples, for a DataLoader's ``collate_fn``, and pack their images.

        Samples are images, or tuples, lists or dicts with images among their values. Plain tensors and
        ``tv_tensors.Image`` of 3 dimensions are images. Bounding boxes, keypoints, videos, masks and a user's
        subclasses of tv_tensors become a list with an entry for each sample; only masks of one shape become
        one ``Mask``. Other values are collated as PyTorch does, or become a list if their shapes differ.
        """
        if not samples:
            check.fail(ValueError, "PackedImages.collate", "samples must be one or more", "none")
        first = samples[0]
        is_image = isinstance(first, Tensor) and first.ndim == 3 and subclass.shows_image(first)
        if is_image:
            return PackedImages.of(samples)
        if any(subclass.is_tv_tensor(s) for s in samples):
            kinds = {type(s) for s in samples}
            if len(kinds) > 1:
                must = "values of one place must have one class"
                check.fail(
                    TypeError, "PackedImages.collate", must, ", ".join(sorted(k.__name__ for k in kinds))
                )
            one_shape = all(s.shape == first.shape for s in samples)
            if one_shape and (subclass.is_mask(first) or subclass.shows_image(first)):
                return subclass.rewrap(torch.stack([subclass.plain(s) for s in samples]), first)
            return list(samples)
        if isinstance(first, (Mapping, tuple, list)):
            alike = all(type(s) is type(first) and len(s) == len(first) for s in samples)
            if not alike or (isinstance(first, Mapping) and any(s.keys() != first.keys() for s in samples)):
                must = "samples must have the structure of the first one"
                check.fail(ValueError, "PackedImages.collate", must, "another one")
        if isinstance(first, Mapping):
            out = {key: PackedImages.collate([s[key] for s in samples]) for key in first}
            if type(first) is dict or not isinstance(first, MutableMapping):
                return out
            whole = copy(first)  # of its class, as PyTorch does
            whole.update(out)
            return whole
        if isinstance(first, (tuple, list)):
            each = [PackedImages.collate(values) for values in zip(*samples, strict=True)]
            return type(first)(*each) if hasattr(first, "_fields") else tuple(each)
        if isinstance(first, Tensor) and any(getattr(s, "shape", None) != first.shape for s in samples):
            return list(samples)
        return default_collate(list(samples))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the images."""
        return self.data.dtype

    @property
    def device(self) -> torch.device:
        """The device of the buffer; the sizes are on the CPU."""
        return self.data.device

    @property
    def is_cuda(self) -> bool:
        """Return whether the buffer is on a CUDA device."""
        return self.data.is_cuda

    @property
    def requires_grad(self) -> bool:
        """Return whether gradients go back to the buffer."""
        return self.data.requires_grad

    @property
    def ndim(self) -> int:
        """The number of dimensions that a batch of these images would have: 4."""
        return 4

    @property
    def shape(self) -> Any:
        """Raise, because the images have different sizes, which are in ``sizes``."""
        must = "image must be a Tensor whose images have one size, or size must be given"
        torch_private.raise_error(TypeError, f"imgops: {must}, got PackedImages")

    def is_floating_point(self) -> bool:
        """Return whether the dtype is floating point."""
        return self.data.is_floating_point()

    def __len__(self) -> int:
        return self.sizes.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unpack())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                check.fail(ValueError, "PackedImages", "the step of a slice must be 1", step)
            stop = max(start, stop)
            ends = self.offsets[start : stop + 1]
            part = self.data[int(ends[0]) : int(ends[-1])]
            return self.like(part, self.sizes[start:stop], ends - ends[0])
        index = check.integer("PackedImages", "index must be an integer or a slice", index)
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"PackedImages: index must be from {-count} to {count - 1}, got {index}")
        index %= count
        return self[index : index + 1].unpack()[0]

    def __repr__(self) -> str:
        return f"PackedImages({len(self)} images of {self.num_channels} channels, {self.dtype})"

    def unpack(self) -> list[Tensor]:
        """Return the images ``(C, H, W)``, as views of the buffer."""
        packing.require_fit("PackedImages.unpack", self.data, self.sizes, self.offsets, self.num_channels)
        return packing.images_of(self.data, self.sizes, self.offsets, self.num_channels, self.interleaved)

    def like(self, data: Tensor, sizes: Tensor | None = None, offsets: Tensor | None = None) -> PackedImages:
        """Return packed images with other values and, optionally, other sizes, without any checks."""
        new = PackedImages.__new__(PackedImages)
        new.data, new.num_channels, new.interleaved = data, self.num_channels, self.interleaved
        new.sizes = self.sizes if sizes is None else sizes
        new.offsets = self.offsets if offsets is None else offsets
        return new

    def to(self, *args: Any, **options: Any) -> PackedImages:
        """Return the images on another device or of another dtype, as :meth:`torch.Tensor.to` does."""
        return self.like(self.data.to(*args, **options))

    def cuda(self, *args: Any, **options: Any) -> PackedImages:
        """Return the images on a CUDA device, in one copy."""
        return self.like(self.data.cuda(*args, **options))

    def cpu(self) -> PackedImages:
        """Return the images on the CPU."""
        return self.like(self.data.cpu())

    def float(self) -> PackedImages:
        """Return the images in float32; the values are not scaled."""
        return self.like(self.data.float())

    def pin_memory(self) -> PackedImages:
        """Return the images in pinned memory, from which a copy to a CUDA device does not wait."""
        return self.like(self.data.pin_memory())

    @property
    def layout(self) -> torch.layout:
        """The layout of the buffer, which is strided."""
        return self.data.layout

    def flip(self, dims: Sequence[int]) -> PackedImages:
        """Return the images mirrored along dimensions that are counted from the end."""
        return operators.flip(self, dims)

    def padded(self, size: Sequence[int] | None = None, fill: int | builtins.float = 0) -> Tensor:
        """Return a batch ``(N, C, height, width)``: each image in the upper left corner of a canvas.

        ``size`` is the height and width, at least those of each image; by default the smallest such size.
        In a graph it must be given, and there an image that is larger is cut off.
        """
        if len(self) == 0:
            check.fail(ValueError, "PackedImages.padded", "images must be one or more", 0)
        if not isinstance(fill, (int, builtins.float)):
            check.fail(TypeError, "PackedImages.padded", "fill must be a number", type(fill).__name__)
        if size is None:
            must = "size must be given in a graph, which does not know the sizes of the images"
            check.refuse_in_graph(ValueError, "PackedImages.padded", must, None)
            size = self.sizes.amax(0).tolist()
        height, width = check.positive_size("PackedImages.padded", size)
        if check.is_any((self.sizes[:, 0] > height) | (self.sizes[:, 1] > width)):
            most = self.sizes.amax(0).tolist()
            must = f"size must be at least that of each image, {check.written(most)}"
            check.fail(ValueError, "PackedImages.padded", must, (height, width))
        out = operators.call(table["imgops::crop"], (self, 0, 0, width, height))
        if fill == 0:
            return out
        if not (out.is_floating_point() or out.is_complex()):
            limits = None if out.dtype == torch.bool else torch.iinfo(out.dtype)
            low, high = (limits.min, limits.max) if limits else (0, 1)
            if not low <= fill <= high or fill != int(fill):
                must = f"fill must be a whole number from {low} to {high} for {out.dtype}"
                check.fail(ValueError, "PackedImages.padded", must, fill)
            fill = int(fill)
        return torch.where(self.mask((height, width)), out, fill).to(out.dtype)

    def mask(self, size: Sequence[int]) -> Tensor:
        """Return where the pixels of :meth:`padded` are those of the image, ``(N, 1, height, width)``."""
        height, width = check.positive_size("PackedImages.mask", size)
        rows = torch.arange(height, device="cpu", dtype=torch.int64) < self.sizes[:, :1]
        columns = torch.arange(width, device="cpu", dtype=torch.int64) < self.sizes[:, 1:]
        return (rows[:, None, :, None] & columns[:, None, None, :]).to(self.data.device)

    def detach(self) -> PackedImages:
        """Return the images without their gradient's graph."""
        return self.like(self.data.detach())

    def requires_grad_(self, requires_grad: bool = True) -> PackedImages:
        """Let gradients go back to the buffer, ``data.grad``."""
        self.data.requires_grad_(requires_grad)
        return self


def _flatten(packed: PackedImages) -> tuple[list[Any], tuple[int, bool]]:
    return [packed.data, packed.sizes, packed.offsets], (packed.num_channels, packed.interleaved)


def _unflatten(values: Any, context: tuple[int, bool]) -> PackedImages:
    new = PackedImages.__new__(PackedImages)
    new.data, new.sizes, new.offsets = values
    new.num_channels, new.interleaved = context
    return new


#: So that ``torch.load`` takes them in its default, safe mode.
torch.serialization.add_safe_globals([PackedImages])
torch_private.register_pytree(PackedImages, _flatten, _unflatten, ("data", "sizes", "offsets"))
