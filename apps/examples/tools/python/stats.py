#!/usr/bin/env python3
"""A plugin in Python: describes a list of numbers. Start it with `python3 stats.py`."""
import json
import math
import sys

DEFINITION = {
    "name": "stats",
    "description": "Describe a list of numbers: count, least, greatest, mean and standard deviation.",
    "parameters": {
        "type": "object",
        "properties": {
            "numbers": {"description": "The numbers, at least one"},
            "precision": {"type": "integer", "minimum": 0, "maximum": 10, "description": "Decimals in the text; 2 when absent"},
        },
        "required": ["numbers"],
        "additionalProperties": False,
    },
    "effect": "pure",
}


def stats(params):
    numbers = params.get("numbers")
    precision = params.get("precision", 2)
    if not isinstance(numbers, list) or not numbers:
        raise ValueError("numbers must be a non-empty array")
    for index, number in enumerate(numbers):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError(f"element {index} is not a number")
    mean = sum(numbers) / len(numbers)
    found = {
        "min": min(numbers),
        "max": max(numbers),
        "mean": mean,
        "stddev": math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers)),
    }
    text = "  ".join([f"n={len(numbers)}", *(f"{name}={value:.{precision}f}" for name, value in found.items())])
    return text, {"n": len(numbers), **found}


def answer(call):
    try:
        text, details = stats(call.get("params") or {})
        return {"content": [{"type": "text", "text": text}], "details": details}
    except ValueError as problem:
        return {"content": [{"type": "text", "text": str(problem)}], "error": True}


for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "describe":
        reply = DEFINITION
    elif message["type"] == "call":
        reply = answer(message)
    else:
        continue
    print(json.dumps(reply), flush=True)
