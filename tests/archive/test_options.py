"""Multiple choice: rows with their own number of options, from JSON lines."""

import json

import numpy as np
import pytest

import coolhead as ch
from coolhead.io.reading import open_predictions, stream_blocks


def harness_line(number, scores, target, texts=None):
    """A line as lm-evaluation-harness writes it: numbers as text, in pairs."""
    texts = texts or [f" option {i}" for i in range(len(scores))]
    asked = {
        f"gen_args_{i}": {"arg_0": "Question?", "arg_1": text}
        for i, text in enumerate(texts)
    }
    answers = [[str(score), "False"] for score in scores]
    return {
        "doc_id": number,
        "target": target,
        "arguments": asked,
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
    }


@pytest.fixture
def folder(tmp_path):
    """Two tasks of three and five options, honest log-likelihoods made too sharp."""
    rng = np.random.default_rng(0)
    for task, width in (("arc_easy", 3), ("mmlu", 5)):
        lines = []
        for number in range(200):
            z = rng.normal(size=width)
            right = int((z + rng.gumbel(size=width)).argmax())
            target = str(right) if number % 2 else f"option {right}"
            lines.append(json.dumps(harness_line(number, (2 * z).tolist(), target)))
        file = tmp_path / f"samples_{task}_2026-01-02T03-04-05.123.jsonl"
        file.write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_folder_of_tasks(folder):
    rows = ch.load_archive(folder)
    assert rows.domain_sizes() == {"arc_easy": 200, "mmlu": 200}
    assert rows.logits.shape == (400, 5)
    assert np.isneginf(rows.select("arc_easy").logits[:, 3:]).all()
    cal = ch.TemperatureScaling().fit(rows.logits, rows.labels)
    assert cal.temperature_ == pytest.approx(2, rel=0.25)
    p = cal.predict_proba(rows.logits)
    assert np.isfinite(p).all() and (p[:200, 3:] == 0).all()
    # The mask is nothing else than the same rows without those columns.
    alone = rows.select("arc_easy")
    a = ch.TemperatureScaling().fit(alone.logits, alone.labels).temperature_
    b = ch.TemperatureScaling().fit(alone.logits[:, :3], alone.labels).temperature_
    assert a == pytest.approx(b, rel=1e-6)
    streamed = [
        block.labels for block in stream_blocks(open_predictions(folder), n_rows=7)
    ]
    np.testing.assert_array_equal(np.concatenate(streamed), rows.labels)


def test_plain_lines(tmp_path):
    file = tmp_path / "quiz.jsonl"
    lines = [
        {"logits": [1.0, 2.0], "label": 1, "domain": "a", "id": "q1"},
        {"logits": [1.0, 2.0, 0.5], "domain": "b"},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    found = open_predictions(file).load()
    assert found["labels"].tolist() == [1, -1]
    assert found["domains"].tolist() == ["a", "b"] and found["ids"][0] == "q1"
    ragged = [line["logits"] for line in lines]
    np.testing.assert_array_equal(ch.logits_from(ragged), found["logits"])


@pytest.mark.parametrize(
    "line, said",
    [
        ("{", "line 1 is no question"),
        ("{}", "wanted logits, or filtered_resps"),
        ('{"logits": [1]}', "has 1 options"),
        ('{"logits": [1, 2], "label": 2}', "target is 2 of 2 options"),
        ('{"logits": [1, 2], "label": "cat"}', "is no question"),
        ("[1, 2]", "is no question"),
    ],
)
def test_refusals(tmp_path, line, said):
    file = tmp_path / "quiz.jsonl"
    file.write_text(line)
    with pytest.raises(ValueError, match=said):
        ch.load_archive(file)
