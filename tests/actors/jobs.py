"""A gateway on the Python SDK (1 or 2) that runs many jobs at once, each with a server of its own.

Each line on stdin is a round: a list of jobs, {"name", "command", "first", "call", "end", "after", "again"}.

    first   [TOOL, ARGS] or null: called once, when the session is open
    call    [TOOL, ARGS]: called over and over until the job ends
    end     "cancel": the job's task is cancelled `after` milliseconds; with `again` a second time, so many milliseconds later
            "close": the job ends properly after that time; "stay": it ends properly when the next line on stdin says so

Prints {"settled": N} when only the N jobs that stay are left, and at the end of the round {"over": [REPORT..]}, one for each job:
{"name", "end", "calls": answered calls, "left": CLOCK_BOOTTIME when the job was told to end, "error": text or null, if it failed
before, "hangs": whether its task does not end: cancelled in the wrong moment, the SDKs may wait for their servers for ever}.
"""
import asyncio
import json
import os
import sys
import time

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PATIENCE = 60  # seconds for an answer, on a machine under load
CLOSING = 6  # seconds until a cancelled task hangs: the SDKs wait for their servers at most twice two seconds, and half of one


async def call(session, tool):
    with anyio.fail_after(PATIENCE):
        answer = await session.call_tool(*tool)
    if getattr(answer, "isError", False) or getattr(answer, "is_error", False):
        raise RuntimeError(f"{tool}: {answer.content}")


class Job:
    def __init__(self, plan):
        self.plan = plan
        self.leave = asyncio.Event()
        self.report = {"name": plan["name"], "end": plan["end"], "calls": 0, "left": None, "error": None, "hangs": False}
        self.task = asyncio.create_task(self.run())
        if plan["end"] != "stay":
            end = self.leave.set if plan["end"] == "close" else self.cancel
            asyncio.get_running_loop().call_later(plan["after"] / 1000, end)

    def left(self):
        if self.report["left"] is None:
            self.report["left"] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def cancel(self):
        self.left()
        self.task.cancel()
        if self.plan["again"] is not None:
            asyncio.get_running_loop().call_later(self.plan["again"] / 1000, self.task.cancel)

    async def over(self):
        """Wait for its end."""
        seconds = PATIENCE
        if self.plan["end"] == "cancel":
            seconds = (self.plan["after"] + (self.plan["again"] or 0)) / 1000 + CLOSING
        await asyncio.wait([self.task], timeout=seconds)
        self.report["hangs"] = not self.task.done()

    async def run(self):
        try:
            await self.work()
        except BaseException as error:
            if self.report["left"] is None:
                self.report["error"] = repr(error)
                self.left()

    async def work(self):
        command, *args = self.plan["command"]
        server = StdioServerParameters(command=command, args=args, cwd=os.getcwd())
        async with stdio_client(server, errlog=sys.stderr) as (read, write), ClientSession(read, write) as session:
            with anyio.fail_after(PATIENCE):
                await session.initialize()
            if self.plan["first"]:
                await call(session, self.plan["first"])
            while not self.leave.is_set():
                await call(session, self.plan["call"])
                self.report["calls"] += 1
                await asyncio.sleep(0.1)
            await call(session, self.plan["call"])
            self.report["calls"] += 1
            self.left()


async def answered(job):
    """The job has been answered, and once more: it is past its opening."""
    wanted = job.report["calls"] + 2
    while job.report["calls"] < wanted and not job.task.done():
        await asyncio.sleep(0.02)


async def line():
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def main():
    while text := await line():
        jobs = [Job(plan) for plan in json.loads(text)]
        staying = [job for job in jobs if job.plan["end"] == "stay"]
        await asyncio.gather(*[job.over() for job in jobs if job not in staying])
        for job in staying:
            await answered(job)
        print(json.dumps({"settled": len(staying)}), flush=True)
        await line()
        for job in staying:
            job.leave.set()
        await asyncio.gather(*[job.over() for job in staying])
        print(json.dumps({"over": [job.report for job in jobs]}), flush=True)


asyncio.run(main())
