"""The corruptions of ImageNet-C, by which the robustness of a network is measured."""

from imgops.transforms.imagenet_c.transform import Corruption, corruptions

__all__ = ["Corruption", "corruptions"]
