"""New people over time on the CinC Challenge 2017: ten groups of people as tasks, with other people held out."""

from clops_sweep import SearchSpace
from clops_sweep.search_spaces.methods_cinc2017 import cinc2017  # noqa: F401  declares the data set
from clops_sweep.search_spaces.subject_il_mitbih import BASE, METHODS

SPACE = SearchSpace(
    "subject_il_cinc2017",
    BASE.replace(dataset="cinc2017", epochs_per_task=5),
    {"method": METHODS, "split_seed": range(5)},
    seeds=range(1),
)
