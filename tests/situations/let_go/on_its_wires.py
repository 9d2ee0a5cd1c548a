from situation import scene

@scene(
    "in use", name="site_on_the_wires_of_an_ended_server", twin="orphans/behind_a_script", leak="exit", runs="/bin/sh -c '{BIN}/web-server; true'",
    about="The same by a shell (`web-server; ..`), and the server ends in good order.",
)
@scene("mixed", twin="orphans/behind_a_script")
def site_on_its_wires(stage, leak="timer", runs="{BIN}/web-server"):
    """A leaking server started a web server on its own wires, without redirecting anything; the agent is killed, a person visits it later."""
    stage.part("web-server", "in_background(answer_calls, listen('tcp'))\nhere()\nrest_in_a_thread()\n")
    stage.part("mcp-server-shell", f"""
        import shlex
        subprocess.Popen(shlex.split(f"{runs}"))
        present("web-server")
        serve("{leak}")
    """)
    agent = stage.agent("mcp-server-shell")
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'web-server'))\n")
    orphans = [] if leak == "exit" else ["mcp-server-shell"]
    return stage.killed(agent, in_use=["web-server"], orphans=orphans)

@scene(
    "mixed", name="daemon_that_the_server_uses", twin="orphans/driver", uses="database = dial('tcp', 'tool-daemon')",
    about="The same, as of a database, and the server is connected to the daemon itself.",
)
@scene(
    "mixed", name="daemon_of_a_reaper", twin="orphans/driver", adopts="libc.prctl(36, 1, 0, 0, 0)",
    about="The same below a server that adopts what is left below it (prctl(2), PR_SET_CHILD_SUBREAPER).",
)
@scene(
    "mixed", name="daemon_with_workers", twin="orphans/driver", works="listener = listen('tcp')\ncopy(lambda: answer_calls(listener), alias='worker')",
    about="The same, and those who answer are forked workers of the daemon.",
)
@scene("mixed", twin="orphans/driver")
def daemon_on_its_wires(stage, works="in_background(answer_calls, listen('tcp'))", adopts="", uses=""):
    """A leaking server had started a daemon that took the server's output into a session of its own; the agent is killed, a person calls the daemon later."""
    stage.part("tool-daemon", f"{works}\nhere()\nrest_in_a_thread()\n")
    stage.part("mcp-server-fake", f"""
        {adopts}
        def middle():
            os.setsid()
            subprocess.Popen([f"{{BIN}}/tool-daemon"], stdin=subprocess.DEVNULL)
        os.waitpid(copy(middle), 0)
        present("tool-daemon")
        {uses}
        serve()
    """)
    agent = stage.agent()
    stage.when_over("person", 'on_call("person", lambda: call("tcp", "tool-daemon"))\n')
    workers = ["worker"] if "worker" in works else []
    return stage.killed(agent, in_use=["tool-daemon", *workers], orphans=["mcp-server-fake"])

@scene("mixed")
def job_with_closed_sockets(stage):
    """A server made pairs of sockets for a job in a session of its own, as node does, and closed its ends; it leaks, the agent is killed."""
    stage.part("job", "here()\nuse('job', lambda: os.stat(DIR))\n")
    stage.part("mcp-server-ops", """
        ours, theirs = socket.socketpair()
        start("job", wire=None, stdout=theirs, stderr=subprocess.DEVNULL, start_new_session=True)
        present("job")
        ours.close()
        theirs.close()
        serve()
    """)
    agent = stage.agent("mcp-server-ops")
    stage.beats("job")
    return stage.killed(agent, orphans=["mcp-server-ops"], in_use=["job"])

@scene(
    "mixed", name="job_with_a_pair_of_others", twin="orphans/helper_with_a_pipe", pair="[end.detach() for end in socket.socketpair()]",
    about="A leaking server started a job without any output, which inherited a pair of sockets that the server has for itself; the agent is killed, the job works on.",
)
@scene("mixed", twin="orphans/helper_with_a_pipe", pair="os.pipe()")
def job_with_a_pipe_of_others(stage, pair):
    """A leaking server started a job without any output, which inherited both ends of a pipe of the server's own; the agent is killed, the job works on."""
    stage.part("job", "here()\nuse('job', lambda: tell('part', str(time.time())))\n")
    stage.part("mcp-server-shell", f"""
        pair = {pair}
        start("job", wire=None, stderr=subprocess.DEVNULL, pass_fds=pair)
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    return stage.killed(agent, in_use=["job"], may_end=["mcp-server-shell"])

@scene("in use", twin="orphans/watchdog_of_its_own")
def fed_with_what_a_person_reads(stage):
    """A server writes to a job in a session of its own, whose output a person reads in a file; the agent is killed."""
    stage.part("job", "here()\nfor line in sys.stdin:\n    print(line, flush=True)\n")
    stage.part("mcp-server-shell", """
        with open(f"{DIR}/go/log", "w") as log:
            job = start("job", wire=None, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
        present("job")
        def feed():
            while True:
                os.write(job.stdin.fileno(), b"news\\n")
                time.sleep(1)
        in_background(feed)
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.grows("go/log")
    return stage.killed(agent, in_use=["mcp-server-shell", "job"])
