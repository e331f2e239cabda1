"""The end of an error sentence: which name was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_LISTED = 20


def suggest(wrong: str, known: Iterable[str]) -> str:
    """'; did you mean X?' or the known names, to end an error message."""
    names = [str(name) for name in known]
    by_case = {name.casefold(): name for name in names}
    close = get_close_matches(wrong.casefold(), by_case, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {by_case[close[0]]!r}?"
    more = ", ..." if len(names) > MOST_LISTED else ""
    return f"; known: {', '.join(names[:MOST_LISTED]) or 'none'}{more}"
