import os
import signal
from situation import scene

# It works, and tells each step on its output.
JOB = "here()\nuse('job', lambda: print('step', flush=True))\n"

def works_on(stage, **truth):
    """The agent of the server is killed, and the job goes on writing its log."""
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    stage.grows("job.log")
    return stage.killed(agent, in_use=["job"], **truth)

@scene("mixed", twin="orphans/driver")
def credential_cache(stage):
    """A server's git keeps a password in git's own cache, in the server's session; the agent is killed, a person's git asks the cache."""
    os.mkdir(f"{stage.dir}/cache", 0o700)
    stage.part("mcp-server-shell", """
        secret = "protocol=https\\nhost=example.org\\nusername=u\\npassword=p\\n\\n"
        cache = ["git", "credential-cache", "--socket", f"{DIR}/cache/socket"]
        subprocess.run([*cache, "--timeout", "900", "store"], input=secret.encode(), stdout=subprocess.DEVNULL)
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    [cache] = stage.find("credential-cache--daemon")
    stage.adopted(cache)
    stage.part("person", """
        def ask():
            cache = ["git", "credential-cache", "--socket", f"{DIR}/cache/socket", "get"]
            asked = b"protocol=https\\nhost=example.org\\n\\n"
            if b"password=p" not in subprocess.run(cache, input=asked, stdout=subprocess.PIPE).stdout:
                raise EOFError("the password is gone")
        here()
        on_call("person", ask)
    """)
    person = stage.run(f"{stage.dir}/bin/person")
    agent.kill()
    stage.when_called("person", person)
    return stage.truth(in_use=[cache], orphans=["mcp-server-shell"])

@scene("mixed", twin="orphans/tied_browser")
def double_forked_job(stage):
    """A leaking server had double-forked a job into a session of its own; the agent is killed: the job works on."""
    stage.part("job", JOB)
    stage.part("mcp-server-ops", """
        def middle():
            os.setsid()
            start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), stderr=subprocess.DEVNULL)
        os.waitpid(copy(middle), 0)
        serve()
    """)
    agent = stage.agent("mcp-server-ops")
    stage.beats("job")
    return stage.killed(agent, orphans=["mcp-server-ops"], in_use=["job"])

@scene("in use", twin="orphans/waits_for_its_tool")
def hook_job(stage):
    """A git server commits; the hook starts a background job in a session of its own; the session ends cleanly."""
    stage.part("job", JOB)
    stage.put("post-commit", """
        #!/bin/sh
        cd "$ORPHAND_SITUATION_DIR" && setsid bin/job > job.log 2>&1 < /dev/null &
    """)
    stage.part("git", "subprocess.run([f'{BIN}/post-commit'])\n")
    stage.part("mcp-server-git", """
        answer(os.read(0, 65536))
        subprocess.run([f"{BIN}/git", "commit"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        present("job")
        here()
        read_on()
    """)
    agent = stage.closes("mcp-server-git", "mcp-server-git")
    stage.beats("job")
    stage.grows("job.log")
    return stage.ended(agent, in_use=["job"])

@scene("in use", twin="orphans/waits_for_its_tool")
def hook_job_crash(stage):
    """A git server's hook started a background job in a session of its own; the agent is killed, the server ends a moment later by itself."""
    stage.part("job", JOB)
    stage.part("mcp-server-git", """
        shell(f"setsid {BIN}/job < /dev/null > {DIR}/job.log 2>&1 &")
        present("job")
        here()
        serve("exit")
    """)
    agent = stage.rests("claude", 'start("mcp-server-git", wire="socket")')
    server = stage.who("mcp-server-git")
    agent.kill()
    stage.beats("job")
    return stage.ended(server, in_use=["job"])

@scene(
    "in use", name="job_on_its_wires", twin="orphans/tools_of_an_ended_server", streams="",
    about="A server started a job on its own wires, in a session of its own; the session ends cleanly, the server exits, the job works on.",
)
@scene("in use", twin="orphans/waits_for_its_tool")
def job_that_was_read(stage, streams="stdin=subprocess.DEVNULL, stdout=subprocess.PIPE"):
    """A server started a job in a session of its own and read what it printed; the session ends cleanly, the server exits, the job works on."""
    stage.part("job", "here()\nuse('job', lambda: os.stat(DIR))\n")
    stage.part("mcp-server-ops", f"""
        child = subprocess.Popen([f"{{BIN}}/job"], start_new_session=True, {streams})
        serve("exit")
    """)
    agent = stage.closes("mcp-server-ops", "job")
    stage.beats("job")
    return stage.ended(agent, in_use=["job"])

@scene("mixed")
def own_wires(stage):
    """A let-go job has a pipeline of its own, with pipes that the server never had; the server leaks, the agent is killed."""
    stage.part("job", JOB)
    stage.part("mcp-server-shell", """
        shell(f"{BIN}/job 2>/dev/null | sed -u s/step/done/ > {DIR}/results 2>/dev/null &")
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    stage.grows("results")
    agent.kill()
    return stage.truth(orphans=["mcp-server-shell"], in_use=["job", *stage.find("sed")])

@scene("in use")
def server_crashed(stage):
    """The server crashes first and leaves a job in a session of its own; then its agent is killed."""
    stage.part("job", JOB)
    stage.part("mcp-server-ops", """
        start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), start_new_session=True)
        serve()
    """)
    agent = stage.agent("mcp-server-ops")
    stage.beats("job")
    stage.who("mcp-server-ops").kill(signal.SIGSEGV)
    return stage.killed(agent, in_use=["job"])

@scene(
    "mixed", name="inherits_the_input",
    about="A leaking server started a job in a session of its own, with a log for output, that inherits standard input; the agent is killed.",
    starts="""subprocess.Popen([f"{BIN}/job"], stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT, start_new_session=True)""",
)
@scene(
    "mixed", name="nohup_job",
    about="A leaking server's shell tool ran `nohup job > log &`, without a session of its own; the agent is killed, the job works on.",
    starts="""subprocess.run(["/bin/sh", "-c", f"nohup {BIN}/job > {DIR}/job.log 2>&1 &"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)""",
)
@scene(
    "mixed", name="nohup_job_that_inherits_the_input",
    about="A leaking server ran `nohup job` itself, with a log for output and its own standard input; the agent is killed, the job works on.",
    starts="""subprocess.Popen(["nohup", f"{BIN}/job"], stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT)""",
)
@scene(
    "mixed", name="shell_pipeline_of_a_lasting_shell", twin="orphans/shell_job_that_is_waited_for",
    about="A leaking server keeps one shell for all commands and ran `job 2>&1 | tee log &` there; the agent is killed, the job works on.",
    commands="{BIN}/job 2>&1 < /dev/null | tee {DIR}/job.log > /dev/null &",
)
@scene(
    "in use", name="shell_pipeline_with_the_output_of_the_shell", twin="orphans/shell_job_that_is_waited_for", stays=True,
    about="The same as people type it: tee writes to the shell's own output, too, which the server reads.",
    commands="{BIN}/job 2>&1 < /dev/null | tee {DIR}/job.log &",
)
@scene(
    "mixed", name="shell_job_beside_another", twin="orphans/shell_job_that_is_waited_for",
    about="A leaking server keeps one shell for all commands, and ran `job > log 2>&1 &` and `tail -f log` there; the agent is killed, the job works on.",
    commands="{BIN}/job > {DIR}/job.log 2>&1 < /dev/null &\\ntail -f {DIR}/job.log",
)
@scene(
    "mixed", name="shell_job_of_a_lasting_shell", twin="orphans/shell_job_that_is_waited_for",
    about="A leaking server keeps one shell for all commands and ran `job > log 2>&1 &` there; the agent is killed, the job works on.",
    commands="{BIN}/job > {DIR}/job.log 2>&1 < /dev/null &",
)
@scene(
    "mixed", name="shell_job_of_a_reaper", twin="orphans/shell_job_that_is_waited_for",
    about="The same below a server that adopts what is left below it (prctl(2), PR_SET_CHILD_SUBREAPER).",
    starts="""libc.prctl(36, 1, 0, 0, 0)\nsubprocess.run(["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log 2>&1 &"], stdin=subprocess.DEVNULL)""",
)
@scene(
    "mixed", name="job_with_a_log", twin="orphans/tool_with_a_log",
    about="A leaking server started a job itself, with a log for its output, and waits for none; the agent is killed, the job works on.",
    starts="""subprocess.Popen([f"{BIN}/job"], stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT)""",
)
@scene(
    "mixed", name="job_beside_a_tool_that_hangs", twin="orphans/tool_with_a_log",
    about="A leaking server started a job itself, with a log, and waits for another child, which hangs; the agent is killed, the job works on.",
    starts="""subprocess.Popen([f"{BIN}/job"], stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT)
in_background(serve)
subprocess.run(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=sys.stderr)""",
)
@scene(
    "mixed", name="job_of_a_helper_with_a_log", twin="orphans/tool_with_a_log",
    about="A leaking server has a helper with a log, which started a job with another log; the agent is killed, the job works on.",
    starts="""subprocess.Popen([f"{BIN}/tool"], stdin=subprocess.PIPE, stdout=open(f"{DIR}/tool.log", "w"))""",
    tool="""subprocess.Popen([f"{BIN}/job"], stdin=subprocess.DEVNULL, stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT)
os.read(0, 1)""",
)
@scene(
    "mixed", name="job_of_a_tool_that_inherited_the_input", twin="orphans/tool_with_a_log",
    about="A leaking server ran a tool, which inherited its input, that started a job with a pipe and a log; the agent is killed, the job works on.",
    starts="""subprocess.run([f"{BIN}/tool"], capture_output=True)""",
    tool="""subprocess.Popen([f"{BIN}/job"], stdin=subprocess.PIPE, stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT, start_new_session=True)""",
)
@scene(
    "mixed", name="pipeline_of_its_own", twin="orphans/tool_with_a_log",
    about="A leaking server made a pipeline `job | cat > log` itself, and has no end of its pipe; the agent is killed, the job works on.",
    starts="""job = subprocess.Popen([f"{BIN}/job"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
subprocess.Popen(["cat"], stdin=job.stdout, stdout=open(f"{DIR}/job.log", "w"))
job.stdout.close()""",
)
@scene(
    "mixed", name="shell_pipeline_of_a_shell_on_its_wires", twin="orphans/shell_job_that_is_waited_for",
    about="A leaking server ran `job 2>&1 | tee log &` in a shell that inherited its wires; the agent is killed, the job works on.",
    starts="""subprocess.run(["/bin/bash", "-c", f"{BIN}/job 2>&1 | tee {DIR}/job.log > /dev/null 2>&1 &"])""",
)
@scene(
    "mixed", name="job_of_a_shell_that_nobody_waits_for", twin="orphans/tool_with_a_log",
    about="A leaking server ran `cd x && job > log` in a shell (Popen), for which it does not wait; the agent is killed, the job works on.",
    starts="""subprocess.Popen(f"cd {DIR} && {BIN}/job > {DIR}/job.log 2>&1", shell=True)""",
)
@scene(
    "mixed", twin="orphans/shell_job_that_is_waited_for",
    starts="""subprocess.run(["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log 2>&1 &"], stdin=subprocess.DEVNULL)""",
)
def shell_job(stage, starts=None, commands=None, tool="", stays=False):
    """A leaking server's shell tool ran `job > log 2>&1 &`, in the server's session; the agent is killed, the job works on."""
    starts = starts or f"""shell = subprocess.Popen("/bin/bash", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
shell.stdin.write(f"{commands}\\n".encode())
shell.stdin.flush()"""
    stage.part("job", JOB)
    stage.part("tool", f"{tool}\nos._exit(0)\n")
    stage.part("mcp-server-shell", f"{starts}\npresent('job')\nserve()\n")
    return works_on(stage, **{"may_end" if stays else "orphans": ["mcp-server-shell"]})

@scene(
    "mixed", name="nohup_job_that_takes_it_back", twin="orphans/helper_below_a_server", nohup=["nohup"], streams="stdin=null",
    about="A leaking server ran `nohup job` itself, on its own output; the job takes SIGHUP back, as node does; the agent is killed, the job works on.",
)
@scene("mixed", twin="orphans/helper_below_a_server")
def job_without_output(stage, nohup=(), streams="stdin=null, stdout=null, stderr=null"):
    """A leaking server started a job itself, without any output, as a download is, and waits for none; the agent is killed, the job works on."""
    stage.part("job", "signal.signal(signal.SIGHUP, signal.SIG_DFL)\nhere()\nuse('job', lambda: tell('part', str(time.time())))\n")
    stage.part("mcp-server-shell", f"""
        null = subprocess.DEVNULL
        job = subprocess.Popen([*{nohup!r}, f"{{BIN}}/job"], {streams})
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.beats("job")
    return stage.killed(agent, in_use=["job"], orphans=["mcp-server-shell"])

@scene("in use", twin="orphans/shell_job_that_is_waited_for")
def shell_job_with_a_log_of_errors(stage):
    """A server's shell tool ran `job > log &`, without `2>&1`: standard error is a pipe of the server's; the agent is killed, the job works on."""
    stage.part("job", JOB)
    stage.part("mcp-server-shell", """
        line = ["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log & exit 0"]
        shell = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        shell.wait()
        present("job")
        serve()
    """)
    return works_on(stage, may_end=["mcp-server-shell"])

@scene("mixed", twin="orphans/driver")
def shell_service(stage):
    """A leaking server ran `web-server &` in a shell, which hands the server's output on; the agent is killed, a person visits the site later."""
    stage.part("web-server", "in_background(answer_calls, listen('tcp'))\nhere()\nrest_in_a_thread()\n")
    stage.part("mcp-server-shell", """
        subprocess.run(["/bin/sh", "-c", f"{BIN}/web-server &"])
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'web-server'))\n")
    return stage.killed(agent, in_use=["web-server"], orphans=["mcp-server-shell"])

@scene("mixed", twin="orphans/shell_job_that_is_waited_for")
def shell_loop(stage):
    """The same with a loop of the shell's own: a forked shell that inherits the wires and then turns to its log."""
    stage.part("step", "here()\nprint('step')\n")
    stage.part("mcp-server-shell", """
        subprocess.run(["/bin/bash", "-c", f"(while :; do {BIN}/step; sleep 0.2; done) > {DIR}/loop.log 2>&1 & disown"])
        present("step")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.grows("loop.log")
    loop = [p for p in stage.find("bash") if "while" in " ".join(p.argv())]
    return stage.killed(agent, in_use=loop, orphans=["mcp-server-shell"])

@scene("in use")
def ssh_agent(stage):
    """A server started ssh-agent, which makes itself a daemon; the session ends cleanly, the keys are in use."""
    stage.part("ssh-agent", """
        listener = listen("unix")
        def daemon():
            os.setsid()
            goes_into_the_background()
            here()
            answer_calls(listener)
        copy(daemon)
    """)
    stage.part("mcp-server-git", """
        subprocess.run([f"{BIN}/ssh-agent"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        present("ssh-agent")
        serve("exit")
    """)
    agent = stage.closes("mcp-server-git")
    stage.uses("ssh", "use('ssh', lambda: call('unix', 'ssh-agent'))\n")
    return stage.ended(agent, in_use=["ssh-agent"])

@scene("in use")
def supervisor(stage):
    """A server started a supervisor that makes itself a daemon and keeps a service; the session ends cleanly."""
    stage.part("service", "here()\nuse('service', lambda: print('served', flush=True))\n")
    stage.part("keeper", """
        def daemon():
            os.setsid()
            here()
            while True:
                start("service", wire=None, stdout=open(f"{DIR}/service.log", "a")).wait()
        copy(lambda: copy(daemon))
        os._exit(0)
    """)
    stage.part("mcp-server-ops", """
        subprocess.run([f"{BIN}/keeper"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        present("service")
        serve("exit")
    """)
    agent = stage.closes("mcp-server-ops")
    stage.beats("service")
    return stage.ended(agent, in_use=["keeper", "service"])

LEADS = """
        import fcntl, termios
        terminal = os.open(open(f"{DIR}/terminal").read(), os.O_RDWR | os.O_NOCTTY)
        def lead():
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        start("mcp-server-shell", preexec_fn=lead)
"""

@scene("in use", twin="orphans/leads_a_terminal")
@scene(
    "orphan", name="orphans/leads_a_terminal", twin="let_go/in_the_terminal_that_it_leads", job=False,
    about="A leaking server leads the session of a terminal that a person has, as below `sudo`; the agent is killed.",
)
def in_the_terminal_that_it_leads(stage, job=True):
    """A leaking server leads the session of a terminal, as below `sudo`, and let a job go there, on which the kernel would hang up; the agent is killed."""
    stage.part("job", JOB)
    runs = 'shell(f"{BIN}/job < /dev/null > {DIR}/job.log 2>&1 &", start_new_session=False)\npresent("job")\n'
    stage.part("mcp-server-shell", f"{runs if job else ''}serve()\n")
    stage.rests("terminal", """
        import pty
        master, line = pty.openpty()
        tell("terminal", os.ttyname(line))
    """)
    agent = stage.rests("claude", LEADS)
    if job:
        stage.beats("job")
        return stage.killed(agent, in_use=["job", "mcp-server-shell"])
    return stage.killed(agent, orphans=["mcp-server-shell"])

@scene(
    "mixed", name="job_that_reports_to_the_kernel", twin="orphans/waits_for_its_tool", output='open("/dev/full", "wb", buffering=0)',
    about="A leaking server started a job that writes to a device, and does not wait for it; the agent is killed.",
)
@scene(
    "mixed", name="job_that_reports_to_a_journal_of_its_own", twin="orphans/waits_for_its_tool", output='dial("unix", "journal")',
    about="A leaking server dialled the journal for a job (`systemd.journal.stream()`), and does not wait for it; the agent is killed.",
)
@scene("mixed", twin="orphans/waits_for_its_tool", output="sys.stderr")
def job_that_reports_to_the_journal(stage, output):
    """A server whose errors go to a connection, as in a unit of systemd, started a job that writes there and does not wait for it; the agent is killed."""
    stage.run(stage.part("journal", """
        sock = listen("unix")
        here()
        def read(connection):
            while connection.recv(65536):
                pass
        while True:
            in_background(read, sock.accept()[0])
    """))
    stage.part("train", "here()\nuse('train', lambda: tell('step', str(time.time())))\n")
    stage.part("mcp-server-train", f"""
        output = {output}
        subprocess.Popen([f"{{BIN}}/train"], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        del output
        present("train")
        serve()
    """)
    agent = stage.rests("claude", "present('journal')\nstart('mcp-server-train', stderr=dial('unix', 'journal'))\n")
    stage.beats("train")
    return stage.killed(agent, in_use=["train"], orphans=["mcp-server-train"])
