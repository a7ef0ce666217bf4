"""Where the service listens."""

import socket

import pytest

from core.http.host import CannotListen, listen, url_of

LOCAL = "127.0.0.1"


def test_port_zero_is_a_free_one() -> None:
    """The machine chooses."""
    with listen(LOCAL, 0) as listener:
        assert listener.getsockname()[1] > 0


def test_localhost_is_the_address_of_most_programs() -> None:
    """Of a name's addresses the IPv4 one is taken."""
    with listen("localhost", 0) as listener:
        assert listener.family is socket.AF_INET


def test_a_port_that_is_taken_is_named_with_the_remedy() -> None:
    """The error says which address, why, and which key to change."""
    with listen(LOCAL, 0) as first:
        port = first.getsockname()[1]

        with pytest.raises(CannotListen, match=rf"127\.0\.0\.1:{port}.*in use.*service\.port"):
            listen(LOCAL, port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "a..b"])
def test_an_address_that_is_not_ours_is_named(host: str) -> None:
    """Another machine's address, an unknown name, no name at all."""
    with pytest.raises(CannotListen, match=r"service\.host"):
        listen(host, 0)


def test_the_url_leads_here() -> None:
    """An address that means all of them is reached by loopback; IPv6 has brackets."""
    assert url_of("127.0.0.1", 4114) == "http://127.0.0.1:4114"
    assert url_of("0.0.0.0", 4114) == "http://127.0.0.1:4114"
    assert url_of("::", 1) == "http://[::1]:1"
    assert url_of("fe80::1", 1) == "http://[fe80::1]:1"
