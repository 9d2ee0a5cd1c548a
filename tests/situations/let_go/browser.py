"""A server opened the person's browser (a session of its own, /dev/null) to log in; the session ends cleanly."""
import situation

TRUTH = "in use"
TWIN = "orphans/tied_browser"


def build(stage):
    stage.part("chromium", """
        here()
        if ALIAS == "chromium":
            for kind in ("gpu", "renderer"):
                start("chromium", "--as", kind, wire=None)
        use(ALIAS, lambda: open(f"{DIR}/profile", "a").write("page\\n"))
    """)
    stage.part("mcp-remote", """
        start("chromium", wire=None, stderr=subprocess.DEVNULL, start_new_session=True)
        present("renderer")
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-remote", wire="socket")
        server.let_go()
        server.child.wait()
    """))
    for one in ("chromium", "gpu", "renderer"):
        stage.beats(one)
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who(one) for one in ("chromium", "gpu", "renderer")])
