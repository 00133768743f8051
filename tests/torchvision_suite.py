"""``python tests/torchvision_suite.py PATH``: torchvision's own tests of v2, with imgops in its place.

``PATH`` is a source tree of torchvision. Its tests run twice from a copy: as they are, and with every public import of
``torchvision.transforms.v2`` replaced by one of ``imgops.transforms`` (and without its checks of torchvision's own
telemetry). A test that passes as it is and fails with imgops has to be
in ``torchvision_suite.toml``, with a reason; a test that is listed and passes is reported, too, so that the list stays true. Other
arguments go to pytest (``-k Resize``, ``-n 2``).
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

EXPECTED = Path(__file__).with_suffix(".toml")
TESTS = ("test_transforms_v2.py", "test_transforms_v2_utils.py")
MODULES = {
    "torchvision.transforms.v2": "imgops.transforms",
    "torchvision.transforms.v2.functional": "imgops.transforms.functional",
}
_PACKAGE = "torchvision.transforms"


class Substitution(ast.NodeTransformer):
    """A rewrite of imports of torchvision's public v2 modules to imgops' modules; private names stay torchvision's."""

    def __init__(self, tree: ast.AST) -> None:
        #: The names that the file gives to torchvision's public v2 modules.
        self.modules: dict[str, str] = {}
        for node in ast.walk(tree):
            for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
                is_from = isinstance(node, ast.ImportFrom) and not node.level
                whole = f"{node.module}.{alias.name}" if is_from else alias.name
                if whole in MODULES and (is_from or alias.asname):
                    self.modules[alias.asname or alias.name] = whole

    def module_of(self, node: ast.AST) -> str:
        """Return the module of torchvision that an expression names, or "" for any other expression."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id, "")
        if isinstance(node, ast.Attribute) and self.module_of(node.value):
            whole = f"{self.module_of(node.value)}.{node.attr}"
            return whole if whole in MODULES else ""
        return ""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Keep a private name of a module, such as ``F._geometry``, in torchvision's module."""
        module = self.module_of(node.value)
        if not module or not node.attr.startswith("_") or node.attr.startswith("__"):
            return self.generic_visit(node)
        theirs = ast.parse(f"__import__({module!r}, fromlist=['*'])", mode="eval").body
        return ast.Attribute(theirs, node.attr, node.ctx)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            if alias.name in MODULES and alias.asname:
                alias.name = MODULES[alias.name]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        called = getattr(node.value, "func", None)
        return ast.Pass() if getattr(called, "attr", None) == "assert_any_call" else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        if node.level or node.module not in (_PACKAGE, *MODULES):
            return [node]
        found: list[ast.stmt] = []
        for alias in node.names:
            module, name = str(node.module), alias.name
            whole = f"{module}.{name}"
            if whole in MODULES:
                module, _, name = MODULES[whole].rpartition(".")
            elif module in MODULES and not name.startswith("_"):
                module = MODULES[module]
            found.append(ast.ImportFrom(module, [ast.alias(name, alias.asname or alias.name)], 0))
        return found


def substituted(source: str) -> str:
    tree = ast.parse(source)
    return ast.unparse(ast.fix_missing_locations(Substitution(tree).visit(tree)))


def run(folder: Path, options: list[str]) -> dict[str, str]:
    """Run the tests, and return the outcome of each: passed, failed or skipped."""
    report = folder / "report.xml"
    files = [str(folder / name) for name in TESTS if (folder / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run([*command, "--rootdir", str(folder), *files, *options], cwd=folder, check=False)
    if not report.exists():
        sys.exit("pytest wrote no report: see its output above")
    outcomes = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        outcomes[f"{str(case.get('classname')).rpartition('.')[2]}::{case.get('name')}"] = outcome
    return outcomes


def differences(stock: dict[str, str], ours: dict[str, str]) -> list[str]:
    """Return the tests that pass with torchvision and not with imgops, missing tests included."""
    return sorted(n for n, outcome in stock.items() if outcome == "passed" and ours.get(n) != "passed")


def judged(found: list[str], ours: dict[str, str], expected: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the differences that are not expected, and the patterns whose tests all ran and passed."""
    unexpected = [n for n in found if not any(fnmatch.fnmatchcase(n, p) for p in expected)]
    stale = []
    for pattern in expected:
        ran = [n for n, outcome in ours.items() if fnmatch.fnmatchcase(n, pattern) and outcome != "skipped"]
        if ran and not any(n in found for n in ran):
            stale.append(pattern)
    return unexpected, stale


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/torchvision_suite.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("path", type=Path, help="a source tree of torchvision, of the installed version")
    options, others = parser.parse_known_args()
    source = options.path / "test"
    if not (source / TESTS[0]).exists():
        parser.error(f"PATH must be a source tree of torchvision, got no {source / TESTS[0]}")
    expected = tomllib.loads(EXPECTED.read_text())["expected"]
    with tempfile.TemporaryDirectory() as name:
        outcomes = []
        for label in ("torchvision", "imgops"):
            folder = Path(name) / label / "test"
            shutil.copytree(source, folder, ignore=shutil.ignore_patterns("assets/videos", "*.mp4"))
            if label == "imgops":
                for test in TESTS:
                    if (folder / test).exists():
                        (folder / test).write_text(substituted((folder / test).read_text()))
            print(f"-- {label}", flush=True)
            outcomes.append(run(folder, others))
    stock, ours = outcomes
    found = differences(stock, ours)
    unexpected, stale = judged(found, ours, expected)
    passed = sum(outcome == "passed" for outcome in stock.values())
    print(f"{passed} tests pass with torchvision; {len(found)} of them do not with imgops")
    for title, names in (("not expected", unexpected), ("expected, but they pass", stale)):
        print(f"{len(names)} {title}" + "".join(f"\n  {n}" for n in names))
    sys.exit(bool(unexpected or stale))


if __name__ == "__main__":
    main()
