"""Packed facets: how an operator takes images of different sizes in one buffer."""

from imgops._operator.record import Packed as Packed

__all__ = ["Packed", "keeps_size", "one_size"]

#: Each result has the size of its image.
keeps_size = Packed()
#: All results have one size, so that they form a batch.
one_size = Packed(keeps_size=False)
