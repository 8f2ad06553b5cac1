"""The paper's Time-IL and Domain-IL experiments on PTB-XL, in the place of Chapman's terms and the Challenge's leads.

The publisher has shifted the dates, so that what is learned one after the other are not real terms. Time-IL is quick:
420 runs, ten minutes of processor time for the first 500 recordings. In Domain-IL there are twelve tasks, and one run
of CLOPS takes 40 s: --where "scenario == 'time_il'" leaves it out.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper

SPACE = of_paper("time_il", "ptbxl", range(12)) + of_paper("domain_il", "ptbxl", range(3))
