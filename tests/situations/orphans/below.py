import os
import textwrap
from situation import scene

@scene("orphan", twin="others/agent_below_a_server")
def bridge(stage):
    """A server that is a bridge to another one, on a wire of its own; their agent is killed."""
    stage.server("mcp-server-inner", "timer")
    stage.part("mcp-proxy", """
        inner = start("mcp-server-inner")
        serve()
    """)
    return stage.killed(stage.agent("mcp-proxy"), orphans=["mcp-proxy", "mcp-server-inner"])

@scene(
    "orphan", twin="let_go/dev_server_with_a_log",
    cost="when the server has ended, its driver listens and looks like a service that it let go",
)
@scene(
    "orphan", name="driver_that_is_read", twin="let_go/dev_server_that_is_read", stdout="subprocess.PIPE",
    about="The same, and the server reads what the driver prints.",
)
def driver(stage, stdout="None"):
    """A server has a driver for its browser: a child with a port that only the server calls, and /dev/null; the agent is killed."""
    stage.part("driver", """
        listener = listen("tcp")
        here()
        connection, _ = listener.accept()
        while connection.recv(100):
            pass
        connection.close()
        rest()
    """)
    stage.part("mcp-server-shell", f"""
        child = start("driver", wire=None, stdout={stdout}, stderr=subprocess.DEVNULL)
        present("driver")
        driver = dial("tcp", "driver")
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-shell"), orphans=["mcp-server-shell", "driver"])

@scene("orphan", twin="others/own_agent_below_a_server")
def helper_below_a_server(stage):
    """A server started a helper on streams of its own, which starts no server; their agent is killed."""
    stage.part("assistant.py", "here()\nos.read(0, 1)\n")
    stage.part("mcp-server-agents", """
        start("assistant.py", wire=None, stdin=subprocess.PIPE)
        present("assistant.py")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    return stage.killed(agent, orphans=["mcp-server-agents", "assistant.py"])

@scene("orphan", twin="let_go/fed_with_what_a_person_reads")
def watchdog_of_its_own(stage):
    """A server has a helper in a session of its own that only waits for the server's end (chrome-devtools-mcp); the agent is killed."""
    stage.part("watchdog", "here()\nwhile os.read(0, 100):\n    pass\n")
    stage.part("mcp-server-shell", """
        nothing = subprocess.DEVNULL
        start("watchdog", wire=None, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True)
        present("watchdog")
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-shell"), orphans=["mcp-server-shell", "watchdog"])

@scene("orphan", twin="let_go/document")
def below_what_was_opened(stage):
    """An agent opened another one by `xdg-open`, as in an editor; that is killed, its server and the server's helper stay."""
    stage.part("assistant.py", "here()\nos.read(0, 1)\n")
    stage.part("mcp-server-agents", 'start("assistant.py", wire=None, stdin=subprocess.PIPE)\npresent("assistant.py")\nserve()\n')
    stage.part("codex", 'start("mcp-server-agents")\nhere()\nrest()\n')
    stage.put("xdg-open", f"#!/bin/sh\n{stage.dir}/bin/codex\n")
    stage.rests("claude", 'start("xdg-open", wire=None)')
    return stage.killed(stage.who("codex"), orphans=["mcp-server-agents", "assistant.py"])

@scene("mixed", twin="let_go/web_server")
def leaves_a_job(stage):
    """A leaking server had started a web server that was let go; the agent is killed: the one must end, the other must not."""
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    agent.kill()
    stage.uses("person", "use('person', lambda: call('tcp', 'web-server'))\n")
    return stage.truth(orphans=["mcp-server-shell"], in_use=["web-server"])

@scene(
    "orphan", name="tool_with_a_log", twin="let_go/job_with_a_log",
    about="A server runs a program with a log for its output and waits for it, which hangs; the agent is killed.",
    runs="""subprocess.run([f"{BIN}/job"], stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT)""",
)
@scene(
    "orphan", twin="let_go/shell_job",
    runs="""subprocess.run(["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log 2>&1 & wait"], stdin=subprocess.DEVNULL)""",
)
def shell_job_that_is_waited_for(stage, runs):
    """A server's shell tool runs `job > log 2>&1 & wait`, and the job hangs; the agent is killed."""
    stage.part("job", "here()\nrest()\n")
    stage.part("mcp-server-shell", f"here()\nanswer(os.read(0, 65536))\n{runs}\n")
    agent = stage.agent("mcp-server-shell")
    stage.who("job")
    agent.kill()
    return stage.truth(orphans=stage.everyone())

@scene("orphan", twin="let_go/job_with_a_pipe_of_others")
def helper_with_a_pipe(stage):
    """A server has a helper without any output, as Python's multiprocessing has, and a pipe to it beside the standard streams; the agent is killed."""
    stage.part("tracker", "here()\nrest()\n")
    stage.part("mcp-server-pool", """
        far, w = os.pipe()
        start("tracker", wire=None, stderr=subprocess.DEVNULL, pass_fds=[far])
        os.close(far)
        present("tracker")
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-pool"), orphans=["mcp-server-pool", "tracker"])

@scene("orphan", twin="let_go/browser_on_its_wires")
def driven_browser(stage):
    """A server drives a browser over two pipes beside the standard streams, which are /dev/null, in a session of its own; the agent is killed."""
    stage.part("chromium", "here()\nrest()\n")
    stage.part("mcp-server-browser", """
        (far_r, w), (r, far_w) = os.pipe(), os.pipe()
        start("chromium", wire=None, stderr=subprocess.DEVNULL, pass_fds=[far_r, far_w], start_new_session=True)
        os.close(far_r)
        os.close(far_w)
        present("chromium")
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-browser"), orphans=["mcp-server-browser", "chromium"])

@scene("orphan", twin="let_go/browser")
def tied_browser(stage):
    """A server's browser has a session of its own but keeps fd 2 as a socket to it, as puppeteer's do; the agent is killed, both stay."""
    stage.part("chromium", "here()\nrest()\n")
    stage.part("mcp-server-browser", """
        near, far = socket.socketpair()
        start("chromium", wire=None, stderr=far, start_new_session=True)
        far.close()
        present("chromium")
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-browser"), orphans=["mcp-server-browser", "chromium"])

@scene("orphan", twin="orphans/tool_at_work_for_ever")
@scene(
    "orphan", name="tool_at_work_for_ever", twin="orphans/tool_at_work", steps=1000000000,
    about="A server waits for a tool that works for ever; the agent is killed: both are ended when `work_grace` is over.",
)
@scene(
    "orphan", name="tool_that_sleeps", twin="orphans/waits_for_its_tool", work="time.sleep(12)",
    about="A server waits for a tool that sleeps until it goes on; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="tool_with_an_alarm", twin="orphans/waits_for_its_tool",
    work="empty, full = os.pipe()\nsignal.signal(signal.SIGALRM, lambda *_: os.write(full, b'x'))\nsignal.alarm(12)\nos.read(empty, 1)",
    about="A server waits for a tool that reads a pipe until an alarm of its own ends that; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="tool_that_works_elsewhere", twin="orphans/waits_for_its_tool", work="with dial('tcp', 'database') as database:\n    database.recv(1)",
    about="A server waits for a tool that waits for the answer of a database; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="tool_that_waits_for_a_job", twin="orphans/waits_for_its_tool",
    work="subprocess.run(['sleep', '12'], stdin=subprocess.DEVNULL, stdout=open(f'{DIR}/log', 'w'), stderr=subprocess.STDOUT, start_new_session=True)",
    about="A server waits for a tool that waits for a job in a session of its own, with a log; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="tool_on_its_wires", twin="orphans/waits_for_its_tool", streams="None",
    about="A server waits for a tool that inherited its wires, as ffmpeg does; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="tool_named_like_a_server", twin="orphans/waits_for_its_tool", streams="None", tool="mcp-shell-migrate",
    about="A server waits for a tool on its wires that is named like a server; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="named_tool_of_a_home_made_server", twin="orphans/waits_for_its_tool", streams="None", tool="mcp-shell-migrate", server="server.py",
    about="A server that no rule knows waits for a tool on its wires that is named like a server; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="tool_that_is_stopped", twin="orphans/tool_at_work_for_ever", stopped=25, steps=20,
    about="A server waits for a tool that somebody stops for longer than `work_grace`; the agent is killed: the tool goes on to its end, then the server ends.",
)
@scene(
    "orphan", name="tool_of_a_script", twin="orphans/waits_for_its_tool", script=True,
    about="A server written in bash runs a tool that prints its answer itself; the agent is killed: the tool comes to its end, then the server ends.",
)
@scene(
    "orphan", name="protocol/tool_of_a_script", twin="orphans/waits_for_its_tool", script=True, server="acme.sh",
    about="The same, and only its first message, which it reads itself, shows that the script is a server.",
)
def tool_at_work(stage, steps=40, work=None, streams="subprocess.DEVNULL", script=False, tool="migrate", server="mcp-server-shell", stopped=0):
    """A server waits for a migration that takes its time; the agent is killed: the migration comes to its end, then the server ends."""
    steadily = f"""
        for step in range({steps}):
            open(f"{{DIR}}/migration", "a").write("row\\n")
            time.sleep(0.25)
    """
    stage.part(tool, "here('migrate')\n" + (work or textwrap.dedent(steadily)) + "\ntell('migrated', 'whole')\n")
    if work and "database" in work:
        stage.run(stage.part("database", """
            listener = listen("tcp")
            caller, _ = listener.accept()
            time.sleep(12)
            caller.send(b"x")
            rest()
        """))
    if stopped:
        stage.run(stage.part("warden", f"""
            migration = present("migrate")
            os.kill(migration, signal.SIGSTOP)
            time.sleep({stopped})
            os.kill(migration, signal.SIGCONT)
            rest()
        """))
    if script:
        begins = "exec 9<> <(:)\nsleep 0.4 < /dev/null > /dev/null\nread -r line\necho '{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}'\nread -r line"
        stage.put(server, f"#!/bin/bash\n{begins}\nwhile :; do read -r line && {stage.dir}/bin/migrate || read -rt 1 -u 9 _; done\n")
        agent = stage.rests("claude", f"""
            server = session({server!r})
            here({server!r}, server.pid)
            time.sleep(1)
            os.write(server.w, b"{{}}\\n")
        """)
    else:
        stage.part(server, f"""
            here()
            time.sleep(0.5)
            answer(os.read(0, 65536))
            subprocess.run([f"{{BIN}}/{tool}"], stdin={streams}, stdout={streams})
            serve()
        """)
        agent = stage.rests("claude", f"session({server!r})")
    migration = stage.who("migrate")
    if steps > 40:
        return stage.killed(agent, orphans=[server, migration])
    agent.kill()
    stage.checks.append(lambda: os.path.exists(f"{stage.dir}/migrated"))
    return stage.truth(orphans=[server], may_end=[migration])

@scene(
    "orphan", name="steps_with_a_time_limit", twin="orphans/waits_for_its_tool", hears="pass", rests="time.sleep(0.05)",
    about="A server works off steps with logs, looks from time to time whether one is done, and has a limit for each; the agent is killed: it goes on to the next step, then it ends.",
)
@scene(
    "orphan", name="steps_of_one_that_takes_signals", twin="orphans/waits_for_its_tool",
    hears="signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])", rests="signal.sigwait([signal.SIGCHLD])",
    about="The same, and it waits for the signal of each end itself (sigwait(3)).",
)
@scene(
    "orphan", name="steps_in_sessions_of_their_own", twin="orphans/waits_for_its_tool", hears="pass", rests="build.wait()",
    about="The same, and each has a session of its own, below a shell, and the server waits in waitpid(2).", apart=True,
)
@scene("orphan", twin="orphans/waits_for_its_tool")
def steps_with_logs(stage, hears="signal.signal(signal.SIGCHLD, lambda *_: None)", rests="signal.pause()", apart=False):
    """A server works off steps with logs and is told of the end of each, as node is; the agent is killed: it goes on to the next step, then it ends."""
    stage.part("build", """
        here()
        for step in range(40):
            print(step, flush=True)
            time.sleep(0.25)
    """)
    stage.part("mcp-server-shell", f"""
        here()
        {hears}
        answer(os.read(0, 65536))
        log = open(f"{{DIR}}/build.log", "w")
        argv = ["sh", "-c", f"{{BIN}}/build; :"] if {apart} else [f"{{BIN}}/build"]
        build = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session={apart})
        while build.poll() is None:
            {rests}
        tell("published", "whole")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    build = stage.who("build")
    agent.kill()
    stage.checks.append(lambda: os.path.exists(f"{stage.dir}/published"))
    return stage.truth(orphans=["mcp-server-shell"], may_end=[build])

@scene(
    "orphan", name="protocol/tools_of_an_ended_server", twin="let_go/job_on_its_wires", server="server.py",
    about="The same, and no rule knows the server, which was spoken to in the protocol.",
)
@scene("orphan", twin="let_go/job_on_its_wires")
def tools_of_an_ended_server(stage, server="mcp-server-shell"):
    """A server runs two tools on its wires, and ends in good order with its session: a migration comes to its end, then the tool that hangs is ended."""
    stage.part("hung-tool", "here()\nrest()\n")
    stage.part("migrate", """
        here()
        for step in range(40):
            open(f"{DIR}/migration", "a").write("row\\n")
            time.sleep(0.25)
        tell("migrated", "whole")
    """)
    stage.part(server, """
        time.sleep(0.5)
        here()
        answer(os.read(0, 65536))
        for tool in ("hung-tool", "migrate"):
            subprocess.Popen([f"{BIN}/{tool}"])
            present(tool)
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", f"""
        server = session("{server}")
        present("migrate")
        server.let_go()
        server.child.wait()
    """))
    hung, migration = stage.who("hung-tool"), stage.who("migrate")
    stage.checks.append(lambda: os.path.exists(f"{stage.dir}/migrated"))
    return stage.ended(agent, orphans=[hung], may_end=[migration])

@scene("orphan", twin="let_go/hook_job")
def waits_for_its_tool(stage):
    """A server waits for a tool that it reads from (git, whose hook hangs); its agent is killed."""
    stage.part("git", "here()\nsubprocess.run(['/bin/sh', '-c', 'while :; do sleep 1000; done'])\n")
    stage.part("mcp-server-git", """
        here()
        answer(os.read(0, 65536))
        subprocess.run([f"{BIN}/git", "commit"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    """)
    agent = stage.agent("mcp-server-git")
    stage.find("sleep")
    agent.kill()
    return stage.truth(orphans=stage.everyone())
