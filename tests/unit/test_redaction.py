"""Secrets taken out of text, by value and by look."""

import base64
import hashlib
import string
import uuid
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.redaction import HIDDEN, Redactor, redactor_of

BODY = "Ab3" * 12
SECRET = "correct horse/battery+staple&9"
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-1-2-abc", "xoxp-9-abcd", "xoxe.xoxb-1-abcd", "xapp-1-A1-2-abc", f"sk-{BODY}", f"sk-ant-api03-{BODY}",
        f"ghp_{BODY}", f"github_pat_{BODY}", f"glpat-{BODY}", "AKIAIOSFODNN7EXAMPLE", KEY,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N",
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_taken_out(secret: str) -> None:
    """Wherever it stands; what stands around it is kept."""
    assert Redactor().redact(f"before ({secret}) after") == f"before ({HIDDEN}) after"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Authorization: Bearer {BODY}", f"Authorization: Bearer {HIDDEN}"),
        ("postgres://ann:s3cret@db/x", f"postgres://ann:{HIDDEN}@db/x"),
        ("wss://wss.slack.com/link/?ticket=ab-cd&app_id=A1", f"wss://wss.slack.com/link/?ticket={HIDDEN}&app_id=A1"),
        (f'{{"api_key": "{BODY}"}}', f'{{"api_key": "{HIDDEN}"}}'),
        ("DB_PASSWORD=hunter2hunter2", f"DB_PASSWORD={HIDDEN}"),
        (f"token: {uuid.UUID(int=7)}", f"token: {HIDDEN}"),
        ("-----BEGIN RSA PRIVATE KEY-----\ncut off", HIDDEN),
    ],
)
def test_what_is_named_a_secret_is_taken_out(text: str, shown: str) -> None:
    """The name stays, so that a reader knows what was there."""
    assert Redactor().redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha256(b"x").hexdigest(),
        f"commit {hashlib.sha1(b'x').hexdigest()} of {uuid.UUID(int=2**100)}",
        "a bearer of news, basic authentication, the token: whatever you like",
        "password: see the vault", "task-list sk-learn risk-management-of-very-long-names", "https://a.b:8080/x@y",
        "git@github.com:owner/name.git", "secret = os.environ[NAME]", "sha256:" + "0" * 64,
        "xoxo", "max_tokens=4096", "tokens: 12345678",
    ],
)  # fmt: skip
def test_ordinary_text_is_kept(text: str) -> None:
    """Hashes, ids and words are no secrets."""
    assert Redactor((SECRET,)).redact(text) == text


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_value_is_found_in_base64_at_every_alignment(shift: int, encode: object) -> None:
    """As it stands in an encoded configuration or header."""
    assert callable(encode)
    written = encode(b"x" * shift + SECRET.encode() + b"yz").decode()

    assert HIDDEN in Redactor((SECRET,)).redact(f"data: {written}")


@given(st.text(max_size=40), st.text(max_size=40), st.text(string.printable, min_size=8, max_size=60))
def test_a_known_value_never_comes_through(before: str, after: str, secret: str) -> None:
    """As it is and in a URL; a second pass changes nothing more."""
    secret = secret.strip() + "!0aZ%&+/"
    redactor = Redactor((secret,))

    shown = redactor.redact(f"{before}{secret}{after} {quote(secret, safe='')}")

    assert secret not in shown
    assert quote(secret, safe="") not in shown
    assert redactor.redact(shown) == shown


@given(st.text())
def test_text_without_secrets_is_kept(text: str) -> None:
    """Any text at all, unless it looks like one."""
    assert Redactor((SECRET,)).redact(text) == text or "-" in text or "=" in text or ":" in text


def test_variables_are_known_by_name() -> None:
    """Ours, those that are named, and those that are called a key or a secret; short values and paths are not."""
    environ = {
        "THE_LOOP_SLACK_BOT_TOKEN": "value-one-1",
        "OTHER": "value-two-2",
        "VENDOR_API_KEY": "value-three-3",
        "HOME": "/home/ann",
        "MY_SECRET": "short",
        "THE_LOOP_CONFIG": "/etc/the-loop.yaml",
    }
    redactor = redactor_of(environ, ("OTHER", "NOT_SET"))

    shown = redactor.redact("value-one-1 value-two-2 value-three-3 /home/ann short /etc/the-loop.yaml")

    assert shown == f"{HIDDEN} {HIDDEN} {HIDDEN} /home/ann short /etc/the-loop.yaml"
    assert "value" not in repr(redactor)


def test_every_text_of_a_document_is_redacted() -> None:
    """Rows of a list are shown in a chat, too."""
    row = {"name": "scribe", "detail": "xoxb-1-2-abc", "runs": [{"error": SECRET, "count": 3}], "ok": True, "at": None}

    shown = Redactor((SECRET,)).redact_all(row)

    assert shown == {**row, "detail": HIDDEN, "runs": [{"error": HIDDEN, "count": 3}]}
