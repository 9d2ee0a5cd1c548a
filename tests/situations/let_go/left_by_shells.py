import textwrap
from services import display
from situation import scene

SHELL_TOOL = """
    line = os.read(0, 65536)
    tool = subprocess.Popen(argument("--line"), shell=True, executable="/bin/bash", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for output in (tool.stdout, tool.stderr):
        threading.Thread(target=output.read, daemon=True).start()
    present("job")
    if "--kill" in sys.argv:
        tool.kill()
    tool.wait() if argument("--waits") else None
    answer(line)
    serve(argument("--leak"))
"""

JOB = """
    here()
    def step():
        open(f"{DIR}/steps", "a").write("one more\\n")
        try:
            print("one more", flush=True)
        except OSError:
            pass
    use("job", step)
"""

@scene(
    "in use", name="nohup_without_a_log", twin="orphans/job_of_a_killed_shell", line="nohup BIN/job > /dev/null &",
    about="`nohup job > /dev/null &` in the shell tool of a server; the session ends cleanly, the job works on.",
)
@scene(
    "in use", name="nohup_alone", twin="orphans/job_of_a_killed_shell", line="nohup BIN/job &",
    about="`nohup job &` in the shell tool of a server, which reads what it prints; the session ends cleanly, the job works on.",
)
@scene(
    "in use", name="dump_in_the_background", twin="orphans/job_of_a_killed_shell", line="BIN/job | gzip > dump.gz &",
    about="`job | gzip > dump.gz &` in the shell tool of a server; the session ends cleanly, the job works on.",
)
@scene(
    "in use", name="list_in_the_background", twin="orphans/job_of_a_killed_shell", line="cd . && BIN/job > job.log 2>&1 &", leak="timer",
    about="`cd .. && job > log 2>&1 &` in the shell tool of a server: a shell waits for the job; the agent is killed, the server leaks.",
)
@scene(
    "in use", name="job_beside_what_took_too_long", twin="orphans/job_of_a_killed_shell", line="BIN/job & sleep 7200", kill="'--kill'",
    about="`job & sleep 7200` in the shell tool of a server, which kills the shell at its time limit; the session ends cleanly, the job works on.",
)
@scene(
    "in use", name="job_with_a_handler_beside_what_took_too_long", twin="orphans/job_of_a_killed_shell", line="BIN/job & sleep 7200", leak="timer", kill="'--kill'", handles=True,
    about="The same with a job that has a handler for SIGINT, as celery, vite and node have, below a server that leaks; the agent is killed.",
)
@scene(
    "in use", name="job_below_a_nohup_host", twin="orphans/job_of_a_killed_shell", line="BIN/job & sleep 7200", leak="timer", kill="'--kill'", nohup=True,
    about="The same below an agent that was started by `nohup claude &`, so that all ignore SIGINT and SIGHUP.",
)
@scene(
    "in use", name="job_forked_into_a_session", twin="orphans/job_of_a_killed_shell", line="setsid -f BIN/job; true", leak="timer",
    about="`setsid -f job` in the shell tool of a server that leaks and reads what it prints; the agent is killed, the job works on.",
)
@scene(
    "in use", name="job_of_what_became_the_tool", twin="orphans/job_of_a_killed_shell", line="BIN/job < /dev/null & exec sleep 7200", leak="timer", kill="", restart=True,
    about="`job & exec tool` in the shell tool of a server that leaks, while orphand is restarted again and again; the agent is killed, the job works on.",
)
@scene(
    "orphan", name="orphans/job_of_a_killed_shell", twin="let_go/dump_in_the_background", line="BIN/job; true", leak="timer", kill="'--kill'",
    about="A server killed the shell of a tool that took too long, and leaks; the agent is killed: the tool, which hangs on its pipes, is ended, too.",
)
def left_by_a_shell(stage, line, leak="exit", kill="'--waits', '1'", handles=False, nohup=False):
    stays = "&" in line or "setsid" in line
    job = JOB if stays else "here()\nos.read(0, 1)\nrest()\n"
    stage.part("job", f"signal.signal(signal.SIGINT, lambda *_: None)\n{textwrap.dedent(job)}" if handles else job)
    stage.part("mcp-server-shell", SHELL_TOOL)
    line = line.replace("BIN", f"{stage.dir}/bin")
    program = f"""
        for number in (signal.SIGINT, signal.SIGHUP) if {nohup} else ():
            signal.signal(number, signal.SIG_IGN)
        server = start("mcp-server-shell", "--line", {line!r}, "--leak", {leak!r}, {kill})
        present("mcp-server-shell")
        here()
        wait_for("end")
        server.let_go()
        server.child.wait()
    """
    agent = stage.run(stage.part("claude", program), cwd=stage.dir)
    stage.who("claude")
    job = stage.who("job")
    if not stays:
        return stage.killed(agent, orphans=["mcp-server-shell", job])
    stage.beats("job")
    if leak == "exit":
        stage.go("end")
        return stage.ended(agent, in_use=[job])
    return stage.killed(agent, in_use=[job], may_end=["mcp-server-shell"])

