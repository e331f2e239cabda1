import pytest

from command_line import run  # noqa: F401
from contract.problems import EVERY, PROBLEMS, fitted


@pytest.fixture(scope="session")
def fits():
    """Fitted calibrators, each made once."""
    made = {}

    def get(name, problem="ordinary"):
        if (name, problem) not in made:
            made[name, problem] = fitted(EVERY[name], PROBLEMS[problem])
        return made[name, problem]

    return get
