"""A small network on the largest logits (PTS)."""
