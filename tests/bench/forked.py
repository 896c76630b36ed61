"""Calls in processes of their own, each of which may take so long and no longer."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time


def _call(function, task, pipe):
    os.setpgid(0, 0)  # what it starts ends with it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        pipe.send((function(task), None))
    except Exception as error:  # of whatever kind: it is said, and the next call is made
        pipe.send((None, f"{type(error).__name__}: {error}"))


def _end(process):
    if process.is_alive():
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:  # not yet a group of its own
            process.kill()
    process.join()


def _receive(pipe, process):
    try:
        return pipe.recv()
    except EOFError:
        process.join()
        return None, f"ended with status {process.exitcode}"


def each(function, tasks, jobs, timeout):
    """Yields (task, function(task), None) or (task, None, why there is no value), as calls end; `jobs` of
    them run at a time, and one that takes longer than `timeout` seconds is ended."""
    context = multiprocessing.get_context("fork")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that calls end with this program
    waiting, running = list(reversed(tasks)), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                ours, theirs = context.Pipe(duplex=False)
                task = waiting.pop()
                process = context.Process(target=_call, args=(function, task, theirs))
                process.start()
                theirs.close()
                running[ours] = task, process, time.monotonic() + timeout
            next_end = min(deadline for _, _, deadline in running.values())
            ready = multiprocessing.connection.wait(list(running), max(0, next_end - time.monotonic()))
            for pipe, (task, process, deadline) in list(running.items()):
                if pipe in ready:
                    value, error = _receive(pipe, process)
                elif time.monotonic() >= deadline:
                    value, error = None, f"took longer than {timeout:g} s"
                else:
                    continue
                del running[pipe]
                _end(process)
                pipe.close()
                yield task, value, error
    finally:
        for _, process, _ in running.values():
            _end(process)
