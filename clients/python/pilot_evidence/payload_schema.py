"""Judges payloads by the JSON Schema 2020-12 of a definition: all of it for a finished payload, only the types for a
draft. docs/audit/semantics.md says which keywords count when."""

import ipaddress
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from urllib.parse import unquote

from .formats import canonical, same


class CannotCheck(Exception):
    """The schema uses something this judge does not know. Guessing would be worse than saying so."""


class PayloadSchema:
    def __init__(self, root):
        self.root = root

    def holds(self, payload, types_only):
        return Judge(self.root, types_only).node(self.root, payload)[0]


def find_anchor(schema, name):
    """The schema that has this $anchor, wherever it is."""
    if isinstance(schema, dict):
        if schema.get("$anchor") == name:
            return schema
        schema = list(schema.values())
    for inner in schema if isinstance(schema, list) else ():
        if (found := find_anchor(inner, name)) is not None:
            return found
    return None


class Judge:
    """Every method answers whether a value holds, and which members or items were judged on the way."""

    def __init__(self, root, types_only):
        self.root, self.types_only = root, types_only

    def node(self, schema, value):
        if isinstance(schema, bool):
            return schema, set()
        holds, judged = self.shape(schema, value)
        if not self.types_only:
            holds = holds and self.conditions(schema, value)
        for branch_holds, branch_judged in self.in_place(schema, value):
            holds = holds and branch_holds
            judged |= branch_judged
        if holds and not self.types_only:
            holds = self.unevaluated(schema, value, judged)
        return holds, judged if holds else set()

    def is_valid(self, schema, value):
        return self.node(schema, value)[0]

    # ---- types, members and items: what also applies to a draft

    def shape(self, schema, value):
        wanted = schema.get("type")
        wanted = wanted if isinstance(wanted, list) else [wanted]
        holds = wanted == [None] or any(is_of_type(value, name) for name in wanted)
        judged = set()
        if isinstance(value, dict):
            for name, member in value.items():
                member_holds, is_known = self.member(schema, name, member)
                holds = holds and member_holds
                judged |= {name} if is_known else set()
        elif isinstance(value, list):
            first = schema.get("prefixItems", [])
            for index, item in enumerate(value):
                if index >= len(first) and "items" not in schema or index < len(first) and self.types_only:
                    continue
                judged.add(index)
                holds = holds and self.is_valid(first[index] if index < len(first) else schema["items"], item)
        return holds, judged

    def member(self, schema, name, member):
        """Whether what is said about a member holds, and whether anything is said about it."""
        said = [inner for known, inner in schema.get("properties", {}).items() if known == name]
        patterns = [inner for text, inner in schema.get("patternProperties", {}).items() if is_found(text, name)]
        is_known = bool(said or patterns)
        # In a draft it is enough that a pattern speaks of the member: what it must be does not apply yet.
        said += [] if self.types_only else patterns
        others = schema.get("additionalProperties", True)
        if not is_known and others is False:
            return False, False
        if not is_known and "additionalProperties" in schema:
            return self.is_valid(others, member), True
        return all(self.is_valid(inner, member) for inner in said), is_known

    # ---- what applies to finished payloads only

    def conditions(self, schema, value):
        for name, check in CONDITIONS.items():
            if name in schema and not check(schema[name], value):
                return False
        if isinstance(value, dict):
            for name, required in schema.get("dependentRequired", {}).items():
                if name in value and not set(required) <= set(value):
                    return False
            if "propertyNames" in schema and not all(self.is_valid(schema["propertyNames"], name) for name in value):
                return False
        return True

    def contained(self, schema, value):
        """How many items `contains` finds, within its bounds."""
        found = {index for index, item in enumerate(value) if self.is_valid(schema["contains"], item)}
        least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
        return least <= len(found) <= most, found

    def unevaluated(self, schema, value, judged):
        """Members and items that nothing else has spoken of."""
        keyword = {dict: "unevaluatedProperties", list: "unevaluatedItems"}.get(type(value))
        if keyword not in schema:
            return True
        rest = [name for name in (value if isinstance(value, dict) else range(len(value))) if name not in judged]
        judged.update(rest)
        return all(self.is_valid(schema[keyword], value[name]) for name in rest)

    # ---- schemas about the same value

    def in_place(self, schema, value):
        """The verdicts of all schemas that judge the same value."""
        verdicts = [self.node(branch, value) for branch in schema.get("allOf", [])]
        if "anyOf" in schema and not (self.types_only and "oneOf" in schema):
            verdicts.append(self.any_of(schema["anyOf"], value))
        if "oneOf" in schema:
            branches = [self.node(branch, value) for branch in schema["oneOf"]]
            valid = [judged for holds, judged in branches if holds]
            # Without their conditions several branches may hold, which is not a fault in a draft.
            verdicts.append((len(valid) == 1 or self.types_only and len(valid) > 1, set().union(*valid)))
        if "$ref" in schema:
            verdicts.append(self.node(self.referred(schema["$ref"]), value))
        return verdicts if self.types_only else verdicts + self.in_place_finished(schema, value)

    def in_place_finished(self, schema, value):
        verdicts = []
        if isinstance(value, dict):
            named = schema.get("dependentSchemas", {})
            verdicts += [self.node(inner, value) for name, inner in named.items() if name in value]
        if isinstance(value, list) and "contains" in schema:
            verdicts.append(self.contained(schema, value))
        if "not" in schema:
            verdicts.append((not self.is_valid(schema["not"], value), set()))
        if "if" in schema:
            holds, judged = self.node(schema["if"], value)
            verdicts += [(True, judged), self.node(schema.get("then" if holds else "else", True), value)]
        return verdicts

    def any_of(self, branches, value):
        valid = [judged for holds, judged in (self.node(branch, value) for branch in branches) if holds]
        return bool(valid), set().union(*valid)

    def referred(self, reference):
        fragment = unquote(reference.removeprefix("#"))
        found = find_anchor(self.root, fragment) if fragment and not fragment.startswith("/") else self.root
        for name in fragment.split("/")[1:]:
            name = name.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found[name]
        if found is None:
            raise CannotCheck(reference)
        return found


