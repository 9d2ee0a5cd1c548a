"""One agent, fourteen servers on pipes and socket pairs; it is killed."""

TRUTH = "orphan"


def build(stage):
    stage.put("mcp-server-tiny", """
        #!/bin/sh
        read line
        echo '{"result":{}}'
        echo $$ > "$ORPHAND_SITUATION_DIR/go/$2"
        while :; do sleep 1000; done
    """)
    agent = stage.run(stage.part("claude", """
        for n in range(14):
            start("/bin/sh", f"{BIN}/mcp-server-tiny", "--as", f"tiny{n}", wire=["pipe", "socket"][n % 2])
        here()
        rest()
    """))
    stage.who("claude")
    stage.find("sleep", 14)
    agent.kill()
    return stage.truth(orphans=stage.everyone())
