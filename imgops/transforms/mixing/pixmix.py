"""PixMix, which mixes an image with changed copies of itself and with complex pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops.transforms._core.arguments import one_number, switch
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import as_reals, from_seed, integer, seed
from imgops.transforms.color.domain import _ReferenceTransform
from imgops.transforms.functional import _geometry

__all__ = ["PixMix"]

#: One step of the recipe: "add" or "multiply", the two weights, and the change of the copy that is mixed in;
#: None mixes in the picture instead.
Mixture = tuple[str, float, float, tuple[str, float] | None]


class PixMix(_ReferenceTransform):
    """Mix an image with changed copies of itself and with complex pictures such as fractals, by PixMix.

    Networks trained with PixMix are more robust and better calibrated. Use :class:`AugMix` to mix without
    pictures.

    Parameters
    ----------
    references : sequence of Tensor
        Pictures ``(C, H, W)`` of one C and one dtype. One of them is drawn, and resized to the image's size.
    k : int
        The largest number of mixtures; the number is drawn from 0 to ``k``.
    beta : float
        The parameter of the Beta distributions of the weights, at least 1; larger values weaken the mixing.
        The paper uses 3 for CIFAR and 4 for ImageNet.
    severity : float
        The strength of the changes of copies, from 0.1 to 10: 3 for CIFAR, 1 for ImageNet.
    all_ops : bool
        Whether copies may also change in color, contrast, brightness and sharpness, which are corruptions of
        ImageNet-C.

    Notes
    -----
    Reference: the formulas and numbers of Hendrycks et al., "PixMix: Dreamlike Pictures Comprehensively
    Improve Safety Measures", with the operations of PIL; warps are OpenCV's, as in :class:`AugMix`. The
    mixture is computed in [0, 1] as floats and clipped after each step; uint8 is rounded at the end. The
    gradient is that of the formula, and 0 where a value of 0 is multiplied.
    """

    _goes_back = False
    _random_parameters = (IS_APPLIED, Parameter("index"), Parameter("seed"))
    _known = ("index", "seed")

    def __init__(
        self,
        references: Sequence[Tensor] | Tensor,
        k: int = 4,
        beta: float = 3.0,
        severity: float = 3.0,
        all_ops: bool = False,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments = {"k": one_number(self, "k", k, 0, 100, whole=True)}
        arguments["beta"] = one_number(self, "beta", beta, 1.0, 1e6)
        arguments["severity"] = one_number(self, "severity", severity, 0.1, 10.0)
        arguments["all_ops"] = switch(self, "all_ops", all_ops)
        super().__init__(references, p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"index": integer((0, len(self.shapes) - 1)), "seed": seed()}

    def _change_image(self, image: Tensor, index: float, seed: float, extra: Tensor) -> Tensor:
        first, mixtures = self._recipe(from_seed(seed), *image.shape[-2:])
        picture = self._reference(index, image, extra)
        mixed = as_reals(image if first is None else _CHANGES[first[0]](image, first[1]))
        for name, a, b, change in mixtures:
            other = as_reals(picture if change is None else _CHANGES[change[0]](image, change[1]))
            if name == "add":
                mixed = (a * (mixed * 2 - 1) + b * (other * 2 - 1) + 1) / 2
            else:
                black = mixed == 0  # where a power below 1 is infinitely steep: its gradient there is 0
                power = torch.where(black, 0, torch.where(black, 1, mixed * 2) ** a)
                mixed = power * (other * 2).clamp(min=1e-37) ** b / 2
            mixed = mixed.clamp(0, 1)
        if image.dtype != torch.uint8:
            return mixed.to(image.dtype)
        return (mixed * 255).round().to(torch.uint8)

    def _recipe(
        self, generator: torch.Generator, height: int, width: int
    ) -> tuple[tuple[str, float] | None, list[Mixture]]:
        """Draw the change of the image itself, or None, and the mixtures."""

        def chance() -> float:
            return float(torch.rand((), dtype=torch.float64, generator=generator, device="cpu"))

        def beta(first: bool) -> float:
            """Draw from Beta(beta, 1), or else from Beta(1, beta), by the inverse of the distribution."""
            share = chance() ** (1 / self.beta)
            return share if first else 1 - share

        def change() -> tuple[str, float]:
            known = _ALL_OPS if self.all_ops else _ALL_OPS[:9]
            name = known[int(chance() * len(known))]
            level = 0.1 + (self.severity - 0.1) * chance()
            return name, _MAGNITUDES[name](level, -1 if chance() > 0.5 else 1, height, width)

        first = change() if chance() < 0.5 else None
        mixtures: list[Mixture] = []
        for _ in range(int(chance() * (self.k + 1))):
            copy = change() if chance() < 0.5 else None
            name = "add" if chance() < 0.5 else "multiply"
            a, b = (beta(True), beta(False)) if chance() < 0.5 else (1 + beta(False), -beta(False))
            mixtures.append((name, a, b, copy))
        return first, mixtures


#: name -> the magnitude for a level in [0.1, 10], a sign, and the height and width of the image.
_MAGNITUDES: dict[str, Callable[[float, int, int, int], float]] = {
    "autocontrast": lambda *_: 0.0,
    "equalize": lambda *_: 0.0,
    "posterize": lambda level, *_: 4 - int(level * 4 / 10),
    "rotate": lambda level, sign, *_: sign * int(level * 30 / 10),
    "solarize": lambda level, *_: 256 - int(level * 256 / 10),
    "shear_x": lambda level, sign, *_: sign * level * 0.3 / 10,
    "shear_y": lambda level, sign, *_: sign * level * 0.3 / 10,
    "translate_x": lambda level, sign, height, width: sign * int(level * (width / 3) / 10),
    "translate_y": lambda level, sign, height, width: sign * int(level * (height / 3) / 10),
    **dict.fromkeys(
        ("color", "contrast", "brightness", "sharpness"), lambda level, *_: level * 1.8 / 10 + 0.1
    ),
}
_ALL_OPS = tuple(_MAGNITUDES)


def _warp(image: Tensor, *rows: Sequence[float]) -> Tensor:
    """Warp by a forward matrix, from source to destination; PIL's matrix goes from destination to source."""
    matrix = torch.tensor(rows, dtype=torch.float64, device="cpu")
    return _geometry.warp(image, matrix, "bilinear", None)


#: name -> one of PIL's operations on an image and a magnitude; a warp reads zeros outside.
_CHANGES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "autocontrast": lambda image, _: imgops.autocontrast(image),
    "equalize": lambda image, _: imgops.equalize(image),
    "posterize": lambda image, bits: imgops.posterize(image, int(bits)),
    "rotate": lambda image, degrees: _geometry.rotate(image, degrees, "bilinear"),
    "solarize": lambda image, at: imgops.solarize(image, at if image.dtype == torch.uint8 else at / 255),
    "shear_x": lambda image, m: _warp(image, [1, -m, -m / 2], [0, 1, 0]),
    "shear_y": lambda image, m: _warp(image, [1, 0, 0], [-m, 1, -m / 2]),
    "translate_x": lambda image, m: _warp(image, [1, 0, -m], [0, 1, 0]),
    "translate_y": lambda image, m: _warp(image, [1, 0, 0], [0, 1, -m]),
    # Only RGB colors have a saturation: that of other images does not change.
    "color": lambda image, m: imgops.adjust_saturation(image, m) if image.shape[-3] in (1, 3) else image,
    "contrast": imgops.adjust_contrast,
    "brightness": imgops.adjust_brightness,
    "sharpness": imgops.adjust_sharpness,
}
