"""A home-made MCP host on the Python SDK (1 or 2): starts one server, plays a plan with it, waits to be killed.

    client.py PLAN COMMAND..

PLAN is JSON. Prints one JSON line when it is done: the names of the server's tools, and the pids of its pool's workers.

    mute    true: the server's first answer is not waited for
    call    [TOOL, ARGS]
    busy    true: that call is left pending, when the server has read it
    then    [TOOL, ARGS]: one more call, left pending: it blocks the server
    pool    N: forks N workers that inherit the wire
    beat    true: asks the server once for each line on stdin, and counts the answers on further lines, until one fails
    use     [FOLDER, NAME]: asks the server over and over, counts the answers in FOLDER/beats/NAME, tells a failure in FOLDER/broken/NAME
    until   FILE: ends the session properly, and itself, as soon as this file exists
    env     the server's environment
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


def write(path, text):
    """A file that is whole at once."""
    with open(f"{path}.new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(f"{path}.new", path)


async def use(session, folder, name):
    """Ask the server four times a second until it fails."""
    count = 0
    while True:
        try:
            with anyio.fail_after(8):
                await session.list_tools()
        except Exception as error:
            write(f"{folder}/broken/{name}", repr(error))
            return
        count += 1
        write(f"{folder}/beats/{name}", str(count))
        await anyio.sleep(0.25)


async def main():
    plan, command = json.loads(sys.argv[1]), sys.argv[2:]
    server = StdioServerParameters(command=command[0], args=command[1:], env=plan.get("env"))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        async with anyio.create_task_group() as tasks:
            if plan.get("mute"):
                tasks.start_soon(session.initialize)
                tools = []
            else:
                await session.initialize()
                tools = [tool.name for tool in (await session.list_tools()).tools]
            if "call" in plan:
                name, args = plan["call"]
                if plan.get("busy"):
                    tasks.start_soon(session.call_tool, name, args)
                    # The server has read the call when it answers a later one.
                    await session.list_tools()
                else:
                    await session.call_tool(name, args)
            if "then" in plan:
                tasks.start_soon(session.call_tool, *plan["then"])
            workers = []
            if "pool" in plan:
                # The default way of Linux before Python 3.14.
                pool = ProcessPoolExecutor(plan["pool"], mp_context=multiprocessing.get_context("fork"))
                pool.submit(os.getpid).result()
                workers = sorted(pool._processes)
            tell(ready=tools, workers=workers)
            if "use" in plan:
                tasks.start_soon(use, session, *plan["use"])
            for beat in range(10**9) if plan.get("beat") else ():
                sys.stdin.readline()
                await session.list_tools()
                tell(beat=beat)
            while not os.path.exists(plan.get("until", "/nowhere")):
                await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()


anyio.run(main)
