"""The newer one belongs to another agent."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.server()
    gateway = stage.part("tidy-gateway", """
        server = start("mcp-server-fake")
        here("older" if ALIAS == "first" else "newer", server.pid)
        if ALIAS == "second":
            here()
            use("second", server.ask)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        here()
        threading.Thread(target=use, args=("busy", lambda: None)).start()
        on_call("first", server.ask)
    """)
    first = stage.run(gateway, "--as", "first")
    stage.when_called("first", stage.who("first"))
    second = stage.run(gateway, "--as", "second")
    stage.beats("second")
    return stage.truth(in_use=[first, second, stage.who("older"), stage.who("newer")])
