"""Where each file of the state root lives."""

from functools import lru_cache
from pathlib import Path

from core.values import dataclass


@dataclass(frozen=True)
class StatePaths:
    """The state root's layout: folders are 0700, files 0600."""

    root: Path

    @property
    def local(self) -> Path:
        """Everything that belongs to this machine."""
        return self.root / "local"

    @property
    def records(self) -> Path:
        """One `<name>.json` a session."""
        return self.local / "standing"

    @property
    def locks(self) -> Path:
        """One file a session, locked with flock."""
        return self.local / "locks"

    @property
    def spool(self) -> Path:
        """One folder an instance: hook reports not yet taken in."""
        return self.local / "spool"

    @property
    def database(self) -> Path:
        """SQLite: inbox, outbox, bindings, activity."""
        return self.local / "the-loop.db"

    @property
    def events(self) -> Path:
        """The event log, one JSON object a line."""
        return self.local / "events.jsonl"

    @property
    def poke(self) -> Path:
        """A FIFO: one byte tells the service that there is something to look at."""
        return _below(self.root, "poke")

    @property
    def service_socket(self) -> Path:
        """The service's Unix socket."""
        return self.local / "service.sock"

    @property
    def service_lock(self) -> Path:
        """Locked with flock for as long as a service lives; its text is the service's pid."""
        return self.local / "service.lock"

    @property
    def service_log(self) -> Path:
        """What a detached service prints."""
        return self.local / "service.log"

    @property
    def api_token(self) -> Path:
        """The token of the HTTP host, made where no variable holds one."""
        return self.local / "api-token"

    @property
    def http_socket(self) -> Path:
        """Where the service listens for HTTP besides its port: nobody else can stand there."""
        return self.local / "http.sock"

    @property
    def tmux_conf(self) -> Path:
        """The configuration of our own tmux server."""
        return self.local / "tmux.conf"

    @property
    def sessions(self) -> Path:
        """One folder a session."""
        return self.local / "sessions"

    def session(self, uid: str) -> Path:
        """Folder of one session: launcher, brief, hook settings, hold, asking, tool, last output."""
        return _below(self.root, "sessions", uid)

    def agent_token(self, uid: str) -> Path:
        """The token by which the session's agent is known to its tools; made anew at each start."""
        return self.session(uid) / "mcp-token"

    def spool_of(self, instance: str) -> Path:
        """Folder of one instance's hook reports."""
        return _below(self.root, "spool", instance)


@lru_cache(maxsize=4096)
def _below(root: Path, *names: str) -> Path:
    """Return a path that each step of a delivery names several times: putting one together costs."""
    return Path(root, "local", *names)
