"""How generate.py lays out what it writes: as `ruff format` would."""

import re
import textwrap
from collections.abc import Iterator

WIDTH = 120


def sentences(*texts: str | None) -> list[str]:
    """Each text as a paragraph that ends with a full stop."""
    found = [" ".join(text.split()) for text in texts if text]
    return [text if text.endswith((".", ":", "?")) else f"{text}." for text in found]


def docstring(paragraphs: list[str], indent: str) -> list[str]:
    """A docstring that is as long as it has to be."""
    width = WIDTH - len(indent)
    if len(paragraphs) == 1 and len(paragraphs[0]) + 6 <= width:
        return [f'{indent}"""{paragraphs[0]}"""']
    lines: list[str] = []
    previous = ""
    for paragraph in ['"""' + paragraphs[0], *paragraphs[1:]]:
        is_listed, was_listed = paragraph.startswith("`"), previous.startswith("`")
        hang = "    " if is_listed else ""
        found = textwrap.wrap(paragraph, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
        lines += [""] * (bool(lines) and not (is_listed and was_listed)) + [indent + line for line in found]
        previous = paragraph
    return [*lines, f'{indent}"""']


def comment(text: str | None, indent: str) -> list[str]:
    lines = textwrap.wrap(" ".join((text or "").split()), WIDTH - len(indent) - 2, break_long_words=False)
    return [f"{indent}# {line}" for line in lines]


def camel(text: str) -> str:
    return "".join(part.capitalize() for part in text.replace("-", "_").split("_"))


def wrapped(part: str, indent: str) -> Iterator[str]:
    """An argument on a line, or a dictionary with a line for each member."""
    if len(indent + part) < WIDTH:
        yield f"{indent}{part},"
        return
    opening, members = part.removesuffix("}").split("{", 1)
    yield f"{indent}{opening}{{"
    for member in members.split(", "):
        yield f"{indent}    {member},"
    yield f"{indent}}},"


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def imported(module: str, names: set[str], text: str) -> str:
    """The import of those names that the text uses, as `ruff format` would write it."""
    # Constants, then classes, then functions.
    used = sorted(names & words(text), key=lambda name: (not name.isupper(), name[0].islower(), name))
    line = f"from {module} import {', '.join(used)}\n"
    return (
        line if len(line) <= WIDTH else f"from {module} import (\n" + "".join(f"    {one},\n" for one in used) + ")\n"
    )


def joined(classes: list[str]) -> str:
    """Two lines before a class, one before a method."""
    text = classes[0]
    for part in classes[1:]:
        text += ("\n\n\n" if part.startswith("class ") else "\n\n") + part
    return text + "\n"


def listing(names: dict[str, str]) -> str:
    return "\n".join(["__all__ = [", *(f'    "{name}",' for name in sorted(names)), "]"])
