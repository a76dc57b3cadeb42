"""Make the schema files of the stand-in providers: the facts of chosen resources.

    python -m tests.support.stand_ins.read_schemas google azurerm

reads the bindings of each provider out of its npm package `@cdktf/provider-<name>`, which say of
every attribute what type it has and whether it is required, and writes `<name>.json` here. Only
this program needs the network; `wanted.json` lists what it takes.
"""

import base64
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
VERSIONS = {
    "google": "16.12.1",
    "azurerm": "14.23.1",
    "azuread": "14.3.1",
    "random": "12.0.1",
}
"""The packages that are read; each holds the schema of one version of the provider."""
SIMPLE = {"string": "string", "number": "number", "boolean": "bool"}
ENTRY = re.compile(
    r'\n +(\w+): \{\n\s+value: [^\n]*\n\s+isBlock: (true|false),\n\s+type: "(\w+)",'
    r'\n\s+storageClassType: "(\w+)"'
)
FLAGS = re.compile(
    r"// (\w+) - computed: (true|false), optional: (true|false), required: (true|false)\n"
    r"([^\n]*)\n([^\n]*)"
)
GETTER = {"String": "string", "Number": "number", "Boolean": "bool"}


class Source:
    """The TypeScript of one resource."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.classes = dict(
            re.findall(r"\nexport class (\w+) extends cdktf\.\w+ \{(.*?)\n\}", text, re.DOTALL)
        )
        self.functions = dict(
            re.findall(r"\nexport function (\w+)ToHclTerraform\((.*?)\n\}", text, re.DOTALL)
        )

    def read(self) -> dict[str, Any]:
        """Return the block of the resource itself."""
        found = re.search(
            r"export class (\w+) extends cdktf\.Terraform(Resource|Data|Prov)", self.text
        )
        assert found is not None
        body = self.classes[found[1]]
        return self.read_block(body, body)

    def read_block(self, flags: str, entries: str) -> dict[str, Any]:
        """Return attributes as `type flags`, and nested blocks."""
        told = {name: rest for name, *rest in ENTRY.findall(entries)}
        block: dict[str, Any] = {}
        for name, computed, optional, required, first, second in FLAGS.findall(flags):
            if name == "timeouts" or name.endswith("_custom_endpoint"):
                continue
            marks = "c" * (computed == "true") + "o" * (optional == "true")
            marks += "r" * (required == "true")
            is_block, kind, of = told.get(name, ("false", "", ""))
            if is_block == "true":
                block[name] = self.read_nested(kind, of, first, required == "true")
            elif type_ := self.find_type(kind, of) if of else find_computed(first, second):
                block[name] = f"{type_} {marks}"
        return block

    def read_nested(self, kind: str, of: str, member: str, required: bool) -> dict[str, Any]:
        """Return a nested block with how often it may stand there; 0: as often as one likes."""
        name = of.removesuffix("List") if kind in {"list", "set"} else of
        many = re.search(r"List\(this|\[\]", member)
        limits = [int(required), 0 if many else 1]
        entries = self.functions[name[0].lower() + name[1:]]
        # Blocks of a provider itself have no class of their own that says what is required.
        flags = self.classes.get(f"{name}OutputReference") or "".join(
            f"// {entry[0]} - computed: false, optional: true, required: false\n\n\n"
            for entry in ENTRY.findall(entries)
        )
        nesting = "set" if kind == "set" else "list"
        return {"nesting": nesting, "items": limits, "block": self.read_block(flags, entries)}

    def find_type(self, kind: str, of: str) -> str:
        """Return the type of an attribute that can be set."""
        if kind == "simple":
            return SIMPLE[of]
        inner = of.removesuffix("List").removesuffix("Map").removesuffix("Set")
        if inner in SIMPLE:
            return f"{kind}({SIMPLE[inner]})"
        return ""


def find_computed(first: str, second: str) -> str:
    """Return the type of an attribute that is only read; empty if it is of objects."""
    if found := re.search(r"this\.get(String|Number|Boolean)Attribute\(", second):
        return GETTER[found[1]]
    if found := re.search(r"new cdktf\.(String|Number|Boolean)(Map|List)\(", first):
        return f"{found[2].lower()}({GETTER[found[1]]})"
    if re.search(r"this\.getListAttribute\(|cdktf\.Fn\.tolist\(this\.getList", second):
        return "list(string)"
    return ""


def read_package(provider: str, archive: Path, wanted: list[str]) -> dict[str, Any]:
    """Return the schemas of the wanted resources, data sources and of the provider itself."""
    folders = {name_folder(provider, name): name for name in [*wanted, "provider"]}
    found: dict[str, Any] = {}
    version = ""
    with tarfile.open(archive) as package:
        for name, script in _list_scripts(package, folders):
            text = json.loads(base64.b64decode(script.rsplit("base64,", 1)[1]))
            source = Source(text["sourcesContent"][0])
            found[name] = source.read()
            if told := re.search(r"providerVersion: '([^']+)'", source.text):
                version = told[1]
    missing = sorted({*wanted, "provider"} - found.keys())
    assert not missing, f"{provider} has no {missing}"
    return {"version": version, **dict(sorted(found.items()))}


def _list_scripts(package: tarfile.TarFile, folders: dict[str, str]) -> Iterator[tuple[str, str]]:
    for member in package:
        folder, _, file = member.name.removeprefix("package/lib/").partition("/")
        if file == "index.js" and folder in folders:
            content = package.extractfile(member)
            assert content is not None
            yield folders[folder], content.read().decode()


def name_folder(provider: str, name: str) -> str:
    """Return the folder of a resource, such as `compute-network`, or of `data.<type>`."""
    kind, _, type_ = name.rpartition(".")
    short = type_.removeprefix(f"{provider}_").replace("_", "-")
    return f"data-{provider}-{short}" if kind else short


def main(providers: list[str]) -> None:
    """Write the files of some providers."""
    wanted = json.loads((HERE / "wanted.json").read_text())
    for provider in providers:
        package = f"@cdktf/provider-{provider}@{VERSIONS[provider]}"
        with TemporaryDirectory() as folder:
            subprocess.run(["npm", "pack", package], cwd=folder, check=True, capture_output=True)
            (archive,) = Path(folder).glob("*.tgz")
            schema = read_package(provider, archive, wanted[provider])
        text = json.dumps(schema, indent=1)
        # Attributes and limits on one line each, so that a change is easy to review.
        text = re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", text)
        (HERE / f"{provider}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
