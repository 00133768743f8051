"""The README: its examples run as printed, and its table agrees with the registry."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

import imgops
import imgops.transforms
from tests.specs import __main__ as operator_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
TABLES = (ROOT / "docs" / "tables.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", README, re.S)


def run(code: str, folder: Path) -> str:
    # Without the last variable, albumentations asks for a newer version online.
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "NO_ALBUMENTATIONS_UPDATE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("i", range(len(CODE)))
def test_examples_run(i: int, tmp_path: Path) -> None:
    """The last is a tour in fifteen lines, which prints what they show."""
    out = run(CODE[i], tmp_path)
    assert ("stick" in CODE[i]) == (i == len(CODE) - 1)
    if "stick" in CODE[i]:
        assert len(CODE[i].strip().splitlines()) <= 15
        assert out == "torch.Size([3, 64, 64]) tensor(True)\n"


#: Runs files one after the other, each as a program in a folder of its own.
PROGRAM = """
import os, runpy
from importlib.util import find_spec
from pathlib import Path
for file in sorted(Path.cwd().glob("*.py")):
    folder = file.with_suffix("")
    folder.mkdir()
    os.chdir(folder)
    runpy.run_path(str(file), run_name="__main__")
"""


def test_examples_of_the_pages_run(tmp_path: Path) -> None:
    """Those of a page run one after the other, as they are read; the pages share a process, which imports PyTorch once."""
    for page in (ROOT / "docs").glob("*.rst"):
        found = re.findall(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", page.read_text(), re.M)
        code = "\n".join(textwrap.dedent(block) for block in found)
        if "import albumentations" in code and find_spec("albumentations") is None:
            continue
        code = code.replace("fullgraph=True)", 'fullgraph=True, backend="aot_eager")')
        (tmp_path / f"{page.stem}.py").write_text(code)
    run(PROGRAM, tmp_path)


def test_the_transforms_are_all_named() -> None:
    from imgops import transforms

    table = re.search(r"<!-- transforms -->\n(.*?)<!-- /transforms -->", TABLES, re.S)
    assert table is not None
    cells = [line.split("|")[1] for line in table.group(1).strip().splitlines()[2:]]
    assert sorted(re.findall(r"\w+", " ".join(cells))) == sorted(transforms.OURS)


def test_every_cell_of_the_comparison_has_its_proof() -> None:
    rows = [line.strip("| ").split(" | ") for line in README.splitlines() if line.startswith("| ")]
    head, *peers = [row for row in rows if len(row) == 8 or row[0] == "same pixels"]
    assert len(head) == 7 and [re.sub(r"\W", "", row[0])[:8] for row in peers] == [
        *("imgops", "torchvis", "kornia", "albument", "CVCUDA", "DALI")
    ]
    assert [cell for row in peers for cell in row[1:] if not re.search(r"\[[^]]+\]\([^)]+\)", cell)] == []


def test_table_is_the_registry() -> None:
    assert operator_table.current() == operator_table.table(), "run python -m tests.specs"


def test_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"make ([a-z]+(?:-[a-z]+)?)", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert named <= targets
    assert {"demo", "test", "lint", "bench", "help"} <= targets


def test_links_lead_somewhere() -> None:
    for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
            assert target.startswith("http") or (ROOT / target).exists(), f"{page}: {target}"


FUNCTIONS = {n: getattr(imgops, n) for n in imgops.__all__ if inspect.isfunction(getattr(imgops, n))}


OTHERS = {"check_operator": imgops.extend.testing.check_operator, "seeded": imgops.transforms.seeded}


@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS])
def test_docstring_examples(name: str) -> None:
    function = FUNCTIONS.get(name) or OTHERS[name]
    runner = doctest.DocTestRunner()
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name)
    assert test.examples
    assert runner.run(test).failed == 0


def test_the_versions_agree() -> None:
    """The version is the same in the package, the CHANGELOG's newest dated entry, and the citation."""
    (version,) = re.findall(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    dated = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    citation = (ROOT / "CITATION.cff").read_text()
    assert version == imgops.__version__ == dated[0][0]
    assert f"version: {version}\n" in citation and f"date-released: {dated[0][1]}\n" in citation


def test_the_number_of_added_transforms() -> None:
    from imgops import transforms

    assert f"**{len(transforms.ADDED)} transforms that torchvision does not have**" in README
