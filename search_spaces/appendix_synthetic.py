"""The paper's Class-IL methods and its complete grid over b and a, with five seeds, on the synthetic data set.

There are as many tasks and frames as in the paper, but patients are simulated and have a single split. The results
show the shape of the grid on six tasks and support no claims about people. About 300 runs of a few seconds each.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper

KEPT = ("synthetic_paper_class_il_grid", "synthetic_paper_baselines_class_il")

SPACE = [space for space in of_paper("class_il", "synthetic_paper", range(1), range(5)) if space.name in KEPT]
