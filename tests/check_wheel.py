"""Run by `make wheel`: the built wheel, unpacked, works without the source tree."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

CHECK = """
import sys
import coolhead as ch
assert ch.__file__.startswith(sys.argv[1]), ch.__file__
from pathlib import Path
assert (Path(ch.__file__).parent / "py.typed").exists()
for name in ch.__all__:
    getattr(ch, name)
for name in ("sentiment", "digits"):
    print(name, len(ch.load_dataset(name).labels), "rows")
print("the wheel works:", ch.__version__)
"""


def main(wheel: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        size = Path(wheel).stat().st_size / 1e6
        print(f"{Path(wheel).name}: {size:.1f} MB")
        # An isolated interpreter (-I) with the unpacked wheel first on the path.
        code = f"import sys; sys.path.insert(0, {folder!r})\n" + CHECK
        subprocess.run([sys.executable, "-I", "-c", code, folder], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
