"""The newer one was started with another environment: it may work for another database."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("tidy-gateway", """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        older = start("mcp-server-fake", env={**os.environ, "DATABASE": "a"})
        newer = start("mcp-server-fake", env={**os.environ, "DATABASE": "b"})
        here("older", older.pid)
        here("newer", newer.pid)
        here()
        threading.Thread(target=use, args=("tidy-gateway", newer.ask)).start()
        on_call("older", older.ask)
    """))
    stage.beats("tidy-gateway")
    stage.when_called("older", stage.who("tidy-gateway"))
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer")])
