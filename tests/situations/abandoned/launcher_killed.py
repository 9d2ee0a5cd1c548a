"""The agent closed the input and ended the launcher, as the Node SDK does; the server stays and the agent could read."""

TRUTH = "orphan"
TWIN = "others/wrapper_killed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"{BIN}/mcp-server-fake; true")
        present("mcp-server-fake")
        os.close(server.w)
        server.child.kill()
        server.child.wait()
        here()
        rest()
    """))
    stage.who("claude")
    return stage.truth(orphans=[stage.who("mcp-server-fake")], in_use=[])
