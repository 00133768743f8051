"""The transform of the corruptions of ImageNet-C, and the sweep over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import PIL.Image
import torch
from torch import Tensor

from imgops import EncodedImage
from imgops._common import check
from imgops._operator import subclass
from imgops.transforms._core.arguments import one_number, one_of
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform, as_reals, from_seed, seed
from imgops.transforms.functional import _color, _dispatch
from imgops.transforms.imagenet_c.formulas import FORMULAS, corrupted, settings_of
from imgops.transforms.imagenet_c.pictures import DrawnFrost

_NAMES = tuple(FORMULAS)


class Corruption(ProbabilisticTransform):
    """Apply one of the corruptions of ImageNet-C.

    The corruptions measure the robustness of a network: :func:`corruptions` iterates over all corruptions and
    severities. The results depend only on the generator's seed, on every device.

    Parameters
    ----------
    name : str
        One of ``Corruption.COMMON``, the fifteen of the benchmark, or of ``Corruption.VALIDATION``, the
        four others.
    severity : int
        The strength, from 1 to 5.
    pictures : sequence of Tensor, optional
        For "frost", which adds a part of one of these pictures: RGB images ``(3, H, W)``, all uint8 or all
        floating point in [0, 1]. The default is drawn pictures; the benchmark uses photographs.
    per_sample : bool
        Whether each image of a batch has its own draws, as in the benchmark. Otherwise the images of a batch
        share the angle of "motion_blur" and "snow", and the part of the picture of "frost"; noise is always
        drawn for each pixel.

    Raises
    ------
    TypeError
        If an image is neither uint8 nor floating point.
    ValueError
        If ``name`` is unknown, ``severity`` or ``p`` is out of range, ``pictures`` are not RGB, or an image
        does not have 3 channels.

    Notes
    -----
    Reference: imagecorruptions 1.1.2, within a level on uint8 for the same random numbers; its results are
    truncated to whole levels. This library produced the image classification and detection benchmarks
    ImageNet-C and COCO-C. Floats in [0, 1] are computed by the same formulas and not rounded; "glass_blur"
    and "jpeg_compression" round them to the 256 levels in an intermediate step. The result for infinities
    follows from the arithmetic of the formula, and may be NaN. The gradient is that of the formula,
    "shot_noise" has the gradient of the mean, and rounding has that of the identity.

    Examples
    --------
    >>> import torch
    >>> from imgops import transforms as v2
    >>> fog = v2.Corruption("fog", severity=3)
    >>> fog(torch.full((3, 64, 64), 100, dtype=torch.uint8)).shape
    torch.Size([3, 64, 64])
    """

    _channels = check.Channels((3,), "ImageNet-C's corruptions are those of RGB images")
    #: The names of the fifteen corruptions of the benchmark, and of the four that are meant for tuning
    #: parameters.
    COMMON = _NAMES[:15]
    VALIDATION = _NAMES[15:]

    _levels = True
    _hidden = ("shapes",)

    def __init__(
        self,
        name: str,
        severity: int = 1,
        p: float = 1.0,
        *,
        pictures: Sequence[Tensor] | None = None,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        self._pixels = torch.empty(0, dtype=torch.float32, device="cpu")
        shapes: tuple[tuple[int, ...], ...] = ()
        if pictures is not None:
            images = _pictures(pictures)
            self._pixels = torch.cat([x.reshape(-1) for x in images])
            shapes = tuple(tuple(x.shape) for x in images)
        self._set(name, severity, p, shapes, per_sample, generator)

    def _set(
        self,
        name: str,
        severity: int,
        p: float,
        shapes: Any,
        per_sample: bool,
        generator: torch.Generator | None,
    ) -> None:
        known = {
            "name": one_of(self, "name", name, _NAMES),
            "severity": one_number(self, "severity", severity, 1, 5, whole=True),
        }
        super().__init__(p, per_sample, generator, **known, shapes=shapes)

    @classmethod
    def _from_config(cls, name: str, severity: int, shapes: Any, p: float) -> Any:
        transform = cls.__new__(cls)
        transform._pixels = torch.empty(0, dtype=torch.float32, device="cpu")
        transform._set(name, severity, p, shapes, False, None)
        return transform

    @property
    def _known(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if FORMULAS[self.name].draw is None else ("seed",)

    @property
    def _random_parameters(self) -> tuple[Parameter, ...]:  # type: ignore[override]
        """Return the parameters: a seed, if the corruption draws."""
        return (IS_APPLIED, *map(Parameter, self._known))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"seed": seed()} if self._known else {}

    def _extra(self, image: Tensor) -> Tensor | None:
        return self._pixels.to(image.device, non_blocking=True) if self.shapes else None

    def _change_image(self, image: Tensor, seed: float = 0, extra: Tensor | None = None) -> Tensor:
        formula = FORMULAS[self.name]
        numbers: tuple[Any, ...] = ()
        if formula.draw is not None:
            settings = settings_of(self.name, self.severity)
            numbers = formula.draw(as_reals(image), from_seed(seed), *settings)
        if self.name == "frost":
            numbers = *numbers, self._frost(extra)
        return corrupted(self.name, self.severity, image, numbers)

    def _frost(self, extra: Tensor | None) -> Sequence[Tensor]:
        if extra is None:
            return DrawnFrost()
        parts = extra.split([prod(shape) for shape in self.shapes])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def _pictures(pictures: Any) -> list[Tensor]:
    """Return pictures on the CPU, as uint8."""
    must = "Corruption: pictures must be RGB images (3, H, W), all uint8 or all floating point in [0, 1]"
    known = isinstance(pictures, (list, tuple)) and all(isinstance(x, Tensor) for x in pictures)
    if not known:
        raise TypeError(f"{must}, got {check.shown(pictures)}")
    if not pictures or not all(x.ndim == 3 and x.shape[0] == 3 and x.numel() for x in pictures):
        raise ValueError(f"{must}, got {[tuple(x.shape) for x in pictures]}")
    dtypes = {x.dtype for x in pictures}
    if len(dtypes) > 1 or not (pictures[0].dtype == torch.uint8 or pictures[0].dtype.is_floating_point):
        raise TypeError(f"{must}, got {[x.dtype for x in pictures]}")
    images = [subclass.plain(x).detach().cpu() for x in pictures]
    for image in images:
        if image.dtype != torch.uint8 and not bool(((image >= 0) & (image <= 1)).all()):
            low, high = (float(end) for end in image.aminmax())
            raise ValueError(f"{must}, got values from {low:.6g} to {high:.6g}")
    return [_color.to_dtype(x, torch.uint8, scale=True) for x in images]


def corruptions(
    images: Any,
    names: str | Iterable[str] = "common",
    severities: Iterable[int] = (1, 2, 3, 4, 5),
    *,
    pictures: Sequence[Tensor] | None = None,
    seed: int = 0,
) -> Iterator[tuple[str, int, Any]]:
    """Apply all corruptions of ImageNet-C, at all severities.

    Parameters
    ----------
    images : Tensor, PIL.Image.Image, or list or tuple of these
        ``(..., 3, H, W)``, uint8, or floating point in [0, 1], on any device; or a PIL image. In a list the
        images may differ in size.
    names : str or iterable of str
        The corruptions by name, or "common" for the fifteen of the benchmark, "validation" for the four
        others, "all" for both.
    severities : int or iterable of int
        The strengths, from 1 to 5.
    pictures : sequence of Tensor, optional
        As for :class:`Corruption`.
    seed : int
        The results depend on the seed, the name, the severity, and the position of an image in the batch. Use
        another seed for each batch of a data set.

    Yields
    ------
    (str, int, Tensor)
        The name, the severity and the corrupted images, in the order of the arguments; a list of images gives
        a list.

    Raises
    ------
    TypeError
        If ``images`` are of another class, such as an array or a sample with labels.
    ValueError
        If a name is unknown, or a severity is out of range. The error is raised before any computation.

    Notes
    -----
    Each image has its own draws (``per_sample=True``), which are the same in a batch and in a list.

    Examples
    --------
    >>> import torch
    >>> from imgops import transforms as v2
    >>> images = torch.full((2, 3, 32, 32), 100, dtype=torch.uint8)
    >>> for name, severity, batch in v2.corruptions(images, ["fog", "contrast"], [1, 5]):
    ...     print(name, severity, tuple(batch.shape))
    fog 1 (2, 3, 32, 32)
    fog 5 (2, 3, 32, 32)
    contrast 1 (2, 3, 32, 32)
    contrast 5 (2, 3, 32, 32)
    """
    several = isinstance(images, (list, tuple))
    for image in images if several else (images,):
        known = _dispatch.is_image(image) or isinstance(image, (PIL.Image.Image, EncodedImage))
        if not known or (isinstance(image, Tensor) and image.is_nested):
            must = "corruptions: images must be a tensor, a PIL image or a list of these"
            raise TypeError(f"{must}, got {type(image).__name__}{' in a list' if several else ''}")
    seed = one_number("corruptions", "seed", seed, 0, 2**31 - 1, whole=True)
    own = None if pictures is None else _pictures(pictures)
    levels = _each("severities", severities, int)
    transforms = [Corruption(n, s, pictures=own, per_sample=True) for n in _chosen(names) for s in levels]

    def results() -> Iterator[tuple[str, int, Any]]:
        for transform in transforms:
            place = _NAMES.index(transform.name) * 5 + transform.severity - 1
            transform.generator = torch.Generator().manual_seed(seed * len(_NAMES) * 5 + place)
            changed = [transform(x) for x in images] if several else transform(images)
            yield transform.name, transform.severity, changed

    return results()


def _chosen(names: Any) -> Sequence[Any]:
    """Return the names of a group, a single name, or the names of an iterable."""
    groups = {"common": Corruption.COMMON, "validation": Corruption.VALIDATION, "all": _NAMES}
    if isinstance(names, str) and names not in (*groups, *_NAMES):
        must = "corruptions: names must be 'common', 'validation', 'all' or names of corruptions"
        raise ValueError(f"{must}, got {names!r}")
    return groups[names] if isinstance(names, str) and names in groups else _each("names", names, str)


def _each(name: str, values: Any, kind: type) -> tuple[Any, ...]:
    """Return the values of an argument that is a single value or an iterable of values."""
    if getattr(values, "ndim", None) == 0:
        values = values.item()
    if isinstance(values, kind):
        return (values,)
    if isinstance(values, Iterable):
        return tuple(values)
    must = f"corruptions: {name} must be {'a name' if kind is str else 'an integer'} or several"
    raise TypeError(f"{must}, got {check.shown(values)}")
