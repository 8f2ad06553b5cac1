"""The groups of subject_il_cinc2017.py as an online stream: one pass, batches of 32, five steps per batch."""

from clops_sweep import SearchSpace
from clops_sweep.search_spaces.methods_cinc2017 import cinc2017  # noqa: F401  declares the data set
from clops_sweep.search_spaces.subject_il_mitbih import BASE, METHODS

SPACE = SearchSpace(
    "online_cinc2017",
    BASE.replace(dataset="cinc2017", stream="online", prequential_window=1000, steps_per_batch=5),
    {"method": METHODS, "split_seed": range(5)},
    seeds=range(1),
)
