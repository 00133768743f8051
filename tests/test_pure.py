"""A process without the native modules has the pixels, draws, strides and errors of one that has them."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from imgops._common import memory
from tests.rows_program import results
from tests.tiers import nightly_unless

ROOT = Path(__file__).parent.parent


def differs(wanted: tuple[str, list[Any]], found: tuple[str, list[Any]]) -> str:
    """Return how a result differs from another, "" if it does not: integers to the bit, floats by 1e-6."""
    if wanted[0] != found[0]:
        return f"{found[0]}, not {wanted[0]}"
    for (about, ours), (other, theirs) in zip(wanted[1], found[1], strict=True):
        if about != other:
            return f"{other}, not {about}"
        if isinstance(ours, Tensor) and not _is_near(ours, theirs):
            return f"other values of {about}, up to {(ours.double() - theirs.double()).abs().max()}"
    return ""


def _is_near(ours: Tensor, theirs: Tensor) -> bool:
    if not ours.is_floating_point():
        return torch.equal(ours, theirs)
    scale = max(1.0, float(ours.nan_to_num(0, 0, 0).abs().amax())) if ours.numel() else 1.0
    step = max(1e-6, torch.finfo(ours.dtype).eps)  # half precision is rounded once
    return torch.allclose(ours.double(), theirs.double(), rtol=0, atol=scale * step, equal_nan=True)


def test_a_variable_of_the_environment_is_checked_in_every_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imgops._common._memory", None)
    monkeypatch.setenv("IMGOPS_MEMORY_POOL", "1e9")
    with pytest.raises(ValueError, match="IMGOPS_MEMORY_POOL must be a number of bytes, got '1e9'"):
        runpy.run_path(memory.__file__)


PARTS = "operators", "errors", "transforms", "files", "pipelines", "some graphs"


@pytest.mark.needs("native")
@pytest.mark.parametrize(
    ("parts", "step"),
    nightly_unless(lambda row: row[1] > 1, [(PARTS[:4], 59), (PARTS, 1), (("graphs",), 1)]),
    ids=["some", "all", "graphs"],
)
def test_each_row(parts: tuple[str, ...], step: int, tmp_path: Path) -> None:
    file = tmp_path / "rows.pt"
    program = [sys.executable, "-m", "tests.rows_program", str(file), str(step), *parts]
    with subprocess.Popen(program, cwd=ROOT, env={**os.environ, "IMGOPS_QUIET": "1"}) as process:
        wanted = results(list(parts), step)
        assert process.wait() == 0
    found = torch.load(file, weights_only=False)
    assert set(found.pop("comparisons", ())) <= set(found.pop("shown", ())), "a comparison is not shown"
    assert wanted.keys() == found.keys() and len(wanted) > 50
    differences = ((name, map(differs, runs, found[name])) for name, runs in wanted.items())
    wrong = [f"{name}: {text}" for name, texts in differences for text in texts if text]
    assert not wrong, "\n".join(wrong[:20])
