"""Which faults the tests find: ``python -m tests.mutants --count 60 --seed 0``.

A mutant is the package with one change at a random place: another comparison, constant, operator, index, argument or
returned value, in Python or in C. For each, the tests of ``make test`` that run the changed line are run until one
fails, then ``make same``, then all of ``make test``. The table says what found the mutant; read those that survive.
Each shows a missing row in a table of tests, or a change that changes no result.

Which tests run a line comes from ``build/contexts``, which ``--record`` writes: ``make test`` under coverage, in a
quarter of an hour. With ``--all``, both are those of ``make test-all``, which takes hours. CUDA kernels are left out, because they
run where there is a GPU. Libraries for mutation testing change Python alone, each test of theirs runs the whole suite,
or they have no index, argument and returned value among their changes.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
COPIED = ("imgops", "tests", "docs", "examples", "benchmarks", "pyproject.toml", "setup.py", "README.md")
#: A change that makes a program wait is found, too.
LIMIT_S = 1200

SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
#: Pattern -> what replaces it, in a line of C.
IN_C = (
    *((rf"(?<=\s){re.escape(a)}(?=\s)", b) for a, b in SWAPS.values() if not a.isalpha() and " " not in a),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"(?<=\[)([^]\[]+)(?=\])", r"\1 + 1"),
    (r"(?<![\w.])(\d+)(?![\w.])", r"(\1 + 1)"),
    (r"(?<=return )([^;]+)(?=;)", r"!(\1)"),
)


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    begin: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def shown(self) -> str:
        """Return the line before and after the change."""
        source = (ROOT / self.file).read_bytes()
        start, stop = source.rfind(b"\n", 0, self.begin) + 1, source.find(b"\n", self.end)
        new = source[start : self.begin] + self.text.encode() + source[self.end : stop]
        return f"{source[start:stop].decode().strip()} -> {new.decode().strip()}"


# -- places --------------------------------------------------------------------------------------------------------


def of_python(file: str) -> Iterator[Mutant]:
    """Yield a mutant for each place of a module, except for its docstrings, annotations and overloads."""
    source = (ROOT / file).read_bytes()
    begins = [0, *(m.end() for m in re.finditer(rb"\n", source))]

    def place(node: Any) -> tuple[int, int]:
        return begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset

    def text(node: Any) -> str:
        begin, end = place(node)
        return source[begin:end].decode()

    def replace(node: Any, by: str) -> Mutant:
        return Mutant(file, node.lineno, *place(node), by)

    def between(left: Any, right: Any, operator: ast.AST) -> Iterator[Mutant]:
        old, new = SWAPS.get(type(operator), ("", ""))
        begin, end = place(left)[1], place(right)[0]
        if old and (at := source[begin:end].find(old.encode())) >= 0:
            yield Mutant(file, left.end_lineno, begin + at, begin + at + len(old), new)

    def of(node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                for left, right, operator in zip([node.left, *node.comparators], node.comparators, node.ops):
                    yield from between(left, right, operator)
            case ast.BinOp():
                yield from between(node.left, node.right, node.op)
            case ast.BoolOp():
                yield from between(node.values[0], node.values[1], node.op)
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield replace(node, text(node.operand))
            case ast.Constant(value=bool()):
                yield replace(node, str(not node.value))
            case ast.Constant(value=int() | float()):
                yield replace(node, f"({text(node)} + 1)")
            case ast.Constant(value=str()) if text(node)[:1] in "'\"":
                yield replace(node, f"({text(node)} + 'x')")
            case ast.Subscript(slice=ast.Slice()):
                for bound in (node.slice.lower, node.slice.upper):
                    if bound is not None:
                        yield replace(bound, f"({text(bound)}) + 1")
            case ast.Call():
                for keyword in node.keywords:
                    if keyword.arg is not None:
                        yield replace(keyword.value, "None")
                if len(node.args) > 1 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
                    first, second = node.args[:2]
                    begin, end = place(first)[0], place(second)[1]
                    gap = source[place(first)[1] : place(second)[0]].decode()
                    yield Mutant(file, first.lineno, begin, end, f"{text(second)}{gap}{text(first)}")
            case ast.Return(value=ast.expr()):
                yield replace(node.value, "None")
            case ast.If() | ast.IfExp() | ast.While():
                yield replace(node.test, f"not ({text(node.test)})")

    def walk(node: ast.AST) -> Iterator[Mutant]:
        yield from of(node)
        for name, value in ast.iter_fields(node):
            skipped = name in ("annotation", "returns", "decorator_list", "type_params")
            for child in value if isinstance(value, list) else [value]:
                is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.AST) and not (
                    skipped or is_text or isinstance(child, ast.JoinedStr)
                ):
                    yield from walk(child)

    yield from walk(ast.parse(source))


def of_c(file: str) -> Iterator[Mutant]:
    """Yield a mutant for each place of the indented lines of a file, except for comments and messages."""
    at = 0
    for number, line in enumerate((ROOT / file).read_text().splitlines(keepends=True), 1):
        code = re.split(r"//|/\*", line)[0]
        if line[:1] in " \t" and not re.match(r"\s*(\*|#|for\b.*\bsizeof)", line) and '"' not in code:
            for pattern, new in IN_C:
                for found in re.finditer(pattern, code):
                    begin, end = (at + len(line[:n].encode()) for n in found.span())
                    yield Mutant(file, number, begin, end, found.expand(new))
        at += len(line.encode())


def places() -> list[Mutant]:
    found: list[Mutant] = []
    for path in sorted((ROOT / "imgops").rglob("*")):
        file = str(path.relative_to(ROOT))
        if path.suffix == ".py" and "kernels/cuda" not in file:
            found += of_python(file)
        elif path.suffix in (".c", ".h"):
            found += of_c(file)
    return found


# -- tests that run a line -----------------------------------------------------------------------------------------

#: C file -> the Python module that calls it.
CALLERS = {
    "_draws.c": "imgops/transforms/_core/draws.py",
    "_memory.c": "imgops/_common/memory.py",
    "_native_jpeg.c": "imgops/kernels/cpu/_libjpeg.py",
}


def record(everything: bool) -> int:
    """Run the tests under coverage, with the test that runs each line."""
    coverage = ("--cov=imgops", "--cov-context=test", "--cov-report=")
    command = [sys.executable, "-m", "pytest", "-n", "auto", *coverage]
    environment = {**os.environ, "COVERAGE_FILE": str(BUILD / "contexts"), "COVERAGE_CORE": "ctrace"}
    BUILD.mkdir(exist_ok=True)
    return subprocess.run([*command, *["--all"][:everything]], cwd=ROOT, env=environment).returncode


class Contexts:
    """Which tests run a line."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(BUILD / "contexts"))
        self.data.read()
        self.of_file: dict[str, dict[int, list[str]]] = {}

    def lines(self, file: str) -> dict[int, list[str]]:
        if file not in self.of_file:
            found = self.data.contexts_by_lineno(str(ROOT / file))
            self.of_file[file] = {n: [c.partition("|")[0] for c in of if c] for n, of in found.items()}
        return self.of_file[file]

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that run a line; those of its module for a line that runs once, at import, and for C."""
        file = mutant.file
        if not file.endswith(".py"):
            file = CALLERS.get(Path(file).name, "imgops/kernels/cpu/native.py")
        lines = self.lines(file)
        found = lines.get(mutant.line, []) if file == mutant.file else []
        found = found or [test for of in lines.values() for test in of]
        # Tests of a file that is named after the module are the likeliest to fail.
        stem = Path(file).stem.strip("_")
        return sorted(dict.fromkeys(found), key=lambda test: stem not in test)


# -- runs ----------------------------------------------------------------------------------------------------------


class Copy:
    """A copy of the package and its tests, in which one mutant lives at a time."""

    def __init__(self, number: int) -> None:
        self.root = BUILD / "mutants" / str(number)
        shutil.rmtree(self.root, ignore_errors=True)
        for name in COPIED:
            source, copied = ROOT / name, self.root / name
            copied.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__", "_build"))
            elif source.exists():
                shutil.copy(source, copied)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "OMP_NUM_THREADS": "1",
            "IMGOPS_QUIET": "1",
        }

    def run(self, *command: str) -> int:
        """Return the status of a command; a mutant that does not end is found."""
        with subprocess.Popen(
            [sys.executable, *command],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                return process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                return -9

    def build(self) -> int:
        return self.run("setup.py", "-q", "build_ext", "--inplace")

    def judge(self, mutant: Mutant, tests: list[str], everything: bool) -> str:
        """Return what finds a mutant."""
        path = self.root / mutant.file
        source = path.read_bytes()
        path.write_bytes(source[: mutant.begin] + mutant.text.encode() + source[mutant.end :])
        is_c = not mutant.file.endswith(".py")
        try:
            if not is_c and _code(path.read_bytes()) == _code(source):
                return "equivalent: the same bytecode"
            if is_c and self.build():
                return "does not compile"
            names = self.root / "tests.txt"
            names.write_text("\n".join(tests))
            options = ["--all"] if everything else []
            if tests and self.run(
                "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, f"@{names}"
            ):
                return "tests"
            same = ["-m", "tests.same", "--file", str(BUILD / "mutants" / "same.json")]
            if self.run(*same):
                return "same"
            # A test that finds a kept result does not run the line, and is not in the list.
            if self.run("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options):
                return "other tests"
            return "survived" if tests else "survived: no test runs it"
        finally:
            path.write_bytes(source)
            if is_c:
                self.build()


def _code(source: bytes) -> Any:
    return compile(source, "", "exec", dont_inherit=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="mutants")
    parser.add_argument("--seed", type=int, default=0, help="chooses them")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of mutants to judge")
    parser.add_argument("--all", action="store_true", help="the tests of make test-all")
    parser.add_argument("--record", action="store_true", help="write which tests run each line, and end")
    parser.add_argument("--list", action="store_true", help="show the mutants, and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    if chosen.record:
        return record(chosen.all)
    every = places()
    mutants = list(enumerate(random.Random(chosen.seed).sample(every, chosen.count)))
    if chosen.only is not None:
        mutants = [m for m in mutants if m[0] in chosen.only]
    print(f"{len(every):,} places")
    if chosen.list:
        for number, mutant in mutants:
            print(f"{number:3} {mutant}: {mutant.shown()}")
        return 0
    contexts = Contexts()
    copies: Queue[Copy] = Queue()
    for number in range(chosen.jobs):
        copies.put(Copy(number))
    first = copies.get()
    first.run("-m", "tests.same", "--write", "--file", str(BUILD / "mutants" / "same.json"))
    copies.put(first)

    def judge(number: int, mutant: Mutant) -> str:
        copy, tests = copies.get(), contexts_of[number]
        start = time.monotonic()
        try:
            verdict = copy.judge(mutant, tests, chosen.all)
        finally:
            copies.put(copy)
        took = time.monotonic() - start
        print(
            f"{number:3} {verdict:8} {took:4.0f} s {len(tests):5} tests {mutant}: {mutant.shown()}",
            flush=True,
        )
        return verdict

    contexts_of = {number: contexts.tests(mutant) for number, mutant in mutants}
    with ThreadPoolExecutor(chosen.jobs) as pool:
        verdicts = list(pool.map(lambda pair: judge(*pair), mutants))
    for verdict in sorted(set(verdicts)):
        print(f"{verdicts.count(verdict):4} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
