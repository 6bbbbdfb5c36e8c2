"""The generated part is the API's document, all of it, and nothing is lost silently."""

import copy
import inspect
import json
import sys
import unittest

from scripted import PACKAGE

sys.path.insert(0, str(PACKAGE))

import generate
from pilot_client import AsyncPilot, Pilot, models, operations
from pilot_client.asks import ABSENT, Ask
from pilot_client.facade import ItemFilters

DOCUMENT = json.loads(generate.DOCUMENT.read_text())


class Generated(unittest.TestCase):
    def test_every_operation_under_v1_has_a_method_of_its_name_in_both_clients(self):
        found = {
            method["operationId"]
            for path, methods in DOCUMENT["paths"].items()
            for method in methods.values()
            if path.startswith("/v1/")
        }
        for kind in (Pilot, AsyncPilot):
            missing = {name for name in found if not hasattr(kind, name)}
            self.assertEqual(missing, set())

    def test_both_clients_have_the_same_methods_with_the_same_parameters(self):
        def described(kind):
            members = inspect.getmembers(kind, inspect.isfunction)
            public = [(name, function) for name, function in members if not name.startswith("_")]
            return {name: list(inspect.signature(function).parameters) for name, function in public}

        self.assertEqual(described(Pilot), described(AsyncPilot))

    def test_the_files_are_those_that_the_document_gives_and_the_same_each_time(self):
        first, again = generate.generated(DOCUMENT), generate.generated(copy.deepcopy(DOCUMENT))
        self.assertEqual(first, again)
        for name, text in first.items():
            self.assertEqual((PACKAGE / name).read_text(), text, f"run `{generate.COMMAND}`")

    def test_what_is_required_in_an_answer_is_required_in_its_type(self):
        for name, schema in DOCUMENT["components"]["schemas"].items():
            kind = getattr(models, name, None)
            if "properties" in schema and kind is not None:
                self.assertEqual(kind.__required_keys__, frozenset(schema.get("required", ())), name)
                self.assertEqual(kind.__annotations__.keys(), schema["properties"].keys(), name)

    def test_no_request_has_a_parameter_for_an_actor_a_role_or_a_time(self):
        for name in ("create_item", "edit_item", "take_action", "add_comment"):
            parameters = inspect.signature(getattr(operations.Operations, name)).parameters
            self.assertEqual(parameters.keys() & {"actor_id", "role", "at", "actor", "time"}, set(), name)

    def check_refused(self, change, expected):
        document = copy.deepcopy(DOCUMENT)
        change(document)
        with self.assertRaisesRegex(generate.Unknown, expected):
            generate.generated(document)

    def test_a_header_that_the_generator_does_not_know_stops_it(self):
        parameter = {"in": "header", "name": "X-New", "schema": {"type": "string"}}
        change = lambda document: document["paths"]["/v1/items"]["post"]["parameters"].append(parameter)  # noqa: E731
        self.check_refused(change, "create_item has the parameter X-New in header")

    def test_a_request_that_takes_anything_stops_it(self):
        def open_up(document):
            del document["components"]["schemas"]["NewItem"]["additionalProperties"]

        self.check_refused(open_up, "not described")

    def test_null_is_told_from_what_was_not_given_where_the_api_does(self):
        document = copy.deepcopy(DOCUMENT)
        members = document["components"]["schemas"]["ItemPatch"]["properties"]
        members["labels"] = {"type": ["array", "null"], "items": {"type": "string"}}
        text = generate.generated(document)["pilot_client/operations.py"]
        self.assertIn("labels: Sequence[str] | None | Absent = ABSENT", text)
        self.assertIn('nullable=frozenset({"labels"})', text)
        self.assertRegex(text, r"from collections.abc import .*Sequence")
        compile(text, "operations.py", "exec")
        ask = Ask("o", "PATCH", "/", body={"a": None, "b": None, "c": ABSENT}, nullable=frozenset({"b", "c"}))
        self.assertEqual(ask.json(), {"b": None})

    def test_filters_are_those_of_the_list(self):
        parameters = inspect.signature(operations.Operations.iter_items).parameters.keys()
        self.assertEqual(set(ItemFilters.__annotations__), parameters - {"self", "view"})

    def test_a_new_operation_with_new_members_gets_a_method(self):
        document = copy.deepcopy(DOCUMENT)
        post = copy.deepcopy(document["paths"]["/v1/items/{id}/comments"]["post"])
        post["operationId"] = "add_webhook"
        document["paths"]["/v1/webhooks/{id}"] = {"post": post}
        document["components"]["schemas"]["Session"]["properties"]["kind"] = {"enum": ["human", "machine"]}
        texts = generate.generated(document)
        self.assertIn("async def add_webhook(self, id: ItemId, *, text: str", texts["pilot_client/operations.py"])
        self.assertIn('kind: NotRequired[Literal["human", "machine"]]', texts["pilot_client/models.py"])


if __name__ == "__main__":
    unittest.main()
