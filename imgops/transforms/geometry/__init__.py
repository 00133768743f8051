"""Transforms that move pixels: resizing, cropping, padding, flips, warps and distortions."""

from imgops.transforms.geometry.crop import *
from imgops.transforms.geometry.distortion import *
from imgops.transforms.geometry.fit import *
from imgops.transforms.geometry.flip import *
from imgops.transforms.geometry.pad import *
from imgops.transforms.geometry.resize import *
from imgops.transforms.geometry.warp import *
