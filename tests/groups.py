"""Many calls in one graph, because most of the time of compiling a call alone goes to the graph, not to the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
import torch

from imgops._common.torch_private import CountingBackend

Call = Callable[..., Any]


def groups(values: Iterable[Any], size: int = 20, marks: Any = ()) -> list[Any]:
    """Return the values in lists of ``size``, each a parameter of a test with the name of its first value."""
    every = list(values)
    parts = [every[i : i + size] for i in range(0, len(every), size)]
    return [pytest.param(part, id=f"{_name(part[0])}..", marks=marks) for part in parts]


def _name(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def compiled(function: Call, backend: Any = "aot_eager", **options: Any) -> tuple[Call, CountingBackend]:
    """Return the function as one graph, and what counts its compilations."""
    torch.compiler.reset()
    counting = CountingBackend(backend)
    return torch.compile(function, fullgraph=True, backend=counting, **options), counting


def together(calls: Mapping[str, Call]) -> Callable[..., dict[str, Any]]:
    """Return a function of the results of all calls, which are made in their order, by name."""
    return lambda *inputs: {name: call(*inputs) for name, call in calls.items()}


def apart(calls: Mapping[str, Call]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function of the results of all calls, each of which has arguments of its own, by name."""
    return lambda inputs: {name: call(*inputs[name]) for name, call in calls.items()}


def compile_together(
    calls: Mapping[str, Call], backend: Any = "aot_eager", inputs: str = "shared", **options: Any
) -> tuple[Callable[..., dict[str, Any]], CountingBackend]:
    """Compile all calls as one graph; where this fails, the error names the call that fails alone.

    Args:
        calls (Mapping): a name for each call.
        backend (str or Callable): one of torch.compile's.
        inputs (str): "shared" if all calls have the same arguments, "own" for a mapping from names to arguments.
        options: of torch.compile.

    Returns:
        the compiled function, and what counts its compilations.
    """
    join = apart if inputs == "own" else together
    graph, counting = compiled(join(calls), backend, **options)

    def run(*args: Any) -> dict[str, Any]:
        try:
            return graph(*args)
        except Exception:
            for name, call in calls.items():
                try:
                    compiled(join({name: call}), backend, **options)[0](*args)
                except Exception as error:
                    raise AssertionError(f"{name} cannot be compiled") from error
            raise

    return run, counting
