"""DTensor rules: they tell which dimensions of an operator's tensors may lie on different ranks."""

from imgops.sharding.leading import leading as leading
from imgops.sharding.leading import whole as whole
