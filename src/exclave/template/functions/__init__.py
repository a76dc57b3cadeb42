"""All template functions: Go's builtins, sprig's, and those that are refused with a reason."""

from collections.abc import Mapping
from types import MappingProxyType

from exclave.template.functions.builtins import BUILTINS
from exclave.template.functions.cases import CASES
from exclave.template.functions.choices import CHOICES
from exclave.template.functions.dates import DATES
from exclave.template.functions.dicts import DICTS
from exclave.template.functions.encoding import ENCODING
from exclave.template.functions.lists import LISTS
from exclave.template.functions.numbers import NUMBERS
from exclave.template.functions.paths import PATHS
from exclave.template.functions.patterns import PATTERNS
from exclave.template.functions.refused import REFUSED
from exclave.template.functions.signature import Function
from exclave.template.functions.strings import STRINGS
from exclave.template.functions.versions import VERSIONS

_REGISTRIES = (
    BUILTINS, CASES, CHOICES, DATES, DICTS, ENCODING, LISTS, NUMBERS, PATHS, PATTERNS, REFUSED,
    STRINGS, VERSIONS,
)  # fmt: skip

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {function.name: function for registry in _REGISTRIES for function in registry}
)
