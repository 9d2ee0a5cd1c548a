"""The same, and orphand is restarted again and again: what it knew of the bot is known to the next one."""

TRUTH = "in use"
TWIN = "orphans/restarts_of_orphand"
RESTART = True


def build(stage):
    stage.part("mcp-server-bot", """
        here()
        use("bot", lambda: open(f"{DIR}/bot.log", "a").write("message\\n"))
    """)
    stage.part("supervisord", """
        start("mcp-server-bot", asked=False)
        here()
        rest()
    """)
    supervisor = stage.run(f"{stage.dir}/bin/supervisord")
    stage.beats("bot")
    supervisor.kill()
    bot = stage.who("mcp-server-bot")
    stage.adopted(bot)
    return stage.truth(in_use=[bot])
