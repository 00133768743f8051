"""Every public name in every mode: one result, whichever way it is called.

The names are those of ``__all__``; a name without a call, and a mode that a name does not have, is listed with its
reason. The calls of a group are compiled as one graph, because compilation is what takes time; if that fails, they are
compiled one by one, so that the error names the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms as ours
from imgops._common.torch_private import CountingBackend
from imgops.transforms import functional as F
from tests.added_cases import ROWS
from tests.groups import groups, together
from tests.specs import SPECS
from tests.specs._maker import Maker
from tests.test_transforms_names import STILL
from tests.tiers import every_night, nightly, nightly_unless
from tests.transform_cases import CASES, containers, picture, same, seeded

TV_TENSORS = hasattr(torch.Tag, "inplace")  # before torch 2.13 dynamo does not support them
REAL = torch.float32

Call = Callable[[Tensor], Any]


def of_reals(call: Call) -> Call:
    """Return a call on the image as floats in [0, 1]."""
    return lambda x: call(x.to(REAL) / 255 if x.dtype == torch.uint8 else x)


#: The arguments of each functional after the image: one call or more.
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "adjust_brightness": [(1.3,)],
    "adjust_contrast": [(0.6,)],
    "adjust_gamma": [(0.7, 1.1)],
    "adjust_hue": [(0.2,)],
    "adjust_saturation": [(1.7,)],
    "adjust_sharpness": [(1.6,)],
    "affine": [
        (20.0, [2, -3], 1.2, [5.0, -4.0]),
        (20.0, [2, -3], 0.9, [5.0, -4.0], "bilinear", [3.0], [4.0, 9.0]),
    ],
    "autocontrast": [()],
    "center_crop": [(20,), ([50, 12],)],
    "crop": [(2, -3, 20, 30)],
    "elastic": [(torch.linspace(-0.1, 0.1, 40 * 52 * 2).reshape(1, 40, 52, 2),)],
    "equalize": [()],
    "erase": [(3, 4, 5, 6, torch.ones(3, 1, 1))],
    "five_crop": [(9,)],
    "gaussian_blur": [(5,), ([3, 7], [0.6, 1.2])],
    "grayscale_to_rgb": [()],
    "horizontal_flip": [()],
    "invert": [()],
    "jpeg": [(50,)],
    "normalize": [([0.4, 0.5, 0.6], [0.2, 0.3, 0.25])],
    "pad": [(3,), ([1, 2, 3, 4], None, "reflect"), ([2, -3], 7.0)],
    "permute_channels": [([2, 0, 1],)],
    "perspective": [
        ([[0, 0], [51, 0], [51, 39], [0, 39]], [[2, 1], [48, 3], [50, 37], [1, 36]]),
        (None, None, "nearest", None, [1.1, 0.1, -2.0, 0.05, 0.9, 1.0, 1e-3, -1e-3]),
    ],
    "posterize": [(3,)],
    "resize": [
        ([30, 31],),
        (25,),
        ([70, 33], "bicubic"),
        ([20, 22], "nearest"),
        ([20, 64], "bilinear", None, False),
        ([40, 52],),
    ],
    "resized_crop": [(3, 4, 20, 30, [15, 16])],
    "rgb_to_grayscale": [(), (3,)],
    "rotate": [
        (30.0,),
        (30.0, "bilinear", True),
        (90.0, "nearest", True),
        (12.0, "bicubic", False, [3, 4], [5.0]),
    ],
    "solarize": [(0.6,)],
    "ten_crop": [([9, 10], True)],
    "to_dtype": [(REAL, True), (torch.uint8, True)],
    "uniform_temporal_subsample": [(2,)],
    "vertical_flip": [()],
}
#: Those whose image must be floats, or levels; the others get both.
NEED_REALS, NEED_LEVELS = ("normalize",), ("jpeg",)


def arguments_of(name: str, args: tuple[Any, ...], levels: bool) -> tuple[Any, ...]:
    return (args[0] * 255,) if name == "solarize" and levels else args


def functional_calls(levels: bool, module: Any = F) -> dict[str, Call]:
    """Return calls of a module's functionals, by name."""
    calls = {}
    for name, every in ARGUMENTS.items():
        if not hasattr(module, name) or name in (NEED_REALS if levels else NEED_LEVELS):
            continue
        for i, args in enumerate(every):
            known = arguments_of(name, args, levels)
            calls[f"{name}-{i}"] = _call(getattr(module, name), known)
    return calls


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Call:
    return lambda x: function(x, *args)


def test_every_functional_has_a_call() -> None:
    assert set(F.OURS) == set(ARGUMENTS)
    others = set(F.__all__) - {
        *F.OURS,
        "register_kernel",
        *("to_image", "to_tensor"),  # which take more arrays
        "hflip",
        "vflip",
        "to_grayscale",
        "elastic_transform",
    }
    assert all(getattr(F, n) is getattr(v2.functional, n) for n in others)  # torchvision's, in every mode
    assert set(dir(F)) == set(F.__all__) == {n for n in dir(v2.functional) if not n.startswith("_")}


def check(
    run: Callable[[Callable[[Any], Any]], Callable[[Any], Any]], calls: Mapping[str, Call], image: Any
) -> None:
    """Compare a mode with eager mode: many calls at once, or one by one to name the call that fails."""
    found = attempt_together(run, calls, image)
    for name, call in calls.items():
        same(found[name], call(image), name, 1e-6)


def attempt_together(
    run: Any, calls: Mapping[str, Call], inputs: Any, join: Any = together
) -> dict[str, Any]:
    """Return the results of all calls in a mode; where this fails, the error names the call that fails alone."""
    try:
        return run(join(calls))(inputs)
    except Exception:
        for name, call in calls.items():
            torch.compiler.reset()
            try:
                run(join({name: call}))(inputs)
            except Exception as error:
                raise AssertionError(name) from error
        raise


