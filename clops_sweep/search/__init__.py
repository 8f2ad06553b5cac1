"""Searches with Optuna: a study suggests the next runs of a search space.

A driver opens a `study`, asks it for trials and tells their values; `samplers` suggests, `pruning` stops trials early.
Everyone else reads `records`, which `trials` takes from the journal: a driver and a reader may see one study at the
same time. Both check that the study and its search space have one `definition`. `labels` converts values of parameters
for Optuna, `edges` are chosen values at the edge of what was tried, and `roles` say what the runs of a store are for.
`storage` has the journal itself, and `journal_copy` the local copy of one on an object store.
"""
