"""CPU kernels of the noise operators: ATen, which computes them as NumPy does."""

from __future__ import annotations

from torch import Tensor

from imgops.decomposition import noise as formula
from imgops.kernels.cpu._common import run_decomposition


def salt_and_pepper(out: Tensor, image: Tensor, noise: Tensor, amount: Tensor, salt: Tensor) -> None:
    run_decomposition(out, formula.salt_and_pepper, image, noise, amount, salt)


def shot_noise(out: Tensor, image: Tensor, noise: Tensor, amount: Tensor) -> None:
    run_decomposition(out, formula.shot_noise, image, noise, amount)


def iso_noise(out: Tensor, image: Tensor, noise: Tensor, color_shift: Tensor, intensity: Tensor) -> None:
    run_decomposition(out, formula.iso_noise, image, noise, color_shift, intensity)


def multiplicative_noise(out: Tensor, image: Tensor, noise: Tensor, amount: Tensor) -> None:
    run_decomposition(out, formula.multiplicative_noise, image, noise, amount)
