"""Machines on a network of their own: network namespaces that a bridge joins. Linux alone, and root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

SUBNET = "10.213.77"


class Machine:
    """A network namespace with a host name and an address; it is gone when its processes are.

    Attributes:
        name: of the host.
        address: its IPv4 address.
        port: of the bridge, to which it is connected.
    """

    def __init__(self, name: str, number: int, hosts: Path) -> None:
        self.name, self.address, self.port = name, f"{SUBNET}.{number}", f"port{number}"
        arguments = ["unshare", "--net", "--mount", "--uts", "cat"]  # ends with this process, which holds its input
        self._holder = subprocess.Popen(arguments, stdin=subprocess.PIPE)
        pid = self._holder.pid
        while os.readlink(f"/proc/{pid}/ns/uts") == os.readlink("/proc/self/ns/uts"):  # until it has unshared all three
            pass
        self.run("hostname", name)
        self.run("mount", "--bind", str(hosts), "/etc/hosts")
        self.run("ip", "link", "set", "lo", "up")

    def plug(self, hub: Machine) -> None:
        """Connect it to the bridge of another."""
        hub.run(*f"ip link add {self.port} type veth peer name eth0 netns {self._holder.pid}".split())
        hub.run(*f"ip link set {self.port} master bridge up".split())
        self.run(*f"ip address add {self.address}/24 dev eth0".split())
        self.run(*["ip", "link", "set", "eth0", "up"])
        self.run(*f"ip route add default via {hub.address}".split())

    def become_hub(self) -> None:
        """Make a bridge that others can be connected to."""
        self.run(*["ip", "link", "add", "bridge", "type", "bridge"])
        self.run(*f"ip address add {self.address}/24 dev bridge".split())
        self.run(*["ip", "link", "set", "bridge", "up"])

    def inside(self, folder: Path, *command: str) -> list[str]:
        """The arguments of a process that runs a command in it, in a folder."""
        return ["nsenter", f"--target={self._holder.pid}", "--net", "--mount", "--uts", f"--wd={folder}", *command]

    def run(self, *command: str) -> None:
        """Run a command in it to its end."""
        done = subprocess.run(self.inside(Path("/"), *command), capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    def private(self, folder: Path) -> None:
        """Give it a folder that other machines do not see, such as one below /tmp."""
        folder.mkdir(exist_ok=True)
        self.run("mount", "-t", "tmpfs", "tmpfs", str(folder))

    def close(self) -> None:
        self._holder.communicate()


@contextlib.contextmanager
def network(folder: Path, names: Sequence[str]) -> Iterator[tuple[Machine, list[Machine]]]:
    """Yields a hub, on which servers may run, and machines that reach it and one another by address and by name.

    The test is skipped where namespaces are not permitted.
    """
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        pytest.skip("machines are network namespaces, which need root, unshare, nsenter and ip")
    if (done := subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True)).returncode:
        pytest.skip(f"network namespaces are not permitted here: {done.stderr.strip()}")
    hosts = folder / "hosts"
    numbered = list(enumerate(("hub", *names), 1))
    lines = ["127.0.0.1 localhost", *(f"{SUBNET}.{number} {name}" for number, name in numbered)]
    hosts.write_text("\n".join(lines) + "\n")
    with contextlib.ExitStack() as at_the_end:
        machines = []
        for number, name in numbered:
            machines.append(Machine(name, number, hosts))
            at_the_end.callback(machines[-1].close)
        hub, *others = machines
        hub.become_hub()
        for machine in others:
            machine.plug(hub)
        yield hub, others
