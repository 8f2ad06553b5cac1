"""Tables of comparisons and strategies, and LaTeX output."""
