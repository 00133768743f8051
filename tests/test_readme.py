"""The README: its examples run as printed, its table agrees with the registry."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import imgops
import imgops.transforms
from tests.specs import __main__ as operator_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", README, re.S)


def test_example_runs_as_printed(tmp_path: Path) -> None:
    code = CODE[0]
    assert len(code.strip().splitlines()) <= 15
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "torch.Size([3, 64, 64]) tensor(True)\n"


@pytest.mark.parametrize("i", range(1, len(CODE)))
def test_other_examples_run(i: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE[i]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr


def test_the_transforms_are_all_named() -> None:
    from imgops import transforms

    table = re.search(r"<!-- transforms -->\n(.*?)<!-- /transforms -->", README, re.S)
    assert table is not None
    cells = [line.split("|")[1] for line in table.group(1).strip().splitlines()[2:]]
    assert sorted(re.findall(r"\w+", " ".join(cells))) == sorted(transforms.OURS)


def test_table_is_the_registry() -> None:
    assert operator_table.current() == operator_table.table(), "run python -m tests.specs"


def test_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"make ([a-z]+(?:-[a-z]+)?)", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert named <= targets
    assert {"demo", "test", "lint", "bench", "help"} <= targets


def test_links_lead_somewhere() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
            assert target.startswith("http") or (ROOT / target).exists(), f"{page}: {target}"


FUNCTIONS = {n: getattr(imgops, n) for n in imgops.__all__ if inspect.isfunction(getattr(imgops, n))}


OTHERS = {"check_operator": imgops.testing.check_operator, "seeded": imgops.transforms.seeded}


@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS])
def test_docstring_examples(name: str) -> None:
    function = FUNCTIONS.get(name) or OTHERS[name]
    runner = doctest.DocTestRunner()
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name)
    assert test.examples
    assert runner.run(test).failed == 0


def test_changelog_has_unreleased() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()


def test_the_number_of_added_transforms() -> None:
    from imgops import transforms

    assert f"**{len(transforms.ADDED)} transforms that torchvision does not have**" in README
