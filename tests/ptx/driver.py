"""A driver for Triton without a device: kernels are neither compiled nor run, but counted.

What remains of a call is Python's work, and the kernels that would have been compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction


@dataclass
class Launches:
    """The kernels that were compiled, by name, and the number of launches."""

    count: int = 0
    compiled: dict[str, set[Any]] = field(default_factory=dict)

    @property
    def kernels(self) -> int:
        return sum(map(len, self.compiled.values()))


class _Driver:
    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int | None) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind


@contextmanager
def mocked() -> Iterator[Launches]:
    """Count launches instead of making them; CPU tensors take the place of those on a device."""
    from imgops.kernels import cuda

    launches = Launches()

    class Compiled:
        function, packed_metadata = 0, ()

        def launch_metadata(self, *arguments: Any) -> None:
            return None

        def run(self, *arguments: Any) -> None:
            launches.count += 1

    def compiled(self: Any, key: Any, signature: Any, device: Any, *rest: Any) -> Compiled:
        made = self.device_caches[device][0][key] = Compiled()
        launches.compiled.setdefault(self.__name__, set()).add(key)
        return made

    before = JITFunction._do_compile, cuda.runs_on, driver._active  # type: ignore[attr-defined]
    driver.set_active(_Driver())
    JITFunction._do_compile, cuda.runs_on = compiled, lambda device: True  # type: ignore[method-assign,assignment]
    try:
        yield launches
    finally:
        JITFunction._do_compile, cuda.runs_on = before[:2]  # type: ignore[method-assign,assignment]
        driver._active = before[2]  # type: ignore[attr-defined]
