"""mcp-server-git commits and waits for a hook that never ends; its host is killed"""
import software

TRUTH = "orphan"
NEEDS = ["python2"]
TWIN = "published/git_hook_job"


def build(stage):
    files = software.repository(stage, "pre-commit", f"""
        echo $$ > {stage.dir}/hook.pid
        exec tail -f /dev/null
    """)
    how = {"then": ["git_commit", {"repo_path": files, "message": "one"}]}
    host = software.Host(stage, "python2", software.venv_bin("PYTHON2", "mcp-server-git"), "--repository", files, **how)
    software.started_as(stage, "tail", "-f", "null")
    tree = software.below(host.process)
    host.kill()
    return stage.truth(orphans=tree)
