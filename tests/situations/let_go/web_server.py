"""A server started a web server in a session of its own; the session ends cleanly, the site is visited."""
import situation

TRUTH = "in use"
TWIN = "orphans/leaves_a_job"


def build(stage):
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'), closes='server')\n")
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-shell")
        present("web-server")
        server.let_go()
        server.child.wait()
    """))
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n"))
    stage.beats("person")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("web-server")])
