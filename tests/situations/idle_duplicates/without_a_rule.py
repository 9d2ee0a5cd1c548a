"""The same, and no rule of the agent has idle_duplicates."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("claude", """
        older, newer = two()
        here()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        threading.Thread(target=use, args=("claude", newer.ask)).start()
        on_call("older", older.ask)
    """))
    stage.beats("claude")
    stage.when_called("older", stage.who("claude"))
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer")])
