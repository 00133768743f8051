"""The native module by itself: wrong calls raise, and random calls give the same bits at every SIMD level.

``python tests/native_program.py [CALLS] [MODULE.so]`` needs NumPy only, so that every wheel is tested with it, and
``make sanitize`` can run it with a module that was built to find bad memory accesses and undefined behavior.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import numpy as np

FILTERS = ("box", "bilinear", "hamming", "bicubic", "lanczos")
#: The kinds of steps, as in imgops/kernels/cpu/native.py, which also has "window".
STEP_KINDS = ("crop", "resize", "mirror", "flip", "colors", "gray", "blur", "warp", "erase", "split", "pad")
#: The number of the step that only ``run_sources`` has.
WINDOW = len(STEP_KINDS)
SUPPORT = {"box": 0.5, "bilinear": 1.0, "hamming": 1.0, "bicubic": 2.0, "lanczos": 3.0}


def load(path: str, name: str = "_native") -> Any:
    spec = importlib.util.spec_from_file_location(f"imgops.kernels.cpu.{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed() -> str:
    """Return the path of the installed module, found without importing imgops, which needs PyTorch."""
    files = [
        f
        for f in metadata.files("imgops") or ()
        if f.name.startswith("_native.") and f.suffix in (".so", ".pyd")
    ]
    assert files, "imgops is installed without its native module"
    return str(files[0].locate())


# -- wrong calls -----------------------------------------------------------------------------------


class Tensor:
    """The interface of a tensor that the module uses, over an array: sizes and strides are those of (..., C, H, W)."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.itemsize = array, array.shape, array.itemsize

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.itemsize for s in self.array.strides)

    def data_ptr(self) -> int:
        return self.array.ctypes.data


