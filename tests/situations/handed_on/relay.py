"""The agent's relay, a child that no rule knows, carries a person's requests to the server; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("relay", """
        server, listener = handed(), listen("unix")
        here()
        while True:
            with listener.accept()[0] as call:
                while call.recv(100):
                    server.ask()
                    call.sendall(b"pong")
    """)
    agent = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "relay")
        here()
        rest()
    """))
    stage.who("claude")
    person = stage.run(stage.part("person", """
        relay = dial("unix", "relay")
        use("person", lambda: ask_over(relay))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[person, stage.who("relay"), stage.who("mcp-server-fake")])
