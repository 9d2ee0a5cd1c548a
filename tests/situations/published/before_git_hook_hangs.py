"""mcp-server-git (its wire is not on fd 0) waits for a hook that never ends; its host was killed before the daemon came"""
from git_hook_hangs import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["python2"]
TWIN = "published/before_git_hook_job"