def compiled(backend: str, dynamic: bool | None) -> Callable[[Any], Any]:
    return lambda f: torch.compile(f, fullgraph=True, backend=backend, dynamic=dynamic)


def of_unknown_size(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compile a function for images of any height and width; a size that the graph fixes is an error."""
    graph = torch.compile(function, fullgraph=True, backend="aot_eager")

    def run(inputs: Any) -> Any:
        mark = torch._dynamo.mark_dynamic if isinstance(inputs, Tensor) else torch._dynamo.maybe_mark_dynamic
        for image in tree_leaves(inputs):
            if image.ndim >= 3:
                mark(image, (image.ndim - 2, image.ndim - 1))
        return graph(inputs)

    return run


class ByTransform(v2.Transform):
    """A transform of a user, which calls a function of its own."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.call(inpt)


class ByKernel(v2.Transform):
    """A transform of a user, which calls a functional as torchvision's own classes do."""

    def __init__(self, module: Any, name: str, args: tuple[Any, ...]) -> None:
        super().__init__()
        self.module, self.name, self.args = module, name, args

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(getattr(self.module, self.name), inpt, *self.args)


def by_kernels(module: Any, levels: bool) -> dict[str, Call]:
    """Return the calls of ``functional_calls``, each by the ``_call_kernel`` of a transform."""
    return {
        f"{name}-{i}": ByKernel(module, name, arguments_of(name, args, levels))
        for name, every in ARGUMENTS.items()
        if hasattr(module, name) and name not in (NEED_REALS if levels else NEED_LEVELS)
        for i, args in enumerate(every)
    }


class Whole(nn.Module):
    """A module whose forward is a function, because only modules can be exported."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: Tensor) -> Any:
        return self.call(x)


def exported(strict: bool, any_size: bool = False) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a mode that exports the call; with ``any_size``, of a larger image than it is run on."""

    def run(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def of(x: Tensor) -> Any:
            example, sizes = x, None
            if any_size:
                example = torch.cat([x, x[..., :3]], -1).repeat_interleave(2, -2)
                sides = [torch.export.Dim(n, min=35, max=99) for n in ("height", "width")]
                sizes = ({x.ndim - 2: sides[0], x.ndim - 1: sides[1]},)
            program = torch.export.export(Whole(call), (example,), strict=strict, dynamic_shapes=sizes)
            names = {str(n.target) for n in program.graph.nodes if n.op == "call_function"}
            assert not [n for n in names if "upsample" in n or "grid_sampl" in n or "conv2d" in n], names
            return program.module()(x)

        return of

    return run


def with_other_defaults(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function, called while new tensors are doubles without memory if nothing else is said."""

    def run(x: Any) -> Any:
        torch.set_default_device("meta")
        torch.set_default_dtype(torch.float64)
        try:
            return call(x)
        finally:
            torch.set_default_dtype(torch.float32)
            torch.set_default_device(None)

    return run


#: Mode -> what makes a function of a call's function.
MODES: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "graph": compiled("aot_eager", False),
    "graph of any size": of_unknown_size,
    "Lambda": lambda f: ours.Lambda(f),
    "Lambda in a graph": lambda f: compiled("aot_eager", None)(ours.Lambda(f)),
    "transform": ByTransform,
    "transform in a graph": lambda f: compiled("aot_eager", None)(ByTransform(f)),
    "strict export": exported(True),
    "strict export of any size": exported(True, any_size=True),
    "export of any size": exported(False, any_size=True),
    "other defaults": with_other_defaults,
}


DTYPES = [pytest.param(True, id="uint8"), pytest.param(False, id="float32", marks=nightly)]


#: Modes that `make test` leaves out: they are parts or combinations of the others.
_KNOWN_MORE = (
    "graph",
    "transform in a graph",
    "Lambda in a graph",
    "export of any size",
    "strict export of any size",
)


@pytest.mark.parametrize("levels", DTYPES)
@pytest.mark.parametrize(
    "mode", nightly_unless(lambda m: m not in _KNOWN_MORE, [m for m in MODES if m != "strict export"])
)
def test_functionals(mode: str, levels: bool, whole: bool) -> None:
    """`make test` makes the first call of each functional where it costs a graph."""
    image = picture() if levels else picture(REAL)
    calls = functional_calls(levels)
    if not whole and ("graph" in mode or "export" in mode):
        calls = {n: c for n, c in calls.items() if n.endswith("-0")}
    calls.pop("uniform_temporal_subsample-0")  # of videos: the next test
    if "any size" in mode:
        del calls["elastic-0"]  # whose map has the size of the image
    check(MODES[mode], calls, image)


_OF_VIDEOS = ("uniform_temporal_subsample-0", "resize-0", "rotate-0", "elastic-0")


@pytest.mark.parametrize("mode", ["graph", *every_night("strict export")])
def test_functionals_of_videos(mode: str) -> None:
    video = torch.stack([picture(seed=s) for s in range(3)])
    calls = functional_calls(True)
    check(MODES[mode], {n: calls[n] for n in _OF_VIDEOS}, video)


@pytest.mark.parametrize("levels", DTYPES)
@pytest.mark.parametrize("graph", [False, *every_night(True)])
def test_functionals_by_call_kernel(graph: bool, levels: bool) -> None:
    image = picture() if levels else picture(REAL)
    calls, wanted = by_kernels(F, levels), functional_calls(levels)
    del calls["uniform_temporal_subsample-0"]  # torchvision's _call_kernel passes images through
    found = (compiled("aot_eager", None)(together(calls)) if graph else together(calls))(image)
    for name, value in found.items():
        same(value, wanted[name](image), name, 1e-6)


class UsersImage(tv_tensors.Image):
    """A user's class of images, without kernels."""


class UsersMask(tv_tensors.Mask):
    """A user's class of masks, without kernels."""


class UsersBoxes(tv_tensors.BoundingBoxes):
    """A user's class of boxes, without kernels."""


def everything() -> dict[str, Any]:
    """Return a value of each class of inputs."""
    frame = picture()
    canvas = {"canvas_size": (40, 52)}
    return {
        "Image": tv_tensors.Image(frame),
        "Video": tv_tensors.Video(torch.stack([frame, frame.flip(-1)])),
        "Mask": tv_tensors.Mask(frame[:1] // 60),
        "BoundingBoxes": tv_tensors.BoundingBoxes([[3.0, 4, 20, 30]], format="XYXY", **canvas),
        "KeyPoints": tv_tensors.KeyPoints([[3.0, 4.0]], **canvas),
        "Parameter": nn.Parameter(frame, requires_grad=False),
        "PIL image": PIL.Image.fromarray(frame.permute(1, 2, 0).numpy()),
    }


def attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error)


#: The calls that torchvision refuses: a bicubic rotation.
OURS_ALONE = ("rotate-3",)
#: torchvision's boxes of an expanded image have a canvas of another size than the image.
EXPANDS = ("rotate-1", "rotate-2")
#: The functionals whose kernels for masks, boxes and keypoints have no interpolation in torchvision, so that
#: arguments given by position move up.
INTERPOLATE = ("resize", "resized_crop", "affine", "rotate", "perspective", "elastic")


@pytest.mark.filterwarnings("ignore:Anti-alias option is always applied")
@pytest.mark.parametrize("kind", everything())
def test_functionals_of_every_class(kind: str) -> None:
    """The class of a result is that of torchvision's; images have a tensor's pixels, other inputs torchvision's."""
    inpt = everything()[kind]
    shows = kind in ("Image", "Video", "Parameter")
    mine, theirs = functional_calls(True), functional_calls(True, v2.functional)
    by_kernel, by_their_kernel = by_kernels(F, True), by_kernels(v2.functional, True)
    for name, their in theirs.items():
        if kind in ("BoundingBoxes", "KeyPoints") and name in EXPANDS:
            continue
        if name in OURS_ALONE or (kind == "Mask" and name.partition("-")[0] in INTERPOLATE):
            continue
        pairs = [(mine[name], their), (by_kernel[name], by_their_kernel[name])]
        if kind in ("BoundingBoxes", "KeyPoints") and name.partition("-")[0] in (*INTERPOLATE, "pad"):
            del pairs[1]
        for call, by_theirs in pairs:
            found, wanted = (attempt(lambda c=c: c(inpt)) for c in (call, by_theirs))
            if isinstance(found, type) and isinstance(wanted, type):  # both refuse the call
                continue
            if not isinstance(wanted, (Tensor, tuple)) or wanted is inpt or not (shows or kind == "Mask"):
                same(found, wanted, name)
                continue
            assert [type(x) for x in tree_leaves(found)] == [type(x) for x in tree_leaves(wanted)], name
            if shows:  # the labels of masks have a test of their own
                plain = mine[name](inpt.as_subclass(Tensor))
                same([x.as_subclass(Tensor) for x in tree_leaves(found)], tree_leaves(plain), name)


@pytest.mark.skipif(not TV_TENSORS, reason="dynamo takes no tv_tensors")
@pytest.mark.parametrize(
    "kind",
    [
        *("BoundingBoxes", "UsersImage"),
        *every_night("Image", "Video", "Mask", "KeyPoints", "UsersMask", "UsersBoxes", "Parameter"),
    ],
)
def test_functionals_of_classes_in_a_graph(kind: str, whole: bool) -> None:
    inpt = everything()[kind.replace("UsersBoxes", "BoundingBoxes").removeprefix("Users")]
    if kind.startswith("Users"):
        given, inpt = inpt, inpt.as_subclass(globals()[kind])
        inpt.__dict__.update(given.__dict__)
    calls = functional_calls(True)
    if not whole or kind.startswith(("Users", "Parameter")):  # the class is chosen in one place
        family = ("rotate-0", "resize-0", "crop-0", "invert-0", "horizontal_flip-0", "to_dtype-0")
        calls = {n: calls[n] for n in calls if n in family}
    known = {n: c for n, c in calls.items() if isinstance(attempt(lambda c=c: c(inpt)), (Tensor, tuple))}
    assert len(known) > (2 if len(calls) < 7 else 15)
    check(MODES["graph"], known, inpt)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.uint16, torch.int32])
def test_integers_saturate(dtype: torch.dtype) -> None:
    """Bicubic weights overshoot: OpenCV and PIL saturate, a conversion of PyTorch wraps."""
    info = torch.iinfo(dtype)
    image = torch.where(picture() > 128, info.max, info.min).to(dtype)
    for name in ("resize-2", "rotate-3", "affine-1"):
        call = functional_calls(True)[name]
        found, wanted = call(image).double(), call(image.double()).round().clamp(info.min, info.max)
        if (
            name == "resize-2" and dtype == torch.uint16
        ):  # Pillow's mode I;16 saturates after each of two passes
            size, how = found.shape[:-3:-1], PIL.Image.Resampling.BICUBIC
            planes = [PIL.Image.fromarray(p.numpy()).resize(tuple(size), how) for p in image.flatten(0, -3)]
            wanted = torch.from_numpy(np.stack([np.asarray(p) for p in planes])).reshape(found.shape).double()
        assert (found - wanted).abs().max() <= max(1, 1e-5 * (info.max - info.min)), name


# -- parameters as tensors -------------------------------------------------------------------------

#: Functional -> its arguments as a function of a tensor of parameters, one row for each of two images, in range.
TENSORS: dict[str, tuple[list[list[float]], Callable[[Tensor], tuple[Any, ...]]]] = {
    "adjust_brightness": ([[0.7], [1.4]], lambda t: (t[:, 0],)),
    "adjust_contrast": ([[0.7], [1.4]], lambda t: (t[:, 0],)),
    "adjust_gamma": ([[0.7, 1.0], [1.4, 0.9]], lambda t: (t[:, 0], t[:, 1])),
    "adjust_hue": ([[0.1], [-0.2]], lambda t: (t[:, 0],)),
    "adjust_saturation": ([[0.7], [1.4]], lambda t: (t[:, 0],)),
    "adjust_sharpness": ([[0.7], [1.4]], lambda t: (t[:, 0],)),
    "affine": (
        [[10.0, 1, 2, 1.1, 3, 4], [-20.0, 2, 0, 0.9, 0, 1]],
        lambda t: (t[:, 0], (t[:, 1], t[:, 2]), t[:, 3], (t[:, 4], t[:, 5]), "bilinear"),
    ),
    "elastic": ([[0.02], [0.045]], lambda t: (t.reshape(-1, 1, 1, 1).expand(-1, 40, 52, 2),)),
    "gaussian_blur": ([[0.7, 0.9], [1.4, 1.1]], lambda t: (5, t)),
    "gaussian_blur-pair": ([[0.7, 0.9], [1.4, 1.1]], lambda t: (5, [t[:, 0], t[:, 1]])),
    "perspective": (
        [[2.0, 1, 48, 3, 50, 37, 1, 36], [1.0, 2, 47, 1, 49, 36, 3, 38]],
        lambda t: ([[0, 0], [51, 0], [51, 39], [0, 39]], t.reshape(-1, 4, 2)),
    ),
    "perspective-coefficients": (
        [[1.1, 0.1, -2.0, 0.05, 0.9, 1.0, 1e-3, -1e-3], [0.9, 0, 1.0, 0.02, 1.1, 0, 0, 1e-3]],
        lambda t: (None, None, "bilinear", None, t),
    ),
    "posterize": ([[3], [5]], lambda t: (t[:, 0].detach().long(),)),
    "rotate": ([[10.0], [-30.0]], lambda t: (t[:, 0], "bilinear")),
    "solarize": ([[0.3], [0.8]], lambda t: (t[:, 0],)),
}
#: Those that have no gradient for their parameters: steps, and thresholds.
NO_GRADIENT = ("posterize", "solarize")


def test_every_functional_with_numbers_takes_tensors() -> None:
    import inspect

    def takes(name: str) -> bool:
        annotations = [
            p.annotation for p in list(inspect.signature(getattr(F, name)).parameters.values())[1:]
        ]
        return any("Tensor" in str(a) and ("float" in str(a) or "int" in str(a)) for a in annotations)

    by_fill = {"pad", "elastic"} | {
        "jpeg",
        "permute_channels",
    }  # a fill; integers that are no parameters of a graph
    assert {n for n in F.OURS if takes(n)} - by_fill <= set(TENSORS)


@nightly
@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
def test_tensor_parameters_in_a_graph(backend: str) -> None:
    """Values and gradients are those of eager mode, and of one call for each sample."""
    images = torch.stack([picture(REAL, seed=s) for s in (1, 2)])
    rows = {n: torch.tensor(v, dtype=torch.float64) for n, (v, _) in TENSORS.items()}

    def call(images: Tensor, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        return calls_with({n: arguments(rows[n]) for n, (_, arguments) in TENSORS.items()})(images)

    def run(function: Callable[..., Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        leaves = {n: v.clone().requires_grad_(n not in NO_GRADIENT) for n, v in rows.items()}
        out = function(images, leaves)
        sum(out[n].double().square().sum() for n in TENSORS if n not in NO_GRADIENT).backward()
        return out, {n: v.grad for n, v in leaves.items() if v.grad is not None}

    wanted, gradients = run(call)
    for i in range(len(images)):
        alone = call(images[i : i + 1], {n: v[i : i + 1] for n, v in rows.items()})
        for name, value in alone.items():
            same(value, wanted[name][i : i + 1], name)
    assert set(gradients) == set(TENSORS) - set(NO_GRADIENT)
    found, in_graph = run(torch.compile(call, fullgraph=True, backend=backend))
    for name, value in found.items():
        same(value, wanted[name], name, 1e-5)
    for name, value in gradients.items():
        torch.testing.assert_close(in_graph[name], value, rtol=1e-4, atol=1e-4, msg=name)


@nightly
@pytest.mark.parametrize("name", [n for n in TENSORS if n not in NO_GRADIENT])
def test_gradients_to_tensor_parameters(name: str) -> None:
    """Gradients of first and second order match finite differences along a random direction."""
    rows, arguments = TENSORS[name]
    size = (40, 52) if name == "elastic" else (6, 7)  # its map has the size of an image
    generator = torch.Generator().manual_seed(3)
    image = torch.rand(2, 3, *size, dtype=torch.float64, generator=generator) * 0.8 + 0.1
    function = getattr(F, name.partition("-")[0])
    leaf = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    call = lambda t: function(image, *arguments(t))
    assert torch.autograd.gradcheck(call, leaf, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, leaf, fast_mode=True)


#: Functional, and what else tells a call -> its arguments as a function of a number, all numbers.
NUMBERS: dict[str, Callable[[float], tuple[Any, ...]]] = {
    **dict.fromkeys(
        ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_sharpness"), lambda v: (v,)
    ),
    "adjust_gamma": lambda v: (v, v / 2),
    "adjust_hue": lambda v: (v / 4,),
    "affine": lambda v: (v * 10, [v, -v], v, [v, v / 2], "bilinear", None, [v * 9, v * 8]),
    "erase": lambda v: (3, 4, 5, 6, v / 2),
    "gaussian_blur": lambda v: (5, [v, v / 2]),
    "normalize": lambda v: ([v, v / 2, 0.1], [v / 3, 0.2, v]),
    "pad": lambda v: (3, v / 2),
    "perspective": lambda v: (None, None, "bilinear", None, [v, 0.1, -v, 0.05, v, 1.0, 1e-3, v / 500]),
    "perspective-points": lambda v: (
        [[0, 0], [51, 0], [51, 39], [0, 39]],
        [[v, 1], [48, v * 2], [50 - v, 37], [1, 36]],
    ),
    "rotate": lambda v: (v * 10, "bilinear"),
    "rotate-expand": lambda v: (v * 10, "bilinear", True),
    "rotate-center": lambda v: (11.0, "bilinear", False, [v * 9, 4 - v], v / 2),
    "solarize": lambda v: (v / 2,),
}


def calls_with(numbers: Mapping[str, tuple[Any, ...]]) -> Callable[[Tensor], dict[str, Any]]:
    """Return a function of an image that calls the functionals with these arguments."""
    return lambda x: {name: getattr(F, name.partition("-")[0])(x, *args) for name, args in numbers.items()}


@nightly
def test_numbers_that_change_do_not_recompile() -> None:
    def call(x: Tensor, value: float) -> dict[str, Tensor]:
        return calls_with({name: arguments(value) for name, arguments in NUMBERS.items()})(x)

    counting, image = CountingBackend("aot_eager"), picture(REAL)
    graph = torch.compile(call, fullgraph=True, backend=counting)
    for value in (0.7, 0.9, 1.15, 1.3):
        found, wanted = graph(image, value), call(image, value)
        for name in NUMBERS:
            same(found[name], wanted[name], name, 1e-6)
    assert counting.count <= 2


#: Functional, and what else tells a call -> its arguments as a function of the form of integers.
INTEGERS: dict[str, Callable[[Callable[[Any], Any]], tuple[Any, ...]]] = {
    "center_crop": lambda w: (w(20),),
    "center_crop-sizes": lambda w: (w([50, 12]),),
    "crop": lambda w: (w(2), w(-3), w(20), w(30)),
    "erase": lambda w: (w(3), w(4), w(5), w(6), torch.ones(3, 1, 1)),
    "five_crop": lambda w: (w([9, 8]),),
    "gaussian_blur": lambda w: (w([3, 5]), 0.8),
    "jpeg": lambda w: (w(50),),
    "pad": lambda w: (w([2, -3]), w(7)),
    "permute_channels": lambda w: (w([-1, 0, -2]),),
    "posterize": lambda w: (w(3),),
    "resize": lambda w: (w([30, 31]),),
    "resize-side": lambda w: (w(25), "bilinear", w(40)),
    "resized_crop": lambda w: (w(3), w(4), w(20), w(30), w([15, 16])),
    "ten_crop": lambda w: (w([9, 10]),),
}


@pytest.mark.parametrize("graph", [False, *every_night(True)])
def test_forms_of_numbers(graph: bool) -> None:
    """Numbers of NumPy, and a tensor of one number for one image, give what Python's numbers give."""
    real, levels = picture(REAL), picture()
    numpy, tensor = np.float32(0.75), torch.tensor([0.75])
    forms: dict[str, tuple[Any, Any]] = {
        "a tensor, and integers of NumPy": (
            tensor,
            lambda v: np.array(v) if isinstance(v, list) else np.int64(v),
        ),
        "a number of NumPy, and integer tensors": (numpy, torch.tensor),
    }
    integers = INTEGERS
    if graph:  # which takes NumPy's numbers for tensors, and much time for integers that it does not know
        forms.popitem()
        integers = {name: INTEGERS[name] for name in ("crop", "erase", "pad", "permute_channels", "resize")}
    for form, (number, integer) in forms.items():
        reals = {name: arguments(number) for name, arguments in NUMBERS.items()}
        whole = {name: arguments(integer) for name, arguments in integers.items()}

        def call(real: Tensor, levels: Tensor, reals: Any = reals, whole: Any = whole) -> Any:
            return calls_with(reals)(real), calls_with(whole)(levels)

        found = (compiled("aot_eager", None)(call) if graph else call)(real, levels)
        wanted = (
            calls_with({name: arguments(0.75) for name, arguments in NUMBERS.items()})(real),
            calls_with({name: arguments(lambda v: v) for name, arguments in integers.items()})(levels),
        )
        for mine, theirs in zip(found, wanted, strict=True):
            for name, value in theirs.items():
                same(mine[name], value, f"{name} with {form}", 1e-6)


#: Functionals of boxes and keypoints -> their arguments, with integers and real numbers of any form.
OF_BOXES: dict[str, Callable[[Callable[[Any], Any], Callable[[Any], Any]], Call]] = {
    "center_crop": lambda i, r: lambda x: F.center_crop(x, [i(20), 9]),
    "crop": lambda i, r: lambda x: F.crop(x, i(2), i(-3), 20, i(30)),
    "pad": lambda i, r: lambda x: F.pad(x, [i(2), 3]),
    "resize": lambda i, r: lambda x: F.resize(x, [i(30), i(31)]),
    "resized_crop": lambda i, r: lambda x: F.resized_crop(x, i(3), 4, 20, i(30), [i(15), 16]),
    "affine": lambda i, r: lambda x: F.affine(x, r(20.0), [2, r(3.0)], r(1.25), [r(5.0), 0.0]),
    "rotate": lambda i, r: lambda x: F.rotate(x, r(30.0)),
    "rotate-expand": lambda i, r: lambda x: F.rotate(x, r(30.0), expand=True),
}


@pytest.mark.parametrize("kind", ["BoundingBoxes", "KeyPoints"])
def test_forms_of_numbers_of_boxes(kind: str) -> None:
    """A canvas is made of integers, whatever the arguments are."""
    boxes = everything()[kind]
    for name, make in OF_BOXES.items():
        wanted = make(int, float)(boxes)
        for i, r in ((np.int64, np.float64), (torch.tensor, torch.tensor)):
            found = make(i, r)(boxes)
            same(found, wanted, name, 1e-6)
            assert [type(side) for side in found.canvas_size] == [int, int], name


@nightly
@pytest.mark.skipif(not TV_TENSORS, reason="dynamo takes no tv_tensors")
def test_numbers_of_boxes_in_a_graph() -> None:
    """Numbers and sizes that the graph does not know, and gradients of coordinates."""
    boxes, numbers = everything()["BoundingBoxes"], (torch.tensor(9), torch.tensor(30.0))

    # torchvision's resize asks whether the size changes, which a number from a tensor does not tell.
    known = {name: make for name, make in OF_BOXES.items() if not name.startswith("resize")}

    def call(x: Any, whole: Tensor, real: Tensor) -> dict[str, Any]:
        return {n: make(lambda v: whole + v, lambda v: real * (v / 30))(x) for n, make in known.items()}

    found = compiled("aot_eager", None)(call)(boxes, *numbers)
    for name, make in known.items():
        same(found[name], make(lambda v: v + 9, float)(boxes), name, 1e-5)

    def gradient(run: Callable[[Any], Any]) -> Tensor:
        points = torch.tensor([[3.0, 4.0]], requires_grad=True)
        out = run(tv_tensors.KeyPoints(points, canvas_size=(40, 52)))
        sum(x.as_subclass(Tensor).square().sum() for x in out.values()).backward()
        assert points.grad is not None
        return points.grad

    moved = together({n: make(int, float) for n, make in OF_BOXES.items()})
    torch.testing.assert_close(gradient(compiled("aot_eager", None)(moved)), gradient(moved))


_POINTS = [[0, 0], [9, 0], [9, 9], [0, 9]]
#: A call that is refused -> its arguments, and what a graph says; eager mode says it in torchvision's words, if any.
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "adjust_brightness": (("a",), "brightness_factor must be a number or a Tensor, got 'a'"),
    "adjust_brightness-range": ((-0.5,), "brightness_factor must be from 0 on, got -0.5"),
    "adjust_hue": ((0.75,), "hue_factor must be from -0.5 to 0.5, got 0.75"),
    "affine": ((1.0, 3, 1.0, 0.0), "translate must be a sequence of 2 numbers, got 3"),
    "affine-scale": ((1.0, [0, 0], 0, 0.0), "scale must be a number above 0, got 0"),
    "center_crop": (([5.0, 6.0],), "output_size must be an integer, got float 5.0"),
    "crop": ((1.0, 2, 3, 4), "top must be an integer, got float 1.0"),
    "erase": ((-1, 0, 2, 2, torch.zeros(3, 2, 2)), "i must be from 0 on, got -1"),
    "erase-v": (
        (0, 0, 2, 2, torch.zeros(3, 5, 2)),
        "v must have a shape that broadcasts to (3, 2, 2), got (3, 5, 2)",
    ),
    "five_crop": ((99,), "size must be at most (40, 52), got (99, 99)"),
    "gaussian_blur": ((4,), "kernel_size must be odd and positive, got (4, 4)"),
    "gaussian_blur-sigma": ((5, -1.0), "sigma must be above 0, got -1.0"),
    "normalize": (([0.5, 0.5], [1.0, 1.0]), "mean must have 1 number or 3, one for each channel, got 2"),
    "normalize-std": (([0.5], [0.0]), "std must not be 0, got 0"),
    "pad": (("a",), "padding must be an integer, got str a"),
    "permute_channels": (([3, 0, 1],), "permutation must be from -3 to 2, got 3"),
    "perspective": (
        (_POINTS[:3], _POINTS),
        "startpoints must be 4 points (x, y), or those of each sample, got shape (3, 2)",
    ),
    "perspective-coefficients": (
        (None, None, "bilinear", None, [1.0] * 7),
        "coefficients must be 8 numbers, or those of each sample, got shape (7,)",
    ),
    "posterize": ((9,), "bits must be an integer in [0, 8], got 9"),
    "resize": ((5.0,), "size must be an integer, got float 5.0"),
    "resize-sides": (([1, 2, 3],), "size must be an integer, or a sequence of 1 or 2, got 3"),
    "resize-interpolation": ((5, "cubic"), "interpolation must be one of 'nearest', 'nearest-exact', "),
    "rotate": (("30",), "angle must be a number or a Tensor, got '30'"),
    "rotate-interpolation": (
        (30, "lanczos"),
        "interpolation must be nearest, bilinear or bicubic, got lanczos",
    ),
    "solarize": ((None,), "threshold must be a number or a Tensor, got None"),
}


def test_refusals(whole: bool) -> None:
    """A graph shows the text of an error, not dynamo's report of it; `make test` takes every fourth."""
    image = picture(REAL)
    for name, (args, text) in list(REFUSED.items())[:: 1 if whole else 4]:
        function = getattr(F, name.partition("-")[0])
        call = _call(function, args)
        with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)):
            call(image)
        torch.compiler.reset()
        with pytest.raises((TypeError, ValueError, IndexError)) as caught:
            compiled("aot_eager", None)(call)(image)
        assert str(caught.value).startswith(f"{function.__name__}: {text}"), (name, str(caught.value)[:200])
    with pytest.raises(TypeError, match=r"^invert: Functional F.invert supports inputs of type"):
        compiled("aot_eager", None)(F.invert)(tv_tensors.Mask(picture()[0]))


#: Functional -> the least and the greatest of its numbers that it takes.
LIMITS: dict[str, tuple[tuple[Any, ...], ...]] = {
    **dict.fromkeys(("adjust_brightness", "adjust_contrast", "adjust_saturation"), ((0,), (0.0,))),
    "adjust_sharpness": ((0,), (0.0,)),
    "adjust_gamma": ((0.0, 0.0),),
    "adjust_hue": ((-0.5,), (0.5,)),
    "posterize": ((0,), (8,)),
    "solarize": ((0.0,), (1.0,)),
    "rotate": ((0.0,), (360.0,)),
    "pad": ((0,),),
    "center_crop": (([40, 52],),),
    "erase": ((0, 0, 40, 52, torch.zeros(3, 1, 1)),),
}


def test_limits_are_taken() -> None:
    """torchvision takes them, too, and the results are close."""
    image = picture(REAL)
    for name, each in LIMITS.items():
        for args in each:
            if name == "posterize":
                found, wanted = (getattr(m, name)(picture(), *args) for m in (F, v2.functional))
            else:
                found, wanted = (getattr(m, name)(image, *args) for m in (F, v2.functional))
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-3, msg=f"{name}{args}")


