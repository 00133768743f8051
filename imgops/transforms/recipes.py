"""Recipes of public training code, one line each, with the numbers of their papers and code.

===========================  =========================================================================
:func:`three_augment`        DeiT III's 3-Augment
:class:`DINOCrops`           the multi-crop of DINOv2 and DINOv3
:func:`yolo_letterbox`       the images of the YOLO family
:func:`yolo_mosaic`          and their mosaic
:func:`pixmix_cifar`,        PixMix with the numbers of its paper
:func:`pixmix_imagenet`
===========================  =========================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import PIL.Image
import PIL.ImageFilter
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops import EncodedImage
from imgops._common import check
from imgops._common.torch_private import raise_error, sym_max, sym_min
from imgops._operator import subclass
from imgops.transforms._core import pil_images
from imgops.transforms._core.arguments import (
    WIDEST,
    check_held,
    fill_values,
    in_range,
    name_of,
    one_number,
    size_of,
    switch,
)
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.inputs import decode_all
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params
from imgops.transforms._core.probabilistic import ProbabilisticTransform
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.color import ColorJitter, Grayscale, RandomGrayscale, RandomSolarize
from imgops.transforms.containers import Branches, Compose, RandomApply, RandomChoice
from imgops.transforms.conversion import Normalize, ToDtype, ToImage
from imgops.transforms.filters import GaussianBlur
from imgops.transforms.functional import _dispatch
from imgops.transforms.geometry import (
    LetterBox,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from imgops.transforms.mixing import Mosaic, PixMix

__all__ = [
    "DINOCrops",
    "pixmix_cifar",
    "pixmix_imagenet",
    "three_augment",
    "yolo_letterbox",
    "yolo_mosaic",
]


def __dir__() -> list[str]:
    return __all__


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_BICUBIC = InterpolationMode.BICUBIC


class _Levels(OperatorTransform, v2.Transform):
    """The first step of a recipe for uint8 images with three channels: it raises for other images."""

    _config = ("owner",)

    def __init__(self, owner: str) -> None:
        v2.Transform.__init__(self)
        self.owner = owner
        self._describe()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, PIL.Image.Image):
            known, got = inpt.mode == "RGB", f"a PIL image of mode {inpt.mode}"
            shape: tuple[int, ...] = (3, inpt.height, inpt.width)
        elif isinstance(inpt, Tensor) and _dispatch.is_image(inpt):
            image = subclass.plain(inpt)
            known, got, shape = image.dtype == torch.uint8, f"{image.dtype}", tuple(image.shape)
        else:
            return inpt
        if not known:
            raise_error(TypeError, f"{self.owner}: image must be uint8 or an RGB image of PIL, got {got}")
        if shape[-3:-2] != (3,) or 0 in shape[-2:]:
            must = "image must have the shape (..., 3, H, W) and at least one pixel"
            raise_error(ValueError, f"{self.owner}: {must}, got shape {shape}")
        return inpt

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return self.transform(image, {})

    def _require_packed(self) -> None:
        must = f"{self.owner}: image must be uint8 or an RGB image of PIL"
        raise_error(TypeError, f"{must}, got images of different sizes")


def _normalize(owner: Any, mean: Any, std: Any) -> list[Any]:
    """Return the steps from levels to normalized floats, with numbers for three channels."""
    for name, values, low in (("mean", mean, -1e6), ("std", std, 1e-6)):
        if not isinstance(values, (tuple, list)) or len(values) != 3:
            must = f"{name_of(owner)}: {name} must be 3 numbers, one for each channel"
            raise_error(ValueError, f"{must}, got {check.shown(values)}")
        for value in values:
            one_number(owner, f"each {name}", value, low, 1e6)
    return [ToImage(), ToDtype(torch.float32, scale=True), Normalize(list(mean), list(std))]


# -- classification ----------------------------------------------------------------------------------


class _PILBlur(ProbabilisticTransform):
    """PIL's Gaussian blur, which is three box blurs, with a random radius."""

    _random_parameters = (IS_APPLIED, Parameter("radius"))
    _known = ("radius",)

    def __init__(self, radius: Sequence[float], p: float = 1.0) -> None:
        super().__init__(p, False, None, radius=tuple(radius))

    def _change_image(self, image: Tensor, radius: float) -> Tensor:
        blur = PIL.ImageFilter.GaussianBlur(radius)
        return pil_images.each("three_augment", image, lambda given: given.filter(blur))


