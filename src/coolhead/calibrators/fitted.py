"""Methods of everything that is fitted: a new domain, a monitor, a file."""

import os
from typing import Any

import coolhead as ch


class FittedMethods:
    """What follows `fit` or `calibrate`, in one call each.

    The functions behind these methods build on calibrators, so they are looked up by
    their public names when they are used.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains()
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.AutoCalibrator().fit(
    ...     seen.logits, seen.labels, features=seen.features, sample_domain=seen.domains
    ... )
    >>> there = cal.new_domain(unseen.logits, unseen.features)
    >>> rows = there.rows_to_label(20)
    >>> better = there.with_labels(rows, unseen.labels[rows]).model
    >>> better.predict_proba(unseen.logits, unseen.features).shape
    (300, 3)
    >>> watch = cal.monitor()
    >>> watch.update(cal.details(unseen.logits, unseen.features))
    >>> print(watch.check().alarm)
    False
    """

    def new_domain(self, *rows: Any, **settings: Any) -> "ch.NewDomain":
        """Return a `NewDomain`: expected accuracy, rows to label, a corrected model.

        Parameters
        ----------
        *rows : array-like
            Unlabelled rows of the domain. Of a calibrator, logits and features; of a
            `CalibratedClassifier`, X; of a `CalibratedModule`, a data loader.
        **settings
            Other arguments of `NewDomain`.
        """
        return ch.NewDomain(self, *rows, **settings)

    def monitor(self, *rows: Any, **settings: Any) -> "ch.DriftMonitor":
        """Return a `DriftMonitor` that expects what the fit found out of domain.

        Parameters
        ----------
        *rows, **settings
            Arguments of `DriftMonitor.for_calibrator`. Without rows, the calibrator
            needs `evidence_`.
        """
        return ch.DriftMonitor.for_calibrator(self, *rows, **settings)

    def save(self, path: str | os.PathLike, **settings: Any) -> None:
        """Write a file that `load_calibrator` reads.

        Parameters
        ----------
        path : str or path-like
        **settings
            Other arguments of `save_calibrator`.
        """
        ch.save_calibrator(self, path, **settings)
