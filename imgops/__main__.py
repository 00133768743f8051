"""The command ``python -m imgops info``, which prints :func:`imgops.show_config`."""

from __future__ import annotations

import argparse
import sys

import imgops


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m imgops", description="PIL and OpenCV as PyTorch operators."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="show versions, the native module, and what takes a slower way")
    parser.parse_args(arguments)
    imgops.show_config()
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
