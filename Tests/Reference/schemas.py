"""Checks JSON lines {"schema": NAME, "value": …} against docs/schemas/NAME.json, and prints a verdict for each line:
`ok`, or what is wrong. The argument is the directory of the schemas."""
import json
import pathlib
import sys

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

schemas = {path.name: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")}
registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in schemas.items())
validators = {}
for name, schema in schemas.items():
    Draft202012Validator.check_schema(schema)
    validators[name] = Draft202012Validator(schema, registry=registry)
for line in open(sys.argv[2], encoding="utf-8"):
    item = json.loads(line)
    error = next(validators[item["schema"] + ".json"].iter_errors(item["value"]), None)
    print("ok" if error is None else f"{error.json_path}: {error.message}"[:300].replace("\n", " "))
