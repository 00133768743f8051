"""Conversion of albumentations' pipelines."""

from imgops.transforms.albumentations.convert import from_albumentations as from_albumentations
