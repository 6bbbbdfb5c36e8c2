"""Writes pilot_client/models.py and pilot_client/operations.py from docs/reference/openapi.json.

    python3 generate.py           writes both files
    python3 generate.py --check   writes nothing; exit status 1 and the difference if a file would change

Only the standard library is needed. The same document gives the same bytes. Whatever the document says and this program
does not know stops it: a new kind of parameter must not be lost silently.
"""

import argparse
import difflib
import json
import keyword
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generated_text import WIDTH, camel, comment, docstring, imported, joined, listing, sentences, words, wrapped

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs/reference/openapi.json"
COMMAND = "python3 clients/python/generate.py"
HEAD = f'''"""{{}}

Generated from docs/reference/openapi.json by `{COMMAND}`; changes belong there.
"""
'''
REFERENCE = "#/components/schemas/"
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
# Of the feed, which pilot_client/feed.py reads.
HEADERS_OF_THE_FEED = {"Last-Event-ID"}
# Values of these path parameters contain slashes, which OpenAPI cannot say.
PARAMETERS_WITH_SLASHES = {"tile"}

Schema = dict[str, Any]


class Unknown(Exception):
    """Something in the document that this program does not know."""


class Models:
    """The types, each after those it is made of."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        self.texts: dict[str, str] = {}
        self.under_way: set[str] = set()

    def schema_of(self, reference: Schema) -> Schema:
        return self.schemas[reference["$ref"].removeprefix(REFERENCE)]

    def define(self, name: str) -> str:
        """Writes the named schema down, if that was not done yet."""
        if name in self.under_way:
            raise Unknown(f"{name} contains itself")
        if name not in self.texts:
            self.under_way.add(name)
            text = self.written(name, self.schemas[name])
            self.under_way.remove(name)
            self.texts[name] = text
        return name

    def written(self, name: str, schema: Schema) -> str:
        if "allOf" in schema:
            bases = ", ".join(self.define(part["$ref"].removeprefix(REFERENCE)) for part in schema["allOf"])
            doc = docstring(sentences(schema.get("description")) or [f"{bases}."], "    ")
            return "\n".join([f"class {name}({bases}):", *doc])
        if "properties" in schema:
            return self.typed_dict(name, schema)
        lines = comment(schema.get("description"), "")
        line = f"{name}: TypeAlias = {self.type_of(schema, name)}"
        if len(line) > WIDTH:
            opening, values = line.removesuffix("]").split("[", 1)
            line = "\n    ".join([f"{opening}[", *(f"{value}," for value in values.split(", "))]) + "\n]"
        return "\n".join([*lines, line])

    def typed_dict(self, name: str, schema: Schema) -> str:
        required = set(schema.get("required", ()))
        fields = []
        for member, inner in sorted(schema["properties"].items()):
            kind = self.type_of(inner, name + camel(member))
            fields.append((member, kind if member in required else f"NotRequired[{kind}]", inner.get("description")))
        doc = sentences(schema.get("description"))
        if any(keyword.iskeyword(member) for member, _, _ in fields):
            # A member that is a word of Python can only be written this way.
            lines = [*comment(" ".join(doc), ""), f"{name} = TypedDict(", f'    "{name}",', "    {"]
            for member, kind, text in fields:
                lines += [*comment(text, " " * 8), f'        "{member}": {kind},']
            return "\n".join([*lines, "    },", ")"])
        lines = [f"class {name}(TypedDict):", *([*docstring(doc, "    "), ""] if doc else [])]
        for member, kind, text in fields:
            lines += [f"    {member}: {kind}", *(docstring(sentences(text), "    ") if text else [])]
        return "\n".join(lines)

    def type_of(self, schema: Schema, name: str, *, sent: bool = False) -> str:
        """The type of a value. A member with members of its own gets a type called `name`."""
        if "$ref" in schema:
            return self.define(schema["$ref"].removeprefix(REFERENCE))
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            words = [json.dumps(value) if isinstance(value, str) else repr(value) for value in values]
            return f"Literal[{', '.join(words)}]"
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return " | ".join(self.type_of(part, name, sent=sent) for part in schema[choice])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return " | ".join(self.plain(kind, schema, name, sent=sent) for kind in kinds) or "Any"

    def plain(self, kind: str, schema: Schema, name: str, *, sent: bool) -> str:
        if kind == "array":
            inner = self.type_of(schema.get("items", {}), name, sent=sent)
            return f"Sequence[{inner}]" if sent else f"list[{inner}]"
        if kind != "object":
            return PLAIN[kind]
        if "properties" in schema:
            if name in self.schemas:
                raise Unknown(f"a member would need the name {name}, which is taken")
            self.texts[name] = self.typed_dict(name, schema)
            return name
        inner = self.type_of(schema.get("additionalProperties", {}), name, sent=sent)
        return f"Mapping[str, {inner}]" if sent else f"dict[str, {inner}]"


@dataclass
class Parameter:
    """An argument of a method, and where its value goes."""

    name: str
    sent_as: str
    kind: str
    required: bool
    description: str | None

    @property
    def is_nullable(self) -> bool:
        return "None" in self.kind.split(" | ")

    @property
    def declared(self) -> str:
        if self.is_nullable and not self.required:
            return f"{self.name}: {self.kind} | Absent = ABSENT"
        return f"{self.name}: {self.kind}" if self.required else f"{self.name}: {self.kind} | None = None"


def argument(name: str) -> str:
    """A name that Python allows."""
    plain = name.replace("-", "_").lower()
    return f"{plain}_" if keyword.iskeyword(plain) else plain


class Operation:
    """One operation of the API, and the method that calls it."""

    def __init__(self, path: str, method: str, description: Schema, models: Models) -> None:
        self.path, self.method, self.description, self.models = path, method.upper(), description, models
        self.name: str = description["operationId"]
        self.in_path: list[Parameter] = []
        self.in_query: list[Parameter] = []
        self.in_body: list[Parameter] = []
        self.headers: set[str] = set()
        for parameter in description.get("parameters", ()):
            self.read_parameter(parameter)
        if "requestBody" in description:
            self.read_body(description["requestBody"])
        success = next(answer for status, answer in description["responses"].items() if status.startswith("2"))
        self.content = success.get("content", {})
        # The first is what a client asks for that names no other.
        self.accept = next(iter(self.content), None)

    def read_parameter(self, found: Schema) -> None:
        place, name = found["in"], found["name"]
        if place == "header" and name in {"Idempotency-Key", "If-Match"}:
            self.headers.add(name)
        elif place in {"path", "query"}:
            kind = self.models.type_of(found["schema"], camel(self.name) + camel(name), sent=True)
            required = found.get("required", False)
            parameter = Parameter(argument(name), name, kind, required, found.get("description"))
            (self.in_path if place == "path" else self.in_query).append(parameter)
        elif name not in HEADERS_OF_THE_FEED:
            raise Unknown(f"{self.name} has the parameter {name} in {place}")

    def read_body(self, body: Schema) -> None:
        if "application/json" not in body["content"]:
            raise Unknown(f"{self.name} takes a body that is not JSON")
        schema = self.models.schema_of(body["content"]["application/json"]["schema"])
        if schema.get("additionalProperties") is not False:
            raise Unknown(f"{self.name} takes members that are not described")
        for name, inner in sorted(schema["properties"].items()):
            kind = self.models.type_of(inner, camel(self.name) + camel(name), sent=True)
            required = name in schema.get("required", ())
            self.in_body.append(Parameter(argument(name), name, kind, required, inner.get("description")))

    @property
    def is_for_programs(self) -> bool:
        """Not one of the pages and files that a browser loads."""
        return self.path.startswith("/v1/") or self.accept == "application/json"

    @property
    def returns(self) -> str:
        if self.accept is None:
            return "None"
        schema = self.content[self.accept]["schema"]
        if self.accept.endswith("json"):
            return self.models.type_of(schema, camel(self.name))
        return "str" if self.accept.startswith(("text/", "image/svg")) else "bytes"

    @property
    def reader(self) -> str:
        return {"None": "_nothing", "str": "_text", "bytes": "_bytes"}.get(self.returns, "_json")

    def parameters(self) -> list[Parameter]:
        """Required ones first, in the order in which they are documented."""
        named = [*self.in_body, *self.in_query]
        return [*(one for one in named if one.required), *(one for one in named if not one.required)]

    def kinds(self) -> list[str]:
        """Every type that the method names."""
        return [one.kind for one in [*self.in_path, *self.parameters()]] + [self.returns, self.element() or ""]

    def extras(self) -> list[str]:
        return [
            *(["if_match: int | None = None"] if "If-Match" in self.headers else []),
            *(["idempotency_key: str | None = None"] if "Idempotency-Key" in self.headers else []),
        ]

    def signature(self, name: str, returns: str, prefix: str, without: str = "") -> list[str]:
        named = [one.declared for one in self.parameters() if one.name != without] + self.extras()
        arguments = ["self", *(one.declared for one in self.in_path), *(["*", *named] if named else [])]
        line = f"    {prefix}def {name}({', '.join(arguments)}) -> {returns}:"
        if len(line) <= WIDTH:
            return [line]
        return [f"    {prefix}def {name}(", *(f"        {one}," for one in arguments), f"    ) -> {returns}:"]

    def doc(self) -> list[str]:
        described = [
            f"`{one.name}`: {' '.join(sentences(one.description))}"
            for one in [*self.in_path, *self.parameters()]
            if one.description
        ]
        if "If-Match" in self.headers:
            described.append("`if_match`: The version that the item must still have; otherwise `Conflict` is raised.")
        if "Idempotency-Key" in self.headers:
            described.append("`idempotency_key`: Repeats an earlier call; by default every call has a new key.")
        route = f"`{self.method} {self.path}`."
        summary = sentences(self.description.get("summary"))
        return [*summary, " ".join([*sentences(self.description.get("description")), "Calls", route]), *described]

    def ask(self) -> list[str]:
        """The expression that describes the request."""
        parts = [f'"{self.name}"', f'"{self.method}"']
        path = self.path
        for one in self.in_path:
            encode = "segments" if one.name in PARAMETERS_WITH_SLASHES else "segment"
            path = path.replace(f"{{{one.sent_as}}}", f"{{{encode}({one.name})}}")
        parts.append(f'f"{path}"' if self.in_path else f'"{path}"')
        parts.append(f'accept="{self.accept or "application/json"}"')
        for name, members in (("query", self.in_query), ("body", self.in_body)):
            if members:
                parts.append(f"{name}={{" + ", ".join(f'"{one.sent_as}": {one.name}' for one in members) + "}")
        if nullable := [f'"{one.sent_as}"' for one in self.in_body if one.is_nullable]:
            parts.append(f"nullable=frozenset({{{', '.join(nullable)}}})")
        if "If-Match" in self.headers:
            parts.append("if_match=if_match")
        if "Idempotency-Key" in self.headers:
            parts.append("key=key_of(idempotency_key)")
        if not self.description.get("security"):
            parts.append("is_open=True")
        return parts

    def call(self, wait: str) -> Iterator[str]:
        """The request, and what is done with its answer. Wrapped as `ruff format` would."""
        parts = self.ask()
        if len(line := f"        ask = Ask({', '.join(parts)})") <= WIDTH:
            yield line
        else:
            yield "        ask = Ask("
            for part in parts:
                yield from wrapped(part, " " * 12)
            yield "        )"
        call = f"{wait}self.{self.reader}(ask)"
        call = f'cast("{self.returns}", {call})' if self.reader == "_json" else call
        yield f"        {'return ' * (self.returns != 'None')}{call}"

    def write(self, is_async: bool) -> Iterator[str]:
        prefix, wait = ("async ", "await ") if is_async else ("", "")
        yield from self.signature(self.name, self.returns, prefix)
        yield from docstring(self.doc(), " " * 8)
        yield from self.call(wait)
        if element := self.element():
            yield ""
            yield from self.write_iterator(element, is_async)

    def element(self) -> str | None:
        """What a list contains that comes in pages."""
        if not any(one.name == "cursor" for one in self.in_query) or self.accept is None:
            return None
        found, whole = [], self.models.schema_of(self.content[self.accept]["schema"])
        for page in [self.models.schema_of(part) for part in whole.get("anyOf", ())] or [whole]:
            self.member = next(name for name, inner in page["properties"].items() if inner.get("type") == "array")
            found.append(self.models.type_of(page["properties"][self.member]["items"], ""))
        return " | ".join(found)

    def write_iterator(self, element: str, is_async: bool) -> Iterator[str]:
        prefix, wait, kind = ("async ", "await ", "AsyncIterator") if is_async else ("", "", "Iterator")
        name = self.name.replace("list_", "iter_", 1)
        yield from self.signature(name, f"{kind}[{element}]", prefix, without="cursor")
        yield from docstring([f"The same as `{self.name}`, page after page."], " " * 8)
        given = [one.name for one in self.in_path]
        given += [f"{one.name}={one.name}" for one in self.in_query if one.name != "cursor"]
        yield "        pages = Pages()"
        yield "        while pages.has_more:"
        yield f"            page = {wait}self.{self.name}("
        yield from (f"                {one}," for one in [*given, "cursor=pages.cursor"])
        yield "            )"
        yield '            pages.turn(page["next"])'
        if is_async:
            yield f'            for one in page["{self.member}"]:'
            yield "                yield one"
        else:
            yield f'            yield from page["{self.member}"]'


def generated(document: Schema) -> dict[str, str]:
    """The text of each file."""
    models = Models(document["components"]["schemas"])
    operations = [
        Operation(path, method, description, models)
        for path, methods in sorted(document["paths"].items())
        for method, description in sorted(methods.items())
    ]
    operations = sorted((one for one in operations if one.is_for_programs), key=lambda one: one.name)
    classes = []
    for name, is_async in (("Operations", False), ("AsyncOperations", True)):
        kind = "AsyncAsks" if is_async else "Asks"
        classes.append(f"class {name}({kind}):\n" + "\n".join(docstring(["One method for each operation."], "    ")))
        classes += ["\n".join(one.write(is_async)) for one in operations]
    models.define("Problem")
    body = "\n\n\n".join([*models.texts.values(), listing(models.texts)])
    names = words(" ".join(kind for one in operations for kind in one.kinds())) & models.texts.keys()
    written = joined(classes)
    from_asks = {"Ask", "Asks", "AsyncAsks", "Pages", "ABSENT", "Absent", "key_of", "segment", "segments"}
    return {
        "pilot_client/models.py": HEAD.format("What the service answers, as types.")
        + f"\n{imported('typing', {'Any', 'Literal', 'NotRequired', 'TypeAlias', 'TypedDict'}, body)}\n{body}\n",
        "pilot_client/operations.py": HEAD.format("One method for each operation of the API, blocking and not.")
        + "\n"
        + imported("collections.abc", {"AsyncIterator", "Iterator", "Mapping", "Sequence"}, written)
        + imported("typing", {"Any", "Literal", "cast"}, written)
        + "\n"
        + imported("pilot_client.asks", from_asks, written)
        + imported("pilot_client.models", names, written)
        + f"\n\n{written}",
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description="Generates the client's models and operations.")
    arguments.add_argument("--check", action="store_true", help="only compare")
    check = arguments.parse_args().check
    differs = False
    for name, text in generated(json.loads(DOCUMENT.read_text())).items():
        path = HERE / name
        old = path.read_text() if path.exists() else ""
        if check and text != old:
            lines = difflib.unified_diff(old.splitlines(True), text.splitlines(True), name, f"{name}, as it should be")
            sys.stdout.writelines(lines)
            differs = True
        elif text != old:
            path.write_text(text)
    if differs:
        print(f"\nthe client is not what docs/reference/openapi.json says; run `{COMMAND}` and read the difference")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
