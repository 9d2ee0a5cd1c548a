"""conmon, below a leaking server, holds a container's streams; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("container", "here()\nuse('container', lambda: print('step', flush=True))\n")
    stage.part("conmon", """
        here()
        r, w = os.pipe()
        start("container", wire=None, stdout=w, start_new_session=True)
        os.close(w)
        while os.read(r, 1000):
            pass
    """)
    stage.part("mcp-server-podman", """
        start("conmon", wire=None, start_new_session=True)
        present("container")
        serve()
    """)
    agent = stage.agent("mcp-server-podman")
    stage.beats("container")
    agent.kill()
    in_use = [stage.who("conmon"), stage.who("container")]
    return stage.truth(in_use=in_use, may_end=[stage.who("mcp-server-podman")])
