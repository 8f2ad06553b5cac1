"""What the head of an update report says for readers of the file: names of its entries, and how parts begin."""

from __future__ import annotations

from typing import Final

PARTS: Final = "clops-sweep-parts"
"""Name of the entry that lists the parts of the page."""

CRITERIA: Final = "clops-sweep-criteria"
"""Name of the entry with the name of the file of criteria."""

VERDICT: Final = "clops-sweep-verdict"
"""Name of the entry with the verdict and the limits of a page that is judged by criteria, as JSON."""

SUBGROUPS: Final = "subgroups by "
"""How the part of a page with subgroups begins; their column follows."""

JUDGED_BY: Final = "acceptance criteria of SHA-256 "
"""How the part of a page with acceptance criteria begins; the first digits of their hash follow."""
