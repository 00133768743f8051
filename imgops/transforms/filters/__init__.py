"""What is computed from the pixels around: blurs, sharpening, morphology; and what compression loses."""

from imgops.transforms.filters.blur import *
from imgops.transforms.filters.compression import *
from imgops.transforms.filters.morphology import *
from imgops.transforms.filters.sharpen import *