@nightly
def test_images_without_channels() -> None:
    """A graph computes and refuses the same calls on a tensor ``(H, W)`` as eager mode, in our words."""
    plane, calls = picture()[0], functional_calls(True)
    known = {n: c for n, c in calls.items() if not isinstance(attempt(lambda c=c: c(plane)), type)}
    check(MODES["graph"], known, plane)
    refused = [n for n in calls if n not in known and n.endswith("-0")]
    assert len(known) > 30 and len(refused) > 4
    for name in refused:
        torch.compiler.reset()
        with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)) as caught:
            MODES["graph"](calls[name])(plane)
        assert str(caught.value).startswith(f"{name.removesuffix('-0')}: "), (name, str(caught.value)[:200])


@nightly
def test_functionals_by_inductor() -> None:
    """Inductor sees their operators as opaque, as it does in test_generic.py."""
    check(
        compiled("inductor", None),
        {n: c for n, c in functional_calls(True).items() if "temporal" not in n},
        picture(),
    )


# -- the operators' functions ------------------------------------------------------------------------

#: Public names without a call of an image: their own tests have them.
NOT_OF_IMAGES = {
    *(
        "ConnectedComponents",
        "EncodedImage",
        "EncodedImages",
        "NothingChangesWarning",
        "PackedImages",
        "SlowPathWarning",
    ),  # classes
    *("adjoint", "inverse"),  # of operators: test_inverse.py
    *("decompositions", "show_config"),  # about imgops
    *("decode_frames", "decode_image", "decode_images", "encode_image"),  # of files: test_codec.py
}
#: Calls of the functions whose specs have no samples: their first tensor, and the other arguments.
OTHERS: dict[str, tuple[Tensor, tuple[Any, ...]]] = {
    "connected_components": ((picture()[:1] > 128).to(torch.uint8), (4, True)),
    "elastic_map": (torch.linspace(-1, 1, 2 * 12 * 15).reshape(2, 12, 15), (3.0, 1.5)),
    "flip": (picture(REAL), ("vertical",)),
    "flow_map": (torch.linspace(-2, 2, 2 * 6 * 7).reshape(2, 6, 7), ()),
    "grid_distortion_map": (torch.tensor([0.5, 1.5, 1.0]), ([1.0, 1.0], (7, 9))),
    "optical_distortion_map": (torch.tensor([0.3]), ((7, 9),)),
    "polar_map": (torch.tensor([4.0, 3.0]), (4.0, (7, 9))),
    "rotate90": (picture(REAL), (3,)),
    "thin_plate_spline_map": (
        torch.tensor([[0.0, 0], [8, 0], [0, 6]]),
        (torch.tensor([[1.0, 0], [8, 1], [0, 6]]), (7, 9)),
    ),
}
#: Functions that write to a tensor, which an exported program returns in the place of the given one.
WRITES = {n for n in imgops.__all__ if n.endswith(("_", "_out")) or n == "accumulate"}


