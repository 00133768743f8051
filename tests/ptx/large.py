"""``python -m tests.ptx.large``: the compiled kernels on images of more than 2**31 values, of which a few are looked at.

Only the pages of the values that are looked at take memory. The results are compared with those of the CPU's kernels on
small images. ``--far`` chooses what is large:

- planes, rows, columns: an image of a sample is a view, whose pixels are far apart in this direction;
- packed: packed images lie at the end of a large buffer;
- dense: images are large themselves, and only the last programs of each launch run.

Each case that differs, or that accesses memory which is not its own, is printed; the last line counts all.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import argparse
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

import imgops.transforms  # noqa: F401  (registers its operators)
from imgops._operator import record
from imgops._operator.record import Contract, Operator, operators
from imgops.extend.testing import cuda_kernel
from imgops.kernels.cuda._packed import Packed
from tests.packed_calls import OF_KERNELS, packed_arguments, row_of
from tests.ptx import machine
from tests.ptx.machine import on_ptx
from tests.specs import OPERATORS, SPECS, Sample
from tests.specs._maker import Maker
from tests.specs._spec import EXACT

#: The directions in which pixels are far apart, by their axis.
AXES = {"planes": -3, "rows": -2, "columns": -1}
#: What a kernel's call is named, and a function that returns how its result differs, or an empty text.
Case = tuple[str, Callable[[], str]]


def tolerance_of(name: str, dtype: torch.dtype) -> Any:
    spec = SPECS.get("grayscale" if name == "gray_chosen" else name)
    return EXACT if spec is None else spec.decomposed.get(dtype, EXACT)


def apart(found: Tensor, wanted: Tensor, tolerance: Any = EXACT) -> str:
    try:
        tolerance.check(found.contiguous(), wanted.contiguous())
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


# -- pixels that are far apart -------------------------------------------------------------------------


def far(image: Tensor, axis: int) -> Tensor:
    """Return a view of the same values, in which steps along an axis together exceed 31 bits, but none alone."""
    size, steps, dense = image.shape[axis], [0] * image.ndim, 1
    for i in sorted(range(image.ndim), key=lambda i: (image.stride(i), image.shape[i])):
        if i != image.ndim + axis:
            steps[i] = dense
            dense *= max(image.shape[i], 1)
    steps[axis] = max(2**31 // (size - 1) + 64, dense) if size > 2 else dense
    extent = sum((n - 1) * s for n, s in zip(image.shape, steps, strict=True)) + 1
    view = torch.empty(max(extent, 1), dtype=image.dtype).as_strided(image.shape, steps)
    return view.copy_(image)


def views(dtype: torch.dtype, axis: int, quick: bool = False) -> Iterator[Case]:
    """Yield the first sample of each operator that has a kernel for CUDA; ``quick``: one of each module of kernels."""
    seen: set[str] = set()
    for name, spec in OPERATORS.items():
        samples = [s for s in spec.samples if dtype in s.dtypes]
        family = getattr(spec.operator.cuda, "__module__", name) if quick else name
        if spec.operator.cuda is not None and samples and family not in seen:
            seen.add(family)
            call = samples[0].checked(Maker(dtype, "planar", (2,)))
            args = [*call.op_args, *call.op_keywords.values()]
            yield name, lambda o=spec.operator, a=args: of_view(o, a, axis, dtype)  # type: ignore[misc]
    image = Maker(dtype, "planar", (2,)).image(3, 6, 9, 0, 1)
    for name, rest in (("flip_chosen", (-1,)), *(() if quick else (("gray_chosen", ()),))):
        operator = record.table[f"imgops_transforms::{name}"]
        args = [image, torch.tensor([True, False]), *rest]
        yield name, lambda o=operator, a=args: of_view(o, a, axis, dtype)  # type: ignore[misc]


def of_view(operator: Operator, args: list[Any], axis: int, dtype: torch.dtype) -> str:
    cores = getattr(operator.vmap, "core", ())
    images = {i for i, a in enumerate(args) if isinstance(a, Tensor) and (i >= len(cores) or cores[i] == 3)}
    near = [a.contiguous().clone() if isinstance(a, Tensor) else a for a in args]
    found = cuda_kernel(operator.qualified)(*(far(a, axis) if i in images else a for i, a in enumerate(args)))
    if operator.contract is Contract.FUNCTIONAL:
        wanted = operator.fake(*near)
        operator.kernel(wanted, *near)
    else:
        operator.kernel(*near)
        wanted = near[operator.mutated_indices[0]]
    return apart(found, wanted, tolerance_of(operator.name, dtype))


# -- packed images at the end of a buffer --------------------------------------------------------------


def packed(dtype: torch.dtype) -> Iterator[Case]:
    """Yield the first sample of each operator of packed images."""
    seen: set[str] = set()
    for sample in OF_KERNELS:
        if sample.op not in seen and dtype in sample.dtypes:
            seen.add(sample.op)
            yield sample.op, lambda s=sample: of_packed(s, dtype)  # type: ignore[misc]


def of_packed(sample: Sample, dtype: torch.dtype) -> str:
    """Compare the kernel's result with its own for the same images at the beginning of their buffer."""
    images, given, args = packed_arguments(sample, dtype, False)
    row, out = row_of(sample), operators("imgops_packed")[sample.op].fake(*args)
    shape = len(images.sizes), images.num_channels, *images.sizes.amax(0).tolist()

    def placed(values: Tensor, pixels_before: int) -> tuple[Tensor, Packed]:
        channels = images.num_channels * values.numel() // images.data.numel()
        data = torch.empty(channels * pixels_before + values.numel(), dtype=dtype)
        data[channels * pixels_before :] = values
        offsets = images.offsets + images.num_channels * pixels_before
        batch = Packed(data, images.sizes, offsets, (shape[0], channels, *shape[2:]), False)
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
    return apart(*found)


