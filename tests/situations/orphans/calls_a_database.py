#!/usr/bin/python3 -B
"""The server keeps a connection to a database that lives: it is the client itself. Its agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "clients/keep_alive"


def build(stage):
    stage.run(stage.part("database", "answer_calls(listen('tcp'))\n"))
    stage.part("mcp-server-fake", """
        database = dial("tcp", "database")
        ask_over(database)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])


situation.main()
