"""Two agents of different vendors run the same server program; one of them is killed."""

TRUTH = "mixed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    dead = stage.run(stage.part("claude", """
        start("mcp-server-fake", "--as", "left")
        here()
        rest()
    """))
    stage.who("claude")
    living = stage.run(stage.part("codex", "use('codex', start('mcp-server-fake', '--as', 'used').ask)\n"))
    stage.beats("codex")
    dead.kill()
    return stage.truth(orphans=[stage.who("left")], in_use=[living, stage.who("used")])
