"""The read verbs. `query_topic` is the one read seam: every door passes through it and gives the same answer."""
