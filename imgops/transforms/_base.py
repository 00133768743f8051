"""What the transforms share: torchvision's classes, imgops' kernels, draws that a compiler can keep."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops import _subclass
from imgops._torch_private import tree_flatten, tree_unflatten
from imgops.transforms import _draw, _torchvision
from imgops.transforms._draw import Plan, Stream
from imgops.transforms.functional import _dispatch

_sites = itertools.count()
ANNOTATIONS = (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)


class Ours:
    """Beside one of torchvision's classes: its kernels for images, videos and masks are imgops'.

    ``_drawing`` names the parameters that make the transform again, as far as its draws and boxes depend on
    them.
    """

    _drawing: tuple[str, ...] = ()
    _spec_name = ""
    #: Whether pixels go elsewhere, so that masks, boxes and keypoints must follow.
    _moves = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__module__.startswith("imgops."):
            if "_spec_name" not in vars(cls):
                cls._spec_name = cls.__name__
            _draw.CLASSES[cls.__name__] = cls
            if cls._drawing and issubclass(cls, torch.nn.Module) and "__init__" not in vars(cls):
                _take_init(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self._drawing and self.__dict__.get("_spec"):
            self._spec = _draw.spec(self)

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **keywords: Any) -> Any:
        if torch.compiler.is_compiling() and isinstance(inpt, ANNOTATIONS):
            if not self._moves:
                return inpt
            return self._annotations(inpt, torch.zeros(0, dtype=torch.float64), inpt.canvas_size)
        return _dispatch.call_kernel(functional, inpt, *args, **keywords)

    def _run(self, inputs: tuple[Any, ...], stream: Stream) -> Any:
        """One step of a pipeline whose draws are one stream; this one draws nothing."""
        return self(*inputs)  # type: ignore[operator]

    def _plan(self, shape: Sequence[int], plan: Plan) -> Sequence[int] | None:
        """Add the draws to a plan; returns the shape of the image that comes out, None if it is unknown."""
        return self._after(*shape)

    def _after(self, channels: int, height: int, width: int) -> Sequence[int]:
        return (channels, *self._canvas(height, width))

    def _annotations(self, inpt: Any, numbers: Tensor, canvas: tuple[int, int]) -> Any:
        if isinstance(inpt, tv_tensors.BoundingBoxes) and numbers.ndim == 2:
            must = "bounding boxes must be those of one image, for torchvision has no batches of them"
            raise ValueError(f"{type(self).__name__}: {must}, got per_sample=True")
        return moved(inpt, numbers, canvas, self._spec, self._canvas(*canvas))

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        return height, width

    def _annotate(self, inpt: Any, numbers: list[float], height: int, width: int) -> Any:
        params = self._params(numbers, height, width)
        return inpt if params is None else self.transform(inpt, params)  # type: ignore[attr-defined]

    def _params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        """Numbers as torchvision's parameters; None where nothing is to be done."""
        return {}


def moved(inpt: Any, numbers: Tensor, canvas: tuple[int, int], spec: str, size: tuple[int, int]) -> Any:
    """Boxes and keypoints, by the numbers of a draw: torchvision's own code, in an operator."""
    kind = ""
    if isinstance(inpt, tv_tensors.BoundingBoxes):
        kind = f"{inpt.format.value},{getattr(inpt, 'clamping_mode', 'soft')}"
    values = _draw.annotated(_subclass.plain(inpt), numbers, *canvas, spec, kind)
    return _dispatch.wrapped(values, inpt, size)


