"""The columns of CV-CUDA and DALI in ``python -m benchmarks.cuda``, which take interleaved images.

CV-CUDA's functions take one set of parameters for a batch that is a tensor. DALI's pipelines take a set for
each image; they run on a separate stream, so they are timed on the host, with a synchronization.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.pipelines import MEAN, STD

Call = Callable[[Tensor], Any]

# -- CV-CUDA ---------------------------------------------------------------------------------------------


def cvcuda(name: str, image: Tensor) -> Call | None:
    """Return CV-CUDA's call for a row; None if there is none, CV-CUDA is missing, or the image is planar."""
    made = _CVCUDA.get(name)
    if made is None or find_spec("cvcuda") is None or not image.is_cuda or image.stride(1) != 1:
        return None
    import cvcuda as library

    function = made(library, image)

    def run(x: Tensor) -> Any:
        frames = library.as_tensor(x.movedim(1, -1), "NHWC")
        with library.as_stream(torch.cuda.current_stream()):
            return function(frames)

    return run


def _sizes(x: Tensor) -> tuple[int, int, int, tuple[int, ...]]:
    """Return height, width, the side of small results, and their shape."""
    n, c, h, w = x.shape
    return h, w, h * 7 // 16, (n, h * 7 // 16, w * 7 // 16, c)


def _turn(x: Tensor) -> Any:
    """Return the matrix of a rotation by 0.26 radians about the middle, as a NumPy array."""
    angle, middle = torch.tensor(0.26), (x.shape[-1] - 1) / 2
    cos, sin = float(angle.cos()), float(angle.sin())
    rows = [
        [cos, -sin, middle - cos * middle + sin * middle],
        [sin, cos, middle - sin * middle - cos * middle],
    ]
    return torch.tensor(rows).numpy()


