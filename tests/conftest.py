import sys
from pathlib import Path

from hypothesis import settings

# `import simulate` works from every folder of tests.
sys.path.insert(0, str(Path(__file__).parent))

# How long one example takes tells of the machine, not of the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
