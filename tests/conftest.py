import sys
from pathlib import Path

# `import simulate` works from every folder of tests.
sys.path.insert(0, str(Path(__file__).parent))
