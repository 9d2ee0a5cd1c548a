"""A server has a driver for its browser: a child with a port that only the server calls, and /dev/null; the agent is killed."""

TRUTH = "orphan"
TWIN = "let_go/dev_server_with_a_log"
COST = "when the server has ended, its driver listens and looks like a service that it let go"


def build(stage):
    stage.part("driver", """
        listener = listen("tcp")
        here()
        connection, _ = listener.accept()
        while connection.recv(100):
            pass
        connection.close()
        rest()
    """)
    stage.part("mcp-server-shell", """
        start("driver", wire=None, stderr=subprocess.DEVNULL)
        present("driver")
        driver = dial("tcp", "driver")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")

    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-shell"), stage.who("driver")])
