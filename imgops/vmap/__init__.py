"""Batching rules for torch.vmap."""

from imgops.vmap.leading import leading as leading
