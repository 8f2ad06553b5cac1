"""Searches with Optuna: a study suggests the next runs of a search space.

A driver opens a `study`, asks it for trials and tells their values; `samplers` suggests, `pruning` stops trials early.
Everyone else reads `records`, which `trials` takes from the journal. Both check that the study and its search space
have one `definition`. `labels` converts values of parameters for Optuna, and `storage` has the journal itself.
"""
