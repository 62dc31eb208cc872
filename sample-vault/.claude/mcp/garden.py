"""A small MCP server over stdio, of the standard library alone: what this garden's notes say, counted.

It runs behind the wall of the chat that uses it. One line of JSON in, one line out; what is printed to the
standard error is nobody's message.
"""

import json
import re
import sys
from pathlib import Path

VAULT = Path(__file__).resolve().parents[2]
FOLDERS = ("Garden", "Daily", "Plans")
ROW = re.compile(r"^\|\s*(\d{4})\s*\|\s*(\d+(?:\.\d+)?)\s*kg\s*\|", re.MULTILINE)

TOOLS = [
    {
        "name": "harvest",
        "description": "What a plant has yielded, year by year, from the table in its note under Garden/.",
        "inputSchema": {
            "type": "object",
            "properties": {"plant": {"type": "string", "description": "The note's name, such as Quinces"}},
            "required": ["plant"],
        },
    },
    {
        "name": "count_notes",
        "description": "How many notes each folder of this vault has, and of how many words.",
        "inputSchema": {"type": "object", "properties": {}},
    },
]


def notes(folder):
    return sorted((VAULT / folder).glob("*.md"))


def harvest(plant):
    wanted = plant.strip().lower()
    for note in notes("Garden"):
        if note.stem.lower() == wanted:
            years = {year: float(weight) for year, weight in ROW.findall(note.read_text(encoding="utf-8"))}
            if not years:
                return {"plant": note.stem, "said": "Its note has no table of harvests."}
            return {"plant": note.stem, "kilograms": years, "together": sum(years.values())}
    known = ", ".join(note.stem for note in notes("Garden"))
    raise ValueError(f"There is no note about {plant!r}. There are: {known}.")


def count_notes():
    found = {}
    for folder in FOLDERS:
        texts = [note.read_text(encoding="utf-8") for note in notes(folder)]
        found[folder] = {"notes": len(texts), "words": sum(len(text.split()) for text in texts)}
    return found


def called(name, given):
    tools = {"harvest": harvest, "count_notes": count_notes}
    try:
        said, is_error = json.dumps(tools[name](**given)), False
    except (KeyError, TypeError, ValueError, OSError) as error:
        said, is_error = str(error), True
    return {"content": [{"type": "text", "text": said}], "isError": is_error}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "garden", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return called(params.get("name"), params.get("arguments") or {})
    if method == "ping":
        return {}
    return None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue  # it tells something, and waits for nothing
        result = answer(message["method"], message.get("params") or {})
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "This server does not know that method."}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
