"""The forms in which users give images and parameters: arrays, lists and tensors of one value, torchvision's classes."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms as ours
from imgops.ops.movement import _crop
from imgops.transforms import functional
from imgops.transforms.annotations import Camera
from tests.checks import bits_equal
from tests.groups import compile_together, compiled, groups, together
from tests.specs import SPECS, Sample
from tests.specs._maker import Maker
from tests.test_modes import ARGUMENTS, arguments_of
from tests.tiers import every_night, nightly

#: The first two samples of each public function; some parameters are numbers in one of them, and tensors in the other.
PUBLIC = [s for name, spec in SPECS.items() if name in imgops.__all__ for s in spec.samples[:2]]


def bound(sample: Sample, maker: Maker) -> inspect.BoundArguments:
    function, args, keywords = sample.call(maker)
    return inspect.signature(function).bind(*args, **keywords)


def result(sample: Sample, given: inspect.BoundArguments, **changed: Any) -> Any:
    return sample.function()(**given.arguments | changed)


def values_of(sample: Sample, given: inspect.BoundArguments) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters that may differ for three images, as tensors for all images."""
    both = bound(sample, Maker(sample.dtypes[0], batch=(3,)))
    for name, value in given.arguments.items():
        if isinstance(value, (Tensor, float, int)) and not isinstance(value, bool):
            one = torch.as_tensor(value, dtype=None if isinstance(value, Tensor) else torch.float64)
            if one.dim() < 3 and (not isinstance(value, Tensor) or one.shape == both.arguments[name].shape):
                try:
                    result(sample, both, **{name: one.expand(3, *one.shape)})
                except (TypeError, ValueError):
                    continue
                yield name, one


@pytest.mark.parametrize("samples", groups(PUBLIC, 40))
def test_one_value(samples: list[Sample], whole: bool) -> None:
    """A tensor, an array or a list of one value is that value for one image; nightly, in a graph too."""
    calls, wanted = {}, {}
    for sample in samples:
        given = bound(sample, Maker(sample.dtypes[0]))
        for name, one in values_of(sample, given):
            case = f"{sample}: {name}"
            wanted[case] = result(sample, given, **{name: one})
            calls[case] = partial(result, sample, given, **{name: one[None]})
            assert torch.equal(calls[case](), wanted[case]), case
            if not isinstance(given.arguments[name], Tensor):
                for form in (one[None].numpy(), one[None].tolist()):
                    assert torch.equal(result(sample, given, **{name: form}), wanted[case]), (case, form)
    graph, _ = compiled(together(calls), "eager")
    for case, found in graph().items() if whole else ():
        assert torch.equal(found, wanted[case]), f"{case} in a graph"


def arrays_like(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield arrays of the same values that PyTorch refuses, or warns of."""
    for axis in range(array.ndim):
        yield f"reversed along {axis}", np.flip(np.flip(array, axis).copy(), axis)
    yield "other byte order", array.astype(array.dtype.newbyteorder())
    fixed = array.copy()
    fixed.flags.writeable = False
    yield "read only", fixed
    fields = np.zeros(array.shape, [("other", np.uint8), ("values", array.dtype)])
    fields["values"] = array
    yield "a field", fields["values"]
    if array.ndim:
        yield "every second", np.repeat(array, 2, -1)[..., ::2]


def check_arrays(name: str, call: Callable[[np.ndarray], Any], array: np.ndarray) -> None:
    wanted = np.asarray(call(array))
    for kind, other in arrays_like(array):
        found = np.asarray(call(other))
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted), f"{name}: {kind}"


COLORS = np.random.default_rng(0).integers(0, 256, (5, 6, 3), np.uint8)
IMAGE = torch.from_numpy(COLORS.copy()).permute(2, 0, 1).float() / 255
WHOLE, REAL = ours.CenterCrop((5, 6)), np.random.default_rng(1).random
QUAD = np.array([[0.0, 0.0], [5.0, 0.5], [5.0, 4.0], [0.5, 4.0]])
#: Every public place, other than operators, that takes an array: its call, and the array.
PLACES: dict[str, tuple[Callable[[np.ndarray], Any], np.ndarray]] = {
    "to_image": (functional.to_image, COLORS),
    "to_image of floats": (functional.to_image, REAL((4, 5))),
    "to_image of 16 bits": (functional.to_image, COLORS.astype(np.uint16) * 257),
    "to_tensor": (functional.to_tensor, COLORS),
    "to_pil_image": (functional.to_pil_image, COLORS),
    "ToImage": (ours.Compose([ours.ToImage(), WHOLE]), COLORS),
    "ToTensor": (lambda a: ours.Compose([ours.ToTensor(), WHOLE])(a), REAL((4, 5, 3))),
    "ToPILImage": (ours.ToPILImage(), COLORS),
    "the first version's ToTensor": (ours.convert(v1.Compose([v1.ToTensor(), v1.CenterCrop(4)])), COLORS),
    "normalize": (lambda a: functional.normalize(IMAGE, a, a), REAL(3)),
    "fill": (lambda a: functional.rotate(IMAGE, 30, fill=a), REAL(3)),
    "perspective": (lambda a: functional.perspective(IMAGE, a, QUAD), QUAD * 0.9),
    "erase": (lambda a: functional.erase(IMAGE, 0, 0, 2, 2, a), REAL((3, 2, 2))),
    "boxes of files": (
        lambda a: torch.stack(
            imgops.decode_images([imgops.encode_image((IMAGE * 255).byte(), "png")] * 2, box=a)
        ),
        np.array([[0, 0, 2, 2], [1, 1, 3, 3]]),
    ),
    "cameras": (lambda a: Camera(a, canvas_size=(5, 6)), np.eye(3)),
}


@pytest.mark.filterwarnings("ignore:The .*o.?[tT]ensor.* is deprecated")
def test_arrays() -> None:
    """A place that takes an array takes every array, without a warning."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*not writable")
            for name, (call, array) in PLACES.items():
                check_arrays(name, call, array)
            for sample in PUBLIC:
                given = bound(sample, Maker(sample.dtypes[0]))
                for name, value in given.arguments.items():
                    numbers = isinstance(value, (tuple, list)) and not isinstance(value[0], str)
                    if numbers or (isinstance(value, Tensor) and value.dim() < 3):
                        call = partial(_with_array, sample, given, name)
                        try:
                            call(np.array(value))
                        except (TypeError, ValueError):
                            assert isinstance(value, Tensor), f"{sample}: {name}"
                        else:
                            check_arrays(f"{sample}: {name}", call, np.array(value))
    finally:
        torch.set_warn_always(always)


