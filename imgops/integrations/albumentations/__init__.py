"""Conversion of albumentations' pipelines."""

from imgops.integrations.albumentations.convert import from_albumentations as from_albumentations
