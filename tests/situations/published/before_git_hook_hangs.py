#!/usr/bin/python3 -B
"""mcp-server-git (its wire is not on fd 0) waits for a hook that never ends; its host was killed before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from git_hook_hangs import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["python2"]
TWIN = "published/before_git_hook_job"


situation.main()