class Drawn(Ours):
    """A transform that draws.

    A draw has ``_size`` numbers.
    """

    _size = 1
    per_sample = False
    #: Whether torchvision's forward is check_inputs, make_params and transform.
    _usual = True

    def forward(self, *inputs: Any) -> Any:
        if torch.compiler.is_compiling() or self.per_sample:
            return self._run(inputs, Stream())
        if self._usual and len(inputs) == 1 and type(inputs[0]) is Tensor:
            return self._of_tensor(inputs[0])
        return super().forward(*inputs)  # type: ignore[misc]

    def _of_tensor(self, image: Tensor) -> Any:
        """What torchvision's forward does with one plain tensor, without a tree to flatten."""
        self.check_inputs([image])  # type: ignore[attr-defined]
        if isinstance(self, _torchvision.WithProbability) and torch.rand(1) >= self.p:
            return image
        return self.transform(image, self.make_params([image]))  # type: ignore[attr-defined]

    def _run(self, inputs: tuple[Any, ...], stream: Stream) -> Any:
        flat, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat)  # type: ignore[attr-defined]
        needs = self._needs_transform_list(flat)  # type: ignore[attr-defined]
        numbers, canvas = self._numbers([x for x, n in zip(flat, needs, strict=True) if n], stream)
        out = [self._one(x, numbers, canvas) if n else x for x, n in zip(flat, needs, strict=True)]
        return tree_unflatten(out, spec)

    def _numbers(self, inputs: list[Any], stream: Stream) -> tuple[Tensor, tuple[int, int]]:
        """A draw, and the size of the image that it is for."""
        if not self._spec:
            must = "make_params must be imgops' own in a graph and where samples draw for themselves"
            raise NotImplementedError(f"{type(self).__name__}: {must}, got a subclass's")
        channels, height, width = shape_of(inputs)
        before = self._counted(inputs, stream)
        size = self._count(channels, height, width)
        numbers = stream.draw(self._spec, self._site, size, (channels, height, width))  # type: ignore[attr-defined]
        stream.count = before
        return numbers, (height, width)

    def _counted(self, inputs: list[Any], stream: Stream) -> int | None:
        """Let each sample draw for itself, if it is to; returns the count to go back to."""
        before = stream.count
        if self.per_sample and before is None:
            stream.count = batch_of(inputs)
        return before

    def _plan(self, shape: Sequence[int], plan: Plan) -> Sequence[int] | None:
        return self._after(*shape) if plan.add(self, self._count(*shape), shape) else None

    def _one(self, inpt: Any, numbers: Tensor, canvas: tuple[int, int]) -> Any:
        if _dispatch.is_image(inpt):
            return _dispatch.wrapped(
                self._image(_subclass.plain(inpt), _beside(numbers, inpt), type(inpt)), inpt
            )
        if isinstance(inpt, tv_tensors.Mask):
            mask = _subclass.plain(inpt)
            flat = mask.ndim == 2 or (numbers.ndim == 2 and mask.ndim == 3)
            wide = mask.unsqueeze(-3) if flat else mask
            out = self._mask(wide, _beside(numbers, wide))
            return _dispatch.wrapped(out.squeeze(-3) if flat else out, inpt)
        if isinstance(inpt, ANNOTATIONS) and self._moves:
            return self._annotations(inpt, numbers, canvas)
        return inpt

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        raise NotImplementedError

    def _mask(self, mask: Tensor, numbers: Tensor) -> Tensor:
        return mask

    def _count(self, channels: int, height: int, width: int) -> int:
        return self._size

    def _draw(self, channels: int, height: int, width: int) -> Any:
        if isinstance(self, _torchvision.WithProbability) and torch.rand(1) >= self.p:
            return self._unchosen(channels, height, width)
        return self._flat(self.make_params([like(channels, height, width)]))  # type: ignore[attr-defined]

    def _flat(self, params: dict[str, Any]) -> Any:
        """torchvision's parameters as numbers."""
        raise NotImplementedError

    def _unchosen(self, channels: int, height: int, width: int) -> Any:
        """The numbers that change nothing."""
        raise NotImplementedError


@lru_cache(maxsize=256)
def like(channels: int, height: int, width: int) -> Tensor:
    """What a transform asks for its size."""
    return torch.empty((channels, height, width), device="meta")


def shape_of(inputs: list[Any]) -> tuple[int, int, int]:
    for inpt in inputs:  # dynamo cannot read the shape of a tv_tensor
        if _dispatch.is_image(inpt):
            channels, height, width = _subclass.plain(inpt).shape[-3:]
            return channels, height, width
    for inpt in inputs:
        if isinstance(inpt, tv_tensors.Mask):
            height, width = _subclass.plain(inpt).shape[-2:]
            return 1, height, width
        if isinstance(inpt, ANNOTATIONS):
            return 1, *inpt.canvas_size
    height, width = v2.query_size(inputs)
    return 3, height, width


def batch_of(inputs: list[Any]) -> int | None:
    """How many samples the first image has; None for one without a batch."""
    for inpt in inputs:
        if _dispatch.is_image(inpt):
            image = _subclass.plain(inpt)
            return image.shape[0] if image.ndim > 3 else None
    return None


def _beside(numbers: Tensor, image: Tensor) -> Tensor:
    """The numbers of each sample, with dimensions for what else an image has before its channels."""
    if numbers.ndim == 1:
        return numbers
    return numbers.reshape(numbers.shape[0], *(1,) * (image.ndim - 4), numbers.shape[-1])


def fill_of(transform: Any, kind: type) -> Any:
    return _torchvision.get_fill(transform._fill, kind)


def where(chosen: Tensor, changed: Tensor, image: Tensor) -> Tensor:
    """``changed`` in the samples that were chosen."""
    return torch.where(chosen.to(image.device)[..., None, None, None], changed, image)


def _take_init(cls: Any) -> None:
    """Give a class torchvision's signature, with ``per_sample`` after it where it draws, and its spec."""
    theirs = next(c for c in cls.__mro__[1:] if "__init__" in vars(c) and not issubclass(c, Ours))
    signature = inspect.signature(theirs.__init__)
    draws = issubclass(cls, Drawn)

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        per_sample = keywords.pop("per_sample", False) if draws else False
        super(cls, self).__init__(*args, **keywords)
        if draws:
            self.per_sample = per_sample
            self._site = next(_sites)
        # A subclass that draws in another way cannot be made again from a spec.
        own = not draws or type(self).make_params is cls.make_params
        self._spec = _draw.spec(self) if own else ""

    if draws:
        kind = inspect.Parameter.KEYWORD_ONLY
        option = inspect.Parameter("per_sample", kind, default=False, annotation=bool)
        signature = signature.replace(parameters=[*signature.parameters.values(), option])
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__ = __init__
