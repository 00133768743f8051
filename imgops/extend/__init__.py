"""The tools for authors of operators: ``operator``, the facets of an operator, and its tests.

``operator`` registers a kernel, a fake and the facets; ``Gradient`` is a gradient written by hand; ``vmap``,
``sharding``, ``autocast`` and ``packed`` have the rules that fit operators on images;
``testing.check_operator`` runs the generic checks; ``config`` has the parameters of an operator as one frozen
object.
"""

from imgops._common import config
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.extend import testing
from imgops.rules import autocast, packed, sharding, vmap

__all__ = ["Gradient", "autocast", "config", "operator", "packed", "sharding", "testing", "vmap"]
