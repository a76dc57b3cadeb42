"""The names of all functions: parsing needs no more, and starts faster without the functions.

A test compares them with the functions themselves.
"""

from collections.abc import Mapping

NAMES = frozenset(
    """
    abbrev abbrevboth add add1 add1f addf adler32sum ago all and any append atoi b32dec b32enc
    b64dec b64enc base bcrypt biggest buildCustomCert call camelcase cat ceil chunk clean
    coalesce compact concat contains date date_in_zone date_modify dateInZone dateModify
    decryptAES deepCopy deepEqual default derivePassword dict dig dir div divf duration
    durationRound empty encryptAES env eq expandenv ext fail first float64 floor fromJson ge
    genCA genCAWithKey genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert
    genSignedCertWithKey get getHostByName gt has hasKey hasPrefix hasSuffix hello html htmlDate
    htmlDateInZone htpasswd indent index initial initials int int64 isAbs join js kebabcase keys
    kindIs kindOf last le len list lower lt max maxf merge mergeOverwrite min minf mod mul mulf
    must_date_modify mustAppend mustChunk mustCompact mustDateModify mustDeepCopy mustFirst
    mustFromJson mustHas mustInitial mustLast mustMerge mustMergeOverwrite mustPrepend mustPush
    mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral
    mustRegexSplit mustRest mustReverse mustSlice mustToDate mustToJson mustToPrettyJson
    mustToRawJson mustUniq mustWithout ne nindent nospace not now omit or osBase osClean osDir
    osExt osIsAbs pick pluck plural prepend print printf println push quote randAlpha
    randAlphaNum randAscii randBytes randInt randNumeric regexFind regexFindAll regexMatch
    regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest reverse
    round semver semverCompare seq set sha1sum sha256sum sha512sum shuffle slice snakecase
    sortAlpha split splitList splitn squote sub subf substr swapcase ternary title toDate
    toDecimal toJson toPrettyJson toRawJson toString toStrings trim trimAll trimall trimPrefix
    trimSuffix trunc tuple typeIs typeIsLike typeOf uniq unixEpoch unset until untilStep untitle
    upper urlJoin urlParse urlquery uuidv4 values without wrap wrapWith
    """.split()  # noqa: SIM905 - a list would take a line per name
)

_REASONS = {
    "reads the environment of the server": ("env", "expandenv"),
    "looks up names on the network": ("getHostByName",),
    "is random, so that two renderings would differ": (
        "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric", "shuffle",
        "uuidv4",
    ),
    "makes or uses keys and passwords, which do not belong into a template": (
        "bcrypt", "buildCustomCert", "decryptAES", "derivePassword", "encryptAES", "genCA",
        "genCAWithKey", "genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
        "genSignedCert", "genSignedCertWithKey", "htpasswd",
    ),
}  # fmt: skip

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
"""Functions that only charts have, and what does here."""
