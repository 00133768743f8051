"""The choice of a kernel for an input: imgops' for images, videos and masks, torchvision's otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as reference

from imgops._common import check, layout
from imgops._common.torch_private import constant_in_graphs, raise_error
from imgops._operator import subclass
from imgops.transforms._core import annotation_kinds, torchvision_private
from imgops.transforms._core.arguments import integer, integers
from imgops.transforms._core.parameters import BATCHES
from imgops.transforms._core.projections import Camera
from imgops.transforms.functional import _color, _geometry

plain = subclass.plain
Video = tv_tensors.Video
Function = Callable[..., Any]

#: The functionals that also have a kernel for masks.
_OF_MASKS_TOO = (
    *("resize", "crop", "center_crop", "resized_crop", "pad", "horizontal_flip", "vertical_flip"),
    *("affine", "rotate", "perspective", "elastic"),
)
#: torchvision returns videos unchanged from the first two functionals, and images from the last one.
_NOT_OF_VIDEOS = ("rgb_to_grayscale", "grayscale_to_rgb")
_NOT_OF_IMAGES = ("uniform_temporal_subsample",)
_ALIASES = {
    "hflip": "horizontal_flip",
    "vflip": "vertical_flip",
    "to_grayscale": "rgb_to_grayscale",
    "elastic_transform": "elastic",
}
#: The dtypes that the operators of color and blur support. torchvision's kernels compute the others.
COMPUTED = frozenset((torch.uint8, torch.uint16, *check.FLOATS))

#: name -> the function of a tensor (..., C, H, W)
KERNELS: dict[str, Function] = {
    name: value
    for family in (_geometry, _color)
    for name, value in vars(family).items()
    if inspect.isfunction(value)
    and value.__module__ == family.__name__
    and not name.startswith("_")
    and hasattr(reference, name)
}
#: Functionals whose operators raise for an image without pixels, which torchvision's kernels accept.
_NEEDS_PIXELS = ("resize", "resized_crop", "affine", "rotate", "perspective", "elastic")
#: Functionals that change the number of channels, or their order, which an image ``(H, W)`` does not have.
_NEEDS_CHANNELS = ("rgb_to_grayscale", "grayscale_to_rgb", "permute_channels")
#: Functionals of which torchvision's kernels take only 1 or 3 channels, and imgops' more, or say why not.
_ONE_OR_THREE = (
    *("adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "adjust_sharpness"),
    *("autocontrast", "rgb_to_grayscale", "grayscale_to_rgb", "jpeg"),
)
#: Functionals with kernels for boxes and keypoints that dynamo cannot trace.
_MAPS = ("affine", "rotate", "perspective")
#: Functionals of torchvision that take a tensor in addition to the image.
_TAKE_TENSORS = ("elastic", "erase")
#: The classes of inputs that know the size of their image.
_WITH_CANVAS = (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints, Camera)
_ARITHMETIC = ("to_dtype", "normalize", "uniform_temporal_subsample")
_IMAGES = (tv_tensors.Image, tv_tensors.Video)
_BUILTIN = frozenset(
    (Tensor, *(v for v in vars(tv_tensors).values() if isinstance(v, type) and issubclass(v, Tensor)))
)


def is_image(value: Any) -> bool:
    """Return whether ``value`` contains images: a plain tensor, an Image, a Video or packed images."""
    if type(value) is Tensor or type(value) in BATCHES:
        return True
    return isinstance(value, Tensor) and (
        isinstance(value, _IMAGES) or not isinstance(value, tv_tensors.TVTensor)
    )


def has_users_kernel(kind: type) -> bool:
    """Return whether a tensor class that is not torchvision's has its own kernels."""
    if kind in _BUILTIN or not issubclass(kind, tv_tensors.TVTensor):
        return False
    return any(torchvision_private.is_users_kernel(getattr(reference, n), kind) for n in KERNELS)


