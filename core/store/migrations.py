"""The database's layout as numbered steps. A released step is never edited: a change is a new step at the end.

A step is a row of statements, and of functions where SQL is not enough. All missing steps run in one transaction, and
each function gets its connection.
"""

import sqlite3
from collections.abc import Callable, Sequence

from core.base.errors import StoreBroken

_OPEN_STATES = "('pending', 'queued', 'claimed', 'pasted', 'submitted')"
#: a note's key was `note:<uid>-<hash>:<start, 16 digits>:<edits, 5 digits>:<count>:<id of its first message>`
_NOTE_KEY = f"key GLOB 'note:*:{'[0-9]' * 16}:{'[0-9]' * 5}:[0-9]*:*'"
#: Why a session did what it does, in the sentences of the release before codes. Behind one without an argument others
#: may stand. Of the rest each argument reaches to the end, or over so many characters; the longest beginning counts.
_CODES_OF_ACTIVITIES = """
    UPDATE activities SET (reason, reason_args, remarks) = (
        WITH old (words, code, given, name, most) AS (VALUES
            ('what its own queue held comes next', 'queue-left', '{}', '', 0),
            ('background tasks run, and no turn does', 'between-turns', '{}', '', 0),
            ('its turn was cut off in the terminal', 'cut-off', '{}', '', 0),
            ('its turn is over, and nothing tells how it ended', 'end-unknown', '{}', '', 0),
            ('its harness was silent for long', 'harness-silent', '{}', '', 0),
            ('it shows a dialog: what it shows is not understood: look at its terminal', 'dialog-shown',
                '{"title": {"args": {}, "reason": "dialog-unread"}}', '', 0),
            ('it shows a dialog before it reads: what it shows is not understood: look at its terminal',
                'dialog-at-start', '{"title": {"args": {}, "reason": "dialog-unread"}}', '', 0),
            ('it shows a dialog: ', 'dialog-shown', '', 'title', 1000000),
            ('it shows a dialog before it reads: ', 'dialog-at-start', '', 'title', 1000000),
            ('it is going away: ', 'going-away', '', 'why', 1000000),
            ('no sign of life since ', 'stalled', '', 'since', 19),
            ('', 'said', '', 'words', 1000000)
        )
        SELECT code, CASE name WHEN '' THEN given ELSE json_object(name, substr(reason, length(words) + 1, most)) END,
            CASE WHEN name = '' AND reason <> words
                THEN json_array(json_array('said', json_object('words', substr(reason, length(words) + 3)) || ''))
                ELSE '[]' END
        FROM old WHERE instr(reason, words) = 1 AND (name <> '' OR instr(reason || '; ', words || '; ') = 1)
        ORDER BY length(words) DESC LIMIT 1
    ) WHERE reason <> ''
"""

Part = str | Callable[[sqlite3.Connection], None]


def _silences_into_codes(connection: sqlite3.Connection) -> None:
    from core.store.oldwords import silences_into_codes

    silences_into_codes(connection)


def _into_codes(connection: sqlite3.Connection) -> None:
    from core.store.oldwords import into_codes  # once in the life of a database

    into_codes(connection)


