#!/usr/bin/env bash
# statsmodels 0.15.0: one NaN among p values makes all corrected values NaN, or counts as a test, by the method.
#
# Guess: multipletests leaves a NaN as it is and corrects the others as if it were not there, or raises. A NaN is what a
#        test of two equal columns returns, or of a subgroup with one person.
# Seen:  with fdr_bh, fdr_by, hommel and simes-hochberg all corrected values are NaN. fdr_bh nevertheless rejects, hommel
#        rejects nothing. With holm, bonferroni and holm-sidak the NaN stays alone, but counts as a test: the others are
#        larger than without it. There is no warning.
# Means: a filter such as corrected < 0.05 loses all that is significant, or the correction is stricter than the number
#        of tests. Remove NaN before.
#
# Output seen (p = 0.01, 0.02, 0.03):
#   fdr_bh: [0.03, 0.03, 0.03], 3 rejected; with a NaN [nan, nan, nan], 3 rejected
#   hommel: [0.03, 0.03, 0.03], 3 rejected; with a NaN [nan, nan, nan], 0 rejected
#   simes-hochberg: [0.03, 0.03, 0.03], 3 rejected; with a NaN [nan, nan, nan], 1 rejected
#   holm: [0.03, 0.04, 0.04], 3 rejected; with a NaN [0.04, 0.06, 0.06], 1 rejected
#   bonferroni: [0.03, 0.06, 0.09], 1 rejected; with a NaN [0.04, 0.08, 0.12], 1 rejected
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q statsmodels==0.15.0 scipy==1.17.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
from statsmodels.stats.multitest import multipletests

warnings.simplefilter("error")
values = [0.01, 0.02, 0.03]
for method in ("fdr_bh", "hommel", "simes-hochberg", "holm", "bonferroni"):
    rejected, corrected, *_ = multipletests(values, method=method)
    rejected_beside, beside, *_ = multipletests([*values, np.nan], method=method)
    print(
        f"{method}: {corrected.round(3).tolist()}, {rejected.sum()} rejected; "
        f"with a NaN {beside[:3].round(3).tolist()}, {rejected_beside.sum()} rejected"
    )
    if method in ("holm", "bonferroni"):
        assert np.all(beside[:3] > corrected), "this has changed"
    else:
        assert np.isnan(beside).all() and np.isfinite(corrected).all(), "this has changed"
PYTHON
