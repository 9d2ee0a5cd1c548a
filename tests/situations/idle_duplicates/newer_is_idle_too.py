"""The agent works, and calls neither of them for now."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("tidy-gateway", """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        older, newer = two()
        here()
        threading.Thread(target=use, args=("tidy-gateway", lambda: None)).start()
        on_call("older", older.ask)
    """))
    stage.beats("tidy-gateway")
    stage.when_called("older", stage.who("tidy-gateway"))
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer")])
