"""The report: its sections, its HTML page, and use from notebooks."""
