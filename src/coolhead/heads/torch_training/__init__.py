"""Training loops that need torch: ERM and MLDG."""
