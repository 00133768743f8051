"""Declaration and launch of Triton kernels, in one place, so that the options that affect bits are set once.

Triton compiles a kernel for each combination of constants, dtypes and alignments, and by default also for each
integer that is 1 or divisible by 16. imgops' kernels are not specialized on integers, so that images of a new size
need no compilation. Properties of sizes and strides that matter for speed are constants, such as ``INTERLEAVED``.
Triton's own launch inspects each argument again, which takes longer than a small kernel; ``launch`` looks up the
compiled kernel with imgops' own key instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

from imgops.kernels.cuda._packed import Packed

#: The number of values of a program, and the largest number of values in a row of its tile.
TILE, WIDEST = 4096, 1024
#: The least and the greatest 32-bit integer; arguments beyond them need another kernel.
_LEAST, _MOST = -(2**31), 2**31 - 1


def kernel(tensors: int) -> Callable[[Any], Any]:
    """Decorate a kernel whose parameters are ``tensors`` tensors, then integers and floats, then constants.

    A kernel with a constant ``PACKED`` has two more tensors, ``sizes`` and ``starts``, which ``launch`` fills.
    """

    def declared(function: Any) -> Any:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if "constexpr" not in str(p.annotation)]
        is_packed = "PACKED" in function.__annotations__
        made: Any = triton.jit(do_not_specialize=names[tensors + 2 * is_packed :])(function)
        made.tensors, made.is_packed, made.plans = tensors, is_packed, {}
        made.constants = [p.name for p in parameters if "constexpr" in str(p.annotation)]
        return made

    return declared


@triton.jit
def _one(out):
    tl.store(out, 1)


#: Whether ``TRITON_INTERPRET=1`` was set before Triton was imported, so that kernels run on the CPU.
INTERPRETED = isinstance(_one, InterpretedFunction)


def inline(function: Any) -> Any:
    """Decorate a function that kernels call.

    For the interpreter the function remains a Python function, because the call of a jitted function would take
    longer than its execution.
    """
    return function if INTERPRETED else triton.jit(function)


def constant(function: Any) -> Any:
    """Decorate a function of constants and dtypes, whose result is a constant of the kernel that calls it."""
    return function if INTERPRETED else triton.constexpr_function(function)


def launch(kernel: Any, programs: int, *args: Any, warps: int = 4, **constants: Any) -> Any:
    """Queue ``programs`` programs of a kernel on the current stream of the current device.

    The compiler must not fuse a product and a sum, which would round once instead of twice; a kernel that needs fused
    operations requests them explicitly. A kernel with a constant ``PACKED`` takes packed images instead of its second
    argument, a batch. Return the values that ``Prepared`` keeps.
    """
    if not hasattr(kernel, "plans"):
        _launch_specialized(kernel, programs, args, warps, constants)
        return None
    if not programs:
        return None
    count = kernel.tensors
    tensors = args[:count]
    if kernel.is_packed:
        image = tensors[1]
        if isinstance(image, Packed):
            pair, constants["PACKED"] = (image.sizes, image.offsets), image.kind
            tensors = tuple(x.data if isinstance(x, Packed) else x for x in tensors)
        else:
            pair, constants["PACKED"] = (image, image), ""
        tensors += pair
        args = tensors + args[count:]
    numbers = args[len(tensors) :]
    key = (
        tensors[0].device.index,
        warps,
        (max(numbers, default=0) > _MOST or min(numbers, default=0) < _LEAST)
        and tuple(not _LEAST <= number <= _MOST for number in numbers),
        *constants.items(),
        *((x.dtype, x.data_ptr() & 15 == 0) for x in tensors),
    )
    plan = kernel.plans.get(key)
    if plan is None or triton.knobs.runtime.launch_enter_hook.calls:  # Triton calls a profiler's hooks
        compiled = kernel[(programs,)](*args, num_warps=warps, enable_fp_fusion=False, **constants)
        if compiled is not None:  # the interpreter has no compiled kernels
            plan = kernel.plans[key] = compiled, tuple(constants[name] for name in kernel.constants), key[0]
        return plan
    _start(plan, programs, args)
    return plan


def _start(plan: tuple[Any, Any, int | None], programs: int, args: tuple[Any, ...]) -> None:
    """Queue a compiled kernel, as the end of ``JITFunction.run`` does."""
    compiled, last, device = plan
    stream = triton.runtime.driver.active.get_current_stream(device)
    # The three None arguments are for a profiler's hooks.
    start = programs, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None
    compiled.run(*start, *args, *last)


class Prepared:
    """A launch that is complete except for its tensors and the first of its numbers.

    The tensors of each call must have the same dtypes, device and alignment, and must not be packed images. A cache
    of ``Prepared`` objects must use these properties as its key.
    """

    def __init__(self, kernel: Any, programs: int, *numbers: Any, warps: int = 4, **constants: Any) -> None:
        self.kernel, self.programs, self.numbers = kernel, programs, numbers
        self.warps, self.constants, self.plan = warps, constants, None

    def __call__(self, *tensors: Tensor, numbers: tuple[Any, ...] = ()) -> None:
        if self.plan is None or triton.knobs.runtime.launch_enter_hook.calls:
            args = *tensors, *numbers, *self.numbers
            self.plan = launch(self.kernel, self.programs, *args, warps=self.warps, **self.constants)
            return
        image = tensors[1]
        pair = (image, image) if self.kernel.is_packed else ()
        _start(self.plan, self.programs, (*tensors, *pair, *numbers, *self.numbers))


#: The launches that ``prepared`` keeps, and their largest number.
_kept: dict[tuple[Any, ...], Any] = {}
_MOST_KEPT = 1024


def prepared(key: tuple[Any, ...], device: torch.device, make: Callable[[], Any]) -> Any:
    """Return the result of ``make``, such as a ``Prepared``; the latest results are cached.

    ``key`` must contain everything that the launch depends on: an operator, sizes, strides, dtypes, alignments.
    """
    key = (*key, device.index)
    found = _kept.get(key)
    if found is None:
        found = _kept[key] = make()
        if len(_kept) > _MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
    return found


def _launch_specialized(kernel: Any, programs: int, args: Any, warps: int, constants: dict[str, Any]) -> None:
    """Queue programs of a kernel that Triton specializes on its integers."""
    if "PACKED" in kernel.arg_names:
        image = args[1]
        here = {"sizes": image, "starts": image, "PACKED": ""}
        constants |= image.place if isinstance(image, Packed) else here
        args = tuple(x.data if isinstance(x, Packed) else x for x in args)
    if programs:
        kernel[(programs,)](*args, num_warps=warps, enable_fp_fusion=False, **constants)


def probe(device: torch.device) -> bool:
    """Compile and run the smallest kernel."""
    out = torch.zeros((), dtype=torch.int32, device=device)
    _one[(1,)](out)
    return True


def tile(length: int, values: int = TILE, widest: int = WIDEST) -> tuple[int, int]:
    """Return the rows and columns of a tile for rows of ``length`` values; both are powers of two."""
    columns = max(16, min(triton.next_power_of_2(max(length, 1)), widest))
    return max(1, values // columns), columns


def blocks(*sizes: tuple[int, int]) -> int:
    """Return how many tiles cover ``(size, step)`` along each axis."""
    count = 1
    for size, step in sizes:
        count *= -(-size // step)
    return count


def is_aligned(tensor: Tensor, *numbers: int) -> bool:
    """Return whether the start of the memory and each number of values are multiples of 16 bytes."""
    size = tensor.element_size()
    return tensor.data_ptr() % 16 == 0 and all(n * size % 16 == 0 for n in numbers)
