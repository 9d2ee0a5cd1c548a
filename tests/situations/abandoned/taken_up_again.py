"""The agent let go of both wires; another program opened them anew through /proc, and the server, which reads on, serves it."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-fake", """
        here()
        while True:
            read_on()
            time.sleep(0.05)
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        server.let_go()
        here()
        rest()
    """))
    stage.who("claude")
    other = stage.run(stage.part("proxy", """
        of = f"/proc/{present('mcp-server-fake')}/fd"
        server = Server(os.open(f"{of}/0", os.O_WRONLY), os.open(f"{of}/1", os.O_RDONLY))
        use("proxy", server.ask)
    """))
    stage.beats("proxy")
    return stage.truth(in_use=[agent, other, stage.who("mcp-server-fake")])
