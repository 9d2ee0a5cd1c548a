"""A server opened a terminal; a dev server that was started there left it, and still logs to it. A person visits the dev server; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/idle_terminal"


def build(stage):
    stage.part("web-server", """
        if os.fork():
            os._exit(0)
        os.setsid()
        def log():
            while True:
                try:
                    os.write(1, b"log\\n")
                except OSError:
                    os._exit(1)
                time.sleep(0.1)
        in_background(log)
        here()
        answer_calls(listen("tcp"), closes="server")
    """)
    stage.part("mcp-server-terminal", """
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/bash", ["bash", "--norc"])
        def show():
            while os.read(terminal, 65536):
                pass
        in_background(show)
        os.write(terminal, f"{BIN}/web-server\\n".encode())
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-terminal")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n"))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("web-server"), stage.who("mcp-server-terminal")])
