"""Hosts and addresses: which are this machine's alone, and which mean us. Nothing of the web framework is imported."""

import ipaddress

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Tell whether the address or name is this machine's alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bracketed(host: str) -> str:
    """Return the host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def allowed_hosts(configured: str, port: int, reached: str | None) -> frozenset[str]:
    """Return the values of a Host header that mean us.

    `reached` is the address at which the client reached us: where we listen on all addresses of the machine it is
    the only one of them that this connection shows. An address is safe, since no foreign page can be called by it.
    """
    names = {*_LOOPBACK_NAMES, configured.lower()}
    if reached is not None and _is_wildcard(configured):
        names.add(reached.lower())
    hosts = {f"{bracketed(name)}:{port}" for name in names if not _is_wildcard(name)}
    return frozenset(hosts | ({bracketed(name) for name in names} if port == 80 else set()))


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
