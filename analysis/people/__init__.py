"""Accuracy of each person, and intervals over people, from the predictions of runs."""
