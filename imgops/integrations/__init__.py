"""The pipelines and processors of other libraries, one module or folder a library, loaded when it is met."""
