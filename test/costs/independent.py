"""Prices usage by Python's decimal, for tests to compare with: another language, another arithmetic.

Reads from stdin a list of {"leaves": {name: tokens}, "row": {rate: "decimal text", "above": [{"inputTokens": n, ...}]}},
each with or without "kinds": [[direction, kind, tokens, tokens from a cache or null]], and writes a list of sums as plain decimal
texts, with a question mark behind those of which something has no price."""
import json
import sys
from decimal import Decimal, getcontext

getcontext().prec = 200
OUTPUT = ("output", "reasoning")


def told(kinds, leaf, kind, leaves):
    """How many tokens of a leaf are of this kind, and whether that is certain."""
    found = [entry for entry in kinds if entry[0] == ("output" if leaf == "output" else "input") and entry[1] == kind]
    total = sum(entry[2] for entry in found)
    if leaf == "output":
        return total, True
    written = sum(tokens for name, tokens in leaves.items() if name.startswith("cache_write"))
    known = not leaves.get("cache_read") or all(entry[3] is not None for entry in found)
    if leaf == "cache_read":
        return sum(entry[2] if entry[3] is None else entry[3] for entry in found), known
    return total - sum(entry[3] or 0 for entry in found), known and not written


def lines(leaves, kinds, rates):
    for leaf, left in leaves.items():
        for kind in ("audio", "image", "video") if leaf in ("input", "cache_read", "output") else ():
            rate = rates.get(leaf + "_" + kind)
            if rate is None:
                continue
            count, sure = told(kinds, leaf, kind, leaves)
            count = max(0, min(count, left))
            left -= count
            yield count, rate if sure or Decimal(rate) == Decimal(rates[leaf]) else None
        yield left, rates[leaf]


def cost(leaves, row, kinds=()):
    size = sum(tokens for name, tokens in leaves.items() if name not in OUTPUT)
    rates = row
    for step in sorted(row.get("above", []), key=lambda step: step["inputTokens"]):
        if size > step["inputTokens"]:
            rates = step
    charged = [(count, rate) for count, rate in lines(leaves, kinds, rates) if count]
    total = sum((Decimal(rate) * count for count, rate in charged if rate is not None), Decimal(0)).scaleb(-6)
    return plain(total) + ("?" if any(rate is None for _, rate in charged) else "")


def plain(number):
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("", "-0") else text


json.dump([cost(**bill) for bill in json.load(sys.stdin)], sys.stdout)
