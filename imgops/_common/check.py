"""Validation helpers: every error message reads ``op: argument must ..., got ...``.

Only ``integers`` and ``is_any`` read tensor data, so the same helpers serve the real kernels, the
fakes and the meta device. Sizes may be symbolic (``torch.SymInt``): a comparison
of backed sizes becomes a guard, and one of unbacked sizes becomes a run-time assertion.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache, wraps
from typing import Any, NamedTuple, NoReturn

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common import layout, torch_private

#: PIL and OpenCV both count the pixels of an image in a signed 32-bit integer.
MAX_PIXELS = 2**31 - 1
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def fail(error: type[Exception], op: str, must: str, got: object) -> NoReturn:
    """Raise ``error`` with a message in the common grammar."""
    if isinstance(got, tuple):
        got = written(got)
    torch_private.raise_error(error, f"{op}: {must}, got {got}")


def fail_shape(op: str, must: str, value: Tensor) -> NoReturn:
    """Raise a ValueError because of the shape of ``value``."""
    fail(ValueError, op, must, f"shape {written(value.shape)}")


def refuse_in_graph(error: type[Exception], op: str, must: str, got: object) -> None:
    """Raise ``error`` if a compiler traces the call."""
    torch_private.raise_in_graph(error, f"{op}: {must}, got {got}")


def violates(*conditions: Any) -> bool:
    """Return whether one of several conditions, perhaps symbolic, does not hold.

    A condition on backed sizes becomes a guard. One on unbacked sizes cannot be decided yet: it becomes a
    run-time assertion, and counts as one that holds.
    """
    for condition in conditions:  # noqa: SIM110 (dynamo would trace a generator)
        if _is_violated(condition):
            return True
    return False


def is_known(condition: Any) -> bool:
    """Return whether a condition, perhaps symbolic, is known to hold; this adds no guard."""
    if condition is True or condition is False:
        return condition  # type: ignore[no-any-return]
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # takes half a second

    return statically_known_true(condition)


def _is_violated(condition: Any) -> bool:
    if condition is True or condition is False:
        return not condition
    if torch.compiler.is_dynamo_compiling():  # dynamo stops at a condition that it cannot decide
        from torch.fx.experimental.symbolic_shapes import guard_or_false, guard_or_true  # takes half a second

        if not guard_or_false(condition):
            if not guard_or_true(condition):
                return True
            torch._check(condition)
        return False
    try:
        return not bool(condition)
    except RuntimeError:  # the condition depends on data
        torch._check(condition)
        return False


def is_int32(value: Any) -> bool:
    if type(value) is int:
        return INT32_MIN <= value <= INT32_MAX
    return not violates(value >= INT32_MIN, value <= INT32_MAX)


def number(value: Any) -> Any:
    """Return a size for an error message; a symbolic size becomes its current value."""
    try:
        return int(value)
    except (RuntimeError, ValueError, TypeError, OverflowError):  # an unbacked size, or not a number at all
        return value


def numbers(*values: Any) -> tuple[Any, ...]:
    return tuple(map(number, values))


def shape(value: Tensor) -> tuple[Any, ...]:
    return numbers(*value.shape)


def shown(value: object) -> str:
    """Format an argument for an error message, in at most 120 characters; for an array, only its class."""
    if isinstance(value, (Tensor, np.ndarray)):
        return type(value).__name__
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of more than 4300 digits
        return "a number that is too large"
    return text if len(text) <= 120 else f"{text[:117]}..."


def plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number; dynamo shows one as an array, which stays."""
    if type(value) is int or type(value) is float:
        return value
    return value.item() if isinstance(value, np.generic) else value


def is_sequence(value: Any) -> bool:
    """Return whether a value is an ordered collection. A set has no order, a 0-dimensional array no items."""
    if type(value) is tuple or type(value) is list:
        return True
    if isinstance(value, (int, float)):  # in a graph of symbolic numbers, dynamo cannot ask them for __len__
        return False
    return (
        hasattr(value, "__len__")
        and not isinstance(value, (str, bytes, dict, set, frozenset))
        and getattr(value, "shape", None) != ()
    )


