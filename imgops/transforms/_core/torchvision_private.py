"""All uses of torchvision's private names, in one module; checked with torchvision 0.26 and 0.29.

``tests/test_integrations_private.py`` fails if one of them moves or changes its meaning, or if another module
of ``imgops.transforms`` uses a private name of torchvision.
"""

from __future__ import annotations

import warnings
from collections import ChainMap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.compiler import is_compiling
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, _functional_pil, _functional_tensor
from torchvision.transforms import functional as first_functional
from torchvision.transforms.v2 import _transform as transform_base
from torchvision.transforms.v2 import _utils as v2_utils
from torchvision.transforms.v2.functional import _geometry as v2_geometry
from torchvision.transforms.v2.functional import _misc as v2_misc
from torchvision.transforms.v2.functional import _utils as dispatch

from imgops._common.torch_private import real_inputs_of_export, sym_max, sym_min, tree_flatten

#: The base class of the transforms that are applied with a probability.
WithProbability = transform_base._RandomApplyTransform

#: The modules of the first version's functions, which call each other by name.
FIRST_FUNCTIONS = (first_functional, _functional_pil, _functional_tensor)

#: The classes of inputs that a transform works on unless it declares others.
DEFAULT_TYPES = transform_base.Transform._transformed_types


#: The methods that torchvision's ``forward`` calls; a transform runs a user's code if one is overridden.
METHODS = (
    *("make_params", "transform", "_call_kernel"),
    *("_apply_image_or_video_transform", "_sample_dirichlet"),
)
#: What torchvision's ``forward`` does with all inputs of a call before and after that; any mode calls it.
CHECKS = (
    *("check_inputs", "_transformed_types", "_needs_transform_list"),
    *("_flatten_and_extract_image_or_video", "_unflatten_and_insert_image_or_video"),
)
#: What decides the parameters that torchvision's code draws.
DRAWS = (
    *("get_params", "_generate_value", "_get_random_item"),
    *("_AUGMENTATION_SPACE", "_PARTIAL_AUGMENTATION_SPACE"),
)
#: What the constructors of torchvision's classes keep under private names, and a user may set.
KEPT = ("_dist", "_fill", "_labels_getter", "_log_ratio", "_policies")

_INTERPOLATIONS = {mode.value: mode for mode in InterpolationMode}


def interpolation_mode(interpolation: Any) -> InterpolationMode:
    if isinstance(interpolation, InterpolationMode):
        return interpolation
    if isinstance(interpolation, str):  # torchvision accepts names from 0.29 on
        if interpolation not in _INTERPOLATIONS:  # a graph does not show what an Enum raises
            names = ", ".join(map(repr, _INTERPOLATIONS))
            raise ValueError(f"interpolation must be one of {names}, got {interpolation!r}")
        return _INTERPOLATIONS[interpolation]
    return v2_geometry._check_interpolation(interpolation)


def size_after_resize(canvas: tuple[int, int], size: Any, max_size: int | None) -> list[int]:
    if max_size is None and isinstance(size, (list, tuple)) and len(size) == 2:
        return list(size)
    # Which side of an image is shorter may be unknown in a graph.
    if is_compiling() and not (isinstance(size, (list, tuple)) and len(size) != 1):
        # Without a branch: a compiler may not know which side is shorter.
        size = size[0] if isinstance(size, (list, tuple)) else size
        height, width = canvas
        short, long = sym_min(height, width), sym_max(height, width)
        if size is None:
            return [torch.sym_int(max_size * side / long) for side in canvas]  # type: ignore[operator]
        if max_size is not None and max_size <= size:
            must = f"max_size must be greater than the size of the smaller edge, {size}"
            raise ValueError(f"resize: {must}, got {max_size}")
        sides = [torch.sym_int(size * side / short) for side in canvas]
        if max_size is None:
            return sides
        longest = sym_max(*sides)
        return [torch.sym_int(sym_min(longest, max_size) * side / longest) for side in sides]
    return v2_geometry._compute_resized_output_size(canvas, size, max_size)


def first_space(policy: Any, bins: int, *size: tuple[int, int]) -> dict[str, tuple[torch.Tensor, bool]]:
    """Return the steps of a policy of the first version: their magnitudes, and whether they have a sign."""
    return policy._augmentation_space(bins, *size)


def log_ratio(transform: Any) -> tuple[float, float]:
    """Return the logarithms of the least and the greatest ratio of RandomResizedCrop and RandomErasing.

    They are those of the ratio with which the transform was made, and stay if the attribute changes.
    """
    low, high = transform._log_ratio.tolist()
    return low, high


def set_log_ratio(transform: Any, logarithms: Sequence[float]) -> None:
    transform._log_ratio = torch.tensor(logarithms, dtype=torch.float32, device="cpu")


