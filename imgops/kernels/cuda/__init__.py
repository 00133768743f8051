"""Kernels for CUDA, in Triton: the same families, names and arguments as in ``kernels/cpu``.

Triton is imported when the first of these kernels runs. If Triton is missing, or cannot run on the device,
the decomposition of an operator computes the same result on the device. A kernel returns ``NotImplemented``
for inputs that it leaves to the decomposition.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from subprocess import SubprocessError
from traceback import walk_tb
from typing import Any

import torch

from imgops._common import compare
from imgops._operator.record import Function
from imgops.kernels import transfer


class Kernel:
    """The kernel ``"family.name"``, called with ``(out, *args)`` or, where the operator mutates, ``(*args)``.

    All tensors are on the device of the first. With ``takes_packed``, one launch processes all images of a
    :class:`imgops.PackedImages`. If Triton cannot compile or launch the kernel there, imgops warns and uses the
    decomposition from then on.
    """

    def __init__(self, path: str, takes_packed: bool = False) -> None:
        family, _, self.__name__ = path.partition(".")
        self.takes_packed = takes_packed
        self.__module__ = f"{__name__}.{family}"
        self._failed: set[tuple[Any, ...]] = set()

    @cached_property
    def function(self) -> Function:
        """The function of the family's module, which the first call imports together with Triton."""
        function: Function = getattr(import_module(self.__module__), self.__name__)
        return function

    def __call__(self, *args: Any) -> Any:
        device = args[0].device
        if not runs_on(device) or (self._failed and _variant(args) in self._failed):
            return NotImplemented
        if device.type != "cuda":  # Triton's interpreter runs the kernel on the CPU
            return self.function(*args)
        try:
            if device.index == torch.cuda.current_device():
                return self.function(*args)
            with torch.cuda.device(device):
                return self.function(*args)
        except Exception as error:
            if _is_fault(error) or not _is_of_triton(error):
                raise
            name = f"{self.__module__.rpartition('.')[2]}.{self.__name__}"
            compare.warn(f"the kernel {name} does not run on {device}, so ATen does the work ({error})")
            if not _will_pass(error):
                self._failed.add(_variant(args))
            return NotImplemented


def _variant(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return everything except sizes that decides which code of a kernel runs, and where."""
    return args[0].device, args[0].dtype, *(a for a in args if isinstance(a, (str, bool)))


#: For each device that was tried, whether Triton can run kernels there.
_found: dict[torch.device, bool] = {}


def runs_on(device: torch.device) -> bool:
    """Return whether Triton can run kernels on a device; the first call tries it.

    On the CPU only Triton's interpreter can.
    """
    known = _found.get(device)
    return _try(device) if known is None else known


def _try(device: torch.device) -> bool:
    """Run the smallest kernel on a device, and remember whether it ran, unless the failure is temporary."""
    try:
        from imgops.kernels.cuda import _launch
    except ImportError:
        if device.type == "cuda":
            compare.warn(f"Triton is not installed, so ATen does the work on {device}")
        return _found.setdefault(device, False)
    if device.type == "cpu":
        return _found.setdefault(device, _launch.INTERPRETED)
    if transfer.is_capturing(device):  # the graph would record it; later launches show if Triton works
        return True
    try:
        with torch.cuda.device(device):
            return _found.setdefault(device, _launch.probe(device))
    except Exception as error:  # whatever failed, such as an old driver or device, ATen still works
        if _is_fault(error) and not _will_pass(error):
            raise
        compare.warn(f"Triton does not run on {device}, so ATen does the work ({error})")
        return False if _will_pass(error) else _found.setdefault(device, False)


#: Parts of CUDA's messages for errors after which a process can no longer use the device.
_BROKEN = (
    *("an illegal memory access", "an illegal instruction", "misaligned address", "device-side assert"),
    *(
        "unspecified launch failure",
        "the launch timed out",
        "hardware stack error",
        "invalid program counter",
    ),
    *("global/shared address space", "uncorrectable ECC", "context is destroyed"),
)


def _is_fault(error: Exception) -> bool:
    """Return whether an error must be raised, because ATen would fail too, or would only hide it.

    These are the errors of a device after a fault, maybe an earlier one; errors that break a capture; and PyTorch's
    out-of-memory errors.
    """
    if isinstance(error, (torch.AcceleratorError, torch.OutOfMemoryError)):
        return True
    return not _is_triton_error(error) and any(text in str(error) for text in (*_BROKEN, "captur"))


def _will_pass(error: Exception) -> bool:
    """Return whether the same call may succeed later: memory ran out, or a stream was being captured."""
    if _is_triton_error(error):
        return False
    return any(text in str(error) for text in ("out of memory", "captur"))


def _is_triton_error(error: Exception) -> bool:
    """Return whether an error is of one of Triton's classes, whose messages may quote the source of a kernel."""
    return type(error).__module__.partition(".")[0] == "triton"


def _is_of_triton(error: Exception) -> bool:
    """Return whether Triton, its compilers or the driver refused a kernel; other errors are bugs in imgops."""
    if _is_triton_error(error) or str(error).startswith("Triton Error"):
        return True
    if not isinstance(error, (RuntimeError, OSError, ImportError, SubprocessError)):
        return False
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return any(frame.f_globals.get("__name__", "").partition(".")[0] == "triton" for frame in frames)
