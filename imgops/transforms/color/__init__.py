"""Transforms of color."""

from imgops.transforms.color.adjust import *
from imgops.transforms.color.channels import *
from imgops.transforms.color.domain import *
from imgops.transforms.color.levels import *
