"""imgops behind the pipelines that other libraries have: each module needs its library, and imports it."""
