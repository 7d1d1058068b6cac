"""Programs that behave badly; the first argument says how.

A process that a test must find dead prints `PID <number>` once it is what it is meant to be. Where a file `alive` lies
beside this one, all of them share a lock on it, whatever else they shed: it is free when none is left. Where there is a
gate `ready`, each of them arrives there, and so does one that is asked to end and takes its time.
"""

import ctypes
import fcntl
import os
import resource
import selectors
import signal
import socket
import sys
import time

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
HERE = os.path.dirname(os.path.abspath(__file__))
ALIVE, READY = os.path.join(HERE, "alive"), os.path.join(HERE, "gates", "ready.in")


def share_lock():
    fd = os.open(ALIVE, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    os.set_inheritable(fd, True)


def say(text):
    os.write(1, f"{text}\n".encode())


def arrive():
    if os.path.exists(READY):
        with open(READY, "w") as gate:
            gate.write("\n")


def is_ready(pid):
    say(f"PID {pid}")
    arrive()


def here():
    is_ready(os.getpid())


def stay():
    while True:
        signal.pause()


def await_term():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    here()
    signal.sigwait({signal.SIGTERM})


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value)


def child(life):
    pid = os.fork()
    if pid == 0:
        try:
            life()
        finally:
            os._exit(0)
    return pid


def detached(*how):
    """Starts a process in a session of its own whose parents are gone; returns when it is what `how` says."""
    ready, done = os.pipe()

    def grandchild():
        os.write(done, str(os.getpid()).encode())
        if "keepfds" not in how:
            null = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
        if "nondump" in how:
            prctl(PR_SET_DUMPABLE, 0)
        if "scrub" in how:
            # The pipe is closed by exec.
            os.execve("/bin/sleep", ["sleep", "1000"], {})
        os.close(done)
        stay()

    def middle():
        os.setsid()
        child(grandchild)

    os.waitpid(child(middle), 0)
    os.close(done)
    pid = b""
    while more := os.read(ready, 100):
        pid += more
    is_ready(pid.decode())


def obeys():
    here()
    if leader_ends:
        # Returns when somebody opens the other end.
        os.close(os.open("gate", os.O_RDONLY))
    else:
        stay()


def ignores_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    here()
    stay()


def slow_term(seconds):
    def clean_up(*_):
        arrive()
        time.sleep(float(seconds))
        say("CLEANED")
        os._exit(0)

    signal.signal(signal.SIGTERM, clean_up)
    here()
    stay()


def counts_term():
    """Two processes, one of them in a group of its own, that say how often they were asked to end."""

    def life():
        await_term()
        again = signal.sigtimedwait({signal.SIGTERM}, 0.3)
        say("ASKED AGAIN" if again else "ASKED ONCE")

    def other():
        os.setpgid(0, 0)
        life()

    pid = child(other)
    life()
    os.waitpid(pid, 0)


def daemonizes(*how):
    detached(*how)


def hides(*how):
    detached(*how)
    obeys()


def ignoring_child():
    child(ignores_term)
    obeys()


def own_groups():
    def life():
        os.setpgid(0, 0)
        ignores_term()

    for _ in range(5):
        child(life)
    obeys()


def nested_subreaper():
    def life():
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        detached("scrub")
        ignores_term()

    child(life)
    obeys()


def stopped():
    def life():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGSTOP)
        stay()

    pid = child(life)
    os.waitpid(pid, os.WUNTRACED)
    is_ready(pid)
    obeys()


def comet(width, end):
    """Lines of processes, each of which forks its successor into a new session and exits; they end with the file.

    All of them share one lock on the file: it is free when none is left.
    """
    fcntl.flock(os.open(end, os.O_RDONLY), fcntl.LOCK_SH)

    def line():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while os.path.exists(end):
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.001)

    for _ in range(int(width)):
        child(line)
    obeys()


def kills_shim(*how):
    shim = os.getppid()
    detached(*how)
    here()
    os.kill(shim, signal.SIGKILL)
    stay()


def stops_shim():
    shim = os.getppid()
    detached()
    os.kill(shim, signal.SIGSTOP)
    obeys()


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def stops_daemon():
    daemon = parent_of(os.getppid())
    detached()
    here()
    os.kill(daemon, signal.SIGSTOP)
    stay()