def own_kernel(functional: Function, kind: type) -> Function | None:
    """Return imgops' kernel for a class of inputs, or None to use torchvision's or a user's kernel.

    ``functional`` is imgops' or torchvision's.
    """
    name = _NAMES.get(functional)
    if name is None:
        return None
    is_users = issubclass(kind, tv_tensors.TVTensor) and kind not in _BUILTIN
    if is_users and torchvision_private.is_users_kernel(getattr(reference, name), kind):
        return None
    is_tv_tensor = issubclass(kind, tv_tensors.TVTensor)
    for cls, kernel in _OWN[name].items():  # a nn.Parameter and a DTensor have the kernel of Tensor
        if kind is cls or (issubclass(kind, cls) and not (cls is Tensor and is_tv_tensor)):
            return kernel
    return None


def _images(name: str) -> Function:
    work, theirs = KERNELS[name], getattr(reference, name)
    any_dtype = name in (*_OF_MASKS_TOO, "five_crop", "ten_crop", *_color.OF_ANY_DTYPE, *_ARITHMETIC)
    needs_pixels, needs_channels = name in _NEEDS_PIXELS, name in _NEEDS_CHANNELS

    def call(inpt: Tensor, *args: Any, **keywords: Any) -> Any:
        plain = inpt if type(inpt) is Tensor else subclass.plain(inpt)
        is_flat = plain.ndim == 2 and name not in _ARITHMETIC and not needs_channels
        if is_flat:  # one channel
            plain = plain[None]
        args, keywords = _own_forms(args, keywords, plain.ndim == 3)
        is_ours = any_dtype or plain.dtype in COMPUTED
        is_ours &= name in _ARITHMETIC or (plain.ndim > 2 and not (needs_pixels and is_empty(plain)))
        if plain.ndim < 3 and needs_channels:  # eager mode raises torchvision's error, which dynamo hides
            got = f"shape {check.written(plain.shape)}"
            check.refuse_in_graph(ValueError, name, "image must be (..., C, H, W)", got)
        kernel = work if is_ours else torchvision_private.kernel_of(theirs, Tensor)
        try:
            out = kernel(plain, *args, **keywords)
        except (TypeError, ValueError, IndexError):
            _refuse_in_torchvisions_words(name, plain, args, keywords)
            raise
        if is_flat:
            out = tuple(o[0] for o in out) if isinstance(out, tuple) else out[0]
        if type(inpt) is Tensor:
            return out
        return tuple(wrap_like(o, inpt) for o in out) if isinstance(out, tuple) else wrap_like(out, inpt)

    return call


#: The types of arguments that have only one form.
_SIMPLE = frozenset((int, float, bool, str, type(None), torch.dtype, InterpolationMode))


def _own_forms(args: tuple[Any, ...], keywords: dict[str, Any], is_single: bool) -> tuple[Any, Any]:
    """Convert NumPy's types in arguments to Python's numbers and tensors.

    A tensor of one number per sample becomes one number if there is a single image.
    """
    if not keywords and _SIMPLE.issuperset(map(type, args)):
        return args, keywords

    def own(value: Any) -> Any:
        if type(value) in _SIMPLE:
            return value
        if isinstance(value, (list, tuple)):
            return value if _SIMPLE.issuperset(map(type, value)) else [own(v) for v in value]
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):  # in a graph, NumPy's numbers are arrays
            value = torch.from_numpy(layout.readable(value))
        if is_single and isinstance(value, Tensor) and value.shape == (1,):
            return value.reshape(())
        return value

    return tuple([own(value) for value in args]), {name: own(value) for name, value in keywords.items()}


def is_empty(image: Tensor) -> bool:
    """Return whether an image has no pixels; a graph, which may not know sizes, assumes that it has some."""
    return not is_compiling() and 0 in image.shape[-2:]


def _refuse_in_torchvisions_words(name: str, image: Tensor, args: tuple[Any, ...], keywords: Any) -> None:
    """Raise torchvision's error for a call that imgops refuses, if torchvision also refuses it.

    The result of torchvision's call is not used. This function does nothing in a graph, or if an argument is
    a tensor of numbers, which only imgops accepts.
    """
    values = (*args, *keywords.values())
    if is_compiling() or (name not in _TAKE_TENSORS and any(isinstance(v, Tensor) for v in values)):
        return
    if name in _ONE_OR_THREE and image.ndim > 2 and image.shape[-3] not in (1, 3):
        return
    kernel = torchvision_private.kernel_of(getattr(reference, name), type(image))
    kernel(image.clone(), *args, **keywords)  # a copy, because some kernels write in place


