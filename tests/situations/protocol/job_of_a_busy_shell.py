"""A shell runs others on its wires; what its killed agent wrote to it is no message of the protocol."""

TRUTH = "in use"
TWIN = "protocol/below_a_busy_shell"


def build(stage):
    stage.part("job.py", """
        here()
        while True:
            with open(f"{DIR}/saved", "a") as f:
                f.write("one more")
            time.sleep(TICK)
    """)
    stage.part("claude", """
        line = f"mkdir -p {DIR}/cache; sleep 0.1; rm -rf {DIR}/cache; {BIN}/job.py; true"
        job = start("/bin/bash", "-c", line, wire="socket", asked=False)
        os.write(job.w, b"all tables\\n")
        here()
        rest()
    """)
    agent = stage.run(f"{stage.dir}/bin/claude")
    stage.who("claude")
    stage.grows("saved")
    agent.kill()
    return stage.truth(in_use=[stage.who("job.py")])
