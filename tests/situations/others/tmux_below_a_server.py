"""A leaking server's shell tool started tmux; the agent is killed: tmux and its session stay."""

TRUTH = "in use"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("tmux", """
        def daemon():
            os.setsid()
            here()
            start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), start_new_session=True)
            rest()
        copy(daemon)
    """)
    stage.part("mcp-server-shell", """
        shell(f"{BIN}/tmux new -d")
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    agent.kill()
    return stage.truth(in_use=[stage.who("tmux"), stage.who("job")], may_end=[stage.who("mcp-server-shell")])
