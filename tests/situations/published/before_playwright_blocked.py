#!/usr/bin/python3 -B
"""playwright's server, blocked, with its chromium; its host was killed before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from playwright_blocked import build

COST = "nobody saw who started it, and it listens: it may be a service that somebody will call"
TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm", "python2", "chromium"]


situation.main()
