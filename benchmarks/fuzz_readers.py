"""Damaged prediction and calibrator files by the hundred thousand.

    python benchmarks/fuzz_readers.py 100000

Small files of every kind are damaged at random (bytes changed, cut, doubled, swapped
between files, headers edited) and read. A reader may accept the file or refuse it with
a ValueError or OSError of one line; anything else is printed as a finding and the
damaged bytes are kept in the folder given by --keep.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.io.archive import DomainArchive
from coolhead.io.calibrators import load_calibrator, save_calibrator
from coolhead.io.reading import load_archive, open_predictions, stream_blocks

INPUTS_PER_PROCESS = 20_000
NUMBERS = [0, 1, 2, 7, 127, 128, 255, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1]
WORDS = [b"'shape'", b"'descr'", b"(3, 3)", b"|O", b"<f4", b"{", b"}", b"null", b"-1"]
WORDS += [b"NaN", b"inf", b",", b"\n", b'"', b"[]", b"PK\x03\x04", b"PAR1", b"\x00" * 8]
WORDS += [b"logits", b"labels", b"features", b"domain_codes", b"1e999", b"\xff\xfe"]


def seeds(folder: Path) -> dict[str, bytes]:
    """One small whole file of every kind."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(9, 3)).astype(np.float32)
    features = rng.normal(size=(9, 2)).astype(np.float32)
    labels, domains = rng.integers(0, 3, 9), np.repeat(["a", "b", "c"], 3)
    arrays = {"logits": logits, "features": features, "labels": labels}
    arrays["domains"] = domains
    np.savez(folder / "a.npz", **arrays)
    np.savez_compressed(folder / "b.npz", **arrays)
    np.save(folder / "c.npy", logits)
    DomainArchive(**arrays, ids=np.arange(9).astype(str)).save(folder / "d.safetensors")
    table = pl.DataFrame(
        {f"logit_{i}": logits[:, i] for i in range(3)}
        | {f"feature_{i}": features[:, i] for i in range(2)}
        | {"label": labels, "domain": domains}
    )
    table.write_parquet(folder / "e.parquet")
    table.write_ipc(folder / "f.arrow")
    table.write_csv(folder / "g.csv")
    calibrator = NearestClusterTemperature(2, min_cluster_size=1)
    calibrator.fit(logits, labels, features=features)
    save_calibrator(calibrator, folder / "h.skops")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def damage(content: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """A few random changes of one of several kinds."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, max(1, len(data))))
        kind = int(rng.integers(0, 8))
        if kind == 0 and data:
            data[at] = int(rng.integers(0, 256))
        elif kind == 1 and data:
            data[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + int(rng.integers(1, 20))]
        elif kind == 4:
            data[at:at] = WORDS[int(rng.integers(len(WORDS)))]
        elif kind == 5:
            word = WORDS[int(rng.integers(len(WORDS)))]
            data[at : at + len(word)] = word
        elif kind == 6:
            number = NUMBERS[int(rng.integers(len(NUMBERS)))]
            size = int(rng.choice([2, 4, 8]))
            value = (number % 2 ** (8 * size)).to_bytes(size, "little")
            data[at : at + size] = value
        else:
            other = others[int(rng.integers(len(others)))]
            start = int(rng.integers(0, len(other)))
            piece = other[start : start + int(rng.integers(1, 40))]
            data[at : at + len(piece)] = piece
    return bytes(data)


def rezip(content: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """Damage inside a zip file whose checksums are right again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        names = source.namelist()
        chosen = names[int(rng.integers(len(names)))]
        with zipfile.ZipFile(buffer, "w") as target:
            for name in names:
                part = source.read(name)
                target.writestr(
                    name, damage(part, others, rng) if name == chosen else part
                )
    return buffer.getvalue()


def read(path: Path) -> None:
    """All that a command would do with the file."""
    if path.suffix == ".skops":
        loaded = load_calibrator(path)
        if loaded.n_classes_ == 3:
            loaded.predict_proba(np.eye(3) * 2, np.zeros((3, 2)))
        return
    opened = open_predictions(path)
    for _ in stream_blocks(opened, n_rows=4):
        pass
    load_archive(path)


def outcome(path: Path) -> str:
    """accepted, refused, or what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # A forged calibrator may hold any numbers, and predict with them.
            warnings.simplefilter("ignore", RuntimeWarning)
            read(path)
    except (ValueError, OSError) as error:
        return "refused" if "\n" not in str(error) else "several lines"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:80]}"
    return "accepted"


def fuzz(inputs: int, seed: int, keep: Path, kinds: str | None) -> Iterator[str]:
    """Damage and read `inputs` files; findings stay in the folder `keep`."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole = seeds(folder)
        names = kinds.split(",") if kinds else list(whole)
        everything = list(whole.values())
        for number in range(inputs):
            kind = names[number % len(names)]
            zipped = whole[kind][:2] == b"PK" and rng.random() < 0.6
            change = rezip if zipped else damage
            data = change(whole[kind], everything, rng)
            # It lies here already should reading it end the process.
            path = keep / f"{seed}-{number}-{kind}"
            path.write_bytes(data)
            result = outcome(path)
            if result in ("accepted", "refused"):
                path.unlink()
            yield f"{kind}: {result}"


def fuzz_apart(inputs: int, seed: int, keep: Path, kinds: str | None) -> Counter[str]:
    """The same in a process of its own, which a finding may end.

    Each input is a line as soon as it is read: those before the end are counted, and
    the one that ended the process is the next.
    """
    words = [sys.executable, __file__, str(inputs), "--seed", str(seed), "--here"]
    words += ["--keep", str(keep)] + (["--kinds", kinds] if kinds else [])
    quiet = os.environ | {"RUST_BACKTRACE": "0"}
    done = subprocess.run(words, capture_output=True, text=True, env=quiet, check=False)
    found = Counter(json.loads(line) for line in done.stdout.splitlines())
    if done.returncode:
        last = next(keep.glob(f"{seed}-{found.total()}-*"), None)
        if last is None:
            sys.exit(f"no input ended this process:\n{done.stderr}")
        lines = [line for line in done.stderr.splitlines() if "failed" in line] or [""]
        kind = last.name.split("-")[2]
        found[f"{kind}: process ended, code {done.returncode}: {lines[-1][:60]}"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inputs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("findings"))
    parser.add_argument("--kinds", default=None, help="of seeds, as in a.npz,g.csv")
    parser.add_argument("--here", action="store_true", help="in this process")
    wanted = parser.parse_args()
    wanted.keep.mkdir(exist_ok=True)
    if wanted.here:
        for line in fuzz(wanted.inputs, wanted.seed, wanted.keep, wanted.kinds):
            print(json.dumps(line), flush=True)
        return
    found: Counter[str] = Counter()
    start = time.perf_counter()
    seed = wanted.seed * 100_000
    while (left := wanted.inputs - found.total()) > 0:
        part = min(left, INPUTS_PER_PROCESS)
        found.update(fuzz_apart(part, seed, wanted.keep, wanted.kinds))
        print(f"{found.total()} inputs", file=sys.stderr)
        seed += 1
    summary: dict[str, int] = dict(sorted(found.items()))
    summary["seconds"] = round(time.perf_counter() - start)
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
