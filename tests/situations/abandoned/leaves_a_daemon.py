"""A server had started a daemon of its kind (gradle, adb, watchman); the agent closed the server, which stays."""

TRUTH = "mixed"
TWIN = "abandoned/leaves_a_daemon_on_its_wires"


def build(stage):
    stage.part("tool-daemon", """
        in_background(answer_calls, listen("abstract"))
        here()
        rest_in_a_thread()
    """)
    stage.part("mcp-server-fake", """
        null = subprocess.DEVNULL
        if os.fork() == 0:
            os.setsid()
            subprocess.Popen([f"{BIN}/tool-daemon"], stdin=null, stdout=null, stderr=null)
            os._exit(0)
        os.wait()
        present("tool-daemon")
        serve("timer")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        server.let_go()
        here()
        on_call("claude", lambda: call("abstract", "tool-daemon"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(orphans=[stage.who("mcp-server-fake")], in_use=[agent, stage.who("tool-daemon")])