def _with_array(sample: Sample, given: inspect.BoundArguments, name: str, array: np.ndarray) -> Any:
    return result(sample, given, **{name: array})


#: Functionals whose tensors have OpenCV's pixels.
WARPS = ("affine", "elastic", "perspective", "rotate")


@pytest.mark.parametrize("name", functional.OURS)
def test_images_without_channels(name: str) -> None:
    """What a functional of torchvision's versions takes as (H, W), ours takes, with the same values."""
    levels = (IMAGE[0] * 255).byte()
    for image in (IMAGE[0], levels, tv_tensors.Mask(levels)):
        for args in ARGUMENTS[name]:
            known = arguments_of(name, args, not image.is_floating_point())
            for module in (v1.functional, v2.functional):
                if isinstance(image, tv_tensors.TVTensor) and module is v1.functional:
                    continue
                try:
                    wanted = getattr(module, name)(image.clone(), *known)
                except Exception:
                    continue
                found = getattr(functional, name)(image, *known)
                if name not in WARPS:
                    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


#: The arguments that have a number for each channel, and those without which there is no transform.
OF_CHANNELS = ("mean", "std", "fill", "value")
NEEDED = {"mean": [0.5], "std": [0.5], "size": 4, "padding": 1, "degrees": 30, "kernel_size": 3}


@pytest.mark.parametrize(
    "name",
    sorted(n for n in ours.OURS if set(OF_CHANNELS) & set(inspect.signature(getattr(ours, n)).parameters)),
)
def test_numbers_of_channels(name: str) -> None:
    """A number, a list or a tuple that a constructor of torchvision's versions takes, ours takes."""
    parameters = inspect.signature(getattr(ours, name)).parameters
    needed = {
        n: v
        for n, v in NEEDED.items()
        if n in parameters and parameters[n].default is inspect.Parameter.empty
    }
    forms = (0.5, 1, np.float32(0.5), np.int64(1), [0.5], (1,), [0.1, 0.2, 0.3], (1, 2, 3), None)
    for argument in set(OF_CHANNELS) & set(parameters):
        for form in forms:
            for module in (v1, v2):
                try:
                    made = getattr(module, name)(**needed | {argument: form})
                    torch.manual_seed(0)
                    wanted = made(IMAGE)
                except (AttributeError, TypeError, ValueError, RuntimeError):
                    continue
                torch.manual_seed(0)
                found = getattr(ours, name)(**needed | {argument: form})(IMAGE)
                if name == "Normalize":
                    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_misspelt_arguments() -> None:
    """The error of a misspelt argument says which one may be meant: functions, operators, classes and functionals."""
    every: list[Any] = [f for n in imgops.__all__ if inspect.isfunction(f := getattr(imgops, n))]
    every += [getattr(ours, n) for n in (*ours.OURS, *ours.ADDED)]
    every += [getattr(functional, n) for n in functional.OURS]
    for call in every:
        parameters = inspect.signature(call).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            continue
        for name in parameters:
            wrong = name[:1] + name[2:]
            if len(name) > 4:
                text = rf"^\w+: argument must be .*{name}.*, got '{wrong}'; did you mean '"
                with pytest.raises(TypeError, match=text):
                    call(**{wrong: 1})
    with pytest.raises(TypeError, match=r"^crop: argument must be .*, got 'bottm'; did you mean 'bottom'\?"):
        _crop(IMAGE, 0, 0, 1, bottm=1)


