"""The private names of the libraries that are converted: in one module each; a test fails when a release moves one."""

from __future__ import annotations

import ast
import random
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import imgops
from imgops.integrations.timm import timm_private

ROOT = Path(imgops.__file__).parent
#: Module of imgops.integrations -> the classes and modules whose private names it uses, and the names.
USED: dict[str, dict[str, tuple[str, ...]]] = {
    "albumentations/rules.py": {
        "albumentations.SomeOf": ("_get_idx",),
        "albumentations.RandomOrder": ("_get_idx",),
        "albumentations.HorizontalFlip": ("_abc_impl",),
    },
    "open_clip.py": {"open_clip.transform": ("_convert_to_rgb",)},
    "timm/timm_private.py": {
        "timm.data.auto_augment.AugMixAugment": ("_calc_blended_weights",),
        "timm.data.mixup.Mixup": ("_params_per_batch", "_params_per_elem"),
        "timm.data.random_erasing.RandomErasing": ("_erase",),
    },
    "transformers/_backend.py": {
        "transformers.image_processing_backends.TorchvisionBackend": (
            *("_preprocess", "_fuse_mean_std_and_rescale_factor"),
        ),
        "transformers.models.vilt.image_processing_vilt.ViltImageProcessor": ("_pad_batch",),
        "transformers.video_processing_utils.BaseVideoProcessor": ("_prepare_input_videos",),
    },
}
#: PyTorch's own names that subclasses of modules use.
_OF_TORCH = {"_modules"}


def found(path: str) -> Any:
    """Return a module, or a class in one."""
    pytest.importorskip(path.partition(".")[0])
    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)


@pytest.mark.parametrize("module", USED)
def test_private_names_are_there(module: str) -> None:
    for path, names in USED[module].items():
        assert [n for n in names if not hasattr(found(path), n)] == [], path


def own_names() -> set[str]:
    """Return the names that imgops defines itself."""
    names = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
                names.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return names


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_names(tree: ast.AST) -> set[str]:
    """Return the private names that are attributes, imported, or written as text."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith("imgops"):
            names |= {*str(node.module).split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Constant) and str(node.value).isidentifier():
            names.add(str(node.value))
    return {name for name in names if is_private(name)}


def test_one_module_has_the_private_names_of_a_library() -> None:
    own = own_names() | _OF_TORCH | {"_imgops_shares", "_imgops_worker_seed"}
    in_table = {name for paths in USED.values() for names in paths.values() for name in names}
    folder = ROOT / "integrations"
    for path in sorted(folder.rglob("*.py")):
        known = {n for names in USED.get(str(path.relative_to(folder)), {}).values() for n in names}
        used = private_names(ast.parse(path.read_text()))
        assert used - own <= known, path
        if path.parent.name == "timm":  # whose names imgops may have, too
            assert used & in_table <= known, path


def test_mixup_of_timm() -> None:
    mixup = pytest.importorskip("timm.data.mixup")
    settings = vars(mixup.Mixup(0.3, 0.7))
    np.random.seed(0)
    drawn = [timm_private.draw_mixup(settings, None) for _ in range(20)]
    assert all(0 <= lam <= 1 for lam, _ in drawn) and {bool(is_box) for _, is_box in drawn} == {True, False}
    lams, are_boxes = timm_private.draw_mixup(settings, 5)
    assert lams.shape == are_boxes.shape == (5,)


def test_blends_of_timm() -> None:
    """Blending one chain after the other gives each chain its weight, and the image the rest."""
    pytest.importorskip("timm")
    given, m = np.float32([0.5, 0.2, 0.3]), 0.8
    weights, shares = timm_private.blended_weights(given, m), np.array([1.0, 0, 0, 0])
    for i, weight in enumerate(weights):
        shares *= 1 - weight
        shares[1 + i] = weight
    assert shares == pytest.approx([1 - m, *given * m])


def test_blocks_of_timm() -> None:
    """``_erase`` sets one item for each block: all channels, rows and columns, which have starts and ends."""
    erasing = pytest.importorskip("timm.data.random_erasing")

    class Image(dict[Any, Any]):
        def __setitem__(self, place: Any, values: torch.Tensor) -> None:
            super().__setitem__(str(place), (place, values))

    given, images = erasing.RandomErasing(1.0, mode="pixel", max_count=2, device="cpu"), [Image(), Image()]
    random.seed(0)
    timm_private.erase(vars(given), images, (3, 20, 30), torch.float32)
    assert all(images)
    for (channels, rows, columns), values in (block for image in images for block in image.values()):
        assert channels == slice(None)
        assert values.shape == (3, rows.stop - rows.start, columns.stop - columns.start)


def test_choices_of_albumentations() -> None:
    albumentations = pytest.importorskip("albumentations")
    given = albumentations.SomeOf([albumentations.NoOp() for _ in range(5)], n=3)
    assert len(given._get_idx()) == 3 and set(given._get_idx()) <= set(range(5))


def test_modules_of_transformers() -> None:
    """The models call torchvision's functions by a global name, of which there is a PIL twin."""
    transformers = pytest.importorskip("transformers")
    from torchvision.transforms.v2 import functional

    kind = transformers.Owlv2ImageProcessor
    assert functional in vars(import_module(kind.__module__)).values()
    assert import_module(kind.__module__.replace(".image_processing_", ".image_processing_pil_"))