def _masks(name: str) -> Function:
    """Return the kernel for masks, which contain labels and may have no channel dimension."""
    special: dict[str, Function] = _geometry.OF_MASKS
    work = special.get(name, KERNELS[name])
    signature = inspect.signature(KERNELS[name])
    nearest = "interpolation" in signature.parameters and work is KERNELS[name]

    def call(inpt: Tensor, *args: Any, **keywords: Any) -> Any:
        mask = subclass.plain(inpt)
        args, keywords = _own_forms(args, keywords, mask.ndim < 4)
        if name in _NEEDS_PIXELS and is_empty(mask):
            return torchvision_private.kernel_of(getattr(reference, name), type(inpt))(
                inpt, *args, **keywords
            )
        try:
            bound = signature.bind(mask[None] if mask.ndim == 2 else mask, *args, **keywords)
            if nearest:
                bound.arguments["interpolation"] = InterpolationMode.NEAREST
            out = work(*bound.args, **bound.kwargs)
        except (TypeError, ValueError, IndexError):
            _refuse_in_torchvisions_words(name, inpt, args, keywords)
            raise
        return wrap_like(out[0] if mask.ndim == 2 else out, inpt)

    return call


def _own_kernels(name: str) -> dict[type, Function]:
    """Return imgops' kernels of a functional by the class of their input."""
    of_images = _images(name)
    kernels: dict[type, Function] = {Tensor: of_images}
    if name not in _NOT_OF_IMAGES:
        kernels[tv_tensors.Image] = of_images
    if name not in _NOT_OF_VIDEOS:
        kernels[tv_tensors.Video] = of_images
    if name in _OF_MASKS_TOO:
        kernels[tv_tensors.Mask] = _masks(name)
        kernels[tv_tensors.BoundingBoxes] = _annotations(name, "bounding_boxes")
        kernels[tv_tensors.KeyPoints] = _annotations(name, "keypoints")
    if name == "to_dtype":
        kernels |= dict.fromkeys((tv_tensors.Mask, tv_tensors.BoundingBoxes, tv_tensors.KeyPoints), _cast)
    return kernels


def _cast(inpt: Any, dtype: torch.dtype = torch.float32, scale: bool = False) -> Any:
    """Convert labels and coordinates, whose values are not scaled."""
    return wrap_like(subclass.plain(inpt).to(dtype), inpt)


def _annotations(name: str, kind: str) -> Function:
    """Return the kernel for boxes or keypoints: torchvision's, which takes plain tensors and metadata."""
    theirs = getattr(reference, f"{name}_{kind}")
    signature, known = inspect.signature(KERNELS[name]), inspect.signature(theirs).parameters
    metadata = [field for field in ("format", "canvas_size", "clamping_mode") if field in known]

    def call(inpt: Any, *args: Any, **keywords: Any) -> Any:
        args, keywords = _own_forms(args, keywords, True)
        given = signature.bind(inpt, *args, **keywords).arguments
        given.pop("image")
        in_operator = name in _MAPS and annotation_kinds.need_operator(inpt)
        if given.get("expand"):  # torchvision's canvas differs from the image's
            angle = given["angle"] if in_operator else _number_of(given["angle"])
            out, canvas = _geometry.expand_annotations(inpt, angle, given.get("center"))
            return wrap_like(out, inpt, canvas)
        if in_operator:
            return wrap_like(_geometry.map_annotations(name, inpt, **given), inpt)
        given = {a: _plain_numbers(name, a, value) for a, value in given.items() if a in known}
        out = theirs(subclass.plain(inpt), **given, **{field: getattr(inpt, field) for field in metadata})
        out, canvas = out if isinstance(out, tuple) else (out, inpt.canvas_size)
        return wrap_like(out, inpt, canvas)

    return call


#: The arguments that are integers, and how many of them.
_INTEGERS = {"size": (1, 2), "output_size": (1, 2), "padding": (1, 2, 4)}