def three_augment(
    size: int = 224,
    color_jitter: float = 0.3,
    src: bool = False,
    *,
    mean: Sequence[float] = MEAN,
    std: Sequence[float] = STD,
    per_sample: bool = False,
) -> Compose:
    """Return DeiT III's 3-Augment: a crop, a flip, either grayscale, solarize or blur, and a color jitter.

    Parameters
    ----------
    size : int
        The side of the output in pixels.
    color_jitter : float
        The strength of the jitter of brightness, contrast and saturation; 0 leaves it out.
    src : bool
        Whether the crop is the paper's simple random crop: a resize of the shorter side, a reflecting border
        of 4 pixels, and a crop of the size. Otherwise it is a random resized crop of 8 to 100 % of the area.
    mean, std : sequence of float
        The mean and standard deviation of the normalization at the end.
    per_sample : bool
        Whether each image of a batch has its own draws, instead of one draw for all.

    Returns
    -------
    Compose
        It takes an image ``(..., 3, H, W)``, uint8, or a PIL image, and returns float32.

    Notes
    -----
    Reference: Touvron, Cord and Jégou, "DeiT III: Revenge of the ViT", and its public code. The blur is
    PIL's with a radius from 0.1 to 2, and PIL computes it, on the host.
    """
    owner = "three_augment"
    size = one_number(owner, "size", size, 1, WIDEST, whole=True)
    color_jitter = one_number(owner, "color_jitter", color_jitter, 0.0, 1e6)
    if switch(owner, "src", src):
        crop: list[Any] = [
            Resize(size, _BICUBIC),
            RandomCrop(size, padding=4, padding_mode="reflect"),
            RandomHorizontalFlip(),
        ]
    else:
        crop = [RandomResizedCrop(size, scale=(0.08, 1.0), interpolation=_BICUBIC), RandomHorizontalFlip()]
    one = RandomChoice([Grayscale(3), RandomSolarize(128, p=1.0), _PILBlur((0.1, 2.0))])
    jitter = [ColorJitter(color_jitter, color_jitter, color_jitter)] if color_jitter else []
    return Compose(
        [_Levels(owner), *crop, one, *jitter, *_normalize(owner, mean, std)], per_sample=per_sample
    )


def pixmix_cifar(references: Sequence[Tensor] | Tensor, **how: Any) -> PixMix:
    """Return PixMix with its paper's numbers for CIFAR: k=4, beta=3, severity=3, p=1.

    Parameters
    ----------
    references : sequence of Tensor
        As for :class:`PixMix`, like its other arguments.
    """
    return PixMix(references, **{"k": 4, "beta": 3.0, "severity": 3.0, "p": 1.0, **how})


def pixmix_imagenet(references: Sequence[Tensor] | Tensor, **how: Any) -> PixMix:
    """Return PixMix with its paper's numbers for ImageNet: k=4, beta=4, severity=1, p=1.

    Parameters
    ----------
    references : sequence of Tensor
        As for :class:`PixMix`, like its other arguments.
    """
    return PixMix(references, **{"k": 4, "beta": 4.0, "severity": 1.0, "p": 1.0, **how})


# -- self-supervision --------------------------------------------------------------------------------


