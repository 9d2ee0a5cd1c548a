"""A supervisor keeps a bot, and is killed; the bot works on."""

TRUTH = "in use"
TWIN = "orphans/before"


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
