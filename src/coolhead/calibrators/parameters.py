"""Parameters of a calibrator, said once: as annotated attributes of its class."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)


@dataclass_transform()
def parameters(own: Class) -> Class:
    """Write the constructor that scikit-learn expects: it stores what it is given.

    What is annotated in the body of the class is a parameter, after `_: KW_ONLY` by
    name alone; a class without annotations of its own has those of its base.
    """
    # Two calibrators are equal if they are the same, and scikit-learn prints them.
    return dataclass(eq=False, repr=False)(own)
