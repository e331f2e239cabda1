"""Experiments: protocol (TOML), splits, cell (a pure function), sweep, tables.

A protocol says which domains play which role, which classifier is trained, which
methods compete and how they are evaluated. A sweep runs its cells in parallel and
leaves tidy Parquet files; the tables and the report read nothing else.
"""
