"""One call's cgroup (cgroup v2): a child folder of one that we may write, with exactly the call's processes in it.

The keeper moves the child in before its exec, so all that comes of it is in there too, whoever its parents are. Shared by keeper
and host: whichever of them is left ends it. Nothing here waits; all errors are OSError.
"""

import os


class Cgroup:
    """A folder that exists. `parent` is a descriptor of the folder above and stays the caller's."""

    def __init__(self, parent: int, name: str) -> None:
        self.parent, self.name = parent, name

    def write(self, file: str, text: str) -> None:
        """Write one control file."""
        fd = os.open(f"{self.name}/{file}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self.parent)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def read(self, file: str) -> str:
        """Read one control file."""
        fd = os.open(f"{self.name}/{file}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.parent)
        try:
            parts = []
            while part := os.read(fd, 65536):
                parts.append(part)
            return b"".join(parts).decode()
        finally:
            os.close(fd)

    def take(self, pid: int) -> int:
        """Move a process in. 0, or the errno: EACCES when its present cgroup is out of our reach."""
        try:
            self.write("cgroup.procs", str(pid))
        except OSError as exc:
            return exc.errno or 1
        return 0

    def kill(self) -> None:
        """SIGKILL to everything in it and below, in one step that no fork escapes. (Linux 5.14)"""
        try:
            self.write("cgroup.kill", "1")
        except OSError:  # gone: nobody is in it
            pass

    def populated(self) -> bool:
        """Whether a living process is in it or below: the kernel's word. A folder that is gone has none."""
        try:
            return "populated 1" in self.read("cgroup.events")
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def members(self) -> list[int]:
        """Who is directly in it. 0 stands for a process of another pid namespace."""
        try:
            return [*map(int, self.read("cgroup.procs").split())]
        except OSError:
            return []

    def remove(self) -> bool:
        """Remove it and what the tool made below it. False while somebody is in there."""
        for look_below in (False, True):  # the first try needs no descriptor, of which there may be none left
            try:
                if look_below:
                    self._remove_below(self.name)
                os.rmdir(self.name, dir_fd=self.parent)
            except FileNotFoundError:
                return True
            except OSError:
                continue
            return True
        return False

    def _remove_below(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self.parent)
        try:
            with os.scandir(fd) as entries:
                below = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        finally:
            os.close(fd)
        for name in below:
            self._remove_below(f"{path}/{name}")
            os.rmdir(f"{path}/{name}", dir_fd=self.parent)
