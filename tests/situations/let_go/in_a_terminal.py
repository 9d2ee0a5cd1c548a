"""A leaking server opened a terminal with a shell that runs a web server; a person visits it; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/idle_terminal"


def build(stage):
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'), closes='server')\n")
    stage.part("mcp-server-terminal", """
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/bash", ["bash", "--norc"])
        os.write(terminal, f"{BIN}/web-server\\n".encode())
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-terminal")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n"))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("web-server")], may_end=[])