# -- large images --------------------------------------------------------------------------------------

#: The side of an image of three channels and more than 2**31 values, and the number of its last rows that have values.
SIDE, ROWS = 26800, 64
#: The number of programs of a launch that run.
PROGRAMS = 64


def large(dtype: torch.dtype) -> Iterator[Case]:
    half = torch.tensor(0.5, dtype=torch.float64)
    shift = torch.tensor([[1.0, 0, 3], [0, 1, -2]], dtype=torch.float64)
    table = torch.arange(255, -1, -1, dtype=torch.uint8).expand(3, 256)
    matrix = torch.tensor([[0.5, 0.25, 0], [0, 0.5, 0.25], [0.25, 0, 0.5]])
    patch = torch.full((3, 20, 40), 200, dtype=torch.uint8).to(dtype)
    each: list[tuple[str, Callable[[int], tuple[Any, ...]]]] = [
        ("crop", lambda height: (0, 0, SIDE, height)),
        ("pad", lambda height: (None, 1, 0, 2, 1, "reflect")),
        ("paste", lambda height: (patch, None, SIDE - 45, height - 22)),
        ("erase", lambda height: (patch[:, :1, :1], torch.tensor([SIDE - 60, height - 9, SIDE - 3, height]))),
        ("flip_chosen", lambda height: (torch.tensor(True), -1)),
        ("gray_chosen", lambda height: (torch.tensor(True),)),
        ("grayscale", lambda height: (3,)),
        ("adjust_brightness", lambda height: (half,)),
        ("adjust_saturation", lambda height: (half,)),
        ("adjust_sharpness", lambda height: (half,)),
        ("solarize", lambda height: (half * 200,)),
        ("posterize", lambda height: (torch.tensor(3),)),
        ("color_matrix", lambda height: (matrix,)),
        ("filter2d", lambda height: (torch.ones(3, 3) / 9, "reflect")),
        ("erode", lambda height: (torch.ones(3, 3), "edge")),
        ("warp_affine", lambda height: (shift, None, height, SIDE, "nearest", "edge")),
        ("warp_affine", lambda height: (shift, None, height, SIDE, "bilinear", "edge")),
        ("lut", lambda height: (table,)),
    ]
    for kind in ("nearest", "bilinear"):  # their results are small, so that all programs run
        yield f"resize {kind}", lambda k=kind: of_resize(k, dtype)  # type: ignore[misc]
    run_last_programs()
    for name, rest in each[: None if dtype == torch.uint8 else -1]:
        for interleaved in (False, True):
            text = f"{name} {'interleaved' if interleaved else 'planar'}"
            yield text, lambda n=name, r=rest, i=interleaved: of_large(n, r, dtype, i)  # type: ignore[misc]


