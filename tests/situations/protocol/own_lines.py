"""Workers that are told what to do by lines of JSON of their own outlive their host: no servers of ours."""

TRUTH = "in use"
TWIN = "protocol/home_made"


def build(stage):
    stage.part("worker.py", "here()\nos.read(0, 65536)\nleak_on('timer')\n")
    LINES = [
        {"command": "initialize", "worker": 1, "tools": ["initialize", "jsonrpc"]},
        {"jsonrpc": "2.0", "id": 1, "method": "job/start", "params": {"text": '"method": "initialize"'}},
        ["initialize", {"jsonrpc": "2.0"}],
    ]
    host = stage.run(stage.part("queue_host.py", f"""
        for at, line in enumerate({LINES!r}):
            os.write(start("worker.py", "--as", f"worker{{at}}", asked=False).w, json.dumps(line).encode() + b"\\n")
            present(f"worker{{at}}")
        here()
        rest()
    """))
    stage.who("queue_host.py")
    host.kill()
    return stage.truth(in_use=[stage.who(f"worker{at}") for at in range(len(LINES))])
