"""A leaking server started a web server, with a log, as a child in its own session; the agent is killed, a person visits it later."""

TRUTH = "mixed"
TWIN = "orphans/driver"


def build(stage):
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log)
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")

    person = stage.run(stage.part("person", "on_call('person', lambda: call('tcp', 'web-server'))\n"))
    agent.kill()
    stage.when_called("person", person)
    return stage.truth(in_use=[stage.who("web-server")], orphans=[stage.who("mcp-server-shell")])
