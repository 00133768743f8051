"""The README's table of operators, made from the registry: ``python -m tests.operator_table`` rewrites it."""

from __future__ import annotations

import re
from pathlib import Path

import imgops
from imgops._rows import Contract, Gradient, Operator, operators

README = Path(__file__).parent.parent / "README.md"
_MARKS = re.compile(r"(<!-- operators: .*? -->\n)(.*?)(<!-- /operators -->)", re.S)

#: What the rows cannot tell: the reference, the worst difference that the tests allow, the dtypes, and the worst
#: difference of the decomposition.
_FACTS = {
    "crop": ("`PIL.Image.crop`", "0", "all", "0"),
    "paste": ("`PIL.Image.paste`", "0", "all", "0; float masks 1e-5"),
    "paste_": ("`paste`, in place", "0", "all", ""),
    "paste_out": ("`paste`, into `out`", "0", "all", ""),
    "accumulate": ("`cv2.accumulate`, `accumulateProduct`", "0", "float32, float64", ""),
    "pad": ("`cv2.copyMakeBorder`", "0", "all", "0"),
    "pad_adjoint": ("transpose of pad", "1e-12", "floats", "1e-5"),
    "resize": (
        "`PIL.Image.resize` (antialias), `cv2.resize` (not)",
        "uint8 0; float32 1e-5 (PIL), 0 (OpenCV)",
        "uint8, floats; nearest: all",
        "uint8 0, OpenCV's area and bicubic 1 level; floats 1e-5",
    ),
    "resize_out": ("`resize`, into `out`", "0", "as resize", ""),
    "resize_adjoint": ("transpose of resize", "1e-12", "floats", "1e-5"),
    "adjust_brightness": (
        "`PIL.ImageEnhance.Brightness`",
        "uint8 0; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "adjust_contrast": (
        "`PIL.ImageEnhance.Contrast`",
        "uint8 0; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "adjust_saturation": (
        "`PIL.ImageEnhance.Color`",
        "uint8 0; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "adjust_hue": (
        "torchvision's `adjust_hue` of a tensor",
        "1 level; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "grayscale": ('`Image.convert("L")`', "uint8 0; floats 1e-6", "uint8, floats", "uint8 0; floats 1e-5"),
    "color_matrix": ("`cv2.transform`", "1 level; floats 1e-5", "uint8, floats", "1 level; floats 1e-5"),
    "color_sequence": (
        "the steps one after the other",
        "uint8 0; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "adjust_gamma": (
        "`Image.point` with torchvision's table",
        "uint8 0; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "posterize": (
        "`PIL.ImageOps.posterize`",
        "uint8 0; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "solarize": ("`PIL.ImageOps.solarize`", "uint8 0; floats 1e-5", "uint8, floats", "uint8 0; floats 1e-5"),
    "autocontrast": (
        "`PIL.ImageOps.autocontrast`",
        "uint8 0; floats 1e-5",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "equalize": ("`PIL.ImageOps.equalize`", "0", "uint8, floats", "0"),
    "lut": ("`cv2.LUT`", "0", "uint8; table any", "0"),
    "warp_affine": ("`cv2.warpAffine`", "0", "uint8, floats; nearest: all", "1 level; floats 1e-5"),
    "warp_perspective": ("`cv2.warpPerspective`", "0", "uint8, floats; nearest: all", "1 level; floats 1e-5"),
    "remap": ("`cv2.remap`", "0", "uint8, floats; nearest: all", "1 level; floats 1e-5"),
    "remap_adjoint": ("transpose of remap", "1e-12", "floats", "1e-5"),
    "remap_grad_map": ("derivative of remap in its map", "1e-12", "floats", "1e-5"),
    "resized_crop": (
        "`Image.crop(box).resize`, `cv2.resize` of a slice",
        "as resize",
        "as resize",
        "PIL 0, OpenCV 1 level; floats 1e-5",
    ),
    "resized_crop_adjoint": ("transpose of resized_crop", "1e-12", "floats", "1e-5"),
    "gaussian_blur": ("`cv2.GaussianBlur`", "0", "uint8, floats", "1 level; floats 1e-5"),
    "filter2d": ("`cv2.filter2D`", "0", "uint8, floats", "1 level; floats 1e-5"),
    "adjust_sharpness": (
        "`PIL.ImageEnhance.Sharpness`",
        "uint8 0; floats 1e-6",
        "uint8, floats",
        "uint8 0; floats 1e-5",
    ),
    "erase": ("`PIL.Image.paste`", "0", "all", "0"),
    "blend": ("`PIL.Image.blend`", "uint8 0; floats 1e-6", "uint8, floats", "uint8 0; floats 1e-5"),
    "encode_image": ("`PIL.Image.save`", "0 (bytes)", "uint8; gray png: uint16", ""),
    "decode_image": ("`PIL.Image.open`", "0", "uint8", ""),
}


def _gradient(row: Operator) -> str:
    if isinstance(row.autograd, Gradient):
        if row.adjoint is None:
            return "derived"
        forward = "" if row.autograd.jvp else ", no forward mode"
        return f"`{row.adjoint}`{forward}"
    if row.contract in (Contract.INPLACE, Contract.BUFFERS):
        return "yes"
    return "refused, as PyTorch does" if row.contract is Contract.OUT else "–"


def _decomposition(row: Operator, difference: str) -> str:
    if row.decomposition is not None:
        return difference
    return "functional" if row.contract.mutates else "–"


def table() -> str:
    lines = [
        "| call | reference | difference | dtypes | gradient | vmap | DTensor | autocast | in core ATen |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in operators().items():
        reference, difference, dtypes, decomposed = _FACTS[name]
        public = name in imgops.__all__
        cells = (
            f"`imgops.{name}`" if public else f"`torch.ops.imgops.{name}`",
            reference,
            difference,
            dtypes,
            _gradient(row),
            "yes" if row.vmap else "–",
            "batch" if row.sharding else "–",
            row.autocast.__name__ if row.autocast else "as given",
            _decomposition(row, decomposed),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def current() -> str:
    found = _MARKS.search(README.read_text())
    return found.group(2) if found else ""


if __name__ == "__main__":
    README.write_text(_MARKS.sub(lambda m: m.group(1) + table() + m.group(3), README.read_text()))
