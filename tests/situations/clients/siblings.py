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

@scene(
    "in use", name="used_by_one_of_another_user", twin="orphans/joined_siblings", who="mcp-server-user", how=", user=65534, group=65534, extra_groups=[]",
    about="A server that runs as another user asks its sibling; the agent of both is killed: the first stays, and so does the second.",
)
@scene(
    "in use", name="used_by_a_job", twin="orphans/joined_siblings", who="mcp-backup", agent="scheduler.py", how=", asked=False",
    about="A scheduler that no rule knows runs a job called mcp-backup and a server, which the job asks; the scheduler is killed, the job works on.",
)
@scene("in use", twin="orphans/joined_siblings")
def used_by_one_that_stays(stage, who="mcp-server-agents", agent="claude", how=""):
    """An assistant works below a server, which asks its sibling for it; the agent of both is killed: the first stays, and so does the second."""
    stage.listens("mcp-server-web", "tcp")
    stage.part("codex", "here()\nuse('codex', start('mcp-server-fake').ask)\n")
    stage.part(who, f"""
        connection = dial("tcp", "mcp-server-web")
        if {who == "mcp-server-agents"}:
            start("codex", wire=None)
            present("codex")
        in_background(use, "user", lambda: ask_over(connection))
        serve()
    """)
    agent = stage.rests(agent, f'session("mcp-server-web")\nstart("{who}"{how})')
    stage.beats("user")
    return stage.killed(agent, in_use=[who, "mcp-server-web"])

@scene("in use", twin="orphans/siblings")
def sibling_that_went_into_the_background(stage):
    """Two servers of one agent; one goes into the background, as a service does, and asks the other over a connection that it keeps; the agent is killed."""
    stage.part("mcp-server-inner", 'in_background(answer_calls, listen("tcp"))\nserve()\n')
    stage.part("mcp-server-ops", """
        answer(os.read(0, 65536))
        line = dial("tcp", "mcp-server-inner")
        goes_into_the_background()
        here()
        use("ops", lambda: ask_over(line))
    """)
    agent = stage.rests("claude", 'start("mcp-server-inner")\nstart("mcp-server-ops")\n')
    stage.beats("ops")
    return stage.killed(agent, in_use=["mcp-server-inner", "mcp-server-ops"])

@scene("in use", twin="orphans/without_close_on_exec")
def without_close_on_exec(stage):
    """An agent sets no close-on-exec flag: each of its servers inherits its ends of the wires of those before. A program uses the last
    one on wires that were handed on, when the agent is killed."""
    stage.part("relay", """use("relay", handed().ask)""")
    agent = stage.run(stage.part("claude", """
        hand_on(without_close_on_exec(6), "relay")
        here()
        rest()
    """))
    stage.was_used("relay")
    return stage.killed(agent, in_use=[stage.who(name) for name in ("relay", *(f"server{n}" for n in range(6)))])
