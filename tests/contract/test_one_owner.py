"""Classes and sample weights are interpreted by one module each."""

import ast
from pathlib import Path

import pytest

import coolhead as ch

ROOT = Path(ch.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
every_file = pytest.mark.parametrize(
    "path", SOURCES, ids=lambda p: str(p.relative_to(ROOT))
)

CLASSES = {"labels", "label", "y", "classes", "classes_", "class_names"}
CLASSES |= {"class_names_", "label_names", "calibrated_classes"}
MATCHING = {"unique", "searchsorted", "isin", "sorted", "index", "LabelEncoder"}
MATCHING |= {"set", "frozenset", "fromkeys", "factorize", "Categorical", "argsort"}
MATCHING |= {"union1d", "intersect1d", "label_binarize", "get_indexer", "Counter"}
MATCHING |= {"lexsort", "sort", "value_counts", "in1d", "setdiff1d"}
WEIGHTS = {"weights", "weight", "sample_weight"}
CHOOSING = {"flatnonzero", "nonzero", "count_nonzero", "argwhere", "astype"}
# What returns its argument in another form.
FORMS = {"asarray", "array", "list", "tuple", "map", "str", "astype", "tolist"}
FORMS |= {"to_numpy", "ravel", "copy", "asanyarray", "ascontiguousarray"}


def name_of(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def names_in(node):
    return {name_of(part) for part in ast.walk(node)} - {None}


def is_form_of(node, known):
    """Whether an expression is one of some variables, perhaps in another form."""
    if isinstance(node, ast.Call):
        inner = [*node.args, getattr(node.func, "value", None)]
        return name_of(node.func) in FORMS and any(is_form_of(i, known) for i in inner)
    if isinstance(node, ast.Subscript | ast.Starred):
        return is_form_of(node.value, known)
    if isinstance(node, ast.IfExp):
        return is_form_of(node.body, known) or is_form_of(node.orelse, known)
    return node is not None and name_of(node) in known


def other_names(function, known):
    """The known names, and those of variables that a function assigns them to."""
    known = set(known)
    for _ in range(3):
        for node in ast.walk(function):
            pairs = []
            if isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
            elif isinstance(node, ast.NamedExpr | ast.AnnAssign):
                pairs = [(node.target, node.value)]
            elif isinstance(node, ast.For | ast.comprehension):
                pairs = [(node.target, node.iter)]
            for target, value in pairs:
                both = [(target, value)]
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    both = zip(target.elts, value.elts, strict=False)
                known |= {
                    one.id
                    for one, of in both
                    if isinstance(one, ast.Name) and is_form_of(of, known)
                }
    return known


def functions(code):
    tree = ast.parse(code)
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    # What stands outside of functions.
    yield ast.Module([n for n in tree.body if not isinstance(n, ast.FunctionDef)], [])


def matched_classes(code):
    """Expressions that sort, count or match what holds labels or names of classes."""
    found = set()
    for function in functions(code):
        known = other_names(function, CLASSES)
        for node in ast.walk(function):
            called = isinstance(node, ast.Call) and name_of(node.func) in MATCHING
            if called and names_in(node) & known:
                found.add(ast.unparse(node))
            if isinstance(node, ast.SetComp | ast.DictComp) and any(
                names_in(part.iter) & known for part in node.generators
            ):
                found.add(ast.unparse(node))
    return found


def dropped_weights(code):
    """Expressions that choose rows by their weight: above zero, or not zero."""
    found = set()
    for function in functions(code):
        known = other_names(function, WEIGHTS)
        for node in ast.walk(function):
            chosen = isinstance(node, ast.Call) and name_of(node.func) in CHOOSING
            if chosen and name_of(node.func) == "astype":
                chosen = any(name_of(a) in ("bool", "bool_") for a in node.args)
            if chosen and names_in(node) & known:
                found.add(ast.unparse(node))
            if isinstance(node, ast.Compare) and any(
                is_form_of(side, known) for side in (node.left, *node.comparators)
            ):
                sides = (node.left, *node.comparators)
                if any(getattr(side, "value", None) == 0 for side in sides):
                    found.add(ast.unparse(node))
    return found


@every_file
def test_classes_are_sorted_and_matched_by_their_owner_alone(path):
    """`numerics/classes.py` owns class names; folders of images have their own."""
    if path.name == "classes.py" or "images" in path.parts:
        return
    assert not matched_classes(path.read_text())


# There, weights are those of domains, candidates or density ratios.
OTHER_WEIGHTS = {"shift/ratio.py", "calibrators/select.py", "torch/temperature.py"}


@every_file
def test_rows_are_chosen_by_weight_by_the_owner_alone(path):
    inside = str(path.relative_to(ROOT))
    if inside == "numerics/weights.py" or inside in OTHER_WEIGHTS:
        return
    assert not dropped_weights(path.read_text())


@pytest.mark.parametrize(
    "code",
    [
        *("np.unique(labels)", "labels.unique()", "set(labels)", "sorted(set(y))"),
        *("np.searchsorted(classes, found)", "class_names.index(name)"),
        *("np.isin(y, known)", "pd.factorize(labels)", "pd.Categorical(labels)"),
        *("dict.fromkeys(labels)", "np.argsort(class_names)", "Counter(self.labels)"),
        "def f(labels):\n  found = np.asarray(labels)\n  return np.unique(found)",
        "def f(labels):\n  a, b = 1, list(labels)\n  c = b\n  return set(c)",
        "def f(data):\n  names = tuple(data.class_names)\n  return names.index('a')",
        "{name: place for place, name in enumerate(self.class_names_)}",
        "def f(y):\n  found = y.tolist()\n  return {label for label in found}",
    ],
)
def test_sorting_and_matching_is_seen(code):
    assert matched_classes(code)


@pytest.mark.parametrize(
    "code",
    [
        *("rows[weights > 0]", "np.flatnonzero(sample_weight)", "weights != 0"),
        *("weight.astype(bool)", "np.nonzero(data.weights)", "0 < weights"),
        "def f(sample_weight):\n  w = np.asarray(sample_weight)\n  return x[w > 0]",
    ],
)
def test_choosing_rows_by_weight_is_seen(code):
    assert dropped_weights(code)


@pytest.mark.parametrize("code", ["np.unique(domains)", "labels == predicted"])
def test_other_things_are_let_pass(code):
    assert not matched_classes(code) and not dropped_weights(code)
