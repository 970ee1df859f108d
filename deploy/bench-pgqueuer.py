"""Measures pgqueuer: jobs that do nothing, two worker processes, batches of 500. Prints one JSON object.

    bench-pgqueuer.py URL    URL of an empty database
"""

import asyncio
import json
import multiprocessing
import sys
import time

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, QueueManager, Queries
from pgqueuer.types import QueueExecutionMode

BATCH = 500
WORKERS = 2
JOBS = 50_000
ROUNDS = 5


async def enqueue(url):
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    for _ in range(JOBS // BATCH):
        await queries.enqueue(["noop"] * BATCH, [b"noop://host/"] * BATCH, [0] * BATCH)
    await connection.close()


async def work(url, mode, started):
    manager = QueueManager(Queries(AsyncpgDriver(await asyncpg.connect(url))))

    @manager.entrypoint("noop")
    async def noop(job):
        pass

    started.wait()
    await manager.run(batch_size=BATCH, mode=mode)


def worker(url, mode, started):
    uvloop.run(work(url, mode, started))


async def finished(connection):
    while await connection.fetchval("select exists (select from pgqueuer)"):
        await asyncio.sleep(0.01)


async def measure(url, connection, loaded):
    """Jobs per second until none is left. `loaded`: all jobs are enqueued before; else the enqueuing counts."""
    context = multiprocessing.get_context("spawn")
    started = context.Barrier(WORKERS + 1)
    if loaded:
        await enqueue(url)
    mode = QueueExecutionMode.drain if loaded else QueueExecutionMode.continuous
    workers = [context.Process(target=worker, args=(url, mode, started)) for _ in range(WORKERS)]
    for process in workers:
        process.start()
    # In a thread, so that the time starts when all have connected.
    await asyncio.to_thread(started.wait)
    start = time.monotonic()
    if not loaded:
        await enqueue(url)
    await finished(connection)
    seconds = time.monotonic() - start
    # Nothing is left to lose.
    for process in workers:
        process.terminate()
        process.join()
    return JOBS / seconds


async def main(url):
    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    figures = {"drained": [], "endToEnd": []}
    for _ in range(ROUNDS):
        figures["drained"].append(await measure(url, connection, True))
        figures["endToEnd"].append(await measure(url, connection, False))
    await connection.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
