"""Gives this package and its peers the same texts, graph, vectors and questions, and compares them."""
