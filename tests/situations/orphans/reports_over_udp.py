"""The server reports figures over UDP, to a collector that lives and to a port where nobody is; its agent is killed."""
import os
import situation

TRUTH = "orphan"
TWIN = "clients/udp_connected_to_an_open_socket"


def build(stage):
    stage.part("mcp-server-fake", """
        while not os.path.exists(f"{DIR}/go/collector.port"):
            time.sleep(0.02)
        with open(f"{DIR}/go/collector.port") as f:
            port = int(f.read())
        def connected(port):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.connect(("127.0.0.1", port))
            return sock
        sinks = [connected(port), connected(9)]
        def report():
            while True:
                for sock in sinks:
                    try:
                        sock.send(b"calls:1|c")
                    except ConnectionRefusedError:
                        pass
                time.sleep(0.5)
        in_background(report)
        serve("timer")
    """)
    stage.run(stage.part("collector", """
        # As collectors have it: a port of its own choice, below those that the system gives out.
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for port in range(8125, 32000):
            try:
                sock.bind(("127.0.0.1", port))
                break
            except OSError:
                pass
        tell("go/collector.port", str(port))
        here()
        sock.recv(100)
        tell("go/collected", "1")
        rest()
    """))
    stage.who("collector")
    agent = stage.agent("mcp-server-fake")
    situation.within("a report", lambda: os.path.exists(f"{stage.dir}/go/collected"))
    server = stage.who("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[server])
