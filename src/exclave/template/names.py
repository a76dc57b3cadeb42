"""The names of all functions and the number of arguments that each takes.

Parsing needs no more than this, and starts faster without importing the functions. A test
compares this table with the functions.
"""

from collections.abc import Mapping

_BY_COUNT: Mapping[tuple[int, bool], str] = {
    (0, False): """
    hello now
    """,
    (0, True): """
    add addf all any bcrypt buildCustomCert cat coalesce concat decryptAES
    derivePassword dict dig encryptAES env expandenv genCA genCAWithKey genPrivateKey
    genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey
    getHostByName html htpasswd js keys list print println quote randAlpha randAlphaNum
    randAscii randBytes randInt randNumeric seq shuffle squote tuple urlquery uuidv4
    """,
    (1, False): """
    add1 add1f adler32sum ago atoi b32dec b32enc b64dec b64enc base camelcase ceil clean
    compact deepCopy dir duration durationRound empty ext fail first float64 floor
    fromJson htmlDate initial initials int int64 isAbs kebabcase kindOf last len lower
    mustCompact mustDeepCopy mustFirst mustFromJson mustInitial mustLast mustRest
    mustReverse mustToJson mustToPrettyJson mustToRawJson mustUniq nospace not osBase
    osClean osDir osExt osIsAbs regexQuoteMeta rest reverse semver sha1sum sha256sum
    sha512sum snakecase sortAlpha swapcase title toDecimal toJson toPrettyJson toRawJson
    toString toStrings trim typeOf uniq unixEpoch until untitle upper urlJoin urlParse
    values
    """,
    (1, True): """
    and biggest call default divf eq index max maxf merge mergeOverwrite min minf mul
    mulf mustMerge mustMergeOverwrite mustSlice mustWithout omit or pick pluck printf
    slice subf without
    """,
    (2, False): """
    abbrev append chunk contains date date_modify dateModify deepEqual div ge get gt has
    hasKey hasPrefix hasSuffix htmlDateInZone indent join kindIs le lt mod
    must_date_modify mustAppend mustChunk mustDateModify mustHas mustPrepend mustPush
    mustRegexFind mustRegexMatch mustToDate ne nindent prepend push regexFind regexMatch
    repeat semverCompare split splitList sub toDate trimAll trimall trimPrefix
    trimSuffix trunc typeIs typeIsLike unset wrap
    """,
    (2, True): """
    round
    """,
    (3, False): """
    abbrevboth date_in_zone dateInZone mustRegexFindAll mustRegexReplaceAll
    mustRegexReplaceAllLiteral mustRegexSplit plural regexFindAll regexReplaceAll
    regexReplaceAllLiteral regexSplit replace set splitn substr ternary untilStep
    wrapWith
    """,
}
"""Functions by the number of their arguments, and whether it may be more."""
COUNTS: Mapping[str, tuple[int, bool]] = {
    name: count for count, names in _BY_COUNT.items() for name in names.split()
}
NAMES = frozenset(COUNTS)

_REASONS = {
    "reads the environment of the server": ("env", "expandenv"),
    "looks up names on the network": ("getHostByName",),
    "is random, so that two renderings would differ": (
        "randAlpha",
        "randAlphaNum",
        "randAscii",
        "randBytes",
        "randInt",
        "randNumeric",
        "shuffle",
        "uuidv4",
    ),
    "makes or uses keys and passwords, which do not belong into a template": (
        "bcrypt",
        "buildCustomCert",
        "decryptAES",
        "derivePassword",
        "encryptAES",
        "genCA",
        "genCAWithKey",
        "genPrivateKey",
        "genSelfSignedCert",
        "genSelfSignedCertWithKey",
        "genSignedCert",
        "genSignedCertWithKey",
        "htpasswd",
    ),
}

REASONS = {name: reason for reason, names in _REASONS.items() for name in names}
"""Why each function is refused."""

OPERATORS: Mapping[str, str] = {
    "=": "Compare with a function: `eq a b`. A variable is set at the start: `{{$x = …}}`.",
    "!": "Compare with a function: `ne a b`, `not a`.",
    "<": "Compare with a function: `lt a b`.",
    ">": "Compare with a function: `gt a b`.",
    "&": "Join conditions with a function: `and a b`.",
    "?": "Choose with a function: `ternary a b condition`.",
    "[": 'Take an element with a function: `index list 0`, `index map "key"`.',
    "*": "Calculate with a function: `mul a b`.",
    "/": "Calculate with a function: `div a b`.",
}
"""What to write instead of what other languages have between two values."""
OF_HELM: Mapping[str, str] = {
    "toYaml": "`toJson` gives what YAML reads too.",
    "fromYaml": "`fromJson` reads JSON.",
    "include": 'Write `{{template "name" .}}`.',
    "tpl": "What is in values is not rendered again.",
    "required": "An input with required = true is checked before.",
    "lookup": "Read the outputs of a component.",
}
"""Functions that only Helm charts have, and their replacements here."""
