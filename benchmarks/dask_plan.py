"""What 10⁹ and 10¹² rows would take, reckoned from what was measured.

    python benchmarks/dask_plan.py > experiments/dask-plan.md

Reads experiments/dask-passes.md (a row in a pass), dask-blocks.md (a block in a pass)
and dask-large.md (the standard error). 100 classes in float32; a worker of two cores
reads 100 MB/s from an object store, which is an assumption.
"""

from pathlib import Path

from origin import print_origin

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
ROW_BYTES, BLOCK_ROWS, READ_BYTES = 400, 100_000, 100e6
WORKERS = {10**9: 20, 10**12: 1_000}
FIT_PASSES, ALL_PASSES = 4, 5  # a look and three steps; and one to evaluate
SUMS, WORD = 4, 8  # numbers that come back of a block, for one that goes there


def table(name: str) -> list[dict[str, str]]:
    """The first table of a file, a dictionary for each row."""
    lines = (EXPERIMENTS / f"dask-{name}.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def measured() -> dict[str, float]:
    """Seconds of a row in all passes, of a block in one, megabytes, standard error."""
    row = {line["pass"]: float(line["CPU µs a row"]) for line in table("passes")}
    few, many = table("blocks")[0], table("blocks")[-1]
    blocks = float(many["blocks"].replace(",", ""))
    large = table("large")[-1]
    error = float(large["standard error of log T"])
    work = row["look"] + (FIT_PASSES - 1) * row["Newton step"] + row["evaluate"]
    grown = float(many["MB at most"]) - float(many["MB before"])
    return {
        "row": 1e-6 * work,
        "block": 1e-3 * float(many["client's CPU ms a block and pass"]),
        "start": 1e6 * float(few["MB before"]),
        "block bytes": 1e6 * grown / blocks,
        "error of one row": error * float(large["rows"].replace(",", "")) ** 0.5,
    }


def plan(n_rows: int, cost: dict[str, float]) -> dict[str, str]:
    """A column of the table."""
    n_blocks, n_bytes = n_rows / BLOCK_ROWS, n_rows * ROW_BYTES
    client = cost["start"] + n_blocks * cost["block bytes"]
    up = n_blocks * SUMS * WORD
    error = cost["error of one row"] / n_rows**0.5
    return {
        "logits": size(n_bytes),
        f"blocks of {BLOCK_ROWS:,} rows": f"{n_blocks:,.0f}",
        f"read in {ALL_PASSES} passes": size(ALL_PASSES * n_bytes),
        "processor time, fit and evaluate": span(n_rows * cost["row"]),
        "reading a pass; with so many workers": (
            f"{span(n_bytes / READ_BYTES / WORKERS[n_rows])}; {WORKERS[n_rows]:,}"
        ),
        "scheduling a pass": span(n_blocks * cost["block"]),
        "scheduling a pass, blocks ten times as large": span(
            n_blocks / 10 * cost["block"]
        ),
        "memory of the client": size(client),
        "network of a Newton step, up and down": f"{size(up)}, {size(up / SUMS)}",
        "standard error of log T from all rows": f"{error:.0e}",
    }


def size(n_bytes: float) -> str:
    """A number of bytes as one reads it."""
    for unit, word in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if n_bytes >= unit:
            found = n_bytes / unit
            return f"{found:.0f} {word}" if found >= 10 else f"{found:.1f} {word}"
    return f"{n_bytes / 1e3:.0f} kB"


def span(seconds: float) -> str:
    """A time as one reads it."""
    for unit, word in ((3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:,.0f} {word}"
    return f"{seconds:.0f} s"


def main() -> None:
    print_origin()
    cost = measured()
    small, large = (plan(rows, cost) for rows in WORKERS)
    print("| | 10⁹ rows | 10¹² rows |\n|---|---|---|")
    for name in small:
        print(f"| {name} | {small[name]} | {large[name]} |")


if __name__ == "__main__":
    main()