# ---- values by themselves


def is_of_type(value, name):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {"null": value is None, "boolean": isinstance(value, bool), "number": is_number,
            "integer": is_number and exact(value).denominator == 1, "string": isinstance(value, str),
            "array": isinstance(value, list), "object": isinstance(value, dict)}[name]


def exact(number):
    """A number as it is written in decimal, so that 0.3 is a multiple of 0.1."""
    return Fraction(Decimal(repr(number)))


def about(kind, holds):
    """A condition about one type. About a value of another type it says nothing."""

    def check(limit, value):
        is_other = not isinstance(value, kind) or isinstance(value, bool)
        return is_other or holds(limit, value)

    return check


NUMBER = int | float
CONDITIONS = {
    "const": same,
    "enum": lambda options, value: any(same(option, value) for option in options),
    "minimum": about(NUMBER, lambda limit, value: exact(value) >= exact(limit)),
    "maximum": about(NUMBER, lambda limit, value: exact(value) <= exact(limit)),
    "exclusiveMinimum": about(NUMBER, lambda limit, value: exact(value) > exact(limit)),
    "exclusiveMaximum": about(NUMBER, lambda limit, value: exact(value) < exact(limit)),
    "multipleOf": about(NUMBER, lambda step, value: exact(value) % exact(step) == 0),
    "minLength": about(str, lambda limit, value: len(value) >= limit),
    "maxLength": about(str, lambda limit, value: len(value) <= limit),
    "minItems": about(list, lambda limit, value: len(value) >= limit),
    "maxItems": about(list, lambda limit, value: len(value) <= limit),
    "minProperties": about(dict, lambda limit, value: len(value) >= limit),
    "maxProperties": about(dict, lambda limit, value: len(value) <= limit),
    "required": about(dict, lambda names, value: set(names) <= set(value)),
    "uniqueItems": about(list, lambda is_set, value: not is_set or len(set(map(canonical, value))) == len(value)),
    "pattern": about(str, lambda text, value: is_found(text, value)),
    "format": about(str, lambda name, value: has_format(name, value)),
}

# What the classes of ECMA-262 stand for. Python's own know more digits and letters, and fewer spaces.
SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
CLASSES = {"d": "0-9", "w": "0-9A-Z_a-z", "s": SPACES}


def is_found(pattern, text):
    """Whether a pattern is found anywhere in a text."""
    with warnings.catch_warnings():
        # A bracket in a class stands for itself, now and in ECMA-262.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return re.search(to_python(pattern), text) is not None
        except re.error as error:
            raise CannotCheck(f"{pattern}: {error}") from None


