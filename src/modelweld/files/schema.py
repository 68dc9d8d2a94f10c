"""The manifest's JSON Schema, which is published, is also what manifests are checked by: one truth.

Of JSON Schema (2020-12) this knows the words that `schema.json` uses; a test compares it with a complete validator.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, TypedDict

from modelweld.errors import InputError

SHOWN = 60
"""Characters of a value shown in a message."""

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


Rule = TypedDict(
    "Rule",
    {
        "$ref": str,
        "$defs": dict[str, "Rule"],
        "anyOf": list["Rule"],
        "type": str | list[str],
        "enum": list[object],
        "description": str,
        "minLength": int,
        "maxLength": int,
        "pattern": str,
        "minimum": float,
        "minItems": int,
        "items": "Rule",
        "required": list[str],
        "properties": dict[str, "Rule"],
        "additionalProperties": "Rule | Literal[False]",
    },
    total=False,
)
"""The words of JSON Schema that are known here."""


class Violation(NamedTuple):
    """Where, which rule, and what was found instead."""

    at: str
    rule: str
    found: object


@cache
def schema() -> Rule:
    """The published schema."""
    text = files("modelweld.files").joinpath("schema.json").read_text(encoding="utf-8")
    found: Rule = json.loads(text)
    return found


def check(value: object, name: str, what: str) -> None:
    """Refuse a value that is no `name` of the schema, and say where.

    Examples
    --------
    >>> check("north", "site_name", "the manifest")
    >>> check(5, "site_name", "the manifest")
    Traceback (most recent call last):
    modelweld.errors.InputError: the manifest must be a string; found 5. It was not written by modelweld, or changed.
    """
    wrong = violation(value, schema()["$defs"][name])
    if wrong is not None:
        where, rule, found = wrong
        shown = json.dumps(found)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."
        raise InputError(f"{what}{where} {rule}; found {shown}. It was not written by modelweld, or changed.")


def violation(value: object, rule: Rule, at: str = "") -> Violation | None:
    """The first way in which a value breaks a rule; None if it is as it should be."""
    if "$ref" in rule:
        return violation(value, schema()["$defs"][rule["$ref"].removeprefix("#/$defs/")], at)
    if "anyOf" in rule:
        found = [violation(value, part, at) for part in rule["anyOf"]]
        return None if None in found else Violation(at, rule.get("description", "is of another kind"), value)
    if "type" in rule and not _is(value, rule["type"]):
        kinds = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
        return Violation(at, f"must be {' or '.join(('an ' if k[0] in 'aio' else 'a ') + k for k in kinds)}", value)
    if "enum" in rule and value not in rule["enum"]:
        return Violation(at, f"must be one of {rule['enum']}", value)
    if isinstance(value, str):
        if not rule.get("minLength", 0) <= len(value) <= rule.get("maxLength", len(value)):
            least, most = rule.get("minLength", 0), rule.get("maxLength", "any")
            return Violation(at, f"must have {least} to {most} characters", value)
        if "pattern" in rule and not re.search(rule["pattern"], value):
            return Violation(at, f"must match {rule['pattern']}", value)
    if isinstance(value, (int, float)) and value < rule.get("minimum", value):
        return Violation(at, f"must be at least {rule['minimum']}", value)
    if isinstance(value, list):
        if len(value) < rule.get("minItems", 0):
            return Violation(at, f"must have at least {rule['minItems']} entries", value)
        if "items" in rule:
            return next(filter(None, (violation(x, rule["items"], f"{at}[{i}]") for i, x in enumerate(value))), None)
    if isinstance(value, dict):
        missing = [name for name in rule.get("required", ()) if name not in value]
        if missing:
            return Violation(at, f"must have {missing[0]!r}", sorted(value))
        known: dict[str, Rule] = rule.get("properties", {})
        anything: Rule = {}
        other = rule.get("additionalProperties", anything)
        for name, entry in value.items():
            own = known.get(name, other)
            if own is False:
                return Violation(at, f"must have nothing but {sorted(known)}", sorted(value))
            wrong = violation(entry, own, f"{at}.{name}")
            if wrong is not None:
                return wrong
    return None


def _is(value: object, kinds: str | list[str]) -> bool:
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "integer":
            if type(value) is int:
                return True
        elif isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)):
            return True
    return False
