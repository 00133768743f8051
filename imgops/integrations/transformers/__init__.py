"""Image and video processors of transformers with the pixels of its PIL backend, on tensors of any device.

.. code-block:: python

    from transformers import AutoImageProcessor
    from imgops.integrations.transformers import exact, register

    register()
    processor = AutoImageProcessor.from_pretrained("openai/clip-vit-base-patch32", backend="imgops")
    processor = exact(processor)  # or: turn a processor that you have into an exact one

It needs ``imgops[transformers]``.
"""

from __future__ import annotations

from typing import Any

try:
    import transformers as _transformers
except ImportError as error:
    _must = "imgops.integrations.transformers: transformers must be installed (imgops[transformers])"
    raise ImportError(f"{_must}, got {error}") from error

#: The first version that was tested, and the first that may be another backend.
_FIRST, _LAST = (5, 19), (6, 0)
_version = tuple(int(part) for part in _transformers.__version__.split(".")[:2])
if not _FIRST <= _version < _LAST:
    _must = (
        "imgops.integrations.transformers: transformers must be from 5.19 on, below 6 (imgops[transformers])"
    )
    raise ImportError(f"{_must}, got {_transformers.__version__}")

from transformers.image_processing_backends import PilBackend as _PilBackend  # noqa: E402
from transformers.image_processing_backends import TorchvisionBackend as _TorchvisionBackend  # noqa: E402

from imgops.integrations.transformers import _registration  # noqa: E402
from imgops.integrations.transformers._backend import ExactBackend as _ExactBackend  # noqa: E402
from imgops.integrations.transformers._classes import exact_class as _exact_class  # noqa: E402
from imgops.integrations.transformers._classes import of_settings as _of_settings  # noqa: E402

__all__ = ["exact", "register"]


def register(*, default: bool = False) -> None:
    """Let the loaders of transformers take the backend "imgops".

    ``AutoImageProcessor``, ``AutoVideoProcessor`` and ``AutoProcessor`` return exact processors for
    ``from_pretrained(name, backend="imgops")`` from then on, as :func:`exact` makes them; other backends stay
    as they are.

    Parameters
    ----------
    default : bool
        If True, the loaders also return exact processors when no ``backend`` is passed. Processors without
        a backend on tensors are returned unchanged. A later call overrides an earlier one.

    Examples
    --------
    >>> from imgops.integrations.transformers import register
    >>> register()
    """
    if not isinstance(default, bool):
        must = "register: default must be True or False"
        raise TypeError(f"{must}, got {type(default).__name__}")
    _registration.add_backend(exact, default)


def exact(processor: Any) -> Any:
    """Return an exact processor with the settings of one that you have.

    Parameters
    ----------
    processor : BaseImageProcessor, BaseVideoProcessor or ProcessorMixin
        An image or video processor of transformers of either backend, or a processor of several kinds of
        inputs, whose image and video processors are replaced in a copy.

    Returns
    -------
    BaseImageProcessor, BaseVideoProcessor or ProcessorMixin
        A processor of a subclass of the same class, with the same settings, methods and, when it is saved,
        name. It returns what the PIL backend returns for the same input, as tensors on the device of the
        images: arrays, tensors and PIL images are taken; ``device=`` moves them first.

    Raises
    ------
    TypeError
        If it is no processor, or one whose class has no backend on tensors, or one of the PIL backend with
        methods of a user.

    Notes
    -----
    The primitives are replaced: the four forms of a size, every resize, crops that pad, conversions to RGB,
    rescaling and normalization; the code of each model stays that of transformers. Floats in [0, 1] are
    resized as 256 levels, as transformers does by PIL; floats that need a gradient, and those in a compiled
    graph, are resized as floats.

    Examples
    --------
    >>> import torch
    >>> from transformers import CLIPImageProcessor
    >>> from imgops.integrations.transformers import exact
    >>> image = torch.randint(0, 256, (3, 300, 400), dtype=torch.uint8)
    >>> exact(CLIPImageProcessor())(image, return_tensors="pt").pixel_values.shape
    torch.Size([1, 3, 224, 224])
    """
    if isinstance(processor, _ExactBackend):
        return processor
    if isinstance(processor, _PilBackend):
        original = _registration.class_on_tensors(processor)
        settings = {k: v for k, v in processor.to_dict().items() if k != "image_processor_type"}
        return _exact_class(original)(**settings)
    if isinstance(processor, _TorchvisionBackend):
        return _of_settings(type(processor), vars(processor))
    return _registration.with_exact_parts(processor, exact)
