#!/usr/bin/python3 -B
"""A viewer maps the memory that the server paints into, a memfd that it was sent; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-canvas", """
        import mmap
        fd = os.memfd_create("canvas")
        os.ftruncate(fd, 4096)
        canvas = mmap.mmap(fd, 4096)
        def paint():
            with listen("unix").accept()[0] as conn:
                send_fds(conn, fd)
            os.unlink(f"{DIR}/mcp-server-canvas.s")
            while True:
                canvas[0] = (canvas[0] + 1) % 256
                time.sleep(0.05)
        in_background(paint)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-canvas")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("viewer", """
        import mmap
        with dial("unix", "mcp-server-canvas") as conn:
            fd, = receive_fds(conn, 1)
        canvas = mmap.mmap(fd, 4096, prot=mmap.PROT_READ)
        os.close(fd)
        def look():
            before = canvas[0]
            time.sleep(0.2)
            if canvas[0] == before:
                raise EOFError("nothing moves")
        use("viewer", look)
    """))
    stage.beats("viewer")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-canvas")])


situation.main()
