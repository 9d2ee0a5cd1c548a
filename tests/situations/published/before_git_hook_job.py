"""the job of a post-commit hook of mcp-server-git, whose session had ended cleanly before the daemon came"""
from git_hook_job import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["python2"]
TWIN = "published/before_git_hook_hangs"
