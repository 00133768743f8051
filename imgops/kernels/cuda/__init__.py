"""Kernels for CUDA, in Triton: the same families, names and arguments as in ``kernels/cpu``.

Triton is imported when the first of these kernels runs. If Triton is missing, or cannot run on the device,
the decomposition of an operator computes the same result on the device. A kernel returns ``NotImplemented``
for inputs that it leaves to the decomposition.
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
    """The kernel ``"family.name"``, called with ``(out, *args)`` or, where the operator mutates, ``(*args)``.

    Parameters on the CPU are moved to the device before the kernel gets them.
    """

    def __init__(self, path: str) -> None:
        family, _, self.__name__ = path.partition(".")
        self.__module__ = f"{__name__}.{family}"

    @cached_property
    def function(self) -> Function:
        """The function of the family's module, which the first call imports together with Triton."""
        function: Function = getattr(import_module(self.__module__), self.__name__)
        return function

    def __call__(self, *args: Any) -> Any:
        device = args[0].device
        if not runs_on(device):
            return NotImplemented
        args = transfer.move_arguments(device, args)
        if device.type != "cuda":  # Triton's interpreter runs the kernel on the CPU
            return self.function(*args)
        with torch.cuda.device(device):
            return self.function(*args)


@cache
def runs_on(device: torch.device) -> bool:
    """Return whether Triton can run kernels on a device; tried once.

    On the CPU only Triton's interpreter can.
    """
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
    except Exception as error:  # whatever fails, such as an old driver or device, ATen still works
        _slow_path.warn(f"Triton does not run on {device}, so ATen does the work ({error})")
        return False
