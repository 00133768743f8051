"""Conversion of the pipelines of other libraries."""

from __future__ import annotations

from typing import Any

from torch import nn

from imgops.integrations._reader import WAY_OUT, Reader
from imgops.integrations._report import report
from imgops.transforms._core.origin import package_of

__all__ = ["convert"]


def convert(pipeline: Any) -> Any:
    """Convert a pipeline of another library to one of imgops' transforms.

    Parameters
    ----------
    pipeline : callable, or a tuple or list of these
        A transform, or a ``Compose`` or ``nn.Sequential``, of torchvision (both versions, and the results of
        ``weights.transforms()``), timm, open_clip, lightly or albumentations (see
        :func:`from_albumentations`). Classes and functions of a user inside stay as they are, and get the
        same inputs as in the original pipeline.

    Returns
    -------
    Compose, or a tuple or list of these
        The pipeline takes the inputs of the original one, and those of imgops' transforms. Under equal seeds
        it draws the same numbers, by the same generators: timm and others draw by ``random`` and NumPy.
        Pixels match those of the original pipeline on PIL images, also for uint8 tensors, and for pipelines
        that convert to a tensor before resizing. Convert once, not for each image: a call takes
        milliseconds.

    Raises
    ------
    TypeError
        If ``pipeline`` is no transform of these libraries; or, when the result is called, if the original
        pipeline does not take an input.
    ValueError
        If transforms have no counterpart, or the pipeline itself is a user's class: the message names all.

    Warns
    -----
    UserWarning
        If the pixels of some counterparts differ with their arguments; the warning says how.

    Examples
    --------
    >>> from torchvision import transforms as v1
    >>> from imgops import transforms
    >>> transforms.convert(v1.Compose([v1.RandomHorizontalFlip(), v1.ToTensor()]))
    Compose(
          RandomHorizontalFlip(p=0.5)
          PILToTensor()
          ToDtype(dtype=torch.float32, scale=True)
    )
    """
    reader = Reader()
    made = _converted(pipeline, reader)
    report("convert", reader.unmapped, reader.differences, WAY_OUT)
    return made


def _converted(pipeline: Any, reader: Reader) -> Any:
    """Return the counterpart of a pipeline, or those of a tuple or a list of pipelines."""
    if isinstance(pipeline, tuple | list) and pipeline:
        each = [_converted(one, reader) for one in pipeline]
        return each if isinstance(pipeline, list) else tuple(each)
    if any(package_of(cls) == "albumentations" for cls in type(pipeline).__mro__):
        from imgops.integrations.albumentations import convert as albumentations

        if albumentations.is_of_albumentations(pipeline):
            return albumentations.from_albumentations(pipeline)
    package = package_of(pipeline)
    if package == "imgops":
        return pipeline
    is_other = package in ("builtins", "numpy", "torch", "PIL") and type(pipeline) is not nn.Sequential
    if is_other or not callable(pipeline):
        must = (
            "convert: pipeline must be a transform of torchvision, timm, open_clip, lightly or albumentations"
        )
        raise TypeError(f"{must}, got {type(pipeline).__name__}")
    return reader.read_pipeline(pipeline)
