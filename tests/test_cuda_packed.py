"""Packed images on CUDA: as many launches for all images as for one, run by Triton's interpreter."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import bits_equal

import imgops
from imgops._operator.record import operators
from imgops.decomposition.packed import of_image
from imgops.kernels import cuda
from tests.packed_calls import COUNT, ONLY_UINT8, SIZES, SMALL, calls, packed_arguments
from tests.tiers import nightly_unless

CALLS = calls()
pytestmark = pytest.mark.skipif(
    not cuda.runs_on(torch.device("cpu")), reason="Triton was imported without its interpreter"
)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are launched."""
    names: list[str] = []
    for path in Path(cuda.__file__).parent.glob("*.py"):
        module = import_module(f"{cuda.__name__}.{path.stem}")
        if path.stem != "__init__" and hasattr(module, "launch"):
            real = module.launch

            def spy(kernel: Any, *args: Any, real: Any = real, **how: Any) -> Any:
                names.append(kernel.fn.__name__)
                return real(kernel, *args, **how)

            monkeypatch.setattr(module, "launch", spy)
    return names


def _one_by_one(name: str, images: list[torch.Tensor], given: tuple[Any, ...], tensors: int) -> Any:
    """Call the operator's kernel for CUDA for each image."""
    if name == "flip":
        return [image.flip(*given) for image in images]
    row, made = operators("imgops")[name], []
    for i, image in enumerate(images):
        args = image, *of_image(row, list(given[:tensors]), i), *given[tensors:]
        out = row.fake(*args)
        row.cuda(out, *args)
        made.append(out)
    return made


def _is_quick(case: tuple[int, torch.dtype, bool]) -> bool:
    """Return whether ``make test`` runs a case: one of a call's four, in turn, and one large table of weights."""
    call, dtype, interleaved = case
    is_large = CALLS[call][0] == "resized_crop" and CALLS[call][1][-2:] == ("lanczos", False)
    turn = call % 2 if CALLS[call][0] in ONLY_UINT8 else call % 4
    return not is_large and turn == 2 * (dtype != torch.uint8) + interleaved


CASES = [
    (i, dtype, interleaved)
    for i, (name, _) in enumerate(CALLS)
    for dtype in (torch.uint8, torch.float32)
    for interleaved in (False, True)
    if name not in ONLY_UINT8 or dtype == torch.uint8
]


@pytest.mark.parametrize(
    ("call", "dtype", "interleaved"),
    nightly_unless(_is_quick, CASES),
    ids=[
        "-".join(map(str, (n, *(x for x in g if isinstance(x, str)), dtype, interleaved)))
        for i, dtype, interleaved in CASES
        for n, g in [CALLS[i]]
    ],
)
def test_all_images_are_one_launch_and_have_their_own_bits(
    call: int, dtype: torch.dtype, interleaved: bool, launched: list[str], whole: bool
) -> None:
    sizes = SIZES if whole else SMALL
    name, given = calls(sizes)[call]
    operator, packed, args = packed_arguments(name, given, interleaved, dtype, sizes)
    found = torch.full_like(operator.fake(*args), 77)
    # Tables that are kept make no launches.
    import_module(f"{cuda.__name__}._resampling_tables")._kept.clear()
    operator.cuda(found, *args)
    together = len(launched)
    if dtype == torch.uint8 and name in ("resize", "resized_crop") and given[-1]:
        assert bits_equal(found, operator.overload(*args))  # the CPU's levels, which are PIL's
    own = given if name != "solarize" or dtype != torch.uint8 else (given[0] * 255,)
    wanted = _one_by_one(name, packed.unpack(), own, operator.tensors - 3)
    each = (len(launched) - together) // COUNT if name != "flip" else 1
    assert together == each
    if found.ndim == 4:
        assert bits_equal(found, torch.stack(wanted))
    else:
        flat = [(x.permute(1, 2, 0) if interleaved else x).reshape(-1) for x in wanted]
        assert bits_equal(found, torch.cat(flat))


def test_every_operator_of_the_list_is_called() -> None:
    assert {name for name, _ in CALLS} == {
        "flip",
        *(n for n, o in operators().items() if getattr(o.cuda, "takes_packed", False)),
    }


def test_values_are_checked_before_a_launch(launched: list[str]) -> None:
    """Each box must lie inside of its own image."""
    boxes = torch.tensor([[0, 0, 9, 8]]).expand(COUNT, 4)
    operator, _, args = packed_arguments("resized_crop", (boxes, 4, 4, "bilinear", True), False, torch.uint8)
    found = torch.zeros_like(operator.fake(*args))
    with pytest.raises(ValueError, match="resized_crop: box must satisfy"):
        operator.cuda(found, *args)
    assert not launched and not found.any()


def test_the_other_functions_loop_over_the_images() -> None:
    images = [torch.rand(3, 20, 30), torch.rand(3, 16, 8)]
    packed = imgops.PackedImages.of(images)
    for name, given in (
        ("median_blur", (3,)),
        ("resize", (None, 4, 4, "area", False)),
    ):
        operator = operators("imgops_packed")[name]
        tensors = operator.tensors - 3
        where = packed.data, packed.sizes, packed.offsets
        args = (*where, *given[:tensors], 3, *given[tensors:], False)
        found = torch.empty_like(operator.fake(*args))
        operator.cuda(found, *args)
        assert bits_equal(found, operator.overload(*args))
