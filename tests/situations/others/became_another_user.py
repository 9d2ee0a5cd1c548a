"""The server gave up its rights and is another user than its agent, which is killed: left to a person's word."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])
