"""Prices usage by Python's decimal, for tests to compare with: another language, another arithmetic.

Reads from stdin a list of {"leaves": {name: tokens}, "row": {rate: "decimal text", "above": [{"inputTokens": n, ...}]}}
and writes a list of sums as plain decimal texts."""
import json
import sys
from decimal import Decimal, getcontext

getcontext().prec = 200
OUTPUT = ("output", "reasoning")


def cost(leaves, row):
    size = sum(tokens for name, tokens in leaves.items() if name not in OUTPUT)
    rates = row
    for step in sorted(row.get("above", []), key=lambda step: step["inputTokens"]):
        if size > step["inputTokens"]:
            rates = step
    return sum((Decimal(rates[name]) * tokens for name, tokens in leaves.items() if tokens), Decimal(0)).scaleb(-6)


def plain(number):
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("", "-0") else text


json.dump([plain(cost(bill["leaves"], bill["row"])) for bill in json.load(sys.stdin)], sys.stdout)
