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
from imgops.integrations._counterparts import Counterpart, RandomApply
from imgops.integrations._reader import DIFFERENCES, Reader, add_makers
from imgops.integrations.lightly.spectra import SPECTRA
from imgops.integrations.lightly.views import VIEWS, MultiViewTransform
from imgops.integrations.torchvision.rules import WARPS
from imgops.transforms._core import pil_images, seeding
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params
from imgops.transforms._core.probabilistic import ProbabilisticTransform


class _FixedRotation(Counterpart):
    """Rotate by a fixed angle, within the size of the image."""

    _moves = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return transforms.functional.rotate(image, self.angle)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._kernel(v2.functional.rotate, inpt, self.angle)


class GaussianBlur(ProbabilisticTransform):
    """PIL's Gaussian blur with a standard deviation that lightly draws."""

    _random_parameters = (IS_APPLIED, Parameter("radius"))
    _known = ("radius",)

    def __init__(self, prob: float, sigmas: Any, p: float = 1.0) -> None:
        super().__init__(p, False, None, prob=prob, sigmas=tuple(sigmas))

    def _draw(self, inputs: Any) -> Numbers | None:
        with seeding.own_generators():
            if np.random.random_sample() >= self.prob:
                return None
            return [1.0, float(np.random.uniform(*self.sigmas))]

    def _change_image(self, image: Tensor, radius: float) -> Tensor:
        blur = PIL.ImageFilter.GaussianBlur(radius)
        channels = image.shape[-3]
        if channels in (1, 3):
            return pil_images.each("GaussianBlur", image, lambda given: given.filter(blur))
        planes = image.unsqueeze(-3)  # PIL blurs the channels one by one
        return pil_images.each("GaussianBlur", planes, lambda given: given.filter(blur)).squeeze(-3)

    def _of_pil(self, inpt: PIL.Image.Image, values: dict[str, Any]) -> PIL.Image.Image:
        return inpt.filter(PIL.ImageFilter.GaussianBlur(values["radius"]))


class RandomSolarization(ProbabilisticTransform):
    """PIL's solarization with a probability, drawn by NumPy's generator."""

    def __init__(self, prob: float, threshold: float, p: float = 1.0) -> None:
        super().__init__(p, False, None, prob=prob, threshold=threshold)

    def _draw(self, inputs: Any) -> Numbers | None:
        with seeding.own_generators():
            return None if np.random.random_sample() >= self.prob else [1.0]

    def _change_image(self, image: Tensor) -> Tensor:
        return imgops.solarize(image, self.threshold)

    def _of_pil(self, inpt: PIL.Image.Image, values: dict[str, Any]) -> PIL.Image.Image:
        return PIL.ImageOps.solarize(inpt, self.threshold)


def _rotate(given: Any, reader: Reader) -> Any:
    rotation = _FixedRotation(angle=given.angle)
    rotation._only_images = True
    return RandomApply([rotation], given.prob, "lightly")


#: The classes of several views, in modules of lightly.
_OF_VIEWS = """
    byol_transform.BYOLTransform densecl_transform.DenseCLTransform dino_transform.DINOTransform
    fast_siam_transform.FastSiamTransform fda_transform.FDATransform ibot_transform.IBOTTransform
    mmcr_transform.MMCRTransform moco_transform.MoCoV1Transform moco_transform.MoCoV2Transform
    msn_transform.MSNTransform multi_crop_transform.MultiCropTranform
    multi_view_transform.MultiViewTransform multi_view_transform_v2.MultiViewTransformV2
    pirl_transform.PIRLTransform simclr_transform.SimCLRTransform simsiam_transform.SimSiamTransform
    smog_transform.SMoGTransform swav_transform.SwaVTransform tico_transform.TiCoTransform
    vicreg_transform.VICRegTransform wmse_transform.WMSETransform
"""
#: The classes that apply one transform.
_OF_ONE = """
    byol_transform.BYOLView1Transform byol_transform.BYOLView2Transform dino_transform.DINOViewTransform
    ibot_transform.IBOTViewTransform ijepa_transform.IJEPATransform msn_transform.MSNViewTransform
    rotation.RandomRotateDegrees simclr_transform.SimCLRViewTransform
    simsiam_transform.SimSiamViewTransform smog_transform.SmoGViewTransform swav_transform.SwaVViewTransform
    tico_transform.TiCoView1Transform tico_transform.TiCoView2Transform
    torchvision_v2_compatibility.ToTensor vicreg_transform.VICRegViewTransform
    vicregl_transform.VICRegLViewTransform
"""
#: The classes that return a list of one view.
_OF_ONE_VIEW = "aim_transform.AIMTransform capi_transform.CAPITransform mae_transform.MAETransform"
_TRANSFORMS: dict[str, Any] = {
    **dict.fromkeys(
        _OF_VIEWS.split(), lambda t, r: MultiViewTransform([r.read_one(x) for x in t.transforms])
    ),
    **dict.fromkeys(_OF_ONE.split(), lambda t, r: r.read(t.transform)),
    **dict.fromkeys(_OF_ONE_VIEW.split(), lambda t, r: MultiViewTransform([r.read_one(t.transform)])),
    "gaussian_blur.GaussianBlur": lambda t, _: GaussianBlur(t.prob, t.sigmas),
    "rotation.RandomRotate": _rotate,
    "solarize.RandomSolarization": lambda t, _: RandomSolarization(t.prob, t.threshold),
}
add_makers("lightly.transforms", {**_TRANSFORMS, **VIEWS, **SPECTRA})
DIFFERENCES["lightly.transforms.rotation.RandomRotate"] = lambda t: WARPS if t.prob and t.angle % 90 else None
