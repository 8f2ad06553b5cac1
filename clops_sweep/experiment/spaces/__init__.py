"""Search spaces: grids, Optuna searches, and the selection of runs."""
