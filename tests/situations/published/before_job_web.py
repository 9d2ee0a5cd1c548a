#!/usr/bin/python3 -B
"""a web service that Claude Code's Bash tool started with a pipe as stdin; claude had ended before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from job_web import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "claude"]


situation.main()
