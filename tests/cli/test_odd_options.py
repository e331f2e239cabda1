"""Options that no work can follow from are refused before any."""

import pytest


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("sweep", "digits", "--seeds", "-1"), 1, "seeds: found -1; wanted"),
        (("sweep", "digits", "--seeds", "0,0"), 1, "seeds must be distinct"),
        (
            ("sweep", "digits", "--set", "seeds=[]"),
            1,
            "and at least one",
        ),
        (("sweep", "digits", "--set", "methods.names=[]"), 1, "names no method"),
        (("sweep", "digits", "--jobs", "0"), 2, "'--jobs'"),
        (("demo", "--jobs", "-7"), 2, "'--jobs'"),
        (("results", "--seeds", "0"), 2, "'--seeds'"),
    ],
)
def test_of_runs(run, tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    found, _, err = run(*words)
    assert (found, err.count("\n")) == (code, 1) and said in err
    assert not list(tmp_path.iterdir())


def test_methods_are_not_called_domains(run, npz):
    code, _, err = run("compare", npz, "--methods", ",")
    assert code == 2 and "names no method" in err


def test_a_run_on_the_page_is_looked_at_first(run, tmp_path):
    words = ("--out", tmp_path / "page.md", "--folder", tmp_path / "runs")
    code, _, err = run("results", "--run", tmp_path, *words)
    assert code == 1 and "holds no run.json" in err
    assert not (tmp_path / "runs").exists()


def test_a_file_is_no_run(run, npz):
    code, _, err = run("report", npz)
    assert code == 1 and f"{npz} is a file; wanted the folder of a run" in err
