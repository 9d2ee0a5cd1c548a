"""A leaking server ran `npm run dev > log`: a launcher in its session runs a web server, and ends it with itself; the agent is killed, a person visits it later."""

TRUTH = "mixed"
TWIN = "orphans/driver"


def build(stage):
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("dev-launcher", """
        child = start("web-server", wire=None, stdout=1, stderr=2)
        signal.signal(signal.SIGTERM, lambda *_: (child.terminate(), os._exit(0)))
        here()
        child.wait()
    """)
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("dev-launcher", wire=None, stdout=log, stderr=log)
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    person = stage.run(stage.part("person", "on_call('person', lambda: call('tcp', 'web-server'))\n"))
    agent.kill()
    stage.when_called("person", person)
    return stage.truth(in_use=[stage.who("web-server"), stage.who("dev-launcher")], orphans=[stage.who("mcp-server-shell")])
