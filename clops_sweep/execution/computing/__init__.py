"""The ways to compute the jobs of a launch, each with a function `workers` that runs the jobs of a feed.

`workers` chooses one: this process (`alone`), Ray (`on_ray`, with Tune in `tune`), or this process until Ray would end
the rest sooner (`alone_first`, which asks `ray_pays`).
"""
