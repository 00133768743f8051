"""The native modules. Everything else of the build is in pyproject.toml."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FOLDER = "imgops/kernels/cpu"
PURE = os.environ.get("IMGOPS_PURE") == "1"
# No program asks for floating point traps; loops with divisions are not vectorized while one could.
# Products are not fused with sums, which would give other bits on machines that can.
UNIX = ["-O3", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off"]
WINDOWS = ["/O2", "/fp:precise"]

MISSING = """
imgops: the native module could not be compiled ({error}).
Install a C compiler (Debian, Ubuntu: apt install gcc; macOS: xcode-select --install), or set IMGOPS_PURE=1 to
install without it: the same pixels, but resizing, color and levels take 2 to 25 times as long on one thread.
"""

MISSING_JPEG = """
imgops: its JPEG decoder could not be compiled ({error}).
It needs libjpeg-turbo and its headers (Debian, Ubuntu: apt install libjpeg-dev; macOS: brew install
jpeg-turbo). IMGOPS_JPEG_ROOT names another folder that has include and lib.
"""
WITHOUT_JPEG = f"""{MISSING_JPEG}Without it Pillow decodes: the same pixels, later, and a region takes as
long as all rows down to its last one.
"""


def remove_left_out(command: build_ext | build_py) -> None:
    """Remove modules of an earlier build from where this build would install or import them."""
    in_place = command.editable_mode or getattr(command, "inplace", False)
    for folder in (command.build_lib, *(["."] if in_place else [])):
        for extension in left_out:
            for path in Path(folder).glob(f"{extension.name.replace('.', '/')}.*"):
                if path.suffix in (".so", ".pyd"):
                    path.unlink()


class Files(build_py):
    """Build without modules of an earlier build."""

    def run(self) -> None:
        super().run()
        remove_left_out(self)


class Build(build_ext):
    """Never build without the native module, unless asked to; build without the decoder only if it fails."""

    def run(self) -> None:
        super().run()
        remove_left_out(self)

    def build_extension(self, extension: Extension) -> None:
        is_windows = self.compiler.compiler_type == "msvc"
        extension.extra_compile_args = WINDOWS if is_windows else UNIX
        extension.extra_link_args = [] if is_windows else ["-pthread"]  # a library apart in older systems
        try:
            super().build_extension(extension)
        except Exception as error:  # of several types, none of them public
            if extension is decoder and JPEG != "1":
                print(WITHOUT_JPEG.format(error=error), file=sys.stderr)
                left_out.append(decoder)
                return
            raise SystemExit(
                (MISSING_JPEG if extension is decoder else MISSING).format(error=error)
            ) from error


HEADERS = [f"{FOLDER}/{name}" for name in sorted(os.listdir(FOLDER)) if name.endswith(".h")]
native = Extension(
    "imgops.kernels.cpu._native", [f"{FOLDER}/_native.c"], depends=HEADERS, py_limited_api=True
)
#: "1": never without the decoder; "0": without it.
JPEG = os.environ.get("IMGOPS_JPEG", "")
ROOT = os.environ.get("IMGOPS_JPEG_ROOT")
decoder = Extension(
    "imgops.kernels.cpu._native_jpeg",
    [f"{FOLDER}/_native_jpeg.c"],
    depends=HEADERS,
    include_dirs=[f"{ROOT}/include"] if ROOT else [],
    library_dirs=[f"{ROOT}/lib", f"{ROOT}/lib64"] if ROOT else [],
    libraries=["jpeg-static" if sys.platform == "win32" else "jpeg"],
    optional=JPEG != "1",
    py_limited_api=True,
)
memory = Extension("imgops._common._memory", ["imgops/_common/_memory.c"], py_limited_api=True)
draws = Extension("imgops.transforms._core._draws", ["imgops/transforms/_core/_draws.c"], py_limited_api=True)
#: The modules that this build does not have.
left_out = [native, draws, memory, decoder] if PURE else [decoder] if JPEG == "0" else []
modules = [module for module in (native, draws, memory, decoder) if module not in left_out]
if sys.platform == "win32":  # which has no mmap
    modules = [module for module in modules if module is not memory]
setup(ext_modules=modules, cmdclass={"build_ext": Build, "build_py": Files})
