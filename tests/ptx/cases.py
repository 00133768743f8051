"""The calls that ``python -m tests.ptx`` makes: each compares a compiled kernel, run on the CPU, with the CPU's own kernel.

Of images of more than 2**31 values, only the pages of the values that are looked at take memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops._operator import record
from imgops._operator.record import Operator, operators
from imgops.kernels.cuda._packed import Packed
from tests import kernel_calls as kernels
from tests.kernel_calls import by_host, by_kernel, operator_of, tolerance
from tests.packed_calls import OF_KERNELS, packed_arguments, row_of
from tests.ptx import budgets, rows
from tests.ptx.machine import Machine
from tests.specs import OPERATORS, Sample
from tests.specs._maker import Maker
from tests.specs._spec import EXACT, Tolerance
from tests.specs.color_space import tolerances

LEVELS = (torch.uint8, torch.float32)


class Case(NamedTuple):
    """A call: its name, the operator, and a function that raises an AssertionError if the result is wrong."""

    text: str
    name: str
    check: Callable[[], None]


# -- samples, and the rows whose instructions are counted ---------------------------------------------------


def samples(every: bool) -> Iterator[Case]:
    """Yield the samples of each operator that has a kernel for CUDA, in several dtypes and layouts, or only the first."""
    formats = [(torch.uint8, "interleaved"), (torch.uint8, "planar"), (torch.float32, "planar")]
    formats += [(torch.float32, "sliced"), (torch.uint16, "planar")]
    first = [spec.samples[0] for spec in OPERATORS.values()]
    chosen = (*kernels.KERNELS, *kernels.ROWS, *kernels.COMPILED)
    for sample in chosen if every else [s for s in kernels.KERNELS if s in first]:
        for dtype, layout in formats if every else formats[:1]:
            if dtype in sample.dtypes:
                check = partial(kernels.check_kernel, sample, Maker(dtype, layout, (2,)))
                yield Case(f"{sample} {dtype} {layout}", f"imgops::{sample.op}", check)


def calls() -> Iterator[Case]:
    """Yield calls on images whose rows are divisible by 16, and not, which compile to other widths of access."""
    for side in (64, 37):
        for dtype in rows.DTYPES:
            for layout in rows.LAYOUTS:
                for call in rows.calls(dtype, layout, side):
                    own = tolerance(call.qualified.partition("::")[2], rows.DTYPES[dtype])
                    if call.operator == "cvt_color":
                        own = tolerances(call.arguments[1]).get(rows.DTYPES[dtype], EXACT)
                    if call.operator.startswith(("warp_", "remap")) and dtype != "uint8":
                        own = Tolerance(max(own.real, 1e-4))  # coordinates round more in larger images
                    check = partial(_compare, record.table[call.qualified], call.arguments, own)
                    yield Case(f"{call.name} {dtype} {layout} {side}", call.qualified, check)


def _compare(operator: Operator, args: Any, allowed: Tolerance, near: Any = None) -> None:
    found, wanted = by_kernel(operator, args), by_host(operator, args if near is None else near)
    allowed.check(found.contiguous(), wanted.contiguous())


def counts(machine: Machine, packed: bool) -> Iterator[Case]:
    """Yield the rows, whose instructions must be within their budget, and which may not spill registers."""
    for dtype in rows.DTYPES:
        for layout in rows.LAYOUTS:
            for call in (rows.packed_calls if packed else rows.calls)(dtype, layout):

                def check(call: rows.Call = call, dtype: str = dtype, layout: str = layout) -> None:
                    found = budgets.excess(call.name, dtype, layout, budgets.measure(machine, call))
                    assert not found, found

                yield Case(f"{call.name} {dtype} {layout}", call.qualified, check)


# -- pixels that are far apart, and packed images at the end of a buffer -------------------------------------


def _far(image: Tensor, axis: int) -> Tensor:
    """Return a view of the same values, in which steps along an axis together exceed 31 bits, but none alone."""
    size, steps, dense = image.shape[axis], [0] * image.ndim, 1
    for i in sorted(range(image.ndim), key=lambda i: (image.stride(i), image.shape[i])):
        if i != image.ndim + axis:
            steps[i] = dense
            dense *= max(image.shape[i], 1)
    steps[axis] = max(2**31 // (size - 1) + 64, dense) if size > 2 else dense
    extent = sum((n - 1) * s for n, s in zip(image.shape, steps, strict=True)) + 1
    return torch.empty(max(extent, 1), dtype=image.dtype).as_strided(image.shape, steps).copy_(image)


def views(dtype: torch.dtype, axis: int) -> Iterator[Case]:
    """Yield the first sample of each operator that has a kernel for CUDA, and the first nearest one, as views."""
    maker = Maker(dtype, "planar", (2,))
    first = {(s.op, "nearest" in s.id): s for s in reversed(kernels.KERNELS) if dtype in s.dtypes}
    each = [(operator_of(sample), kernels.arguments(sample, maker)) for sample in first.values()]
    image, chosen = maker.image(3, 6, 9, 0, 1), torch.tensor([True, False])
    for name, rest in (("flip_chosen", [-1]), ("gray_chosen", [])):
        each.append((record.table[f"imgops_transforms::{name}"], [image, chosen, *rest]))
    for operator, args in each:

        def check(operator: Operator = operator, args: Any = args) -> None:
            cores = getattr(operator.vmap, "core", ())
            images = {
                i for i, a in enumerate(args) if isinstance(a, Tensor) and (i >= len(cores) or cores[i] == 3)
            }
            near = [a.contiguous().clone() if isinstance(a, Tensor) else a for a in args]
            view = [_far(a, axis) if i in images else a for i, a in enumerate(args)]
            found, wanted = by_kernel(operator, view), by_host(operator, near)
            tolerance(operator.name, dtype).check(found.contiguous(), wanted.contiguous())

        yield Case(operator.name, operator.qualified, check)


def packed(dtype: torch.dtype) -> Iterator[Case]:
    """Yield the samples of each operator of packed images, of which the first is compared far behind in a buffer."""
    seen: set[str] = set()
    for sample in OF_KERNELS:
        if dtype in sample.dtypes:
            check = partial(_packed, sample, dtype, sample.op not in seen)
            seen.add(sample.op)
            yield Case(str(sample), f"imgops_packed::{sample.op}", check)


def _packed(sample: Sample, dtype: torch.dtype, is_far: bool) -> None:
    """Compare the kernel's result with the CPU's, or with its own for the same images at the beginning of their buffer."""
    images, given, args = packed_arguments(sample, dtype, dtype != torch.uint8 and not is_far)
    operator, row = operators("imgops_packed")[sample.op], row_of(sample)
    if not is_far:
        _compare(operator, args, tolerance(sample.op, dtype, sample.decomposed))
        return
    out, most = operator.fake(*args), images.sizes.amax(0).tolist()

    def placed(values: Tensor, pixels_before: int) -> tuple[Tensor, Packed]:
        channels = images.num_channels * values.numel() // images.data.numel()
        data = torch.empty(channels * pixels_before + values.numel(), dtype=dtype)
        data[channels * pixels_before :] = values
        offsets = images.offsets + images.num_channels * pixels_before
        batch = Packed(data, images.sizes, offsets, (len(images.sizes), channels, *most), False)
        return data[channels * pixels_before :], batch

    found = []
    for pixels_before in (0, 3 * 2**30 // images.num_channels):
        target: Any = torch.zeros_like(out)
        found.append(target)
        if row.packed.keeps_size:  # type: ignore[union-attr]
            found[-1], target = placed(target, pixels_before)
        _, source = placed(images.data, pixels_before)
        if row.cuda(target, source, *given) is NotImplemented:  # type: ignore[misc]
            raise NotImplementedError
    EXACT.check(*found)


# -- large images: only the last programs of each launch run -------------------------------------------------

#: The side of an image of three channels and more than 2**31 values, and the number of its last rows that have values.
SIDE, VALUES = 26800, 64
#: The number of programs of a launch that run.
PROGRAMS = 64


def _large_calls(height: int, dtype: torch.dtype) -> list[tuple[str, tuple[Any, ...]]]:
    """Return operators and their arguments after an image of this height, of which the last rows matter."""
    half, whole = torch.tensor(0.5, dtype=torch.float64), torch.tensor(True)
    shift = torch.tensor([[1.0, 0, 3], [0, 1, -2]], dtype=torch.float64)
    table = torch.arange(255, -1, -1, dtype=torch.uint8).expand(3, 256)
    matrix = torch.tensor([[0.5, 0.25, 0], [0, 0.5, 0.25], [0.25, 0, 0.5]])
    patch = torch.full((3, 20, 40), 200, dtype=torch.uint8).to(dtype)
    box = torch.tensor([SIDE - 60, height - 9, SIDE - 3, height])
    return [
        ("imgops::crop", (0, 0, SIDE, height)),
        ("imgops::pad", (None, 1, 0, 2, 1, "reflect")),
        ("imgops::paste", (patch, None, SIDE - 45, height - 22)),
        ("imgops::erase", (patch[:, :1, :1], box)),
        ("imgops_transforms::flip_chosen", (whole, -1)),
        ("imgops_transforms::gray_chosen", (whole,)),
        ("imgops::grayscale", (3,)),
        *((f"imgops::adjust_{what}", (half,)) for what in ("brightness", "saturation", "sharpness")),
        ("imgops::solarize", (half * 200,)),
        ("imgops::posterize", (torch.tensor(3),)),
        ("imgops::color_matrix", (matrix,)),
        ("imgops::filter2d", (torch.ones(3, 3) / 9, "reflect")),
        ("imgops::erode", (torch.ones(3, 3), "edge")),
        ("imgops::warp_affine", (shift, None, height, SIDE, "nearest", "edge")),
        ("imgops::warp_affine", (shift, None, height, SIDE, "bilinear", "edge")),
        *((("imgops::lut", (table,)),) if dtype == torch.uint8 else ()),
    ]


def large(dtype: torch.dtype) -> Iterator[Case]:
    for i, (name, _) in enumerate(_large_calls(VALUES, dtype)):
        for layout in rows.LAYOUTS:
            yield Case(f"{name} {layout}", name, partial(_large, i, dtype, layout))


def _large(i: int, dtype: torch.dtype, layout: str) -> None:
    """Compare what was written of the last rows; the rows above, which are 0 as new memory is, are not looked at."""
    dense = torch.empty((3, SIDE, SIDE) if layout == "planar" else (SIDE, SIDE, 3), dtype=dtype)
    image = dense if layout == "planar" else dense.permute(2, 0, 1)
    noise = torch.Generator().manual_seed(1)
    small = torch.randint(1, 256, (3, VALUES, SIDE), dtype=torch.uint8, generator=noise).to(dtype)
    image[:, -VALUES:] = small
    (name, args), (_, own) = (_large_calls(height, dtype)[i] for height in (SIDE, VALUES))
    operator, last = record.table[name], slice(-VALUES // 2, None)
    found = by_kernel(operator, (image, *args))[:, last]
    wanted = by_host(operator, (small, *own))[:, last]
    written = found != 0
    assert written.sum() >= 100, "the last rows have no values"
    tolerance(operator.name, dtype).check(found[written], wanted[written])


# -- kernels with faults that a GPU would hide or abort at ----------------------------------------------------


@triton.jit
def _copy(out, image, length, shift, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(image + at + shift), mask=at < length)


@triton.jit
def _sum(out, image, SIZE: tl.constexpr):
    x = tl.load(image + tl.arange(0, SIZE))
    tl.store(out, tl.sum(x * x + x))


@triton.jit
def _as_words(out, image, SIZE: tl.constexpr):
    words = (image + 1).to(tl.pointer_type(tl.int32))
    tl.store(out + tl.arange(0, SIZE), tl.load(words + tl.arange(0, SIZE)))


@triton.jit
def _first_of_both(a, b):
    return a[0] + b[0]


@triton.jit
def _tuples(out, image, SIZE: tl.constexpr, IS_MISTAKEN: tl.constexpr):
    x = tl.load(image)
    one = _first_of_both((x,), (x, x, x))
    if IS_MISTAKEN:
        one += _first_of_both((x, x), (x, x))
    else:
        one += _first_of_both((x, x), (x, x, x))
    tl.store(out, one)


def faults(machine: Machine) -> Iterator[Case]:
    """Yield kernels with faults, and what the machine must say of them."""
    image, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)

    def check(kernel: Any, wanted: str, *arguments: Any, SIZE: int = 64, **constants: Any) -> None:
        try:
            kernel[(1,)](*arguments, SIZE=SIZE, **constants, num_warps=1, enable_fp_fusion=False)
            said = ""
        except Exception as error:
            said = str(error.__cause__ or error)
        assert wanted in said and bool(wanted) == bool(said), f"{said!r} instead of {wanted!r}"

    def of_counts() -> None:
        check(_copy, "", out, image, 64, 0)
        count = machine.totals.count
        assert (count.read, count.written) == (256, 256) and 10 <= count.instructions < 10_000
        assert bool((out == image).all())

    def of_sum() -> None:
        total = torch.zeros(1)
        check(_sum, "", total, image.float())
        assert total == (image * image + image).sum()
        assert "fma" not in [*machine.totals.programs][-1].ptx, "a fused product"

    mistaken = "_first_of_both: Triton 3.6 mistakes tuples of [[1, 3], [2, 2]] for each other"
    yield Case("equal", "", of_counts)
    yield Case("sum", "", of_sum)
    for kernel, wanted, arguments, options in (
        (_copy, "_copy: a read outside of its tensors", (out, image, 64, 7), {}),
        (_copy, "_copy: a write outside of its tensors", (out[:40], image, 64, 0), {}),
        (_copy, "", (out, image[5:], 59, 0), {"SIZE": 32}),
        (_as_words, "_as_words: a misaligned access", (out, image.view(torch.uint8)), {"SIZE": 32}),
        (_tuples, "", (out, image), {"IS_MISTAKEN": False}),
        (_tuples, mistaken, (out, image), {"IS_MISTAKEN": True}),
    ):
        yield Case(wanted or kernel.__name__, "", partial(check, kernel, wanted, *arguments, **options))