def zeros(*shape: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.zeros(shape, dtype)


def step(kind: str, *numbers: int, height: int = 8, width: int = 9) -> np.ndarray:
    """Return the row of one step of a program, whose numbers begin in the first column."""
    three = (*numbers, 0, 0, 0)[:3]
    return np.array([[(*STEP_KINDS, "window").index(kind), 0, height, width, *three]])


def right_calls() -> dict[str, dict[str, Any]]:
    """Return a right call of each function of the module: its arguments by name, in their order."""
    real, whole = np.float32, np.int32
    images = {"out": zeros(2, 4, 9, 3), "image": zeros(2, 8, 9, 3)}
    table = zeros(4, dtype=whole), np.full(4, 2, whole), np.full((4, 2), 0.5)
    columns = {"start": table[0], "length": table[1], "weight": table[2]}
    sides = {"left": 0.0, "top": 0.0, "right": 9.0, "bottom": 8.0}
    band = {"first": 0, "height": 4, "rows_first": False, "single": True}
    levels = {"out": zeros(14), "image": zeros(14)}
    flat = {"out": zeros(14, dtype=real), "image": zeros(14, dtype=real)}
    numbers = {"other": None, "amounts": np.ones(1, real), "constants": np.ones(1, real)}
    frames = {"out": zeros(1, 3, 2, 2), "image": zeros(1, 3, 2, 2)}
    same = {"out": zeros(2, 8, 9, 3), "image": zeros(2, 8, 9, 3)}
    weights = {"across": np.array([[200, 28]], whole), "down": np.array([[256]], whole)}
    planar = zeros(2, 3, 20, dtype=real)
    pixels = {"out": planar.copy(), "image": planar}
    steps = {"kinds": zeros(1, 2, dtype=whole), "amounts": np.ones((1, 2), real)}
    tensors = {"out": Tensor(zeros(2, 3, 8, 9)), "image": Tensor(zeros(2, 3, 8, 9))}
    smaller = {"out": Tensor(zeros(2, 3, 4, 5)), "image": Tensor(zeros(2, 3, 8, 9))}
    boxes = {"boxes": np.array([[0, 0, 9, 8]]), "name": "box", "shrinks_rows_first": True}
    program = {"steps": step("mirror"), "numbers": np.ones((1, 1)), "tables": None}
    window = {"steps": step("window"), "numbers": np.array([[0.0, 0, 9, 8, 8, 9, 0, 0]]), "tables": None}
    facts = {"data": zeros(432), "facts": np.array([[0, 216, 8, 9], [216, 432, 8, 9]]), "decoder": None}
    memory = {"counter": zeros(1, dtype=np.int64), "scratch": zeros(432)}
    planes = {"interleaved": False, "shrinks_rows_first": True}
    back, doubles = {"image": planar, "grad": planar}, {**steps, "amounts": np.ones((1, 2))}
    remap = {"out": planar.copy(), "slope": zeros(2, 2, 6, dtype=float), "grad": zeros(2, 3, 6, dtype=real)}
    remap |= {"image": planar, "map": np.ones((1, 2, 6)), "outside": np.ones((1, 3))}
    wide = {"back": zeros(6, 7, dtype=real), "wide": zeros(6, 7, dtype=real)}
    small = {"chosen": zeros(4, 5, dtype=real), "grad": zeros(4, 5, dtype=real)}
    calls: dict[str, dict[str, Any]] = {
        "resample": {**images, "rows": table, "columns": None, "rows_first": False},
        "pil_resize": {**images, "name": "box", **sides, **band},
        "table": {"name": "box", "size": 8, "low": 0.0, "extent": 8.0, **columns},
        "point": {"name": "constant", **flat, **numbers},
        "lut": {**levels, "tables": zeros(1, 1, 256)},
        "move": {"name": "mirror", "out": zeros(2, 6), "image": zeros(2, 6)},
        "sharpen": {**same, "factors": np.ones(2, real)},
        "warp": {**frames, "inverses": zeros(1, 2, 3, dtype=real), "fills": zeros(1, dtype=np.int64)},
        "blur": {**same, **weights, "first": 0, "last": 8},
        "statistics": {"name": "extremes", "out": zeros(2, 3, 2, dtype=real), "image": planar},
        "luma": {"name": "gray", "out": zeros(2, 20, dtype=real), "image": planar},
        "matrix": {**pixels, "matrices": zeros(1, 3, 4, dtype=real)},
        "sequence": {**pixels, **steps},
        "sequence_back": {"out": planar.copy(), "sums": zeros(2, 2, dtype=float), **back, **doubles},
        "remap_back": {**remap, "height": 4, "width": 5, "taps": 2, "border": 0},
        "select_back": {**wide, **small, "offsets": np.array([[0, 0], [1, 2]], whole), "first": False},
        "stretch_back": {"out": planar[0].copy(), "image": planar[0], "grad": planar[0]},
        "crop": {**smaller, "left": 0, "top": 0},
        "crop_each": {**smaller, "boxes": zeros(1, 2, dtype=np.int64)},
        "resized_crops": {**smaller, **boxes},
        "mirror_chosen": {**tensors, "chosen": b"10"},
        "levels": {**tensors, "table": bytes(256)},
        "stretch_levels": {**tensors, "equalize": True},
        "gray": {**tensors, "chosen": b"10"},
        "run_program": {**tensors, **program, **memory, "shrinks_rows_first": True},
        "run_sources": {"out": tensors["out"], **facts, **window, "done": zeros(2), **memory, **planes},
    }
    for name, call in calls.items():
        call |= {"threads": 2} if name in WITH_THREADS else {}
        call |= {} if name in WITHOUT_SIMD else {"simd": 2}
    return calls


WITHOUT_SIMD = ("table", "crop", "crop_each")
#: The functions that threads share.
WITH_THREADS = (
    *("resample", "pil_resize", "point", "lut", "statistics", "luma", "matrix", "sequence", "sequence_back"),
    *("remap_back", "stretch_back", "crop", "crop_each"),
)


def both(simd: int) -> tuple[int, int]:
    """Return a number of threads, another one for each SIMD level, and the level."""
    return 1 + simd, simd


#: Arguments that are written to, so that their memory must be writable.
WRITTEN = ("out", "sums", "slope", "back", "counter", "scratch", "done", "start", "length", "weight")
#: What :func:`wrong_values` makes that is right for an argument of a function, whose sizes or strides it leaves open.
OPEN: dict[str, tuple[str, ...]] = {
    "resample": ("image: one less along axis 1",),
    "pil_resize": ("out: one less along axis 1", "out: one less along axis 2"),
    "table": ("weight: one less along axis 1",),
    "point": ("out: a dimension more", "image: a dimension more"),
    "lut": ("out: a dimension more", "image: a dimension more"),
    "warp": tuple(f"{name}: one less along axis {i}" for name in ("out", "image") for i in (2, 3)),
    "statistics": ("image: strides", "image: one less along axis 2"),
    "luma": ("image: strides",),
    "sequence_back": ("out: nothing",),
    "remap_back": ("out: nothing", "slope: nothing", "outside: nothing"),
    "select_back": ("offsets: one less along axis 0", "offsets: five along axis 0"),
    "crop": tuple(f"{name}: one less along axis {i}" for name in ("out", "image") for i in (2, 3)),
    "crop_each": tuple(f"{name}: one less along axis {i}" for name in ("out", "image") for i in (2, 3)),
    "resized_crops": ("out: one less along axis 2", "out: one less along axis 3"),
    "run_program": ("steps: five along axis 0",),
}


def wrong_values(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong in place of a right argument, by its kind, with a description."""
    if isinstance(value, Tensor):
        array = value.array
        yield from (("an array", array), ("nothing", None), ("no batch", Tensor(array[0, 0])))
        yield "another dtype", Tensor(array.astype(np.int16))
        yield "strides", Tensor(np.repeat(array, 2, -1)[..., ::2])
        for axis in range(array.ndim):
            yield f"one less along axis {axis}", Tensor(np.delete(array, 0, axis))
    elif isinstance(value, np.ndarray):
        yield from (("an address", value.ctypes.data), ("a list", value.tolist()), ("nothing", None))
        for dtype in ("uint8", "int16", "int32", "int64", "float32", "float64", "complex64"):
            if value.dtype != dtype:
                yield dtype, value.astype(dtype)
        yield from (("a dimension more", value[None]), ("a dimension less", value[0]))
        yield "five along axis 0", np.concatenate([value[:1]] * 5)
        for axis in range(value.ndim):
            yield f"one less along axis {axis}", np.delete(value, 0, axis)
        if value.shape[-1] > 1:
            yield "strides", np.repeat(value, 2, -1)[..., ::2]
        if value.itemsize > 1:
            odd = np.empty(value.nbytes + 1, np.uint8)[1:].view(value.dtype).reshape(value.shape)
            odd[...] = value
            yield "an odd address", odd
        if name in WRITTEN:
            frozen = value.copy()
            frozen.flags.writeable = False
            yield "memory that is not writable", frozen
    elif isinstance(value, tuple):
        yield from (("nothing", None), ("two arrays", value[:2]))
        for i, array in enumerate(value):
            for what, wrong in wrong_values("", array):
                yield f"{what} in array {i}", (*value[:i], wrong, *value[i + 1 :])
    elif isinstance(value, str):
        yield from (("another word", "cubic"), ("bytes", b"box"), ("nothing", None))
    elif isinstance(value, bytes):
        yield from (("no bytes", b""), ("five bytes", value[:1] * 5), ("text", "10"), ("nothing", None))
    elif isinstance(value, float):
        yield from (("no number", np.nan), ("no end", np.inf), ("text", "1"), ("nothing", None))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (("a fraction", 1.5), ("text", "1"), ("nothing", None), ("128 bits", 1 << 100))


def wrong_rows() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield what is wrong by its value, or only together: function, description, and the arguments that change."""
    real, whole = np.float32, np.int32
    start, length, weight = right_calls()["resample"]["rows"]

    def images(*shape: int, dtype: Any = np.uint8) -> dict[str, Any]:
        return {"out": zeros(*shape, dtype=dtype), "image": zeros(*shape, dtype=dtype)}

    yield "resample", "no pixels", images(2, 0, 9, 3)
    yield "resample", "a table that reads before", {"rows": (start - 1, length, weight)}
    yield "resample", "a table that reads behind", {"rows": (start + 7, length, weight)}
    yield "resample", "a table longer than its taps", {"rows": (start, length + 1, weight)}
    yield "resample", "a negative length", {"rows": (start, length - 3, weight)}
    yield "resample", "few rows", {"rows": (start[:3], length[:3], weight[:3])}
    yield "table", "an empty axis", {"size": 0}
    yield "pil_resize", "a region outside", {"right": 9.5}
    yield "pil_resize", "rows outside", {"first": 1}
    apart = zeros(2, 8, 18, 3, dtype=real)[:, :, :9]
    yield (
        "pil_resize",
        "rows of floats that lie apart",
        {"out": zeros(2, 4, 9, 3, dtype=real), "image": apart},
    )
    for shapes in (((1, 2, 6), (1, 6, 2)), ((1, 3, 3), (1, 4, 3))):
        out, image = (zeros(*shape) for shape in shapes)
        yield "move", f"a split of {shapes}", {"name": "split", "out": out, "image": image}
    yield "warp", "two planes", images(1, 2, 2, 3)
    yield "warp", "a copy of another size", {"image": zeros(1, 3, 1, 4), "fills": np.full(1, -1)}
    for parts in (5, 0):
        yield "point", f"{parts} parts", {"amounts": np.ones(parts, real), "constants": np.ones(parts, real)}
    yield "point", "floats on bytes", {"name": "invert_above", **images(14)}
    yield "point", "images without another", {"name": "images"}
    yield "point", "another beside a constant", {"other": zeros(14, dtype=real)}
    yield "blur", "weights that do not sum to 256", {"across": np.array([[250]], whole)}
    yield "blur", "too many weights", {"across": zeros(1, 130, dtype=whole)}
    yield "blur", "weights of other parts", {"down": np.full((2, 1), 256, whole)}
    same = zeros(2, 8, 9, 3)
    yield "blur", "in place", {"out": same, "image": same}
    yield "blur", "rows outside", {"first": 2, "last": 9}
    yield "statistics", "no pixels", {"image": zeros(2, 3, 0, dtype=real)}
    yield "statistics", "a histogram in bytes", {"name": "histogram", "out": zeros(2, 3, 256)}
    yield "matrix", "other strides", {"image": zeros(2, 20, 3, dtype=real).transpose(0, 2, 1)}
    for shape, kind in (((3, 2), 0), ((0, 2), 0), ((1, 2), 4), ((1, 2), -2)):
        steps = {"kinds": np.full(shape, kind, whole), "amounts": np.ones(shape, real)}
        yield "sequence", f"steps {kind} in {shape}", steps
    hue = {"kinds": np.full((1, 1), 3, whole), "amounts": np.full((1, 1), 256, real)}
    yield "sequence", "a hue of bytes beyond the last", {**images(1, 3, 4), **hue}
    yield "sequence", "two channels", images(2, 2, 20, dtype=real)
    for kinds in ([4, 0], [0, 6]):  # a conversion is the last step
        yield "sequence_back", f"kinds {kinds}", {"kinds": np.array([kinds], whole)}
    many = {"kinds": zeros(1, 9, dtype=whole), "amounts": np.ones((1, 9)), "sums": zeros(2, 9, dtype=float)}
    yield "sequence_back", "more steps than the tape holds", many
    for name, value in (("taps", 3), ("border", 5), ("border", -1), ("height", 0), ("width", 1 << 24)):
        yield "remap_back", f"{name} of {value}", {name: value}
    yield "select_back", "an offset outside", {"offsets": np.array([[0, 3]], whole)}
    yield "stretch_back", "no pixels", {name: zeros(2, 0, dtype=real) for name in ("out", "image", "grad")}
    yield "resized_crops", "a box outside", {"boxes": np.array([[0, 0, 9, 8], [0, 0, 10, 8]])}
    for what, row in (
        ("an unknown kind", step("window") + [1, 0, 0, 0, 0, 0, 0]),
        ("a column behind the numbers", step("mirror") + [0, 1, 0, 0, 0, 0, 0]),
        ("a filter beyond the last", step("resize", 5, 1)),
        ("no size", step("mirror", height=0)),
        ("another size", step("mirror", height=9)),
        ("a warp without its matrix", step("warp", 0, 1)),
        ("a border below 0", step("pad", -1)),
        ("a border beyond 32 bits", step("pad", 0, 1 << 31)),
        ("an unknown border rule", step("pad", 0, 0, 4 << 32)),
        ("a border rule below 0", step("pad", 0, 0, -(1 << 32))),
        ("a border of four channels", step("pad", 0, 0, 1 << 24)),
    ):
        yield "run_program", what, {"steps": row}
    matrix = {"steps": step("warp", 0, 1), "numbers": np.ones((1, 6))}
    yield "run_program", "a third interpolation", {**matrix, "steps": step("warp", 0, 2)}
    yield "run_program", "a warp with a fourth color", {**matrix, "steps": step("warp", 1 << 24, 1)}
    yield "run_program", "a short scratch for a warp", {**matrix, "scratch": zeros(2 * 3 * 72 + 12 * 74 - 1)}
    four = {name: Tensor(array) for name, array in images(2, 4, 8, 9).items()}
    saturation = {"steps": step("colors", 1, 0x2 | ~0xF & (1 << 60) - 1), "numbers": np.zeros((1, 2))}
    yield "run_program", "saturation of four channels", {**four, **saturation, "scratch": zeros(576)}
    yield "run_program", "tables of other channels", {"tables": zeros(2, 256, dtype=real)}
    yield "run_program", "floats without tables", {"out": Tensor(zeros(2, 3, 8, 9, dtype=real))}
    sources = right_calls()["run_sources"]
    for name, *at, value in (
        *(("facts", 0, 0, -1), ("facts", 0, 0, 1), ("facts", 1, 2, 1 << 31), ("facts", 1, 3, 0)),
        *(("numbers", 0, 0, -1), ("numbers", 0, 2, 10), ("numbers", 0, 4, 0.5), ("numbers", 0, 4, 1 << 31)),
        *(("numbers", 0, 5, 0), ("numbers", 0, 6, np.nan), ("numbers", 0, 7, 1 << 41)),
        *(
            ("steps", 0, 0, STEP_KINDS.index("split")),
            ("steps", 0, 2, 5),
            ("steps", 0, 4, 5),
            ("steps", 0, 4, 1 << 33),
        ),
    ):
        changed = sources[name].copy()
        changed[tuple(at)] = value
        yield "run_sources", f"{value} at {at} of {name}", {name: changed}
    yield "run_sources", "a decoder that is none", {"decoder": 3}
    yield "run_sources", "tables of other channels", {"tables": zeros(2, 256, dtype=real)}


def wrong_calls(function: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield wrong calls of a function of the module: what is wrong, and the arguments."""
    for name in right_calls()[function]:
        for what, _ in wrong_values(name, right_calls()[function][name]):
            if f"{name}: {what}" not in OPEN.get(function, ()):
                right = right_calls()[function]  # anew, because a call may write to its arguments
                yield f"{name}: {what}", {**right, name: dict(wrong_values(name, right[name]))[what]}
    for other, what, changes in wrong_rows():
        if other == function:
            yield what, {**right_calls()[function], **changes}
    right = right_calls()[function]
    right.popitem()
    yield "few arguments", right


def check_wrong_calls(native: Any, function: str) -> int:
    """Check that each wrong call raises before it writes; a function of tensors may return 0 instead."""
    call, count = getattr(native, function), 0
    assert call(*right_calls()[function].values()) in (None, True), f"{function}: a right call was declined"
    for what, arguments in wrong_calls(function):
        out = getattr(arguments.get("out"), "array", arguments.get("out"))
        can_change = isinstance(out, np.ndarray) and out.flags.writeable
        if can_change:
            out[...] = 77
        try:
            done = call(*arguments.values())
        except (TypeError, ValueError, AttributeError, BufferError, OverflowError):
            done = False
        assert done in (0, False), f"{function}: {what}: nothing was raised"
        assert not can_change or (out == 77).all(), f"{function}: {what}: the error came after a write"
        count += 1
    return count


# -- random calls ----------------------------------------------------------------------------------


def noise(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    if kind == np.uint8:
        return rng.integers(0, 256, shape, dtype=np.uint8)
    values = rng.uniform(-0.5, 1.5, shape).astype(kind)
    if rng.random() < 0.05 and values.size:
        values.flat[int(rng.integers(values.size))] = rng.choice([np.nan, np.inf, -np.inf])
    return values


def size(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 3, 15, 16, 17, 31, 33, 64, int(rng.integers(1, 130))]))


def compared(
    out: np.ndarray, run: Callable[[np.ndarray, int], Any], wanted: Any = None
) -> Callable[[int], Any]:
    """Return a call at a SIMD level: ``run`` writes to an array like ``out``, or returns False if it declines."""

    def call(simd: int) -> np.ndarray:
        found = np.full_like(out, 77)
        if run(found, simd) is False:
            return np.zeros_like(out)
        is_float = found.dtype.kind == "f"
        assert wanted is None or np.array_equal(found, wanted, equal_nan=is_float), (
            "other values than NumPy's"
        )
        return found

    return call


def random_table(native: Any, rng: np.random.Generator, extent: int) -> Any:
    name, out = str(rng.choice(FILTERS)), size(rng)
    low = float(rng.uniform(0, extent)) if rng.random() < 0.5 else 0.0
    span = float(rng.uniform(0, extent - low))
    taps = int(np.ceil(SUPPORT[name] * max(span / out, 1.0))) * 2 + 1
    table = np.empty(out, np.int32), np.empty(out, np.int32), np.empty((out, taps))
    native.table(name, extent, low, span, *table)
    return table


def random_resample(native: Any, rng: np.random.Generator) -> list[Callable[[int], Any]]:
    kind, first = rng.choice([np.uint8, np.float32, np.float64]), bool(rng.integers(2))
    planes, height, width, channels = int(rng.integers(1, 3)), size(rng), size(rng), int(rng.integers(1, 6))
    image = noise(rng, (planes, height, width, channels), kind)
    rows = random_table(native, rng, height) if rng.random() < 0.8 else None
    columns = random_table(native, rng, width) if rows is None or rng.random() < 0.8 else None
    high = height if rows is None else len(rows[0])
    wide = width if columns is None else len(columns[0])
    out = np.empty((planes, high, wide, channels), kind)
    return [compared(out, lambda out, simd: native.resample(out, image, rows, columns, first, *both(simd)))]


def random_pixels(rng: np.random.Generator, channels: int, kind: Any) -> np.ndarray:
    frames, count = int(rng.integers(1, 3)), int(rng.choice([1, 7, 63, 512, 513, int(rng.integers(1, 2000))]))
    if rng.random() < 0.5:
        return noise(rng, (frames, channels, count), kind)
    return noise(rng, (frames, count, channels), kind).transpose(0, 2, 1)


def random_color(native: Any, rng: np.random.Generator) -> list[Callable[[int], Any]]:
    kind = rng.choice([np.uint8, np.float32])
    image = random_pixels(rng, 3, kind)
    frames, _, count = image.shape
    shape = int(rng.choice([1, frames])), int(rng.integers(1, 6))
    kinds = rng.integers(-1, 4, shape).astype(np.int32)
    amounts = rng.uniform(-1, 3, shape).astype(np.float32)
    if kind == np.uint8:
        amounts[kinds == 3] = rng.integers(0, 256, (kinds == 3).sum())
    matrices = rng.normal(size=(int(rng.choice([1, frames])), 3, 4)).astype(np.float32)
    gray, means = np.empty((frames, count), kind), np.empty((frames, 1))
    calls = [
        compared(image, lambda out, simd: native.sequence(out, image, kinds, amounts, *both(simd))),
        compared(gray, lambda out, simd: native.luma("gray", out, image, *both(simd))),
    ]
    if kind == np.float32:
        calls.append(compared(means, lambda out, simd: native.luma("mean", out, image, *both(simd))))
        calls.append(compared(image, lambda out, simd: native.matrix(out, image, matrices, *both(simd))))
    return calls


def random_levels(native: Any, rng: np.random.Generator) -> list[Callable[[int], Any]]:
    kind = rng.choice([np.uint8, np.float32])
    parts, channels, count = int(rng.integers(1, 4)), int(rng.integers(1, 6)), int(rng.integers(1, 1500))
    image, other = (noise(rng, (parts, channels * count), kind) for _ in range(2))
    amounts = rng.uniform(-1, 3, parts).astype(np.float32)
    constants = rng.uniform(0, 1, parts).astype(np.float32)
    planes = random_pixels(rng, channels, kind)

    def point(name: str) -> Callable[[int], np.ndarray]:
        how = other if name == "images" else None, amounts, constants
        return compared(image, lambda out, simd: native.point(name, out, image, *how, *both(simd)))

    extremes = np.stack([planes.min(-1), planes.max(-1)], -1)
    calls = [
        compared(
            extremes, lambda out, simd: native.statistics("extremes", out, planes, *both(simd)), extremes
        )
    ]
    if kind == np.float32:
        return calls + [point(n) for n in ("constant", "images", "invert_above", "floor_to_steps")]
    period = int(rng.choice([1, channels]))
    tables = rng.integers(0, 256, (parts, period, 256), dtype=np.uint8)
    at = np.arange(channels * count) % period
    looked_up = np.stack([t[at, row] for t, row in zip(tables, image, strict=True)])
    flat = planes.reshape(-1, planes.shape[-1])
    counts = np.stack([np.bincount(p, minlength=256) for p in flat]).reshape(*planes.shape[:2], 256)
    sides = []
    for reach in rng.integers(0, 6, 2):
        side = rng.integers(0, 20, reach)
        sides.append(np.array([[256 - 2 * side.sum(), *side]], np.int32))
    frame = rng.integers(0, 256, (int(rng.integers(1, 3)), size(rng), size(rng), channels), dtype=np.uint8)
    rows = sorted(int(n) for n in rng.integers(0, frame.shape[1] + 1, 2))
    return [
        *calls,
        point("constant"),
        point("images"),
        compared(image, lambda out, simd: native.lut(out, image, tables, *both(simd)), looked_up),
        compared(counts, lambda out, simd: native.statistics("histogram", out, planes, *both(simd)), counts),
        compared(frame, lambda out, simd: native.blur(out, frame, *sides, *rows, simd)),
    ]


def random_moves(native: Any, rng: np.random.Generator) -> list[Callable[[int], Any]]:
    """Return resizes of bands, mirrors, planes, warps and tables of floats."""
    frames, height, width = (int(n) for n in rng.integers(1, (3, 40, 200)))
    frame = rng.integers(0, 256, (frames, height, width, 3), dtype=np.uint8)
    high, wide = (int(n) for n in rng.integers(1, 60, 2))
    part = frame[:, int(rng.integers(0, height)) :, int(rng.integers(0, width)) :]
    how = str(rng.choice(FILTERS)), 0.0, 0.0, float(part.shape[2]), float(part.shape[1])
    rows_first, first = bool(rng.integers(2)), int(rng.integers(high))
    whole, last = np.empty((frames, high, wide, 3), np.uint8), int(rng.integers(first + 1, high + 1))
    done = native.pil_resize(whole, part.copy(), *how, 0, high, rows_first, True, *both(2))
    band = whole[:, first:last].copy()

    def resize(out: np.ndarray, simd: int) -> Any:
        return native.pil_resize(out, part, *how, first, high, rows_first, True, *both(simd))

    rows, pixels, planes = (
        frame.reshape(-1, 3 * width),
        frame.reshape(frames, -1, 3),
        frame.transpose(0, 3, 1, 2),
    )
    split, dense = np.ascontiguousarray(pixels.transpose(0, 2, 1)), np.ascontiguousarray(planes)
    inverses = (np.eye(2, 3) + rng.normal(0, [0.5, 0.5, 9], (frames, 2, 3))).astype(np.float32)
    fills = rng.integers(-1 if (high, wide) == (height, width) else 0, 1 << 24, frames)
    factors = rng.uniform(-1, 3, frames).astype(np.float32)
    table = rng.normal(size=(1, int(rng.choice([1, 3])), 256)).astype(np.float32)
    flat = frame.reshape(-1)
    looked_up = table[0, np.arange(len(flat)) % table.shape[1], flat]
    warped = np.empty((frames, 3, high, wide), np.uint8)
    return [
        compared(band, resize, band if done else None),
        compared(rows, lambda out, simd: native.move("mirror", out, rows, simd), rows[:, ::-1]),
        compared(split, lambda out, simd: native.move("split", out, pixels, simd), split),
        compared(warped, lambda out, simd: native.warp(out, dense, inverses, fills, simd)),
        compared(frame, lambda out, simd: native.sharpen(out, frame, factors, simd)),
        compared(looked_up, lambda out, simd: native.lut(out, flat, table, *both(simd)), looked_up),
    ]


# -- tensors ---------------------------------------------------------------------------------------


def random_image(
    rng: np.random.Generator, frames: int, channels: int, height: int, width: int, interleaved: bool
) -> np.ndarray:
    if interleaved:
        return noise(rng, (frames, height, width, channels), np.uint8).transpose(0, 3, 1, 2)
    return noise(rng, (frames, channels, height, width), np.uint8)


def like(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return an array of another size in the same memory format, filled with a different value."""
    frames, channels = image.shape[:2]
    if image.flags.c_contiguous:
        return np.full((frames, channels, height, width), 77, np.uint8)
    return np.full((frames, height, width, channels), 77, np.uint8).transpose(0, 3, 1, 2)


def random_boxes(rng: np.random.Generator, count: int, height: int, width: int) -> np.ndarray:
    """Return boxes (left, top, right, bottom) of at least one pixel in an image."""
    corner = rng.integers(0, [width, height], (count, 2))
    return np.concatenate([corner, rng.integers(corner + 1, [width + 1, height + 1])], 1)


def random_tensors(native: Any, rng: np.random.Generator) -> list[Callable[[int], Any]]:
    """Return calls of the functions that take tensors."""
    frames, channels = int(rng.integers(1, 4)), int(rng.choice([1, 3, 4]))
    height, width = size(rng), size(rng)
    image = random_image(rng, frames, channels, height, width, bool(rng.integers(2)))
    left, top = (int(rng.integers(-40, 60)) for _ in range(2))
    table, chosen = rng.integers(0, 256, 256, dtype=np.uint8), rng.integers(0, 2, frames, dtype=np.uint8)
    boxes, name = random_boxes(rng, frames, height, width), str(rng.choice(FILTERS))
    same, other = like(image, height, width), like(image, size(rng), size(rng))
    far = 200  # farther than any crop reaches
    around = np.pad(image, ((0, 0), (0, 0), (far, far), (far, far)))
    cropped = around[..., top + far :, left + far :][..., : other.shape[2], : other.shape[3]]
    mirrored = np.where(chosen[:, None, None, None], image[..., ::-1], image)

    def call(function: str, out: np.ndarray, *args: Any, wanted: Any = None) -> Any:
        run, is_shared = getattr(native, function), function in WITH_THREADS
        return compared(
            out,
            lambda out, level: run(Tensor(out), Tensor(image), *args, 1 + level if is_shared else level),
            wanted,
        )

    return [
        call("crop", other, left, top, wanted=cropped),
        call("crop_each", other, boxes[:, :2].copy()),
        call("levels", same, table.tobytes(), wanted=table[image]),
        call("mirror_chosen", same, chosen.tobytes(), wanted=mirrored),
        call("resized_crops", other, boxes, name, True),
        call("stretch_levels", same, False),
        call("stretch_levels", same, True),
        *([call("gray", same, chosen.tobytes())] if channels == 3 else []),
    ]


# -- programs --------------------------------------------------------------------------------------

#: Strange numbers of a step.
NO_NUMBERS = (np.nan, np.inf, -np.inf, -1, 0, 0.5, 1e300, 1 << 40, -(1 << 41), 3, 256, 300)


def random_step(
    rng: np.random.Generator, now: tuple[int, int, int], rows: int, kinds: tuple[str, ...] = STEP_KINDS
) -> tuple[list[int], np.ndarray]:
    """Return a step for images of a number of channels, a height and a width: all but its column, and its numbers."""
    channels, height, width = now
    high, wide, a, b, c = height, width, 0, 0, 0
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind in ("crop", "resize"):
        high, wide = size(rng), size(rng)
    if kind == "crop":
        a, b, numbers = int(rng.integers(-20, 40)), int(rng.integers(-20, 40)), np.empty((rows, 0))
        if rng.random() < 0.5:  # a part of the image
            a, b = int(rng.integers(width)), int(rng.integers(height))
            high, wide = int(rng.integers(1, height - b + 1)), int(rng.integers(1, width - a + 1))
    elif kind == "resize":
        a, numbers = int(rng.integers(5)), random_boxes(rng, rows, height, width)
        if rng.random() < 0.3:
            numbers[:], high, wide = (0, 0, width, height), height, width
        b = int(rng.integers(4))
        if b == 1:
            numbers = np.empty((rows, 0))
        elif b == 2:  # top, left, height, width
            numbers = np.stack([*numbers[:, [1, 0]].T, *(numbers[:, [3, 2]] - numbers[:, [1, 0]]).T], 1)
        elif b == 3:  # the top and left of a box of the size of the result
            high, wide = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
            numbers = rng.integers(0, [height - high + 1, width - wide + 1], (rows, 2))
    elif kind in ("mirror", "flip", "gray"):
        numbers = rng.integers(0, 2, (rows, 1))
    elif kind == "colors":
        names = [int(n) for n in rng.permutation(10)[: int(rng.integers(1, 6))]]
        if channels == 4:  # without those that mix channels
            names = [n for n in names if n not in (1, 2, 3)] or [0]
        a, b = (
            int(rng.integers(1, 5)),
            sum(n << 4 * i for i, n in enumerate([*names, *[15] * (15 - len(names))])),
        )
        order = rng.integers(-1, len(names) + 1, (rows, a & 0xFFFF))
        has_one = bool(rng.random() < 0.3)
        a |= has_one << 16
        amounts = rng.choice(
            [0.5, -0.3, 1.7, 4.0, 130.5, np.nan, np.inf], (rows, 1 if has_one else len(names))
        )
        numbers = np.concatenate([order, amounts], 1)
    elif kind == "blur":
        a, b = (2 * int(n) + 1 for n in rng.integers(0, 12, 2))
        numbers = rng.uniform(0.001, 3, (rows, 2))
    elif kind == "warp":
        b = 0 if channels == 3 and rng.random() < 0.3 else 1
        a = int(rng.integers(1 << 8 * channels))
        numbers = np.eye(2, 3).ravel() + rng.normal(0, [0.3, 0.3, 5] * 2, (rows, 6)) * rng.integers(
            0, 2, (rows, 1)
        )
    elif kind == "erase":
        a, numbers = (
            int(rng.integers(1 << 8 * channels)),
            rng.integers(0, 1 + np.array([width, height] * 2), (rows, 4)),
        )
        numbers = np.sort(numbers.reshape(rows, 2, 2), 1).reshape(rows, 4)
    elif kind == "pad":
        most = int(rng.choice([3, 30]))
        a, b, right, bottom = (int(n) for n in rng.integers(0, most, 4))
        if rng.random() < 0.3:  # whole periods of a border
            a, b = (int(rng.integers(1, 4)) * n - int(rng.integers(2)) for n in (width, height))
        high, wide, numbers = height + b + bottom, width + a + right, np.empty((rows, 0))
        c = int(rng.integers(4)) << 32 | int(rng.integers(1 << 8 * channels))
    else:
        numbers = np.empty((rows, 0))
    return [STEP_KINDS.index(kind), high, wide, a, b, c], np.asarray(numbers, np.float64)


def run_program(
    native: Any, image: np.ndarray, steps: np.ndarray, numbers: np.ndarray, tables: Any, simd: int
) -> np.ndarray | None:
    """Return the result of a program, or None if the module declines it."""
    out = like(image, int(steps[-1, 2]), int(steps[-1, 3]))
    if len(steps) and (steps[:, 0] == STEP_KINDS.index("split")).any():
        out = np.full(out.shape, 77, np.uint8)
    if tables is not None:
        floats = np.zeros(out.shape, np.float32)
        out = floats if out.flags.c_contiguous else np.zeros_like(out, np.float32)
    pixels = max(image.shape[2] * image.shape[3], int((steps[:, 2] * steps[:, 3]).max()))
    scratch = np.empty(2 * image.shape[1] * pixels + 12 * (pixels + 2), np.uint8)
    counter = np.zeros(1, np.int64)
    how = counter, scratch, True, simd
    done = native.run_program(Tensor(out), Tensor(image), steps, numbers, tables, *how)
    assert not done or counter[0] == len(image) + 1, "the images that were taken"
    assert done or tables is not None or (out == 77).all(), "a declined program writes nothing"
    return out if done else None


def random_programs(native: Any, rng: np.random.Generator) -> list[Callable[[int], Any]]:
    """Return a program, compared with its steps one by one, and one whose arguments may be wrong."""
    frames, channels = int(rng.integers(1, 4)), int(rng.choice([1, 3, 3, 3, 4]))
    height, width = size(rng), size(rng)
    image = random_image(rng, frames, channels, height, width, bool(rng.integers(2)))
    rows = int(rng.choice([1, frames]))
    now, steps, columns, at = (channels, height, width), [], [], 0
    for _ in range(int(rng.integers(1, 6))):
        is_after_pad = bool(steps) and steps[-1][0] == STEP_KINDS.index("pad")
        kinds = ("crop", "resize") if is_after_pad and rng.random() < 0.6 else STEP_KINDS
        (kind, high, wide, *rest), numbers = random_step(rng, now, rows, kinds)
        if channels != 3 and kind == STEP_KINDS.index("gray"):
            continue
        steps.append([kind, at, high, wide, *rest])
        columns.append(numbers)
        at, now = at + numbers.shape[1], (channels, high, wide)
    if not steps:
        return []
    listed, numbers = np.array(steps, np.int64), np.concatenate([*columns, np.zeros((rows, 1))], 1)
    tables = rng.normal(size=(int(rng.choice([1, channels])), 256)).astype(np.float32)

    def whole(simd: int) -> np.ndarray:
        found = run_program(native, image, listed, numbers, None, simd)
        if found is None:
            return np.zeros(0)
        wanted = image
        for step in listed:
            if step[0] == STEP_KINDS.index("split") and wanted.flags.c_contiguous:
                continue
            wanted = run_program(native, wanted, step[None].copy(), numbers, None, simd)
            assert wanted is not None, "a step of a program that ran"
        assert np.array_equal(found, wanted), f"steps one by one: {listed.tolist()}"
        floats = run_program(native, image, listed, numbers, tables, simd)
        at = np.arange(channels)[:, None, None] % len(tables)
        assert floats is not None and np.array_equal(floats, tables[at, found]), "tables"
        return found

    odd, strange = listed.copy(), numbers.copy()
    edges = [-1, 0, 1, 2, 9, 10, 11, 15, 255, 1 << 15, 1 << 31, 1 << 40, -(1 << 62), (1 << 63) - 1]
    for _ in range(int(rng.integers(1, 4))):
        odd[int(rng.integers(len(odd))), int(rng.integers(7))] = rng.choice(edges)
        strange[int(rng.integers(rows)), int(rng.integers(strange.shape[1]))] = rng.choice(NO_NUMBERS)

    def wrong(simd: int) -> np.ndarray:
        for given, row in ((odd, numbers), (listed, strange), (odd, strange)):
            most = given[:, 2].clip(1, 300).max() * given[:, 3].clip(1, 300).max()
            out = like(image, int(given[-1, 2].clip(0, 300)), int(given[-1, 3].clip(0, 300)))
            scratch = np.empty(int(2 * channels * max(most, height * width) + 12 * (most + 2)), np.uint8)
            how = given, row, None, np.zeros(1, np.int64), scratch, True, simd
            with contextlib.suppress(ValueError):
                native.run_program(Tensor(out), Tensor(image), *how)
        return np.zeros(0)

    return [whole, wrong]


def run_sources(
    native: Any, out: np.ndarray, data: np.ndarray, facts: np.ndarray, steps: np.ndarray, *rest: Any
) -> np.ndarray | None:
    """Return the images after a program on those of different sizes, or None if the module declines it."""
    numbers, tables, interleaved, simd = rest
    done, counter = np.zeros(len(out), np.uint8), np.zeros(1, np.int64)
    pixels = int((steps[:, 2] * steps[:, 3]).max())
    scratch = np.empty(2 * out.shape[1] * pixels + 12 * (pixels + 2), np.uint8)
    how = done, counter, scratch, interleaved, True, simd
    code = native.run_sources(Tensor(out), data, facts, None, steps, numbers, tables, *how)
    assert not code or done.all()
    return out if code else None


def random_sources(native: Any, rng: np.random.Generator) -> list[Callable[[int], Any]]:
    """Return windows of images of different sizes and a step, compared with the functions of one image."""
    frames, channels, interleaved = int(rng.integers(1, 4)), int(rng.choice([1, 3, 4])), bool(rng.integers(2))
    images = [random_image(rng, 1, channels, size(rng), size(rng), interleaved) for _ in range(frames)]
    sizes, filter = np.array([x.shape[2:] for x in images]), int(rng.integers(5))
    flat = [(x.transpose(0, 2, 3, 1) if interleaved else x).reshape(-1) for x in images]
    ends = np.cumsum([0, *map(len, flat)])
    facts, data = np.column_stack([ends[:-1], ends[1:], sizes]), np.concatenate(flat)
    high, wide = size(rng), size(rng)
    numbers = np.empty((frames, 8))
    for row, (height, width) in zip(numbers, sizes.tolist(), strict=True):
        x, y = int(rng.integers(width)), int(rng.integers(height))
        row[:4] = x, y, int(rng.integers(x + 1, width + 1)), int(rng.integers(y + 1, height + 1))
        row[4:6] = (size(rng), size(rng)) if rng.random() < 0.7 else (row[3] - row[1], row[2] - row[0])
        row[6:] = rng.integers(-30, 40, 2)
    color = int(rng.integers(1 << 8 * channels)) * int(rng.integers(2))
    steps = [[WINDOW, 0, high, wide, filter | color << 8, 0, 0]]
    if rng.integers(2):
        (kind, more_high, more_wide, *rest), more = random_step(rng, (channels, high, wide), frames)
        if channels == 3 or kind != 5:  # gray
            steps.append([kind, 8, more_high, more_wide, *rest])
            numbers = np.concatenate([numbers, more], 1)
    listed = np.array(steps, np.int64)
    splits = len(steps) > 1 and STEP_KINDS[steps[1][0]] == "split"
    shape = frames, channels, *steps[-1][2:4]
    is_out_interleaved = interleaved and not splits

    def empty(number: int, high: int, wide: int, is_interleaved: bool = is_out_interleaved) -> np.ndarray:
        if is_interleaved:
            return np.full((number, high, wide, channels), 77, np.uint8).transpose(0, 3, 1, 2)
        return np.full((number, channels, high, wide), 77, np.uint8)

    def windows(simd: int) -> np.ndarray:
        how = facts, listed, numbers, None, interleaved, simd
        found = run_sources(native, empty(frames, *shape[2:]), data, *how)
        if found is None:
            assert len(steps) > 1, "a window is declined"
            return np.zeros(0)
        for i, (image, row) in enumerate(zip(images, numbers, strict=True)):
            target_high, target_wide, left, top = row[4:8].astype(int)
            resized = empty(1, target_high, target_wide, interleaved)
            box = row[None, :4].astype(np.int64)
            given = Tensor(resized), Tensor(image), box, FILTERS[filter], True, simd
            if not native.resized_crops(*given):  # one pixel has both memory formats
                continue
            wanted = empty(1, high, wide, interleaved)
            wanted[:] = [[[[color >> 8 * c & 255]] for c in range(channels)]]
            y0, x0 = max(top, 0), max(left, 0)
            part = resized[..., y0 : max(top + high, 0), x0 : max(left + wide, 0)]
            if part.size:
                wanted[..., y0 - top :, x0 - left :][..., : part.shape[2], : part.shape[3]] = part
            if len(steps) > 1:
                wanted = run_program(native, wanted, listed[1:].copy(), numbers[i : i + 1].copy(), None, simd)
                if wanted is None:
                    continue
            assert np.array_equal(found[i], wanted[0]), f"windows: {listed.tolist()}, {row.tolist()}"
        return found

    wrong_facts, wrong_numbers = facts.copy(), numbers.copy()
    wrong_facts[int(rng.integers(frames)), int(rng.integers(4))] = rng.choice(
        [-1, 0, 1, len(data) + 1, 1 << 31, 1 << 62, -(1 << 62)]
    )
    wrong_numbers[int(rng.integers(frames)), int(rng.integers(8))] = rng.choice(
        [np.nan, np.inf, -1, 0.5, 1e300, 1 << 41, -(1 << 41), 0, 300]
    )

    def wrong(simd: int) -> np.ndarray:
        for some_facts, some_numbers in ((wrong_facts, numbers), (facts, wrong_numbers)):
            with contextlib.suppress(ValueError):
                how = some_facts, listed, some_numbers, None, interleaved, simd
                run_sources(native, empty(frames, *shape[2:]), data, *how)
        return np.zeros(0)

    return [windows, wrong]


MAKERS = (
    random_resample,
    random_color,
    random_levels,
    random_moves,
    random_tensors,
    random_programs,
    random_sources,
)


def check_random_calls(native: Any, calls: int, seed: int = 0) -> int:
    """Check that every SIMD level gives the bits of portable C; float resampling fuses products and sums: within 1e-4."""
    rng, made, turn = np.random.default_rng(seed), 0, 0
    with np.errstate(all="ignore"):
        while made < calls:
            maker, turn = MAKERS[turn % len(MAKERS)], turn + 1
            resamples = maker is random_resample
            for call in maker(native, rng):
                wanted = call(0)
                for simd in range(1, native.simd_level() + 1):
                    found = call(simd)
                    if resamples and found.dtype != np.uint8:
                        close = np.isclose(found, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)
                        assert (close | ~np.isfinite(wanted)).all(), f"{maker.__name__}: SIMD level {simd}"
                    else:
                        assert np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f"), (
                            f"{maker.__name__}: SIMD level {simd}"
                        )
                made += 1 + native.simd_level()
    return made


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    if len(sys.argv) > 2:
        module = load(sys.argv[2])
    else:
        module = load(installed())
    print(f"{sum(check_wrong_calls(module, name) for name in right_calls())} wrong calls raised")
    print(f"{check_random_calls(module, count)} random calls agree on SIMD levels 0 to {module.simd_level()}")