def kills_daemon():
    """The shim is left to do its duty."""
    daemon = parent_of(os.getppid())
    detached()
    here()
    os.kill(daemon, signal.SIGKILL)
    stay()


def kills_both(*how):
    """The shim is stopped first: it would end this process before the rest is done."""
    shim = os.getppid()
    daemon = parent_of(shim)
    detached(*how)
    here()
    os.kill(shim, signal.SIGSTOP)
    os.kill(daemon, signal.SIGKILL)
    os.kill(shim, signal.SIGKILL)
    stay()


def floods(size, stream):
    block = b"x" * (1 << 20)
    for _ in range(int(size)):
        os.write(int(stream), block)
    os.write(int(stream), b"\nLAST LINE\n")


def interleaves(lines):
    for number in range(int(lines)):
        os.write(1 + number % 2, f"{number}\n".encode())


def holds_pipe():
    child(stay)


def chatters():
    def life():
        while True:
            say("still here")
            time.sleep(0.02)

    child(life)


def chatters_after(arrival):
    """Chatters, and writes to a pipe as soon as the program is gone that started it."""
    parent = os.getpid()

    def life():
        while os.getppid() == parent:
            time.sleep(0.01)
        with open(arrival, "w") as gate:
            gate.write("\n")
        while True:
            say("still here")
            time.sleep(0.02)

    child(life)


def writes_late():
    def life():
        for _ in range(10):
            time.sleep(0.04)
            say("working")
        say("LAST LINE")
        stay()

    child(life)


def reads_late():
    """Takes its input only when it is asked for the end, and says how much there was."""
    await_term()
    say(f"READ {len(sys.stdin.buffer.read())}")


def open_socket(path):
    """Opens a WebSocket to a daemon."""
    opened = socket.socket(socket.AF_UNIX)
    opened.connect(path)
    opened.sendall(
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += opened.recv(1)
    opened.setblocking(False)
    return opened


def frame(text):
    """Frames a text message, with a mask of zeros."""
    length = len(text)
    head = bytes([0x81, 0x80 | length]) if length < 126 else b"\x81\xfe" + length.to_bytes(2, "big")
    return head + bytes(4) + text


def floods_with_calls(path, connections, replies, arrival, *calls):
    """Sends calls over many connections, as fast as they are taken, and writes to a pipe when that many replies have come.
    Where it is to be none, no reply is ever read: it writes as soon as no connection takes more."""
    frames = [frame(b'{"jsonrpc":"2.0","id":1,%s}' % call.encode()) for call in calls]
    wanted = selectors.EVENT_WRITE | (selectors.EVENT_READ if int(replies) else 0)
    selector = selectors.DefaultSelector()
    for number in range(int(connections)):
        first = number % len(frames)
        selector.register(open_socket(path), wanted, b"".join(frames[first:] + frames[:first]))
    sent, came, arrived = {}, 0, False
    while True:
        ready = selector.select(1)
        for key, events in ready:
            if events & selectors.EVENT_WRITE:
                at = sent.get(key.fd, 0)
                sent[key.fd] = (at + key.fileobj.send(key.data[at:])) % len(key.data)
            if events & selectors.EVENT_READ:
                came += key.fileobj.recv(1 << 16).count(b'"jsonrpc"')
        if not arrived and (came >= int(replies) > 0 or not ready):
            arrived = True
            with open(arrival, "w") as gate:
                gate.write("\n")


def exhausts(processes):
    """Many processes, each of which holds as many descriptors as it may."""
    ready, done = os.pipe()

    def life():
        try:
            while True:
                os.open("/dev/null", os.O_RDONLY)
        except OSError:
            os.write(done, b"x")
            stay()

    for _ in range(int(processes)):
        child(life)
    for _ in range(int(processes)):
        os.read(ready, 1)
    say("EXHAUSTED")


def eats_memory(limit):
    resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
    pieces = []
    while True:
        pieces.append(bytearray(1 << 20))


if __name__ == "__main__":
    if os.path.exists(ALIVE):
        share_lock()
    arguments = sys.argv[1:]
    # Before a call: its first process ends by itself, when a test lets it.
    leader_ends = arguments[0] == "ends"
    if leader_ends:
        arguments.pop(0)
    globals()[arguments[0].replace("-", "_")](*arguments[1:])