def switch(op: str, name: str, value: Any) -> bool:
    """Check that an argument is a bool, and convert NumPy's bool to Python's."""
    if value is True or value is False:
        return value
    value = plain(value)
    if not isinstance(value, (bool, torch.SymBool)):
        fail(TypeError, op, f"{name} must be a bool", shown(value))
    return value  # type: ignore[return-value]


def written(values: Sequence[object]) -> str:
    """Format values as a tuple. Dynamo can format a single size that was read, but not a tuple of sizes."""
    sizes = (int, torch.SymInt)
    shown = [number(v) if isinstance(v, sizes) and not isinstance(v, bool) else repr(v) for v in values]
    inside = ", ".join([f"{v}" for v in shown])
    return f"({inside},)" if len(values) == 1 else f"({inside})"


@lru_cache(maxsize=512)
def names_of(function: Any) -> tuple[str, ...]:
    """Return the names of the arguments of a function; none if it takes any."""
    parameters = inspect.signature(function).parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return () if takes_any else tuple([p.name for p in parameters])


def keywords(op: str, names: Sequence[str], args: Sequence[Any], given: Collection[str]) -> None:
    """Check that a function has arguments of the given names; the error says which name may be meant."""
    for name in given:
        if names and name not in names:
            meant = get_close_matches(name, names, 1) or ([] if args or names[0] in given else names[:1])
            hint = f"; did you mean {meant[0]!r}?" if meant else ""
            fail(TypeError, op, f"argument must be one of {', '.join(names)}", f"{name!r}{hint}")


def names_keywords(function: Any) -> Any:
    """Return a function whose error for a misspelt argument is that of ``keywords``."""
    names = names_of(function)
    known = frozenset(names)

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                keywords(function.__name__, names, args, given)
        return function(*args, **given)

    return call


