"""A server offers a terminal as a serial line, and a program outside talks to it there, in no session of that terminal; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/idle_terminal"


def build(stage):
    stage.part("mcp-server-serial", """
        import tty
        master, line = os.openpty()
        tty.setraw(line)
        path = os.ttyname(line)
        tell("line", path)
        tell("go/line", "")
        def attend():
            while True:
                os.read(master, 100)
                os.write(master, b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-serial")
    person = stage.run(stage.part("person", """
        wait_for("line")
        line = os.open(open(DIR + "/line").read().strip(), os.O_RDWR | os.O_NOCTTY)
        def ask():
            os.write(line, b"ping")
            assert os.read(line, 100)
        ask()
        on_call("person", ask)
    """), start_new_session=True)
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-serial")])
