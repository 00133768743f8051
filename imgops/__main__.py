"""``python -m imgops demo [PHOTO]`` and ``python -m imgops show PHOTO [NAME ...]``."""

from __future__ import annotations

import argparse
import sys

from imgops.demo import PhotoError, main
from imgops.show import ShowError, sheet


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
        "show", help="write a sheet of what operators and transforms do to a photograph"
    )
    show.add_argument("photo", help="an image file")
    show.add_argument("names", nargs="*", metavar="NAME", help="operators and transforms (default: all)")
    show.add_argument("--out", default="sheet.png", help="the picture to write (default: %(default)s)")
    return parser.parse_args(arguments)


def run(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        if options.command == "demo":
            main(options.photo, options.out, options.steps)
        else:
            sheet(options.photo, options.names, options.out)
    except (PhotoError, ShowError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
