"""The networks that accelerator papers train, at their published sizes."""
