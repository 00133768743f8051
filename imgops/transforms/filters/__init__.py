"""Filters of neighboring pixels (blurs, sharpening, morphology), and compression losses."""

from imgops.transforms.filters.blur import *
from imgops.transforms.filters.compression import *
from imgops.transforms.filters.morphology import *
from imgops.transforms.filters.sharpen import *
