"""The counterparts of lightly's transforms, some of whose steps NumPy's generator draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.ImageFilter
import PIL.ImageOps
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops import transforms
from imgops.integrations._reader import MAKERS, NEAR, Reader, add_makers
from imgops.integrations.lightly.spectra import SPECTRA
from imgops.integrations.lightly.views import VIEWS, one_view, views
from imgops.integrations.torchvision.transforms import WARPS
from imgops.transforms import containers
from imgops.transforms._core import pil_images, seeding
from imgops.transforms._core.base import FixedTransform
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform


class _NumpyChance(containers._Chance):
    """The sampling of what is applied with a probability, by NumPy's generator."""

    def _draw_row(self, shape: Shape) -> list[float]:
        with seeding.own_generators():
            return [1.0 if np.random.random_sample() < self.p else 0.0]


class _NumpyApply(_NumpyChance, containers.RandomApply):
    _described = _NumpyChance

    def _get_name(self) -> str:
        return "RandomApply"


class _FixedRotation(FixedTransform, v2.Transform):
    """Rotate by a fixed angle, within the size of the image."""

    _config = ("angle",)

    def __init__(self, angle: float) -> None:
        v2.Transform.__init__(self)
        self.angle = angle
        self._describe()

    def _has_pils_pixels(self) -> bool:
        return False

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return transforms.functional.rotate(image, self.angle)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._kernel(v2.functional.rotate, inpt, self.angle)


class _LightlyGaussianBlur(ProbabilisticTransform):
    """PIL's Gaussian blur with a standard deviation that lightly draws."""

    _random_parameters = (IS_APPLIED, Parameter("radius"))
    _known = ("radius",)

    def __init__(self, prob: float, sigmas: Any, p: float = 1.0) -> None:
        super().__init__(p, False, None, prob=prob, sigmas=tuple(sigmas))

    def _get_name(self) -> str:
        return "GaussianBlur"

    def _draw(self, inputs: Any) -> Numbers | None:
        with seeding.own_generators():
            if np.random.random_sample() >= self.prob:
                return None
            return [1.0, float(np.random.uniform(*self.sigmas))]

    def _change_image(self, image: Tensor, radius: float) -> Tensor:
        blur = PIL.ImageFilter.GaussianBlur(radius)
        name, channels = self._get_name(), image.shape[-3]
        if channels in (1, 3):
            return pil_images.each(name, image, lambda given: given.filter(blur))
        planes = image.unsqueeze(-3)  # PIL blurs each channel by itself
        return pil_images.each(name, planes, lambda given: given.filter(blur)).squeeze(-3)

    def _of_pil(self, inpt: PIL.Image.Image, values: dict[str, Any]) -> PIL.Image.Image:
        return inpt.filter(PIL.ImageFilter.GaussianBlur(values["radius"]))


class _LightlySolarization(ProbabilisticTransform):
    """PIL's solarization with a probability, drawn by NumPy's generator."""

    def __init__(self, prob: float, threshold: float, p: float = 1.0) -> None:
        super().__init__(p, False, None, prob=prob, threshold=threshold)

    def _get_name(self) -> str:
        return "RandomSolarization"

    def _draw(self, inputs: Any) -> Numbers | None:
        with seeding.own_generators():
            return None if np.random.random_sample() >= self.prob else [1.0]

    def _change_image(self, image: Tensor) -> Tensor:
        return imgops.solarize(image, self.threshold)

    def _of_pil(self, inpt: PIL.Image.Image, values: dict[str, Any]) -> PIL.Image.Image:
        return PIL.ImageOps.solarize(inpt, self.threshold)


def _inner(given: Any, reader: Reader) -> Any:
    return reader.read(given.transform)


def _rotate(given: Any, reader: Reader) -> Any:
    rotation = _FixedRotation(given.angle)
    rotation._only_images = True
    return _NumpyApply([rotation], given.prob)


#: Modules of lightly -> their classes of several views, of one view, and of a list of one view.
_CLASSES: tuple[tuple[Any, dict[str, str]], ...] = (
    (
        views,
        {
            "byol_transform": "BYOLTransform",
            "densecl_transform": "DenseCLTransform",
            "dino_transform": "DINOTransform",
            "fast_siam_transform": "FastSiamTransform",
            "fda_transform": "FDATransform",
            "ibot_transform": "IBOTTransform",
            "mmcr_transform": "MMCRTransform",
            "moco_transform": "MoCoV1Transform MoCoV2Transform",
            "msn_transform": "MSNTransform",
            "multi_crop_transform": "MultiCropTranform",
            "multi_view_transform": "MultiViewTransform",
            "multi_view_transform_v2": "MultiViewTransformV2",
            "simclr_transform": "SimCLRTransform",
            "simsiam_transform": "SimSiamTransform",
            "smog_transform": "SMoGTransform",
            "swav_transform": "SwaVTransform",
            "tico_transform": "TiCoTransform",
            "vicreg_transform": "VICRegTransform",
            "wmse_transform": "WMSETransform",
        },
    ),
    (
        _inner,
        {
            "byol_transform": "BYOLView1Transform BYOLView2Transform",
            "dino_transform": "DINOViewTransform",
            "ibot_transform": "IBOTViewTransform",
            "ijepa_transform": "IJEPATransform",
            "msn_transform": "MSNViewTransform",
            "rotation": "RandomRotateDegrees",
            "simclr_transform": "SimCLRViewTransform",
            "simsiam_transform": "SimSiamViewTransform",
            "smog_transform": "SmoGViewTransform",
            "swav_transform": "SwaVViewTransform",
            "tico_transform": "TiCoView1Transform TiCoView2Transform",
            "torchvision_v2_compatibility": "ToTensor",
            "vicreg_transform": "VICRegViewTransform",
            "vicregl_transform": "VICRegLViewTransform",
        },
    ),
    (
        one_view,
        {"aim_transform": "AIMTransform", "capi_transform": "CAPITransform", "mae_transform": "MAETransform"},
    ),
)
for _maker, _modules in _CLASSES:
    for _module, _names in _modules.items():
        for _name in _names.split():
            MAKERS[f"lightly.transforms.{_module}.{_name}"] = _maker
add_makers("lightly.transforms", {**VIEWS, **SPECTRA})
MAKERS["lightly.transforms.rotation.RandomRotate"] = _rotate
NEAR["lightly.transforms.rotation.RandomRotate"] = lambda t: WARPS if t.prob and t.angle % 90 else None
MAKERS["lightly.transforms.gaussian_blur.GaussianBlur"] = lambda t, _: _LightlyGaussianBlur(t.prob, t.sigmas)
MAKERS["lightly.transforms.solarize.RandomSolarization"] = lambda t, _: _LightlySolarization(
    t.prob, t.threshold
)
