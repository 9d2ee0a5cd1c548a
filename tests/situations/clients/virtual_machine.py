"""A server listens on a vsock, for virtual machines; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        listener = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
        listener.bind((socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY))
        listener.listen()
        in_background(answer_calls, listener)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
