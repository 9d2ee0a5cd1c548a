"""A Python server moved its wire to another descriptor, as the SDK 2 does; its agent is killed."""

TRUTH = "orphan"
TWIN = "handed_on/moved_wire"


def build(stage):
    stage.part("mcp-server-fake", """
        wire_in, wire_out = os.dup(0), os.dup(1)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(2, 1)
        here()
        answer(os.read(wire_in, 65536), wire_out)
        while os.read(wire_in, 65536):
            pass
        leak_on("timer")
    """)
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
