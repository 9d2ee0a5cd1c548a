"""A stand-in of the messages API on 127.0.0.1, in which the model's only idea is to call some tools, one after the other.

A request that offers the next of the tools is answered with a call of it; when the last result is there the answer is "done".
"""
import http.server
import json
import threading

MOST = 100  # tool results, until the model gives up waiting for a tool


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of the agent."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def answer(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(b"{}")

    do_HEAD = do_GET

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if not self.path.partition("?")[0].endswith("/v1/messages"):
            self.answer(b'{"input_tokens":1}')
            return
        content, stop = self.server.reply(asked)
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": [], "usage": usage}
        message.update(stop_reason=None, stop_sequence=None)
        if asked.get("stream"):
            self.answer(b"".join(event.encode() for event in stream(message, content, stop)), "text/event-stream")
        else:
            self.answer(json.dumps({**message, "content": [content], "stop_reason": stop}).encode())


def stream(message, content, stop):
    """The same answer as server-sent events."""
    if content["type"] == "tool_use":
        first, delta = {**content, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
    else:
        first, delta = {**content, "text": ""}, {"type": "text_delta", "text": content["text"]}
    for event in (
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": first},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": message["usage"]},
        {"type": "message_stop"},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


class Model(http.server.ThreadingHTTPServer):
    """The stand-in, serving until the process ends. `url` is what ANTHROPIC_BASE_URL shall be."""

    def __init__(self, calls):
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls = calls
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        """A client that breaks a connection off is no news."""

    def reply(self, asked):
        """(content, why it stops): the call of the tool whose turn it is. While an MCP server is still starting its tools are not
        offered: a short command passes the time."""
        blocks = [b for message in asked["messages"] if isinstance(message["content"], list) for b in message["content"]]
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        done = sum(result.startswith("toolu_call") for result in results)
        offered = {tool.get("name") for tool in asked.get("tools", [])}
        if done == len(self.calls) or "Bash" not in offered or len(results) > MOST:
            return {"type": "text", "text": "done"}, "end_turn"
        name, given = self.calls[done]
        if name in offered:
            return {"type": "tool_use", "id": f"toolu_call{done}", "name": name, "input": given}, "tool_use"
        wait = {"command": "sleep 0.2", "description": "Wait"}
        return {"type": "tool_use", "id": f"toolu_wait{len(results)}", "name": "Bash", "input": wait}, "tool_use"
