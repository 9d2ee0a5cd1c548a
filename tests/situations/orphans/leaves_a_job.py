#!/usr/bin/python3 -B
"""A leaking server had started a web server that was let go; the agent is killed: the one must end, the other must not."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "mixed"
TWIN = "let_go/web_server"


def build(stage):
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-shell")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'web-server'))\n"))
    stage.beats("person")
    return stage.truth(orphans=[stage.who("mcp-server-shell")], in_use=[stage.who("web-server")])


situation.main()
