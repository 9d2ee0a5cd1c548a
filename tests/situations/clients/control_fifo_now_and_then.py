"""A person commands the server by `echo play > FIFO` now and then, and nobody has the FIFO open meanwhile; the agent is killed."""
import os

TRUTH = "in use"


def build(stage):
    os.mkfifo(f"{stage.dir}/commands", 0o666)
    stage.part("mcp-server-player", """
        commands = os.open(f"{DIR}/commands", os.O_RDWR)
        def obey():
            while os.read(commands, 100):
                tell("go/done", "")
        in_background(obey)
        serve()
    """)
    agent = stage.agent("mcp-server-player")
    person = stage.run(stage.part("person", """
        def ask():
            if os.path.exists(f"{DIR}/go/done"):
                os.unlink(f"{DIR}/go/done")
            with open(f"{DIR}/commands", "w") as commands:
                commands.write("play\\n")
            for _ in range(100):
                if os.path.exists(f"{DIR}/go/done"):
                    return
                time.sleep(0.02)
            raise EOFError("not done")
        here()
        ask()
        on_call("person", ask)
    """))
    stage.who("person")
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-player")])
