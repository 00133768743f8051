"""The corruptions of ImageNet-C, which measure the robustness of a network."""

from imgops.transforms.imagenet_c.transform import Corruption, corruptions

__all__ = ["Corruption", "corruptions"]
