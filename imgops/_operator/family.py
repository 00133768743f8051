"""The declaration of imgops' own operators, whose facets are found by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from types import ModuleType
from typing import Any

from imgops._common import values as value_checks
from imgops._operator import declare
from imgops._operator.record import Function, Gradient
from imgops.kernels.cuda import Kernel
from imgops.rules import sharding, vmap


@dataclass(frozen=True)
class Family:
    """The modules of a family of operators: the facets of an operator are the functions with its name."""

    kernels: ModuleType
    fakes: ModuleType
    decompositions: ModuleType | None = None
    gradients: ModuleType | None = None

    def operator(
        self,
        *cores: int,
        cuda: bool | str = False,
        values: Function | Mapping[str, value_checks.Check] | None = None,
        straight_through: bool = False,
        **facets: Any,
    ) -> Callable[[Function], Function]:
        """Register the operator ``imgops::name`` by decorating its signature, which is named ``_name``.

        Parameters
        ----------
        *cores
            The number of trailing dimensions of each tensor, for the rules of vmap and DTensor. Without them
            the operator has no such rules.
        cuda
            Whether there is a CUDA kernel; with "packed" it also takes packed images.
        values
            The checks of parameters by their names, or a function of all arguments.
        straight_through
            Whether the gradient is that of the identity.
        **facets
            Other arguments of :func:`imgops.extend.operator`.
        """

        def register(declared: Function) -> Function:
            name = declared.__name__.removeprefix("_")
            found: dict[str, Any] = {
                "kernel": getattr(self.kernels, name),
                "fake": getattr(self.fakes, name),
                "decomposition": getattr(self.decompositions, name, None),
                "autograd": self._gradient(name, straight_through),
                "values": values,
            }
            if isinstance(values, Mapping):
                found["values"] = value_checks.by_name(name, list(signature(declared).parameters), values)
            if cuda:
                family = self.kernels.__name__.rpartition(".")[2]
                found["cuda"] = Kernel(f"{family}.{name}", takes_packed=cuda == "packed")
            if cores:
                mutates = len(facets.get("mutates", ()))
                outputs = 0 if declared.__annotations__["return"] == "None" else 1
                found["vmap"] = vmap.leading(*cores, mutates=mutates)
                found["sharding"] = sharding.leading(*cores, outputs=outputs)
            return declare.operator(f"imgops::{name}", **found, **facets)(declared)

        return register

    def _gradient(self, name: str, straight_through: bool) -> Gradient | Function | None:
        """Return the gradient of an operator, or the function that records what a mutating operator does."""
        backward = getattr(self.gradients, f"{name}_backward", None)
        if backward is None:
            return getattr(self.gradients, name, None)
        setup_context = getattr(self.gradients, f"{name}_setup_context")
        return Gradient(
            setup_context, backward, getattr(self.gradients, f"{name}_jvp", None), straight_through
        )
