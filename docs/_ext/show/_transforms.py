"""Arguments for the pictures of transforms that torchvision lacks."""

from __future__ import annotations

from typing import Any

from torchvision import tv_tensors

#: The arguments of a transform's picture, if the defaults have too little effect.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "CoarseDropout": {"num_holes": (6, 6), "height": (0.15, 0.25), "fill": "random"},
    "Corruption": {"name": "frost", "severity": 3},
    "CopyPaste": {"amount": 1.0, "p": 1.0},
    "FDA": {"references": lambda x: [255 - x.flip(-1)], "beta": 0.05},
    "GridDropout": {"ratio": 0.6},
    "HistogramMatching": {"references": lambda x: [x.flip(-3) // 2], "alpha": 1.0},
    "LetterBox": {"size": (240, 240), "fill": {tv_tensors.Image: 128, "others": 0}},
    "LongestMaxSize": {"size": 200},
    "Mosaic": {"size": (240, 360), "fill": 128},
    "PadIfNeeded": {"size": (300, 420), "fill": {tv_tensors.Image: 128, "others": 0}},
    "PixMix": {"references": lambda x: [x.flip(-1).flip(-2)], "severity": 8.0, "beta": 1.0},
    "PixelDropout": {"amount": 0.3},
    "RandomBilateral": {"kernel_size": 11, "sigma_color": 90.0, "sigma_space": 6.0},
    "RandomBoxBlur": {"kernel_size": 15},
    "RandomBrightnessContrast": {"brightness": 0.1, "contrast": 0.7},
    "RandomCLAHE": {"clip_limit": (8.0, 8.0)},
    "RandomCompression": {"quality": 6},
    "RandomDownscale": {"factor": 0.1, "up": "nearest"},
    "RandomElastic": {"alpha": 170.0, "sigma": 7.0},
    "RandomEmboss": {"alpha": 0.9, "strength": 1.0},
    "RandomFog": {"intensity": 0.9, "alpha": 0.1},
    "RandomGamma": {"gamma": 2.2},
    "RandomGaussianNoise": {"sigma": 0.2},
    "RandomGridDistortion": {"distort": (-0.6, 0.6)},
    "RandomHSV": {"hue": 120.0, "saturation": 60.0},
    "RandomISONoise": {"color_shift": 108.0, "intensity": 0.8},
    "RandomMedianBlur": {"kernel_size": 13},
    "RandomMorphology": {"operation": "erode", "kernel_size": 9},
    "RandomMotionBlur": {"kernel_size": 31, "angle": 30.0, "balance": 0.0, "shift": False},
    "RandomMultiplicativeNoise": {"factor": (0.4, 1.6), "per_channel": True},
    "RandomOpticalDistortion": {"distort": 0.9},
    "RandomRGBShift": {"red": 60.0, "green": -30.0, "blue": -60.0},
    "RandomRain": {"method": "heavy", "slant": 8.0},
    "RandomSaltAndPepper": {"amount": 0.15},
    "RandomShadow": {"region": (0.0, 0.1, 1.0, 1.0), "darkness": 0.6},
    "RandomSharpen": {"alpha": 0.6, "lightness": 1.2},
    "RandomShotNoise": {"scale": 0.08},
    "RandomSnow": {"snow_point": 0.6},
    "RandomSunFlare": {"radius": 60, "region": (0.2, 0.1, 0.4, 0.3), "method": "physics_based"},
    "RandomTemperature": {"temperature": (3000, 3200)},
    "RandomThinPlateSpline": {"scale": 0.06},
    "RandomToneCurve": {"scale": 0.6, "per_channel": True},
    "RandomUnsharpMask": {"radius": 4.0, "percent": 400.0},
    "SmallestMaxSize": {"size": 110},
}
