"""The numbers printed in the tables of Gong et al. (ICCV 2021), uncorrected."""

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars


def paper_table_names() -> list[str]:
    """Names that `paper_table` knows, sorted."""
    tables = files(__name__).joinpath("tables").iterdir()
    return sorted(t.name[:-4] for t in tables if t.name.endswith(".csv"))


def paper_table(name: str) -> "polars.DataFrame":
    """One table of the paper as a polars DataFrame.

    ECE, gain and accuracy are in per cent. Target ALL is the paper's overall column.
    Standard deviations in the by-split tables are over 1000 subsamples of one split,
    in the by-target tables pooled over subsamples and splits. `significant` is the
    paper's asterisk, `bold` its bold face; null means not printed. The calibration
    domains are those that are neither source nor target.

    Parameters
    ----------
    name : one of `paper_table_names()`
    """
    import polars

    names = paper_table_names()
    if name not in names:
        msg = f"name is {name!r}; wanted one of {', '.join(names)}"
        raise ValueError(msg)
    table = files(__name__).joinpath("tables", f"{name}.csv").read_bytes()
    return polars.read_csv(table, infer_schema_length=None)
