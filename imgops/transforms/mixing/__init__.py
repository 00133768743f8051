"""Transforms that join several samples."""

from imgops.transforms.mixing.copy_paste import *
from imgops.transforms.mixing.mixup import *
from imgops.transforms.mixing.mosaic import *
from imgops.transforms.mixing.pixmix import *