def to_python(pattern):
    """A pattern of ECMA-262 as Python reads it: other classes, and `$` only at the very end."""
    text, in_class, at = "", False, 0
    while at < len(pattern):
        sign, after = pattern[at], pattern[at + 1: at + 2]
        at += 1
        if sign == "\\":
            at += 1
            ranges = CLASSES.get(after.lower())
            if after in ("p", "P", "b", "B", "c", "<", ">") or in_class and ranges and after.isupper():
                raise CannotCheck(f"\\{after} in {pattern}")
            text += "\\" + after if ranges is None else ranges if in_class else f"[{'^' * after.isupper()}{ranges}]"
        elif sign == "(" and after == "?" and pattern[at + 1: at + 2] != ":":
            raise CannotCheck(f"(? in {pattern}")
        else:
            in_class = sign == "[" or in_class and sign != "]"
            text += r"\Z" if sign == "$" and not in_class else sign
    return text


# ---- formats

LABEL = r"(?!-)(?!(?!xn)..--)[A-Za-z0-9-]{1,63}(?<!-)"
PLAIN = r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}|["
OFFSET = r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
HOSTNAME = re.compile(rf"(?=.{{1,253}}\Z){LABEL}(?:\.{LABEL})*")
MAILBOX = re.compile(r"""(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"""
                     r"""|"(?:[\t !#-\[\]-~]|\\[!-~])*")""")
TIME_OF_DAY = re.compile(rf"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?{OFFSET}")
DURATION = re.compile(r"P(?=.)(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)?"
                      r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)")
POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")
RELATIVE_POINTER = re.compile(rf"(?:0|[1-9][0-9]*)(?:#|{POINTER.pattern})")
UUID = re.compile("[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def is_date(text):
    found = re.fullmatch("([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    is_leap = year % 4 == 0 and year % 100 != 0 or year % 400 == 0
    return 1 <= month <= 12 and 1 <= day <= (31, 28 + is_leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def is_time(text):
    """RFC 3339. A leap second is the last second of a day in UTC."""
    found = TIME_OF_DAY.fullmatch(text)
    if not found:
        return False
    hour, minute, second, sign, hours, minutes = found.groups()
    offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1) if sign else 0
    return second != "60" or (int(hour) * 60 + int(minute) - offset) % 1_440 == 1_439


def is_date_time(text):
    date, mark, time = text[:10], text[10:11], text[11:]
    return mark in ("T", "t") and is_date(date) and is_time(time)


def is_address(text, version):
    try:
        return "%" not in text and ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def is_email(text):
    """RFC 5321, and a name before the address in angle brackets."""
    if " <" in text:
        text = text[text.rindex(" <") + 2:].strip()
        if not text.endswith(">"):
            return False
        text = text[:-1]
    local, at, domain = text.rpartition("@")
    if domain.startswith("[") and domain.endswith("]"):
        literal = domain[1:-1]
        is_six = literal[:5].lower() == "ipv6:"
        is_domain = is_address(literal[5:], 6) if is_six else is_address(literal, 4)
    else:
        is_domain = bool(HOSTNAME.fullmatch(domain))
    return at != "" and len(local.encode()) <= 64 and bool(MAILBOX.fullmatch(local)) and is_domain


def has_only(text, signs):
    """Nothing but the plain signs of RFC 3986, encoded ones, and these."""
    return re.fullmatch(PLAIN + re.escape(signs or "a") + "])*", text or "") is not None


def is_authority(text):
    user, at, place = text.rpartition("@") if text.count("@") <= 1 else ("@", "@", "")
    if found := re.fullmatch(r"\[(.*?)\](?::[0-9]*)?", place):
        later = re.fullmatch(r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+", found[1])
        return has_only(user, ":") and (bool(later) or is_address(found[1], 6))
    host, _, port = place.partition(":")
    return has_only(user, ":") and has_only(host, "") and re.fullmatch("[0-9]*", port) is not None


def is_uri(text, needs_scheme=True):
    scheme, authority, path, query, fragment = URI.fullmatch(text).groups()
    is_placed = scheme is not None or not needs_scheme and ":" not in path.split("/")[0]
    return (is_placed and (authority is None or is_authority(authority)) and has_only(path, ":@/")
            and has_only(query, ":@/?") and has_only(fragment, ":@/?"))


FORMATS = {
    "date": is_date, "date-time": is_date_time, "time": is_time, "email": is_email, "uri": is_uri,
    "duration": DURATION.fullmatch, "hostname": HOSTNAME.fullmatch, "json-pointer": POINTER.fullmatch,
    "relative-json-pointer": RELATIVE_POINTER.fullmatch, "uuid": UUID.fullmatch,
    "ipv4": lambda text: is_address(text, 4), "ipv6": lambda text: is_address(text, 6),
    "uri-reference": lambda text: is_uri(text, needs_scheme=False),
}


def has_format(name, text):
    if name not in FORMATS:
        raise CannotCheck(f"the format {name}")
    return bool(FORMATS[name](text))
