"""The dashboard: web pages that follow a store, also while a sweep runs elsewhere.

An address is parsed to a `View`; with a `Snapshot` of the store it becomes a `Scene`. `contexts` computes the data of a
page and `pages` renders its template. `app` answers requests, and `server` controls access.
"""
