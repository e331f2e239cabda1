"""Pages, tables of contents, links and measured tables fit together, without Sphinx."""

import re
import sys
import tomllib
from fnmatch import fnmatch

import pytest
import yaml
from pages import (
    BUILT,
    DOCS,
    OPTIONAL,
    PAGES,
    ROOT,
    listed,
    name_of,
    without_code,
)

import coolhead as ch
from coolhead.figures import style

sys.path.insert(0, str(DOCS))
from site_parts import first_screen, page_output, plain_text, reference
from site_parts.tables import cut, find_table, names


def test_every_page_is_listed_once():
    entries = [entry for page in PAGES for entry in listed(page)]
    for page in map(name_of, PAGES):
        found = [entry for entry in entries if fnmatch(page, entry)]
        assert len(found) == (page != "index"), (page, found)


def test_every_entry_is_a_page():
    for page in PAGES:
        for entry in listed(page):
            built = entry.startswith(BUILT) or entry in OPTIONAL
            assert built or (DOCS / f"{entry}.md").exists(), (page, entry)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", without_code(page)):
        if "://" in target:
            continue
        place = (page.parent / target).resolve()
        inside = place.is_relative_to(DOCS)
        built = inside and str(place.relative_to(DOCS)).startswith(BUILT)
        assert built or place.exists(), (page.name, target)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_measured_tables_are_there(page):
    for file, options in re.findall(
        r"^```{measured} (\S+)\n(.*?)^```", page.read_text(), re.DOTALL | re.M
    ):
        said = dict(re.findall(r"^:(\w+): (.*)$", options, re.M))
        text = (page.parent / file).read_text()
        table = find_table(text, names(said["under"], "/"))
        rows = names(said.get("rows", ""))
        found = cut(table, rows, names(said.get("columns", "")))
        assert len(found) == 1 + len(rows) if rows else len(found) > 3


def test_a_table_that_is_gone_is_named():
    with pytest.raises(ValueError, match="no heading 'Gone'"):
        find_table("# Here\n\n| a |\n|---|\n| 1 |\n", ["Here", "Gone"])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_single_file_shows_what_directives_include(page):
    if BUILT[-1] in page.read_text():
        return  # shows what is written while the site is built
    text = plain_text.expand(page)
    assert not re.search(r"^```{(include|measured|literalinclude)}", text, re.M)
    assert "<!-- auto:" not in text


def test_tables_stay_tables_in_the_single_file():
    text = plain_text.expand(DOCS / "beyond.md")
    assert "| IR of `AutoCalibrator` |" in text
    assert "| tried |" in text
    assert "| answer from the batch |" not in text


def test_the_first_screen_is_made_anew_where_the_package_changed(tmp_path):
    (tmp_path / "one.py").write_text("a = 1\n")
    before = first_screen.digest(tmp_path)
    assert before == first_screen.digest(tmp_path)
    (tmp_path / "one.py").write_text("a = 2\n")
    assert first_screen.digest(tmp_path) != before


def test_every_public_name_is_on_a_page_of_the_reference(tmp_path):
    reference.write(tmp_path)
    for part in ("coolhead", *reference.MODULES):
        page = (tmp_path / f"api-{part}.rst").read_text()
        if part == "coolhead":
            module, expected = ch, reference.top_names()
        else:
            module = reference.public_module(part)
            expected = set(module.__all__) - set(reference.top_names())
        for name in expected:
            own = tmp_path / f"{module.__name__}.{name}.rst"
            text = own.read_text() if own.exists() else page
            assert re.search(rf":: {name}$", text, re.M), (part, name)
    commands = (tmp_path / "commands.md").read_text()
    assert all(f"## coolhead {name}\n" in commands for name in reference.COMMANDS)
    messages = (tmp_path / "messages.md").read_text()
    assert "wanted a share between 0 and 1`" in messages
    assert messages.count("\n- ") > 300


def test_the_page_of_a_class_has_its_inherited_methods():
    found = reference.methods(ch.AutoCalibrator)
    assert found[:3] == ["fit", "predict_proba", "confidence"]
    page = reference.class_page(ch, "AutoCalibrator", found)
    assert ".. automethod:: AutoCalibrator.fit\n" in page


def test_output_stands_below_the_code_that_prints_it(tmp_path, monkeypatch):
    monkeypatch.setattr(page_output, "PAGES", ("page",))
    text = "Text.\n\n```python\nprint(1 + 1)\n```\n\n```python\nx = 1\n```\n"
    (tmp_path / "page.md").write_text(text)
    page_output.write(tmp_path, tmp_path / "out", "digest of the package")
    shown = page_output.insert(text, tmp_path / "out", "page", 0)
    assert (
        shown.replace("\n```{code-block} text\n:class: output\n\n2\n```\n", "") == text
    )
    assert page_output.insert(text, tmp_path / "out", "another", 0) == text


def test_code_that_fails_ends_the_build(tmp_path, monkeypatch):
    monkeypatch.setattr(page_output, "PAGES", ("page",))
    (tmp_path / "page.md").write_text("```python\n1 / 0\n```\n")
    with pytest.raises(RuntimeError, match=r"page: [\s\S]*ZeroDivisionError"):
        page_output.write(tmp_path, tmp_path / "out", "digest of the package")


def test_pages_with_output_are_pages():
    assert set(page_output.PAGES) <= {name_of(page) for page in PAGES}


def test_every_status_has_a_meaning():
    text = (DOCS / "statuses.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == set(ch.Status)


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (cited,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert {project["version"], cited, latest} == {ch.__version__}


def test_the_dark_picture_has_no_colour_of_the_light_one():
    drawn = " ".join(f"fill: {colour};" for colour in first_screen.DARK)
    dark = first_screen.in_the_dark(drawn)
    assert not any(f"fill: {colour};" in dark for colour in (style.PAPER, style.INK))
    assert dark.split() == [
        word for new in first_screen.DARK.values() for word in ("fill:", f"{new};")
    ]


def test_workflows_run_what_is_there():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        read = yaml.safe_load(workflow.read_text())
        assert read["permissions"] == {"contents": "read"}
        for job in read["jobs"].values():
            for command in (step["run"] for step in job["steps"] if "run" in step):
                program, *words = command.split()
                found = ROOT.joinpath(program).exists()
                assert words[0] in targets if program == "make" else found


def test_actions_are_pinned_by_commit():
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)", workflow.read_text())
        assert used
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in used)
