"""Generic checks for any operator made by ``imgops.extend.operator``."""

from imgops.extend.testing._call import Call as Call
from imgops.extend.testing._cuda import cuda_kernel as cuda_kernel
from imgops.extend.testing._run import check_operator as check_operator

__all__ = ["Call", "check_operator", "cuda_kernel"]
