"""`echo y | nohup my-mcp-web --http > log &` in the Bash tool: a web service under load; the agent ends."""
import situation

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("my-mcp-web", """
        os.read(0, 100)
        here()
        answer_calls(listen("tcp"))
    """)
    agent = stage.run(stage.part("claude", """
        shell(f"echo y | nohup {BIN}/my-mcp-web --http > web.log 2>&1 &")
        present("my-mcp-web")
        here()
    """))
    stage.who("claude")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'my-mcp-web'))\n"))
    stage.beats("person")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("my-mcp-web")])
