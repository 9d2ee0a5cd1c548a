"""Server and client live in a network namespace of their own, where the host's view of sockets does not reach; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("person", """
        here()
        connection = dial("tcp", "mcp-server-web")
        use("person", lambda: ask_over(connection))
    """)
    stage.part("mcp-server-web", """
        own_network()
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    server = stage.who("mcp-server-web")
    stage.run("/usr/bin/nsenter", f"--net=/proc/{server.pid}/ns/net", f"{stage.dir}/bin/person")
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[server, stage.who("person")])
