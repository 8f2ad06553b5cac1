"""AUC and other scores, evaluation, the R matrix and task difficulty."""
