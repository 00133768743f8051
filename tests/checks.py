"""The shared checkers. Each has a test in test_checkers.py that shows it fails when it should."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from imgops.extend.testing import _call
from imgops.extend.testing._call import bits_equal as bits_equal
from imgops.extend.testing._call import through_dispatcher as through_dispatcher
from imgops.extend.testing._checks import check_adjoint as check_adjoint
from imgops.extend.testing._checks import check_vmap as check_vmap
from imgops.extend.testing._checks import same_metadata as same_metadata

ROOT = Path(__file__).parent.parent


def run_python(*options: str, **environment: str) -> str:
    """Run Python in a new process that can import the tests; return its output."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *options],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def captured(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the one operator call that a public function makes: the operator and its arguments."""
    ((op, op_args, _),) = _call.capture(function, *args, **kwargs)
    return op, op_args


def tree_tensors(args: Any) -> list[Tensor]:
    return [a for a in torch.utils._pytree.tree_leaves(args) if isinstance(a, Tensor)]


#: The attributes of a tensor or tv_tensor that are compared, in addition to its class and its values.
ABOUT = ("dtype", "shape", "device", "canvas_size", "format", "clamping_mode")


def difference(found: Any, wanted: Any, tolerance: float = 0.0, levels: int = 0) -> str:
    """Return how the leaves of two structures differ: in number, class, metadata or value; "" if they are the same.

    Floats may differ by a tolerance, relative and absolute, and integers by levels. NaN equals itself.
    """
    pairs = [tree_leaves(x) for x in (found, wanted)]
    if len(pairs[0]) != len(pairs[1]):
        return f"{len(pairs[0])} leaves instead of {len(pairs[1])}"
    for a, b in zip(*pairs, strict=True):
        if type(a) is not type(b):
            return f"{type(a)} instead of {type(b)}"
        if isinstance(b, Tensor):
            known = [[getattr(x, name, None) for name in ABOUT] for x in (a, b)]
            if known[0] != known[1]:
                return f"{known[0]} instead of {known[1]}"
            a, b = (x.detach().as_subclass(Tensor) for x in (a, b))
            near = tolerance if b.dtype.is_floating_point else levels
            if not bits_equal(a, b) and not (
                near and torch.allclose(a.double(), b.double(), tolerance, near, equal_nan=True)
            ):
                return f"values that differ by up to {(a.double() - b.double()).abs().max()}"
        elif isinstance(b, (PIL.Image.Image, np.ndarray)):
            if not np.array_equal(np.asarray(a), np.asarray(b)):
                return f"other values of {type(b)}"
        elif hasattr(b, "numbers"):  # the draws of a transform
            if more := difference(a.numbers, b.numbers, tolerance, levels):
                return more
        elif a != b:
            return f"{a} instead of {b}"
    return ""


def same(found: Any, wanted: Any, name: Any = "", tolerance: float = 0.0, levels: int = 0) -> None:
    """Check that two structures are the same, see :func:`difference`."""
    differs = difference(found, wanted, tolerance, levels)
    assert not differs, f"{name}: {differs}"


def check_format(out: Tensor, image: Tensor) -> None:
    """Check that interleaved input and its slices give interleaved output, other input planar output, and no alias."""
    channel, row, column = image.stride()[-3:]
    pixels = 0 < channel < (column if image.shape[-1] > 1 else row)
    interleaved = pixels and image.shape[-3] > 1 and not image.is_contiguous()
    if interleaved and out.numel():
        assert out.movedim(-3, -1).is_contiguous(), f"strides {out.stride()} of an interleaved image"
    else:
        assert out.is_contiguous() or not out.numel(), f"strides {out.stride()} of a planar image"
    if out.numel() and image.numel():
        assert out.untyped_storage().data_ptr() != image.untyped_storage().data_ptr(), "output aliases input"


def check_untouched(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> None:
    before = [t.detach().clone() for t in tree_tensors(args)]
    function(*args, **kwargs)
    for tensor, copy in zip(tree_tensors(args), before, strict=True):
        assert bits_equal(tensor, copy), "an input was written to"


def check_raises(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Check that a call raises exactly this error with exactly this message."""
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def check_compiled_raises(call: Callable[..., Any], message: str, *args: Any, **options: Any) -> None:
    """Check that the compiled call fails, too: a compiler may wrap the error in its own, which has the message in it."""
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    compiled = torch.compile(call, fullgraph=True, **options)
    with pytest.raises(Exception) as caught:
        compiled(*args)
    chain, text = caught.value, ""
    while chain is not None:
        text += str(chain)
        chain = chain.__cause__ or chain.__context__
    assert message in text or message.replace("'", "\\'") in text, text
