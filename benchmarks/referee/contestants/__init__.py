"""One small adapter for each compared package; each runs in an environment of its own."""
