"""A home-made MCP server without an SDK, which no rule knows by its name. It goes on after the end of its input.

    notes.py FOLDER

It reads nothing before FOLDER/open exists. When the client has said that it is initialised, it writes FOLDER/PID.
"""
import json
import os
import sys
import time

folder = sys.argv[1]
while not os.path.exists(f"{folder}/open"):
    time.sleep(0.01)

for line in sys.stdin:
    message = json.loads(line)
    answer = {}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    elif message["method"] == "tools/list":
        answer = {"tools": []}
    elif message["method"] == "notifications/initialized":
        open(f"{folder}/{os.getpid()}", "w").close()
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)

while True:
    time.sleep(600)