class DINOCrops(Branches, v2.Transform):
    """Make the global and local crops of an image, as the training of DINOv2 and DINOv3 does.

    Parameters
    ----------
    global_crops_scale, local_crops_scale : (float, float)
        The ranges of the crops' areas, as shares of the image's.
    local_crops_number : int
        The number of local crops.
    global_crops_size, local_crops_size : int
        The sides of the crops in pixels.
    gram_teacher_crops_size : int, optional
        The side of further crops for DINOv3's Gram teacher, which show the same parts as the global crops.
    gram_teacher_no_distortions : bool
        Whether these crops have no changes of color.
    teacher_no_color_jitter : bool
        Whether the teacher's global crops have no changes of color.
    local_crops_subset_of_global_crops : bool
        Whether local crops are cut out of the global ones, at multiples of ``patch_size``.
    patch_size : int
        The side of a patch in pixels.
    share_color_jitter : bool
        Whether all crops share one jitter.
    horizontal_flips : bool
        Whether crops are mirrored with a probability of 0.5.
    blur : (float, float, float)
        The probabilities of the blur of the first global crop, of the second and of local crops. The default
        is that of the public code. Its class uses ``1 - p`` for ``p``, so it never blurs the first global
        crop, and blurs the second in nine of ten cases; the paper's probabilities, (1.0, 0.1, 0.5), are
        reversed.
    mean, std : sequence of float
        The mean and standard deviation of the normalization.

    Notes
    -----
    The call takes an image ``(..., 3, H, W)``, uint8, or a PIL image. It returns a dict of float32 crops:
    "global_crops" (2), "global_crops_teacher" (2), "local_crops", with a Gram teacher "gram_teacher_crops"
    (2), and "offsets": for each local crop its top and left in a global one, ``(2,)``, with ``per_sample``
    ``(N, 2)``, int64; or (). Reference: ``DataAugmentationDINO`` of DINOv2 and DINOv3, whose crops have the
    same draws for the same seed, except for the offsets, which NumPy draws there. Crops of PIL images are
    within a level of the original's. Crops of tensors differ by up to 25 levels, mostly because PIL has 256
    hues. With ``per_sample`` the draws are those of a loop over the images.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of its range, or the image is not a nonempty uint8 RGB image.
    """

    def __init__(
        self,
        global_crops_scale: Sequence[float] = (0.32, 1.0),
        local_crops_scale: Sequence[float] = (0.05, 0.32),
        local_crops_number: int = 8,
        global_crops_size: int = 224,
        local_crops_size: int = 96,
        gram_teacher_crops_size: int | None = None,
        gram_teacher_no_distortions: bool = False,
        teacher_no_color_jitter: bool = False,
        local_crops_subset_of_global_crops: bool = False,
        patch_size: int = 16,
        share_color_jitter: bool = False,
        horizontal_flips: bool = True,
        blur: Sequence[float] = (0.0, 0.9, 0.5),
        mean: Sequence[float] = MEAN,
        std: Sequence[float] = STD,
        *,
        per_sample: bool = False,
    ) -> None:
        v2.Transform.__init__(self)
        size = partial(one_number, self, low=1, high=WIDEST, whole=True)
        self.local_crops_number = one_number(self, "local_crops_number", local_crops_number, 0, whole=True)
        self.local_crops_size = size("local_crops_size", local_crops_size)
        self.global_crops_size = size("global_crops_size", global_crops_size)
        self.patch_size = size("patch_size", patch_size)
        gram = gram_teacher_crops_size
        gram = None if gram is None else size("gram_teacher_crops_size", gram)
        inside = switch(self, "local_crops_subset_of_global_crops", local_crops_subset_of_global_crops)
        if inside and (self.local_crops_number % 2 or self.local_crops_size > self.global_crops_size):
            must = "DINOCrops: local crops inside of global ones must be an even number and no larger"
            got = f"{self.local_crops_number} of {self.local_crops_size} in {self.global_crops_size}"
            raise ValueError(f"{must}, got {got}")
        clean = switch(self, "gram_teacher_no_distortions", gram_teacher_no_distortions)
        steady = switch(self, "teacher_no_color_jitter", teacher_no_color_jitter)
        shares = switch(self, "share_color_jitter", share_color_jitter)
        flips = 0.5 if switch(self, "horizontal_flips", horizontal_flips) else 0.0
        if not isinstance(blur, (tuple, list)) or len(blur) != 3:
            raise ValueError(f"DINOCrops: blur must be 3 probabilities, got {check.shown(blur)}")
        blurs = [
            RandomApply([GaussianBlur(9, (0.1, 2.0))], p=one_number(self, "each blur", p, 0.0, 1.0))
            for p in blur
        ]

        def crop(name: str, side: int, scale: Any) -> Any:
            scale = in_range(self, name, scale, 1e-6, 1.0)
            resized = RandomResizedCrop(side, scale=scale, interpolation=_BICUBIC)
            return Compose([resized, RandomHorizontalFlip(flips)])

        resize = [Resize(self.global_crops_size, _BICUBIC)] if gram is not None else []
        before, after = (resize, []) if clean else ([], resize)
        jitter = Compose([RandomApply([ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8), RandomGrayscale(0.2)])
        own, normalize = [] if shares else [jitter], _normalize(self, mean, std)
        solarize = RandomSolarize(128, p=0.2)
        self.start = _Levels("DINOCrops")
        if shares:
            self.share = jitter
        largest = max(self.global_crops_size, gram or 0)
        self.crop_global = crop("global_crops_scale", largest, global_crops_scale)
        self.crop_local = crop("local_crops_scale", self.local_crops_size, local_crops_scale)
        self.global_1 = Compose([*before, *own, blurs[0], *normalize])
        self.global_2 = Compose([*before, *own, blurs[1], solarize, *normalize])
        self.local = Compose([*own, blurs[2], *normalize])
        self.normalize = Compose(normalize)
        if after:
            self.finish = Compose(after)
        if gram is not None:
            self.gram = Compose([Resize(gram, _BICUBIC)])
        if inside:
            self.cut = _CropAtPatches(self.local_crops_size, self.patch_size, self.global_crops_size)
        self._set_steps(shares, bool(after), steady, gram is not None, clean, inside)
        self._start(per_sample, None)

    def _set_steps(
        self, shares: bool, finishes: bool, steady: bool, has_gram: bool, clean: bool, inside: bool
    ) -> None:
        """Set the steps in the order of their draws, and which of their results are the crops."""
        self._branches = []

        def add(name: str, source: int) -> int:
            self._branches.append((name, source))
            return len(self._branches)

        image = add("share", 0) if shares else 0
        bases, changed = [], []
        for change in ("global_1", "global_2"):
            bases.append(add("crop_global", image))
            changed.append(add(change, bases[-1]))
        crops = [add("finish", x) for x in changed] if finishes else changed
        teacher = [add("normalize", x) for x in bases] if steady else crops
        self._first = crops[0]
        self._places = {"global_crops": crops, "global_crops_teacher": teacher}
        if has_gram:
            grams = [add("gram", x) for x in (bases if clean else changed)]
            self._places["gram_teacher_crops"] = [add("normalize", x) for x in grams] if clean else grams
        if inside:
            half = self.local_crops_number // 2
            local = [add("local", base) for base in bases for _ in range(half)]
            self._places["local_crops"] = [add("cut", x) for x in local]
        else:
            number = self.local_crops_number
            self._places["local_crops"] = [add("local", add("crop_local", image)) for _ in range(number)]

    def forward(self, image: Any) -> dict[str, Any]:
        """Return the crops of an image by name."""
        if not isinstance(image, (PIL.Image.Image, EncodedImage)) and not (
            isinstance(image, Tensor) and _dispatch.is_image(image)
        ):
            must = "DINOCrops: image must be a Tensor or a PIL image"
            raise_error(TypeError, f"{must}, got {type(image).__name__}")
        return super().forward(*decode_all((image,)))

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> dict[str, Any]:
        offsets: list[Tensor] = []
        self.start(inputs[0])  # refuses images before anything is drawn

        def cut(image: Any) -> Any:
            crop, offset = self.cut.crop_and_offset(image, sampler)
            offsets.append(offset)
            return crop

        results = self._results_of(inputs, sampler, {"cut": cut})
        out = {name: [results[i] for i in places] for name, places in self._places.items()}
        return {**out, "offsets": offsets or ()}


class _CropAtPatches(RandomCrop):
    """A crop that begins at a multiple of the patch size."""

    _config = ("size", "patch_size", "whole")  # type: ignore[assignment]

    def __init__(self, size: Any, patch_size: int, whole: int) -> None:
        v2.RandomCrop.__init__(self, size)
        self.patch_size, self.whole = patch_size, whole
        self._start(False, None)

    @classmethod
    def _from_config(cls, size: Any, patch_size: int, whole: int) -> _CropAtPatches:  # type: ignore[override]
        return cls(size, patch_size, whole)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        places = max((self.whole - self.size[0]) // self.patch_size, 1)
        offset = torch.randint(places, (2,), device="cpu") * self.patch_size
        return self._values_from(offset.tolist(), *self._shape_of(flat_inputs)[2:])

    def crop_and_offset(self, image: Any, sampler: ParameterSampler) -> tuple[Any, Tensor]:
        """Return the crop, and its top and left: ``(2,)``, or ``(N, 2)`` if each sample has its own crop."""
        params: Any = self._sample_params([image], sampler)
        return self._transform_input(image, params, sampler), params.tensor().long()


def _gray(fill: Any, image: Any) -> Any:
    """Return YOLO's border for an image: the argument, or by default level 114 of 255."""
    if fill is not None:
        return fill
    return 114 / 255 if isinstance(image, Tensor) and image.dtype.is_floating_point else 114


class _YOLOLetterBox(LetterBox):
    """A letterbox that can end at the next multiple of a stride instead of the size."""

    def __init__(self, size: Any, fill: Any, scale_up: bool, stride: int | None) -> None:
        super().__init__(size, 0, scale_up, antialias=False)
        self.fill, self.stride = fill, stride
        self._config = ("size", "scale_up", "stride")
        self._describe()

    @classmethod
    def _from_config(cls, size: Any, scale_up: bool, stride: int | None) -> _YOLOLetterBox:
        return cls(size, 0, scale_up, stride)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        if self.stride is None:
            return self.size
        high, wide = self._scaled_size(height, width)
        return high + (self.size[0] - high) % self.stride, wide + (self.size[1] - wide) % self.stride

    def _fill_of(self, inpt: Any) -> Any:
        if isinstance(inpt, tv_tensors.Mask):
            return 0
        image = subclass.plain(inpt)  # in a graph a tv_tensor does not show its dtype
        fill = _gray(self.fill, image)
        check_held(self, "fill", fill, image.dtype if isinstance(image, Tensor) else torch.uint8)
        return fill


class _YOLOMosaic(Mosaic):
    """A mosaic whose images are resized as YOLO's data set loads them: the longer side fills its cell."""

    def _size_of(self, height: Any, width: Any) -> tuple[Any, Any]:
        side = self.size[0] // 2
        factor = side / sym_max(height, width)
        return sym_min(math.ceil(height * factor), side), sym_min(math.ceil(width * factor), side)

    def _canvas_of(self, first: Tensor, shape: tuple[int, ...], fill: Any) -> Tensor:
        return super()._canvas_of(first, shape, _gray(fill, first))


# Errors and representations show the names of the functions that construct these classes.
_PILBlur.__name__ = "three_augment"
_YOLOLetterBox.__name__, _YOLOMosaic.__name__ = "yolo_letterbox", "yolo_mosaic"


def yolo_letterbox(
    size: int | Sequence[int] = 640,
    *,
    auto: bool = False,
    scaleup: bool = True,
    stride: int = 32,
    fill: float | None = None,
) -> LetterBox:
    """Return the letterbox of the YOLO family: OpenCV's bilinear resize, and a gray border.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the output in pixels.
    auto : bool
        Whether the border extends only to the next multiple of ``stride``, so that the output is smaller.
    scaleup : bool
        Whether small images are enlarged.
    stride : int
        The stride of the network, with ``auto``.
    fill : float, optional
        The value of the border of images; by default 114, and 114 / 255 for floats. Masks get 0.

    Returns
    -------
    LetterBox
        Masks, boxes and keypoints follow the image.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind or range.

    Notes
    -----
    Reference: ``ultralytics.data.augment.LetterBox``, bit-exact on uint8.
    """
    owner = "yolo_letterbox"
    pair = size_of(owner, "size", size)
    stride = one_number(owner, "stride", stride, 1, WIDEST, whole=True)
    multiple = stride if switch(owner, "auto", auto) else None
    value = None if fill is None else fill_values(owner, "fill", fill)
    return _YOLOLetterBox(pair, value, switch(owner, "scaleup", scaleup), multiple)


def yolo_mosaic(
    size: int = 640, *, fill: float | None = None, generator: torch.Generator | None = None
) -> Mosaic:
    """Return the mosaic of the YOLO family: four images around a point of a canvas of twice their size.

    Parameters
    ----------
    size : int
        The side in pixels to which the longer side of each image is resized. The mosaic is twice as large,
        and its center lies between one and three quarters of its sides.
    fill : float, optional
        The value of pixels without an image; by default 114, and 114 / 255 for floats. Masks get 0.
    generator : torch.Generator, optional
        Draw from this generator instead of PyTorch's global one.

    Returns
    -------
    Mosaic
        It takes a list of four samples. YOLO's training then warps the mosaic to ``size``, with scales from
        0.5 to 1.5 and shifts of up to a tenth of the size.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind or range.

    Notes
    -----
    Reference: ``ultralytics.data.augment.Mosaic`` with ``n=4``, and ``load_image`` of its data sets,
    bit-exact on uint8 for the same center.
    """
    side = one_number("yolo_mosaic", "size", size, 1, WIDEST // 2, whole=True)
    fill = fill.tolist() if isinstance(fill, Tensor) else fill
    value = 0 if fill is None else fill_values("yolo_mosaic", "fill", fill)
    mosaic = _YOLOMosaic(2 * side, 2, (0.25, 0.75), value, antialias=False, generator=generator)
    mosaic.fill = None if fill is None else value
    return mosaic
