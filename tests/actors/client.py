"""A home-made MCP host on the Python SDK (1 or 2): starts one server, plays a plan with it, waits to be killed.

    client.py PLAN COMMAND..    PLAN: {"call": [TOOL, ARGS], "busy": true, "pool": N, "beat": true}

Prints one JSON line when the plan is done: the names of the server's tools, and the pids of its pool's workers.
`busy` leaves the call pending, `pool` forks N workers that inherit the wire, `beat` pings the server over and over
and counts the answers on further lines, until one fails.
"""
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def tell(**facts):
    print(json.dumps(facts), flush=True)


async def main():
    plan, command = json.loads(sys.argv[1]), sys.argv[2:]
    server = StdioServerParameters(command=command[0], args=command[1:], env=plan.get("env"))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        async with anyio.create_task_group() as tasks:
            if "call" in plan:
                name, args = plan["call"]
                if plan.get("busy"):
                    tasks.start_soon(session.call_tool, name, args)
                    # The server has read the call when it answers a later one.
                    await session.list_tools()
                else:
                    await session.call_tool(name, args)
            workers = []
            if "pool" in plan:
                # The default way of Linux before Python 3.14.
                pool = ProcessPoolExecutor(plan["pool"], mp_context=multiprocessing.get_context("fork"))
                pool.submit(os.getpid).result()
                workers = sorted(pool._processes)
            tell(ready=tools, workers=workers)
            for beat in range(10**9) if plan.get("beat") else ():
                sys.stdin.readline()
                await session.list_tools()
                tell(beat=beat)
            await anyio.sleep_forever()


anyio.run(main)