def pairs_of(policy: Any) -> tuple[tuple[tuple[str, float, int | None], ...], ...]:
    """Return the pairs of steps of AutoAugment: names, probabilities and indices of magnitudes.

    They are those of the policy with which the transform was made.
    """
    return tuple(policy._policies)


def set_pairs(policy: Any, pairs: Sequence[Any]) -> None:
    policy._policies = pairs


def space(policy: Any) -> dict[str, tuple[Callable[[int, int, int], torch.Tensor | None], bool]]:
    """Return the steps of a policy: the function of their magnitudes, and whether they have a sign."""
    return policy._AUGMENTATION_SPACE


def two_shears(shear: Any) -> Sequence[Any]:
    if not isinstance(shear, (list, tuple)):
        return shear, 0.0
    return (*shear, *shear) if len(shear) == 1 else shear


def perspective_coefficients(corners: list[list[int]], moved: list[list[int]]) -> list[float]:
    """Return the coefficients of the perspective that moves corners."""
    return first_functional._get_perspective_coeffs(corners, moved)


def pad_sides(padding: Any) -> list[int]:
    """Return the padding as left, right, top and bottom."""
    return v2_geometry._parse_pad_padding(padding)


def set_fill(transform: Any, fill: Any) -> None:
    """Set a fill, or one for each class of inputs, which :func:`fill_of` returns."""
    transform._fill = v2_utils._setup_fill_arg(fill)


#: The classes of inputs of which a fill for all classes says nothing.
FILLED_WITH_0: set[type] = set()


def fill_of(transform: Any, kind: type) -> Any:
    if kind in FILLED_WITH_0 and kind not in transform._fill:
        return 0
    return v2_utils._get_fill(transform._fill, kind)


def fills(transform: Any) -> Any:
    """Return the fill of each class of inputs, in the form that the policies take."""
    return transform._fill


def needs_transform(transform: Any, flat: list[Any]) -> list[bool]:
    return transform._needs_transform_list(flat)


def types_of(transform: Any) -> tuple[Any, ...]:
    """Return the classes of inputs that a transform works on, and functions that tell them."""
    return transform._transformed_types


def labels_of(transform: Any, inputs: Any) -> Any:
    return transform._labels_getter(inputs)


def finds_labels_by_default(transform: Any) -> bool:
    """Return whether a transform looks for labels where torchvision expects them."""
    return transform._labels_getter is v2_utils._find_labels_default_heuristic


def one_image(transform: Any, inputs: tuple[Any, ...]) -> tuple[list[Any], Any, int]:
    """Return the flat inputs of an automatic policy, their structure, and the index of the only image."""
    (flat, structure, place), _ = transform._flatten_and_extract_image_or_video(inputs)
    return flat, structure, place


def with_image(transform: Any, flat: list[Any], structure: Any, place: int, image: Any) -> Any:
    """Return the inputs of an automatic policy with another image."""
    return transform._unflatten_and_insert_image_or_video((flat, structure, place), image)


def beta(transform: Any) -> Any:
    """Return the distribution that MixUp and CutMix draw from."""
    return transform._dist


def check_batch(transform: Any, inpt: Any, batch_size: int) -> None:
    transform._check_image_or_video(inpt, batch_size=batch_size)


def valid_boxes(boxes: Any, format: Any, canvas: tuple[int, int], min_size: float, min_area: float) -> Any:
    return v2_misc._get_sanitize_bounding_boxes_mask(boxes, format, canvas, min_size, min_area)


def valid_keypoints(points: Any, canvas: tuple[int, int]) -> Any:
    return v2_misc._get_sanitize_keypoints_mask(points, canvas)


def kernel_of(functional: Callable[..., Any], kind: type, passthrough: bool = True) -> Callable[..., Any]:
    """Return torchvision's kernel for a class of inputs; without one, the identity, or raise."""
    return dispatch._get_kernel(functional, kind, allow_passthrough=passthrough)


def is_users_kernel(functional: Callable[..., Any], kind: type) -> bool:
    """Return whether ``kind`` has a kernel that was registered outside of torchvision."""
    for cls in kind.__mro__:
        if cls in dispatch._BUILTIN_DATAPOINT_TYPES:
            return False
        if cls in dispatch._KERNEL_REGISTRY.get(functional, {}):
            return True
    return False


def add_functional(
    function: Any, theirs: Callable[..., Any], kernels: dict[type, Callable[..., Any]]
) -> None:
    """Let torchvision's code call ``function`` as one of its functionals.

    ``Transform._call_kernel`` looks its kernels up in torchvision's registry: those of ``kernels`` first,
    then torchvision's and the users' own, those that are registered later included.
    """
    dispatch._KERNEL_REGISTRY[function] = ChainMap(kernels, dispatch._KERNEL_REGISTRY[theirs])
    function.__prepare_scriptable__ = partial(_script_torchvisions, theirs)