def public_calls() -> tuple[dict[str, Callable[[Any], Any]], dict[str, Tensor]]:
    """Return the first sample of each public function as a function of its first tensor, and these tensors."""
    calls, inputs = {}, {}
    for name in imgops.__all__:
        if name in NOT_OF_IMAGES:
            continue
        if name in OTHERS:
            inputs[name], args = OTHERS[name]
            calls[name] = _call_with(getattr(imgops, name), args, {})
            continue
        spec = SPECS[name]
        sample = next((s for s in spec.samples if not s.edge), spec.samples[0])
        function, args, keywords = sample.call(Maker(REAL if REAL in spec.dtypes else spec.dtypes[0]))
        if args and isinstance(args[0], Tensor):
            calls[name], inputs[name] = _call_with(function, args[1:], keywords), args[0]
    return calls, inputs


def _call_with(function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Call:
    def call(x: Tensor) -> Any:
        known = {n: v.clone() if isinstance(v, Tensor) else v for n, v in keywords.items()}
        return function(x.clone(), *args, **known)

    return call


def all_public(calls: Mapping[str, Call]) -> Callable[[dict[str, Tensor]], dict[str, Any]]:
    return lambda inputs: {name: call(inputs[name]) for name, call in calls.items()}


# test_generic.py compiles a call of each in `make test`.
@pytest.mark.parametrize("names", groups(public_calls()[0], 20))
@pytest.mark.parametrize("mode", every_night("graph", "graph of any size", "strict export"))
def test_public_functions(mode: str, names: list[str]) -> None:
    calls, inputs = public_calls()
    calls = {n: calls[n] for n in names if mode != "strict export" or n not in WRITES}
    found = attempt_together(MODES[mode], calls, {n: inputs[n] for n in names}, all_public)
    for name, call in calls.items():
        same(found[name], call(inputs[name]), name, 1e-6)


@pytest.mark.parametrize("mode", ["Lambda", "transform"])
def test_public_functions_in_transforms(mode: str) -> None:
    calls, inputs = public_calls()
    for name, call in calls.items():
        same(MODES[mode](call)(inputs[name]), call(inputs[name]), name)


def test_public_functions_of_images() -> None:
    """A tv_tensor gives the pixels of a tensor, and an Image where the result shows the image."""
    calls, inputs = public_calls()
    for name, call in calls.items():
        if inputs[name].ndim < 3:  # such as a matrix, which is no image
            continue
        found, wanted = (tree_leaves(call(x)) for x in (tv_tensors.Image(inputs[name]), inputs[name]))
        same([x.as_subclass(Tensor) if isinstance(x, Tensor) else x for x in found], wanted, name)


# -- transforms --------------------------------------------------------------------------------------

#: Classes that are compiled and exported by tests of their own, and why.
NOT_ALONE = {
    **dict.fromkeys(("MixUp", "CutMix", "Mosaic", "CopyPaste"), "they take labels, masks or boxes"),
    **dict.fromkeys(("RandomIoUCrop", "ConvertBoundingBoxFormat", "SetClampingMode"), "they take boxes"),
    **dict.fromkeys(("BoxesFromMasks", "ClampBoundingBoxes", "SanitizeBoundingBoxes"), "they take boxes"),
    **dict.fromkeys(("ClampKeyPoints", "SanitizeKeyPoints"), "they take keypoints"),
    **dict.fromkeys(("ToPILImage", "ToTensor", "PILToTensor"), "they take or return no tensor"),
    "UniformTemporalSubsample": "it takes videos",
    "LinearTransformation": "it takes images of a few pixels",
    "JPEG": "it takes levels",
}


def every_transform() -> dict[str, Any]:
    """Return one transform of each class, and containers of some."""
    cases = {case.name: case.make(ours) for case in reversed(CASES)}
    rows = {row.name: row.make() for row in reversed(ROWS)}
    still = {
        name: getattr(ours, name)(**options) for name, (options, _) in STILL.items() if hasattr(v2, name)
    }
    made = {**still, **rows, **cases, "Compose": ours.Compose([ours.RandomCrop(30), ours.RandomInvert()])}
    made |= {n: c for n, c in containers(ours).items() if n != "Nested"}
    return {n: t for n, t in made.items() if n not in NOT_ALONE}


def test_every_transform_is_here() -> None:
    assert {*every_transform(), *NOT_ALONE} == {*ours.OURS, *ours.ADDED}


#: Wrapper -> what torchvision itself makes of a transform, and what imgops makes of it.
WRAPPERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "Lambda": (lambda t: t, ours.Lambda),
    "own transform": (lambda t: t, ByTransform),
    "torchvision's Compose": (lambda t: t, lambda t: v2.Compose([t])),
    "Sequential": (lambda t: t, nn.Sequential),
    "Compose": (lambda t: t, lambda t: ours.Compose([t])),
    "RandomApply": (lambda t: v2.RandomApply([t], p=1.0), lambda t: ours.RandomApply([t], p=1.0)),
    "RandomChoice": (lambda t: v2.RandomChoice([t]), lambda t: ours.RandomChoice([t])),
    "RandomOrder": (lambda t: v2.RandomOrder([t]), lambda t: ours.RandomOrder([t])),
}


