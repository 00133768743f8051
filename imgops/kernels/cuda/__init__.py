"""Kernels for CUDA, in Triton: the same families, names and arguments as in ``kernels/cpu``.

Triton is imported when the first of them runs. Where it is missing, or cannot run on the device, an operator's
decomposition computes the same on the device. A kernel returns ``NotImplemented`` for what it leaves to that too.
"""

from __future__ import annotations

from functools import cache, cached_property
from importlib import import_module
from typing import Any

import torch

from imgops import _slow_path
from imgops._operators import Function
from imgops.kernels import transfer


class Kernel:
    """The kernel ``"family.name"``, of ``(out, *args)`` or, where the operator mutates, of ``(*args)``.

    Parameters on the CPU are on the device when the kernel gets them.
    """

    def __init__(self, path: str) -> None:
        family, _, self.__name__ = path.partition(".")
        self.__module__ = f"{__name__}.{family}"

    @cached_property
    def function(self) -> Function:
        """The function of the family's module, which the first call imports, and Triton with it."""
        function: Function = getattr(import_module(self.__module__), self.__name__)
        return function

    def __call__(self, *args: Any) -> Any:
        device = args[0].device
        if not runs_on(device):
            return NotImplemented
        args = transfer.move_arguments(device, args)
        if device.type != "cuda":  # the interpreter, on the CPU
            return self.function(*args)
        with torch.cuda.device(device):
            return self.function(*args)


@cache
def runs_on(device: torch.device) -> bool:
    """Whether Triton can run kernels on a device; tried once. On the CPU its interpreter may."""
    try:
        from imgops.kernels.cuda import _launch
    except ImportError:
        if device.type == "cuda":
            _slow_path.warn(f"Triton is not installed, so ATen does the work on {device}")
        return False
    if device.type == "cpu":
        return _launch.INTERPRETED
    try:
        with torch.cuda.device(device):
            return _launch.probe(device)
    except Exception as error:  # an old driver, a device too old: whatever it is, ATen still computes
        _slow_path.warn(f"Triton does not run on {device}, so ATen does the work ({error})")
        return False
