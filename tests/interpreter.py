"""Triton's interpreter, which runs the CUDA kernels on the CPU: save half of its time."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any


def prepare() -> None:
    """Skip work of the interpreter that changes no result.

    For each sum and product the interpreter computes whether the integers overflow, and then drops the answer, because
    it asserts only in kernels compiled for debugging. To look up a dtype it makes a table of all of them.
    These are private names of Triton: if one changes, no test can start.
    """
    try:
        from triton.runtime import interpreter
    except ImportError:
        return
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)

    look_up = interpreter._get_np_dtype
    looked_up = functools.cache(look_up)
    scalar = interpreter.tl.dtype  # its subclasses, pointers and blocks, have no hash

    def dtype_of(dtype: Any) -> Any:
        return (looked_up if type(dtype) is scalar else look_up)(dtype)

    interpreter._get_np_dtype = dtype_of
