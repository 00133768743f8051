"""The rules that most operators share: vmap, sharding, autocast, packed images."""
