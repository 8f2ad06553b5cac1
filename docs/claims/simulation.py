"""Simulated error rates of all verdicts, p-values and intervals over splits and seeds: the tables of docs/claims.md.

python docs/claims/simulation.py          writes the tables (half an hour)

A study of differences compares methods that are equally good: each is the same learner on its own features, drawn from
the same distribution. Person i has a label y_i = ±1 and, for each method, a mean x_i ~ N(y_i mu, I) of D features. The
learner computes the mean w of y_i x_i over the training people. The frames of person i have mean x_i and standard
deviation 1, so the accuracy on them is Phi(y_i w.x_i / |w|). People thus affect both training and evaluation.
docs/claims/intervals.py simulates intervals over people.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from clops_sweep.analysis.claims.catalogue import CLAIMS as OF_PAPER
from clops_sweep.analysis.claims.catalogue import CLOPS, FINETUNE
from clops_sweep.analysis.claims.claim_runs import ClaimRuns, ContrastRuns
from clops_sweep.analysis.claims.run_measures import MEASURES, RunTables, Sampled
from clops_sweep.analysis.claims.verdicts import Evidence, Outcome, decided, evidence_of
from clops_sweep.analysis.statistics import ALPHA, Fold, Partition, Split, paired_difference, partitions
from clops_sweep.analysis.tables.tuning import optimism_of
from clops_sweep.experiment.spaces.claims import Claim, Contrast

DOCUMENT, HEADING = Path(__file__).parents[1] / "claims.md", "## Simulated error rates\n"
FEATURES, SEPARATION, CLAIMS, MATTERS, GAIN = 5, 1.0, 10, 0.02, 0.1
STUDIES = 1000
CLAIM = Claim("simulated", "x", (Contrast(CLOPS, FINETUNE, "test_accuracy"),), "more", MATTERS)
RUNS = ClaimRuns(CLAIM, "simulated", (ContrastRuns(CLAIM.contrasts[0], {}),), "", {})
