"""A job of cron, `timeout 600 server`: cron has closed its input and reads its output until the end, for the mail."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    cron = stage.run(stage.part("cron", """
        job = start("/bin/sh", "-c", f"timeout 600 {BIN}/mcp-server-batch; true", start_new_session=True)
        os.close(job.w)
        here()
        use("cron", lambda: os.read(job.r, 1000) or 1 / 0)
    """))
    stage.beats("cron")
    return stage.truth(in_use=[cron, stage.who("mcp-server-batch"), *stage.find("timeout")])