@pytest.mark.parametrize("levels", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_transforms_in_wrappers(wrapper: str, levels: bool) -> None:
    reference, wrap = WRAPPERS[wrapper]
    image = picture(torch.uint8 if levels else REAL, 40, 40)
    for name, transform in every_transform().items():
        if name == "Normalize" and levels:
            continue
        wanted = attempt(lambda t=transform: seeded(3, reference(t), image))
        found = attempt(lambda t=transform: seeded(3, wrap(t), image))
        same(found, wanted, name)


def test_classes_that_a_user_chooses() -> None:
    """A plain tensor stays as it is where the user's ``_transformed_types`` leave tensors out."""
    image, left = picture(REAL, 40, 40), (PIL.Image.Image,)
    for name, transform in every_transform().items():
        if isinstance(transform, (v2.Compose, v2.RandomApply, v2.RandomChoice, v2.RandomOrder, v2.Lambda)):
            continue
        transform._transformed_types = left
        for given in (transform, ours.Compose([transform], per_sample=True)):
            found = attempt(lambda t=given: seeded(3, t, image[None]))
            assert isinstance(found, type) or torch.equal(found, image[None]), name


@pytest.mark.parametrize("reentrant", [False, *every_night(True)])
def test_transforms_under_a_checkpoint(reentrant: bool) -> None:
    """A checkpoint restores the state of the global generator, and the second run draws the same numbers."""
    differentiable = 0
    for name, transform in every_transform().items():
        if name == "Lambda":
            continue
        grads = []
        for run in (transform, lambda x, t=transform: checkpoint(t, x, use_reentrant=reentrant)):
            image = (picture(REAL, 40, 40) / 255).requires_grad_()
            out = [x for x in tree_leaves(seeded(3, run, image)) if isinstance(x, Tensor) and x.requires_grad]
            if out:
                sum(x.as_subclass(Tensor).square().sum() for x in out).backward()
            grads.append(image.grad)
        same(grads[1], grads[0], name)
        differentiable += grads[0] is not None
    assert differentiable > 80, differentiable


# The graphs are those of test_transforms_calls.py.
@pytest.mark.parametrize("mode", every_night("graph", "strict export"))
def test_transforms(mode: str) -> None:
    """Equal seeds give equal results, the transforms of a program after each other."""
    image = picture(REAL, 40, 40)
    transforms = every_transform()
    found = seeded(5, lambda x: attempt_together(MODES[mode], transforms, x), image)
    for name, value in seeded(5, together(transforms), image).items():
        if mode == "strict export" and name == "ToImage":
            value = value.as_subclass(Tensor)  # a program returns tensors
        same(found[name], value, name, 1e-5)
