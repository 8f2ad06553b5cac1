"""Execution of runs: Ray, Tune, workers and the live display.

`launch` checks a request (`fit`), chooses `devices` and `workers`, and returns an `outcome`. The `driver` takes one
feed after another from `feeding/sweep_feeds`: runs, then trials, then the runs that these chose. Workers get jobs from
a feed: this process (`alone`), Ray (`on_ray`, `tune`), or one after the other (`alone_first`). `feeding/relay` passes
their `reports` on to store, display, feed and observers. `worker/` computes jobs; `rerun` repeats a stored run.
"""
