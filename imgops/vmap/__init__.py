"""Batching rules for torch.vmap."""
