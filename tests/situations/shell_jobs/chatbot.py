"""`echo prompt | nohup python mcp_chatbot.py > out &`: a bot that outlives the agent, and its own server."""

TRUTH = "in use"
TWIN = "orphans/unknown_host"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("mcp_chatbot.py", """
        os.read(0, 100)
        here()
        use("bot", start("mcp-server-fake").ask)
    """)
    agent = stage.run(stage.part("claude", """
        shell(f"echo prompt | nohup {BIN}/mcp_chatbot.py > bot.out 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("bot")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp_chatbot.py"), stage.who("mcp-server-fake")])
