"""Check that a folder has one wheel for each platform, and the source distribution: ``python tests/wheel_names.py dist``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

#: Patterns for the last part of a wheel's name, the platform; each has one wheel.
PLATFORMS = {
    "manylinux x86-64": r"manylinux[\w.]*_x86_64",
    "manylinux aarch64": r"manylinux[\w.]*_aarch64",
    "musllinux x86-64": r"musllinux[\w.]*_x86_64",
    "musllinux aarch64": r"musllinux[\w.]*_aarch64",
    "macOS arm64": r"macosx_\d+_\d+_arm64",
    "macOS x86-64": r"macosx_\d+_\d+_x86_64",
    "Windows x86-64": r"win_amd64",
}


def wrong(names: list[str]) -> list[str]:
    """Return the names that are missing, duplicate, or not expected."""
    versions = {name.split("-")[1] for name in names if name.endswith(".whl")}
    if len(versions) != 1:
        return [f"one version must be there, got {sorted(versions)}"]
    (version,) = versions
    found, left = [], set(names)
    wanted = {k: rf"imgops-{re.escape(version)}-cp311-abi3-{p}\.whl" for k, p in PLATFORMS.items()}
    wanted["source distribution"] = rf"imgops-{re.escape(version)}\.tar\.gz"
    for what, pattern in wanted.items():
        matching = {name for name in names if re.fullmatch(pattern, name)}
        if len(matching) != 1:
            found.append(f"{what}: one file must be there, got {len(matching)}")
        left -= matching
    return found + [f"not expected: {name}" for name in sorted(left)]


if __name__ == "__main__":
    problems = wrong([path.name for path in Path(sys.argv[1]).iterdir()])
    print("\n".join(problems) or "all wheels and the source distribution are there")
    sys.exit(bool(problems))
