"""How many files a process may hold open: a service more than is usual, and what it starts as many as anybody."""

from collections.abc import Mapping, Sequence

_WANTED = 8192
_AT_LIMIT = 'ulimit -Sn "$0" && exec "$@"'  # for /bin/sh

_usual: list[int] = []  # the soft limit before it was raised, where it was


def raise_limit() -> None:
    """Raise this process's soft limit, as far as the hard one lets it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _usual[:] = [soft]


def at_usual_limit(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the command that runs `words` with the limit that this process began with.

    Programs that use select(2), which cannot be told of a descriptor from 1024 on, rely on the usual one. A program
    that is not found is left to whoever starts it, who then says so.
    """
    if not _usual:
        return list(words)
    import shutil

    if shutil.which(words[0], path=environ.get("PATH")) is None:
        return list(words)
    return ["/bin/sh", "-c", _AT_LIMIT, str(_usual[0]), *words]