def test_names_of_the_first_version() -> None:
    """A functional of torchvision's first version with its own name of the image: the error says what to write."""
    for name in functional.OURS:
        first = next(iter(inspect.signature(getattr(v1.functional, name, lambda inpt: None)).parameters))
        if first != "inpt":
            with pytest.raises(
                TypeError, match=rf"^{name}: argument must be .*, got '{first}'; did you mean 'inpt'\?"
            ):
                getattr(functional, name)(**{first: IMAGE})


# -- torchvision's annotated images keep their class -----------------------------------------------------

X = torch.arange(3 * 6 * 7).reshape(3, 6, 7).float()
CLASSES = {
    "Image": lambda: tv_tensors.Image(X.clone()),
    "Video": lambda: tv_tensors.Video(torch.stack([X, X + 1])),
    "Mask": lambda: tv_tensors.Mask(X[:1].long()),
}
OF_CLASSES: dict[str, Any] = {
    "crop": lambda x: imgops.crop(x, (1, 1, 4, 5)),
    "paste": lambda x: imgops.paste(x, x[..., :2, :2].clone(), (1, 1)),
    "pad": lambda x: imgops.pad(x, (1, 2), "reflect"),
    "pad-fill": lambda x: imgops.pad(x, 1, fill=3),
    "resize": lambda x: imgops.resize(x, (3, 4), "nearest"),
    "resize-box": lambda x: imgops.resize(x, (3, 4), "nearest", box=(0, 0, 4.5, 5)),
}


@pytest.mark.parametrize("kind", list(CLASSES))
@pytest.mark.parametrize("name", list(OF_CLASSES))
def test_the_class_comes_out(name: str, kind: str) -> None:
    image = CLASSES[kind]()
    out = OF_CLASSES[name](image)
    assert type(out) is type(image)
    assert bits_equal(out.as_subclass(Tensor), OF_CLASSES[name](image.as_subclass(Tensor)))


@pytest.mark.parametrize("kind", list(CLASSES))
def test_in_place_gives_the_same_object(kind: str) -> None:
    image = CLASSES[kind]()
    plain = image.as_subclass(Tensor).clone()
    assert imgops.paste_(image, torch.zeros_like(plain[..., :2, :2]), (1, 1)) is image
    assert bits_equal(
        image.as_subclass(Tensor), imgops.paste(plain, torch.zeros_like(plain[..., :2, :2]), (1, 1))
    )


def test_the_first_image_decides() -> None:
    image, mask = tv_tensors.Image(X.clone()), tv_tensors.Mask(torch.ones(1, 2, 2))
    assert type(imgops.paste(image, X[:, :2, :2], (0, 0), mask)) is tv_tensors.Image
    assert type(imgops.paste(X, image[:, :2, :2], (0, 0), mask)) is Tensor
    batch = imgops.paste(image, torch.ones(4, 3, 2, 2), (0, 0))
    assert type(batch) is tv_tensors.Image and batch.shape == (4, 3, 6, 7)


def test_metadata_of_a_class_that_hands_it_on() -> None:
    class Labeled(tv_tensors.Image):
        label: str

        @classmethod
        def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Any:
            out = tensor.as_subclass(cls)
            out.label = like.label
            return out

    image = X.clone().as_subclass(Labeled)
    image.label = "cat"
    out = imgops.resize(image, (3, 4))
    assert type(out) is Labeled and out.label == "cat"


def test_gradients_pass_through() -> None:
    leaf = X.clone().requires_grad_()
    out = imgops.crop(leaf.as_subclass(tv_tensors.Image), (0, 0, 2, 2))
    assert type(out) is tv_tensors.Image
    out.sum().backward()
    assert leaf.grad.sum() == 12


def test_boxes_are_no_images() -> None:
    boxes = tv_tensors.BoundingBoxes(torch.zeros(2, 4), format="XYXY", canvas_size=(6, 7))
    with pytest.raises(ValueError, match="crop: image must have at least 3 dimensions"):
        imgops.crop(boxes, (0, 0, 1, 1))


@pytest.mark.skipif(torch.__version__ < "2.13", reason="compiled custom operators take no such class before")
@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
@pytest.mark.parametrize("kind", ["Image", *every_night("Video", "Mask")])
def test_compiled(kind: str, backend: str) -> None:
    image = CLASSES[kind]()
    calls = {name: OF_CLASSES[name] for name in ("crop", "paste", "pad", "resize")}
    found = compile_together(calls, backend)[0](image)
    for name, out in found.items():
        assert type(out) is type(image), name
        assert bits_equal(out.as_subclass(Tensor), OF_CLASSES[name](image.as_subclass(Tensor))), name


@nightly
def test_torchvision_is_not_imported_for_those_who_do_not_use_it() -> None:
    code = (
        "import sys, torch, imgops; x = torch.zeros(3, 4, 4).as_subclass(type('Own', (torch.Tensor,), {}));"
        "imgops.crop(x, (0, 0, 2, 2)); assert 'torchvision' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
