#!/usr/bin/python3 -B
"""`nohup sh -c 'echo {} | mcp-server-x | sed .. > results' &` of Claude Code, which had ended before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from job_pipeline import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "claude"]


situation.main()
