import os
import shutil
import situation
from situation import scene

@scene("in use", twin="orphans/bridge")
def agent_below_a_server(stage):
    """An agent lives below a server and works with one of its own; the agent of the first is killed."""
    stage.part("codex", "here()\nuse('codex', start('mcp-server-fake').ask)\n")
    stage.part("mcp-server-agents", """
        start("codex", wire=None)
        present("codex")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    stage.beats("codex")
    return stage.killed(agent, in_use=["codex", "mcp-server-fake"], may_end=["mcp-server-agents"])

@scene("in use", twin="others/agent_without_its_host_killed")
@scene(
    "orphan", name="agent_without_its_host_killed", twin="others/agent_without_its_host", ends=True,
    about="The agent that its killed host left behind is killed, too.",
)
def agent_without_its_host(stage, ends=False):
    """A host that no rule knows is killed; the agent that nobody speaks to or hears any more works on with its server."""
    stage.part("claude", "here()\nuse('claude', start('mcp-server-fake').ask)\n")
    host = stage.run(stage.part("sdk_host.py", "start('claude', asked=False)\nhere()\nrest()\n"))
    stage.beats("claude")
    if not ends:
        return stage.killed(host, in_use=["mcp-server-fake"])
    host.kill()
    stage.over.add("claude")
    return stage.killed(stage.who("claude"), orphans=["mcp-server-fake"])

@scene("in use", twin="orphans/helper_below_a_server")
def agent_of_npm_below_a_server(stage):
    """A tool of a server started Claude Code by the path of npm's package (bin/claude.exe); the server's agent is killed."""
    program = f"{stage.dir}/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
    os.makedirs(os.path.dirname(program))
    shutil.copy(os.path.realpath(situation.PYTHON), program)
    stage.part("work.txt", "here('assistant')\nuse('assistant', lambda: None)\n")
    stage.part("mcp-server-agents", f"""
        start({program!r}, "-ISB", f"{{BIN}}/work.txt", wire=None)
        present("assistant")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    stage.beats("assistant")
    return stage.killed(agent, in_use=["assistant"], may_end=["mcp-server-agents"])

@scene("mixed")
def another_client(stage):
    """Two agents of different vendors run the same server program; one of them is killed."""
    dead = stage.rests("claude", 'start("mcp-server-fake", "--as", "left")')
    living = stage.uses("codex", "use('codex', start('mcp-server-fake', '--as', 'used').ask)\n")
    return stage.killed(dead, orphans=["left"], in_use=[living, "used"])

@scene("in use")
def at_work(stage):
    """An agent works with three servers, on pipes, a socket pair and in a session of its own: nothing is wrong."""
    agent = stage.uses("claude", """
        servers = [start("mcp-server-fake", "--as", "a"), start("mcp-server-fake", "--as", "b", wire="socket"),
                   start("mcp-server-fake", "--as", "c", start_new_session=True)]
        here()
        use("claude", lambda: [server.ask() for server in servers])
    """)
    return stage.truth(in_use=[agent, *[alias for alias in "abc"]])

@scene("in use")
def became_another_user(stage):
    """The server gave up its rights and is another user than its agent, which is killed: left to a person's word."""
    stage.part("mcp-server-fake", """
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        serve()
    """)
    return stage.killed(stage.agent(), in_use=["mcp-server-fake"])

@scene("in use")
def conmon(stage):
    """conmon, below a leaking server, holds a container's streams; the agent is killed."""
    stage.part("container", "here()\nuse('container', lambda: print('step', flush=True))\n")
    stage.part("conmon", """
        here()
        r, w = os.pipe()
        start("container", wire=None, stdout=w, start_new_session=True)
        os.close(w)
        while os.read(r, 1000):
            pass
    """)
    stage.part("mcp-server-podman", """
        start("conmon", wire=None, start_new_session=True)
        present("container")
        serve()
    """)
    agent = stage.agent("mcp-server-podman")
    stage.beats("container")
    return stage.killed(agent, in_use=["conmon", "container"], may_end=["mcp-server-podman"])

@scene("in use")
def dev_server(stage):
    """A dev server that the agent started in the background, on pipes; the agent ends."""
    stage.part("vite", """
        here()
        answer_calls(listen("tcp"))
    """)
    agent = stage.run(stage.part("claude", """
        start("vite", asked=False)
        present("vite")
        here()
    """))
    stage.who("claude")
    stage.uses("person", "use('person', lambda: call('tcp', 'vite'))\n")
    return stage.ended(agent, in_use=["vite"])

@scene("in use", twin="orphans/clean_exit")
@scene(
    "in use", name="hook_that_is_told_no_event", twin="orphans/clean_exit", about="The same, and what it is told names no event.",
    said={"timestamp": 1764000000000, "cwd": "/", "toolName": "bash", "toolArgs": "{}", "toolResult": {"resultType": "success"}},
)
@scene(
    "in use", name="hook_that_is_told_nothing", twin="orphans/clean_exit", said=None,
    about="The same, and its input is at its end from the start, as is that of one that has read it at once.",
)
@scene(
    "in use", name="hook_whose_agent_is_late", twin="orphans/clean_exit", said=None, late=0.3, about="The same, and its agent is late.",
)
def hook_named_like_a_server(stage, said={"session_id": "s", "cwd": "/", "hook_event_name": "PostToolUse"}, late=0):
    """An agent calls a program named mcp-notify as a hook and does not wait for it; the agent is killed, the hook works on."""
    # It starts slowly: what it is told is seen.
    stage.part("mcp-notify", """
        here()
        time.sleep(3)
        os.read(0, 4096)
        use("hook", lambda: open(f"{DIR}/sent", "a").write("one more\\n"))
    """)
    agent = stage.rests("claude", f"""
        hook = start("mcp-notify", asked=False)
        time.sleep({late})
        os.write(hook.w, json.dumps({said!r}).encode() if {said!r} else b"")
        os.close(hook.w)
    """)
    stage.beats("hook")
    return stage.killed(agent, in_use=["mcp-notify"])

@scene("in use")
def idle(stage):
    """An agent and its server have been idle for long; nobody died."""
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        here()
        on_call("claude", server.ask)
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("in use")
def inspector(stage):
    """A person's inspector on a terminal session talks to a server; an agent next to it is killed."""
    stage.part("inspector.py", "here()\nuse('inspector', start('mcp-server-fake', wire='socket').ask)\n")
    agent = stage.rests("claude", 'shell(f"setsid {BIN}/inspector.py < /dev/null > /dev/null 2>&1 &")')
    stage.beats("inspector")
    return stage.killed(agent, in_use=["inspector.py", "mcp-server-fake"])

@scene("in use", twin="orphans/unknown_host_confirmed")
def job_named_like_a_server(stage):
    """A scheduler that no rule knows runs a job called mcp-backup on pipes and is killed; the job works on."""
    stage.part("mcp-backup", """
        here()
        while True:
            with open(f"{DIR}/saved", "a") as f:
                f.write("one more")
            time.sleep(TICK)
    """)
    scheduler = stage.rests("scheduler.py", """
        job = start("mcp-backup", asked=False)
        os.write(job.w, b"all tables\\n")
    """)
    stage.grows("saved")
    return stage.killed(scheduler, in_use=["mcp-backup"])

@scene("in use", twin="orphans/moved_wire")
@scene(
    "in use", name="goes_on_behind_a_launcher", twin="orphans/moved_wire", line=["npx", "-y", "mcp-server-fake"],
    about="The same, and npx waits for it, which has its first streams still.",
)
@scene(
    "in use", name="goes_on_behind_a_launcher_and_restarts", twin="orphans/restarts_of_orphand", line=["npx", "-y", "mcp-server-fake"], restart=True,
    about="The same, and orphand is restarted again and again.",
)
@scene(
    "in use", name="goes_on_with_a_log", twin="orphans/moved_wire",
    about="The same, with a log for its output.",
    writes="log = os.open(DIR + '/service.log', os.O_WRONLY | os.O_CREAT, 0o600); os.dup2(log, 1); os.dup2(log, 2)",
)
def goes_on_in_the_background(stage, line=("mcp-server-fake",), writes=""):
    """A server put /dev/null in the place of its streams, as a service does that goes into the background; the agent is killed, it works on."""
    stage.part("npx", "here()\nsubprocess.run(['/bin/sh', '-c', f'{BIN}/mcp-server-fake; exit'])\n")
    stage.part("mcp-server-fake", f"""
        answer(os.read(0, 65536))
        goes_into_the_background()
        {writes}
        here()
        use("service", lambda: None)
    """)
    agent = stage.rests("claude", f"start(*{line!r})\npresent('mcp-server-fake')\n")
    stage.beats("service")
    return stage.killed(agent, in_use=["mcp-server-fake", *line[:-1][:1]])

@scene("in use", twin="orphans/before")
@scene(
    "in use", name="killed_supervisor_and_restarts", twin="orphans/restarts_of_orphand", restart=True,
    about="The same, and orphand is restarted again and again: what it knew of the bot is known to the next one.",
)
def killed_supervisor(stage):
    """A supervisor keeps a bot, and is killed; the bot works on."""
    stage.part("mcp-server-bot", """
        here()
        use("bot", lambda: open(f"{DIR}/bot.log", "a").write("message\\n"))
    """)
    supervisor = stage.run(stage.part("supervisord", 'start("mcp-server-bot", asked=False)\nhere()\nrest()\n'))
    stage.beats("bot")
    supervisor.kill()
    bot = stage.who("mcp-server-bot")
    stage.adopted(bot)
    return stage.truth(in_use=[bot])

@scene("in use")
def language_server(stage):
    """An agent's language server, on pipes, outlives it: no MCP server, so not ours to end."""
    stage.server("pyright-langserver", "timer")
    return stage.killed(stage.rests("claude", 'start("pyright-langserver", "--stdio")'), in_use=["pyright-langserver"])

@scene("in use")
def launcher_of_the_agent_killed(stage):
    """codex is a launcher and the program it started; the launcher is killed, the program works on with its server."""
    launcher = stage.uses("codex", """
        if ALIAS == "inner":
            here()
            use("codex", start("mcp-server-fake").ask)
        here()
        start("codex", "--as", "inner", wire=None).wait()
    """)
    return stage.killed(launcher, in_use=["inner", "mcp-server-fake"])

@scene("in use")
def names_in_arguments(stage):
    """`tail -f mcp-server.log | grep mcp-server-x > found &`: names of servers in arguments. The agent is killed."""
    stage.write("mcp-server.log", "mcp-server-fake\n")
    agent = stage.rests("claude", """
        shell(f"tail -s 0.1 -f mcp-server.log 2> /dev/null | grep --line-buffered mcp-server-fake > found 2> /dev/null &")
    """, cwd=stage.dir)
    stage.run(stage.part("logger", "use('logger', lambda: open(f'{DIR}/mcp-server.log', 'a').write('mcp-server-fake\\n'))\n"))
    parts = [p for name in ("tail", "grep") for p in stage.find(name) if p.argv()[0] == name]
    stage.grows("found")
    return stage.killed(agent, in_use=parts)

@scene("in use")
def nohup_bot(stage):
    """A bot that the agent started with nohup; no server at all. The agent is killed."""
    stage.part("bot.py", "here()\nuse('bot', lambda: print('step', flush=True))\n")
    agent = stage.rests("claude", 'shell(f"nohup {BIN}/bot.py > bot.log 2>&1 &")')
    stage.beats("bot")
    return stage.killed(agent, in_use=["bot.py"])

@scene("in use", twin="orphans/helper_below_a_server")
@scene(
    "in use", name="own_agent_with_a_home_made_server", twin="orphans/helper_below_a_server", own="server.py",
    about="The same, and no rule knows the assistant's server, either.",
)
@scene(
    "in use", name="own_agent_that_inherited_its_input", twin="orphans/helper_below_a_server", stdin=0, stdout="subprocess.PIPE",
    about="The same, and the server reads what the assistant prints, and has handed its own standard input on.",
)
def own_agent_below_a_server(stage, own="mcp-server-fake", stdin=None, stdout="None"):
    """A tool of a server started an assistant that no rule knows, which works with a server of its own; the agent is killed."""
    stage.server("server.py", starts=0.5)
    stage.part("assistant.py", f"here()\nuse('assistant', session({own!r}).ask)\n")
    stage.part("mcp-server-agents", f"""
        start("assistant.py", wire=None, stdin={stdin}, stdout={stdout})
        present("assistant.py")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    stage.beats("assistant")
    return stage.killed(agent, in_use=["assistant.py", own], may_end=["mcp-server-agents"])

@scene("in use")
def parallel_jobs(stage):
    """A gateway's job ended and left its server, the gateway lives; the servers of its other jobs are in use."""
    agent = stage.run(stage.part("hermes", """
        here()
        jobs = [start("mcp-server-fake", "--as", f"job{n}", start_new_session=True) for n in range(3)]
        use("hermes", lambda: [job.ask() for job in jobs])
    """), "gateway", "run")
    stage.beats("hermes")
    return stage.truth(in_use=[agent, *[f"job{n}" for n in range(3)]])

@scene("in use")
def real_tmux(stage):
    """A leaking server's shell tool started the real tmux with a job in it; the agent is killed: tmux and the job stay."""
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-shell", """
        shell(f"tmux -S {DIR}/tmux.s new-session -d '{BIN}/job'")
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    agent.kill()
    job = stage.who("job")
    tmux = [p for p in stage.everyone() if p.argv()[:1] == ["tmux"]]
    return stage.truth(in_use=[job, *tmux], may_end=["mcp-server-shell"])

@scene("in use")
def remote_editor(stage):
    """A remote editor's server, started through a log-in that has ended, uses MCP servers of its own."""
    stage.part("code-server", """
        def daemon():
            os.setsid()
            here()
            use("editor", start("mcp-server-fake", wire="socket").ask)
        copy(daemon)
    """)
    agent = stage.rests("claude", 'start("code-server", wire=None).wait()')
    stage.beats("editor")
    return stage.killed(agent, in_use=["code-server", "mcp-server-fake"])

@scene("in use")
def supervised(stage):
    """A supervisor that the agent had started keeps a server as a service and logs through pipes; the agent is killed."""
    stage.part("mcp-server-web", """
        listener = listen("tcp")
        here()
        in_background(answer_calls, listener)
        use("service", lambda: os.write(1, b"log\\n"))
    """)
    stage.part("supervisord", """
        def daemon():
            os.setsid()
            here()
            server = start("mcp-server-web", asked=False)
            while os.read(server.r, 1000):
                pass
        copy(daemon)
    """)
    agent = stage.rests("claude", 'start("supervisord", wire=None).wait()')
    stage.beats("service")
    return stage.killed(agent, in_use=["supervisord", "mcp-server-web"])

@scene("in use")
def tmux_below_a_server(stage):
    """A leaking server's shell tool started tmux; the agent is killed: tmux and its session stay."""
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("tmux", """
        def daemon():
            os.setsid()
            here()
            start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), start_new_session=True)
            rest()
        copy(daemon)
    """)
    stage.part("mcp-server-shell", """
        shell(f"{BIN}/tmux new -d")
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    return stage.killed(agent, in_use=["tmux", "job"], may_end=["mcp-server-shell"])

@scene("in use")
def tmux_below_an_agent(stage):
    """The agent started tmux; in it a person runs a server in a pipeline; the agent is killed."""
    stage.part("tmux", """
        def daemon():
            os.setsid()
            here()
            shell(f"echo {{}} | {BIN}/mcp-server-batch | cat > results")
        copy(daemon)
    """)
    agent = stage.rests("claude", 'shell(f"{BIN}/tmux new -d")')
    stage.grows("results")
    return stage.killed(agent, in_use=["tmux", "mcp-server-batch"])

@scene("in use", twin="orphans/launch_chain")
def wrapper_killed(stage):
    """Only the wrapper `npx` was killed: the server is init's child now, and its host goes on with it."""
    stage.part("npx", """
        here()
        subprocess.run([f"{BIN}/mcp-server-fake"])
    """)
    agent = stage.uses("claude", """
        here()
        use("claude", start("npx", "-y", "mcp-server-fake").ask)
    """)
    stage.who("npx").kill()
    stage.adopted(stage.who("mcp-server-fake"))
    return stage.truth(in_use=[agent, "mcp-server-fake"])