def _plain_numbers(name: str, argument: str, value: Any) -> Any:
    """Convert the tensors in an argument that kernels for boxes do not accept."""
    each = value if isinstance(value, (list, tuple)) else (value,)
    if not any(isinstance(v, Tensor) for v in each):
        return value
    if argument in _INTEGERS:
        return integers(name, argument, value, _INTEGERS[argument])
    if argument in ("top", "left", "height", "width", "max_size"):
        return integer(name, argument, value)
    return _number_of(value)


def _number_of(value: Any) -> Any:
    """Convert a tensor of one number to a number, the only form that kernels for boxes accept."""
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value


_OWN = {name: _own_kernels(name) for name in KERNELS}


@constant_in_graphs
def _named(cls: type) -> type:
    """Return the class: dynamo accepts a class by its name, but not a variable that holds a class."""
    return cls


def wrap_like(out: Tensor, like: Any, canvas: tuple[int, int] | None = None) -> Any:
    """Return ``out`` as an instance of the class of ``like``, which may be a user's subclass."""
    if not is_compiling():  # dynamo does not trace torchvision's wrap
        has_canvas = isinstance(like, _WITH_CANVAS)
        return subclass.rewrap(out, like, **({"canvas_size": canvas} if canvas and has_canvas else {}))
    if not isinstance(like, tv_tensors.TVTensor):
        return out
    wrapped: Any = out.as_subclass(_named(type(like)))
    if isinstance(like, _WITH_CANVAS):
        wrapped.canvas_size = like.canvas_size if canvas is None else canvas
    if isinstance(like, tv_tensors.BoundingBoxes):
        wrapped.format, wrapped.clamping_mode = like.format, getattr(like, "clamping_mode", "soft")
    return wrapped


def _functional(name: str) -> Function:
    theirs, work, kernels = getattr(reference, name), KERNELS[name], _OWN[name]

    def call(inpt: Any = None, *args: Any, **keywords: Any) -> Any:
        if keywords and not known.issuperset(keywords):
            check.keywords(name, names, args if inpt is None else (inpt, *args), keywords)
        kernel = kernels[Tensor] if type(inpt) is Tensor else own_kernel(theirs, type(inpt))
        if not torch.compiler.is_dynamo_compiling():
            return (kernel or theirs)(inpt, *args, **keywords)
        try:
            return (kernel or theirs)(inpt, *args, **keywords)
        except Exception as error:  # dynamo would not show the text of the error
            text = str(error)
            raise_error(type(error), text if text.startswith(name) else f"{name}: {text}")

    first, *others = inspect.signature(work, eval_str=True).parameters.values()
    own_name = next(iter(inspect.signature(theirs).parameters))
    parameters = [first.replace(name=own_name, annotation=Any), *others]
    names = [parameter.name for parameter in parameters]
    known = frozenset(names)
    call.__signature__ = inspect.Signature(parameters, return_annotation=Any)  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = __package__, work.__doc__
    torchvision_private.add_functional(call, theirs, kernels)
    return call


FUNCTIONALS: dict[str, Function] = {name: _functional(name) for name in KERNELS}
#: The name of each functional, imgops' and torchvision's.
_NAMES = {f: name for name in KERNELS for f in (FUNCTIONALS[name], getattr(reference, name))}


def _of_arrays(theirs: Function) -> Function:
    """Return a functional of torchvision that also takes arrays whose memory PyTorch cannot use."""

    @wraps(theirs)
    def call(inpt: Any) -> Any:
        return theirs(layout.readable(inpt))

    return call


FUNCTIONALS |= {name: _of_arrays(getattr(reference, name)) for name in ("to_image", "to_tensor")}
FUNCTIONALS |= {a: FUNCTIONALS[name] for a, name in _ALIASES.items() if hasattr(reference, a)}


def register_kernel(functional: Function | str, tv_tensor_cls: type) -> Callable[[Function], Function]:
    """Register a kernel, as torchvision's ``register_kernel`` does, for the functionals of both libraries.

    See :func:`torchvision.transforms.v2.functional.register_kernel`.
    """
    name = functional if isinstance(functional, str) else _NAMES.get(functional)
    return reference.register_kernel(functional if name is None else name, tv_tensor_cls)
