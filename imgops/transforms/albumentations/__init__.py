"""What a pipeline of albumentations becomes."""

from imgops.transforms.albumentations.convert import from_albumentations as from_albumentations
