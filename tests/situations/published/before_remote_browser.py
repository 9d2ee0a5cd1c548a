"""a person's browser that mcp-remote opened to sign in; the session had ended cleanly before the daemon came"""
from remote_browser import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "python2", "chromium"]
TWIN = "published/before_remote_waits"
