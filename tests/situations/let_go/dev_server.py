"""`nohup dev-server &` in a server's shell tool; the session ends cleanly, the server exits, a person goes on using the dev server."""
import situation

TRUTH = "in use"
TWIN = "orphans/waits_for_its_tool"


def build(stage):
    stage.part("dev-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("mcp-server-shell", """
        shell(f"nohup {BIN}/dev-server > dev.log 2>&1 &")
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-shell")
        present("dev-server")
        server.let_go()
        server.child.wait()
    """))
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'dev-server'))\n"))
    stage.beats("person")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("dev-server")])
