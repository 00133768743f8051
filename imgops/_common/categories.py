"""The categories of imgops' warnings; that of slow paths is in :mod:`.compare`."""

from __future__ import annotations


class NothingChangesWarning(UserWarning):
    """Warns that a pipeline of transforms got no image, and returned its inputs unchanged.

    Only the first such call of a pipeline warns. ``pipeline.warn_if_nothing_changes = False`` turns it off.
    """