MIGRATIONS: tuple[tuple[Part, ...], ...] = (
    (
        """
        CREATE TABLE inbox (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            key TEXT NOT NULL UNIQUE,
            uid TEXT NOT NULL,
            name TEXT NOT NULL,
            generation INTEGER NOT NULL,
            kind TEXT NOT NULL,
            actor TEXT NOT NULL,
            who TEXT NOT NULL,
            via TEXT NOT NULL,
            marker TEXT NOT NULL,
            text TEXT NOT NULL,
            raw INTEGER NOT NULL,
            order_us INTEGER NOT NULL,
            created_at TEXT NOT NULL,
            from_kind TEXT,
            from_team TEXT,
            from_channel TEXT,
            from_thread TEXT,
            from_ts TEXT,
            state TEXT NOT NULL,
            detail TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            instance TEXT,
            attempt INTEGER NOT NULL DEFAULT 0,
            attempt_deadline TEXT,
            pasted_at TEXT,
            submitted_at TEXT,
            submits INTEGER NOT NULL DEFAULT 0,
            stashed INTEGER NOT NULL DEFAULT 0,
            final INTEGER NOT NULL DEFAULT 0
        )
        """,
        f"CREATE INDEX inbox_open ON inbox (uid, order_us, seq) WHERE state IN {_OPEN_STATES} AND final = 0",
        "CREATE INDEX inbox_of_session ON inbox (uid, seq)",
        """
        CREATE TABLE outbox (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            key TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            uid TEXT NOT NULL,
            name TEXT NOT NULL,
            channel_kind TEXT NOT NULL,
            text TEXT NOT NULL,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            state TEXT NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            not_before TEXT,
            ts TEXT,
            detail TEXT NOT NULL DEFAULT ''
        )
        """,
        "CREATE INDEX outbox_open ON outbox (channel_kind, uid, seq) WHERE state IN ('pending', 'sending')",
        """
        CREATE TABLE bindings (
            channel_kind TEXT NOT NULL,
            team TEXT NOT NULL,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            uid TEXT NOT NULL,
            name TEXT NOT NULL,
            created_at TEXT NOT NULL,
            PRIMARY KEY (channel_kind, team, channel, thread),
            UNIQUE (uid, channel_kind)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE activities (
            uid TEXT PRIMARY KEY,
            instance TEXT NOT NULL,
            state TEXT NOT NULL,
            since TEXT NOT NULL,
            pending_tasks TEXT NOT NULL,
            detail TEXT NOT NULL,
            turn_started_at TEXT,
            last_report_at TEXT
        ) WITHOUT ROWID
        """,
        "CREATE TABLE last_messages (uid TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE reports (instance TEXT, report TEXT, PRIMARY KEY (instance, report)) WITHOUT ROWID",
    ),
    (
        """
        CREATE TABLE ends (
            instance TEXT PRIMARY KEY,
            uid TEXT NOT NULL,
            by_person INTEGER NOT NULL DEFAULT 0,
            told_at TEXT,
            due_at TEXT,
            counted INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID
        """,
        "CREATE INDEX ends_due ON ends (due_at) WHERE due_at IS NOT NULL",
        "CREATE INDEX ends_of_session ON ends (uid)",
        "CREATE TABLE restarts (uid TEXT NOT NULL, at TEXT NOT NULL)",
        "CREATE INDEX restarts_of_session ON restarts (uid, at)",
        """
        CREATE TABLE announced (
            uid TEXT PRIMARY KEY,
            instance TEXT NOT NULL,
            idle_since TEXT NOT NULL,
            at TEXT NOT NULL
        ) WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE bindings ADD COLUMN cursor TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE bindings ADD COLUMN shared INTEGER",
        """
        CREATE TABLE refused_replies (
            key TEXT PRIMARY KEY,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            ts TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        "CREATE TABLE attachments (message TEXT PRIMARY KEY, files TEXT NOT NULL, told TEXT) WITHOUT ROWID",
    ),
    (
        "ALTER TABLE outbox ADD COLUMN part_of INTEGER",
        "ALTER TABLE outbox ADD COLUMN part INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX inbox_from_chat ON inbox (updated_at) WHERE from_kind IS NOT NULL",
        """
        CREATE TABLE marks (
            message TEXT PRIMARY KEY,
            over TEXT NOT NULL DEFAULT '',
            shown TEXT NOT NULL DEFAULT '',
            at TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        "CREATE INDEX marks_at ON marks (at)",
        "CREATE INDEX marks_taken ON marks (message) WHERE shown = 'taken' AND over = ''",
        """
        CREATE TABLE progress (
            uid TEXT PRIMARY KEY,
            turn TEXT NOT NULL,
            lines TEXT NOT NULL,
            steps INTEGER NOT NULL,
            told INTEGER NOT NULL DEFAULT 0,
            asked INTEGER NOT NULL DEFAULT 0,
            channel TEXT NOT NULL DEFAULT '',
            ts TEXT NOT NULL DEFAULT ''
        ) WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE outbox ADD COLUMN buttons TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE outbox ADD COLUMN edits TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE outbox ADD COLUMN path TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX outbox_buttons ON outbox (ts) WHERE buttons <> ''",
        """
        CREATE TABLE requests (
            id TEXT PRIMARY KEY,
            key TEXT NOT NULL,
            uid TEXT NOT NULL,
            name TEXT NOT NULL,
            instance TEXT NOT NULL,
            agent TEXT NOT NULL,
            kind TEXT NOT NULL,
            payload TEXT NOT NULL,
            state TEXT NOT NULL,
            allowed INTEGER NOT NULL DEFAULT 0,
            answers TEXT NOT NULL DEFAULT '[]',
            answered_by TEXT NOT NULL DEFAULT '',
            reason TEXT NOT NULL DEFAULT '',
            asked_at TEXT NOT NULL,
            expires_at TEXT NOT NULL,
            settled_at TEXT,
            told INTEGER NOT NULL DEFAULT 0,
            UNIQUE (instance, key)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX requests_open ON requests (uid, asked_at) WHERE state = 'open'",
        "CREATE INDEX requests_untold ON requests (asked_at) WHERE state = 'answered' AND told = 0",
        "CREATE INDEX requests_of_session ON requests (uid)",
        "CREATE TABLE spoken (uid TEXT NOT NULL, at TEXT NOT NULL)",
        "CREATE INDEX spoken_of_session ON spoken (uid, at)",
    ),
    (
        """
        CREATE TABLE loops (
            id TEXT PRIMARY KEY,
            uid TEXT NOT NULL,
            name TEXT NOT NULL,
            instruction TEXT NOT NULL,
            mode TEXT NOT NULL,
            created_by TEXT NOT NULL,
            created_at TEXT NOT NULL,
            interval_us INTEGER,
            cron TEXT NOT NULL DEFAULT '',
            time_zone TEXT NOT NULL DEFAULT '',
            keep_alive INTEGER NOT NULL DEFAULT 0,
            max_runs INTEGER,
            status TEXT NOT NULL DEFAULT 'active',
            held TEXT,
            held_until TEXT,
            run_count INTEGER NOT NULL DEFAULT 0,
            deferrals INTEGER NOT NULL DEFAULT 0,
            failures INTEGER NOT NULL DEFAULT 0,
            last_run_at TEXT,
            last_result TEXT NOT NULL DEFAULT '',
            last_error TEXT NOT NULL DEFAULT '',
            next_run_at TEXT,
            reason TEXT NOT NULL DEFAULT '',
            ended_at TEXT,
            declared TEXT NOT NULL DEFAULT '',
            digest TEXT NOT NULL DEFAULT '',
            revision INTEGER NOT NULL DEFAULT 0,
            claims INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID
        """,
        "CREATE INDEX loops_of_session ON loops (uid, created_at)",
        "CREATE INDEX loops_open ON loops (uid) WHERE status IN ('active', 'paused')",
        "CREATE INDEX loops_due ON loops (next_run_at) WHERE status = 'active' AND held IS NULL",
        "CREATE INDEX loops_ended ON loops (ended_at) WHERE ended_at IS NOT NULL",
        "CREATE UNIQUE INDEX loops_declared ON loops (uid, declared)"
        " WHERE declared <> '' AND status IN ('active', 'paused')",
        """
        CREATE TABLE loop_runs (
            id TEXT PRIMARY KEY,
            loop_id TEXT NOT NULL,
            uid TEXT NOT NULL,
            slot TEXT NOT NULL,
            number INTEGER NOT NULL,
            state TEXT NOT NULL,
            claimer TEXT NOT NULL,
            lease_until TEXT NOT NULL,
            last INTEGER NOT NULL DEFAULT 0,
            message_id TEXT NOT NULL DEFAULT '',
            taken_at TEXT,
            instance TEXT NOT NULL DEFAULT '',
            outcome TEXT NOT NULL DEFAULT '',
            detail TEXT NOT NULL DEFAULT '',
            updated_at TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        "CREATE UNIQUE INDEX loop_runs_open ON loop_runs (loop_id) WHERE state <> 'over'",
        "CREATE INDEX loop_runs_claimed ON loop_runs (lease_until) WHERE state = 'claimed'",
        "CREATE INDEX loop_runs_of_session ON loop_runs (uid)",
        "CREATE INDEX loop_runs_over ON loop_runs (updated_at) WHERE state = 'over'",
    ),
    (
        "ALTER TABLE loops ADD COLUMN held_at TEXT",
        "CREATE INDEX loops_held ON loops (uid) WHERE status = 'active' AND held IS NOT NULL",
        "CREATE INDEX loop_runs_going ON loop_runs (uid) WHERE state <> 'over'",
        "CREATE INDEX inbox_ticks ON inbox (updated_at) WHERE kind IN ('tick', 'keep-alive-tick')",
    ),
    ("ALTER TABLE spoken ADD COLUMN kind TEXT NOT NULL DEFAULT 'post'",),
    (
        "ALTER TABLE outbox ADD COLUMN changed_at TEXT NOT NULL DEFAULT ''",
        "UPDATE outbox SET changed_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')",  # of what is there nobody knows
        "CREATE INDEX outbox_over ON outbox (changed_at) WHERE state NOT IN ('pending', 'sending')",
        "CREATE INDEX outbox_edits ON outbox (edits) WHERE edits <> ''",
        "CREATE INDEX outbox_parts ON outbox (part_of) WHERE part_of IS NOT NULL",
        "CREATE INDEX inbox_over ON inbox (updated_at)"
        f" WHERE kind NOT IN ('tick', 'keep-alive-tick') AND NOT (state IN {_OPEN_STATES} AND final = 0)",
        "CREATE INDEX inbox_accepted ON inbox (uid) WHERE state = 'accepted'",
        "ALTER TABLE bindings ADD COLUMN swept_before TEXT NOT NULL DEFAULT ''",
    ),
    ("CREATE INDEX inbox_unknown ON inbox (uid, seq) WHERE state = 'unknown'",),
    (
        """
        CREATE TABLE note_waits (
            note TEXT NOT NULL,
            message TEXT NOT NULL,
            reason TEXT NOT NULL,
            remedy TEXT NOT NULL,
            ended TEXT NOT NULL DEFAULT '',
            PRIMARY KEY (note, message)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX note_waits_of_message ON note_waits (message)",
    ),
    ("ALTER TABLE loops ADD COLUMN asked INTEGER NOT NULL DEFAULT 0",),
    (
        "ALTER TABLE bindings ADD COLUMN begins TEXT NOT NULL DEFAULT ''",
        """
        CREATE TABLE left_threads (
            channel_kind TEXT NOT NULL,
            uid TEXT NOT NULL,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            PRIMARY KEY (channel_kind, uid)
        ) WITHOUT ROWID
        """,
    ),
    ("ALTER TABLE note_waits ADD COLUMN doubtful INTEGER NOT NULL DEFAULT 0",),
    ("ALTER TABLE activities ADD COLUMN mode TEXT NOT NULL DEFAULT ''",),
    ("ALTER TABLE outbox ADD COLUMN only_for TEXT NOT NULL DEFAULT ''",),
    (
        "ALTER TABLE inbox ADD COLUMN queued_at TEXT",
        "ALTER TABLE activities ADD COLUMN turn TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE activities ADD COLUMN turn_ended_at TEXT",
        "ALTER TABLE activities ADD COLUMN ended_turn TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE activities ADD COLUMN composer_at TEXT",
    ),
    ("ALTER TABLE marks ADD COLUMN asked TEXT NOT NULL DEFAULT ''",),
    (
        "ALTER TABLE activities ADD COLUMN shown TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE activities ADD COLUMN version TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE activities ADD COLUMN untried TEXT NOT NULL DEFAULT ''",
    ),
    ("ALTER TABLE activities ADD COLUMN failed TEXT NOT NULL DEFAULT ''",),
    (
        "ALTER TABLE activities ADD COLUMN task_names TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE activities ADD COLUMN cut_off_tasks TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE activities ADD COLUMN earlier_tasks TEXT NOT NULL DEFAULT '[]'",
    ),
    (
        """
        CREATE TABLE requests_heard (
            channel_kind TEXT NOT NULL,
            mark TEXT NOT NULL,
            until TEXT NOT NULL,
            PRIMARY KEY (channel_kind, mark)
        ) WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE activities ADD COLUMN silence TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE activities ADD COLUMN silent_since TEXT",
        "ALTER TABLE activities ADD COLUMN silent_why TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE activities ADD COLUMN retrying TEXT NOT NULL DEFAULT ''",
    ),
    (
        "CREATE TABLE ended_turns (instance TEXT, turn TEXT, at TEXT NOT NULL, "
        "PRIMARY KEY (instance, turn)) WITHOUT ROWID",
    ),
    (
        "ALTER TABLE inbox RENAME COLUMN detail TO reason",  # to drop it needs SQLite 3.35
        "ALTER TABLE inbox ADD COLUMN reason_args TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE note_waits ADD COLUMN reason_args TEXT NOT NULL DEFAULT '{}'",
        _into_codes,
        "ALTER TABLE loop_runs ADD COLUMN deferred INTEGER NOT NULL DEFAULT 0",
        "UPDATE loop_runs SET deferred = 1, detail = '' WHERE detail = 'deferred'",
    ),
    (  # what was kept in keys and ids as their beginnings and ends
        "ALTER TABLE announced ADD COLUMN stage TEXT NOT NULL DEFAULT 'announced'",
        "UPDATE announced SET stage = 'taken', instance = substr(instance, 7) WHERE instance GLOB 'taken:*'",
        "UPDATE announced SET stage = 'told', instance = substr(instance, 6) WHERE instance GLOB 'told:*'",
        "ALTER TABLE outbox ADD COLUMN about TEXT NOT NULL DEFAULT ''",
        "UPDATE outbox SET about = substr(key, instr(key, ':') + 1)"
        " WHERE key GLOB 'edited:*' OR key GLOB 'deleted:*' OR key GLOB 'files:*' OR key GLOB 'unsent:*'"
        " OR (key GLOB 'asked:*' AND substr(key, 7) IN (SELECT id FROM inbox))",
        "ALTER TABLE outbox ADD COLUMN starts TEXT NOT NULL DEFAULT ''",
        """
        UPDATE outbox
        SET starts = substr(key, instr(key, ':') + 1, instr(substr(key || ':', instr(key, ':') + 1), ':') - 1)
        WHERE kind IN ('root', 'boot', 'root-update', 'refresh') AND instr(key, ':') AND NOT key GLOB 'announce:*'
        """,
        "ALTER TABLE outbox ADD COLUMN note_group TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE outbox ADD COLUMN note_start INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE outbox ADD COLUMN note_edits INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE outbox ADD COLUMN note_count INTEGER NOT NULL DEFAULT 0",
        f"UPDATE outbox SET note_group = substr(key, 1, 4 + instr(substr(key, 6), ':')) WHERE {_NOTE_KEY}",
        """
        UPDATE outbox SET note_start = CAST(substr(key, length(note_group) + 2, 16) AS INTEGER),
            note_edits = CAST(substr(key, length(note_group) + 19, 5) AS INTEGER),
            note_count = CAST(substr(key, length(note_group) + 25) AS INTEGER),
            about = substr(key, length(note_group) + 25 + instr(substr(key, length(note_group) + 25), ':'))
        WHERE note_group <> ''
        """,
        """
        UPDATE outbox SET note_group = coalesce((
            SELECT uid || ' ' || channel || ' ' || thread
                || CASE WHEN doubtful THEN ' reply unknown ' ELSE ' reply queued ' END
                || reason || CASE WHEN reason IN ('confirm', 'paused') THEN '' ELSE ' ' || reason_args END
            FROM note_waits WHERE note = CASE outbox.edits WHEN '' THEN outbox.id ELSE outbox.edits END LIMIT 1
        ), note_group) WHERE note_group <> ''
        """,  # the others are no longer joined: half a minute after it began none is
        """
        UPDATE outbox SET note_group = 'retry ' || substr(key, 7, instr(substr(key, 7), ':') - 1),
            note_start = CAST(substr(key, 7 + instr(substr(key, 7), ':')) AS INTEGER), note_edits = (edits <> '')
        WHERE key GLOB 'retry:*:*'
        """,
        "ALTER TABLE inbox ADD COLUMN again_of TEXT NOT NULL DEFAULT ''",
        "UPDATE inbox SET again_of = substr(key, 7) WHERE key GLOB 'again:*'",
        "CREATE INDEX inbox_again ON inbox (again_of) WHERE again_of <> ''",
        "ALTER TABLE inbox ADD COLUMN run TEXT NOT NULL DEFAULT ''",
        "UPDATE inbox SET run = substr(key, 6) WHERE key GLOB 'loop:*'",
        "ALTER TABLE inbox ADD COLUMN task TEXT NOT NULL DEFAULT ''",
        "UPDATE inbox SET task = substr(key, length(uid) + 9)"
        " WHERE kind = 'notice' AND instr(key, 'notice:' || uid || ':') = 1",
        "CREATE INDEX outbox_notes ON outbox (note_group, note_start, note_edits) WHERE note_group <> ''",
    ),
    (  # why a session does what it does, as a code
        "ALTER TABLE activities RENAME COLUMN detail TO reason",
        "ALTER TABLE activities ADD COLUMN reason_args TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE activities ADD COLUMN remarks TEXT NOT NULL DEFAULT '[]'",
        "UPDATE activities SET reason = ltrim(reason, '; ')",
        _CODES_OF_ACTIVITIES,
        "ALTER TABLE outbox RENAME COLUMN detail TO reason",
        "ALTER TABLE outbox ADD COLUMN reason_args TEXT NOT NULL DEFAULT '{}'",
        """
        UPDATE outbox SET (reason, reason_args) = (
            WITH old (words, code, name) AS (VALUES
                ('a later start says the same', 'later-start', ''),
                ('a later edit says all that it says', 'later-edit', ''),
                ('what it tells of was over before it was posted', 'over-before', ''),
                ('the channel''s verbosity leaves it out', 'left-out', ''),
                ('it may have been shown; nobody can look', 'maybe-shown', ''),
                ('there is no thread for it, or no message to edit', 'no-thread', ''),
                ('the session was deleted', 'deleted', ''),
                ('its earlier thread is looked for', 'thread-looked-for', ''),
                ('it cannot be told which thread is its own: ', 'thread-unknown', 'error'),
                ('', 'said', 'words')
            )
            SELECT code, CASE name WHEN '' THEN '{}' ELSE json_object(name, substr(reason, length(words) + 1)) END
            FROM old WHERE reason = words OR (name <> '' AND instr(reason, words) = 1)
            ORDER BY length(words) DESC LIMIT 1
        ) WHERE reason <> ''
        """,
    ),
    (_silences_into_codes,),
    ("CREATE TABLE workings (uid TEXT PRIMARY KEY, instance TEXT NOT NULL, told TEXT NOT NULL)",),
    (
        """
        CREATE TABLE answered (
            who TEXT NOT NULL,
            key TEXT NOT NULL,
            digest TEXT NOT NULL,
            begun_at TEXT NOT NULL,
            status INTEGER,
            body BLOB NOT NULL DEFAULT x'',
            PRIMARY KEY (who, key)
        ) WITHOUT ROWID
        """,
    ),
    (
        "ALTER TABLE outbox ADD COLUMN added_at TEXT NOT NULL DEFAULT ''",
        "UPDATE outbox SET added_at = changed_at",  # the latest that it can have been
    ),
    ("ALTER TABLE bindings ADD COLUMN link TEXT NOT NULL DEFAULT ''",),
    (
        """
        CREATE TABLE live_posts (
            id TEXT PRIMARY KEY,
            uid TEXT NOT NULL,
            turn TEXT NOT NULL,
            channel_kind TEXT NOT NULL,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            reader TEXT NOT NULL,
            ts TEXT NOT NULL,
            state TEXT NOT NULL,
            opened_at TEXT NOT NULL,
            round INTEGER NOT NULL,
            shown TEXT NOT NULL,
            post TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        "CREATE INDEX live_posts_post ON live_posts (post) WHERE post <> ''",
        """
        CREATE TABLE turn_steps (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            uid TEXT NOT NULL,
            turn TEXT NOT NULL,
            call TEXT NOT NULL,
            tool TEXT NOT NULL,
            detail TEXT NOT NULL,
            state TEXT NOT NULL
        )
        """,
        "CREATE INDEX turn_steps_turn ON turn_steps (uid, turn)",
    ),
    (  # sessions that a message starts, in its thread
        "ALTER TABLE bindings ADD COLUMN head TEXT NOT NULL DEFAULT ''",
        """
        CREATE TABLE tasks (
            key TEXT PRIMARY KEY,
            channel_kind TEXT NOT NULL,
            name TEXT NOT NULL,
            asked TEXT NOT NULL,
            state TEXT NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            created_at TEXT NOT NULL,
            ends_at TEXT
        ) WITHOUT ROWID
        """,
    ),
)


def migrate(connection: sqlite3.Connection, place: str, steps: Sequence[Sequence[Part]] = MIGRATIONS) -> bool:
    """Bring the database to the latest layout, each missing step once, all in one transaction; tell if it was empty.

    `connection` is in autocommit mode; `place` names the file in messages. Raises sqlite3.Error, and StoreBroken for a
    database that a newer release has changed, or that is somebody else's: it is left as it is.
    """
    if _version(connection, place, len(steps)) == len(steps):
        return False
    connection.execute("BEGIN IMMEDIATE")
    try:
        begins = _version(connection, place, len(steps)) == 0
        if begins and connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise StoreBroken(f"{place}: this is no database of the-loop: it has other tables", "move it away")
        for step in steps[
            _version(connection, place, len(steps)) :
        ]:  # asked again: another process may have been first
            for part in step:
                if isinstance(part, str):
                    connection.execute(part)
                else:
                    part(connection)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
        return begins
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, place: str, latest: int) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > latest:
        raise StoreBroken(
            f"{place}: a newer release wrote this database (layout {version}; this release knows {latest})",
            "upgrade the-loop; nothing was changed",
        )
    return version
