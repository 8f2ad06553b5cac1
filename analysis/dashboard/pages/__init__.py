"""The pages of the dashboard as elements."""
