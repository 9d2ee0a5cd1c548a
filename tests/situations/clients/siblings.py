from situation import scene

def servers(stage):
    """An agent with three servers that are joined so. Who calls the last one gets an answer of the first."""
    stage.part("mcp-server-first", """
        channel = socket.socket(fileno=int(argument("--down")))
        def attend():
            while channel.recv(100):
                channel.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    stage.part("mcp-server-second", """
        down, up = [socket.socket(fileno=int(argument(way))) for way in ("--down", "--up")]
        def attend():
            while up.recv(100):
                ask_over(down)
                up.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    stage.part("mcp-server-third", """
        down = socket.socket(fileno=int(argument("--down")))
        listener = listen("tcp")
        def attend():
            caller = listener.accept()[0]
            while caller.recv(100):
                ask_over(down)
                caller.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        first, lower = [end.detach() for end in socket.socketpair()]
        upper, third = [end.detach() for end in socket.socketpair()]
        start("mcp-server-first", "--down", str(first), pass_fds=[first])
        start("mcp-server-second", "--down", str(lower), "--up", str(upper), pass_fds=[lower, upper])
        start("mcp-server-third", "--down", str(third), pass_fds=[third])
        here()
        rest()
    """))
    stage.who("claude")
    return agent, [stage.who(f"mcp-server-{one}") for one in ("first", "second", "third")]


def used(stage, agent, three):
    """A person uses the third of these servers; the agent is killed."""
    person = stage.run(stage.part("person", """
        connection = dial("tcp", "mcp-server-third")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    return stage.killed(agent, in_use=[person, *three])

@scene("in use", twin="orphans/joined_siblings")
def used_through_two_siblings(stage):
    """A client uses a server, which uses a second over a pair of sockets, and that a third over another; their agent is killed."""
    return used(stage, *servers(stage))

@scene("orphan", name="orphans/joined_siblings", twin="clients/used_through_two_siblings")
def joined_siblings(stage):
    """Three servers of one killed agent are joined in a row by pairs of sockets; nobody else uses any."""
    agent, three = servers(stage)
    return stage.killed(agent, orphans=three)

@scene("in use", twin="orphans/siblings")
def is_asked_over_its_siblings_wires(stage):
    """A client uses a server that asks its sibling over its own standard streams, whose other ends the sibling was given; their agent is killed."""
    stage.part("mcp-server-inner", """
        def attend():
            caller = listen("tcp").accept()[0]
            while caller.recv(100):
                os.write(1, b"help")
                caller.sendall(os.read(0, 100))
        answer(os.read(0, 65536))
        here()
        attend()
    """)
    stage.part("mcp-server-outer", """
        w, r = map(int, argument("--wires").split(","))
        def attend():
            while os.read(r, 100):
                os.write(w, b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.rests("claude", """
        inner = start("mcp-server-inner")
        start("mcp-server-outer", *words(inner), pass_fds=[inner.w, inner.r])
    """)
    person = stage.client("tcp", "mcp-server-inner")
    return stage.killed(agent, in_use=[person, "mcp-server-inner", "mcp-server-outer"])
