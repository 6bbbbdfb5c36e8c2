"""Judges payloads by the JSON Schema 2020-12 of a definition: all of it for a finished payload, only the types for a
draft. docs/audit/semantics.md says which keywords count when."""
import ipaddress
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from operator import ge, gt, le, lt
from urllib.parse import unquote

from .formats import canonical, is_time

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

def is_unique(items):
    return len(set(map(canonical, items))) == len(items)

# keyword: (the type it is about, what it says of a value). It says nothing of values of other types.
CONDITIONS = {
    "multipleOf": ("number", lambda step, value: exact(value) % exact(step) == 0),
    "required": ("object", lambda names, value: set(names) <= set(value)),
    "dependentRequired": ("object", lambda named, value: all(set(named[name]) <= set(value) for name in named
                                                             if name in value)),
    "uniqueItems": ("array", lambda is_set, value: not is_set or is_unique(value)),
    "pattern": ("string", lambda pattern, value: is_found(pattern, value)),
    "format": ("string", lambda name, value: has_format(name, value))}
LIMITS = {
    "minimum": ("number", exact, ge), "maximum": ("number", exact, le), "exclusiveMinimum": ("number", exact, gt),
    "exclusiveMaximum": ("number", exact, lt), "minLength": ("string", len, ge), "maxLength": ("string", len, le),
    "minItems": ("array", len, ge), "maxItems": ("array", len, le), "minProperties": ("object", len, ge),
    "maxProperties": ("object", len, le)}

class Judge:
    """Every method answers whether a value holds, and which of its members or items were judged on the way."""

    def __init__(self, root, types_only):
        self.root, self.types_only = root, types_only

    def holds(self, schema, value):
        return self.node(schema, value)[0]

    def node(self, schema, value):
        if isinstance(schema, bool):
            return schema, set()
        wanted = schema.get("type", [])
        wanted = [wanted] if isinstance(wanted, str) else wanted
        verdicts = [(not wanted or any(is_of_type(value, name) for name in wanted), set())]
        if isinstance(value, dict):
            verdicts += [self.member(schema, name, member) for name, member in value.items()]
        elif isinstance(value, list):
            verdicts += [self.list_item(schema, index, item) for index, item in enumerate(value)]
        verdicts += self.in_place(schema, value)
        if not self.types_only:
            verdicts += [(self.conditions(schema, value), set()), *self.in_place_finished(schema, value)]
        judged = set().union(*(names for _, names in verdicts))
        holds = all(branch_holds for branch_holds, _ in verdicts) and (
            self.types_only or self.unevaluated(schema, value, judged))
        return holds, judged if holds else set()

    def member(self, schema, name, member):
        said = [inner for known, inner in schema.get("properties", {}).items() if known == name]
        patterns = [inner for text, inner in schema.get("patternProperties", {}).items() if is_found(text, name)]
        if not said and not patterns:
            is_judged = "additionalProperties" in schema
            return self.holds(schema.get("additionalProperties", True), member), {name} if is_judged else set()
        # In a draft it is enough that a pattern speaks of the member: what it must be does not apply yet.
        said += [] if self.types_only else patterns
        return all(self.holds(inner, member) for inner in said), {name}

    def list_item(self, schema, index, item):
        first = schema.get("prefixItems", [])
        if index < len(first):
            return self.types_only or self.holds(first[index], item), {index}
        return self.holds(schema.get("items", True), item), {index} if "items" in schema else set()

    def conditions(self, schema, value):
        """What applies to finished payloads only."""
        said = [kind for kind in LIMITS if kind in schema and is_of_type(value, LIMITS[kind][0])]
        within = all(LIMITS[name][2](LIMITS[name][1](value), exact(schema[name])) for name in said)
        said = [kind for kind in CONDITIONS if kind in schema and is_of_type(value, CONDITIONS[kind][0])]
        options = [canonical(option) for option in schema.get("enum", [value])]
        return (within and all(CONDITIONS[name][1](schema[name], value) for name in said)
                and canonical(value) in options and canonical(schema.get("const", value)) == canonical(value)
                and ("not" not in schema or not self.holds(schema["not"], value)))

    def in_place(self, schema, value):
        """The verdicts of schemas that judge the same value."""
        verdicts = [self.node(branch, value) for branch in schema.get("allOf", [])]
        for keyword, most in (("anyOf", None), ("oneOf", 1)):
            if keyword not in schema or keyword == "anyOf" and self.types_only and "oneOf" in schema:
                continue
            valid = [judged for holds, judged in (self.node(branch, value) for branch in schema[keyword]) if holds]
            # Without their conditions several branches may hold, which is not a fault in a draft.
            is_one = most is None or self.types_only or len(valid) <= most
            verdicts.append((bool(valid) and is_one, set().union(*valid)))
        if "$ref" in schema:
            verdicts.append(self.node(self.referred(schema["$ref"]), value))
        return verdicts

    def in_place_finished(self, schema, value):
        verdicts = []
        if isinstance(value, dict):
            named = schema.get("dependentSchemas", {})
            verdicts += [self.node(named[name], value) for name in named if name in value]
            verdicts += [(self.holds(schema.get("propertyNames", True), name), set()) for name in value]
        if isinstance(value, list) and "contains" in schema:
            found = {index for index, item in enumerate(value) if self.holds(schema["contains"], item)}
            is_enough = schema.get("minContains", 1) <= len(found) <= schema.get("maxContains", len(value))
            verdicts.append((is_enough, found))
        if "if" in schema:
            holds, judged = self.node(schema["if"], value)
            verdicts += [(True, judged), self.node(schema.get("then" if holds else "else", True), value)]
        return verdicts

    def unevaluated(self, schema, value, judged):
        """Members and items that nothing else has spoken of."""
        keyword = {dict: "unevaluatedProperties", list: "unevaluatedItems"}.get(type(value))
        if keyword not in schema:
            return True
        rest = set(value if isinstance(value, dict) else range(len(value))) - judged
        judged |= rest
        return all(self.holds(schema[keyword], value[name]) for name in rest)

    def referred(self, reference):
        fragment = unquote(reference.removeprefix("#"))
        found = follow_pointer(self.root, fragment) if fragment[:1] in ("", "/") else []
        if not found:
            raise CannotCheck(reference)
        return found[0]

