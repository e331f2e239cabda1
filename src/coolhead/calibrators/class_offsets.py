"""Class offsets: one number for each class, added to the scaled logits.

The family is ``softmax(z / T(x) + b)``. A temperature corrects how confident a
classifier is; b corrects which classes it favours. The offsets of a domain are taken
as draws around common ones: b_d ~ N(w · b₀, spread²).

b₀ minimises the penalised loss of the calibration domains, each with the same weight.
The share w is 0 unless left-out domains gain by w · b₀. In a new domain b is moved by
its unlabelled rows (`move_to_shares`) and by its labels (`OffsetProblem.solve`).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from coolhead.calibrators.data import canonical_order
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.softmax import softmax

# Standard deviation of the penalty on b₀, wide: left-out domains guard against noise.
POOLED_SCALE = 1.0
# Shares of b₀ that are tried, in this order.
SHARES = (0.0, 0.5, 1.0)
# Standard errors that the gain of half of b₀ must exceed, and the level of the t test
# of all against half; chosen on development families (docs/class-offsets.md).
GAIN_ERRORS, FULL_LEVEL = 1.0, 0.95
# Typical spread of the offsets of domains around the common ones, and the number of
# domains that it is worth; chosen on development families (docs/class-offsets.md).
SPREAD, SPREAD_WORTH = 0.6, 4.0
# Penalty and upper limit of the step towards the class shares, chosen there, too.
STEP_PENALTY, LARGEST_STEP = 0.3, 0.75
# Up to so many classes Newton's steps use the whole matrix of second derivatives.
DENSE_CLASSES = 64
LONGEST_STEP = 1.5
# The offsets are few: more elements than this are thinned to evenly spaced rows.
MOST_ELEMENTS = 2_000_000
LEAST_ROWS = 50
BATCH_ROWS = 2_000
# Parts of one domain are alike: what they gain must be beyond chance.
CV_FOLDS, CV_ERRORS = 5, 2.0
SMALLEST_SHARE = 1e-6
LEAST_BIAS = 0.05


@dataclass(frozen=True)
class ClassOffsets:
    """Class offsets learned from calibration domains, and how they did out of domain.

    Attributes
    ----------
    offsets : ndarray of shape (n_classes,)
        w · b₀, centred; zeros where left-out domains do not gain.
    share : float
        w.
    spread : float
        Standard deviation of a domain's own offsets around these.
    step : float
        How far a batch's mean probabilities go towards the class shares of the
        calibration labels.
    left_out : ndarray of shape (n_folds, n_classes)
        The offsets without each domain.
    gains, accuracy_changes : ndarray of shape (n_folds,)
        NLL gained and accuracy changed by them on each left-out domain.
    """

    offsets: np.ndarray
    share: float
    spread: float
    step: float
    left_out: np.ndarray
    gains: np.ndarray
    accuracy_changes: np.ndarray


class GroupSums(NamedTuple):
    """Sums over the rows of each group at some offsets.

    loss, right : (n_groups,) weighted means. shares : (n_groups, n_classes) mean
    probabilities. gradient : (n_groups, n_classes). curvature : of the same shape, or
    (n_groups, n_classes, n_classes) for few classes.
    """

    loss: np.ndarray
    right: np.ndarray
    shares: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray


class OffsetProblem:
    """Labelled rows in groups; their loss is a function of class offsets.

    Parameters
    ----------
    logits : ndarray of shape (n_samples, n_classes)
    temperature : ndarray of shape (n_samples,)
    labels : ndarray of shape (n_samples,)
    codes : ndarray of shape (n_samples,)
        Group of each row, from 0 on.
    weights : ndarray of shape (n_samples,), default=None
    """

    def __init__(
        self,
        logits: np.ndarray,
        temperature: np.ndarray,
        labels: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray | None = None,
    ):
        order = np.argsort(codes, kind="stable")
        self.logits, self.order = logits, order
        self.temperature, self.labels = temperature[order], labels[order]
        self.ends = np.cumsum(np.bincount(codes))
        weights = np.ones(len(order)) if weights is None else weights
        # A group's weights sum to the number of rows of one weight that it is worth.
        total = np.bincount(codes, weights)
        worth = total / np.bincount(codes, np.square(weights))
        self.weights = (weights * worth[codes])[order]
        self.sizes = total * worth

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups and of classes."""
        return len(self.ends), self.logits.shape[1]

    def label_shares(self) -> np.ndarray:
        """Return the shares of the classes among the labels, (n_groups, n_classes)."""
        n_groups, n_classes = self.shape
        groups = np.repeat(np.arange(n_groups), np.diff(self.ends, prepend=0))
        place = groups * n_classes + self.labels
        counts = np.bincount(place, self.weights, n_groups * n_classes)
        return counts.reshape(n_groups, n_classes) / self.sizes[:, None]

    def sums(self, offsets: np.ndarray) -> GroupSums:
        """Walk over the rows once, with the offsets (n_groups, n_classes) of groups."""
        n_groups, n_classes = self.shape
        dense = n_classes <= DENSE_CLASSES
        loss, right = np.zeros(n_groups), np.zeros(n_groups)
        mass, squares = np.zeros(self.shape), np.zeros(self.shape)
        curvature = np.zeros((n_groups, n_classes, n_classes) if dense else (0, 0, 0))
        for group, end in enumerate(self.ends):
            first = self.ends[group - 1] if group else 0
            for part in row_blocks(end - first, n_classes):
                rows = slice(first + part.start, first + part.stop)
                weights, labels = self.weights[rows], self.labels[rows]
                block, own = self.logits[self.order[rows]], np.arange(len(labels))
                found = softmax(block, self.temperature[rows], offsets[group])
                found = found.astype(np.float64, copy=False)
                loss[group] -= weights @ np.log(np.maximum(found[own, labels], 1e-300))
                right[group] += weights @ (found.argmax(axis=1) == labels)
                mass[group] += weights @ found
                if dense:
                    curvature[group] -= (found * weights[:, None]).T @ found
                else:
                    squares[group] += weights @ np.square(found)
        if dense:
            curvature[:, np.arange(n_classes), np.arange(n_classes)] += mass
        else:
            curvature = mass - squares
        counts = self.label_shares() * self.sizes[:, None]
        return GroupSums(
            loss / self.sizes,
            right / self.sizes,
            mass / self.sizes[:, None],
            mass - counts,
            curvature,
        )

    def solve(
        self, center: np.ndarray, spread: float, *, max_iter: int = 20
    ) -> np.ndarray:
        """Find the most probable offsets of each group around a common centre.

        Parameters
        ----------
        center : ndarray of shape (n_classes,)
        spread : float
            Standard deviation of the groups' offsets around the centre.
        max_iter : int, default=20

        Returns
        -------
        offsets : ndarray of shape (n_groups, n_classes)
        """
        offsets = np.tile(center, (self.shape[0], 1)).astype(np.float64)
        for _ in range(max_iter):
            found = self.sums(offsets)
            pull = (offsets - center) / spread**2
            step = _steps(found.gradient + pull, found.curvature, spread**-2)
            offsets += step
            if np.abs(step).max() < 1e-4:
                break
        return centred(offsets)

    def pooled(self) -> tuple[np.ndarray, np.ndarray]:
        """Find the offsets of all groups together, and those without each group.

        Groups count the same.

        Returns
        -------
        offsets : ndarray of shape (n_classes,)
        without : ndarray of shape (n_groups, n_classes)
        """
        n_groups, n_classes = self.shape
        every = np.ones((1, n_groups), bool)
        offsets = np.zeros((1, n_classes))
        for _ in range(20):
            found = self.sums(np.repeat(offsets, n_groups, axis=0))
            step = self._pooled_steps([found], offsets, every)
            offsets = offsets + step
            if np.abs(step).max() < 1e-3:
                break
        if n_groups == 1:
            return centred(offsets[0]), np.zeros(self.shape)
        others = ~np.eye(n_groups, dtype=bool)
        without = np.repeat(offsets, n_groups, axis=0)
        without += self._pooled_steps([found] * n_groups, without, others)
        for _ in range(2):
            each = [self.sums(np.tile(one, (n_groups, 1))) for one in without]
            without += self._pooled_steps(each, without, others)
        return centred(offsets[0]), centred(without)

    def _pooled_steps(
        self, sums: list[GroupSums], offsets: np.ndarray, kept: np.ndarray
    ) -> np.ndarray:
        """Return Newton's steps of offsets (m, n_classes), each for some groups."""
        gradients, curvatures = [], []
        for found, groups in zip(sums, kept, strict=True):
            scale = groups / self.sizes / np.mean(1 / self.sizes[groups])
            gradients.append(np.tensordot(scale, found.gradient, 1))
            curvatures.append(np.tensordot(scale, found.curvature, 1))
        pull = offsets / POOLED_SCALE**2
        gradient = np.stack(gradients) + pull
        return _steps(gradient, np.stack(curvatures), POOLED_SCALE**-2)


