"""The base classes of the transforms, which join torchvision's classes and imgops' operators.

A transform declares how it samples its parameters and what it does with them. In addition to the methods of
torchvision's class, it has these attributes:

=======================  ========================================================================
``_random_parameters``   the parameters: names, lengths, and neutral values, which change nothing
``_config``              the arguments that the parameters depend on
``_draw_rule``           how they are drawn, as instructions for native code, if torchvision's code can be
                         replaced; ``_numbers_of_draw`` computes them from what is drawn
``_steps``               what happens to an image and to a mask: operators with their arguments
``_image``, ``_mask``    the same as a method, where it cannot be listed as steps
``_out_size``            the output height and width; None if they depend on the parameters
``_goes_back``,          whether results go back (``invert``), and the steps that move pixels then
``_moving_steps``
``_has_pils_pixels``,    flags: whether the pixels are PIL's, whether it takes images of different
``_takes_batches``,      sizes, and whether it decodes only a part of a file
``_decodes_regions``
=======================  ========================================================================

The base classes do the rest, for eager mode and for graphs: torchvision's own code transforms boxes and
keypoints. A transform overrides ``_numbers_from`` and ``_values_from`` if torchvision's parameters are not
plain numbers.

A call takes one of two paths. In eager mode, a plain tensor that the operators support goes from ``forward``
through ``_draw_numbers`` to the steps. Everything else (structures, tv_tensors, PIL images, graphs, samples
with parameters of their own) goes through ``_run`` with a :class:`ParameterSampler`.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.fx.experimental.symbolic_shapes import guard_or_false
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops import EncodedImage, EncodedImages
from imgops._common import check, torch_private
from imgops._common.torch_private import (
    forward_of_its_own,
    is_eager,
    is_forward_of_its_own,
    raise_error,
    tree_flatten,
    tree_unflatten,
)
from imgops._operator import subclass
from imgops.batches.packed import PackedImages
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu.program import ImageProgram
from imgops.transforms._core import (
    annotation_kinds,
    draws,
    first_draws,
    operators,
    programs,
    projections,
    seeding,
    torchvision_private,
    unchanged,
    way_back,
)
from imgops.transforms._core.batches import PendingBatch
from imgops.transforms._core.inputs import (
    ANNOTATIONS,
    FOLLOWERS,
    SHOWN,
    arguments_of,
    as_image,
    batch_of,
    decode_all,
    has_batches,
    has_encoded,
    has_samples,
    images_among,
    meta_image,
    name_images,
    refuse_nested,
    require_batches,
    samples_of,
    stand_in,
)
from imgops.transforms._core.parameters import (
    BATCHES,
    IS_APPLIED,
    Key,
    Numbers,
    Parameter,
    Params,
    Shape,
    require_own,
)
from imgops.transforms._core.projections import PROJECTED
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms._core.signatures import complete_docstring, is_own, take_init
from imgops.transforms._core.steps import Step, move_values
from imgops.transforms.functional import _dispatch

_sites, _versions = itertools.count(), itertools.count(1)
#: site -> the transform that has it: a number by which a graph knows a transform.
SITES: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
#: The calls that do not know which samples a transform is applied to.
WHERE = "in a graph and with per_sample=True"

#: The classes of arguments that may change in place.
_CHANGEABLE = (list, Tensor, np.ndarray)
#: What a user may override of what torchvision's ``forward`` does.
_OVERRIDABLE = (*torchvision_private.METHODS, *torchvision_private.CHECKS, *torchvision_private.DRAWS)
#: The private names that count as attributes of a user.
_COUNTED = (*_OVERRIDABLE, *torchvision_private.KEPT)


class OperatorTransform(torchvision_private.Hooks):
    """A mixin for one of torchvision's classes, whose kernels for images, videos and masks become imgops'."""

    _config: tuple[str, ...] = ()
    #: Arguments that torchvision's class does not have: switches, given by keyword, off by default.
    _switches: tuple[str, ...] = ()
    #: The class that makes the transform's parameters, which its description names.
    _described: type
    _text = ""
    #: The arguments that may change in place, and their values in the description.
    _listed: Sequence[tuple[Any, Any]] = ()
    #: Whether the transform moves pixels, so that masks, boxes and keypoints must follow.
    _moves = False
    #: How it maps the positions of one image, if it does not leave them unchanged.
    _kind_of_map: int | property = projections.KEEPS_ROWS
    #: The image dtypes that the operators support; torchvision computes the others.
    _dtypes: frozenset[torch.dtype] | None = None
    #: The numbers of channels that an image may have, by default any.
    _channels: check.Channels | property | None = None
    #: Whether images without pixels are left to torchvision.
    _needs_pixels = False
    #: Whether torchvision's result for one interleaved image is planar, so that imgops' is planar, too.
    _makes_planar = False
    #: Whether the transform refuses an image without annotations.
    _needs_annotations = False
    #: Whether a call without anything to change warns (:mod:`.unchanged`).
    warn_if_nothing_changes = True
    #: Whether such a call is a mistake; a conversion, or a transform of annotations, may have nothing to do.
    _needs_image = True
    #: Whether a converted transform refuses inputs of unknown classes, which torchvision's return unchanged.
    _only_images = False
    #: Whether ``_image`` gives exactly PIL's pixels, on uint8 with one or three channels.
    _has_pils_pixels = False
    #: Whether the transform is so much faster than PIL that it pays for a conversion and back.
    _outweighs_pil: bool | property = False
    #: The class to which the transform converts an image, if this is all that it does.
    _converts_to: type | None = None
    #: Whether it converts tv_tensors, too.
    _unwraps = False
    #: Whether a call with one image does no more than sample parameters and change the image, so that a
    #: pipeline may do this instead. A class that overrides ``_run`` or ``_transform_input`` says so itself.
    _is_simple: bool | property = True
    #: Whether the transform takes packed images in the place of an image.
    _takes_batches = False
    #: Whether what it does to a batch of images of different sizes is a resize or a crop.
    _resizes_batches = False
    #: Whether the transform decodes only a part of an encoded image, in ``_of_encoded``.
    _decodes_regions = False
    #: imgops' ``forward`` alone, which a pipeline need not call; nothing if a user overrides it.
    _own_forward: tuple[Any, ...] = ()
    #: Whether the class lists its steps.
    _has_steps = False
    #: False if a user overrides what torchvision's ``forward`` does with the inputs.
    _has_own_methods = True
    #: False if the class or the object runs methods of a user.
    _is_described = True
    #: Whether the class has its own methods, and steps or an ``_image``.
    _is_pure = False
    #: The number of the latest change of an attribute; no two changes have the same.
    _version = 0
    #: Whether the transform can be part of a native program.
    _may_add = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        known = vars(cls).get("get_params")
        super().__init_subclass__(**keywords)
        if known is not None:  # torchvision's method replaces it with that of the first version
            cls.get_params = known
        elif "get_params" in vars(cls):
            del cls.get_params
        is_usual = is_own(cls, "forward") and torch_private.has_usual_call(cls)
        cls._own_forward = (getattr(cls, "forward", None),) if is_usual else ()
        cls._is_described = all(is_own(cls, name) for name in torchvision_private.METHODS)
        # A user's class may have a property in the place of an argument.
        names = (*torchvision_private.CHECKS, *cls._config)
        cls._has_own_methods = cls._is_described and all(is_own(cls, name) for name in names)
        changed = {"_steps", "_image"} & vars(cls).keys()
        if changed and "_add_to" not in vars(cls):  # that of a base class adds other steps
            name = "_add_to" if "_steps" in changed else "_add_nothing"
            cls._add_to = vars(OperatorTransform)[name]  # type: ignore[method-assign]
        if {"_run", "_transform_input"} & vars(cls).keys() and "_is_simple" not in vars(cls):
            cls._is_simple = False
        cls._has_steps = cls._steps is not OperatorTransform._steps
        has_image = cls._has_steps or cls._image is not OperatorTransform._image
        cls._is_pure = cls._has_own_methods and has_image and not cls._needs_annotations
        own_steps = cls._add_to not in (OperatorTransform._add_to, OperatorTransform._add_nothing)
        cls._may_add = cls._has_steps or own_steps or cls._converts_to is not None
        if cls.__module__.startswith("imgops."):
            if "_described" not in vars(cls):
                cls._described = cls
            if issubclass(cls, torch.nn.Module) and "__init__" not in vars(cls):
                take_init(cls, OperatorTransform)
            if cls.__doc__ and not cls.__name__.startswith("_"):
                complete_docstring(cls)

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        check.keywords(cls.__name__, check.names_of(cls.__init__)[1:], (cls, *args), keywords)
        made = super().__new__(cls)
        if issubclass(cls, torch.nn.Module):  # and not only what a description makes to sample
            made.__dict__["forward"] = forward_of_its_own(made)  # type: ignore[arg-type]
        return made

    def _runs_own_forward(self) -> bool:
        """Return whether a call runs the ``forward`` of imgops, which no user has replaced."""
        cls: Any = type(self)
        # A test may replace the method later; a tracer of torch.fx replaces the __call__ of nn.Module itself.
        return self._own_forward == (cls.forward,) and torch_private.is_called_as_module(cls)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy, which gets a ``forward`` of its own."""
        state = self.__dict__.copy()
        for name in ("_single_rule", "_plans", "_generator_handle", "_own_draws"):
            state.pop(name, None)
        if is_forward_of_its_own(state.get("forward")):
            del state["forward"]
        return state

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        is_public = not name.startswith("_") or name in _COUNTED
        if is_public and name != "training" and not is_compiling():
            self.__dict__["_version"] = next(_versions)
        if name == "forward":
            self.__dict__["_own_forward"] = ()
        if name in (*torchvision_private.METHODS, *torchvision_private.CHECKS):  # for this object alone
            self._is_pure = self._has_own_methods = False
            if name in torchvision_private.METHODS:
                self._is_described, self._description = False, ""
        if (name in self._config or name in torchvision_private.KEPT) and self.__dict__.get("_text"):
            self._describe()

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__["_version"] = next(_versions)

    @property
    def _description(self) -> str:
        """The transform as text, by which it is made again; "" if it cannot be.

        A list or an array among its arguments may have changed in place.
        """
        if self._listed and is_eager() and any(programs.plain(v) != known for v, known in self._listed):
            self._describe()
            self.__dict__["_version"] = next(_versions)
        return self._text

    @_description.setter
    def _description(self, text: str) -> None:
        values = [getattr(self, name) for name in self._config] if text else []
        self.__dict__["_text"] = text
        self.__dict__["_listed"] = [(v, programs.plain(v)) for v in values if isinstance(v, _CHANGEABLE)]

    def _note_unchanged(self, flat: list[Any]) -> None:
        if is_eager():
            unchanged.note(self, flat)

    def _describe(self) -> None:
        """Set the description."""
        self._description = programs.description_of(self)

    def forward(self, *inputs: Any) -> Any:
        if len(inputs) == 1 and type(inputs[0]) is Tensor and self._is_pure and self._supports(inputs[0]):
            return self._transform_image(inputs[0], NOTHING, Tensor)
        is_file = len(inputs) == 1 and type(inputs[0]) is EncodedImage
        if is_file and self._decodes_regions and self._has_own_methods:
            return self._of_encoded(inputs[0], NOTHING)
        if has_batches(inputs):
            return self._of_packed(inputs)
        return unchanged.watch(self, self._by_torchvisions_forward, inputs)

    def _by_torchvisions_forward(self, inputs: tuple[Any, ...]) -> Any:
        return super().forward(*decode_all(inputs))  # type: ignore[misc]

    def _of_packed(self, inputs: tuple[Any, ...]) -> Any:
        """Transform packed images; other inputs stay as they are."""
        flat, structure = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        needs = self._needs(flat)
        out = [self._image_of_batch(x, NOTHING) if n else x for x, n in zip(flat, needs, strict=True)]
        return tree_unflatten(name_images(flat, out), structure)

    def _needs(self, flat: list[Any]) -> list[bool]:
        """Return which inputs the transform changes; with images of different sizes, no tensors."""
        projections.require(self, flat, self._kind_of_map)
        batches = [type(x) in BATCHES for x in flat]
        if not any(batches):
            return torchvision_private.needs_transform(self, flat)
        self._require_packed()
        for i, inpt in enumerate(flat):
            shows = isinstance(inpt, SHOWN) or (batches[i] and any(batches[:i]))
            if shows or (self._moves and isinstance(inpt, FOLLOWERS)):
                must = "inputs given with images of different sizes must not be images, masks, boxes or"
                got = f"got {type(inpt).__name__}"
                raise_error(TypeError, f"{type(self).__name__}: {must} keypoints, {got}")
        return batches

    def _image_of_batch(self, images: Any, params: Params) -> Any:
        """Transform images of different sizes; pending ones stay pending after a resize or a crop."""
        if self._resizes_batches:
            is_pending = type(images) is PendingBatch
            out = self._batch(images if is_pending else PendingBatch(images), params)
            return out if is_pending else out.result()
        if type(images) is not PackedImages:
            images = images.decode() if type(images) is EncodedImages else images.result()
        self._require_batch(images)
        return self._image(images, params, Tensor)

    def _batch(self, images: PendingBatch, params: Params) -> Any:
        """Resize or crop images of different sizes, by the steps if there are any."""
        return self._image(images, params, Tensor)

    def _require_batch(self, images: Any) -> None:
        """Refuse images of different sizes that a call on each image would refuse."""

    def _require_packed(self) -> None:
        if not (self._takes_batches and self._has_own_methods):  # a user's code gets images alone
            must = f"{self._get_name()}: image must be a Tensor"
            got = "got images of different sizes, which this transform does not take"
            raise_error(TypeError, f"{must}, {got}; give them one size before it, as RandomResizedCrop does")

    def _supports(self, image: Tensor) -> bool:
        """Return whether imgops' operators support the shape, dtype and channels of an image."""
        return (
            image.ndim > 2
            and (self._dtypes is None or image.dtype in self._dtypes)
            and (self._channels is None or image.shape[-3] in self._channels.counts)
            and not (self._needs_pixels and _dispatch.is_empty(image))
        )

    def _require_channels(self, inputs: list[Any]) -> None:
        """Raise for an image with channels that the transform does not take."""
        if self._channels is None:
            return
        for inpt in inputs:
            count = self._count_channels(inpt)
            if count is not None:
                self._channels.check(type(self).__name__, count)

    def _count_channels(self, inpt: Any) -> int | None:
        """Return the number of channels of an image; None for other inputs."""
        if type(inpt) in BATCHES:
            return inpt.num_channels
        if not isinstance(inpt, Tensor) or not _dispatch.is_image(inpt):
            return None
        image = subclass.plain(inpt)  # dynamo cannot read the shape of a tv_tensor
        return None if image.ndim < 3 or _dispatch.has_users_kernel(type(inpt)) else image.shape[-3]

    def _kernel(self, functional: Any, inpt: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(inpt, ANNOTATIONS):
            if self._moves:
                refuse_nested(self, inpt)
            if annotation_kinds.need_operator(inpt):
                return self._annotations(inpt) if self._moves else inpt
        if isinstance(inpt, PROJECTED):
            return self._follow(inpt, Params(projections.canvas_of(inpt), []))
        kernel = _dispatch.own_kernel(functional, type(inpt))
        if kernel is not None:
            out = kernel(inpt, *args, **keywords)
            if self._makes_planar and _dispatch.is_image(inpt):
                planar = self._in_torchvisions_format(subclass.plain(out), subclass.plain(inpt))
                return _dispatch.wrap_like(planar, inpt)
            return out
        return self._torchvision_kernel(functional, inpt, *args, **keywords)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        """Run torchvision's own code, for inputs that are not images or that no operator supports."""
        return super().transform(inpt, values)  # type: ignore[misc]

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> Sequence[Step]:
        """Return the steps for an image of a height and width; its class, ``kind``, decides the fill."""
        raise NotImplementedError

    def _placed_steps(self, image: Any, params: Params, kind: type) -> Sequence[Step]:
        """Return the steps with their numbers where the operators take them for an image."""
        size = params.canvas if type(image) in BATCHES else tuple(image.shape[-2:])
        steps = self._steps(params, size, kind)
        if isinstance(params.numbers, Tensor):
            params.place(steps, image)
        return steps

    def _image(self, image: Any, params: Params, kind: type) -> Any:
        """Transform an image ``(..., C, H, W)``, by the steps if there are any."""
        for step in self._placed_steps(image, params, kind):
            image = step.image(image)
        return image

    def _add_to(self, program: ImageProgram, params: Params, kind: type) -> bool:
        """Add what the transform does to an image to a program; return False if no program can have it."""
        if not self._has_steps:
            return False
        return self._add_steps(program, self._steps(params, (program.height, program.width), kind), kind)

    def _add_nothing(self, program: ImageProgram, params: Params, kind: type) -> bool:
        return False

    def _add_steps(self, program: ImageProgram, listed: Sequence[Step], kind: type) -> bool:
        if not all(step.add_to(program) for step in listed):
            return False
        makes_planar = self._makes_planar and program.image.ndim == 3 and kind is not PIL.Image.Image
        return not (listed and makes_planar) or program.planar()

    def _transform_image(self, image: Tensor, params: Params, kind: type) -> Any:
        """Transform an image, in the memory format that torchvision's result has for one image."""
        out = _threads.run_without_waiting(self._image, image, params, kind)
        return self._in_torchvisions_format(out, image) if self._makes_planar else out

    def _in_torchvisions_format(self, out: Any, image: Tensor) -> Any:
        if out is image or image.ndim != 3:
            return out
        return operators.as_planar(out)

    def _of_encoded(self, image: EncodedImage, params: Params) -> Tensor:
        """Decode what the transform keeps of an image, and transform it."""
        first, *others = self._placed_steps(stand_in(image), params, Tensor)
        out = first.of_encoded(image)
        for step in others:
            out = step.image(out)
        return out

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        """Run the transform as a step of a pipeline; this base class samples nothing."""
        return self(*inputs)  # type: ignore[operator]

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        """Add the parameters to a program; return the output shape, None if it is not known."""
        if tuple(shape[2:]) == programs.OWN_SIZES and not self._has_one_size():
            return shape if program.resize(self) else None
        return self._out_shape(shape)

    def _out_shape(self, shape: Shape) -> Shape | None:
        samples, channels, height, width = shape
        if (height, width) == programs.OWN_SIZES and not self._has_one_size():
            return None
        size = self._out_size(height, width)
        return None if size is None else (samples, channels, *size)

    def _has_one_size(self) -> bool:
        """Return whether images of different sizes keep them, or get one size; else each gets another one."""
        return True

    def _out_size(self, height: int, width: int) -> tuple[int, int] | None:
        return height, width

    def _canvas(self, params: Params) -> tuple[int, int]:
        """Return the output height and width for these parameters."""
        size: Any = self._out_size(*params.canvas)
        return size

    def _annotations(self, inpt: Any, params: Params | None = None) -> Any:
        """Transform boxes or keypoints by torchvision's code in an operator.

        This is for graphs, and for samples with parameters of their own.
        """
        if params is None:
            params = Params(inpt.canvas_size, torch.zeros(0, dtype=torch.float64, device="cpu"))
        values, kind = subclass.plain(inpt), annotation_kinds.kind_of(inpt)
        own = inpt.canvas_size
        how = (*params.canvas, *own, self._description, kind)
        out = operators.by_torchvision(values, params.tensor(), *how)
        if any(guard_or_false(a != b) for a, b in zip(own, params.canvas, strict=True)):
            params = Params(own, params.numbers)
        return _dispatch.wrap_like(out, inpt, self._canvas(params))

    # -- the parameters of a call -----------------------------------------------------------------

    def sample(self, inputs: Any) -> dict[Any, Any]:
        """Sample parameters without applying them.

        Parameters
        ----------
        inputs
            What the transform takes: a tensor, or any structure of tensors and tv_tensors. Several
            arguments are passed as one tuple.

        Returns
        -------
        dict
            Parameters for :meth:`apply` and :meth:`invert`. With equal seeds, they are those that a call of
            the transform uses. A transform that draws nothing has the size of the image there.
        """
        record: dict[Any, Any] = {}
        self._record(arguments_of(inputs), ParameterSampler(record))
        return record

    def apply(self, inputs: Any, params: Any = None) -> Any:
        """Apply parameters from :meth:`sample`, any number of times, to inputs of the same structure.

        With one argument this is :meth:`torch.nn.Module.apply`.
        """
        if params is None:
            return super().apply(inputs)  # type: ignore[misc]
        require_own("apply", self, params)
        return self._run(arguments_of(inputs), ParameterSampler(None, params))

    def invert(self, inputs: Any, params: dict[Any, Any], *, with_known: bool = False) -> Any:
        """Take results of :meth:`apply` back to the positions that the inputs had.

        The results of a network for a transformed image, such as its maps or boxes, come back onto the image.
        Values do not go back: changes of color, filters and noise leave the results as they are.

        Parameters
        ----------
        inputs
            Tensors, tv_tensors or PIL images of the size of the transform's results, in any structure.
            Several arguments are passed as one tuple. Images ``(..., C, H, W)`` have any number of channels;
            use ``tv_tensors.Mask`` for labels, which take the nearest pixel. As in a call, only the first
            plain tensor is an image, and others stay as they are: wrap further maps in ``tv_tensors.Image``.
        params : dict
            The parameters from :meth:`sample`.
        with_known : bool
            Whether to also return which pixels are known, because the results show them.

        Returns
        -------
        any, or (any, Tensor)
            The inputs, of the size before the transform; 0 where nothing is known. With ``with_known`` also a
            bool tensor ``(H, W)``, or ``(N, H, W)`` if the samples have parameters of their own.

        Raises
        ------
        NotImplementedError
            If a transform has no way back, or images differed in size.
        KeyError
            If ``params`` are those of another transform, as far as their number shows it.
        ValueError
            If inputs have another size than the transform's results, unless it is a flip, a turn by a right
            angle or moves no pixels, or are not a batch of the number of samples in ``params``.

        Notes
        -----
        Flips, turns by right angles, crops and pads go back exactly, other images by the interpolation of the
        transform. Boxes without an angle become the boxes around their corners. The gradient is that of the
        operators.
        """
        return way_back.invert(self, arguments_of(inputs), params, with_known)

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        """Record the parameters of a call: here the size of the image."""
        flat, _ = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self._record_size([stand_in(x) if isinstance(x, EncodedImage) else x for x in flat], sampler)

    def _record_size(self, flat: list[Any], sampler: ParameterSampler) -> None:
        """Record the size of the inputs that move, for ``invert``, which refuses sizes that differ."""
        if self._moves and sampler.record is not None:
            moving = [x for x, needed in zip(flat, self._needs(flat), strict=True) if needed]
            sizes = self._sizes_among(moving) or [(0, 0)]
            sampler.record[sampler.path] = Params(programs.OWN_SIZES if len(sizes) > 1 else sizes[0], [])

    def _sizes_among(self, inputs: list[Any]) -> list[tuple[int, int]]:
        """Return the size of the first input, and the sizes that are known to differ from it."""
        sizes = [self._shape_of([inpt])[2:] for inpt in inputs]
        pairs = [zip(size, sizes[0], strict=True) for size in sizes]
        differ = [any(guard_or_false(a != b) for a, b in pair) for pair in pairs]
        return sizes[:1] + [size for size, differs in zip(sizes, differ, strict=True) if differs]

    #: Whether results go back, by default if nothing moves.
    _goes_back: bool | None = None

    def _moving_steps(self, params: Params, size: tuple[int, int], kind: type) -> Sequence[Step]:
        """Return the steps that move the pixels of an image or of a field of values."""
        return self._steps(params, size, kind)

    def _back(self, results: way_back.Results, path: Key) -> way_back.Results:
        """Return results before the transform; ``path`` is the key of its parameters."""
        if not (not self._moves if self._goes_back is None else self._goes_back):
            way_back.refuse(self)
        params = results.at(self, path) if self._moves else None
        return results if params is None else results.through(self, params)

    def _shape_of(self, inputs: Any) -> tuple[int, int, int, int]:
        """Return the number of samples that share a draw, and the inputs' channels, height and width."""
        for inpt in inputs:
            if type(inpt) in BATCHES:
                return len(inpt), inpt.num_channels, *programs.OWN_SIZES
        if inputs and type(inputs[0]) is Tensor:
            size = inputs[0].shape
            if len(size) > 2:
                return size[0] if len(size) > 3 else 1, *size[-3:]
            if len(size) < 2:
                must = "the first tensor must be an image (..., H, W); other tensors come after it"
                raise_error(ValueError, f"{type(self).__name__}: {must}, got shape {check.written(size)}")
            return 1, 1, *size[-2:]
        for inpt in inputs:  # dynamo cannot read the shape of a tv_tensor
            if _dispatch.is_image(inpt):
                plain = subclass.plain(inpt)
                channels, height, width = plain.shape[-3:] if plain.ndim > 2 else (1, *plain.shape)
                return plain.shape[0] if has_samples(inpt, plain) else 1, channels, height, width
        for inpt in inputs:
            if isinstance(inpt, tv_tensors.Mask):
                height, width = subclass.plain(inpt).shape[-2:]
                return 1, 1, height, width
            if isinstance(inpt, ANNOTATIONS):
                return 1, 1, *inpt.canvas_size
            if isinstance(inpt, PROJECTED):
                return 1, 1, *projections.canvas_of(inpt)
            if isinstance(inpt, PIL.Image.Image):
                return 1, len(inpt.getbands()), inpt.height, inpt.width
        return 1, 0, 0, 0

    def _matrix_of(self, params: Params, size: tuple[int, int]) -> Tensor:
        """Return the map of the positions of an image of a height and width: see ``projections``."""
        found = projections.shift(0.0, 0.0)
        for step in self._moving_steps(params, size, projections.Unfilled):  # the fill moves no position
            found = projections.then(found, step.matrix_of(size))
            size = step.size_after(size)
        return found

    def _follow(self, inpt: Any, params: Params) -> Any:
        """Change a camera or a field of values as its image moves."""
        projections.require(self, [inpt], self._kind_of_map)
        if not self._moves:
            return inpt
        size = projections.canvas_of(inpt)
        if any(guard_or_false(a != b) for a, b in zip(size, params.canvas, strict=True)):
            params = Params(size, params.numbers)
        try:
            matrix = self._matrix_of(params, size)
        except NotImplementedError:
            projections.require(self, [inpt], projections.OTHER)
            raise
        values = subclass.plain(inpt)
        if isinstance(inpt, projections.Camera):
            return _dispatch.wrap_like(projections.move_camera(values, matrix), inpt, self._canvas(params))
        moved, is_interpolated = self._unfilled(values, params, size)
        moved = projections.move_field(inpt, moved, matrix, is_interpolated)
        # The fill is a value of the result: it comes after the values have changed.
        fill = torchvision_private.fill_of(self, projections.kind_of(inpt)) if hasattr(self, "_fill") else 0
        color = projections.fill_of_field(self, inpt, fill)
        if any(v != 0 for v in color):
            shown, _ = self._unfilled(torch.ones_like(values[..., :1, :, :]), params, size)
            moved = projections.fill_hidden(moved, shown, color)
        return _dispatch.wrap_like(moved, inpt)

    def _unfilled(self, values: Tensor, params: Params, size: tuple[int, int]) -> tuple[Tensor, bool]:
        """Move values of pixels, with 0 where there are none; return also whether they are interpolated."""
        listed = self._moving_steps(params, size, projections.Unfilled)
        if isinstance(params.numbers, Tensor):
            params.place(listed, values)
        return move_values(listed, values)

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        """Return numbers as torchvision's parameters; None if the transform is not applied."""
        return {}


#: The parameters of a transform that samples nothing.
NOTHING = Params((0, 0), [])


#: torchvision's classes, of both versions, in whose place a class of imgops draws.
THEIR_RANDOM_CLASSES: set[type] = set()
#: torchvision's classes among the bases of these that draw nothing themselves.
_DRAWING_NOTHING = (v2.Transform, v2.Compose, v1.Compose)


class RandomTransform(OperatorTransform):
    """An :class:`OperatorTransform` that samples parameters."""

    _added_arguments: tuple[str, ...] = ("per_sample", "generator")
    _is_simple: bool | property = True
    #: The parameters, in the order of their numbers.
    _random_parameters: tuple[Parameter, ...] = ()
    _has_probability = False
    _site = -1
    _generator_handle = 0
    per_sample = False
    generator: torch.Generator | None = None
    #: Another library's code that draws the parameters.
    _source: Any = None
    #: Whether a user overrides what torchvision's code draws by.
    _draws_itself = False
    #: Returns the numbers from what the rule draws, for a shape; None if these are the numbers.
    _numbers_of_draw: Callable[[list[float], Shape], list[float]] | None = None
    #: Whether native sampling pays off for one call; it copies the generator's state.
    _draws_much = False
    #: Whether the parameters count pixels, so that all inputs that follow an image have its size.
    _one_size: bool | property = False
    #: The description, the end of the shape and the rule of the last call.
    _single_rule: tuple[str, Sequence[int], draws.SingleRule | None] = "", (0,), None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._draws_itself = not all(is_own(cls, name) for name in torchvision_private.DRAWS)
        cls._has_probability = issubclass(cls, torchvision_private.WithProbability)
        if cls.__module__.startswith("imgops.transforms."):
            theirs = [c for c in cls.__mro__ if c.__module__.startswith("torchvision.")]
            THEIR_RANDOM_CLASSES.update(theirs, (getattr(v1, c.__name__, c) for c in theirs))
            THEIR_RANDOM_CLASSES.difference_update(_DRAWING_NOTHING)

    def forward(self, *inputs: Any) -> Any:
        if self._is_direct(inputs):
            image = inputs[0]
            numbers = self._draw_numbers(inputs)
            if numbers is None:
                return image
            return self._transform_image(image, Params(image.shape[-2:], numbers), Tensor)
        if has_batches(inputs):
            return self._of_packed(inputs)
        return unchanged.watch(self, self._run, inputs, ParameterSampler.of(inputs))

    def _of_packed(self, inputs: tuple[Any, ...]) -> Any:
        self._require_packed()
        return self._run(inputs, ParameterSampler.of(inputs))

    def _is_direct(self, inputs: tuple[Any, ...]) -> bool:
        """Return whether a call is one draw in eager mode, for a plain tensor that the operators support."""
        return (
            len(inputs) == 1
            and type(inputs[0]) is Tensor
            and is_eager()
            and not self.per_sample
            and self._is_pure
            and bool(self._description)
            and self._supports(inputs[0])
        )

    def _draw_numbers(self, inputs: Any) -> Numbers | None:
        """Sample the numbers for flat inputs by torchvision's code; None means that nothing happens."""
        if self._source is not None:
            return self._source.numbers(self, self._shape_of(inputs), inputs)
        if self._draws_much and len(inputs) == 1 and type(inputs[0]) is Tensor and draws.can_draw():
            drawn = self._draw_natively(tuple(inputs[0].shape))
            if drawn is not NotImplemented:
                return drawn
        if self.generator is None:
            return self._draw(inputs)
        with seeding.exchange_generator(programs.generator_of(self._generator_handle)):
            return self._draw(inputs)

    def _draw_natively(self, size: Sequence[int]) -> Any:
        """Draw numbers for an image by the rule; return NotImplemented if torchvision's code must draw."""
        text, known, rule = self._single_rule
        if text is not self._description or size[-3 : len(known) - 3 or None] != known:
            usable = self._description and len(size) > 2
            known, rule = draws.single_rule(self, size) if usable else (size[-3:], None)
            self.__dict__["_single_rule"] = self._description, known, rule
        if rule is None:
            return NotImplemented
        own = programs.generator_of(self._generator_handle)
        return rule.draw(torch.default_generator if own is None else own, size)

    def _draw_rule(self, shape: Shape) -> draws.Rule | None:
        """Return how ``_draw_row`` draws for a shape, or None if torchvision's code must draw."""
        return None

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw by torchvision's code, or by a user's ``get_params``."""
        if first_draws.overrides(self):
            return first_draws.parameters(self, flat_inputs)
        return super().make_params(flat_inputs)  # type: ignore[misc]

    def _draw(self, inputs: Any) -> Numbers | None:
        if self._has_probability and seeding.is_left_out(self.p):  # type: ignore[attr-defined]
            return None
        if inputs and type(inputs[0]) is Tensor:
            height, width = inputs[0].shape[-2:]
        else:  # there is no size without inputs; torchvision's code raises if it needs one
            _, _, height, width = self._shape_of(inputs)
        # torchvision's code reads the size of all inputs, and raises if they differ.
        known = [projections.as_keypoints(x) if isinstance(x, PROJECTED) else x for x in inputs]
        return self._numbers_from(self.make_params(known), height, width)

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        """Return torchvision's parameters as numbers."""
        numbers: list[float] = []
        for name, length, _, _ in self._random_parameters:
            if name == "is_applied":
                numbers.append(1.0)
            elif length == 0:
                numbers.append(values[name])
            else:
                value = values[name]
                numbers += value.tolist() if isinstance(value, Tensor) else value
        return numbers

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in torchvision_private.DRAWS:
            self._draws_itself = True
            if self._is_described:
                self._describe()
        if name == "generator":
            self.__dict__.pop("_single_rule", None)
            self._generator_handle = programs.handle_of(self, value, self._generator_handle)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name == "generator":
            self.generator = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self._start(self.per_sample, self.generator)

    def _start(self, per_sample: bool, generator: torch.Generator | None) -> None:
        """Set the attributes that every transform that samples has in addition to torchvision's."""
        self._site = next(_sites)
        SITES[self._site] = self
        if check.switch(type(self).__name__, "per_sample", per_sample):
            self.per_sample = True
        if generator is not None:
            self.generator = generator
        if self._is_described:
            self._describe()

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        flat, _ = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        flat = [stand_in(x) if isinstance(x, EncodedImage) else x for x in flat]
        self.check_inputs(flat)  # type: ignore[attr-defined]
        needs = self._needs(flat)
        self._sample_params([x for x, n in zip(flat, needs, strict=True) if n], sampler)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Transform one input with parameters from ``make_params``."""
        if not self._is_described:
            return self._by_torchvision(inpt, params)
        _, _, height, width = self._shape_of([inpt])
        numbers = self._numbers_from(params, height, width)
        return self._transform_input(inpt, Params((height, width), numbers), ParameterSampler())

    # -- parameters ------------------------------------------------------------------------------

    def _inverse(self, numbers: Numbers) -> Numbers:
        """Return the numbers of the inverse, for transforms that are their own inverse."""
        return numbers

    def _draw_row(self, shape: Shape) -> Numbers | None:
        """Sample the ``_count_numbers`` numbers for an image of a shape; None means that nothing happens."""
        return self._draw([meta_image(*shape)])

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        if self._random_parameters and self._random_parameters[0] is IS_APPLIED and not numbers[0]:
            return None
        values: dict[str, Any] = {}
        for (name, length, _, kind), value in zip(self._random_parameters, self._split(numbers), strict=True):
            values[name] = kind(value) if length == 0 else [kind(v) for v in value]
        values.pop("is_applied", None)
        return values

    def _split(self, numbers: Numbers) -> list[Any]:
        """Split the numbers by parameter: a list into numbers and lists, a tensor along its last dim."""
        found, at = [], 0
        for _, length, _, _ in self._random_parameters:
            if length == 0:
                found.append(numbers[..., at] if isinstance(numbers, Tensor) else numbers[at])
                at += 1
                continue
            end = at + length if isinstance(length, int) else None  # a length from the shape comes last
            found.append(numbers[..., at:end] if isinstance(numbers, Tensor) else numbers[at:end])
            at = end or at
        return found

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        """Return the numbers with which the transform changes nothing."""
        return [float(n) for p in self._random_parameters for n in p._neutral_numbers(self, shape)]

    def _count_numbers(self, shape: Shape) -> int:
        """Return the total length of the parameters in numbers."""
        return sum(p.count(self, shape) for p in self._random_parameters)

    def _operator_numbers(self, numbers: Numbers, height: int, width: int) -> Numbers:
        """Convert the numbers to what the operators take, for images of a height and width."""
        if not self._has_steps:
            return numbers
        steps = self._steps(Params((height, width), numbers), (height, width), Tensor)
        if not isinstance(numbers, Tensor):
            return [n for step in steps for n in step.numbers]
        return torch.cat([numbers[..., :0], *(step.numbers for step in steps if not step.is_one_draw)], -1)

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        """Sample the parameters for flat inputs, and set how many samples have parameters of their own."""
        self._require_channels(inputs)
        if self._one_size and len(inputs) > 1:
            self._require_one_size(inputs)
        if self.per_sample and sampler.count is None:
            sampler.count = batch_of(inputs)
        sampler.look_at(inputs)
        if sampler.count is None and any(type(x) in BATCHES for x in inputs):
            must = f"{type(self).__name__}: per_sample must be True for images of different sizes"
            raise_error(ValueError, f"{must}, got False")
        if sampler.count is not None:
            require_batches(type(self).__name__, images_among(inputs), sampler.count)
        return sampler.params(self, inputs)

    def _require_one_size(self, inputs: list[Any]) -> None:
        """Raise if inputs have different sizes, but not for a batch of images that do."""
        (height, width), *others = self._sizes_among(inputs)
        is_left_out = self._has_probability and not self.p  # type: ignore[attr-defined]
        if others and not is_left_out and not any(type(x) in BATCHES for x in inputs):
            must = f"{type(self).__name__}: the inputs of a call must have one height and width"
            got = [f"{check.number(h)} x {check.number(w)}" for h, w in ((height, width), others[0])]
            raise_error(ValueError, f"{must}, got {' and '.join(got)}")

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        return self._out_shape(shape) if program.add(self, shape) else None

    # -- applying --------------------------------------------------------------------------------

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if self._runs_users_code(inputs):
            if sampler.replays is not None:
                must = f"{type(self).__name__}: make_params and transform must be imgops' own in apply"
                raise NotImplementedError(f"{must}, got a subclass's")
            with seeding.exchange_generator(programs.generator_of(self._generator_handle)):
                return super(OperatorTransform, self).forward(*decode_all(inputs))  # type: ignore[misc]
        before = sampler.count
        if len(inputs) == 1 and type(inputs[0]) is Tensor and self._has_own_methods:
            self.check_inputs([inputs[0]])  # type: ignore[attr-defined]
            params = self._sample_params([inputs[0]], sampler)
            out: Any = inputs[0]
            if params is not None:
                out = self._transform_input(out, params, sampler)
        else:
            whole = inputs if len(inputs) > 1 else inputs[0]
            flat, structure = tree_flatten(whole)
            if has_encoded(flat):
                if not (self._description and self._decodes_regions and self._has_own_methods):
                    return self._run(decode_all(inputs), sampler)
                return tree_unflatten(self._run_encoded(flat, sampler), structure)
            self.check_inputs(flat)  # type: ignore[attr-defined]
            needs = self._needs(flat)
            params = self._sample_params([x for x, n in zip(flat, needs, strict=True) if n], sampler)
            if params is None:
                out = inputs if len(inputs) > 1 else inputs[0]
            else:
                owners: list[int | None] = [None] * len(flat)
                if params.is_per_sample and self._moves:
                    owners = samples_of(whole, params.numbers.shape[0])
                changed = self._transform_inputs(flat, needs, params, sampler, owners)
                changed = self._transform_others(inputs, flat, name_images(flat, changed), params, owners)
                out = tree_unflatten(changed, structure)
        sampler.count = before
        return out

    def _runs_users_code(self, inputs: tuple[Any, ...]) -> bool:
        """Return whether a user's methods run, in Python; a graph and draws for each sample refuse them."""
        if self._description or is_compiling():
            return False
        return not self.per_sample or batch_of(tree_flatten(inputs)[0]) is None

    def _run_encoded(self, flat: list[Any], sampler: ParameterSampler) -> list[Any]:
        """Sample for images that are not decoded yet, and decode what the transform keeps of them."""
        known = [as_image(stand_in(x), flat) if isinstance(x, EncodedImage) else x for x in flat]
        self.check_inputs(known)  # type: ignore[attr-defined]
        needs = torchvision_private.needs_transform(self, known)
        before = sampler.count
        params = self._sample_params([x for x, n in zip(known, needs, strict=True) if n], sampler)
        sampler.count = before
        if params is None:
            return list(decode_all(tuple(flat)))
        out = []
        for inpt, wanted in zip(flat, needs, strict=True):
            if isinstance(inpt, EncodedImage):
                out.append(as_image(self._of_encoded(inpt, params), flat))
            else:
                out.append(self._transform_input(inpt, params, sampler) if wanted else inpt)
        return out

    def _transform_inputs(
        self,
        flat: list[Any],
        needs: list[bool],
        params: Params,
        sampler: ParameterSampler,
        owners: list[int | None],
    ) -> list[Any]:
        """Transform the inputs that need it; with its own draws, what belongs to one sample."""
        is_each = params.is_per_sample and self._moves
        if is_each:
            self._require_samples(flat, params.numbers.shape[0], owners)
        out = []
        for inpt, wanted, owner in zip(flat, needs, owners, strict=True):
            if not wanted:
                out.append(inpt)
            elif not (is_each and isinstance(inpt, FOLLOWERS)):
                out.append(self._transform_input(inpt, params, sampler))
            elif isinstance(inpt, tv_tensors.BoundingBoxes) and inpt.is_nested:
                out.append(self._nested_boxes(inpt, params, sampler))
            elif owner is None:
                out.append(self._transform_input(inpt, params, sampler))
            else:
                own = Params(params.canvas, params.numbers[owner])
                if isinstance(inpt, (tv_tensors.Mask, *PROJECTED)):
                    out.append(self._transform_input(inpt, own, sampler))
                else:
                    out.append(self._annotations_of_open(inpt, own, sampler.gate_of_result(owner)))
        return out

    def _require_samples(self, flat: list[Any], count: int, owners: list[int | None]) -> None:
        """Raise for boxes, masks or keypoints that are neither for all samples nor for one of them."""
        shared = [x for x, owner in zip(flat, owners, strict=True) if owner is None]
        require_batches(
            type(self).__name__,
            [x for x in shared if isinstance(x, (tv_tensors.Mask, tv_tensors.KeyPoints, *PROJECTED))],
            count,
        )
        if any(isinstance(x, tv_tensors.BoundingBoxes) and not x.is_nested for x in shared):
            must = f"bounding boxes must be a list of {check.number(count)}, one for each sample, or nested"
            got = sum(isinstance(x, tv_tensors.BoundingBoxes) and not x.is_nested for x in flat)
            raise_error(ValueError, f"{type(self).__name__}: {must}, got {got} with per_sample=True")

    def _transform_others(
        self,
        inputs: tuple[Any, ...],
        flat: list[Any],
        changed: list[Any],
        params: Params,
        owners: list[int | None],
    ) -> list[Any]:
        """Change what is neither an image nor geometry, such as labels, among the flat outputs."""
        return changed

    def _nested_boxes(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        """Transform nested boxes, which have one component for each sample."""
        each = subclass.plain(inpt).unbind()
        moved = [
            self._annotations_of_open(
                subclass.rewrap(x, inpt), Params(params.canvas, row), sampler.gate_of_result(i)
            )
            for i, (x, row) in enumerate(zip(each, params.numbers, strict=True))
        ]
        nested = torch.nested.as_nested_tensor([subclass.plain(x) for x in moved])
        out: Any = nested.as_subclass(tv_tensors.BoundingBoxes)  # the constructor takes no nested tensor
        out.__dict__.update(moved[0].__dict__)
        return out

    def _annotations_of_open(self, inpt: Any, params: Params, gate: Tensor | None) -> Any:
        """Transform boxes or keypoints where the gate is open: neutral parameters still clamp boxes."""
        out = self._annotations(inpt, params)
        if gate is None:
            return out
        if any(guard_or_false(a != b) for a, b in zip(inpt.canvas_size, out.canvas_size, strict=True)):
            before, after = (check.written(x.canvas_size) for x in (inpt, out))
            must = f"RandomApply: transforms that may be left out must keep the canvas {WHERE}"
            raise_error(ValueError, f"{must}, got {type(self).__name__}: {before} to {after}")
        moved, plain = subclass.plain(out), subclass.plain(inpt)
        chosen = gate.to(plain.device).reshape(*gate.shape, *(1,) * (plain.ndim - gate.ndim))
        return _dispatch.wrap_like(torch.where(chosen, moved, plain), inpt, out.canvas_size)

    def _transform_input(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        """Transform one input, by the operators if they support it, else by torchvision's code."""
        if type(inpt) in BATCHES:
            return self._image_of_batch(inpt, params)
        if isinstance(inpt, Tensor) and not _dispatch.has_users_kernel(type(inpt)):
            if _dispatch.is_image(inpt):
                image = subclass.plain(inpt)
                if self._supports(image):
                    return _dispatch.wrap_like(self._transform_image(image, params, type(inpt)), inpt)
                if not params.is_one_draw:
                    how = (*params.canvas, *params.canvas, self._description, "image")
                    return _dispatch.wrap_like(operators.by_torchvision(image, params.tensor(), *how), inpt)
            elif self._moves and isinstance(inpt, tv_tensors.Mask):
                mask = subclass.plain(inpt)
                flat = mask.ndim == 2 or (params.is_per_sample and mask.ndim == 3)
                out = self._mask(mask.unsqueeze(-3) if flat else mask, params)
                return _dispatch.wrap_like(out.squeeze(-3) if flat else out, inpt)
            elif isinstance(inpt, PROJECTED):
                return self._follow(inpt, params)
        if isinstance(inpt, ANNOTATIONS) and not params.is_one_draw:
            return self._annotations_of_open(inpt, params, sampler.gate_of_result()) if self._moves else inpt
        if not params.is_one_draw and not isinstance(inpt, PIL.Image.Image):
            return inpt
        values = self._values_from(params.tensor().tolist(), *params.canvas)
        return inpt if values is None else self._by_torchvision(inpt, values)

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        for step in self._placed_steps(mask, params, tv_tensors.Mask):
            mask = step.mask(mask)
        return mask


class FixedTransform(OperatorTransform):
    """A transform that depends on its arguments alone, and gives exactly PIL's pixels."""

    _moves = True
    _has_pils_pixels = True


class RandomSizeTransform(RandomTransform):
    """A :class:`RandomTransform` whose samples come out in different sizes, and so cannot form a batch."""

    _moves = True

    #: The lower bound of each size that depends on the parameters.
    _least: tuple[int, ...] = (1, 1)

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        """Return the sizes that the parameters imply: a height and a width."""
        raise NotImplementedError

    def _out_size(self, height: int, width: int) -> tuple[int, int] | None:
        return None

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        self._refuse_a_batch(inputs, sampler)
        return super()._sample_params(inputs, sampler)

    def _refuse_a_batch(self, inputs: list[Any], sampler: ParameterSampler) -> None:
        if sampler.count is not None or (self.per_sample and self._is_batch(inputs)):
            must = "per_sample must be False, because samples of different sizes cannot form a batch"
            raise_error(NotImplementedError, f"{self._get_name()}: {must}, got True")

    @staticmethod
    def _is_batch(inputs: list[Any]) -> bool:
        return any(_dispatch.is_image(x) and subclass.plain(x).ndim > 3 for x in inputs)

    def _sizes(self, params: Params) -> tuple[int, ...]:
        if params.sizes is None:
            if params.is_one_draw:
                params.sizes = self._sampled_sizes(params.numbers, *params.canvas)
            else:
                params.sizes = operators.sizes_of(self, params.numbers, params.canvas, self._least)
        return params.sizes

    def _canvas(self, params: Params) -> tuple[int, int]:
        height, width = self._sizes(params)
        return height, width
