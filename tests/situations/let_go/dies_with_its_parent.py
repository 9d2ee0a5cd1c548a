"""A server started a dev server in a session of its own, which is to die with it (prctl(2), PR_SET_PDEATHSIG); a person visits it. The agent is killed."""

TRUTH = "in use"
TWIN = "let_go/dev_server"


def build(stage):
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'), closes='server')\n")
    stage.part("mcp-server-starter", """
        def tied():
            os.setsid()
            assert libc.prctl(1, signal.SIGTERM) == 0
        subprocess.Popen([f"{BIN}/web-server"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, preexec_fn=tied)
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-starter")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n"))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("web-server")], may_end=[stage.who("mcp-server-starter")])
