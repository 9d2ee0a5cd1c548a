"""An agent's shell feeds a server from a here-document, which is a pipe that is closed at once, and reads on."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("reader", "here()\nuse('reader', lambda: os.read(0, 1000) or 1 / 0)\n")
    agent = stage.run(stage.part("claude", """
        here()
        request = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
        shell(f"{BIN}/mcp-server-batch <<'END' | {BIN}/reader\\n{request}\\nEND")
        rest()
    """))
    stage.beats("reader")
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch"), stage.who("reader")])
