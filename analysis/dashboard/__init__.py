"""A page on which a store can be watched and looked through, also while a sweep runs elsewhere.

What is shown is computed by functions of a `Snapshot` and a `View` that return small records; other functions make
`Element` trees of these. Neither needs Dash: `app` alone turns elements into its components, `server` serves them.
"""
