"""An agent's shell runs `server < requests.jsonl | reader` on a long list of requests; the agent lives."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("reader", "here()\nuse('reader', lambda: os.read(0, 1000) or 1 / 0)\n")
    stage.write("requests.jsonl", '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    agent = stage.run(stage.part("claude", """
        here()
        shell(f"{BIN}/mcp-server-batch < requests.jsonl | {BIN}/reader")
        rest()
    """))
    stage.beats("reader")
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch"), stage.who("reader")])
