"""The write verbs: what may be said to the memory, what follows from it, and how it gets into the log."""
