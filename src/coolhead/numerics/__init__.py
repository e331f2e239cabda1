"""The only code that walks over an (n, k) array of logits.

Everything here works in row blocks that fit in the processor's cache, so that no
second array of the size of the logits is ever made.
"""
