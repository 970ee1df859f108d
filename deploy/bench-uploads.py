"""Compares uploads to S3 on loopback with boto3 and rclone, in turns: one file of 2 GiB, and 2,000 of 64 KiB.

Usage: bench-uploads.py REELHAUL STORE [RUNS]; STORE is `rclone` or `weed`. Needs what deploy/peers.txt lists.
Prints one JSON document: the seconds of every run, and the seconds of CPU of the client. DELAY_MS in the environment puts the store
so far away: the milliseconds that a request and its answer travel together.
"""

import asyncio
import json
import multiprocessing
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

BIN = Path(sys.executable).parent
REELHAUL, STORE = sys.argv[1:3]
RUNS = int(sys.argv[3]) if sys.argv[3:] and sys.argv[1] != "--boto" else 5
KEY, SECRET = "AKIABENCH", "bench-secret"
LARGE = int(os.environ.get("LARGE", 2 << 30))
DELAY = float(os.environ.get("DELAY_MS", 0)) / 1000
SMALL_COUNT, SMALL = 2000, 64 << 10


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start_store(directory, log):
    (directory / "data").mkdir()
    if STORE == "rclone":
        (port,) = free_ports(1)
        arguments = [BIN / "rclone", "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}"]
        arguments += ["--config", directory / "none", "--cache-dir", directory / "cache", directory / "data"]
        return subprocess.Popen(arguments, stdout=log, stderr=log), port
    names = [f"{name}.port{kind}" for name in ("s3", "filer", "master", "volume") for kind in ("", ".grpc")]
    ports = free_ports(len(names))
    identity = {"name": "bench", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
    arguments = [BIN / "weed", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={directory}/data", "-s3", "-filer"]
    arguments += [f"-s3.config={directory}/s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false"]
    arguments += ["-master.telemetry=false", "-master.volumeSizeLimitMB=1024", "-volume.max=40"]
    arguments += [f"-{name}={port}" for name, port in zip(names, ports)]
    return subprocess.Popen(arguments, stdout=log, stderr=log), ports[0]


async def serve_distance(listener, port):
    """Passes on what it gets and what the store at `port` answers, each after half of the delay."""
    async def forward(reader, writer):
        loop = asyncio.get_running_loop()
        while data := await reader.read(256 << 10):
            loop.call_later(DELAY / 2, writer.write, data)
        loop.call_later(DELAY / 2, writer.close)

    async def connected(reader, writer):
        try:
            store = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # It does not listen yet.
            return writer.close()
        await asyncio.gather(forward(reader, store[1]), forward(store[0], writer), return_exceptions=True)

    async with await asyncio.start_server(connected, sock=listener) as server:
        await server.serve_forever()


def start_distance(port):
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    process = multiprocessing.Process(target=lambda: asyncio.run(serve_distance(listener, port)), daemon=True)
    process.start()
    return listener.getsockname()[1]


def cpu_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid):
    """Bytes of resident memory at most; reset by writing 5 to clear_refs."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10


def children_of(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(path.parent.name))
        except (OSError, ValueError):
            pass
    return found


def measured(body, pid=None):
    """Seconds of wall time and of CPU: of `pid` as well as of the programs that were run."""
    def cpu():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime + (cpu_of(pid) if pid else 0)

    before, start = cpu(), time.monotonic()
    body()
    return time.monotonic() - start, cpu() - before


def boto_upload(endpoint, file):
    """What the process does that is measured as boto3."""
    client = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}))
    client.upload_file(file, "bench", "boto.mp4", Config=TransferConfig())


def main():
    # PostgreSQL may run as another user, who must be able to enter.
    directory = Path(tempfile.mkdtemp(prefix="reelhaul-uploads"))
    directory.chmod(0o755)
    log = open(directory / "log", "w")
    store, port = start_store(directory, log)
    if DELAY:
        port = start_distance(port)
    endpoint = f"http://127.0.0.1:{port}"
    credentials = directory / "credentials.json"
    form = {"accessKeyId": KEY, "secretAccessKey": SECRET, "endpoint": endpoint, "pathStyle": True}
    credentials.write_text(json.dumps({"bench": {"s3": form, "allowHTTP": True}}))
    credentials.chmod(0o600)
    environment = os.environ | {"REELHAUL_CONFIG": "", "REELHAUL_CREDENTIALS": str(credentials), "REELHAUL_LOG_LEVEL": "warning"}
    up = subprocess.Popen(
        [REELHAUL, "up", "--workers", "1", "--data-dir", directory / "fleet"], env=environment, stdout=log, stderr=log)
    try:
        run(directory, endpoint, up)
    finally:
        for process in (up, store):
            process.terminate()
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)


def run(directory, endpoint, up):
    settings = directory / "fleet" / "reelhaul.env"
    while not settings.exists():
        if up.poll() is not None:
            sys.exit(f"the fleet did not start: {(directory / 'log').read_text()}")
        time.sleep(0.1)
    fleet = os.environ | dict(
        line.removeprefix("export ").split("=", 1)
        for line in settings.read_text().splitlines() if "=" in line and not line.startswith("#"))
    fleet = {name: value.strip("'\"") for name, value in fleet.items()}
    s3 = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 5}, max_pool_connections=16))
    for _ in range(100):
        try:
            s3.create_bucket(Bucket="bench")
            s3.put_object(Bucket="bench", Key="ready", Body=b"ready")
            break
        except Exception:
            time.sleep(0.2)
    files = directory / "fleet" / "storage" / "default"
    with open(files / "large.mp4", "wb") as large:
        for _ in range(LARGE >> 20):
            large.write(os.urandom(1 << 20))
    (files / "small").mkdir()
    for number in range(SMALL_COUNT):
        (files / "small" / f"{number}.mp4").write_bytes(os.urandom(SMALL))
    os.sync()
    workers = [pid for pid in children_of(up.pid) if b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    (worker,) = workers
    rclone = [
        BIN / "rclone", "--config", directory / "none", "--s3-provider", "Other", "--s3-endpoint", endpoint,
        "--s3-access-key-id", KEY, "--s3-secret-access-key", SECRET, "--s3-force-path-style", "--s3-no-check-bucket",
        "copy",
    ]

    def call(arguments, env=None):
        subprocess.run(arguments, check=True, env=env, stdout=sys.stderr)

    def clear():
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="bench")
        for page in pages:
            keys = [{"Key": each["Key"]} for each in page.get("Contents", [])]
            if keys:
                s3.delete_objects(Bucket="bench", Delete={"Objects": keys})

    def ours_large():
        call([REELHAUL, "upload", "storage://default/large.mp4", "--if-exists", "replace", "--to", "s3://bench/ours.mp4",
              "--credential", "bench", "--wait"], fleet)

    def boto_large():
        call([sys.executable, __file__, "--boto", endpoint, files / "large.mp4"])

    def rclone_large():
        call(rclone + [files / "large.mp4", ":s3:bench/rclone"])

    batch = directory / "batch"
    batch.write_text("".join(
        json.dumps({"kind": "upload", "source": f"storage://default/small/{number}.mp4",
                    "destination": f"s3://bench/small/{number}.mp4", "credential": "bench",
                    "ifExists": "replace"}) + "\n"
        for number in range(SMALL_COUNT)))

    def query(text):
        return subprocess.check_output(["psql", "-AtXq", fleet["REELHAUL_POSTGRES"], "-c", text])

    def ours_small():
        # Counting the rows of `task` again and again would use a good part of a core.
        counts = " union all ".join(
            f"select tasks from {table} where state = 'succeeded'" for table in ("task_count", "count_change"))
        done = f"(select coalesce(sum(tasks), 0) from ({counts}) c)"
        goal = int(query(f"select {done}")) + SMALL_COUNT
        call([REELHAUL, "batch", batch], fleet)
        query(f"do $$ begin while {done} < {goal} loop commit; perform pg_sleep(0.02); end loop; end $$")

    def rclone_small():
        call(rclone + ["--transfers", "16", files / "small", ":s3:bench/small"])

    rows = {
        "large": [("reelhaul", ours_large, worker), ("boto3", boto_large, None), ("rclone", rclone_large, None)],
        "small": [("reelhaul", ours_small, worker), ("rclone", rclone_small, None)],
    }
    report = {"store": STORE, "delay": DELAY}
    for name in os.environ.get("ROWS", "large small").split():
        figures = {}
        Path(f"/proc/{worker}/clear_refs").write_text("5")
        for number in range(RUNS + 1):
            for label, body, pid in rows[name]:
                clear()
                took, cpu = measured(body, pid)
                print(f"{name} {number} {label}: {took:.2f} s, {cpu:.2f} s of CPU", file=sys.stderr)
                # The first run only warms up.
                if number:
                    figures.setdefault(label, []).append((took, cpu))
        report[name] = {
            label: {"seconds": statistics.median(each[0] for each in runs), "cpu": statistics.median(each[1] for each in runs), "runs": runs}
            for label, runs in figures.items()}
        report[name]["reelhaul"]["peakMiB"] = peak_of(worker) >> 20
    print(json.dumps(report, indent=2))


if sys.argv[1] == "--boto":
    boto_upload(*sys.argv[2:])
else:
    main()