def tensor(op: str, name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        got = type(value).__name__
        got += ", which it does not take" if is_batch(value) else _way_to_a_tensor(value)
        fail(TypeError, op, f"{name} must be a Tensor", got)


def _way_to_a_tensor(value: object) -> str:
    """Return a hint how a value becomes a tensor, as the end of an error; "" if there is none."""
    if isinstance(value, np.ndarray):
        return f"; torch.from_numpy(array){_axes_of(value)} makes one"
    if isinstance(value, PIL.Image.Image):
        return "; imgops.transforms.functional takes PIL images"
    if isinstance(value, (str, os.PathLike)):
        return "; imgops.decode_image(path) reads a file"
    return ""


def _axes_of(array: np.ndarray) -> str:
    """Return how the axes of an array become those of an image; channels come last if they clearly do."""
    if array.ndim == 2:
        return "[None]"
    if array.ndim in (3, 4) and array.shape[-1] <= 4 < array.shape[-3]:
        return ".permute(2, 0, 1)" if array.ndim == 3 else ".permute(0, 3, 1, 2)"
    return ""


def tensors(op: str, **values: object) -> None:
    for name, value in values.items():
        tensor(op, name, value)


def tensor_or_batch(op: str, value: object) -> None:
    """Check that an image is a tensor, or a batch of images of different sizes; its shape is not checked."""
    if not (isinstance(value, Tensor) or is_batch(value)):
        tensor(op, "image", value)


def is_batch(value: object) -> bool:
    """Return whether a value is a batch other than a tensor: its class defines how operators take it."""
    return hasattr(type(value), "__imgops_operator__")


def image(op: str, name: str, value: Tensor) -> None:
    """Check that ``value`` is a strided tensor of shape ``(..., C, H, W)``."""
    strided(op, name, value)
    if value.ndim < 3:
        fail_shape(op, f"{name} must have at least 3 dimensions (..., C, H, W)", value)


def strided(op: str, name: str, value: Tensor) -> None:
    if value.layout is not torch.strided:
        fail(TypeError, op, f"{name} must be a strided tensor", value.layout)


def computed_image(op: str, value: Tensor, known: Channels | None = None, takes_uint16: bool = False) -> None:
    """Check an image whose values an operator computes with; ``known`` says which channels it may have."""
    image(op, "image", value)
    levels_or_floats(op, value, takes_uint16)
    pixels(op, "image", *value.shape[-2:])
    if known is not None:
        known.check(op, value.shape[-3])


def channels(op: str, image: Tensor, counts: Sequence[int], when: str = "") -> None:
    """Check that an image has one of several numbers of channels."""
    if all(violates(image.shape[-3] == count) for count in counts):
        must = f"image must have {' or '.join(map(str, counts))} channel{'' if counts == (1,) else 's'}{when}"
        fail(ValueError, op, must, number(image.shape[-3]))


class Channels(NamedTuple):
    """The numbers of channels that an image may have, and why it may have no others."""

    counts: tuple[int, ...]
    reason: str

    def check(self, op: str, count: Any) -> None:
        """Check the number of channels of an image."""
        if all(violates(count == known) for known in self.counts):
            plural = "" if self.counts == (1,) else "s"
            must = f"image must have {' or '.join(map(str, self.counts))} channel{plural}"
            fail(ValueError, op, f"{must}, because {self.reason}", number(count))


SATURATION = Channels((1, 3), "saturation is a property of RGB colors")
HUE = Channels((1, 3), "hue is a property of RGB colors")
SATURATION_AND_HUE = Channels((1, 3), "saturation and hue are properties of RGB colors")
GRAY = Channels((1, 3), "gray is a sum of red, green and blue")
CLAHE = Channels((1, 3), "it equalizes gray, or the L of RGB colors in LAB")
BILATERAL = Channels((1, 3), "cv2.bilateralFilter takes no others")
JPEG = Channels((1, 3), "JPEG files hold gray or RGB")
WEBP = Channels((3,), "WebP files hold RGB")
HLS = Channels((3,), "HLS is a space of RGB colors")


def dtype(op: str, name: str, value: Tensor, *dtypes: torch.dtype) -> None:
    """Check that ``value`` has one of several dtypes."""
    if value.dtype not in dtypes:
        names = " or ".join([f"{d}".removeprefix("torch.") for d in dtypes])
        fail(TypeError, op, f"{name} must be {names}", value.dtype)


#: The floats that kernels compute with: NumPy, PIL and OpenCV know no smaller ones.
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def floating(op: str, name: str, value: Tensor) -> None:
    if value.dtype not in FLOATS:
        _refuse_dtype(op, f"{name} must be", value.dtype)


def _refuse_dtype(op: str, must: str, dtype: torch.dtype) -> NoReturn:
    bits = " of 16, 32 or 64 bits" if dtype.is_floating_point else ""
    fail(TypeError, op, f"{must} floating point{bits}", dtype)


def same_dtype_and_device(op: str, name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    if value.dtype != other.dtype:
        fail(TypeError, op, f"{name} must have the dtype of {other_name} ({other.dtype})", value.dtype)
    same_device(op, name, value, other_name, other)


def same_device(op: str, name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    if value.device != other.device:
        must = f"{name} must be on the device of {other_name} ({other.device})"
        fail(ValueError, op, must, value.device)


def same_channels(op: str, name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    if value.shape[-3] != other.shape[-3]:
        must = f"{name} must have the channels of {other_name} ({number(other.shape[-3])})"
        fail(ValueError, op, must, number(value.shape[-3]))


def same_image(op: str, name: str, value: Tensor, first: Tensor) -> None:
    """Check that another image has the dtype, device and shape of the first image."""
    image(op, name, value)
    same_dtype_and_device(op, name, value, "image", first)
    if value.shape != first.shape:
        fail(ValueError, op, f"{name} must have the shape of image {written(first.shape)}", shape(value))


def parameter(op: str, name: str, value: Tensor, image: Tensor) -> None:
    """Check that a parameter is on the CPU or on the device of the image.

    Reading a parameter on the CPU is free; a parameter on another device is never read by the host.
    """
    if value.device.type != "cpu" and value.device != image.device:
        is_other = image.device.type not in ("cpu", "meta")
        elsewhere = f" or on the device of image ({image.device})" if is_other else ""
        fail(ValueError, op, f"{name} must be on the CPU{elsewhere}", value.device)


def per_sample_parameter(op: str, name: str, value: Tensor, image: Tensor, *core: int) -> None:
    """Check that a parameter has real numbers of shape ``core``, for all images or for each one."""
    parameter(op, name, value, image)
    if value.dtype == torch.bool or value.dtype.is_complex:
        fail(TypeError, op, f"{name} must be real numbers", value.dtype)
    lead = len(value.shape) - len(core)
    whole = lead >= 0 and all(a == b for a, b in zip(value.shape[lead:], core, strict=True))
    batch = image.shape[:-3]
    if not (whole and broadcasts(value.shape[:lead], batch)):
        must = f"{name} must have {f'shape {numbers(*core)}' if core else 'one value'}"
        if batch:
            each = f"shape {written((*batch, *core))}" if core or batch[1:] else f"{number(batch[0])} values"
            must += f", or {each}, one for each image"
        fail_shape(op, must, value)


def of_one_image(value: Tensor, image: Any, core: int = 0) -> Tensor:
    """Return a parameter of ``core`` dimensions, without that of a batch of one for a single image."""
    if image.ndim < value.ndim + 3 - core and value.shape[0] == 1:
        return value.reshape(value.shape[1:])
    return value


def window(op: str, kernel: Tensor, image: Tensor) -> None:
    """Check that ``kernel`` is ``(h, w)``, or one such kernel per sample, and not empty."""
    if kernel.ndim < 2 or violates(kernel.shape[-1] * kernel.shape[-2] > 0):
        fail_shape(op, "kernel must be (h, w) or (..., h, w)", kernel)
    per_sample_parameter(op, "kernel", kernel, image, *kernel.shape[-2:])


def fill(op: str, image: Tensor, fill: Tensor) -> None:
    """Check that ``fill`` has one value, one per channel, or one per sample and channel."""
    parameter(op, "fill", fill, image)
    if fill.dtype.is_complex and not image.dtype.is_complex:
        fail(TypeError, op, "fill must be real", fill.dtype)
    if not broadcasts(fill.shape, image.shape[:-2]):
        fail_shape(op, f"fill must be one value or one for each of {number(image.shape[-3])} channels", fill)


def levels_or_floats(op: str, image: Tensor, takes_uint16: bool = False) -> None:
    """Check that an image has levels or is floating point, as operators that compute with pixels need.

    Levels are those of uint8, and of uint16 where an operator takes it.
    """
    if image.dtype == torch.uint8 or image.dtype in FLOATS:
        return
    if not (takes_uint16 and image.dtype == torch.uint16):
        levels = "uint8, uint16" if takes_uint16 else "uint8"
        _refuse_dtype(op, f"image must be {levels} or", image.dtype)


def real(op: str, name: str, value: object) -> Tensor:
    """Return a number, a sequence of numbers or a tensor as a parameter tensor."""
    if isinstance(value, Tensor):
        return value
    # Numbers recur from call to call, and making a tensor takes as long as a small kernel. Not 0, because 0.0
    # and -0.0 would share a tensor. The truth of ``value`` comes last: in a graph it would be a guard.
    if (type(value) is float or type(value) is int) and torch_private.can_bypass_dispatcher() and value:
        try:
            return _number(value)
        except OverflowError:
            pass
    try:
        return graph_tensor(value) if _has_tensors(value) else numbers_tensor(value)
    except OverflowError:
        fail(ValueError, op, f"{name} must fit into 64 bits", "a larger integer")
    except (TypeError, ValueError, RuntimeError):
        fail(
            TypeError, op, f"{name} must be a number, a sequence of numbers or a Tensor", type(value).__name__
        )


def reals(op: str, **values: object) -> list[Tensor]:
    """Return several parameters as tensors, as ``real`` does."""
    return [real(op, name, value) for name, value in values.items()]


@lru_cache(maxsize=1024, typed=True)
def _number(value: float) -> Tensor:
    """Return a number as a tensor that nothing writes to.

    ``real`` does not look up zeros here, because 0.0 and -0.0 are equal and would share a tensor.
    """
    with torch.inference_mode(False):  # a later call may record a gradient with the tensor
        return constant(torch.tensor(value, dtype=torch.float64, device="cpu"))


def _has_tensors(value: Any) -> bool:
    """Return whether a nested sequence has tensors, whose gradients ``torch.tensor`` would drop."""
    return isinstance(value, Tensor) or (isinstance(value, (tuple, list)) and any(map(_has_tensors, value)))


def numbers_tensor(value: Any) -> Tensor:
    """Return numbers as a float64 tensor; a traced graph keeps them symbolic."""
    return _tensor_of(value, torch.float64)


def integers_tensor(op: str, name: str, values: Sequence[int]) -> Tensor:
    """Return integers as an int64 tensor, in a traced graph too."""
    fit_64_bits(op, name, values)
    return _tensor_of(values, torch.int64)


def _tensor_of(value: Any, dtype: torch.dtype) -> Tensor:
    if is_compiling():  # torch.tensor would turn the numbers into constants of the graph
        return graph_tensor(value, dtype)
    return constant(torch.tensor(layout.readable(value), dtype=dtype, device="cpu"))


def constant(numbers: Tensor) -> Tensor:
    """Mark a tensor of Python numbers, which like these may become a constant of a captured CUDA graph."""
    if not is_compiling():  # a compiler would make the marked tensor an output of its graph
        numbers.is_imgops_constant = True  # type: ignore[attr-defined]
    return numbers


def is_constant(value: Tensor) -> bool:
    """Return whether a tensor was marked by ``constant``."""
    return getattr(value, "is_imgops_constant", False)


def graph_tensor(value: Any, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return numbers and tensors as one tensor, with a gradient, and in a graph that dynamo traces.

    ``torch.tensor`` makes dynamo recompile for every new float, and drops gradients; a product with a tensor
    keeps a number symbolic, and does not fix it while ``torch.export`` traces without dynamo.
    """
    if isinstance(value, Tensor):
        return value.to(dtype)
    if isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat)):
        one: Any = torch.ones((), dtype=dtype, device="cpu")
        # An integer of more than 64 bits cannot be multiplied.
        return one * (torch.sym_float(value) if dtype.is_floating_point else value)
    if isinstance(value, (tuple, list)):
        return torch.stack([graph_tensor(v, dtype) for v in value])
    if isinstance(value, str):  # PyTorch 2.11 raises another error for a string in a graph
        raise TypeError
    return torch.tensor(value, dtype=dtype, device="cpu")


def cores(op: str, core: tuple[Any, ...]) -> None:
    """Check that numbers of trailing dimensions are integers from 0 on."""
    for dims in core:
        if type(dims) is not int or dims < 0:
            fail(TypeError, op, "core must be integers from 0 on", shown(dims))


def batch(op: str, name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Check that ``value`` has exactly the leading dimensions of ``other``."""
    if value.shape[:-3] != other.shape[:-3]:
        must = f"{name} must have the leading dimensions of {other_name} {written(other.shape[:-3])}"
        fail(ValueError, op, must, shape(value)[:-3])


def broadcasts(size: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether ``size`` broadcasts to ``target`` without making it larger."""
    if len(size) > len(target):
        return False
    pairs = zip(reversed(size), reversed(target), strict=False)
    return all(have == 1 or have == want for have, want in pairs)


def out(op: str, value: Tensor, other_name: str, other: Tensor, height: int, width: int) -> None:
    """Check that ``value`` has the dtype, device and shape that the operator's result would have.

    They are the dtype, device and shape of ``other``, except for the height and width.
    """
    same_dtype_and_device(op, "out", value, other_name, other)
    wanted = (*other.shape[:-2], height, width)
    if tuple(value.shape) != wanted:
        fail(ValueError, op, f"out must have shape {written(wanted)}", shape(value))


def no_overlap(op: str, name: str, value: Tensor, others: Iterable[tuple[str, Tensor]]) -> None:
    """Check that ``value`` can be written to.

    None of its elements may share memory with another one of its elements or with a tensor in ``others``.
    """
    sides = zip(value.stride(), value.shape, strict=True)
    repeated = 0 in value.stride() and any(s == 0 and n > 1 for s, n in sides)
    if repeated or (not value.is_contiguous() and _repeats_memory(value)):
        fail(ValueError, op, f"{name} must have memory for each element", f"strides {value.stride()}")
    for other_name, other in others:
        if overlap(value, other):
            fail(ValueError, op, f"{name} must not overlap {other_name} in memory", "overlapping tensors")


def _repeats_memory(x: Tensor) -> bool:
    """Return whether two elements share memory; for symbolic strides, which are not known, return False."""
    sizes = [
        (stride, n) for stride, n in zip(x.stride(), x.shape, strict=True) if type(n) is not int or n != 1
    ]
    if any(type(v) is not int for pair in sizes for v in pair):
        return False
    reach = 0
    for stride, n in sorted(sizes):
        if stride <= reach:  # rare: look at every element
            offsets = sum(
                (
                    s * torch.arange(m, dtype=torch.int64, device="cpu").reshape(-1, *(1,) * i)
                    for i, (s, m) in enumerate(reversed(sizes))
                ),
                torch.zeros((), dtype=torch.int64, device="cpu"),
            )
            return offsets.unique().numel() < offsets.numel()
        reach += stride * (n - 1)
    return False


_EFFORT: Any = 1 << 16


class _Memory:
    """The addresses of a tensor's elements as NumPy's array interface; the elements are never read."""

    def __init__(self, x: Tensor, base: int) -> None:
        size = x.element_size()
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{size}",
            "shape": tuple(x.shape),
            "strides": tuple(s * size for s in x.stride()),
            "data": (base + x.storage_offset() * size, True),
        }


def overlap(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors share an element.

    The answer is exact up to an effort that only unusual strides exceed; those tensors count as overlapping.

    Fake tensors have no addresses: views of the same memory are recognized by their common storage.
    """
    try:
        storage_a, storage_b = a.untyped_storage(), b.untyped_storage()
    except NotImplementedError:  # wrapper tensors of torch.func and vmap have no memory
        return False
    if storage_a is storage_b:
        base_a = base_b = 1 << 40
    elif type(a) is type(b) is Tensor and not (a.is_meta or b.is_meta):
        base_a, base_b = storage_a.data_ptr(), storage_b.data_ptr()
        if base_a + storage_a.nbytes() <= base_b or base_b + storage_b.nbytes() <= base_a:
            return False
    else:
        return False
    if not all(type(v) is int for x in (a, b) for v in (*x.shape, *x.stride(), x.storage_offset())):
        return False
    if a.numel() == 0 or b.numel() == 0:
        return False
    try:
        return np.shares_memory(_Memory(a, base_a), _Memory(b, base_b), max_work=_EFFORT)
    except np.exceptions.TooHardError:
        return True


def interpolation(value: Any) -> Any:
    """Return the name of an interpolation, or of a member of torchvision's ``InterpolationMode``."""
    return value.value if isinstance(value, Enum) else value


def choice(op: str, name: str, value: object, choices: Collection[str], when: str = "") -> None:
    if not isinstance(value, str) or value not in choices:
        names = ", ".join(map(repr, choices))
        fail(ValueError, op, f"{name} must be one of {names}{when}", shown(value))


def pixels(op: str, name: str, height: int, width: int) -> None:
    """Check that PIL and OpenCV can count the pixels of a size; height and width are known to be >= 0."""
    if violates(height <= INT32_MAX, width <= INT32_MAX, height * width <= MAX_PIXELS):
        got = f"{number(height)} x {number(width)}"
        fail(ValueError, op, f"{name} must span fewer than 2**31 pixels", got)


def not_empty(op: str, name: str, image: Tensor) -> None:
    if violates(image.shape[-2] * image.shape[-1] > 0):
        fail_shape(op, f"{name} must have at least one pixel", image)


#: The longest side of a filter's window: the work grows with the side, and libraries count in 32 bits.
WIDEST = (1 << 15) - 1


def side(op: str, name: str, *sizes: int, most: int = WIDEST) -> None:
    for size in sizes:
        if violates(size <= most):
            fail(ValueError, op, f"{name} must be at most {most}", numbers(*sizes))


def positive_size(op: str, size: Sequence[int]) -> tuple[int, ...]:
    """Return ``size`` as (height, width) and check that both are at least 1."""
    height, width = integers(op, "size", size, ("height", "width"))
    if violates(height >= 1, width >= 1):
        fail(ValueError, op, "size must be positive", numbers(height, width))
    return height, width


def pair(op: str, name: str, value: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return two ints from a pair, or from one int that stands for both."""
    if type(value) is not int and type(value) is not tuple:
        value = plain(value)
    one = isinstance(value, (int, torch.SymInt))
    values = integers(op, name, (value, value) if one else value, names)
    for side in values:  # the operator's error would name its arguments, not the caller's
        if not is_64_bit(side):
            fit_64_bits(op, name, values)
    return values


#: torchvision's names for OpenCV's border modes.
BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap")
#: Names that PyTorch and OpenCV give to padding modes -> PIL's and torchvision's.
_PADDING_MODES = {"replicate": "edge", "circular": "wrap"}


def padding_mode(name: str) -> str:
    """Return torchvision's name of a padding mode."""
    return _PADDING_MODES.get(name, name) if isinstance(name, str) else name


def border(op: str, padding_mode: str) -> None:
    choice(op, "padding_mode", padding_mode, BORDERS)


def integers(op: str, name: str, value: object, names: Sequence[str]) -> tuple[int, ...]:
    """Convert a sequence or an integer tensor to as many ints as ``names`` has."""
    if type(value) is tuple and len(value) == len(names) and all_int(value):
        return value
    must = f"{name} must have {len(names)} integers ({', '.join(names)})"
    if isinstance(value, Tensor):
        if value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool:
            fail(TypeError, op, must, value.dtype)
        if value.ndim != 1 or value.shape[0] != len(names):
            fail_shape(op, must, value)
        if value.is_meta:
            fail(ValueError, op, must, "a tensor on meta, which has no values")
        found: tuple[int, ...] = tuple(value.tolist())
        if value.dtype == torch.uint64:
            fit_64_bits(op, name, found)
        return found
    if not is_sequence(value):
        fail(TypeError, op, must, type(value).__name__)
    values: tuple[Any, ...] = tuple(value)  # type: ignore[arg-type]
    if len(values) != len(names):
        fail(ValueError, op, must, len(values))
    return tuple([integer(op, must, v) for v in values])


def is_any(conditions: Tensor) -> bool:
    """Return whether any of several conditions on data holds; a graph, which has no data, assumes none."""
    return not is_compiling() and bool(conditions.any())


def is_64_bit(value: Any) -> bool:
    """Return whether an integer fits into PyTorch's 64 bits.

    A symbolic integer always does; while dynamo traces, it shows symbolic integers as plain ints.
    """
    return type(value) is not int or is_compiling() or -(2**63) <= value < 2**63


def fit_64_bits(op: str, name: str, values: Sequence[int]) -> None:
    if not all(map(is_64_bit, values)):
        fail(ValueError, op, f"{name} must have signed 64-bit integers", tuple(values))


def all_int(values: tuple[Any, ...]) -> bool:
    """Return whether all values are plain ints, not symbolic ones, which need guards."""
    for value in values:  # noqa: SIM110 (a loop costs half of what all() does)
        if type(value) is not int:
            return False
    return True


def integer(op: str, must: str, value: Any) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, torch.SymInt)):
        return value  # type: ignore[return-value]
    is_array = isinstance(value, Tensor) or getattr(value, "shape", ()) != ()
    if not hasattr(value, "__index__") or is_array:
        fail(TypeError, op, must, type(value).__name__ if is_array else f"{type(value).__name__} {value}")
    return int(value.__index__())


def round_half_even(value: Any) -> Any:
    """Round a positive number half to even, with operations that an exported program can save."""
    if isinstance(value, float):
        return round(value)
    up = torch.sym_int(value + 0.5)
    is_half = torch.sym_int(up + 1.5 - value) - 1
    return up - is_half * (up % 2)
