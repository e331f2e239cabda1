"""Methods that see unlabelled target data and say so."""
