"""AUC and other scores, evaluation, the R matrix and task difficulty."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["r_matrix"])
