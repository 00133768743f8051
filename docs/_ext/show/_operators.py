"""The calls that make the picture of each operator from a photograph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

import imgops


def _ramp_along_x(x: Tensor) -> Tensor:
    """Return a mask that goes from 0 to 255 along x."""
    return (
        torch.linspace(0, 255, x.shape[-1], dtype=torch.float32, device="cpu")
        .byte()
        .expand(1, *x.shape[-2:])
        .contiguous()
    )


def _map_with_moved_middle(height: int, width: int) -> Tensor:
    """Return a map that moves the middle of a picture."""
    at = torch.tensor(
        [[0.0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]], dtype=torch.float32, device="cpu"
    ) * torch.tensor([width, height], dtype=torch.float32, device="cpu")
    moved = at + torch.tensor([[0.0, 0]] * 4 + [[0.2, -0.25]], dtype=torch.float32, device="cpu") * width
    return imgops.thin_plate_spline_map(at, moved, (height, width))


def _map_of_waves(height: int, width: int) -> Tensor:
    """Return a map that shows a picture as if under water."""
    y, x = torch.meshgrid(
        torch.arange(float(height), dtype=torch.int64, device="cpu"),
        torch.arange(float(width), dtype=torch.int64, device="cpu"),
        indexing="ij",
    )
    return torch.stack([x + 9 * (y / 11).sin(), y + 6 * (x / 17).sin()])


def _mean_of_tiles(x: Tensor) -> Tensor:
    """Return the mean of two overlapping parts of a picture."""
    total, count = (
        torch.zeros(x.shape, dtype=torch.float32, device="cpu"),
        torch.zeros(1, *x.shape[-2:], dtype=torch.float32, device="cpu"),
    )
    for left, part in ((0, x.float()), (60, x.float()[..., :-60])):
        imgops.accumulate(total, count, part, (left, 0))
    return total / count


def _normal_noise(channels: int, x: Tensor) -> Tensor:
    """Draw normally distributed noise for a picture."""
    return torch.randn(
        channels, *x.shape[-2:], generator=torch.Generator().manual_seed(0), dtype=torch.float32, device="cpu"
    )


def _light_pixels(x: Tensor) -> Tensor:
    """Return a mask that is 255 where a picture is lighter than its mean, and 0 elsewhere."""
    gray = x.float().mean(-3, keepdim=True)
    return ((gray > gray.mean()) * 255).byte()


def _gray(x: Tensor) -> Tensor:
    return x.float().mean(-3, keepdim=True).byte()


#: For the name of each operator, a call with a uint8 photograph ``(3, H, W)``.
PICTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "accumulate": _mean_of_tiles,
    "adaptive_threshold": lambda x: imgops.adaptive_threshold(
        _gray(x), method="gaussian", kernel_size=15, c=4.0
    ),
    "add_weighted": lambda x: imgops.add_weighted(x, 0.6, x.flip(-1), 0.4),
    "adjust_brightness": lambda x: imgops.adjust_brightness(x, 1.7),
    "adjust_contrast": lambda x: imgops.adjust_contrast(x, 2.2),
    "adjust_gamma": lambda x: imgops.adjust_gamma(x, 2.5),
    "adjust_hue": lambda x: imgops.adjust_hue(x, 0.4),
    "adjust_saturation": lambda x: imgops.adjust_saturation(x, 3.0),
    "adjust_sharpness": lambda x: imgops.adjust_sharpness(x, 8.0),
    "alpha_composite": lambda x: imgops.alpha_composite(
        torch.cat([x, torch.full_like(x[:1], 255)]), torch.cat([255 - x, _ramp_along_x(x)])
    ),
    "autocontrast": lambda x: imgops.autocontrast(x // 2 + 64),
    "bilateral_filter": lambda x: imgops.bilateral_filter(x, 11, 90.0, 6.0),
    "blend": lambda x: imgops.blend(x, x.flip(-2), 0.5),
    "box_blur": lambda x: imgops.box_blur(x, 17),
    "canny": lambda x: imgops.canny(x, 60, 140),
    "clahe": lambda x: imgops.clahe(x, 8.0),
    "color_matrix": lambda x: imgops.color_matrix(
        x,
        torch.tensor(
            [[0.4, 0.8, 0.2], [0.35, 0.7, 0.17], [0.27, 0.53, 0.13]], dtype=torch.float32, device="cpu"
        ),
    ),
    "color_sequence": lambda x: imgops.color_sequence(
        x,
        torch.tensor([1, 0], dtype=torch.int64, device="cpu"),
        torch.tensor([1.6, 2.0], dtype=torch.float32, device="cpu"),
        ["brightness", "saturation"],
    ),
    "composite": lambda x: imgops.composite(x, x.flip(-1), _ramp_along_x(x)),
    "connected_components": lambda x: imgops.connected_components(_light_pixels(x))[0],
    "contain": lambda x: imgops.contain(x, (x.shape[-2] // 2, x.shape[-2] // 2)),
    "cover": lambda x: imgops.cover(x, (x.shape[-2] * 2 // 3, x.shape[-2] * 2 // 3)),
    "crop": lambda x: imgops.crop(
        x, (x.shape[-1] // 3, x.shape[-2] // 4, x.shape[-1] * 5 // 6, x.shape[-2] * 5 // 6)
    ),
    "cvt_color": lambda x: imgops.cvt_color(x, "rgb2hsv"),
    "decode_image": lambda x: imgops.decode_image(imgops.encode_image(x, "jpeg", 4)),
    "dilate": lambda x: imgops.dilate(x, 9),
    "distance_transform": lambda x: imgops.distance_transform(_light_pixels(x)),
    "downscale": lambda x: imgops.downscale(x, 0.08, up="nearest"),
    "elastic_map": lambda x: imgops.remap(
        x,
        imgops.elastic_map(
            torch.rand(
                2,
                *x.shape[-2:],
                generator=torch.Generator().manual_seed(1),
                dtype=torch.float32,
                device="cpu",
            )
            * 2
            - 1,
            220.0,
            7.0,
        ),
    ),
    "encode_image": lambda x: imgops.decode_image(imgops.encode_image(x, "webp", 1)),
    "equalize": imgops.equalize,
    "erase": lambda x: imgops.erase(
        x, (x.shape[-1] // 3, x.shape[-2] // 3, x.shape[-1] * 2 // 3, x.shape[-2] * 2 // 3), 0
    ),
    "erode": lambda x: imgops.erode(x, 9),
    "filter2d": lambda x: imgops.filter2d(
        x, torch.tensor([[-2.0, -1, 0], [-1, 1, 1], [0, 1, 2]], dtype=torch.float32, device="cpu")
    ),
    "fit": lambda x: imgops.fit(x, (x.shape[-2], x.shape[-2] // 2)),
    "flip": imgops.flip,
    "flow_map": lambda x: imgops.remap(
        x, imgops.flow_map(torch.full((2, *x.shape[-2:]), 45.0, dtype=torch.float32, device="cpu"))
    ),
    "gaussian_blur": lambda x: imgops.gaussian_blur(x, 25, 6.0),
    "grayscale": imgops.grayscale,
    "grid_distortion_map": lambda x: imgops.remap(
        x, imgops.grid_distortion_map([0.5, 1.6, 0.5, 1.6, 0.8, 1], [1.6, 0.5, 1.4, 0.5, 1], x.shape[-2:])
    ),
    "invert": imgops.invert,
    "iso_noise": lambda x: imgops.iso_noise(x, _normal_noise(2, x) * 0.5, 18.0, 0.9),
    "jpeg": lambda x: imgops.jpeg(x, 8),
    "laplacian": lambda x: imgops.laplacian(x, 3),
    "lut": lambda x: imgops.lut(x, (torch.arange(256, dtype=torch.int64, device="cpu") * 5 % 256).byte()),
    "match_histograms": lambda x: imgops.match_histograms(x, (x.flip(0).float() ** 2 / 255).byte()),
    "median_blur": lambda x: imgops.median_blur(x, 13),
    "morphology": lambda x: imgops.morphology(x, "gradient", 5),
    "motion_blur": lambda x: imgops.motion_blur(x, 31, 25.0),
    "speckle_noise": lambda x: imgops.speckle_noise(x, _normal_noise(3, x), 0.4),
    "optical_distortion_map": lambda x: imgops.remap(x, imgops.optical_distortion_map(0.9, x.shape[-2:])),
    "pad": lambda x: imgops.pad(x, 40, padding_mode="reflect"),
    "paste": lambda x: imgops.paste(x, x[:, ::2, ::2].contiguous(), (x.shape[-1] // 3, x.shape[-2] // 3)),
    "paste_": lambda x: imgops.paste_(x.clone(), x[:, ::3, ::3].contiguous(), (20, 20)),
    "paste_out": lambda x: imgops.paste_out(x, 255 - x[:, ::2, ::2], (40, 60), out=torch.empty_like(x)),
    "polar_map": lambda x: imgops.remap(
        x, imgops.polar_map((x.shape[-1] / 2, x.shape[-2] / 2), x.shape[-2], x.shape[-2:])
    ),
    "posterize": lambda x: imgops.posterize(x, 2),
    "pyr_down": lambda x: imgops.pyr_down(imgops.pyr_down(x)),
    "pyr_up": lambda x: imgops.pyr_up(
        imgops.pyr_up(imgops.pyr_up(imgops.pyr_down(imgops.pyr_down(imgops.pyr_down(x)))))
    ),
    "remap": lambda x: imgops.remap(x, _map_of_waves(*x.shape[-2:])),
    "resize": lambda x: imgops.resize(x, (x.shape[-2] // 2, x.shape[-1])),
    "resize_out": lambda x: imgops.resize_out(
        x, (x.shape[-2], x.shape[-1] // 2), out=x.new_empty(3, x.shape[-2], x.shape[-1] // 2)
    ),
    "resized_crop": lambda x: imgops.resized_crop(
        x, (x.shape[-1] // 3, x.shape[-2] // 4, x.shape[-1] * 2 // 3, x.shape[-2] * 3 // 4), (200, 200)
    ),
    "rotate90": imgops.rotate90,
    "salt_and_pepper": lambda x: imgops.salt_and_pepper(x, _normal_noise(1, x).erf() / 2 + 0.5, 0.15),
    "scharr": lambda x: imgops.scharr(x, 1, 0),
    "shot_noise": lambda x: imgops.shot_noise(x, _normal_noise(3, x), 0.08),
    "sobel": lambda x: imgops.sobel(x, 0, 1),
    "solarize": lambda x: imgops.solarize(x, 110),
    "thin_plate_spline_map": lambda x: imgops.remap(x, _map_with_moved_middle(*x.shape[-2:])),
    "threshold": lambda x: imgops.threshold(_gray(x), operation="otsu"),
    "unsharp_mask": lambda x: imgops.unsharp_mask(x, 4.0, 400.0),
    "warp_affine": lambda x: imgops.warp_affine(
        x, torch.tensor([[0.9, -0.4, 50], [0.3, 0.8, -20]], dtype=torch.float32, device="cpu")
    ),
    "warp_perspective": lambda x: imgops.warp_perspective(
        x,
        torch.tensor(
            [[0.9, 0.3, -10], [-0.1, 1.1, 20], [-0.0004, 0.0012, 1]], dtype=torch.float32, device="cpu"
        ),
    ),
    "webp": lambda x: imgops.webp(x, 4),
}
