"""Fit, predict and evaluate on Dask collections larger than one machine.

All functions take Dask arrays or dataframes and run on the current
`dask.distributed.Client`, or on local threads without one.
"""

from coolhead.extras import needs

with needs("coolhead.dask"):
    from coolhead.dask.evaluate import (
        Evaluation,
        confidence,
        evaluate,
        expected_calibration_error,
        predict_proba,
        temperature,
    )
    from coolhead.dask.fitting import fit, new_domain, take_sample
    from coolhead.dask.solving import fit_temperature

__all__ = [
    "Evaluation",
    "confidence",
    "evaluate",
    "expected_calibration_error",
    "fit",
    "fit_temperature",
    "new_domain",
    "predict_proba",
    "take_sample",
    "temperature",
]
