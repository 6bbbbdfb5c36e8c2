"""The test vectors of docs/audit/vectors: every one has the verdict and the faults that the index names."""
import json
import sys
import unittest
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pilot_evidence.formats import parse_key  # noqa: E402
from pilot_verify import verify  # noqa: E402

VECTORS = HERE.parents[2] / "docs/audit/vectors"

class Vectors(unittest.TestCase):
    def test_every_vector_has_the_verdict_of_the_index(self):
        index = json.loads((VECTORS / "index.json").read_text())
        key = parse_key(index["key"], 1)
        for vector in index["vectors"]:
            data = (VECTORS / vector["file"]).read_bytes()
            witnesses = [parse_key(line, 4) for line in vector["witness_keys"]]
            with self.subTest(vector["file"]):
                self.assertEqual(sha256(data).hexdigest(), vector["sha256"])
                found = verify(data, key, witnesses, vector["witnesses"])
                self.assertEqual((found["verdict"], found["gaps"]), (vector["verdict"], vector["gaps"]))
                faults = [(fault["rule"], fault.get("entry")) for fault in found["faults"]]
                expected = [(fault["rule"], fault["entry"]) for fault in vector["faults"]]
                # In the container one fault hides others, and which comes first is not part of the format.
                if "container" not in {rule for rule, _ in faults + expected}:
                    self.assertEqual(sorted(faults, key=str), sorted(expected, key=str))

if __name__ == "__main__":
    unittest.main()
