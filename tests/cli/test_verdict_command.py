"""`coolhead expect --need`: what to do with a model in a new domain."""

import json

import numpy as np

import coolhead as ch


def test_the_verdict_comes_first(tmp_path, run):
    data = ch.datasets.simulate_domains([1.0, 1.3, 1.6, 1.4], n_rows=400)
    seen, new = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    cal.save(tmp_path / "cal.skops")
    np.savez(tmp_path / "new.npz", logits=new.logits, features=new.features)
    words = "expect", tmp_path / "cal.skops", tmp_path / "new.npz"
    code, printed, _ = run(*words, "--need", "0.4")
    assert code == 0 and printed.startswith("use it: expected accuracy")
    code, printed, _ = run(*words, "--need", "0.99", "--json")
    verdict = json.loads(printed)["verdict"]
    assert verdict["answer"] == "do not use it here" and verdict["need"] == 0.99
    assert json.loads(run(*words, "--json")[1])["verdict"] is None
    code, _, complaint = run(*words, "--need", "80")
    assert code == 1 and complaint.startswith("coolhead: need is 80")
