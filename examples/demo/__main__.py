"""``python -m examples.demo [PHOTO]``, which ``make demo`` runs."""

import argparse

from examples import demo

parser = argparse.ArgumentParser(prog="python -m examples.demo", description=demo.__doc__)
parser.add_argument("photo", nargs="?", help="an image file (default: a photograph that matplotlib ships)")
parser.add_argument("--out", default="demo.png", help="the picture to write (default: %(default)s)")
parser.add_argument("--steps", type=int, default=150, help="training steps (default: %(default)s)")

if __name__ == "__main__":
    options = parser.parse_args()
    demo.main(options.photo, options.out, options.steps)
