"""mcp-server-git committed, a post-commit hook started a job in a session of its own; the session ended cleanly"""
import situation
import software

TRUTH = "in use"
NEEDS = ["python2"]
TWIN = "published/git_hook_hangs"


def build(stage):
    files = software.repository(stage, "post-commit", f"""
        setsid sh -c 'echo $$ > {stage.dir}/job.pid; while sleep 0.2; do echo built >> {stage.dir}/job.log; done' < /dev/null > /dev/null 2>&1 &
    """)
    call = ["git_commit", {"repo_path": files, "message": "one"}]
    host = software.Host(stage, "python2", software.venv_bin("PYTHON2", "mcp-server-git"), "--repository", files, call=call)
    stage.grows("job.log")
    with open(f"{stage.dir}/job.pid") as f:
        job = situation.Process(f.read())
    server = host.close()
    software.within("the server ends with its session", lambda: not any(p.alive() for p in server))
    return stage.truth(in_use=[job])
