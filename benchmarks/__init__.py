"""imgops beside the raw libraries and its peers, on the same work, in one run."""
