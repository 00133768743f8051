"""The counterparts of lightly's transforms of the spectrum of an image, which draw by PyTorch's generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from imgops._common import layout
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.integrations._counterparts import Counterpart, RandomCounterpart
from imgops.integrations._reader import Reader, Unmapped
from imgops.transforms import containers, conversion
from imgops.transforms._core import seeding
from imgops.transforms._core.base import NOTHING
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms._core.steps import Compute


def _require_tensor(owner: Any, inpt: Any) -> Tensor:
    if not isinstance(inpt, Tensor):
        got = type(inpt).__name__
        raise_error(TypeError, f"{owner._get_name()}: image must be a Tensor (..., C, H, W), got {got}")
    return subclass.plain(inpt)


class _Spectral(Counterpart):
    """A change between an image and its spectrum, by PyTorch's functions."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._image(_require_tensor(self, inpt), NOTHING, Tensor)


class RFFT2DTransform(_Spectral):
    """Return the spectrum of an image, ``(..., C, H, W // 2 + 1)``."""

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return height, width // 2 + 1

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        # The last bits depend on the memory format, which is that of torchvision's ToImage.
        return torch.fft.rfft2(layout.in_format(image, True))


class IRFFT2DTransform(_Spectral):
    """Return the image of a spectrum."""

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self.shape

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return torch.fft.irfft2(image, s=self.shape)


class _OnSpectrum(RandomCounterpart):
    """A random change of a spectrum; in a graph the spectrum itself is selected where it is not applied."""

    def draw_values(self, height: int, width: int) -> Tensor:
        """Draw the numbers for a spectrum of a size, by lightly's code."""
        raise NotImplementedError

    def change(self, spectrum: Tensor, values: Tensor) -> Tensor:
        """Change a spectrum ``(..., C, H, W)`` by float32 numbers ``(..., n)``, in lightly's arithmetic."""
        raise NotImplementedError

    def _draw(self, inputs: Any) -> Tensor:
        _, _, height, width = self._shape_of(inputs)
        values = self.draw_values(height, width)
        return torch.cat([torch.ones(1, dtype=torch.float32, device="cpu"), values.flatten()]).double()

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[Compute]:
        return [Compute(params.numbers, self._where_applied)]

    def _where_applied(self, image: Tensor, numbers: Any) -> Tensor:
        place = numbers.device if isinstance(numbers, Tensor) else "cpu"
        numbers = torch.as_tensor(numbers, dtype=torch.float32, device=place).to(image.device)
        changed = self.change(image, numbers[..., 1:])
        return torch.where(numbers[..., 0, None, None, None] > 0, changed, image)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        for inpt in flat_inputs:
            _require_tensor(self, inpt)


def _polar(spectrum: Tensor) -> tuple[Tensor, Tensor]:
    real, imaginary = spectrum.real, spectrum.imag
    return torch.sqrt(real**2 + imaginary**2), torch.atan2(imaginary, real)


def _cartesian(amplitude: Tensor, phase: Tensor) -> Tensor:
    return torch.complex(amplitude * torch.cos(phase), amplitude * torch.sin(phase))


def _plane(values: Tensor, spectrum: Tensor) -> Tensor:
    """Return numbers of all frequencies in a shape that broadcasts to a spectrum."""
    return values.reshape(*values.shape[:-1], 1, *spectrum.shape[-2:])


_OF_EACH = Parameter("values", lambda _, shape: shape[2] * shape[3])


class AmplitudeRescaleTransform(_OnSpectrum):
    """Multiply the amplitude of each frequency by a factor."""

    _random_parameters = (IS_APPLIED, _OF_EACH)

    def draw_values(self, height: int, width: int) -> Tensor:
        return torch.distributions.Uniform(self.low, self.high).sample(torch.Size((height, width)))

    def change(self, spectrum: Tensor, values: Tensor) -> Tensor:
        amplitude, phase = _polar(spectrum)
        return _cartesian(amplitude * _plane(values, spectrum), phase)


class PhaseShiftTransform(_OnSpectrum):
    """Add an angle to the phase of all frequencies."""

    _random_parameters = (IS_APPLIED, Parameter("values"))

    def draw_values(self, height: int, width: int) -> Tensor:
        theta = torch.distributions.Uniform(self.low, self.high).sample()
        if self.sign_probability is None:
            return theta
        sign = torch.distributions.Bernoulli(self.sign_probability).sample()
        return torch.where(sign == 1, theta, -theta)

    def change(self, spectrum: Tensor, values: Tensor) -> Tensor:
        amplitude, phase = _polar(spectrum)
        return _cartesian(amplitude, phase + values[..., None, None])


