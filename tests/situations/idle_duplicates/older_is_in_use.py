"""The agent calls the older one; the newer one does nothing."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("tidy-gateway", """
        older, newer = two()
        here()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        threading.Thread(target=use, args=("tidy-gateway", older.ask)).start()
        on_call("newer", newer.ask)
    """))
    stage.beats("tidy-gateway")
    stage.when_called("newer", stage.who("tidy-gateway"))
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer")])
