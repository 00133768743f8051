"""The private names of torchvision and of the libraries that are converted: in one module each.

A test fails when a release moves one.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional

import imgops
from imgops import transforms as ours
from imgops.integrations.timm import timm_private
from imgops.transforms._core import torchvision_private

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
    kind = transformers.Owlv2ImageProcessor
    assert functional in vars(import_module(kind.__module__)).values()
    assert import_module(kind.__module__.replace(".image_processing_", ".image_processing_pil_"))


# -- torchvision -------------------------------------------------------------------------------------------


def private_names_of_torchvision() -> set[str]:
    """Return the private names that torchvision's transforms use, on themselves or in their modules."""
    modules = [c for c in vars(v2).values() if isinstance(c, type) and issubclass(c, torch.nn.Module)]
    names: set[str] = set()
    for base in {base for cls in modules for base in cls.__mro__}:
        if base.__module__.startswith("torchvision."):
            tree = ast.parse(inspect.getsource(base).lstrip())
            names |= {*vars(base), *(n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute))}
    return {name for name in names if is_private(name)}


def test_one_module_has_the_private_names_of_torchvision() -> None:
    """No other module imports them, or uses a private attribute of its classes; modules of PyTorch have some."""
    private = private_names_of_torchvision() - {"_config", "_description", "_apply", *vars(torch.nn.Module())}
    for path in sorted((ROOT / "transforms").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())) if path.name != "torchvision_private.py" else ():
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("torchvision"):
                parts = [*str(node.module).split("."), *(a.name for a in node.names)]
                assert not any(p.startswith("_") for p in parts), (path, parts)
            if isinstance(node, ast.Attribute):
                assert node.attr not in private, (path, node.lineno, node.attr)


def test_base_class() -> None:
    assert issubclass(v2.RandomHorizontalFlip, torchvision_private.WithProbability)
    assert not issubclass(v2.RandomCrop, torchvision_private.WithProbability)
    assert torch.Tensor in torchvision_private.DEFAULT_TYPES
    assert torchvision_private.types_of(v2.Resize(3)) == torchvision_private.DEFAULT_TYPES
    for name in ("_call_kernel", "_extract_params_for_v1_transform", "_needs_transform_list"):
        assert callable(getattr(v2.Transform, name))
    for name in ("_apply_image_or_video_transform", "_flatten_and_extract_image_or_video"):
        assert callable(getattr(v2.RandAugment, name))
    assert callable(v2.AugMix._sample_dirichlet) and callable(v2.MixUp._check_image_or_video)


def test_functions_of_the_first_version() -> None:
    """Each module calls functions of the next one by their names."""
    public, pil, tensor = map(vars, torchvision_private.FIRST_FUNCTIONS)
    assert {"hflip", "resize", "crop"} <= {*public} & {*pil} & {*tensor}
    assert public["F_pil"].__dict__ is pil and public["F_t"].__dict__ is tensor


def test_functions() -> None:
    assert torchvision_private.interpolation_mode("bilinear") is InterpolationMode.BILINEAR
    assert torchvision_private.interpolation_mode(2) is InterpolationMode.BILINEAR
    assert torchvision_private.size_after_resize((10, 20), 5, None) == [5, 10]
    assert list(torchvision_private.pad_sides([1, 2])) == [1, 1, 2, 2]
    fills = v2.Pad(1, fill={tv_tensors.Mask: 3, "others": 5})
    assert (
        torchvision_private.fill_of(fills, tv_tensors.Mask) == 3
        and torchvision_private.fill_of(fills, int) == 5
    )
    torchvision_private.set_fill(fills, {int: 7})
    assert torchvision_private.fill_of(fills, int) == 7
    assert torchvision_private.needs_transform(fills, [torch.zeros(1), "text"]) == [True, False]
    sanitize = v2.SanitizeBoundingBoxes(labels_getter=lambda x: x[1])
    assert torchvision_private.labels_of(sanitize, (1, 2)) == 2
    boxes = torch.tensor([[0.0, 0, 3, 3], [1, 1, 1, 1]])
    kept = torchvision_private.valid_boxes(boxes, tv_tensors.BoundingBoxFormat.XYXY, (4, 4), 1.0, 1.0)
    assert kept.tolist() == [True, False]
    assert torchvision_private.valid_keypoints(boxes[:, :2], (4, 4)).tolist() == [True, True]


def test_dispatch() -> None:
    kernel = torchvision_private.kernel_of(v2.functional.horizontal_flip, torch.Tensor)
    assert kernel(torch.arange(2.0)).tolist() == [1, 0]
    assert torchvision_private.kernel_of(v2.functional.horizontal_flip, int)(3) == 3
    with pytest.raises(TypeError):
        torchvision_private.kernel_of(v2.functional.horizontal_flip, int, passthrough=False)
    assert not torchvision_private.is_users_kernel(v2.functional.horizontal_flip, tv_tensors.Image)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_scripting() -> None:
    """``torch.jit.script`` compiles the function that ``__prepare_scriptable__`` names, nested ones too."""
    image = torch.arange(2.0).reshape(1, 1, 2)

    def nested(image: torch.Tensor) -> torch.Tensor:
        return ours.functional.horizontal_flip(image)

    for function in (ours.functional.horizontal_flip, nested):
        torch.jit._state._clear_class_state()
        with pytest.warns(UserWarning, match=r"horizontal_flip: .* compiles torchvision's code instead"):
            scripted = torch.jit.script(function)
        assert scripted(image).flatten().tolist() == [1, 0]
    with pytest.warns(UserWarning, match=r"RandomCrop: .* compiles torchvision's code instead"):
        torch.jit.script(ours.RandomCrop(1))


def test_registered_functionals() -> None:
    """torchvision's ``_call_kernel`` finds kernels of imgops, of torchvision and of users, in this order."""

    class Depth(tv_tensors.TVTensor):
        pass

    called = v2.Transform()._call_kernel
    flip = ours.functional.vertical_flip
    boxes = tv_tensors.BoundingBoxes([[0, 1, 2, 4]], format="XYXY", canvas_size=(9, 9))
    assert called(flip, boxes).tolist() == [[0, 5, 2, 8]]
    v2.functional.register_kernel(v2.functional.vertical_flip, Depth)(lambda depth: depth + 1)
    assert called(flip, torch.zeros(1, 1, 1).as_subclass(Depth)).item() == 1
    with pytest.raises(ValueError, match="No kernel registered"):
        called(lambda x: x, boxes)


def test_policies() -> None:
    flat, _, place = torchvision_private.one_image(
        v2.RandAugment(), ({"a": 3, "b": tv_tensors.Image(torch.zeros(3, 4, 4))},)
    )
    assert place == 1 and flat[0] == 3
    assert torchvision_private.beta(v2.MixUp(num_classes=2)).sample(()).shape == (1,)
    with pytest.raises(ValueError, match="batch"):
        torchvision_private.check_batch(v2.MixUp(num_classes=2), torch.zeros(3, 4, 4), 3)


def test_private_attributes() -> None:
    """They are what torchvision's constructors set, and a change of one of them counts."""
    found = set()
    for cls in {base for name in ours.OURS for base in getattr(v2, name, object).__mro__}:
        if cls.__module__.startswith("torchvision.transforms"):
            found |= set(re.findall(r"self\.(_[a-z_]+)\s*(?::[^=\n]+)?=[^=]", inspect.getsource(cls)))
    assert found == set(torchvision_private.KEPT)
