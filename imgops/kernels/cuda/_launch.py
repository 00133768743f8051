"""Launch of Triton kernels, in one place, so that the options that affect bits are set once."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from imgops.kernels.cuda._packed import Packed

#: The number of values of a program, and the most values of a row of its tile.
TILE, WIDEST = 4096, 1024


@triton.jit
def _one(out):
    tl.store(out, 1)


#: Whether ``TRITON_INTERPRET=1`` was set before Triton was imported, so that kernels run on the CPU.
INTERPRETED = isinstance(_one, InterpretedFunction)


def inline(function: Any) -> Any:
    """Decorate a function that kernels call.

    For the interpreter the function stays plain Python: entering a jitted function would take longer than
    running it.
    """
    return function if INTERPRETED else triton.jit(function)


def launch(kernel: Any, programs: int, *args: Any, warps: int = 4, **constants: Any) -> None:
    """Queue ``programs`` programs of a kernel on the current stream.

    The compiler must not fuse a product and a sum, which would round once instead of twice: a kernel that
    needs fused operations asks for them. A kernel with a constant ``PACKED`` takes packed images in the place
    of its second argument, a batch.
    """
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
    launch(_one, 1, out)
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
