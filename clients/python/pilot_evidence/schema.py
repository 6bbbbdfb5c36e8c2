"""Judges payloads by the JSON Schema of a definition: all of it for a finished payload, only the types for a draft.
docs/audit/semantics.md says which keywords count when, README.md which are not known here."""
import ipaddress
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from operator import ge, gt, le, lt
from urllib.parse import unquote

from .formats import canonical

class CannotCheck(Exception):
    """The schema uses something this judge does not know. Guessing would be worse than saying so."""

def follow_pointer(value, pointer):
    """What a JSON pointer leads to, as a list of one; empty if that is nothing."""
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return []
    return [value]

def exact(number):
    """A number as it is written in decimal, so that 0.3 is a multiple of 0.1."""
    return Fraction(Decimal(repr(number)))

def is_of_type(value, name):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {"null": value is None, "boolean": isinstance(value, bool), "number": is_number,
            "integer": is_number and exact(value).denominator == 1, "string": isinstance(value, str),
            "array": isinstance(value, list), "object": isinstance(value, dict)}[name]

# keyword: (the type it is about, what it says of a value). It says nothing of values of other types.
def limit(kind, measure, compare):
    return kind, lambda bound, value: compare(measure(value), exact(bound))

CONDITIONS = {
    "minimum": limit("number", exact, ge), "exclusiveMinimum": limit("number", exact, gt),
    "maximum": limit("number", exact, le), "exclusiveMaximum": limit("number", exact, lt),
    "minLength": limit("string", len, ge), "maxLength": limit("string", len, le),
    "minItems": limit("array", len, ge), "maxItems": limit("array", len, le),
    "minProperties": limit("object", len, ge), "maxProperties": limit("object", len, le),
    "multipleOf": ("number", lambda step, value: exact(value) % exact(step) == 0),
    "required": ("object", lambda names, value: set(names) <= set(value)),
    "dependentRequired": ("object", lambda dependent, value: all(
        set(names) <= set(value) for name, names in dependent.items() if name in value)),
    "uniqueItems": ("array", lambda is_set, value: not is_set or len(set(map(canonical, value))) == len(value)),
    "pattern": ("string", lambda pattern, value: is_found(pattern, value)),
    "format": ("string", lambda name, value: has_format(name, value))}
UNKNOWN = {"unevaluatedProperties", "unevaluatedItems"}

