"""A leaking server's shell tool started the real tmux with a job in it; the agent is killed: tmux and the job stay."""

TRUTH = "in use"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-shell", """
        shell(f"tmux -S {DIR}/tmux.s new-session -d '{BIN}/job'")
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    agent.kill()
    job = stage.who("job")
    tmux = [p for p in stage.everyone() if p.argv()[:1] == ["tmux"]]
    return stage.truth(in_use=[job, *tmux], may_end=[stage.who("mcp-server-shell")])
