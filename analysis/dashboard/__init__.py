"""A page on which a store can be watched and looked through, also while a sweep runs elsewhere.

An address is a `View`. With a `Snapshot` of the store it is a `Scene`, of which `contexts` computes what `pages` renders
by a template. `app` answers requests with it, and `server` decides who may ask.
"""
