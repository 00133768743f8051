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


def test_a_complete_set_of_wheels() -> None:
    assert wheel_names.wrong(COMPLETE) == []


@pytest.mark.parametrize("left_out", COMPLETE)
def test_a_missing_file_is_named(left_out: str) -> None:
    (problem,) = wheel_names.wrong([n for n in COMPLETE if n != left_out])
    assert "one file must be there, got 0" in problem


def test_a_file_too_many_is_named() -> None:
    assert wheel_names.wrong([*COMPLETE, "imgops-0.1.0-py3-none-any.whl"]) == [
        "not expected: imgops-0.1.0-py3-none-any.whl"
    ]
    assert "one version" in wheel_names.wrong([*COMPLETE, "imgops-0.2.0-cp311-abi3-win_amd64.whl"])[0]


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


@nightly
def test_never_a_wheel_without_the_module(tmp_path: Path) -> None:
    done = build("wheel", tmp_path / "none", CC="/nonexistent/cc")
    assert done.returncode != 0 and not list(tmp_path.glob("none/*.whl"))
    for part in ("the native module could not be compiled", "apt install gcc", "IMGOPS_PURE=1"):
        assert part in done.stderr


@nightly
def test_a_wheel_without_the_module_on_request(tmp_path: Path) -> None:
    leave_modules(source(tmp_path / "source"))
    done = build("wheel", tmp_path / "pure", CC="/nonexistent/cc", IMGOPS_PURE="1")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("pure/*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [n for n in zipfile.ZipFile(wheel).namelist() if n.endswith(".so")]


@nightly
@pytest.mark.parametrize(
    ("variable", "left_out"), [("IMGOPS_PURE=1", MODULES), ("IMGOPS_JPEG=0", MODULES[1:2])]
)
def test_a_build_in_place_imports_no_module_of_an_earlier_one(
    variable: str, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    paths = leave_modules(source(tmp_path / "source"), left_out)
    done = build("editable", tmp_path / "wheel", **dict([variable.split("=")]))
    assert done.returncode == 0, done.stderr
    assert not [path for path in paths[: len(left_out)] if path.exists()]


# jpeglib.h is empty for a compiler that believes to have read it.
WITHOUT_LIBJPEG = {"CFLAGS": "-DJPEGLIB_H"}


@nightly
def test_a_wheel_without_libjpeg_says_so(tmp_path: Path) -> None:
    leave_modules(source(tmp_path / "source"), MODULES[1:2])
    done = build("wheel", tmp_path / "without", **WITHOUT_LIBJPEG)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("without/*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert [n for n in names if "_native." in n] and not [n for n in names if "_native_jpeg." in n]
    assert "its JPEG decoder could not be compiled" in done.stderr and "libjpeg-dev" in done.stderr


@nightly
def test_never_a_wheel_without_libjpeg_where_it_is_required(tmp_path: Path) -> None:
    done = build("wheel", tmp_path / "none", IMGOPS_JPEG="1", **WITHOUT_LIBJPEG)
    assert done.returncode != 0 and not list(tmp_path.glob("none/*.whl"))
    assert "its JPEG decoder could not be compiled" in done.stderr


@nightly
def test_a_wheel_has_the_licenses(tmp_path: Path) -> None:
    leave_modules(source(tmp_path / "source"), MODULES[1:2])
    done = build("wheel", tmp_path / "wheel", IMGOPS_JPEG="0")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("wheel/*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert [n for n in names if n.endswith("licenses/LICENSE")]
    assert [n for n in names if n.endswith("licenses/libjpeg-turbo.txt")]
    assert not [n for n in names if "_native_jpeg." in n]


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