def _steps(gradient: np.ndarray, curvature: np.ndarray, penalty: float) -> np.ndarray:
    """Return damped steps (m, n_classes) towards smaller penalised losses."""
    if curvature.ndim == 3:
        hessian = curvature + penalty * np.eye(curvature.shape[1])
        step = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
    else:
        # Twice its diagonal is never less than a matrix of this kind.
        step = -gradient / (2 * curvature + penalty)
    longest = np.abs(step).max(axis=1, keepdims=True)
    return step * np.minimum(1, LONGEST_STEP / np.maximum(longest, 1e-12))


def used_offsets(calibrator: Any) -> np.ndarray | None:
    """Return the class offsets of a fitted calibrator, None where it has none."""
    found = getattr(calibrator, "class_offsets_", None)
    return None if found is None or not np.any(found) else np.asarray(found)


def add_offsets(
    logits: np.ndarray, temperature: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """Return logits that the same temperatures scale to scores with class offsets.

    softmax((z + T b) / T) is softmax(z / T + b), so what is written for temperatures
    alone serves with class offsets, too.

    offsets : (n_classes,), or (n_samples, n_classes) of every row.
    """
    added = logits + temperature[:, None] * offsets
    return added.astype(np.promote_types(logits.dtype, np.float32), copy=False)


def centred(offsets: np.ndarray) -> np.ndarray:
    """Return offsets that sum to zero, which gives the same probabilities."""
    return offsets - offsets.mean(axis=-1, keepdims=True)


def left_out_problem(
    logits: np.ndarray,
    temperature: np.ndarray,
    labels: np.ndarray,
    folds: np.ndarray,
    weights: np.ndarray | None = None,
) -> OffsetProblem:
    """Make the problem of the rows of left-out domains.

    Parameters
    ----------
    logits : ndarray of shape (n_samples, n_classes)
    temperature : ndarray of shape (n_samples,)
        By fits that did not see the domain of the row, where there are such.
    labels : ndarray of shape (n_samples,)
    folds : ndarray of shape (n_samples,)
        Number of the left-out domain of each row, -1 for rows of none. Where there is
        none at all, parts of the rows take the place of domains.
    weights : ndarray of shape (n_samples,), default=None

    """
    n_folds, kept = int(folds.max(initial=-1)) + 1, np.flatnonzero(folds >= 0)
    if n_folds < 2:
        kept, n_folds = np.arange(len(labels)), min(CV_FOLDS, len(labels))
        folds = np.empty(len(labels), np.intp)
        folds[canonical_order(logits, labels)] = kept % n_folds
    kept = _thinned(kept, folds[kept], logits)
    problem = OffsetProblem(
        logits,
        temperature[kept],
        labels[kept],
        folds[kept],
        None if weights is None else weights[kept],
    )
    problem.order = kept[problem.order]
    return problem


def learn_class_offsets(
    problem: OffsetProblem, *, across_domains: bool
) -> ClassOffsets:
    """Learn class offsets, and whether they help out of domain.

    Parameters
    ----------
    problem : OffsetProblem
        Of `left_out_problem`.
    across_domains : bool
        Whether its groups are domains, not parts of one.
    """
    common, without = problem.pooled()
    tried = [problem.sums(share * without) for share in SHARES]
    gains = np.array([tried[0].loss - found.loss for found in tried])
    changes = np.array([found.right - tried[0].right for found in tried])
    best = _best_share(gains, changes, GAIN_ERRORS if across_domains else CV_ERRORS)
    share, spread, step = SHARES[best], SPREAD, 0.0
    if across_domains:
        spread = _spread(problem, share * common)
        step = _step(problem.label_shares(), tried[best].shares)
    return ClassOffsets(
        share * common,
        share,
        spread,
        step,
        share * without if across_domains else without[:0],
        gains[best],
        changes[best],
    )


def warn_of_class_bias(
    problem: OffsetProblem,
    offsets: np.ndarray,
    names: Sequence[str] | None,
    *,
    stacklevel: int = 2,
) -> list[int]:
    """Warn of classes whose mean probability is far from their share of the labels.

    Far means five points, four standard errors of the share, and three standard errors
    of the mean over the groups: groups that differ from each other have no common bias.

    Parameters
    ----------
    problem : OffsetProblem
    offsets : ndarray of shape (n_classes,)
        Those in use.
    names : sequence of str or None
        Names of the classes.
    """
    shares = problem.label_shares()
    if len(shares) < 2:
        return []  # one row
    apart = problem.sums(np.tile(offsets, (len(shares), 1))).shares - shares
    mean, total = shares.mean(axis=0), problem.sizes.sum()
    error = np.sqrt(np.maximum(mean * (1 - mean), 1 / total) / total)
    noise = 4 * error
    if len(apart) > 1:
        spread = apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
        noise = np.maximum(noise, 3 * spread)
    far = np.abs(apart.mean(axis=0))
    found = np.flatnonzero(far > np.maximum(LEAST_BIAS, noise))
    found = found[np.argsort(-far[found], kind="stable")]
    if len(found):
        said = 100 * (mean + apart.mean(axis=0))
        listed = ", ".join(
            f"class {names[k] if names else k} has a mean probability of {said[k]:.0f} "
            f"%, but {100 * mean[k]:.0f} % of the labels"
            for k in found[:3]
        )
        warnings.warn(
            f"the classifier favours some classes out of domain: {listed}; was it "
            "trained with class weights or resampling? A temperature cannot correct it",
            stacklevel=stacklevel + 1,
        )
    return found.tolist()


def _best_share(gains: np.ndarray, changes: np.ndarray, n_errors: float) -> int:
    """Return the number of the share to use.

    Half, where its gain exceeds one standard error and accuracy does not fall. All,
    where it is then better than half by a t test: few domains are weak evidence, and
    in a new domain half loses little of what all would gain.

    gains, changes : (n_shares, n_folds) of NLL and of accuracy; the first share is 0.
    """
    n_folds = gains.shape[1]
    if n_folds < 2:
        return 0
    more = np.diff(gains, axis=0)
    error = more.std(axis=1, ddof=1) / np.sqrt(n_folds)
    limits = np.array([n_errors, stdtrit(n_folds - 1, FULL_LEVEL)]) * error
    clear = (more.mean(axis=1) > limits) & (changes[1:].mean(axis=1) >= 0)
    return int(np.cumprod(clear).sum())


def _spread(problem: OffsetProblem, center: np.ndarray) -> float:
    """Measure the spread of the groups' own offsets beyond sampling noise.

    Expectation maximisation; the typical spread is worth a few groups.
    """
    n_groups, n_classes = problem.shape
    offsets, spread = np.tile(center, (n_groups, 1)), SPREAD
    for _ in range(5):
        found, penalty = problem.sums(offsets), spread**-2
        pull = penalty * (offsets - center)
        offsets = offsets + _steps(found.gradient + pull, found.curvature, penalty)
        own = found.curvature
        if own.ndim == 3:
            own = own[:, np.arange(n_classes), np.arange(n_classes)]
        variance = np.square(offsets - center) + 1 / (own + penalty)
        total = SPREAD_WORTH * SPREAD**2 + variance.mean(axis=1).sum()
        spread = float(np.sqrt(total / (SPREAD_WORTH + n_groups)))
    return spread


def _step(label_shares: np.ndarray, mean_probabilities: np.ndarray) -> float:
    """Regress what is missing of each left-out domain's shares on what others suggest.

    Where the shares of the domains differ, or the classifier predicts them well, the
    step is small; where they agree and the predictions do not, it is large.

    label_shares, mean_probabilities : (n_folds, n_classes)
    """
    n_folds, n_classes = label_shares.shape
    total = label_shares.sum(axis=0)
    others = (total - label_shares) / (n_folds - 1)
    scale = 1 / np.maximum(total / n_folds, 1 / (4 * n_classes))
    suggested = others - mean_probabilities
    missing = label_shares - mean_probabilities
    along = float((scale * missing * suggested).sum())
    length = float((scale * np.square(suggested)).sum())
    return float(np.clip(along / (length + STEP_PENALTY), 0.0, LARGEST_STEP))


def move_to_shares(
    logits: np.ndarray,
    temperature: np.ndarray,
    offsets: np.ndarray,
    shares: np.ndarray,
    step: float,
) -> np.ndarray:
    """Move offsets until the mean probabilities went a step towards class shares.

    Parameters
    ----------
    logits : ndarray of shape (n_samples, n_classes)
        Unlabelled rows.
    temperature : ndarray of shape (n_samples,)
    offsets : ndarray of shape (n_classes,)
        Where to start.
    shares : ndarray of shape (n_classes,)
    step : float
        0 stays, 1 goes all the way.
    """
    if not step:
        return offsets
    rows = canonical_order(logits)
    rows = rows[:: max(1, -(-len(rows) // BATCH_ROWS))]
    wanted, moved = None, offsets
    for _ in range(12):
        mean = np.zeros(logits.shape[1])
        for part in row_blocks(len(rows), logits.shape[1]):
            some = rows[part]
            mean += softmax(logits[some], temperature[some], moved).sum(axis=0)
        mean = np.maximum(mean / len(rows), SMALLEST_SHARE)
        if wanted is None:
            wanted = np.maximum((1 - step) * mean + step * shares, SMALLEST_SHARE)
        change = np.clip(np.log(wanted / mean), -1, 1)
        moved = moved + change
        if np.abs(change).max() < 0.01:
            break
    return centred(moved)


def _thinned(kept: np.ndarray, folds: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Return evenly spaced rows of each fold, where there are very many elements."""
    n_folds = int(folds.max()) + 1
    most = max(LEAST_ROWS, MOST_ELEMENTS // (logits.shape[1] * n_folds))
    if np.bincount(folds).max() <= most:
        return kept
    found = []
    for fold in range(n_folds):
        rows = kept[folds == fold]
        rows = rows[canonical_order(logits[rows])]
        found.append(rows[:: max(1, -(-len(rows) // most))])
    return np.sort(np.concatenate(found))
