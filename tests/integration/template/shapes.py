"""What the generator of templates draws from: values, and shapes of calls by the type they give."""

# fmt: off
VALUES: dict[str, object] = {
    "nuon": {
        "s": "hello World", "t": "a,b,,c", "e": "", "u": "héllo wörld ✓", "h": "<a href=\"x\">&'</a>",
        "n": 3.0, "f": 2.5, "big": 1000000.0, "neg": -7.25, "zero": 0.0, "tiny": 1e-7, "b": True,
        "no": False, "z": None, "l": ["a", "b", "c"], "nl": [3.0, 1.0, 2.0], "mix": ["x", 1.5, True, None],
        "el": [], "em": {}, "m": {"x": 1.0, "y": "two", "n": {"k": "v", "deep": {"er": [1.0, {"q": "r"}]}}},
        "rows": [{"name": "one", "v": 1.0}, {"name": "two", "v": 2.0, "tags": ["p", "q"]}],
        "lines": "first\nsecond\n\nlast\n", "ver": "1.4.2-rc.1+b7", "path": "/srv/app/../data/file.tar.gz",
        "url": "https://me:pw@example.com:8443/a/b%20c?x=1&y=2#top", "num": "42", "hex": "0x1f", "camel": "HTTPServer2Name",
    }
}

PLACES = frozenset({"TEXT", "INT", "LONG", "REAL", "BOOL", "LIST", "MAP", "ANY"})
"""Words in a shape that stand for an expression of a type; a star means none to three of them."""

