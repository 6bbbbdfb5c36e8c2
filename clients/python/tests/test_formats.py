"""Public test vectors, so that an error that both verifiers share does not go unnoticed."""

import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pilot_evidence.formats import (Tree, canonical, is_consistent,  # noqa: E402
                                    is_included, leaf_hash, node_hash, parse_key, parse_note, parse_time, read_json)


class Json(unittest.TestCase):
    def test_numbers_are_written_as_in_appendix_b_of_rfc_8785(self):
        for bits, text in {
            "0000000000000000": "0", "8000000000000000": "0", "0000000000000001": "5e-324",
            "8000000000000001": "-5e-324", "7fefffffffffffff": "1.7976931348623157e+308",
            "4340000000000000": "9007199254740992", "c340000000000000": "-9007199254740992",
            "4430000000000000": "295147905179352830000", "44b52d02c7e14af5": "9.999999999999997e+22",
            "44b52d02c7e14af6": "1e+23", "44b52d02c7e14af7": "1.0000000000000001e+23",
            "444b1ae4d6e2ef4e": "999999999999999700000", "444b1ae4d6e2ef4f": "999999999999999900000",
            "444b1ae4d6e2ef50": "1e+21", "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
            "3eb0c6f7a0b5ed8d": "0.000001", "41b3de4355555553": "333333333.3333332",
            "becbf647612f3696": "-0.0000033333333333333333",
        }.items():
            self.assertEqual(canonical(struct.unpack(">d", bytes.fromhex(bits))[0]), text)

    def test_members_are_sorted_as_in_section_3_2_3_of_rfc_8785(self):
        names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
        written = list(read_json(canonical(dict.fromkeys(names)).encode(), dict, is_canonical=True))
        self.assertEqual(written, ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"])

    def test_what_two_readers_could_read_differently_is_refused(self):
        nested = b"[" * 200 + b"]" * 200
        for text in (b'{"a":1,"a":1}', b'["\\ud800"]', b"[1e999]", b"[NaN]", b"\xff", b"\xef\xbb\xbf1", nested):
            with self.assertRaises(ValueError, msg=text):
                canonical(read_json(text, object, is_canonical=False)).encode()


class Times(unittest.TestCase):
    def test_times_are_microseconds_since_1970(self):
        self.assertEqual(parse_time("1970-01-01T00:00:00Z"), 0)
        self.assertEqual(parse_time("2026-11-15T10:30:00.123456789+01:00"), 1_794_735_000_123_456)
        self.assertEqual(parse_time("2000-02-29T00:00:00Z") - parse_time("2000-02-28T00:00:00Z"), 86_400_000_000)
        for wrong in ("2026-02-29T00:00:00Z", "2026-11-15", "2026-11-15T09:30:00", "2026-13-01T00:00:00Z", 1, None):
            self.assertIsNone(parse_time(wrong))


class Log(unittest.TestCase):
    def test_the_key_of_the_signed_note_specification_is_read_and_a_changed_one_is_not(self):
        line = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
        self.assertEqual(parse_key(line, 1).name, "PeterNeumann")
        for wrong in (line.replace("Peter", "Pater"), line[:-1] + "X", line + "=", "a+b"):
            with self.assertRaises(ValueError):
                parse_key(wrong, 1)
        with self.assertRaises(ValueError):
            parse_key(line, 4)

    def test_the_example_of_the_cosignature_specification_has_its_time(self):
        line = ("\u2014 witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin"
                "1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==")
        _, [(name, data)] = parse_note(f"text\n\n{line}\n")
        self.assertEqual((name, int.from_bytes(data[4:12], "big")), ("witness.example.com/w1", 1_679_315_147))

    def test_every_proof_of_small_trees_is_accepted_and_no_other(self):
        leaves = [leaf_hash(bytes([number])) for number in range(9)]

        def root(part):
            split = 1 << (len(part) - 1).bit_length() - 1 if len(part) > 1 else 0
            return part[0] if len(part) == 1 else node_hash(root(part[:split]), root(part[split:]))

        def path(index, part):
            split = 1 << (len(part) - 1).bit_length() - 1 if len(part) > 1 else 0
            if len(part) == 1:
                return []
            left, right = part[:split], part[split:]
            return path(index, left) + [root(right)] if index < split else path(index - split, right) + [root(left)]

        for size in range(1, 10):
            whole = Tree(size, root(leaves[:size]))
            for index in range(size):
                proof = path(index, leaves[:size])
                self.assertTrue(is_included(leaves[index], index, whole, proof))
                with self.assertRaises(ValueError):
                    is_included(leaves[index], index, whole, [*proof, leaves[0]])
            self.assertTrue(is_consistent(whole, whole, []))
            self.assertFalse(is_consistent(Tree(size, leaf_hash(b"another")), whole, []))


if __name__ == "__main__":
    unittest.main()
