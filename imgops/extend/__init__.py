"""The tools for authors of operators: ``operator`` makes an operator, the rest are its facets and its tests.

``operator`` registers a kernel, a fake and the facets; ``Gradient`` is a gradient written by hand; ``vmap``,
``sharding`` and ``autocast`` have the rules that fit operators on images; ``testing.check_operator`` runs the
generic checks; ``config`` has the parameters of an operator as one frozen object.
"""

from imgops import autocast, config, sharding, vmap
from imgops._operators import Gradient
from imgops._registry import operator
from imgops.extend import testing

__all__ = ["Gradient", "autocast", "config", "operator", "sharding", "testing", "vmap"]
