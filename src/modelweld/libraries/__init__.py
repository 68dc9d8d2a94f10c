"""Models of other libraries: read into LocalModels, and written again from fused ones.

An adapter is two functions,

    read(model, **facts) -> LocalModel       what leaves the site; facts are what the object forgot (counts, X, ...)
    write(local, like) -> model              a fitted model of the class named `like`

and one line in the `TABLE` of known_classes.py, or, from outside the package, one call of `register`. A library is
imported when one of its models is read or written, never before.
"""

from modelweld.libraries.known_classes import Adapter, adapters, register, write
from modelweld.libraries.reading import read

__all__ = ["Adapter", "adapters", "read", "register", "write"]
