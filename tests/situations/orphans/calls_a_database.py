"""The server keeps a connection to a database that lives: it is the client itself. Its agent is killed."""

TRUTH = "orphan"
TWIN = "clients/keep_alive"


def build(stage):
    stage.run(stage.part("database", "answer_calls(listen('tcp'))\n"))
    stage.part("mcp-server-fake", """
        database = dial("tcp", "database")
        ask_over(database)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
