"""Several indexes asked as one: their rows, views and searches joined."""
