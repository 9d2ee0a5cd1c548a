#!/usr/bin/python3 -B
"""a person's browser that mcp-remote opened to sign in; the session had ended cleanly before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from remote_browser import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "python2", "chromium"]
TWIN = "published/before_remote_waits"


situation.main()