KINDS: dict[str, tuple[list[str], list[str]]] = {
    "text": (
        [
            ".nuon.s", ".nuon.t", ".nuon.e", ".nuon.u", ".nuon.h", ".nuon.lines", ".nuon.num", ".nuon.camel",
            ".nuon.m.y", ".nuon.m.n.k", "(index .nuon.l 1)", '(index .nuon.m "n" "k")', '"x"', '"a b  c"',
            '"Foo-bar_baz"', '`raw "q"`', '"tab\\tnl\\n"', '"é"', '""',
        ],
        [
            "upper TEXT", "lower TEXT", "title TEXT", "untitle TEXT", "trim TEXT", "trunc INT TEXT",
            "abbrev INT TEXT", "nospace TEXT", "swapcase TEXT", "snakecase TEXT", "camelcase TEXT", "kebabcase TEXT",
            "initials TEXT", "repeat 2 TEXT", "quote ANY*", "squote ANY*", "cat ANY*", "indent 2 TEXT",
            "nindent 4 TEXT", 'replace "l" TEXT TEXT', 'plural "one" "many" INT', 'join "," LIST', "toString ANY",
            "toJson ANY", "toPrettyJson ANY", "toRawJson ANY", "b64enc TEXT", "b32enc TEXT", "b64dec TEXT",
            "sha256sum TEXT", "sha1sum TEXT", "adler32sum TEXT", "print ANY*", "println ANY*", "html ANY", "js TEXT",
            "urlquery TEXT", "default TEXT TEXT", 'ternary "yes" "no" BOOL', "kindOf ANY", "typeOf ANY",
            'trimSuffix "c" TEXT', 'trimPrefix "h" TEXT', 'trimAll "a" TEXT', "substr 0 2 TEXT", "base TEXT",
            "dir .nuon.path", "clean .nuon.path", "ext .nuon.path", 'regexFind "[a-z]+" TEXT',
            'regexReplaceAll "(\\\\w)(\\\\w)" TEXT "${2}$1"', 'regexReplaceAllLiteral "[aeiou]" TEXT "-"',
            "regexQuoteMeta TEXT", "wrap 5 TEXT", 'wrapWith 4 "|" TEXT', "seq INT",
            'date "2006-01-02T15:04:05Z07:00" 1700000000', "htmlDate 86400", "duration TEXT",
            'durationRound "3h20m"', "urlJoin (urlParse .nuon.url)", "toString (semver .nuon.ver)",
            'coalesce TEXT TEXT "last"', "printf TEXT", "first (list TEXT)", "get MAP TEXT",
            'toDate "2006-01-02" "2024-02-29" | date "Mon Jan _2 2006"',
        ],
    ),
    "int": (
        [
            "0", "1", "2", "3", "7", "-4", "100", "0x1F", "'a'", "1_000", "5",
        ],
        [
            "len TEXT", "len LIST", "len MAP", "int ANY", "atoi TEXT", "int REAL", "index (until 5) 2",
            "ternary 1 2 BOOL", "default 5 INT",
        ],
    ),
    "long": (
        [
            "(add 1 2)", "(int64 9)",
        ],
        [
            "add ANY ANY", "add1 ANY", "sub LONG INT", "mul INT LONG INT", "div LONG INT", "mod LONG 5",
            "max INT LONG", "min REAL INT", "int64 ANY", 'toDecimal "755"', "add INT*",
        ],
    ),
    "real": (
        [
            ".nuon.n", ".nuon.f", ".nuon.big", ".nuon.neg", ".nuon.zero", ".nuon.tiny", "1.5", "-0.25", "1e3",
            "123456789.0", "0.1", "(index .nuon.nl 0)",
        ],
        [
            "float64 ANY", "round REAL INT", "floor REAL", "ceil REAL", "addf REAL REAL", "subf REAL INT",
            "mulf REAL REAL", "divf REAL REAL", "maxf REAL INT", "minf REAL REAL", "round REAL 2",
        ],
    ),
    "bool": (
        [
            ".nuon.b", ".nuon.no", "true", "false",
        ],
        [
            "not ANY", "and BOOL BOOL", "or BOOL ANY", "eq TEXT TEXT", "eq INT INT INT", "ne LONG INT",
            "lt INT LONG", "le REAL REAL", "gt TEXT TEXT", "ge INT INT", "eq REAL REAL", "empty ANY", "has ANY LIST",
            "hasKey MAP TEXT", 'hasPrefix "h" TEXT', "contains TEXT TEXT", "hasSuffix TEXT TEXT",
            'regexMatch "^[a-z ]+$" TEXT', 'kindIs "string" ANY', 'semverCompare "^1.2" "1.4.2"',
            'semverCompare ">=1.4.2-0 <2 || 3.x" .nuon.ver', "deepEqual ANY ANY", "all ANY*", "any ANY*",
            'typeIs "int" ANY', "isAbs TEXT", "eq ANY nil", "ne TEXT nil",
        ],
    ),
    "list": (
        [
            ".nuon.l", ".nuon.nl", ".nuon.mix", ".nuon.el", ".nuon.rows", "(list 1 2 3)", '(list "b" "a")',
        ],
        [
            "list ANY*", "tuple ANY ANY", "append LIST ANY", "prepend LIST ANY", "concat LIST LIST", "rest LIST",
            "initial LIST", "reverse LIST", "uniq LIST", "without LIST ANY", "compact LIST", "sortAlpha LIST",
            'splitList "," TEXT', "until 4", "untilStep 0 9 INT", "toStrings LIST", "chunk 2 LIST", "slice LIST 0",
            "keys MAP | sortAlpha", 'regexFindAll "[a-z]" TEXT 3', 'regexSplit "[ ,]+" TEXT -1',
            'pluck "name" (index .nuon.rows 0) (index .nuon.rows 1)', 'mustFromJson "[1, 2.5, \\"x\\", null, true]"',
            "default LIST LIST", "or LIST LIST",
        ],
    ),
    "map": (
        [
            ".nuon.m", ".nuon.em", ".nuon.m.n", "(index .nuon.rows 1)", "(dict)", '(dict "a" 1 "b" "two")',
        ],
        [
            "dict TEXT ANY", "dict TEXT ANY TEXT ANY", 'pick MAP "x" "y"', 'omit MAP "x"',
            "merge (dict TEXT ANY) MAP", "mergeOverwrite (dict TEXT ANY) (dict TEXT ANY)",
            "set (dict TEXT ANY) TEXT ANY", 'unset (dict "a" ANY) "a"', "deepCopy MAP", "urlParse .nuon.url",
            'mustFromJson "{\\"k\\": {\\"a\\": [1]}}"', "default (dict) MAP", 'split "," TEXT', 'splitn "," 2 TEXT',
        ],
    ),
    "any": (
        [
            ".nuon.z", ".nuon.mix", "nil", ".nuon.b", "1", '"t"', ".nuon.m", "2.5", ".nuon.u",
        ],
        [
            "index LIST 0", "first LIST", "last LIST", 'dig "n" "k" ANY .nuon.m', 'dig "n" "nope" ANY .nuon.m',
            "coalesce ANY*", "ternary ANY ANY BOOL", "default ANY ANY", "and ANY ANY", "or ANY ANY", 'index MAP "x"',
            "get MAP TEXT", 'mustFromJson "1e3"', "index TEXT 0", "toStrings ANY", "deepCopy ANY",
        ],
    ),
}
"""By type: expressions that stand for themselves, and calls."""
