#!/usr/bin/python3 -B
"""server-everything and mcp-server-time below living hosts on the Python SDK 2, older than the daemon"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from host_python2 import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_everything_python2"


situation.main()
