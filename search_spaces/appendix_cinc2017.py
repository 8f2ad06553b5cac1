"""The paper's Class-IL experiments on the CinC Challenge 2017: two tasks, 4,264 people.

Normal rhythm and atrial fibrillation, then other rhythms and noise. Enough people for the splits to be as good as
independent of each other, and too few tasks for what is claimed of curricula. Ten epochs a task instead of forty: a
task has eight times the frames that one of `appendix_mitbih` has. Grids are as coarse as there.

2,000 runs with five seeds, three hours of processor time.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper
from clops_sweep.search_spaces.methods_cinc2017 import cinc2017  # noqa: F401  (declares it)

SPACE = of_paper("class_il", "cinc2017", range(6), epochs_per_task=10)
