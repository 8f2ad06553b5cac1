"""Replay: the buffer, what is stored in it, and what is acquired from it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["acquisition", "division", "storage"])
