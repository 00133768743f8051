"""The command line: ``python -m imgops`` with ``demo [PHOTO]``, ``show [PHOTO [NAME ...]]`` or ``info``."""

from __future__ import annotations

import argparse
import signal
import sys

import imgops
from imgops._common.check import CommandError


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m imgops", description="PIL and OpenCV as PyTorch operators."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="show the operators on a photograph and train through them")
    demo.add_argument("photo", nargs="?", help="an image file (default: a photograph that matplotlib ships)")
    demo.add_argument("--out", default="demo.png", help="the picture to write (default: %(default)s)")
    demo.add_argument("--steps", type=int, default=150, help="training steps (default: %(default)s)")
    show = commands.add_parser(
        "show",
        help="write a sheet of what operators and transforms do to a photograph",
        description="Write a sheet of what operators and transforms do to a photograph. "
        "Without PHOTO, print the names of all of them.",
    )
    show.add_argument("photo", nargs="?", metavar="PHOTO", help="an image file")
    show.add_argument(
        "names",
        nargs="*",
        default=[],
        metavar="NAME",
        help="an operator or a transform (default: all of them)",
    )
    show.add_argument("--out", default="sheet.png", help="the picture to write (default: %(default)s)")
    commands.add_parser("info", help="show versions, the native module, and what takes a slower way")
    return parser.parse_args(arguments)


def run(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        {"demo": _demo, "show": _show, "info": _info}[options.command](options)
    except CommandError as error:
        print(error, file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name not in ("matplotlib", "tqdm"):
            raise
        needs = f"{options.command}: {error.name} must be installed, got none"
        print(f"{needs}: pip install 'imgops[demo]'", file=sys.stderr)
        return 2
    return 0


def _demo(options: argparse.Namespace) -> None:
    from imgops import demo
    from imgops.demo import picture as picture  # a missing matplotlib raises before the training

    demo.main(options.photo, options.out, options.steps)


def _show(options: argparse.Namespace) -> None:
    from imgops.show import listing, sheet

    if options.photo is None:
        print(listing())
    else:
        sheet(options.photo, options.names, options.out)
        print(f"Picture: {options.out}")


def _info(options: argparse.Namespace) -> None:
    imgops.show_config()


if __name__ == "__main__":
    if hasattr(
        signal, "SIGPIPE"
    ):  # a pipe to head closes early, which is no error; Windows has no such signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(run(sys.argv[1:]))
