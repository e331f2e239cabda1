"""Read images ahead of the network, in batches whose make-up never changes."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coolhead.torch.images.augment import Reader, read_plain
from coolhead.torch.images.transform import ImageTransform

READ_AHEAD = 2


@dataclass(frozen=True)
class BatchPlan:
    """Rows start … stop - 1 form one batch of a shard."""

    start: int
    stop: int
    shard: int
    ends_shard: bool

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.stop - self.start


@dataclass(frozen=True)
class ImageBatch:
    """What was read (b, ...) of the images of one batch, their rows, and the others."""

    plan: BatchPlan
    values: np.ndarray
    rows: np.ndarray
    problems: list[tuple[int, str]]


def plan_batches(n_rows: int, batch_size: int, shard_rows: int) -> list[BatchPlan]:
    """Cut rows into batches, and batches into shards of about `shard_rows` rows.

    The cut depends on the numbers alone: a run that goes on after a kill sees the
    same batches, hence computes the same bits.
    """
    per_shard = max(1, shard_rows // batch_size)
    starts = range(0, n_rows, batch_size)
    return [
        BatchPlan(
            start=start,
            stop=min(start + batch_size, n_rows),
            shard=number // per_shard,
            ends_shard=number % per_shard == per_shard - 1 or number == len(starts) - 1,
        )
        for number, start in enumerate(starts)
    ]


def read_batches(
    paths: Sequence[Path],
    plans: Sequence[BatchPlan],
    transform: ImageTransform,
    workers: int,
    *,
    reader: Reader = read_plain,
) -> Iterator[ImageBatch]:
    """Yield the batches in order, reading some ahead in threads.

    Threads, since Pillow decodes and resizes outside the interpreter's lock.
    """
    # Batches of few images must not leave workers idle.
    ahead = max(READ_AHEAD, 2 * workers // max((p.size for p in plans), default=1))
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[BatchPlan, list[Future]]] = deque()
        try:
            for plan in plans:
                rows = range(plan.start, plan.stop)
                jobs = [pool.submit(reader, i, paths[i], transform) for i in rows]
                waiting.append((plan, jobs))
                if len(waiting) > ahead:
                    yield _finish(*waiting.popleft())
            while waiting:
                yield _finish(*waiting.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _finish(plan: BatchPlan, jobs: list[Future]) -> ImageBatch:
    results = [job.result() for job in jobs]
    good = [i for i, found in enumerate(results) if not isinstance(found, str)]
    return ImageBatch(
        plan=plan,
        values=np.stack([results[i] for i in good]) if good else np.empty(0, "f4"),
        rows=plan.start + np.array(good, np.int64),
        problems=[
            (plan.start + i, found)
            for i, found in enumerate(results)
            if isinstance(found, str)
        ],
    )
