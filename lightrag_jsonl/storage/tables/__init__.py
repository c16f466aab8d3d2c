"""The tables of an index: one class of methods for each group, in SQL shared by all databases."""
