"""playwright's server, blocked, with its chromium; its host was killed before the daemon came"""
from playwright_blocked import build

COST = "nobody saw who started it, and it listens: it may be a service that somebody will call"
TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm", "python2", "chromium"]
