"""What the judge of payloads decides, and what it leaves open."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pilot_evidence.bundle import Entry  # noqa: E402
from pilot_evidence.formats import fits, leaf_hash, node_hash, push_leaf, root_of  # noqa: E402
from pilot_evidence.schema import judge  # noqa: E402


class Schemas(unittest.TestCase):
    def check(self, schema, holds, fails):
        for value, expected in [*((value, True) for value in holds), *((value, False) for value in fails)]:
            self.assertIs(judge(schema, value, is_draft=False), expected, f"{schema} {value}")

    def test_each_keyword_says_what_json_schema_says(self):
        self.check({"type": ["integer", "null"], "minimum": 0.5}, [1, 1.0, None], [1.5, 0, "a", True])
        self.check({"enum": [1, {"a": 1}], "not": {"const": 1}}, [{"a": 1.0}], [1, True, 2])
        self.check({"required": ["a"], "properties": {"a": {"minLength": 2}}, "additionalProperties": False},
                   [{"a": "ab"}, 1], [{}, {"a": "b"}, {"a": "ab", "b": 1}])
        self.check({"items": {"maximum": 2}, "uniqueItems": True}, [["a", 1, 2], []], [[3], ["a", 3], ["a", 1, 1.0]])
        self.check({"oneOf": [{"type": "integer"}, {"minimum": 2}], "anyOf": [{"exclusiveMaximum": 9}]},
                   [1, 2.5], [3, 1.5, 9.5])
        self.check({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 0}},
                   [{}, {"a": 1, "b": 1}], [{"a": 1}, {"b": 1}])
        self.check({"$defs": {"a/b": {"pattern": r"^\S+$"}}, "$ref": "#/$defs/a~1b"}, ["a", 1], [" ", "a\n", "\ufeff"])
        self.check({"format": "uri"}, ["https://a:80/a?b#c", "a:b"], ["//a", "http://a b", "http://a/[1]", ""])

    def test_what_is_not_known_is_left_open(self):
        for schema in ({"format": "email"}, {"unevaluatedProperties": False}, {"$ref": "#name"}, {"pattern": r"\bA"},
                       {"contains": {"const": 1}}, {"pattern": "(?=A)"}, {"pattern": r"[\s]"}, {"format": "uri"}):
            self.assertIsNone(judge(schema, "http://[::1]/", is_draft=False), schema)

    def test_a_draft_is_judged_by_its_types_only(self):
        schema = {"required": ["a"], "properties": {"a": {"type": "string", "minLength": 9}}, "unevaluatedItems": False}
        self.assertIs(judge(schema, {"a": "b"}, is_draft=True), True)
        self.assertIs(judge(schema, {"a": 1}, is_draft=True), False)
        self.assertIsNone(judge({"prefixItems": [True], "items": False}, [1], is_draft=True))


class Shapes(unittest.TestCase):
    def test_an_object_has_its_members_and_no_others(self):
        shape = {"a": int, "b?": (None, "x+")}
        for value, expected in (({"a": 1}, True), ({"a": 1, "b": "xx"}, True), ({"a": 1, "b": None}, True), ({}, False),
                                ({"a": True}, False), ({"a": 1, "c": 1}, False), ({"a": 1, "b": "y"}, False), ([], False)):
            self.assertIs(fits(shape, value), expected, value)
        self.assertTrue(fits({**shape, "*": object}, {"a": 1, "c": 1}))

    def test_a_line_that_is_not_an_entry_is_refused(self):
        for line in (b"[1]", b'"a"', b"null", b"{}", b"", b'{"v":2}'):
            with self.assertRaises(ValueError):
                Entry(line)


class Peaks(unittest.TestCase):
    def test_appended_leaves_give_the_root_of_rfc_6962(self):
        a, b, c = (leaf_hash(name) for name in (b"a", b"b", b"c"))
        peaks = []
        for size, leaf, root in ((0, a, a), (1, b, node_hash(a, b)), (2, c, node_hash(node_hash(a, b), c))):
            push_leaf(peaks, size, leaf)
            self.assertEqual(root_of(peaks), root)


if __name__ == "__main__":
    unittest.main()
