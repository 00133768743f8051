"""imgops compared with the raw libraries and with its peers, on the same work and in one run."""
