"""The wrapper made a pipe of its own for the server's input and never closes it, though its own is hung up; the agent is killed."""

TRUTH = "orphan"
TWIN = "others/wrapper_killed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("npx", """
        here()
        r, w = os.pipe()
        child = subprocess.Popen([f"{BIN}/mcp-server-fake"], stdin=r)
        os.close(r)
        os.write(w, os.read(0, 65536))
        child.wait()
    """)
    agent = stage.run(stage.part("claude", """
        start("npx", "-y", "mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("npx"), stage.who("mcp-server-fake")])
