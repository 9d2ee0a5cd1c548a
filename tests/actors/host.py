"""A home-made host without an SDK: starts programs on two pipes each, writes to each what it is given, and waits to be killed.

    host.py PROGRAMS        [{"command": [WORD, ..], "says": TEXT}, ..]

Prints one JSON line when all have been started and written to: their pids.
"""
import json
import signal
import subprocess
import sys

started = []
for program in json.loads(sys.argv[1]):
    process = subprocess.Popen(program["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(program["says"].encode())
    process.stdin.flush()
    started.append(process)
print(json.dumps([process.pid for process in started]), flush=True)
while True:
    signal.pause()
