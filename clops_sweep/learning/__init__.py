"""The numerics of continual learning, independent of Ray, Parquet and the command line."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["losses", "streams"])
