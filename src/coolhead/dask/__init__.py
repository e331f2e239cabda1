"""The same fit, prediction and evaluation where one machine is not enough.

Everything takes Dask arrays or dataframes and runs on the user's own
`dask.distributed.Client`, or on local threads where there is none.
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
