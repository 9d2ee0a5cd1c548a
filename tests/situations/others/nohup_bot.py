"""A bot that the agent started with nohup; no server at all. The agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("bot.py", "here()\nuse('bot', lambda: print('step', flush=True))\n")
    agent = stage.run(stage.part("claude", """
        shell(f"nohup {BIN}/bot.py > bot.log 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("bot")
    agent.kill()
    return stage.truth(in_use=[stage.who("bot.py")])
