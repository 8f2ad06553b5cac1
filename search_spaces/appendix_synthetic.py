"""The paper's Class-IL methods and its grid over b and a, whole and with five seeds, on the synthetic data set.

As many tasks and frames as the paper has, and no patients but one split of made-up ones: for the shape of the grid on
six tasks, not for claims about people. Some 300 runs of a few seconds each.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper

KEPT = ("synthetic_paper_class_il_grid", "synthetic_paper_baselines_class_il")

SPACE = [space for space in of_paper("class_il", "synthetic_paper", range(1), range(5)) if space.name in KEPT]