@scene("in use", twin="orphans/job_of_a_killed_shell")
def dump_of_a_server_in_bash(stage):
    """A server that is a bash script runs `job | gzip > dump.gz &` below a `$( )`; the session ends cleanly, the job works on."""
    stage.part("job", JOB)
    tool = f"{stage.dir}/bin/job 2>&1 | gzip > {stage.dir}/dump.gz 2> /dev/null &"
    stage.put("mcp-server-shell", f"#!/bin/bash\nresult=$({tool})\nread -r line\n")
    program = """
        server = start("mcp-server-shell", asked=False)
        present("job")
        here()
        wait_for("end")
        server.let_go()
        server.child.wait()
    """
    agent = stage.run(stage.part("claude", program), cwd=stage.dir)
    stage.who("claude")
    job = stage.who("job")
    stage.beats("job")
    stage.go("end")
    return stage.ended(agent, in_use=[job])

@scene("in use", twin="orphans/driver")
def browser_of_a_person(stage):
    """A server opens a person's browser and reads what it prints, as tools do: it has a window; the session ends cleanly, the person reads on."""
    display(stage)
    stage.part("firefox", """
        window = socket.socket(socket.AF_UNIX)
        window.connect(f"{DIR}/.X11-unix/X7")
        here()
        use("firefox", lambda: open(f"{DIR}/pages", "a").write("page\\n"))
    """)
    stage.part("mcp-server-shell", """
        line = os.read(0, 65536)
        subprocess.Popen([f"{BIN}/firefox", "http://localhost:3000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        present("firefox")
        answer(line)
        serve("exit")
    """)
    agent = stage.closes("mcp-server-shell", "firefox")
    stage.beats("firefox")
    return stage.ended(agent, in_use=["firefox"])

@scene("in use", twin="orphans/tool_with_a_log")
def worker_of_a_tool(stage):
    """A tool of a leaking server, no shell, starts a worker with a log and ends; the worker inherits a pipe of the server; the agent is killed."""
    stage.part("job", "here()\nuse('job', lambda: open(f'{DIR}/steps', 'a').write('one more\\n'))\n")
    stage.part("start-job", 'log = open(f"{DIR}/job.log", "w")\nsubprocess.Popen([f"{BIN}/job"], stdout=log, stderr=log)\n')
    stage.part("mcp-server-shell", """
        tool = subprocess.Popen([f"{BIN}/start-job"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        tool.wait()
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    return stage.killed(agent, in_use=["job"], may_end=["mcp-server-shell"])

@scene("in use", twin="orphans/job_of_a_killed_shell")
def job_of_a_profile(stage):
    """A log-in shell starts a person's job by its profile, and then the server (`bash -lc server`); the session ends cleanly."""
    stage.part("sync", "here()\nuse('sync', lambda: open(f'{DIR}/synced', 'a').write('file\\n'))\n")
    stage.write(".profile", f"test -e running || {stage.dir}/bin/sync > /dev/null 2>&1 &\n")
    stage.server(leak="exit")
    agent = stage.run(stage.part("claude", """
        server = start("/bin/bash", "-lc", f"{BIN}/mcp-server-fake", env={**os.environ, "HOME": DIR})
        present("sync")
        server.let_go()
        server.child.wait()
    """), cwd=stage.dir)
    stage.beats("sync")
    return stage.ended(agent, in_use=["sync"])
