#!/usr/bin/env python3
"""Measures the HTTP API of a fleet on this machine: `deploy/bench-api.py REELHAUL`, a release build. Needs wrk.

Starts `reelhaul up`, queues tasks that wait, and asks: one task, lists of 100, the overview; each alone with wrk. Then a
thousand clients follow the events while tasks pass, and lists are read. Prints one line of JSON a figure.
"""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

WAITING = int(os.environ.get("TASKS", "1000000"))
CLIENTS = int(os.environ.get("CLIENTS", "1000"))
RATE = int(os.environ.get("RATE", "2000"))
SECONDS = int(os.environ.get("SECONDS", "20"))


def report(**figures):
    print(json.dumps(figures), flush=True)


def settings(path):
    found = {}
    for line in open(path, encoding="utf-8"):
        name, _, value = line.strip().removeprefix("export ").partition("=")
        found[name] = value.strip("'\"")
    return found


def use(pid):
    """CPU seconds and resident MiB of a process."""
    fields = open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / ticks, int(fields[21]) * 4096 / 2**20


def wrk(url, connections, seconds=10):
    out = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url], check=True, capture_output=True, text=True
    ).stdout
    def milliseconds(label):
        value, unit = re.search(rf"{label}\s+([\d.]+)(us|ms|s)", out).groups()
        return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    return {
        "perSecond": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)),
        "p50ms": milliseconds("50%"), "p99ms": milliseconds("99%"), "wrong": int(wrong.group(1)) if wrong else 0,
    }


def batch(binary, environment, count, **fields):
    lines = "".join(json.dumps({"kind": "noop", "source": "noop:", **fields}) + "\n" for _ in range(count))
    return subprocess.run([binary, "batch", "-"], input=lines, env=environment, check=True, capture_output=True, text=True
                          ).stdout.split()


class Stream:
    """One client of the events, which only counts what it gets."""

    def __init__(self):
        self.bytes = self.events = 0

    async def run(self, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        writer.write(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        try:
            while data := await reader.read(1 << 16):
                self.bytes += len(data)
                self.events += data.count(b"\nid:")
        finally:
            writer.close()


def reads(port, path, seconds):
    """Asks again and again on one connection, in a process of its own, and prints how long each answer took."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begin = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        print(time.monotonic() - begin)
        time.sleep(0.02)


async def feed(binary, environment, until):
    """About RATE tasks a second."""
    sent = 0
    while time.monotonic() < until:
        begin = time.monotonic()
        lines = '{"kind":"noop","source":"noop:"}\n' * (RATE // 2)
        process = await asyncio.create_subprocess_exec(
            binary, "batch", "-", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
        await process.communicate(lines.encode())
        sent += RATE // 2
        await asyncio.sleep(max(0, 0.5 - (time.monotonic() - begin)))
    return sent


async def follow(binary, environment, port, server):
    streams = [Stream() for _ in range(CLIENTS)]
    running = [asyncio.create_task(stream.run(port)) for stream in streams]
    # One that never reads.
    slow = [await asyncio.open_connection("127.0.0.1", port, limit=1) for _ in range(10)]
    for _, writer in slow:
        writer.write(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    await asyncio.sleep(3)
    cpu, before = use(server)
    begin = time.monotonic()
    until = begin + SECONDS
    reader = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--reads", str(port), str(SECONDS), stdout=subprocess.PIPE)
    sent, (printed, _) = await asyncio.gather(feed(binary, environment, until), reader.communicate())
    times = [float(line) for line in printed.split()]
    await asyncio.sleep(2)
    after, memory = use(server)
    alive = sum(not task.done() for task in running)
    for task in running:
        task.cancel()
    times.sort()
    report(
        what="events", clients=CLIENTS, alive=alive, tasksPerSecond=sent / SECONDS,
        eventsPerClient=sum(s.events for s in streams) / CLIENTS,
        fewest=min(s.events for s in streams), listP50ms=times[len(times) // 2] * 1000,
        listP99ms=times[len(times) * 99 // 100] * 1000, lists=len(times),
        cpu=(after - cpu) / (SECONDS + 2), memoryMiB=memory, memoryBeforeMiB=before)


def main():
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="reelhaul-bench-") as directory:
        os.chmod(directory, 0o755)  # PostgreSQL runs as another user
        log = open(f"{directory}/log", "w", encoding="utf-8")
        up = subprocess.Popen([binary, "up", "--port", "0", "--data-dir", f"{directory}/data"], stdout=log, stderr=log)
        try:
            path = f"{directory}/data/reelhaul.env"
            while not os.path.exists(path):
                assert up.poll() is None, open(log.name, encoding="utf-8").read()
                time.sleep(0.1)
            environment = {**os.environ, **settings(path)}
            port = int(re.search(r":(\d+)", environment["REELHAUL_API"].split("//")[1]).group(1))
            task = batch(binary, environment, 1)[0]
            for _ in range(WAITING // 100_000):
                batch(binary, environment, 100_000, paused=True)
            url = f"http://127.0.0.1:{port}"
            count = 0
            while count < WAITING // 100_000 * 100_000:
                time.sleep(1)
                out = subprocess.run(["curl", "-sf", f"{url}/v1/overview"], check=True, capture_output=True).stdout
                count = json.loads(out)["counts"].get("paused", 0)
            time.sleep(20)
            report(what="waiting", tasks=count)
            report(what="one task", connections=32, **wrk(f"{url}/v1/tasks/{task}", 32))
            for query in ["", "&state=paused", "&sort=-createdAt"]:
                report(what="100 tasks", query=query, connections=1, **wrk(f"{url}/v1/tasks?limit=100{query}", 1))
            report(what="overview", connections=1, **wrk(f"{url}/v1/overview", 1))
            asyncio.run(follow(binary, environment, port, up.pid))
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(timeout=60)


if sys.argv[1] == "--reads":
    reads(int(sys.argv[2]), "/v1/tasks?limit=100", int(sys.argv[3]))
else:
    main()
