"""A page on which a store can be watched and looked through, also while a sweep runs elsewhere.

An address is a `View`. With a `Snapshot` of the store it is a `Scene`. `contexts` computes what its page shows, and
`pages` renders that by a template. `app` answers requests, and `server` decides who may ask.
"""
