"""The native module. Everything else of the build is in pyproject.toml."""

import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = "imgops/kernels/cpu"
PURE = os.environ.get("IMGOPS_PURE") == "1"
# No program asks for floating point traps; loops with divisions are not vectorized while one could.
# Products are not fused with sums, which would give other bits on machines that can.
UNIX = ["-O3", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off"]
WINDOWS = ["/O2", "/fp:precise"]

MISSING = """
imgops: the native module could not be compiled ({error}).
Install a C compiler (Debian, Ubuntu: apt install gcc; macOS: xcode-select --install), or set IMGOPS_PURE=1 to
install without it: the same pixels, but resizing, color and levels take up to 10 times as long.
"""


class Build(build_ext):
    """Never a build without the module, unless it was asked for."""

    def build_extension(self, extension: Extension) -> None:
        extension.extra_compile_args = WINDOWS if self.compiler.compiler_type == "msvc" else UNIX
        try:
            super().build_extension(extension)
        except Exception as error:  # of several types, none of them public
            raise SystemExit(MISSING.format(error=error)) from error


native = Extension(
    "imgops.kernels.cpu._native",
    [f"{FOLDER}/_native.c"],
    depends=[f"{FOLDER}/{name}" for name in sorted(os.listdir(FOLDER)) if name.endswith(".h")],
    py_limited_api=True,
)
setup(ext_modules=[] if PURE else [native], cmdclass={"build_ext": Build})
