"""Compare methods on saved predictions by leaving out one domain at a time."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.fit import (
    ClustersOption,
    ReferenceOption,
    SeedOption,
    SourceOption,
    find_sources,
    load_labelled,
    read_reference,
    split_names,
)
from coolhead.cli.terminal import (
    BinsOption,
    ClassOption,
    DrawsOption,
    InputOption,
    JsonOption,
)


def compare(
    predictions: Annotated[Path, typer.Argument(help="Labelled predictions.")],
    methods: Annotated[
        str | None, typer.Option(help="Methods to compare, as in auto,ensemble.")
    ] = None,
    domains: Annotated[
        str | None, typer.Option(help="Domains to use, as in a,b,c.")
    ] = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    scores: InputOption = None,
    clusters: ClustersOption = 8,
    bins: BinsOption = None,
    class_name: ClassOption = None,
    draws: DrawsOption = 1000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit methods on all domains but one, and score them on that one."""
    from coolhead.io.files import check_inputs

    check_inputs(predictions, reference)
    from coolhead.cli.apply import wanted_input
    from coolhead.cli.fit import DEFAULT_METHOD, build_method
    from coolhead.cli.terminal import plain_warnings, print_json, score_settings
    from coolhead.compare import compare_methods, mean_scores
    from coolhead.io.reading import open_predictions

    built = {
        name: build_method(name, clusters, seed)
        for name in split_names(methods, "method") or default_methods()
    }
    sources = find_sources(list(built.values()), source)
    with plain_warnings():
        kind = wanted_input(scores, {}, open_predictions(predictions))
        rows = load_labelled(predictions, kind, domains, sources)
        if methods is None and rows.features is None:
            built = {
                name: method
                for name, method in built.items()
                if name == DEFAULT_METHOD or not method.uses_features
            }
        found = compare_methods(
            rows,
            built,
            source=sources,
            reference_features=read_reference(list(built.values()), reference),
            random_state=seed,
            **score_settings(bins, class_name, draws),
        )
    means = mean_scores(found)
    if as_json:
        best = {score.domain: score.method for score in found if score.best}
        print_json({"scores": found, "best": best, "mean_ece": means})
        return
    _print_scores(found, means)


def default_methods() -> list[str]:
    """The quick methods that need nothing but calibration domains."""
    from coolhead.cli.fit import FIRST, method_names

    return [name for name in method_names() if name in FIRST]


def _print_scores(found: list[Any], means: dict[str, float]) -> None:
    from coolhead.cli.terminal import in_percent, print_table

    names = list(dict.fromkeys(score.domain for score in found))
    by_method: dict[str, list[Any]] = {method: [] for method in means}
    for score in found:
        by_method[score.method].append(score)
    named = found[0].class_ece is not None
    rows = [
        (
            method,
            f"{100 * means[method]:.1f}",
            *([_mean([own.class_ece for own in scores])] if named else []),
            *(in_percent(own.ece) + ("*" if own.tied else " ") for own in scores),
            _mean([own.classwise for own in scores]),
        )
        for method, scores in by_method.items()
    ]
    title = "ECE in % of each domain, fitted on the others [95 % interval]"
    notes = ["* lowest of its column, or not distinguishable from the lowest"]
    columns = ["left out:", "mean", *(["the class"] * named), *names, "class-wise"]
    print_table(columns, rows, title, notes, extra=["class-wise"])


def _mean(errors: list[float]) -> str:
    return f"{100 * sum(errors) / len(errors):.1f}"
