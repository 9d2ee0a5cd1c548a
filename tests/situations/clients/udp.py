"""The server answers over UDP; its client goes on asking; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-dns", """
        in_background(answer_calls, listen("udp"))
        serve()
    """)
    agent = stage.agent("mcp-server-dns")
    stage.run(stage.part("person", """
        connection = dial("udp", "mcp-server-dns")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-dns")])
