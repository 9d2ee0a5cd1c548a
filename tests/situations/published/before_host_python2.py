"""server-everything and mcp-server-time below living hosts on the Python SDK 2, older than the daemon"""
from host_python2 import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_everything_python2"
