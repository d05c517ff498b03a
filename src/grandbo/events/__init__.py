"""Events: their models, the chain that seals them, the log that holds them, and its verification."""
