"""Results of the rows of ``tests/same.py`` without the native modules: ``python -m tests.rows_program FILE STEP PART ...``.

``tests/test_pure.py`` compares them with the results of a process that has the modules.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

NATIVE = (
    *("imgops.kernels.cpu._native", "imgops.kernels.cpu._native_jpeg"),
    *("imgops.transforms._core._draws", "imgops._common._memory"),
)
if __name__ == "__main__":
    sys.modules |= dict.fromkeys(NATIVE)

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

import imgops
from imgops._common import compare
from tests import same
from tests.specs import SPECS


def errors() -> Iterator[same.Row]:
    for name, spec in SPECS.items():
        for error in spec.errors:
            image = torch.ones(2, 3, 5, 6, dtype=error.dtype)
            yield f"{name}, {error}", lambda e=error, x=image: e.call(x)


PARTS: dict[str, Callable[[], Iterator[same.Row]]] = {
    **same.PARTS,
    "errors": errors,
    "some graphs": lambda: same.graphs(step=16),
}


def kept(value: Any) -> tuple[str, Any]:
    """Return all about a leaf of a result that must be the same, and its values."""
    if isinstance(value, Tensor):
        fields = [str(getattr(value, name, "")) for name in ("format", "canvas_size")]
        about = f"{type(value).__name__} {value.dtype} {tuple(value.shape)} {value.stride()} {fields}"
        return about, value.detach().as_subclass(Tensor).clone()
    if isinstance(value, PIL.Image.Image):
        return f"PIL {value.mode}", torch.from_numpy(np.array(value))
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.strides}", torch.from_numpy(np.ascontiguousarray(value))
    return repr(value), None


def results(parts: list[str], step: int) -> dict[str, list[Any]]:
    """Return the leaves of the result, and what else must be the same, for each seed and every ``step``-th row."""
    torch.set_num_threads(1)
    found: dict[str, list[Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parts:
            for name, call in islice(PARTS[part](), 0, None, step):
                for result, draws in same.outcomes(call):
                    leaves, structure = tree_flatten(result)
                    row = f"{structure} {draws}", [kept(leaf) for leaf in leaves]
                    found.setdefault(f"{part}: {name}", []).append(row)
    return found


if __name__ == "__main__":
    step = int(sys.argv[2])
    rows = results(sys.argv[3:], step)
    if step == 1:  # show_config makes all comparisons, which takes seconds
        rows["comparisons"] = [name for name, agrees in compare.results.items() if agrees]
        rows["shown"] = list(imgops.show_config("dicts")["compared with the installed library"])
    torch.save(rows, sys.argv[1])
