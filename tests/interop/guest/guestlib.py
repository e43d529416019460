# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest under qemu, seen from the host: boot, commands, port forwarding, power-off.

Every wait has a deadline. All state lives in a folder of the guest's own, so that several guests
run at once. Threads: none; one Guest belongs to one process, but any process that knows the
folder may run commands in the guest (exec_in).
"""

import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# A boot takes 10 to 40 s. About one in hundreds hangs in the emulator before the guest does
# anything: it is begun again, and what the processors were at is in its log.
BOOT_TIMEOUT_S = 150
BOOT_TRIES = 3
POWEROFF_TIMEOUT_S = 60
# Forwarded guest ports: NFS, MOUNT, RPC-over-RDMA, portmapper.
PORTS = {"NFS_PORT": 2049, "MOUNT_PORT": 20048, "RDMA_PORT": 20049, "PORTMAP_PORT": 111}
KERNEL_LINE = ("console=ttyS0 quiet mitigations=off nokaslr panic=-1 audit=0 apparmor=0 "
               "random.trust_cpu=on tsc=reliable no_timer_check net.ifnames=0")
TROUBLE = re.compile(r"BUG:|Oops|general protection|WARNING: CPU|Kernel panic|blocked for more than")


class NotReady(Exception):
    """The guest gave no sign of life in time."""


class GuestError(Exception):
    """The harness failed, as opposed to a command that ran and returned a status."""


def die_with_parent():
    """In a child: be killed when the parent dies, so that no qemu outlives its test."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def missing_tool():
    """The reason why no guest can run on this machine, or None."""
    for tool in ("qemu-system-x86_64", "debootstrap"):
        if not shutil.which(tool):
            return f"no {tool} on this machine (packages: section [guest] of tests/packages)"
    return None


def image():
    """Folder of the guest's image, made if it does not exist yet."""
    built = subprocess.run([os.path.join(HERE, "build")], stdout=subprocess.PIPE, text=True, timeout=1200)
    if built.returncode != 0:
        raise GuestError("the image could not be made")
    return built.stdout.strip()


def exec_in(folder, command, timeout_s, stdout=sys.stdout.buffer, stderr=sys.stderr.buffer, alive=None):
    """Runs `command` (a list) in the guest of `folder`; its output is passed on as it comes.

    Returns its exit status. After timeout_s the command's session is killed and the result is
    124. `alive` tells whether the guest still runs (default: as long as its folder has qemu's pid).
    """
    share = os.path.join(folder, "ctl")
    alive = alive or (lambda: pid_alive(os.path.join(folder, "qemu.pid")))
    fd, path = tempfile.mkstemp(suffix=".part", prefix="c", dir=share)
    with os.fdopen(fd, "w") as script:
        script.write("cd /root\n" + shlex.join(command) + "\n")
    base = path[: -len(".part")]
    ident = os.path.basename(base)
    os.rename(path, base + ".cmd")
    order(folder, f"run {ident}")
    deadline = time.monotonic() + timeout_s
    streams = [Follower(base + ".out", stdout), Follower(base + ".err", stderr)]
    while True:
        finished = os.path.exists(base + ".rc")
        for stream in streams:
            stream.pump()
        if finished:
            with open(base + ".rc") as status:
                return int(status.read())
        if not alive():
            raise GuestError("the guest ended while a command ran")
        if time.monotonic() > deadline:
            order(folder, f"kill {ident}")
            print(f"guest: no end after {timeout_s} s: {shlex.join(command)}", file=sys.stderr)
            return 124
        time.sleep(0.03)