def _script_torchvisions(theirs: Callable[..., Any]) -> Any:
    """Return the function that ``torch.jit.script`` compiles, because TorchScript cannot call Python."""
    _warn_of_scripting(theirs.__name__)
    return torch.jit.script_if_tracing(theirs)  # which torch.jit.script unwraps, and resolves its names


def _warn_of_scripting(name: str) -> None:
    why = "TorchScript cannot call imgops' operators"
    warnings.warn(f"{name}: {why}; torch.jit.script compiles torchvision's code instead", stacklevel=5)


class CanvasTensor(tv_tensors.TVTensor):
    """A tv_tensor that knows the height and width of its image."""

    canvas_size: tuple[int, int]

    @classmethod
    def _wrap_output(cls, output: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Wrap what ``clone``, ``to`` and the like return."""
        out = super()._wrap_output(output, args, kwargs)
        (like,) = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, CanvasTensor)][:1]
        for each in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(each, CanvasTensor):
                each.canvas_size = like.canvas_size
        return out

    @classmethod
    def wrap(cls, tensor: torch.Tensor, like: Any, **kwargs: Any) -> Any:
        """Return a tensor as one of this class; torchvision's ``wrap`` calls it from 0.29 on."""
        out: Any = tensor.as_subclass(cls)
        out.canvas_size = kwargs.get("canvas_size", like.canvas_size)
        return out


class Hooks:
    """The methods that torchvision's classes call by private names, under imgops' own names.

    This class comes before torchvision's class in the bases, so that ``super()`` finds torchvision's method.
    """

    #: Arguments that torchvision's class does not have.
    _added_arguments: tuple[str, ...] = ()

    def _kernel(self, functional: Callable[..., Any], inpt: Any, *args: Any, **keywords: Any) -> Any:
        """Call the kernel of a functional for an input that the transform works on."""
        return self._torchvision_kernel(functional, inpt, *args, **keywords)

    def _torchvision_kernel(
        self, functional: Callable[..., Any], inpt: Any, *args: Any, **keywords: Any
    ) -> Any:
        return super()._call_kernel(functional, inpt, *args, **keywords)  # type: ignore[misc]

    def _call_kernel(self, functional: Callable[..., Any], inpt: Any, *args: Any, **keywords: Any) -> Any:
        return self._kernel(functional, inpt, *args, **keywords)

    def _note_unchanged(self, flat: list[Any]) -> None:
        """Note that the transform changes none of its flat inputs."""

    def _needs_transform_list(self, flat: list[Any]) -> list[bool]:
        needs: list[bool] = super()._needs_transform_list(flat)  # type: ignore[misc]
        if True not in needs:
            self._note_unchanged(flat)
        for i, real in real_inputs_of_export(flat).items():
            is_image = isinstance(real, (tv_tensors.Image, tv_tensors.Video)) and needs[i]
            if isinstance(real, tv_tensors.TVTensor) and not is_image:
                must = "strict must be True in torch.export.export of a program that takes tv_tensors"
                got = f"False, which makes a plain tensor of {type(real).__name__}"
                raise ValueError(f"{type(self).__name__}: {must}, got {got}")
        return needs

    def __prepare_scriptable__(self) -> Any:
        theirs = super().__prepare_scriptable__()  # type: ignore[misc]
        _warn_of_scripting(type(self).__name__)
        return theirs

    def _extract_params_for_v1_transform(self) -> dict[str, Any]:
        known = super()._extract_params_for_v1_transform()  # type: ignore[misc]
        ours = (*self._added_arguments, "forward")
        return {name: value for name, value in known.items() if name not in ours}


class PolicyHooks(Hooks):
    """The same methods for the automatic policies, whose ``forward`` samples a step and applies it."""

    def _step(self, image: Any, kind: str, magnitude: float, interpolation: Any, fill: Any) -> Any:
        return self._torchvision_step(image, kind, magnitude, interpolation, fill)

    def _torchvision_step(self, *args: Any) -> Any:
        return super()._apply_image_or_video_transform(*args)  # type: ignore[misc]

    def _dirichlet(self, concentration: Any) -> Any:
        return super()._sample_dirichlet(concentration)  # type: ignore[misc]

    def _apply_image_or_video_transform(
        self, image: Any, transform_id: str, magnitude: float, interpolation: Any, fill: Any
    ) -> Any:
        return self._step(image, transform_id, magnitude, interpolation, fill)

    def _sample_dirichlet(self, params: Any) -> Any:
        return self._dirichlet(params)
