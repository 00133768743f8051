"""torchvision's private names: all in one module, each as it is used; a test fails when a release moves one."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops import transforms as ours
from imgops.transforms._core import torchvision_private

FOLDER = Path(ours.__file__).parent


def private_names() -> set[str]:
    """Return the private names that torchvision's transforms use, on themselves or in their modules."""
    names = set()
    for cls in vars(v2).values():
        if isinstance(cls, type) and issubclass(cls, torch.nn.Module):
            for base in cls.__mro__:
                if base.__module__.startswith("torchvision."):
                    names |= {n for n in vars(base) if n.startswith("_") and not n.startswith("__")}
                    tree = ast.parse(inspect.getsource(base).lstrip())
                    names |= {
                        n.attr
                        for n in ast.walk(tree)
                        if isinstance(n, ast.Attribute) and n.attr.startswith("_")
                    }
    return {n for n in names if not n.startswith("__")}


def test_one_module_has_the_private_names() -> None:
    """No other module imports torchvision's private names, or uses a private attribute of its classes."""
    private = private_names() - own_names()
    for path in sorted(FOLDER.rglob("*.py")):
        if path.name == "torchvision_private.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("torchvision"):
                parts = [*str(node.module).split("."), *(a.name for a in node.names)]
                assert not any(p.startswith("_") for p in parts), (path, parts)
            if isinstance(node, ast.Attribute):
                assert node.attr not in private, (path, node.lineno, node.attr)


def own_names() -> set[str]:
    """Return the private names that imgops' classes define themselves, and PyTorch's hooks of modules."""
    hooks = {n for n in vars(torch.nn.Module()) if n.startswith("_")}
    return {"_config", "_description", "_apply"} | hooks


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
