#!/usr/bin/python3 -B
"""the job of a post-commit hook of mcp-server-git, whose session had ended cleanly before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from git_hook_job import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["python2"]
TWIN = "published/before_git_hook_hangs"


situation.main()
