"""The server is the first process of a PID namespace; a site that it let go in there is visited; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/pid_namespace"


def build(stage):
    stage.part("mcp-server-fake", """
        start("site", wire=None, start_new_session=True)
        present("site")
        serve()
    """)
    stage.part("site", """
        sock = listen("tcp")
        here()
        answer_calls(sock)
    """)
    agent = stage.run(stage.part("claude", """
        start("/usr/bin/unshare", "--pid", "--fork", "--mount-proc=/proc", BIN + "/mcp-server-fake")
        tell("here/claude", "")
        here()
        rest()
    """))
    person = stage.run(stage.part("person", """
        use("person", lambda: call("tcp", "site"))
    """))
    stage.beats("person")
    agent.kill()
    site = stage.find("site")
    return stage.truth(in_use=[person, *site])
