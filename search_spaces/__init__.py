"""Search-space files of the paper's experiments and of further studies; `clops-sweep new --from NAME` copies one."""
