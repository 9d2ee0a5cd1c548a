"""A leaking server had started a web server that was let go; the agent is killed: the one must end, the other must not."""

TRUTH = "mixed"
TWIN = "let_go/web_server"


def build(stage):
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    agent.kill()
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'web-server'))\n"))
    stage.beats("person")
    return stage.truth(orphans=[stage.who("mcp-server-shell")], in_use=[stage.who("web-server")])
