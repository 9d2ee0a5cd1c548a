"""An MCP server for `mcp run service.py --transport streamable-http`: an HTTP service on the port $PORT."""
import functools
import os

from mcp.server.mcpserver import MCPServer

server = MCPServer("service")
server.run = functools.partial(server.run, port=int(os.environ["PORT"]))
