"""A drop-in for ``torchvision.transforms.v2``: PIL's and OpenCV's pixels, one graph, draws per sample.

``from imgops import transforms as v2`` serves a whole script. The classes in ``OURS`` run imgops' operators
and keep torchvision's names, arguments, defaults and draws; ``per_sample=True`` lets each image of a batch
draw for itself. Those in ``ADDED`` are not in torchvision, and keep to its manner. Every other name is
torchvision's own.
"""

from __future__ import annotations

from typing import Any

from torchvision.transforms import v2 as _reference

from imgops.transforms import functional as functional
from imgops.transforms._added import ADDED as _ADDED
from imgops.transforms._albumentations import from_albumentations as from_albumentations
from imgops.transforms._augment import JPEG as JPEG
from imgops.transforms._augment import CutMix as CutMix
from imgops.transforms._augment import MixUp as MixUp
from imgops.transforms._augment import RandomErasing as RandomErasing
from imgops.transforms._blurs import *
from imgops.transforms._color import RGB as RGB
from imgops.transforms._color import ColorJitter as ColorJitter
from imgops.transforms._color import GaussianBlur as GaussianBlur
from imgops.transforms._color import GaussianNoise as GaussianNoise
from imgops.transforms._color import Grayscale as Grayscale
from imgops.transforms._color import RandomAdjustSharpness as RandomAdjustSharpness
from imgops.transforms._color import RandomAutocontrast as RandomAutocontrast
from imgops.transforms._color import RandomChannelPermutation as RandomChannelPermutation
from imgops.transforms._color import RandomEqualize as RandomEqualize
from imgops.transforms._color import RandomGrayscale as RandomGrayscale
from imgops.transforms._color import RandomInvert as RandomInvert
from imgops.transforms._color import RandomPhotometricDistort as RandomPhotometricDistort
from imgops.transforms._color import RandomPosterize as RandomPosterize
from imgops.transforms._color import RandomSolarize as RandomSolarize
from imgops.transforms._container import Compose as Compose
from imgops.transforms._container import RandomApply as RandomApply
from imgops.transforms._container import RandomChoice as RandomChoice
from imgops.transforms._container import RandomOrder as RandomOrder
from imgops.transforms._copy_paste import *
from imgops.transforms._distortions import *
from imgops.transforms._domain import *
from imgops.transforms._dropout import *
from imgops.transforms._filters import *
from imgops.transforms._fit import *
from imgops.transforms._geometry import CenterCrop as CenterCrop
from imgops.transforms._geometry import ElasticTransform as ElasticTransform
from imgops.transforms._geometry import FiveCrop as FiveCrop
from imgops.transforms._geometry import Pad as Pad
from imgops.transforms._geometry import RandomAffine as RandomAffine
from imgops.transforms._geometry import RandomCrop as RandomCrop
from imgops.transforms._geometry import RandomHorizontalFlip as RandomHorizontalFlip
from imgops.transforms._geometry import RandomPerspective as RandomPerspective
from imgops.transforms._geometry import RandomResizedCrop as RandomResizedCrop
from imgops.transforms._geometry import RandomVerticalFlip as RandomVerticalFlip
from imgops.transforms._geometry import Resize as Resize
from imgops.transforms._geometry import TenCrop as TenCrop
from imgops.transforms._levels import *
from imgops.transforms._misc import ClampBoundingBoxes as ClampBoundingBoxes
from imgops.transforms._misc import ClampKeyPoints as ClampKeyPoints
from imgops.transforms._misc import ConvertBoundingBoxFormat as ConvertBoundingBoxFormat
from imgops.transforms._misc import ConvertImageDtype as ConvertImageDtype
from imgops.transforms._misc import Identity as Identity
from imgops.transforms._misc import Lambda as Lambda
from imgops.transforms._misc import LinearTransformation as LinearTransformation
from imgops.transforms._misc import Normalize as Normalize
from imgops.transforms._misc import PILToTensor as PILToTensor
from imgops.transforms._misc import SanitizeBoundingBoxes as SanitizeBoundingBoxes
from imgops.transforms._misc import SanitizeKeyPoints as SanitizeKeyPoints
from imgops.transforms._misc import SetClampingMode as SetClampingMode
from imgops.transforms._misc import ToDtype as ToDtype
from imgops.transforms._misc import ToImage as ToImage
from imgops.transforms._misc import ToPILImage as ToPILImage
from imgops.transforms._misc import ToPureTensor as ToPureTensor
from imgops.transforms._misc import ToTensor as ToTensor
from imgops.transforms._misc import UniformTemporalSubsample as UniformTemporalSubsample
from imgops.transforms._mosaic import *
from imgops.transforms._noise import *
from imgops.transforms._policy import AugMix as AugMix
from imgops.transforms._policy import AutoAugment as AutoAugment
from imgops.transforms._policy import RandAugment as RandAugment
from imgops.transforms._policy import TrivialAugmentWide as TrivialAugmentWide
from imgops.transforms._seeded import seeded as seeded
from imgops.transforms._sizes import RandomIoUCrop as RandomIoUCrop
from imgops.transforms._sizes import RandomResize as RandomResize
from imgops.transforms._sizes import RandomRotation as RandomRotation
from imgops.transforms._sizes import RandomShortestSize as RandomShortestSize
from imgops.transforms._sizes import RandomZoomOut as RandomZoomOut
from imgops.transforms._sizes import ScaleJitter as ScaleJitter
from imgops.transforms._tones import *
from imgops.transforms._turns import *
from imgops.transforms._weather import *

#: The classes that torchvision does not have.
ADDED = tuple(sorted(_ADDED))
#: The classes that torchvision has as well, and that run imgops' operators.
OURS = tuple(
    sorted(
        n
        for n, v in globals().items()
        if isinstance(v, type) and v.__module__.startswith("imgops.") and n not in _ADDED
    )
)


def __getattr__(name: str) -> Any:
    return getattr(_reference, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *(n for n in dir(_reference) if not n.startswith("_"))})