def image_of(dtype: torch.dtype, interleaved: bool) -> Tensor:
    """Return an image whose values are 0, as those of new memory are, but for the last rows."""
    if interleaved:
        image = torch.empty((SIDE, SIDE, 3), dtype=dtype).permute(2, 0, 1)
    else:
        image = torch.empty((3, SIDE, SIDE), dtype=dtype)
    noise = torch.Generator().manual_seed(1)
    image[:, -ROWS:] = torch.randint(1, 256, (3, ROWS, SIDE), dtype=torch.uint8, generator=noise)
    return image


def of_large(name: str, rest: Callable[[int], tuple[Any, ...]], dtype: torch.dtype, interleaved: bool) -> str:
    """Compare what was written of the last rows; the rows above are not those of the small image."""
    space = "imgops_transforms" if name.endswith("_chosen") else "imgops"
    operator, image = record.table[f"{space}::{name}"], image_of(dtype, interleaved)
    small = image[:, -ROWS:].contiguous()
    found = cuda_kernel(operator.qualified)(image, *rest(SIDE))[:, -ROWS // 2 :]
    wanted = operator.fake(small, *rest(ROWS))
    operator.kernel(wanted, small, *rest(ROWS))
    wanted = wanted[:, -ROWS // 2 :]
    written = found != 0
    if written.sum() < 100:
        return "the last rows have no values"
    return apart(found[written], wanted[written], tolerance_of(name, dtype))


def of_resize(kind: str, dtype: torch.dtype) -> str:
    """Compare whole results, which are small, and for which only few pixels are read."""
    image, size = image_of(dtype, False), (12, 16)
    step = SIDE // size[0]
    for top in range(0, SIDE, step):
        for row in range(top + step // 2 - 2, min(top + step // 2 + 3, SIDE)):
            image[:, row] = torch.arange(SIDE) % 251
        image[:, top] = torch.arange(SIDE) % 241
    operator = operators()["resize"]
    wanted = operator.fake(image, None, *size, kind, False, None)
    operator.kernel(wanted, image, None, *size, kind, False)
    found = cuda_kernel("imgops::resize")(image, None, *size, kind, False)
    return apart(found, wanted, tolerance_of("resize", dtype))


def run_last_programs() -> None:
    """Let the machine run only the last programs of each launch that it compiles from now on."""
    kernel, begin = machine.Kernel, "u32 block = 0;"

    def translated(ptx: str, name: str) -> Any:
        source = kernel(ptx, name).source
        assert source.count(begin) == 1
        last = f"u32 block = blocks > {PROGRAMS} ? blocks - {PROGRAMS} : 0;"
        return SimpleNamespace(source=source.replace(begin, last))

    machine.Kernel = translated  # type: ignore[assignment,misc]


def cases(kind: str, dtype: torch.dtype, quick: bool = False) -> Iterator[Case]:
    if kind in AXES:
        return views(dtype, AXES[kind], quick)
    return packed(dtype) if kind == "packed" else large(dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--far", choices=(*AXES, "packed", "dense"), default="planes")
    parser.add_argument("--dtype", default="uint8")
    parser.add_argument("--quick", action="store_true", help="one operator of each module of kernels")
    options = parser.parse_args()
    counts = {"": 0, "left": 0, "differ": 0}
    with on_ptx(options.capability):
        for name, compare in cases(options.far, getattr(torch, options.dtype), options.quick):
            try:
                found = compare()
            except NotImplementedError:
                found = "left"
            except Exception as error:  # a fault of one kernel does not hide those of others
                found = f"{type(error).__name__}: {error}".split(", at")[0].splitlines()[0]
            counts[found if found in counts else "differ"] += 1
            if found not in counts:
                print(f"{name} {options.far} {options.dtype}: {found}", flush=True)
    print(f"{counts['']} equal, {counts['left']} left to ATen, {counts['differ']} differ")


if __name__ == "__main__":
    sys.exit(main())
