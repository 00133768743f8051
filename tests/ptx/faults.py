"""``python -m tests.ptx.faults``: kernels with faults that a GPU would hide or abort at, and what the machine says of them."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import torch
import triton
import triton.language as tl

from tests.ptx.machine import on_ptx

OPTIONS = {"num_warps": 1, "enable_fp_fusion": False}


@triton.jit
def _copy(out, image, length, shift, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(image + at + shift), mask=at < length)


@triton.jit
def _sum(out, image, SIZE: tl.constexpr):
    tl.store(out, tl.sum(tl.load(image + tl.arange(0, SIZE))))


@triton.jit
def _as_words(out, image, SIZE: tl.constexpr):
    words = (image + 1).to(tl.pointer_type(tl.int32))
    tl.store(out + tl.arange(0, SIZE), tl.load(words + tl.arange(0, SIZE)))


def said(kernel: object, *arguments: object, size: int, grid: int = 1) -> str:
    try:
        kernel[(grid,)](*arguments, SIZE=size, **OPTIONS)  # type: ignore[index]
    except RuntimeError as error:
        return str(error).split(", at")[0]
    return "fine"


def main() -> None:
    image, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    with on_ptx(90) as machine:
        print("equal:", said(_copy, out, image, 64, 0, size=64), bool((out == image).all()))
        print("last launch:", machine.totals.instructions, machine.totals.read, machine.totals.written)
        print("beyond the image:", said(_copy, out, image, 64, 7, size=64))
        print("beyond the result:", said(_copy, out[:40], image, 64, 0, size=64))
        print("a part of a tensor:", said(_copy, out, image[5:], 59, 0, size=32))
        print("sum:", said(_sum, out, image, size=64), out[0].item())
        print("bytes as words:", said(_as_words, out, image.view(torch.uint8), size=32))


if __name__ == "__main__":
    main()
