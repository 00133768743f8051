"""The rows of ``python -m benchmarks.gradients``: differentiable operators, and the same work by peers.

A peer called "formula" is the shortest way to write the operator in PyTorch. Peers that cannot differentiate
a row with respect to what it asks for are left out by their errors or by ``of_image_only``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import kornia.augmentation as ka
import kornia.color as kc
import kornia.enhance as ke
import kornia.filters as kf
import kornia.geometry as kg
import kornia.morphology as km
import torch
import torch.nn.functional as F
import torchvision.transforms.v2.functional as tv
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops import transforms

#: Calls of an image and the row's parameters.
Call = Callable[..., Tensor]
BILINEAR = InterpolationMode.BILINEAR
STEPS = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class Row:
    name: str
    call: Call
    peers: dict[str, Call]
    #: Numbers, matrices and kernels, each shared by the batch: they can also have one value for each sample.
    parameters: tuple[Tensor, ...] = ()
    #: Other images, masks and maps, one for each sample.
    others: tuple[Tensor, ...] = ()
    #: The image, if it has no three channels.
    image: Tensor | None = None
    #: Peers whose parameters are plain numbers, so that they have no gradient.
    of_image_only: tuple[str, ...] = ("torchvision",)
    #: Its time is that of a call and of memory alone.
    fixed: bool = False


def _wide(number: Tensor) -> Tensor:
    """Let one number for each sample broadcast over images."""
    return number[..., None, None, None]


def _luma(image: Tensor) -> Tensor:
    red, green, blue = image.unbind(-3)
    return (0.299 * red + 0.587 * green + 0.114 * blue).unsqueeze(-3)


def _between(image: Tensor, base: Tensor, factor: Tensor) -> Tensor:
    return (base + (image - base) * _wide(factor)).clamp(0, 1)


def _brightness(image: Tensor, factor: Tensor) -> Tensor:
    return (image * _wide(factor)).clamp(0, 1)


def _contrast(image: Tensor, factor: Tensor) -> Tensor:
    return _between(image, _luma(image).mean((-3, -2, -1), keepdim=True), factor)


def _saturation(image: Tensor, factor: Tensor) -> Tensor:
    return _between(image, _luma(image), factor)


def _hue(image: Tensor, factor: Tensor) -> Tensor:
    """Turn the hue without leaving for HSV: each channel is a clipped ramp of the turned angle."""
    red, green, blue = image.unbind(-3)
    high, low = image.amax(-3), image.amin(-3)
    chroma = high - low
    over = 1 / torch.where(chroma == 0, 1, chroma)
    sixth = torch.where(high == green, (blue - red) * over + 2, (red - green) * over + 4)
    sixth = torch.where(high == red, (green - blue) * over, sixth) + 6 * factor[..., None, None]
    ramps = torch.stack([(sixth + start).remainder(6) for start in (5, 3, 1)], -3)
    return high.unsqueeze(-3) - chroma.unsqueeze(-3) * torch.minimum(ramps, 4 - ramps).clamp(0, 1)


def _all_steps(image: Tensor, parameters: Tensor) -> Tensor:
    for step, factor in zip((_brightness, _contrast, _saturation, _hue), parameters.unbind(-1), strict=True):
        image = step(image, factor)
    return image


def _filter(image: Tensor, kernel: Tensor, mode: str = "reflect") -> Tensor:
    """Correlate each channel with one kernel, or with one for each sample."""
    n, c, h, w = image.shape
    high, wide = kernel.shape[-2:]
    padded = F.pad(image, (wide // 2, wide // 2, high // 2, high // 2), mode=mode)
    if kernel.ndim == 2:
        return F.conv2d(padded, kernel.expand(c, 1, high, wide), groups=c)
    rows = kernel[:, None].expand(n, c, high, wide).reshape(n * c, 1, high, wide)
    return F.conv2d(padded.reshape(1, n * c, *padded.shape[-2:]), rows, groups=n * c).reshape(n, c, h, w)


def _gaussian(size: int) -> Call:
    def blur(image: Tensor, sigma: Tensor) -> Tensor:
        taps = torch.softmax(-0.5 * ((torch.arange(size) - size // 2) / sigma[..., None]).square(), -1)
        return _filter(_filter(image, taps[..., None, :]), taps[..., :, None])

    return blur


def _positions(image: Tensor) -> Tensor:
    """Return the homogeneous position of each pixel, (H, W, 3)."""
    h, w = image.shape[-2:]
    y, x = torch.meshgrid(
        torch.arange(h, dtype=image.dtype), torch.arange(w, dtype=image.dtype), indexing="ij"
    )
    return torch.stack([x, y, torch.ones_like(x)], -1)


def _sampled(image: Tensor, map: Tensor, mode: str = "bilinear", border: str = "zeros") -> Tensor:
    """Sample at pixels (n, H, W, 2)."""
    h, w = image.shape[-2:]
    return F.grid_sample(
        image, (map + 0.5) * torch.tensor([2 / w, 2 / h]) - 1, mode, border, align_corners=False
    )


def _warp(image: Tensor, matrix: Tensor, mode: str = "bilinear", border: str = "zeros") -> Tensor:
    """Warp by a matrix from source to target pixels, of two rows or of three."""
    if matrix.shape[-2] == 2:
        matrix = torch.cat([matrix, torch.tensor([[0.0, 0, 1]]).expand(*matrix.shape[:-2], 1, 3)], -2)
    back = torch.linalg.inv(matrix).expand(len(image), 3, 3)
    found = _positions(image) @ back.mT[:, None]
    return _sampled(image, found[..., :2] / found[..., 2:], mode, border)


def _turned(image: Tensor, angle: Tensor, scale: Tensor | float = 1.0) -> Tensor:
    """Return the matrix of a rotation about the middle, with a scale."""
    cos, sin = torch.cos(torch.deg2rad(angle)) * scale, torch.sin(torch.deg2rad(angle)) * scale
    x, y = (image.shape[-1] - 1) / 2, (image.shape[-2] - 1) / 2
    rows = [cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y]
    return torch.stack(rows, -1).unflatten(-1, (2, 3))


def _autocontrast(image: Tensor) -> Tensor:
    low, high = image.amin((-2, -1), keepdim=True), image.amax((-2, -1), keepdim=True)
    flat = high <= low
    return torch.where(flat, image, ((image - low) / torch.where(flat, 1, high - low)).clamp(0, 1))


def _pasted(image: Tensor, source: Tensor, mask: Tensor | None = None) -> Tensor:
    out = image.clone()
    h, w = source.shape[-2:]
    out[..., 8 : 8 + h, 8 : 8 + w] = (
        source if mask is None else torch.lerp(image[..., 8 : 8 + h, 8 : 8 + w], source, mask)
    )
    return out


def _over(image: Tensor, other: Tensor) -> Tensor:
    below, above = image[:, 3:], other[:, 3:]
    alpha = above + below * (1 - above)
    colors = other[:, :3] * above + image[:, :3] * below * (1 - above)
    return torch.cat([colors / torch.where(alpha == 0, 1, alpha), alpha], 1)


def _inside(image: Tensor, boxes: Tensor) -> Tensor:
    """Return whether a pixel lies in the box of its sample, (n, 1, H, W)."""
    places = _positions(image)
    left, top, right, bottom = (b[:, None, None] for b in boxes.unbind(-1))
    x, y = places[..., 0], places[..., 1]
    return ((x >= left) & (x < right) & (y >= top) & (y < bottom))[:, None]


def rows(n: int, h: int, w: int) -> Iterator[Row]:
    """Make the rows for images (n, 3, h, w)."""
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    def of(*numbers: Any) -> tuple[Tensor, ...]:
        return tuple(torch.tensor(number) for number in numbers)

    half = (h // 2, w // 2)
    other, mask, noise = random(n, 3, h, w), random(n, 1, h, w), torch.randn(n, 3, h, w, generator=generator)
    corners = torch.randint(0, h - half[0], (n, 2), generator=generator)
    boxes = torch.cat([corners, corners + half[0]], -1)
    kernel = random(5, 5).softmax(-1) / 5
    affine = torch.tensor([[0.95, 0.2, -3.0], [-0.15, 1.05, 4.0]])
    projective = torch.cat([affine, torch.tensor([[1e-4, 2e-4, 1.0]])])
    flow = 2 * torch.randn(n, 2, h, w, generator=generator)

    def each(number: Tensor) -> Tensor:
        return number.expand(n)

    def pair(number: Tensor) -> Tensor:
        return torch.stack([number, number], -1).expand(n, 2)

    # -- colors
    for adjust, formula, theirs in (
        (imgops.adjust_brightness, _brightness, tv.adjust_brightness),
        (imgops.adjust_contrast, _contrast, tv.adjust_contrast),
        (imgops.adjust_saturation, _saturation, tv.adjust_saturation),
    ):
        peers = {"formula": formula, "torchvision": lambda x, f, call=theirs: call(x, 1.2)}
        yield Row(adjust.__name__, adjust, peers, of(1.2))
    yield Row(
        "adjust_hue",
        imgops.adjust_hue,
        {"formula": _hue, "kornia": lambda x, f: ke.adjust_hue(x, f * 2 * math.pi)},
        of(0.1),
    )
    yield Row(
        "color_sequence, four steps",
        lambda x, p: imgops.color_sequence(x, torch.arange(4), p, STEPS),
        {
            "formula": _all_steps,
            "kornia": lambda x, p: ke.adjust_hue(
                ke.adjust_saturation(
                    ke.adjust_contrast(ke.adjust_brightness(x, p[..., 0] - 1), p[..., 1]), p[..., 2]
                ),
                p[..., 3] * 2 * math.pi,
            ),
        },
        of([1.2, 0.9, 1.1, 0.05]),
    )
    for at, (step, by) in enumerate(zip(STEPS, (_brightness, _contrast, _saturation, _hue), strict=True)):
        order = torch.tensor([at, -1, -1, -1])
        yield Row(
            f"color_sequence, {step}",
            lambda x, p, o=order: imgops.color_sequence(x, o, p, STEPS),
            {"formula": lambda x, p, f=by, i=at: f(x, p[..., i])},
            of([1.2, 0.9, 1.1, 0.05]),
        )
    yield Row(
        "adjust_gamma",
        imgops.adjust_gamma,
        {
            "formula": lambda x, q: (x ** _wide(q)).clamp(0, 1),
            "torchvision": lambda x, q: tv.adjust_gamma(x, 1.3),
        },
        of(1.3),
    )
    yield Row(
        "grayscale",
        imgops.grayscale,
        {"formula": _luma, "torchvision": tv.rgb_to_grayscale, "kornia": kc.rgb_to_grayscale},
    )
    yield Row(
        "color_matrix",
        imgops.color_matrix,
        {"formula": lambda x, m: torch.einsum("...dc,...chw->...dhw", m, x)},
        of([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]]),
    )
    for code, peer in (
        ("gray", kc.rgb_to_grayscale),
        ("hsv", kc.rgb_to_hsv),
        ("hls", kc.rgb_to_hls),
        ("lab", kc.rgb_to_lab),
        ("luv", kc.rgb_to_luv),
        ("ycrcb", kc.rgb_to_ycbcr),
        ("yuv", kc.rgb_to_yuv),
        ("xyz", kc.rgb_to_xyz),
    ):
        yield Row(
            f"cvt_color, rgb2{code}", lambda x, c=f"rgb2{code}": imgops.cvt_color(x, c), {"kornia": peer}
        )
    for code, peer in (("hsv", kc.hsv_to_rgb), ("lab", kc.lab_to_rgb)):
        yield Row(
            f"cvt_color, {code}2rgb",
            lambda x, c=f"{code}2rgb": imgops.cvt_color(x, c),
            {"kornia": peer},
            image=imgops.cvt_color(random(n, 3, h, w), f"rgb2{code}"),
        )

    # -- levels
    yield Row("invert", imgops.invert, {"formula": lambda x: 1 - x, "torchvision": tv.invert})
    yield Row("posterize", lambda x: imgops.posterize(x, 4), {"kornia": lambda x: ke.posterize(x, 4)})
    yield Row(
        "solarize",
        imgops.solarize,
        {
            "formula": lambda x, t: torch.where(x >= _wide(t), 1 - x, x),
            "torchvision": lambda x, t: tv.solarize(x, 0.5),
        },
        of(0.5),
    )
    yield Row(
        "threshold",
        lambda x: imgops.threshold(x, 0.5, operation="tozero"),
        {"formula": lambda x: F.threshold(x, 0.5, 0.0)},
    )
    levels = (other * 255).to(torch.uint8)
    yield Row(
        "lut, its table",
        lambda t: imgops.lut(levels, t),
        {"formula": lambda t: t[levels.int()]},
        image=random(256),
    )
    yield Row("autocontrast", imgops.autocontrast, {"formula": _autocontrast})
    yield Row("equalize", imgops.equalize, {"kornia": ke.equalize})
    yield Row("clahe", lambda x: imgops.clahe(x, 4.0), {"kornia": lambda x: ke.equalize_clahe(x, 4.0)})
    yield Row("match_histograms", imgops.match_histograms, {}, others=(other,))

    # -- filters
    sharp = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
    yield Row(
        "adjust_sharpness",
        imgops.adjust_sharpness,
        {
            "formula": lambda x, f: _between(x, _filter(x, sharp), f),
            "kornia": lambda x, f: ke.sharpness(x, f),
        },
        of(1.7),
    )
    for size in (3, 9, 23):
        yield Row(
            f"gaussian_blur, {size}",
            lambda x, s, k=size: imgops.gaussian_blur(x, k, torch.stack([s, s], -1)),
            {
                "formula": _gaussian(size),
                "torchvision": lambda x, s, k=size: tv.gaussian_blur(x, [k, k], [1.5, 1.5]),
                "kornia": lambda x, s, k=size: kf.gaussian_blur2d(x, (k, k), pair(s)),
            },
            of(1.5),
        )
    yield Row(
        "box_blur",
        lambda x: imgops.box_blur(x, 5),
        {
            "formula": lambda x: F.avg_pool2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), 5, 1),
            "kornia": lambda x: kf.box_blur(x, 5),
        },
    )
    yield Row(
        "median_blur",
        lambda x: imgops.median_blur(x, 3),
        {
            "formula": lambda x: (
                F.pad(x, (1,) * 4, mode="replicate")
                .unfold(2, 3, 1)
                .unfold(3, 3, 1)
                .flatten(-2)
                .median(-1)
                .values
            ),
            "kornia": lambda x: kf.median_blur(x, 3),
        },
    )
    yield Row(
        "bilateral_filter",
        lambda x, a, b: imgops.bilateral_filter(x, 5, a, b),
        {"kornia": lambda x, a, b: kf.bilateral_blur(x, 5, each(a), pair(b))},
        of(0.1, 1.5),
    )
    yield Row(
        "filter2d",
        imgops.filter2d,
        {"formula": _filter, "kornia": lambda x, k: kf.filter2d(x, k.expand(n, 5, 5))},
        (kernel,),
    )
    yield Row(
        "motion_blur",
        lambda x, a: imgops.motion_blur(x, 9, a),
        {"kornia": lambda x, a: kf.motion_blur(x, 9, each(a), torch.zeros(n))},
        of(30.0),
    )
    yield Row(
        "unsharp_mask",
        lambda x, r: imgops.unsharp_mask(x, r),
        {
            "formula": lambda x, r: (x + 1.5 * (x - _gaussian(9)(x, r))).clamp(0, 1),
            "kornia": lambda x, r: kf.unsharp_mask(x, (9, 9), pair(r)),
        },
        of(2.0),
    )
    slope = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    curve = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])
    yield Row("sobel", lambda x: imgops.sobel(x, 1, 0), {"formula": lambda x: _filter(x, slope)})
    yield Row("scharr", lambda x: imgops.scharr(x, 1, 0), {"formula": lambda x: _filter(x, slope)})
    yield Row(
        "laplacian",
        lambda x: imgops.laplacian(x),
        {"formula": lambda x: _filter(x, curve), "kornia": lambda x: kf.laplacian(x, 3)},
    )
    for size in (3, 7):
        ones = torch.ones(size, size)
        yield Row(
            f"dilate, {size}",
            lambda x, k=size: imgops.dilate(x, k),
            {
                "formula": lambda x, k=size: F.max_pool2d(x, k, 1, k // 2),
                "kornia": lambda x, k=ones: km.dilation(x, k),
            },
        )
        yield Row(
            f"erode, {size}",
            lambda x, k=size: imgops.erode(x, k),
            {
                "formula": lambda x, k=size: -F.max_pool2d(-x, k, 1, k // 2),
                "kornia": lambda x, k=ones: km.erosion(x, k),
            },
        )
    yield Row(
        "morphology, open",
        lambda x: imgops.morphology(x, "open", 3),
        {
            "formula": lambda x: F.max_pool2d(-F.max_pool2d(-x, 3, 1, 1), 3, 1, 1),
            "kornia": lambda x: km.opening(x, torch.ones(3, 3)),
        },
    )

    # -- sizes
    taps = torch.tensor([1.0, 4, 6, 4, 1]) / 16
    yield Row(
        "pyr_down",
        imgops.pyr_down,
        {
            "formula": lambda x: F.conv2d(
                F.pad(x, (2,) * 4, mode="reflect"),
                (taps[:, None] * taps).expand(3, 1, 5, 5),
                groups=3,
                stride=2,
            ),
            "kornia": kg.pyrdown,
        },
    )
    yield Row("pyr_up", imgops.pyr_up, {"kornia": kg.pyrup})
    larger = (h * 5 // 4, w * 5 // 4)
    for name, size, mode in (
        ("down, bilinear", half, "bilinear"),
        ("up, bilinear", larger, "bilinear"),
        ("down, bicubic", half, "bicubic"),
    ):
        yield Row(
            f"resize, {name}",
            lambda x, s=size, m=mode: imgops.resize(x, s, m),
            {"formula": lambda x, s=size, m=mode: F.interpolate(x, s, mode=m, antialias=True)},
        )
    for mode in ("bilinear", "nearest", "area"):
        yield Row(
            f"resize, {mode}, no antialiasing",
            lambda x, m=mode: imgops.resize(x, half, m, antialias=False),
            {"formula": lambda x, m=mode: F.interpolate(x, half, mode=m)},
        )
    yield Row("resize, lanczos", lambda x: imgops.resize(x, half, "lanczos"), {})
    edge = h // 8
    yield Row(
        "resized_crop",
        lambda x: imgops.resized_crop(x, (edge, edge, 7 * edge, 7 * edge), half),
        {
            "formula": lambda x: F.interpolate(
                x[..., edge : 7 * edge, edge : 7 * edge], half, mode="bilinear", antialias=True
            )
        },
    )
    yield Row(
        "resized_crop, a box for each sample",
        lambda x: imgops.resized_crop(x, boxes, half),
        {
            "formula": lambda x: torch.cat(
                [
                    F.interpolate(i[None, :, t:d, a:b], half, mode="bilinear", antialias=True)
                    for i, (a, t, b, d) in zip(x, boxes.tolist(), strict=True)
                ]
            )
        },
    )
    small = (h // 2, w // 3)
    for fitted in (imgops.fit, imgops.cover, imgops.contain):
        yield Row(fitted.__name__, lambda x, f=fitted: f(x, small), {})
    yield Row(
        "downscale",
        lambda x: imgops.downscale(x, 0.5),
        {"formula": lambda x: F.interpolate(F.interpolate(x, half, mode="area"), (h, w), mode="bilinear")},
    )

    # -- geometry
    for mode in ("bilinear", "nearest", "bicubic"):
        yield Row(
            f"warp_affine, {mode}",
            lambda x, m, i=mode: imgops.warp_affine(x, m, interpolation=i),
            {
                "formula": lambda x, m, i=mode: _warp(x, m, i),
                "kornia": lambda x, m, i=mode: kg.warp_affine(x, m.expand(n, 2, 3), (h, w), mode=i),
            },
            (affine,),
        )
    yield Row(
        "warp_affine, reflect",
        lambda x, m: imgops.warp_affine(x, m, padding_mode="reflect"),
        {
            "formula": lambda x, m: _warp(x, m, border="reflection"),
            "kornia": lambda x, m: kg.warp_affine(x, m.expand(n, 2, 3), (h, w), padding_mode="reflection"),
        },
        (affine,),
    )
    yield Row(
        "warp_perspective",
        imgops.warp_perspective,
        {"formula": _warp, "kornia": lambda x, m: kg.warp_perspective(x, m.expand(n, 3, 3), (h, w))},
        (projective,),
    )
    yield Row(
        "rotate",
        imgops.rotate,
        {
            "formula": lambda x, a: _warp(x, _turned(x, a)),
            "torchvision": lambda x, a: tv.rotate(x, 30.0, BILINEAR),
            "kornia": lambda x, a: kg.rotate(x, each(a)),
        },
        of(30.0),
    )
    yield Row(
        "affine",
        lambda x, a, s: imgops.affine(x, a, (3.0, 2.0), s),
        {
            "formula": lambda x, a, s: _warp(x, _turned(x, a, s)),
            "torchvision": lambda x, a, s: tv.affine(x, 20.0, [3, 2], 1.1, [0.0], BILINEAR),
        },
        of(20.0, 1.1),
    )
    moved = _positions(other)[..., :2].movedim(-1, -3) + flow
    yield Row(
        "remap",
        imgops.remap,
        {
            "formula": lambda x, m: _sampled(x, m.movedim(-3, -1)),
            "kornia": lambda x, m: kg.remap(x, m[:, 0], m[:, 1], align_corners=True),
        },
        others=(moved,),
    )
    smooth = _gaussian(17)
    yield Row(
        "elastic_map and remap",
        lambda x, a: imgops.remap(x, imgops.elastic_map(flow, a, 4.0, 17)),
        {
            "formula": lambda x, a: _sampled(
                x,
                (_positions(x)[..., :2].movedim(-1, -3) + _wide(a) * smooth(flow, torch.tensor(4.0))).movedim(
                    -3, -1
                ),
            )
        },
        of(30.0),
    )

    # -- pixels that move or change places
    yield Row(
        "crop",
        lambda x: imgops.crop(x, (10, 12, w - 10, h - 12)),
        {"formula": lambda x: x[..., 12 : h - 12, 10 : w - 10].clone()},
        fixed=True,
    )
    yield Row(
        "crop, a box for each sample",
        lambda x: imgops.crop(x, boxes, size=half),
        {
            "formula": lambda x: torch.stack(
                [i[:, t:d, a:b] for i, (a, t, b, d) in zip(x, boxes.tolist(), strict=True)]
            )
        },
    )
    for mode, theirs in (("constant", "constant"), ("edge", "replicate"), ("reflect", "reflect")):
        yield Row(
            f"pad, {mode}",
            lambda x, m=mode: imgops.pad(x, 8, m),
            {"formula": lambda x, m=theirs: F.pad(x, (8,) * 4, mode=m)},
            fixed=True,
        )
    yield Row("flip", imgops.flip, {"formula": lambda x: x.flip(-1)}, fixed=True)
    yield Row(
        "rotate90", imgops.rotate90, {"formula": lambda x: x.rot90(1, (-2, -1)).contiguous()}, fixed=True
    )
    low = (10, 12, half[1], half[0])
    yield Row(
        "erase",
        lambda x: imgops.erase(x, low),
        {"torchvision": lambda x: tv.erase(x, 12, 10, half[0] - 12, half[1] - 10, torch.tensor(0.0))},
        fixed=True,
    )
    yield Row(
        "erase, a box for each sample",
        lambda x: imgops.erase(x, boxes),
        {"formula": lambda x: torch.where(_inside(x, boxes), 0, x)},
    )
    yield Row(
        "paste", lambda x, s: imgops.paste(x, s, (8, 8)), {"formula": _pasted}, others=(random(n, 3, *half),)
    )
    yield Row(
        "paste, with a mask",
        lambda x, s, m: imgops.paste(x, s, (8, 8), m),
        {"formula": _pasted},
        others=(random(n, 3, *half), random(n, 1, *half)),
    )

    # -- two images
    yield Row(
        "composite", imgops.composite, {"formula": lambda x, y, m: y + m * (x - y)}, others=(other, mask)
    )
    yield Row(
        "blend",
        lambda x, a, y: imgops.blend(x, y, a),
        {"formula": lambda x, a, y: torch.lerp(x, y, _wide(a))},
        of(0.3),
        others=(other,),
        fixed=True,
    )
    yield Row(
        "add_weighted",
        lambda x, a, b, c, y: imgops.add_weighted(x, a, y, b, c),
        {"formula": lambda x, a, b, c, y: _wide(a) * x + _wide(b) * y + _wide(c)},
        of(0.7, 0.3, 0.1),
        others=(other,),
        fixed=True,
    )
    yield Row(
        "alpha_composite",
        imgops.alpha_composite,
        {"formula": _over},
        others=(random(n, 4, h, w),),
        image=random(n, 4, h, w),
    )

    # -- noise and codecs
    yield Row(
        "salt_and_pepper",
        lambda x: imgops.salt_and_pepper(x, mask, 0.1),
        {"formula": lambda x: torch.where(mask < 0.05, 0, torch.where(mask < 0.1, 1, x))},
    )
    yield Row(
        "shot_noise",
        lambda x, s: imgops.shot_noise(x, noise, s),
        {"formula": lambda x, s: (x + (x / _wide(s)).sqrt() * noise).clamp(0, 1)},
        of(60.0),
    )
    yield Row(
        "speckle_noise",
        lambda x, s: imgops.speckle_noise(x, noise, s),
        {"formula": lambda x, s: (x + x * noise * _wide(s)).clamp(0, 1)},
        of(0.1),
    )
    yield Row(
        "iso_noise",
        lambda x: imgops.iso_noise(x, noise[:, :2]),
        {"kornia": lambda x: kc.hls_to_rgb(kc.rgb_to_hls(x) + 0.01 * noise)},
    )
    yield Row(
        "jpeg",
        lambda x: imgops.jpeg(x, 80),
        {
            "formula": lambda x: (
                x + (tv.jpeg((x.detach() * 255).to(torch.uint8), 80).float() / 255 - x.detach())
            )
        },
    )
    yield Row("webp", lambda x: imgops.webp(x, 80), {})


def _of_kornia(size: int, each: bool) -> dict[str, Any]:
    same = {"same_on_batch": not each}
    jitter = ka.ColorJitter(0.4, 0.4, 0.4, 0.1, p=1.0, **same)
    weights = torch.tensor([0.299, 0.587, 0.114])
    crop = ka.RandomResizedCrop((size, size), **same)
    flip = ka.RandomHorizontalFlip(**same)
    gray = ka.RandomGrayscale(weights, p=0.2, **same)
    return {
        "RandomHorizontalFlip": flip,
        "RandomCrop": ka.RandomCrop((size * 7 // 8,) * 2, p=1.0, **same),
        "RandomResizedCrop": crop,
        "RandomErasing": ka.RandomErasing(p=1.0, **same),
        "RandomGrayscale": gray,
        "RandomRotation": ka.RandomRotation(30.0, p=1.0, **same),
        "RandomAffine": ka.RandomAffine(30.0, (0.1, 0.1), (0.8, 1.2), p=1.0, **same),
        "RandomPerspective": ka.RandomPerspective(0.5, p=1.0, **same),
        "ElasticTransform": ka.RandomElasticTransform((23, 23), (5.0, 5.0), p=1.0, **same),
        "ColorJitter": jitter,
        "ColorJitter, brightness": ka.ColorJitter(0.4, p=1.0, **same),
        "GaussianBlur": ka.RandomGaussianBlur((23, 23), (0.1, 2.0), p=1.0, **same),
        "RandomSolarize": ka.RandomSolarize(0.0, 0.0, p=1.0, **same),
        "RandomPosterize": ka.RandomPosterize(4, p=1.0, **same),
        "RandomAdjustSharpness": ka.RandomSharpness(0.7, p=1.0, **same),
        "RandomAutocontrast": ka.RandomAutoContrast(p=1.0, **same),
        "RandomInvert": ka.RandomInvert(p=1.0, **same),
        "GaussianNoise": ka.RandomGaussianNoise(0.0, 0.1, p=1.0, **same),
        "SimCLR": ka.AugmentationSequential(
            crop, flip, jitter, ka.RandomGaussianBlur((23, 23), (0.1, 2.0), p=0.5, **same), gray, data_keys=["input"]
        ),
    }  # fmt: skip


def _of_torchvision(module: Any, size: int, **each: Any) -> dict[str, Any]:
    """Return the transforms, which have the same names and arguments in torchvision and in imgops."""
    from benchmarks.pipelines import steps

    return {
        "RandomHorizontalFlip": module.RandomHorizontalFlip(**each),
        "RandomCrop": module.RandomCrop(size * 7 // 8, **each),
        "RandomResizedCrop": module.RandomResizedCrop(size, **each),
        "RandomErasing": module.RandomErasing(p=1.0, **each),
        "RandomGrayscale": module.RandomGrayscale(0.2, **each),
        "RandomRotation": module.RandomRotation(30, BILINEAR, **each),
        "RandomAffine": module.RandomAffine(30, (0.1, 0.1), (0.8, 1.2), interpolation=BILINEAR, **each),
        "RandomPerspective": module.RandomPerspective(p=1.0, **each),
        "ElasticTransform": module.ElasticTransform(**each),
        "ColorJitter": module.ColorJitter(0.4, 0.4, 0.4, 0.1, **each),
        "ColorJitter, brightness": module.ColorJitter(0.4, **each),
        "GaussianBlur": module.GaussianBlur(23, **each),
        "RandomSolarize": module.RandomSolarize(0.5, p=1.0, **each),
        "RandomPosterize": module.RandomPosterize(4, p=1.0, **each),
        "RandomAdjustSharpness": module.RandomAdjustSharpness(1.7, p=1.0, **each),
        "RandomAutocontrast": module.RandomAutocontrast(p=1.0, **each),
        "RandomInvert": module.RandomInvert(p=1.0, **each),
        "GaussianNoise": module.GaussianNoise(clip=False, **each),  # kornia does not clamp
        "SimCLR": steps("SimCLR", module, [], size=size, **each),
    }


def transform_rows(size: int, per_sample: bool) -> Iterator[Row]:
    """Make the rows of transforms; torchvision draws once for a batch."""
    each = {"per_sample": True} if per_sample else {}
    kornia = _of_kornia(size, per_sample)
    theirs = {} if per_sample else _of_torchvision(v2, size)
    for name, transform in _of_torchvision(transforms, size, **each).items():
        peers = {"torchvision": theirs.get(name), "kornia": kornia.get(name)}
        yield Row(name, transform, {k: call for k, call in peers.items() if call is not None})
