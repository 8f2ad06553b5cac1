"""Small data sets are read in this process: others that read records take longer to start than the rest of a test."""

from __future__ import annotations

from clops_sweep.data.prepared import record_pool

OF_THE_PACKAGE = record_pool.WORTH_PARALLEL
"""From how many records on other processes read them."""

record_pool.WORTH_PARALLEL = 1000