def order(folder, line):
    """One line to the agent; lines are shorter than PIPE_BUF, so writers need no lock."""
    fd = os.open(os.path.join(folder, "port.in"), os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(fd, line.encode() + b"\n")
    finally:
        os.close(fd)


def pid_alive(pid_file):
    try:
        with open(pid_file) as text:
            os.kill(int(text.read()), 0)
        return True
    except (OSError, ValueError):
        return False


class Follower:
    """Passes on what is appended to a file that may not exist yet."""

    def __init__(self, path, sink):
        self.path, self.sink, self.source = path, sink, None

    def pump(self):
        if self.source is None:
            if not os.path.exists(self.path):
                return
            self.source = open(self.path, "rb")
        data = self.source.read()
        if data:
            self.sink.write(data)
            self.sink.flush()


class Guest:
    """Use as a context manager: leaving it powers the guest off and removes its folder."""

    def __init__(self, shares=(), tap=False, reach_host=False, memory_mib=4096, cpus=None,
                 count_instructions=False):
        """shares: pairs (name, folder), read-only in the guest at /share/name.

        tap: a TAP device in this process's network namespace (which must be its own) instead of
        user networking. reach_host: the guest may open connections to the host at HOST_ADDR.
        count_instructions: a clock that goes on by 1 ns with each instruction. cpus: two, with
        count_instructions one.
        """
        self.tap, self.reach_host = tap, reach_host
        self.memory_mib = memory_mib
        self.cpus = cpus or (1 if count_instructions else 2)
        self.count_instructions = count_instructions
        self.shares = [("guest", os.path.join(HERE, "in"))] + list(shares)
        self.qemu = None
        self.keep_log = False
        self.ports = {}
        self.host = "10.77.0.2" if tap else "127.0.0.1"

    def __enter__(self):
        self.image = image()
        for _ in range(BOOT_TRIES):
            self.folder = tempfile.mkdtemp(prefix="nfsrdma-guest-")
            self.serial = os.path.join(self.folder, "serial.log")
            try:
                self.boot()
                return self
            except NotReady:
                print(f"guest: no sign of life within {BOOT_TIMEOUT_S} s", file=sys.stderr)
                self.log_registers()
                self.qemu.kill()
                self.qemu.wait(10)
                self.fail()
            except BaseException:
                self.fail()
                raise
        raise GuestError(f"the guest was not ready {BOOT_TRIES} times after {BOOT_TIMEOUT_S} s")

    def fail(self):
        self.keep_log = True
        self.close()
        self.keep_log = False

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.keep_log = True
        self.close()

    def qemu_command(self):
        address = "10.77.0.2/24" if self.tap else "10.0.2.15/24"
        host = "10.77.0.1" if self.tap else "10.0.2.2"
        line = KERNEL_LINE + f" guest.address={address} guest.host={host}"
        line += " guest.shares=" + ",".join(name for name, _ in self.shares)
        if self.tap:
            netdev = "tap,id=net,ifname=tap0,script=no,downscript=no"
        else:
            forwards = "".join(f",hostfwd=tcp:127.0.0.1:0-:{port}" for port in PORTS.values())
            netdev = "user,id=net" + ("" if self.reach_host else ",restrict=on") + forwards
        at = lambda name: os.path.join(self.folder, name)
        threads, clock = "multi", []
        if self.count_instructions:
            threads, clock = "single", ["-icount", "shift=0,sleep=on"]
        command = ["qemu-system-x86_64", "-machine", "q35", "-accel", f"tcg,thread={threads},tb-size=512", *clock,
                   "-cpu", "max", "-smp", str(self.cpus), "-m", f"{self.memory_mib}M", "-nographic",
                   "-no-reboot", "-nodefaults", "-serial", f"file:{self.serial}",
                   "-qmp", f"unix:{at('qmp')},server=on,wait=off", "-pidfile", at("qemu.pid"),
                   "-kernel", os.path.join(self.image, "vmlinuz"),
                   "-initrd", os.path.join(self.image, "initrd"), "-append", line,
                   "-drive", f"if=none,id=root,format=raw,snapshot=on,file={self.image}/root.ext4",
                   "-device", "virtio-blk-pci,drive=root", "-device", "virtio-rng-pci",
                   "-device", "virtio-serial-pci", "-chardev", f"pipe,id=port,path={at('port')}",
                   "-device", "virtserialport,chardev=port,name=ctl",
                   "-netdev", netdev, "-device", "virtio-net-pci,netdev=net",
                   "-fsdev", f"local,id=ctl,path={at('ctl')},security_model=none",
                   "-device", "virtio-9p-pci,fsdev=ctl,mount_tag=ctl"]
        for name, folder in self.shares:
            command += ["-fsdev", f"local,id={name},path={folder},security_model=none,readonly=on",
                        "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]
        return command

    def boot(self):
        os.mkdir(os.path.join(self.folder, "ctl"))
        shutil.copy(os.path.join(HERE, "agent"), os.path.join(self.folder, "ctl", "agent"))
        for direction in ("in", "out"):
            os.mkfifo(os.path.join(self.folder, "port." + direction))
        started = time.monotonic()
        with open(os.path.join(self.folder, "qemu.err"), "wb") as errors:
            self.qemu = subprocess.Popen(self.qemu_command(), stdin=subprocess.DEVNULL, stdout=errors,
                                         stderr=errors, start_new_session=True,
                                         preexec_fn=die_with_parent)
        ready = os.path.join(self.folder, "ctl", "ready")
        while not os.path.exists(ready):
            if self.qemu.poll() is not None:
                with open(os.path.join(self.folder, "qemu.err")) as errors:
                    raise GuestError(f"qemu ended during boot ({self.qemu.returncode}): {errors.read().strip()}")
            if time.monotonic() - started > BOOT_TIMEOUT_S:
                raise NotReady
            time.sleep(0.05)
        self.boot_s = time.monotonic() - started
        self.ports = dict(PORTS) if self.tap else self.forwarded_ports()

    def forwarded_ports(self):
        """qemu took free ports (port 0); its monitor tells which."""
        table = self.monitor("info usernet")
        found = {int(guest): int(host) for host, guest in
                 re.findall(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+(\d+)", table)}
        try:
            return {name: found[port] for name, port in PORTS.items()}
        except KeyError as missing:
            raise GuestError(f"qemu forwards no port to guest port {missing}:\n{table}") from None

    def monitor(self, line):
        """Runs a human monitor command through QMP; returns its text."""
        with socket.socket(socket.AF_UNIX) as qmp:
            qmp.settimeout(10)
            qmp.connect(os.path.join(self.folder, "qmp"))
            lines = qmp.makefile("rw")
            json.loads(lines.readline())
            answer = {}
            for request in ({"execute": "qmp_capabilities"},
                            {"execute": "human-monitor-command", "arguments": {"command-line": line}}):
                lines.write(json.dumps(request) + "\n")
                lines.flush()
                answer = json.loads(lines.readline())
                while "event" in answer:
                    answer = json.loads(lines.readline())
            return answer.get("return", "")

    def log_registers(self):
        try:
            registers = self.monitor("info registers -a")
        except (OSError, ValueError) as error:
            registers = f"qemu's monitor does not answer: {error}"
        with open(self.serial, "a") as log:
            log.write("\n" + registers)

    def execute(self, command, timeout_s, **streams):
        return exec_in(self.folder, command, timeout_s, alive=lambda: self.qemu.poll() is None, **streams)

    def url(self, export):
        ports = self.ports
        return (f"nfs://{self.host}:{ports['NFS_PORT']}{export}"
                f"?mountport={ports['MOUNT_PORT']}&rdmaport={ports['RDMA_PORT']}")

    def environment(self):
        """What a host-side command needs to know."""
        names = {"NFS_URL": "/export", "NFS_URL_SECURE": "/secure", "NFS_URL_RO": "/ro",
                 "NFS_URL_SMALL": "/small"}
        result = {name: self.url(export) for name, export in names.items()}
        result.update({name: str(port) for name, port in self.ports.items()})
        result.update(GUEST_DIR=self.folder, GUEST_HOST=self.host,
                      PATH=HERE + os.pathsep + os.environ.get("PATH", ""))
        return result

    def close(self):
        if self.qemu is not None and self.qemu.poll() is None:
            try:
                order(self.folder, "off")
                self.qemu.wait(POWEROFF_TIMEOUT_S)
            except (OSError, subprocess.TimeoutExpired):
                print("guest: did not power off, killed", file=sys.stderr)
                self.qemu.kill()
                self.qemu.wait(10)
        self.report_log()
        shutil.rmtree(self.folder, ignore_errors=True)

    def report_log(self):
        """Names trouble in the guest's kernel log, and keeps the log when something failed."""
        if not os.path.exists(self.serial):
            return
        with open(self.serial, errors="replace") as log:
            trouble = [line.strip() for line in log if TROUBLE.search(line)]
        for line in trouble[:5]:
            print(f"guest: kernel: {line}", file=sys.stderr)
        if self.keep_log or trouble:
            kept = os.path.join(tempfile.gettempdir(), os.path.basename(self.folder) + "-serial.log")
            shutil.copy(self.serial, kept)
            print(f"guest: serial log kept: {kept}", file=sys.stderr)
