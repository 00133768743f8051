"""The counterparts of lightly's transforms: views of an image, and steps that NumPy's generator draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.ImageFilter
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops import transforms
from imgops.transforms import containers
from imgops.transforms._core import pil_images, programs, seeding
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms._core.sizes import FixedTransform
from imgops.transforms.converters._reader import MAKERS, NEAR, Reader


class _LightlyViews(containers._Container, v2.Transform):
    """Return a list of views: each transform is applied to the image itself."""

    def __init__(self, transforms: list[Any]) -> None:
        v2.Transform.__init__(self)
        self.transforms = list(transforms)
        self._start(False, None)

    def _get_name(self) -> str:
        return "MultiViewTransform"

    def _run_plainly(self, inputs: tuple[Any, ...]) -> list[Any]:
        return [transform(*inputs) for transform in self.transforms]

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> list[Any]:
        before, covered = self._count_samples(inputs, sampler), sampler.covered
        if not covered and sampler.plans(self):
            containers._sample_ahead([(sampler.path, self)], inputs, sampler)
            sampler.covered = sampler.path in sampler.planned
        out = [self._one(i, inputs, sampler) for i in range(len(self.transforms))]
        sampler.count, sampler.covered = before, covered
        return out

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        path, inside = program.path, program.inside
        program.inside = inside or self.per_sample
        after: Shape | None = None
        for i, transform in enumerate(self.transforms):
            program.path = (*path, i)
            after = containers._shape_after(transform, shape, program)
            if after is None:
                break
        program.path, program.inside = path, inside
        return after


class _NumpyChance(containers._Chance):
    """The sampling of what is applied with a probability, by NumPy's generator."""

    def draw_row(self, shape: Shape) -> list[float]:
        with seeding.own_generators():
            return [1.0 if np.random.random_sample() < self.p else 0.0]


class _NumpyApply(_NumpyChance, containers.RandomApply):
    _description_name = "_NumpyChance"

    def _get_name(self) -> str:
        return "RandomApply"


programs.CLASSES["_NumpyChance"] = _NumpyChance


class _FixedRotation(FixedTransform, v2.Transform):
    """Rotate by a fixed angle, within the size of the image."""

    _config = ("angle",)

    def __init__(self, angle: float) -> None:
        v2.Transform.__init__(self)
        self.angle = angle
        self._describe()

    def is_pils(self) -> bool:
        return False

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return transforms.functional.rotate(image, self.angle)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.call_kernel(v2.functional.rotate, inpt, self.angle)


class _LightlyGaussianBlur(ProbabilisticTransform):
    """PIL's Gaussian blur with a standard deviation that lightly draws."""

    random_parameters = (IS_APPLIED, Parameter("radius"))
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

    def change_image(self, image: Tensor, radius: float) -> Tensor:
        blur = PIL.ImageFilter.GaussianBlur(radius)
        return pil_images.each(self._get_name(), image, lambda given: given.filter(blur))


class _LightlySolarization(ProbabilisticTransform):
    """PIL's solarization with a probability, drawn by NumPy's generator."""

    def __init__(self, prob: float, threshold: float, p: float = 1.0) -> None:
        super().__init__(p, False, None, prob=prob, threshold=threshold)

    def _get_name(self) -> str:
        return "RandomSolarization"

    def _draw(self, inputs: Any) -> Numbers | None:
        with seeding.own_generators():
            return None if np.random.random_sample() >= self.prob else [1.0]

    def change_image(self, image: Tensor) -> Tensor:
        return imgops.solarize(image, self.threshold)


def _views(given: Any, reader: Reader) -> Any:
    return _LightlyViews([reader.read_one(each) for each in given.transforms])


def _inner(given: Any, reader: Reader) -> Any:
    return reader.read(given.transform)


def _one_view(given: Any, reader: Reader) -> Any:
    return _LightlyViews([reader.read_one(given.transform)])


def _rotate(given: Any, reader: Reader) -> Any:
    if given.angle % 90:
        reader.near["RandomRotate"] = NEAR["torchvision.transforms.transforms.RandomRotation"]
    return _NumpyApply([_FixedRotation(given.angle)], given.prob)


#: Modules of lightly -> their classes of several views, of one view, and of a list of one view.
_CLASSES: tuple[tuple[Any, dict[str, str]], ...] = (
    (
        _views,
        {
            "byol_transform": "BYOLTransform",
            "densecl_transform": "DenseCLTransform",
            "dino_transform": "DINOTransform",
            "fast_siam_transform": "FastSiamTransform",
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
        _one_view,
        {"aim_transform": "AIMTransform", "capi_transform": "CAPITransform", "mae_transform": "MAETransform"},
    ),
)
for _maker, _modules in _CLASSES:
    for _module, _names in _modules.items():
        for _name in _names.split():
            MAKERS[f"lightly.transforms.{_module}.{_name}"] = _maker
MAKERS["lightly.transforms.rotation.RandomRotate"] = _rotate
MAKERS["lightly.transforms.gaussian_blur.GaussianBlur"] = lambda t, _: _LightlyGaussianBlur(t.prob, t.sigmas)
MAKERS["lightly.transforms.solarize.RandomSolarization"] = lambda t, _: _LightlySolarization(
    t.prob, t.threshold
)
