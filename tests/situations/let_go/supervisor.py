"""A server started a supervisor that makes itself a daemon and keeps a service; the session ends cleanly."""
import situation

TRUTH = "in use"


def build(stage):
    stage.part("service", "here()\nuse('service', lambda: print('served', flush=True))\n")
    stage.part("keeper", """
        def daemon():
            os.setsid()
            here()
            while True:
                start("service", wire=None, stdout=open(f"{DIR}/service.log", "a")).wait()
        copy(lambda: copy(daemon))
        os._exit(0)
    """)
    stage.part("mcp-server-ops", """
        subprocess.run([f"{BIN}/keeper"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        present("service")
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-ops")
        server.let_go()
        server.child.wait()
    """))
    stage.beats("service")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("keeper"), stage.who("service")])
