"""The compiled CUDA kernels, run on the CPU from their PTX (tests/ptx), and the launches of their calls.

The kernels run in processes of their own, because the other tests run Triton's interpreter in this one. Those are compiled
whose code has changed: before a commit since ``python -m tests.ptx first counts --write``, and every night since
``python -m tests.ptx KIND ... --all --write`` with all kinds, which takes half an hour.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from imgops._operator import record
from imgops.kernels import cuda
from tests.ptx import budgets, rows
from tests.tiers import nightly

needs_compilers = pytest.mark.skipif(
    find_spec("triton") is None or shutil.which("gcc") is None or sys.platform != "linux",
    reason="Triton compiles the kernels, and gcc what their PTX becomes",
)


def run(*options: str) -> None:
    """Compare the results of kernels; see ``python -m tests.ptx --help``."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.ptx", *options],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if "can't allocate memory" in done.stdout:
        pytest.skip("the system reserves no memory for images of this size")
    assert done.returncode == 0, done.stdout[-4000:]
    left = r"\d+" if {*options} & {"samples", "calls", "counts", "packed-counts"} else "0"
    equal = r"\d+" if "--changed" in options else r"[1-9]\d*"
    assert re.search(rf"^{equal} equal, {left} left to ATen, 0 differ$", done.stdout, re.M), done.stdout


@needs_compilers
def test_kernels_that_have_changed() -> None:
    """They have the results of the CPU's kernels, execute no more than before, and spill no registers."""
    if budgets.changed():
        run("first", "counts", "--changed")


@nightly
def test_the_record_is_that_of_the_code() -> None:
    assert not budgets.changed(), "python -m tests.ptx first counts --write"


@nightly
@needs_compilers
@pytest.mark.parametrize(
    "options",
    [
        *(f"samples --part {i}/8 --capability {c}" for i in range(8) for c in (80, 90)),
        *(f"counts --part {i}/8" for i in range(8)),
        *(f"packed-counts --part {i}/4" for i in range(4)),
        *("calls", "faults", "planes", "rows", "columns", "packed", "large"),
    ],
)
def test_all_kinds_of_kernels_that_have_changed(options: str) -> None:
    if budgets.changed("all"):
        run(*options.split(), "--changed", "--all")


# -- launches, of which none runs ------------------------------------------------------------------------

#: The most launches of a call after the first, of the operators that make more than one.
LAUNCHES = {
    **dict.fromkeys(("adjust_gamma", "box_blur", "resize", "warp_affine", "warp_perspective"), 2),
    **dict.fromkeys(("autocontrast", "color_sequence", "equalize", "gaussian_blur", "jpeg", "threshold"), 3),
    **dict.fromkeys(("clahe", "resized_crop"), 4),
}


class Launches:
    """Counts the launches, and the kernels that would be compiled for them, in the place of Triton."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [path.stem for path in Path(cuda.__file__).parent.glob("*.py") if path.stem != "__init__"]
        modules = {name: import_module(f"{cuda.__name__}.{name}") for name in names}
        self.count = 0
        self.plans: list[dict[Any, Any]] = []
        for kernel in {id(v): v for m in modules.values() for v in vars(m).values()}.values():
            if isinstance(getattr(kernel, "plans", None), dict):
                self.plans.append({})
                monkeypatch.setattr(kernel, "plans", self.plans[-1])
        for name in ("_launch", "_resampling_tables", "_color_tables"):
            monkeypatch.setattr(modules[name], "_kept", {})
        compiled = SimpleNamespace(function=0, packed_metadata=(), run=self._launched)
        triton = modules["_launch"].triton
        executor = triton.runtime.interpreter.GridExecutor
        monkeypatch.setattr(executor, "__call__", lambda *args, **options: self._launched() or compiled)
        driver = SimpleNamespace(get_current_stream=lambda device: 0)
        monkeypatch.setattr(triton.runtime.driver, "_active", driver)

    def _launched(self, *args: Any) -> None:
        self.count += 1

    @property
    def kernels(self) -> int:
        return sum(map(len, self.plans))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    if not cuda.runs_on(torch.device("cpu")):
        pytest.skip("Triton was imported without its interpreter")
    return Launches(monkeypatch)


def call(each: rows.Call) -> None:
    operator = record.table[each.qualified]
    assert operator.cuda is not None
    operator.cuda(operator.fake(*each.arguments), *each.arguments)


@pytest.mark.parametrize("calls", [rows.calls, rows.packed_calls])
def test_rows_have_all_arguments_of_their_operators(calls: Any) -> None:
    for each in calls("uint8", "planar"):
        space, _, name = each.qualified.partition("::")
        schema = getattr(getattr(torch.ops, space), name).default._schema
        assert len(each.arguments) == len(schema.arguments), each.name


def test_a_call_makes_few_launches(launches: Launches) -> None:
    """Tables that depend on sizes alone are made once."""
    for each in rows.calls("uint8", "planar", 48, 4):
        call(each)
        before = launches.count
        call(each)
        assert launches.count - before <= LAUNCHES.get(each.operator, 1), each.name


def test_changing_sizes_compile_few_kernels(launches: Launches) -> None:
    for side in range(20, 80, 6):
        for each in rows.calls("uint8", "planar", side, 1 + side % 5):
            call(each)
    assert launches.count > 500
    assert launches.kernels <= 160
