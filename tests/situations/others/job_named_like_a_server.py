"""A scheduler that no rule knows runs a job called mcp-backup on pipes and is killed; the job works on."""

TRUTH = "in use"
TWIN = "orphans/unknown_host_confirmed"


def build(stage):
    stage.part("mcp-backup", """
        here()
        while True:
            with open(f"{DIR}/saved", "a") as f:
                f.write("one more")
            time.sleep(TICK)
    """)
    scheduler = stage.run(stage.part("scheduler.py", """
        job = start("mcp-backup", asked=False)
        os.write(job.w, b"all tables\\n")
        here()
        rest()
    """))
    stage.who("scheduler.py")
    stage.grows("saved")
    scheduler.kill()
    return stage.truth(in_use=[stage.who("mcp-backup")])