# ---- patterns

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

# ---- formats

LABEL = r"(?!-)(?!(?!xn)..--)[A-Za-z0-9-]{1,63}(?<!-)"
HOSTNAME = rf"(?=.{{1,253}}\Z){LABEL}(?:\.{LABEL})*"
MAILBOX = r"""(?=.{1,64}\Z)(?:[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*|"(?:[\t !#-\[\]-~]|\\[!-~])*")"""
DATE_TIME = (r"([0-9-]{10})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?"
             r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))")
DURATION = (r"P(?=.)(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)?"
            r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)")
PLAIN = r"[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
URI = (rf"([A-Za-z][A-Za-z0-9+.-]*:)?(?://(?:(?:{PLAIN}|:)*@)?(?:\[([^\]]*)\]|(?:{PLAIN})*)(?::[0-9]*)?(?=[/?#]|\Z)"
       rf"|(?!//))((?:{PLAIN}|[:@/])*)(?:\?(?:{PLAIN}|[:@/?])*)?(?:#(?:{PLAIN}|[:@/?])*)?")

def is_date(text):
    return is_time(text + "T00:00:00Z")

def is_date_time(text):
    """RFC 3339. A leap second is the last second of a day in UTC."""
    found = re.fullmatch(DATE_TIME, text)
    if not found or not is_date(found[1]):
        return False
    offset = (int(found[6] or 0) * 60 + int(found[7] or 0)) * (-1 if found[5] == "-" else 1)
    return found[4] != "60" or (int(found[2]) * 60 + int(found[3]) - offset) % 1_440 == 1_439

def is_address(text, version):
    try:
        return "%" not in text and ipaddress.ip_address(text).version == version
    except ValueError:
        return False

def is_email(text):
    """RFC 5321, and a name before the address in angle brackets."""
    if " <" in text:
        text = text.rpartition(" <")[2].strip()
        text = text[:-1] if text.endswith(">") else ""
    local, _, domain = text.rpartition("@")
    literal = re.fullmatch(r"\[((?i:ipv6:)?)(.*)\]", domain)
    is_domain = is_address(literal[2], 6 if literal[1] else 4) if literal else re.fullmatch(HOSTNAME, domain)
    return bool(is_domain) and re.fullmatch(MAILBOX, local, re.ASCII) is not None

def is_uri(text, needs_scheme=True):
    found = re.fullmatch(URI, text)
    if not found or not found[1] and (needs_scheme or ":" in found[3].partition("/")[0]):
        return False
    return found[2] is None or is_address(found[2], 6) or bool(re.fullmatch(rf"[vV][0-9A-Fa-f]+\.(?:{PLAIN}|:)+", found[2]))

FORMATS = {
    "date": is_date, "date-time": is_date_time, "time": lambda text: is_date_time("2000-01-01T" + text),
    "email": is_email, "uri": is_uri, "uri-reference": lambda text: is_uri(text, needs_scheme=False),
    "ipv4": lambda text: is_address(text, 4), "ipv6": lambda text: is_address(text, 6),
    "duration": lambda text: re.fullmatch(DURATION, text), "hostname": lambda text: re.fullmatch(HOSTNAME, text),
    "uuid": lambda text: re.fullmatch("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", text)}

def has_format(name, text):
    if name not in FORMATS:
        raise CannotCheck(f"the format {name}")
    return bool(FORMATS[name](text))
