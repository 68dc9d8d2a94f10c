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
from modelweld.files.limits import LONGEST_NAME

TYPES: dict[str, tuple[type, ...]] = {  # of parsed JSON, whose truth values are no numbers
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
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
        shown = shown if len(shown) <= LONGEST_NAME else shown[:LONGEST_NAME] + "..."
        raise InputError(f"{what}{where} {rule}; found {shown}. It was not written by modelweld, or changed.")


def violation(value: object, rule: Rule) -> Violation | None:
    """The first way in which a value breaks a rule; None if it is as it should be."""
    while "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in rule:
        fits = any(violation(value, part) is None for part in rule["anyOf"])
        return None if fits else Violation("", rule.get("description", "is of another kind"), value)
    if "type" in rule and not _is(value, rule["type"]):
        kinds = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
        return Violation("", f"must be {' or '.join(('an ' if k[0] in 'aio' else 'a ') + k for k in kinds)}", value)
    if "enum" in rule and value not in rule["enum"]:
        return Violation("", f"must be one of {rule['enum']}", value)
    match value:
        case str():
            return _of_text(value, rule)
        case int() | float() if "minimum" in rule and value < rule["minimum"]:
            return Violation("", f"must be at least {rule['minimum']}", value)
        case list():
            return _of_list(value, rule)
        case dict():
            return _of_object(value, rule)
    return None


def _of_text(text: str, rule: Rule) -> Violation | None:
    least, most = rule.get("minLength", 0), rule.get("maxLength")
    if len(text) < least or (most is not None and len(text) > most):
        return Violation("", f"must have {least} to {most or 'any'} characters", text)
    if "pattern" in rule and not re.search(rule["pattern"], text):
        return Violation("", f"must match {rule['pattern']}", text)
    return None


def _of_list(entries: list[object], rule: Rule) -> Violation | None:
    if len(entries) < rule.get("minItems", 0):
        return Violation("", f"must have at least {rule['minItems']} entries", entries)
    if "items" in rule:
        own = rule["items"]
        for i, entry in enumerate(entries):
            wrong = violation(entry, own)
            if wrong is not None:
                return wrong._replace(at=f"[{i}]{wrong.at}")
    return None


def _of_object(entries: dict[str, object], rule: Rule) -> Violation | None:
    for name in rule.get("required", ()):
        if name not in entries:
            return Violation("", f"must have {name!r}", sorted(entries))
    known: dict[str, Rule] = rule.get("properties", {})
    other = rule.get("additionalProperties")
    for name, entry in entries.items():
        own = known.get(name, other)
        if own is False:
            return Violation("", f"must have nothing but {sorted(known)}", sorted(entries))
        wrong = violation(entry, own) if own else None
        if wrong is not None:
            return wrong._replace(at=f".{name}{wrong.at}")
    return None


def _is(value: object, kinds: str | list[str]) -> bool:
    if isinstance(kinds, str):
        return type(value) in TYPES[kinds]
    return any(type(value) in TYPES[kind] for kind in kinds)
