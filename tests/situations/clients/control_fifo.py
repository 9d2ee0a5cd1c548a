"""A person commands the server through a FIFO that is neither its stdin nor its stdout; the agent is killed."""
import os

TRUTH = "in use"


def build(stage):
    os.mkfifo(f"{stage.dir}/commands")
    stage.part("mcp-server-player", """
        def obey():
            done, commands = open(f"{DIR}/done", "a"), os.open(f"{DIR}/commands", os.O_RDONLY)
            while os.read(commands, 100):
                print("done", file=done, flush=True)
        in_background(obey)
        serve()
    """)
    agent = stage.agent("mcp-server-player")
    person = stage.run(stage.part("person", """
        commands = os.open(f"{DIR}/commands", os.O_WRONLY)
        here()
        use("person", lambda: os.write(commands, b"play\\n"))
    """))
    stage.beats("person")
    stage.grows("done")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-player"), person])