def _cv_crop(c: Any, x: Tensor) -> Callable[[Any], Any]:
    rectangle = c.RectI(5, 7, x.shape[-1] * 3 // 4, x.shape[-2] * 3 // 4)
    return lambda frames: c.customcrop(frames, rectangle)


def _cv_pad(c: Any, x: Tensor) -> Callable[[Any], Any]:
    return lambda frames: c.copymakeborder(
        frames, c.Border.REFLECT101, [0.0], top=16, bottom=16, left=16, right=16
    )


def _cv_affine(name: str) -> Callable[[Any, Tensor], Callable[[Any], Any]]:
    def made(c: Any, x: Tensor) -> Callable[[Any], Any]:
        matrix, flags = _turn(x), getattr(c.Interp, name) | c.Interp.WARP_INVERSE_MAP
        return lambda frames: c.warp_affine(frames, matrix, flags, border_mode=c.Border.CONSTANT)

    return made


def _cv_pil(name: str) -> Callable[[Any, Tensor], Callable[[Any], Any]]:
    def made(c: Any, x: Tensor) -> Callable[[Any], Any]:
        shape, kind = _sizes(x)[3], c.Format.RGB8 if x.dtype == torch.uint8 else c.Format.RGBf32
        return lambda frames: c.pillowresize(frames, shape, kind, getattr(c.Interp, name))

    return made


def _cv_resized_crop(c: Any, x: Tensor) -> Callable[[Any], Any]:
    h, w, small, _ = _sizes(x)
    region = (3, 5, 3 + h * 3 // 4, 5 + w * 3 // 4)
    linear = c.Interp.LINEAR
    return lambda frames: c.hq_resize(
        frames, (small, small), antialias=True, roi=region, interpolation=linear
    )


_CVCUDA: dict[str, Callable[[Any, Tensor], Callable[[Any], Any]]] = {
    "crop": _cv_crop,
    "pad reflect": _cv_pad,
    "equalize": lambda c, x: lambda frames: c.histogrameq(frames, c.Type.U8),
    "resize bilinear": _cv_pil("LINEAR"),
    "resize bicubic": _cv_pil("CUBIC"),
    "resize plain bilinear": lambda c, x: lambda frames: c.resize(frames, _sizes(x)[3], c.Interp.LINEAR),
    "resized crop, a box each": _cv_resized_crop,
    "affine nearest, each": _cv_affine("NEAREST"),
    "affine bilinear, each": _cv_affine("LINEAR"),
    "gaussian blur, each": lambda c, x: (
        lambda frames: c.gaussian(frames, (23, 23), (1.1, 1.1), c.Border.REFLECT101)
    ),
    "erode 5 x 5": lambda c, x: (
        lambda frames: c.morphology(
            frames, c.MorphologyType.ERODE, (5, 5), (-1, -1), border=c.Border.REPLICATE
        )
    ),
}

# -- DALI ------------------------------------------------------------------------------------------------


def dali(name: str, image: Tensor, each: dict[str, Tensor]) -> Call | None:
    """Return DALI's pipeline for a row, or None if there is none, it is not installed, or the image is planar.

    ``each`` maps each parameter name to a list with one value per image. Pipelines on the CPU use DALI's CPU
    backend.
    """
    made = _DALI.get(name)
    if made is None or image.stride(1) != 1:
        return None
    try:
        from nvidia.dali import fn, pipeline_def, types
    except ImportError:
        return None
    kind = "gpu" if image.is_cuda else "cpu"
    number = image.device.index or 0 if image.is_cuda else None
    frames = [image]
    parameters = {key: [*value.cpu().numpy()] for key, value in each.items()}

    def arrays() -> list[Any]:
        hwc = frames[0].movedim(1, -1)
        return [*hwc] if image.is_cuda else [*hwc.numpy()]

    @pipeline_def(batch_size=image.shape[0], num_threads=4, device_id=number)
    def pipeline() -> Any:
        given = fn.external_source(arrays, device=kind, layout="HWC", no_copy=True)
        values = {key: fn.external_source(_always(value), batch=True) for key, value in parameters.items()}
        return made(fn, types, given, image, values)

    built = pipeline()
    built.build()

    def run(x: Tensor) -> Any:
        frames[0] = x
        return built.run()

    return run


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _resize(interpolation: str, antialias: bool) -> Callable[..., Any]:
    def made(fn: Any, types: Any, x: Any, image: Tensor, each: dict[str, Any]) -> Any:
        small, how = _sizes(image)[2], getattr(types, f"INTERP_{interpolation}")
        return fn.resize(x, size=(small, small), interp_type=how, antialias=antialias)

    return made


def _crop(fn: Any, types: Any, x: Any, image: Tensor, each: dict[str, Any]) -> Any:
    h, w, *_ = _sizes(image)
    return fn.slice(x, start=(7, 5), shape=(h * 3 // 4, w * 3 // 4), axes=(0, 1))


def _erase(fn: Any, types: Any, x: Any, image: Tensor, each: dict[str, Any]) -> Any:
    return fn.erase(x, anchor=each["corner"], shape=each["extent"], axes=(0, 1), fill_value=0)


def _jitter(fn: Any, types: Any, x: Any, image: Tensor, each: dict[str, Any]) -> Any:
    names = ("brightness", "contrast", "saturation", "hue")
    return fn.color_twist(x, **{name: each[name] for name in names})


def _normalize(fn: Any, types: Any, x: Any, image: Tensor, each: dict[str, Any]) -> Any:
    top = 255.0 if image.dtype == torch.uint8 else 1.0
    mean, std = ([top * value for value in values] for values in (MEAN, STD))
    return fn.crop_mirror_normalize(x, mean=mean, std=std, dtype=types.FLOAT, output_layout="HWC")


def _resized_crop(fn: Any, types: Any, x: Any, image: Tensor, each: dict[str, Any]) -> Any:
    small, region = _sizes(image)[2], {"roi_start": each["corner"], "roi_end": each["end"]}
    return fn.resize(x, size=(small, small), antialias=True, **region)


def _affine(interpolation: str) -> Callable[..., Any]:
    def made(fn: Any, types: Any, x: Any, image: Tensor, each: dict[str, Any]) -> Any:
        how = getattr(types, f"INTERP_{interpolation}")
        return fn.warp_affine(x, matrix=each["matrix"], interp_type=how, fill_value=0)

    return made


_DALI: dict[str, Callable[..., Any]] = {
    "crop": _crop,
    "erase, a box each": _erase,
    "color jitter, each": _jitter,
    "ToDtype and Normalize": _normalize,
    "resize bilinear": _resize("LINEAR", True),
    "resize bicubic": _resize("CUBIC", True),
    "resize plain bilinear": _resize("LINEAR", False),
    "resized crop, a box each": _resized_crop,
    "affine nearest, each": _affine("NN"),
    "affine bilinear, each": _affine("LINEAR"),
    "gaussian blur, each": lambda fn, types, x, image, each: fn.gaussian_blur(
        x, window_size=23, sigma=each["sigma"]
    ),
}
