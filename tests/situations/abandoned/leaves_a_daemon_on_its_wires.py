"""The same; the daemon inherited the server's standard streams, as adb's does, and others call it."""

TRUTH = "in use"
TWIN = "abandoned/leaves_a_daemon"


def build(stage):
    stage.part("tool-daemon", """
        in_background(answer_calls, listen("tcp"))
        here()
        rest_in_a_thread()
    """)
    stage.part("mcp-server-fake", """
        if os.fork() == 0:
            os.setsid()
            subprocess.Popen([f"{BIN}/tool-daemon"])
            os._exit(0)
        os.wait()
        present("tool-daemon")
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        server.let_go()
        server.child.wait()
        here()
        on_call("claude", lambda: call("tcp", "tool-daemon"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, stage.who("tool-daemon")])
