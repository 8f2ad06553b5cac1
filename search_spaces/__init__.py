"""Search-space files of the paper's experiments, and of some more; `clops-sweep new` copies them."""