class RandomFrequencyMaskTransform(_OnSpectrum):
    """Remove frequencies, but for the mean of the image."""

    _random_parameters = (IS_APPLIED, _OF_EACH)

    def draw_values(self, height: int, width: int) -> Tensor:
        with seeding.own_generators():
            k = np.random.uniform(low=self.k[0], high=self.k[1])
        mask = torch.rand(height, width, dtype=torch.float32, device="cpu") > k
        mask[0, 0] = True  # the mean of the image stays
        return mask

    def change(self, spectrum: Tensor, values: Tensor) -> Tensor:
        return spectrum * (_plane(values, spectrum) > 0)


class GaussianMixtureMask(_OnSpectrum):
    """Dampen the frequencies around some centers."""

    _random_parameters = (IS_APPLIED, Parameter("values", lambda t, _: 4 * t.num_gaussians))

    def draw_values(self, height: int, width: int) -> Tensor:
        low, high = self.std_range
        values = []
        for _ in range(self.num_gaussians):
            center = [torch.randint(0, size, (1,), device="cpu") for size in (height, width)]
            values += [*center, torch.rand(2, dtype=torch.float32, device="cpu") * (high - low) + low]
        return torch.cat([torch.zeros(0, dtype=torch.float32, device="cpu"), *values])

    def change(self, spectrum: Tensor, values: Tensor) -> Tensor:
        mask = torch.ones_like(spectrum)
        u, v = (torch.arange(size, device=spectrum.device, dtype=torch.int64) for size in spectrum.shape[-2:])
        for each in values.unflatten(-1, (-1, 4)).unbind(-2):
            row, column, first, second = each[..., None, None].unbind(-3)
            down = (u[:, None] - row) ** 2 / (2 * first**2)
            kernel = torch.exp(-(down + (v - column) ** 2 / (2 * second**2)))
            mask = mask * (1 - kernel.unsqueeze(-3))
        return spectrum * mask


class _ThroughFloats(containers.Compose):
    """Steps on floats between levels: a PIL image comes out as one, and a tensor as a uint8 tensor.

    The transforms after lightly's ToPILImage have PIL's pixels on PIL images, and a graph has tensors alone.
    """

    def _get_name(self) -> str:
        return "Compose"

    def __init__(self, transforms: list[Any], mode: str | None) -> None:
        super().__init__(transforms)
        self.to_pil = conversion.ToPILImage(mode)

    def _in_levels(self, out: Tensor, inputs: tuple[Any, ...]) -> Any:
        if isinstance(inputs[0], PIL.Image.Image):
            return self.to_pil(out)
        # Levels out of range wrap around as NumPy's do, in the conversion of PIL images.
        return subclass.plain(out).mul(255).to(torch.int32).to(torch.uint8)

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        return self._in_levels(super()._run(inputs, sampler), inputs)


def _phase_shift(given: Any, reader: Reader) -> Any:
    sign = float(given.sign_dist.probs) if given.include_negatives else None
    return PhaseShiftTransform(low=float(given.dist.low), high=float(given.dist.high), sign_probability=sign)


def _view(given: Any, reader: Reader) -> Any:
    """Return the steps of a view, among which those on floats keep PIL images PIL images."""
    steps = list(given.transform.transforms)
    names = [type(step).__name__ for step in steps]
    if "ToTensor" not in names or "ToPILImage" not in names[names.index("ToTensor") :]:
        raise Unmapped("steps other than lightly's own")
    start, end = names.index("ToTensor"), names.index("ToPILImage")
    inner = _ThroughFloats(reader.read_all(steps[start:end]), steps[end].mode)
    return [*reader.read_all(steps[:start]), inner, *reader.read_all(steps[end + 1 :])]


SPECTRA: dict[str, Any] = {
    "amplitude_rescale_transform.AmplitudeRescaleTransform": lambda t, _: AmplitudeRescaleTransform(
        low=float(t.dist.low), high=float(t.dist.high)
    ),
    "fda_transform.FDAView1Transform": _view,
    "fda_transform.FDAView2Transform": _view,
    "gaussian_mixture_masks_transform.GaussianMixtureMask": lambda t, _: GaussianMixtureMask(
        num_gaussians=t.num_gaussians, std_range=tuple(t.std_range)
    ),
    "irfft2d_transform.IRFFT2DTransform": lambda t, _: IRFFT2DTransform(shape=tuple(t.shape)),
    "phase_shift_transform.PhaseShiftTransform": _phase_shift,
    "random_frequency_mask_transform.RandomFrequencyMaskTransform": lambda t, _: RandomFrequencyMaskTransform(
        k=tuple(t.k)
    ),
    "rfft2d_transform.RFFT2DTransform": lambda t, _: RFFT2DTransform(),
}
