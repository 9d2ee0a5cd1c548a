from jobs import JOB, works_on
from situation import scene

@scene("in use", twin="orphans/pid_namespace", restart=True)
def job_adopted_before_a_restart(stage):
    """A server that is the first process of a PID namespace adopted its shell's `job > log 2>&1 &`, and waits for any child; the agent is killed."""
    stage.part("job", JOB)
    stage.part("mcp-server-shell", """
        subprocess.run(["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log 2>&1 &"], stdin=subprocess.DEVNULL)
        in_background(os.wait)
        present("job")
        serve()
    """)
    agent = stage.rests("claude", 'start("/usr/bin/unshare", "--pid", "--fork", BIN + "/mcp-server-shell")')
    stage.beats("job")
    stage.grows("job.log")
    agent.kill()
    return stage.truth(in_use=[*stage.find("job"), *stage.find("mcp-server-shell")])

@scene(
    "in use", name="job_with_an_idle_input", twin="orphans/driver",
    about="A server started a job in a session of its own with a log for its output, and keeps a pipe to its input; the agent is killed, the job works on.",
    how="stdin=subprocess.PIPE, start_new_session=True", waits="",
)
@scene(
    "in use", name="job_with_an_idle_input_in_the_session", twin="orphans/helper_below_a_server",
    about="A server started a job in its own session with a log for its output, and keeps a pipe to its input; the agent is killed, the job works on.",
    how="stdin=subprocess.PIPE", waits="",
)
@scene(
    "in use", name="job_of_a_go_server", twin="orphans/tool_with_a_log",
    about="A server in Go, whose first thread happens to wait for a job with a log, while another one serves; the agent is killed, the job works on.",
    how="stdin=subprocess.DEVNULL", waits="signal.signal(signal.SIGURG, lambda *_: None); in_background(serve); job.wait()",
)
@scene(
    "in use", twin="orphans/tool_with_a_log",
    how="stdin=subprocess.DEVNULL", waits="in_background(job.wait)",
)
def job_that_a_thread_waits_for(stage, how, waits):
    """A server started a job with a log for its output, and a thread that sees it end, as asyncio has; the agent is killed, the job works on."""
    stage.part("job", JOB)
    stage.part("mcp-server-shell", f"""
        job = subprocess.Popen([f"{{BIN}}/job"], stdout=open(f"{{DIR}}/job.log", "w"), stderr=subprocess.STDOUT, {how})
        {waits}
        present("job")
        serve()
    """)
    return works_on(stage, may_end=["mcp-server-shell"])
