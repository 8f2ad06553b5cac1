"""The paper's claims, the runs that decide them, and the verdicts."""
