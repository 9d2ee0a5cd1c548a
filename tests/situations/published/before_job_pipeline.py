"""`nohup sh -c 'echo {} | mcp-server-x | sed .. > results' &` of Claude Code, which had ended before the daemon came"""
from job_pipeline import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "claude"]
