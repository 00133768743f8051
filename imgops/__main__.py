"""``python -m imgops demo [PHOTO]``."""

from __future__ import annotations

import argparse
import sys

from imgops.demo import PhotoError, main


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m imgops", description="PIL and OpenCV as PyTorch operators."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="show the operators on a photograph and train through them")
    demo.add_argument("photo", nargs="?", help="an image file (default: a photograph that matplotlib ships)")
    demo.add_argument("--out", default="demo.png", help="the picture to write (default: %(default)s)")
    demo.add_argument("--steps", type=int, default=150, help="training steps (default: %(default)s)")
    return parser.parse_args(arguments)


def run(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        main(options.photo, options.out, options.steps)
    except PhotoError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
