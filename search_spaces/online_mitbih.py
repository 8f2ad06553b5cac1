"""The groups of subject_il_mitbih.py as an online stream: one pass, batches of ten, five steps per batch."""

from clops_sweep import SearchSpace
from clops_sweep.search_spaces.subject_il_mitbih import BASE, METHODS

SPACE = SearchSpace(
    "online_mitbih",
    BASE.replace(stream="online", split_within="time", batch_size=10, prequential_window=200, steps_per_batch=5),
    {"blurry": [0.0, 0.3], "method": METHODS, "split_seed": range(5)},
    seeds=range(1),
)
