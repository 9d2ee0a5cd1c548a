#!/usr/bin/python3 -B
"""mcp-remote waits for somebody to sign in (OAuth); its host was killed before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from remote_waits import build

COST = "nobody saw who started it, and it listens: it may be a service that somebody will call"
TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm"]
TWIN = "published/before_remote_browser"


situation.main()
