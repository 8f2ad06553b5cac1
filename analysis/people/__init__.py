"""What the predictions of a run say of each person, and intervals over people."""
