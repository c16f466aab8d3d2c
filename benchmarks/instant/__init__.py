"""This package with an instant model and a fast embedder in its own process: what it costs by itself."""
