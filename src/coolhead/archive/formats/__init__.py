"""One file per kind of prediction file; each gives a `PredictionFile`."""
