"""Judges payloads by the JSON Schema of a definition: all of it for a finished payload, only the types for a draft.
docs/audit/semantics.md says which keywords count when, README.md which are not known here."""
import re
from operator import ge, gt, le, lt, pos

from .formats import canonical

def follow_pointer(value, pointer):
    """What a JSON pointer leads to, as a list of one; empty if that is nothing."""
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        members = {str(at): item for at, item in enumerate(value)} if isinstance(value, list) else value
        if not isinstance(members, dict) or name not in members:
            return []
        value = members[name]
    return [value]

def is_of_type(value, name):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {"any": True, "null": value is None, "boolean": isinstance(value, bool), "number": is_number,
            "integer": is_number and value % 1 == 0, "string": isinstance(value, str),
            "array": isinstance(value, list), "object": isinstance(value, dict)}[name]

# What ECMA-262 writes like Python and means otherwise.
SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
TRANSLATED = {r"\s": f"[{SPACES}]", r"\S": f"[^{SPACES}]", "$": r"\Z"}

def is_found(pattern, text):
    """Whether a pattern of ECMA-262 is found anywhere in a text."""
    tokens = re.findall(r"\[\^?(?:[^][\\]|\\[dw.\\-])+\]|\\[dDwWsS.*+?^$|/\\(){}[\]-]|\(\?:|\((?!\?)|[^[(\\]", pattern)
    if "".join(tokens) != pattern:
        raise NotImplementedError(pattern)
    return re.search("".join(TRANSLATED.get(token, token) for token in tokens), text, re.ASCII) is not None

# RFC 3986, without addresses in brackets.
PLAIN = r"[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
URI = (rf"[A-Za-z][A-Za-z0-9+.-]*:(?://(?:(?:{PLAIN}|:)*@)?(?:{PLAIN})*(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
       rf"(?:{PLAIN}|[:@/])*(?:\?(?:{PLAIN}|[:@/?])*)?(?:#(?:{PLAIN}|[:@/?])*)?")

def has_format(name, text):
    if name != "uri" or re.match(r"[^/?#]*//[^/?#]*\[", text):
        raise NotImplementedError(f"{text} as {name}")
    return re.fullmatch(URI, text) is not None

def limit(kind, measure, compare):
    return kind, lambda bound, value: compare(measure(value), bound)

# keyword: (the type it is about, what it says of a value). It says nothing of values of other types, and of drafts.
CONDITIONS = {
    "minimum": limit("number", pos, ge), "exclusiveMinimum": limit("number", pos, gt),
    "maximum": limit("number", pos, le), "exclusiveMaximum": limit("number", pos, lt),
    "minLength": limit("string", len, ge), "maxLength": limit("string", len, le),
    "minItems": limit("array", len, ge), "maxItems": limit("array", len, le),
    "minProperties": limit("object", len, ge), "maxProperties": limit("object", len, le),
    "required": ("object", lambda names, value: set(names) <= set(value)),
    "uniqueItems": ("array", lambda is_set, value: not is_set or len(set(map(canonical, value))) == len(value)),
    "pattern": ("string", is_found), "format": ("string", has_format),
    "enum": ("any", lambda values, value: canonical(value) in map(canonical, values)),
    "const": ("any", lambda wanted, value: canonical(value) == canonical(wanted))}
ELSEWHERE = set("type properties additionalProperties items $ref allOf anyOf oneOf not if then else $defs $schema $id"
                " $comment title description default examples".split())
# Drafts may ignore what else there is, except for these: they decide what other keywords are about.
NEVER_IGNORED = {"patternProperties", "prefixItems"}

def judge(root, payload, is_draft):
    """Whether a payload fits a schema; None if that is not known here. Guessing would be worse than saying so."""
    def holds(schema, value):
        if isinstance(schema, bool):
            return schema
        unknown = set(schema) - ELSEWHERE - set(CONDITIONS)
        if unknown & NEVER_IGNORED or unknown and not is_draft:
            raise NotImplementedError(", ".join(unknown))
        return all(types(schema, value)) and (is_draft or all(conditions(schema, value)))

    def types(schema, value):
        """What counts for drafts too."""
        names = schema.get("type", "any")
        yield any(is_of_type(value, name) for name in ([names] if isinstance(names, str) else names))
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, member in value.items() if isinstance(value, dict) else ():
            yield holds(known.get(name, others), member)
        for item in value if isinstance(value, list) else ():
            yield holds(schema.get("items", True), item)
        if "$ref" in schema:
            found = follow_pointer(root, schema["$ref"]) if re.fullmatch("#(/[^%]*)?", schema["$ref"]) else []
            if not found:
                raise NotImplementedError(schema["$ref"])
            yield holds(found[0], value)
        all_of, any_of, one_of = ([holds(branch, value) for branch in schema.get(name, [])]
                                  for name in ("allOf", "anyOf", "oneOf"))
        yield all(all_of) and (not any_of or any(any_of) or is_draft and bool(one_of))
        # Without their conditions several branches may hold, which is not a fault in a draft.
        yield not one_of or sum(one_of) == 1 or is_draft and any(one_of)

    def conditions(schema, value):
        for name, (kind, says) in CONDITIONS.items():
            yield name not in schema or not is_of_type(value, kind) or says(schema[name], value)
        yield not holds(schema.get("not", False), value)
        if "if" in schema:
            yield holds(schema.get("then" if holds(schema["if"], value) else "else", True), value)

    try:
        return holds(root, payload)
    except (NotImplementedError, re.error):
        return None
