"""mcp-remote waits for somebody to sign in (OAuth); its host was killed before the daemon came"""
from remote_waits import build

COST = "nobody saw who started it, and it listens: it may be a service that somebody will call"
TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm"]
TWIN = "published/before_remote_browser"