class Judge:
    def __init__(self, root, types_only):
        self.root, self.types_only = root, types_only

    def holds(self, schema, value):
        if isinstance(schema, bool):
            return schema
        if not self.types_only and UNKNOWN & set(schema):
            raise CannotCheck(", ".join(schema))
        wanted = schema.get("type", [])
        wanted = [wanted] if isinstance(wanted, str) else wanted
        is_typed = not wanted or any(is_of_type(value, name) for name in wanted)
        return is_typed and self.inside(schema, value) and self.in_place(schema, value) and (
            self.types_only or self.conditions(schema, value))

    def inside(self, schema, value):
        """Members and items."""
        if isinstance(value, dict):
            return all(self.member(schema, name, member) for name, member in value.items())
        first, others = schema.get("prefixItems", []), schema.get("items", True)
        # In a draft, items at fixed places are not judged.
        return not isinstance(value, list) or all(
            self.holds(others, item) if index >= len(first) else self.types_only or self.holds(first[index], item)
            for index, item in enumerate(value))

    def member(self, schema, name, member):
        said = [inner for known, inner in schema.get("properties", {}).items() if known == name]
        patterns = [inner for text, inner in schema.get("patternProperties", {}).items() if is_found(text, name)]
        if not said and not patterns:
            return self.holds(schema.get("additionalProperties", True), member)
        # In a draft it is enough that a pattern speaks of the member: what it must be does not apply yet.
        return all(self.holds(inner, member) for inner in said + ([] if self.types_only else patterns))

    def in_place(self, schema, value):
        """Schemas that judge the same value."""
        reference = schema.get("$ref", "#")
        found = follow_pointer(self.root, unquote(reference[1:])) if re.fullmatch("#(/.*)?", reference) else []
        if not found:
            raise CannotCheck(reference)
        any_of, one_of = ([self.holds(branch, value) for branch in schema.get(name, [])] for name in ("anyOf", "oneOf"))
        return (all(self.holds(branch, value) for branch in schema.get("allOf", []))
                and (not any_of or any(any_of) or self.types_only and bool(one_of))
                # Without their conditions several branches may hold, which is not a fault in a draft.
                and (not one_of or sum(one_of) == 1 or self.types_only and any(one_of))
                and ("$ref" not in schema or self.holds(found[0], value)))

    def conditions(self, schema, value):
        """What applies to finished payloads only."""
        said = [name for name in CONDITIONS if name in schema and is_of_type(value, CONDITIONS[name][0])]
        branch = "then" if self.holds(schema.get("if", True), value) else "else"
        return (all(CONDITIONS[name][1](schema[name], value) for name in said)
                and canonical(value) in map(canonical, schema.get("enum", [value]))
                and canonical(value) == canonical(schema.get("const", value))
                and not ("not" in schema and self.holds(schema["not"], value))
                and ("if" not in schema or self.holds(schema.get(branch, True), value))
                and (not isinstance(value, dict) or self.names(schema, value))
                and (not isinstance(value, list) or "contains" not in schema or self.contains(schema, value)))

    def names(self, schema, value):
        dependent = [inner for name, inner in schema.get("dependentSchemas", {}).items() if name in value]
        return all(self.holds(inner, value) for inner in dependent) and all(
            self.holds(schema.get("propertyNames", True), name) for name in value)

    def contains(self, schema, value):
        found = sum(self.holds(schema["contains"], item) for item in value)
        return schema.get("minContains", 1) <= found <= schema.get("maxContains", len(value))

# A bracket in a class stands for itself, now and in ECMA-262.
warnings.simplefilter("ignore", FutureWarning)
# What the classes of ECMA-262 stand for. Python's own know more digits and letters, and fewer spaces.
CLASSES = {r"\d": "0-9", r"\w": "0-9A-Z_a-z",
           r"\s": r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"}

def is_found(pattern, text):
    """Whether a pattern of ECMA-262 is found anywhere in a text."""
    translated, in_class = "", False
    for token in re.findall(r"\\.|\(\?:?|.", pattern, re.DOTALL):
        ranges = CLASSES.get(token.lower())
        if token == "(?" or re.fullmatch(r"\\[pPbBc<>]", token) or in_class and ranges and token.isupper():
            raise CannotCheck(f"{token} in {pattern}")
        if ranges:
            translated += ranges if in_class else f"[{'^' * token.isupper()}{ranges}]"
            continue
        in_class = token == "[" or in_class and token != "]"
        translated += r"\Z" if token == "$" and not in_class else token
    try:
        return re.search(translated, text) is not None
    except re.error as error:
        raise CannotCheck(f"{pattern}: {error}") from None

PLAIN = r"[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
# RFC 3986. What is in brackets is an address.
URI = (rf"[A-Za-z][A-Za-z0-9+.-]*:(?://(?:(?:{PLAIN}|:)*@)?(?:\[([^\]]*)\]|(?:{PLAIN})*)(?::[0-9]*)?(?=[/?#]|\Z)"
       rf"|(?!//))(?:{PLAIN}|[:@/])*(?:\?(?:{PLAIN}|[:@/?])*)?(?:#(?:{PLAIN}|[:@/?])*)?")

def has_format(name, text):
    if name != "uri":
        raise CannotCheck(f"the format {name}")
    found = re.fullmatch(URI, text)
    if not found or found[1] is None or re.fullmatch(rf"[vV][0-9A-Fa-f]+\.(?:{PLAIN}|:)+", found[1]):
        return found is not None
    try:
        return "%" not in found[1] and ipaddress.ip_address(found[1]).version == 6
    except ValueError:
        return False
