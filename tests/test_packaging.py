"""The build files publish what the pages promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests import wheel_names
from tests.tiers import nightly

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

WHEELS = (
    *("manylinux_2_24_x86_64.manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "musllinux_1_2_x86_64"),
    *("musllinux_1_2_aarch64", "macosx_11_0_arm64", "macosx_10_9_x86_64", "win_amd64"),
)
COMPLETE = [*(f"imgops-0.1.0-cp311-abi3-{p}.whl" for p in WHEELS), "imgops-0.1.0.tar.gz"]


def test_a_set_of_wheels_is_complete() -> None:
    """A file that is missing, is too many or has another version is named."""
    assert wheel_names.wrong(COMPLETE) == []
    for left_out in COMPLETE:
        (problem,) = wheel_names.wrong([n for n in COMPLETE if n != left_out])
        assert "one file must be there, got 0" in problem
    pure, other = "imgops-0.1.0-py3-none-any.whl", "imgops-0.2.0-cp311-abi3-win_amd64.whl"
    assert wheel_names.wrong([*COMPLETE, pure]) == [f"not expected: {pure}"]
    assert "one version" in wheel_names.wrong([*COMPLETE, other])[0]


def test_dependencies_are_those_of_every_user() -> None:
    """A dependency of the demonstration, the tests or the pages alone is in an extra; the imports agree."""
    names = {re.split(r"[<>=]", d)[0] for d in PROJECT["project"]["dependencies"]}
    assert names == {"torch", "torchvision", "pillow", "opencv-python", "numpy"}
    for path in (ROOT / "imgops").rglob("*.py"):
        assert not re.search(r"^\s*(import|from) (matplotlib|tqdm)", path.read_text(), re.M), path


def test_lower_bounds_are_those_that_are_tested() -> None:
    """``make test-oldest`` installs the lower bounds of pyproject.toml."""
    (line,) = re.findall(r"^OLDEST := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    tested = dict(pin.split("==") for pin in line.split())
    demo = PROJECT["project"]["optional-dependencies"]["demo"]
    for requirement in (*PROJECT["project"]["dependencies"], *demo):
        name, bound = requirement.split(">=")
        assert f"{tested[name]}.".startswith(f"{bound}."), requirement


MODULES = ("kernels/cpu/_native", "kernels/cpu/_native_jpeg", "_common/_memory", "transforms/_core/_draws")


def leave_modules(folder: Path, names: Iterable[str] = MODULES) -> list[Path]:
    """Write modules, older than their sources, as an earlier build leaves them in a source folder."""
    paths = []
    for place in (".", "build/lib", f"build/lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"):
        for name in names:
            path = folder / place / "imgops" / f"{name}.abi3.so"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"of an earlier build")
            os.utime(path, (0, 0))
            paths.append(path)
    return paths


def source(folder: Path) -> Path:
    """Copy what a build needs to a folder, once."""
    if not folder.exists():
        files = subprocess.run(
            ["git", "ls-files", "-coz", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, files.stdout.split("\0")):
            if (ROOT / name).is_file() and not name.startswith(("docs/", "gallery/", "benchmarks/")):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def build(what: str, to: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build with setuptools directly, without an isolated environment, which would need the network."""
    folder = source(to.parent / "source")
    compiler = to.parent / "cc"  # optimization would take most of the time
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    compiler.chmod(0o755)
    environment = {"CC": str(compiler)} | environment
    code = f"from setuptools import build_meta as b; b.build_{what}({str(to)!r})"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=os.environ | environment
    )


setuptools = pytest.importorskip("setuptools", "77", reason="the builds below use the installed setuptools")


NO_COMPILER = {"CC": "/nonexistent/cc"}
#: jpeglib.h is empty for a compiler that believes to have read it.
NO_LIBJPEG = {"CFLAGS": "-DJPEGLIB_H"}
#: The environment of a build that fails, and what it says.
FAILING: list[tuple[dict[str, str], tuple[str, ...]]] = [
    (NO_COMPILER, ("the native module could not be compiled", "apt install gcc", "IMGOPS_PURE=1")),
    (NO_LIBJPEG | {"IMGOPS_JPEG": "1"}, ("its JPEG decoder could not be compiled",)),
]
#: The environment of a build, the modules that it leaves out, and what it says.
COMPLETED: list[tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]] = [
    (NO_COMPILER | {"IMGOPS_PURE": "1"}, MODULES, ()),
    (NO_LIBJPEG, MODULES[1:2], ("its JPEG decoder could not be compiled", "libjpeg-dev")),
    ({"IMGOPS_JPEG": "0"}, MODULES[1:2], ()),
]


@nightly
@pytest.mark.parametrize(("environment", "said"), FAILING)
def test_never_a_wheel_without_a_module_that_is_required(
    environment: dict[str, str], said: tuple[str, ...], tmp_path: Path
) -> None:
    done = build("wheel", tmp_path / "none", **environment)
    assert done.returncode != 0 and not list(tmp_path.glob("none/*.whl"))
    assert all(part in done.stderr for part in said)


@nightly
@pytest.mark.parametrize(("environment", "left_out", "said"), COMPLETED)
def test_a_wheel_without_modules(
    environment: dict[str, str], left_out: tuple[str, ...], said: tuple[str, ...], tmp_path: Path
) -> None:
    """Modules of an earlier build do not get into it; the licenses do."""
    leave_modules(source(tmp_path / "source"), left_out)
    done = build("wheel", tmp_path / "wheel", **environment)
    assert done.returncode == 0, done.stderr
    assert all(part in done.stderr for part in said)
    (wheel,) = tmp_path.glob("wheel/*.whl")
    assert wheel.name.endswith("-py3-none-any.whl") == (left_out == MODULES)
    names = zipfile.ZipFile(wheel).namelist()
    assert [m for m in MODULES if any(f"{m}." in n and n.endswith(".so") for n in names)] == [
        m for m in MODULES if m not in left_out
    ]
    for name in ("LICENSE", "libjpeg-turbo.txt"):
        assert [n for n in names if n.endswith(f"licenses/{name}")]


@nightly
@pytest.mark.parametrize(("variable", "left_out"), [("IMGOPS_PURE", MODULES), ("IMGOPS_JPEG", MODULES[1:2])])
def test_a_build_in_place_imports_no_module_of_an_earlier_one(
    variable: str, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    paths = leave_modules(source(tmp_path / "source"), left_out)
    done = build("editable", tmp_path / "wheel", **{variable: str(int(left_out == MODULES))})
    assert done.returncode == 0, done.stderr
    assert not [path for path in paths[: len(left_out)] if path.exists()]


@nightly
def test_the_source_distribution_has_what_a_build_needs(tmp_path: Path) -> None:
    done = build("sdist", tmp_path / "sdist")
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("sdist/*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    sources = {
        str(p.relative_to(ROOT)) for p in (ROOT / "imgops").rglob("*") if p.suffix in (".py", ".c", ".h")
    }
    assert sources <= inside and {"setup.py", "pyproject.toml", "imgops/py.typed"} <= inside
    assert any(name.lower().startswith("license") for name in inside)
