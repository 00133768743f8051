"""The configuration of imgops: versions, the native module, OpenCV's build, CUDA, and slow paths."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import cv2
import torch

from imgops._common import compare, memory
from imgops._operator import record
from imgops.kernels import cuda, devices
from imgops.kernels.cpu import _libjpeg, native


def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Show versions, the native module, OpenCV's build, CUDA, and which calls take a slow path and why.

    Parameters
    ----------
    mode : {"stdout", "dicts"}
        "stdout" prints the configuration, "dicts" returns it, as :func:`numpy.show_config` does.

    Returns
    -------
    dict or None
        With "dicts", the sections by their names. "slow paths" is a list of reasons, empty if every call
        takes its fastest form.

    Raises
    ------
    ValueError
        If ``mode`` is neither "stdout" nor "dicts".

    Notes
    -----
    ``python -m imgops info`` prints the same. Before the first use of a kernel that replaces a function of
    Pillow or OpenCV, imgops compares the kernel with the installed library; this function compares all of
    these kernels.

    Examples
    --------
    >>> import imgops
    >>> sorted(imgops.show_config("dicts")["native module"])
    ['SIMD level', 'built']
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode must be 'stdout' or 'dicts', got {mode!r}")
    built = dict.fromkeys(native.compared, native.module is not None)
    built["libjpeg-turbo"] = _libjpeg.module is not None
    compared = {
        name: f"the {compare.what(name)} of {library}"
        if compare.agrees(name)
        else f"others: {library} is called itself"
        for name, (library, _) in sorted(compare.comparisons.items())
        if built.get(name, True)
    }
    names = ("imgops", "torch", "torchvision", "triton", "pillow", "numpy")
    config = {
        "versions": {
            "Python": f"{platform.python_version()} on {platform.platform(terse=True)}, {platform.machine()}",
            **{name: _version(name) for name in names},
        },
        "native module": _native(),
        "JPEG decoder": _jpeg(),
        "memory of outputs": memory.statistics(),
        "OpenCV": _opencv(),
        "CUDA": _cuda(),
        "compared with the installed library": compared,
        "through the host on CUDA": {
            name: o.host for name, o in record.operators().items() if not devices.stays_on_device(o)
        },
        "slow paths": list(_slow_paths(compared)),
    }
    if mode == "dicts":
        return config
    for title, section in config.items():
        print(f"{title}:" if section else f"{title}: none")
        if not isinstance(section, Mapping):
            for line in section:
                print(f"  {line}")
            continue
        width = max(map(len, section), default=0) + 1
        for name, value in section.items():
            shown = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
            print(f"  {name + ':':{width}} {shown}")
    return None


def _version(name: str) -> str:
    module = sys.modules.get(name)
    try:
        return str(getattr(module, "__version__", None) or metadata.version(name))
    except metadata.PackageNotFoundError:
        return "not installed"


def _native() -> dict[str, Any]:
    built = native.module is not None
    levels = "portable C", "AVX2", "AVX-512 with VNNI"
    return {"built": built, "SIMD level": levels[native.module.simd_level()] if built else "none"}


def _jpeg() -> dict[str, str]:
    built = _libjpeg.module is not None
    return {
        "decoder": f"libjpeg-turbo {_libjpeg.module.version}" if built else "Pillow",
        "regions": "decoded by themselves" if built else "cut out of the rows down to their last",
    }


def _opencv() -> dict[str, str]:
    build = cv2.getBuildInformation()

    def line(title: str) -> str:
        found = re.search(rf"^ +{re.escape(title)}: +(.+)$", build, re.MULTILINE)
        return found[1].strip() if found else "unknown"

    # OpenCV has four wheels; several of them, installed together, overwrite each other's files.
    wheels = sorted(set(metadata.packages_distributions().get("cv2", ["unknown"])))
    return {
        "version": cv2.__version__,
        "wheel": ", ".join(wheels),
        "SIMD": line("Dispatched code generation"),
        "threads by": line("Parallel framework"),
    }


def _cuda() -> dict[str, Any]:
    if not torch.cuda.is_available():
        return {"device": "none"}
    device = torch.device("cuda", torch.cuda.current_device())
    return {
        "device": torch.cuda.get_device_name(device),
        "CUDA": torch.version.cuda or "none",
        "Triton kernels": cuda.runs_on(device),
    }


def _installed() -> Path | None:
    """Return the folder of an installed imgops that has the native module, if this one is a clone."""
    for found in metadata.distributions(name="imgops"):
        folder = Path(str(found.locate_file("imgops")))
        built = any(p.suffix in (".so", ".pyd") for p in folder.glob("kernels/cpu/_native.*"))
        if built and not folder.samefile(Path(__file__).parents[1]):
            return folder
    return None


def _slow_paths(compared: Mapping[str, str]) -> Iterator[str]:
    installed = None if native.module else _installed()
    if installed:
        yield (
            "you are in the clone: Python imports its folder imgops, which has no compiled modules, and not "
            f"{installed}; go to another folder, or pip install -e ."
        )
    elif native.module is None:
        yield "the native module was not built: install a C compiler, then imgops again, without IMGOPS_PURE"
    if _libjpeg.module is None and not installed:
        yield "Pillow decodes JPEGs: install libjpeg-turbo and its headers (libjpeg-dev), then imgops again"
    for name, found in compared.items():
        if found.startswith("others"):
            yield f"{name}: {found}"
    if torch.cuda.is_available() and not cuda.runs_on(torch.device("cuda", torch.cuda.current_device())):
        yield "Triton does not run on the CUDA device: ATen does its work"
