"""a web service that Claude Code's Bash tool started with a pipe as stdin; claude had ended before the daemon came"""
from job_web import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "claude"]
