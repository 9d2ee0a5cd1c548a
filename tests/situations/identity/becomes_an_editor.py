"""A server execs in place into an editor with a person at it; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/execs_in_place"


def build(stage):
    stage.part("vim", """
        here()
        use("vim", lambda: open(f"{DIR}/notes", "a").write("word "))
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        become("vim")
    """)
    agent = stage.agent("mcp-server-turncoat")
    stage.beats("vim")
    agent.kill()
    return stage.truth(in_use=[stage.who("vim")])
