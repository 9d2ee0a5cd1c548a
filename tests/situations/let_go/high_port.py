import socket
from situation import scene

@scene("in use", twin="orphans/calls_a_database")
def service_at_a_high_port(stage):
    """A leaking server started a service at the usual port of such, a high one (gRPC), and stays connected; the agent is killed, a person calls later."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    stage.part("index", f"""
        listener = socket.create_server(("127.0.0.1", {port}))
        tell("go/index.tcp", "{port}")
        here()
        answer_calls(listener)
    """)
    stage.part("mcp-server-search", """
        start("index", wire=None, start_new_session=True)
        line = dial("tcp", "index")
        ask_over(line)
        serve()
    """)
    agent = stage.agent("mcp-server-search")
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'index'))\n")
    return stage.killed(agent, in_use=["index"], may_end=["mcp-server-search"])
