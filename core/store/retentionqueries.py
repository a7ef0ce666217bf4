"""The statements that remove what is over for long, by name.

As in `queries` the conditions repeat those of the partial indexes letter by letter.
"""

_OPEN_STATES = "('pending', 'queued', 'claimed', 'pasted', 'submitted')"
_OPEN = f"(state IN {_OPEN_STATES} AND final = 0)"
_THESE = "(SELECT value FROM json_each(?))"

# ---------------------------------------------------------------- messages

_EXISTS = "(:unknown OR uid IN (SELECT value FROM json_each(:uids)))"  #: its session, as far as is known
#: evidence, the end of a turn, or a start that asks which conversation a message was meant for, may still be about it
_NEEDED = f"""(
    state = 'accepted'
    OR (state = 'unknown' AND (:unknown OR instance IN (SELECT value FROM json_each(:instances))) AND NOT EXISTS (
        SELECT 1 FROM inbox AS later WHERE later.uid = inbox.uid AND later.seq > inbox.seq AND later.state = 'unknown'
    ))
    OR (kind = 'boot' AND (
        EXISTS (SELECT 1 FROM inbox AS other WHERE other.uid = inbox.uid AND other.state = 'accepted')
        OR EXISTS (
            SELECT 1 FROM inbox AS other INDEXED BY inbox_open
            WHERE other.uid = inbox.uid AND other.state IN {_OPEN_STATES} AND other.final = 0
        )
    ))
    OR EXISTS (
        SELECT 1 FROM activities
        WHERE uid = inbox.uid AND state <> 'idle' AND turn_started_at <= inbox.updated_at
    )
)"""
#: a harness repeats its notice of a background task, or a sweep comes past the reply
_KNOWN_AGAIN = f"""(
    (kind = 'notice' AND {_EXISTS} AND task <> '')
    OR (from_kind IS NOT NULL AND EXISTS (
        SELECT 1 FROM bindings
        WHERE channel_kind = from_kind AND team = from_team AND channel = from_channel AND thread = from_thread
            AND from_ts >= swept_before
    ))
)"""
OVER_MESSAGES = f"""
    SELECT id, kept FROM (
        SELECT id, text, updated_at, {_KNOWN_AGAIN} AS kept FROM inbox INDEXED BY inbox_over
        WHERE kind NOT IN ('tick', 'keep-alive-tick') AND NOT {_OPEN} AND updated_at < :before
            AND NOT ({_EXISTS} AND {_NEEDED})
    )
    WHERE NOT (kept AND text = '') ORDER BY updated_at LIMIT :most
"""
BLANK_MESSAGES = f"UPDATE inbox SET text = '' WHERE id IN {_THESE}"
DROP_MESSAGES = f"DELETE FROM inbox WHERE id IN {_THESE}"
DROP_MARKS = f"DELETE FROM marks WHERE message IN {_THESE}"
DROP_FILES = f"DELETE FROM attachments WHERE message IN {_THESE}"

# ---------------------------------------------------------------- requests

DROP_REQUESTS = """
    DELETE FROM requests WHERE id IN (
        SELECT id FROM requests
        WHERE state <> 'open' AND NOT (state = 'answered' AND told = 0) AND coalesce(settled_at, expires_at) < ? LIMIT ?
    )
"""

# ---------------------------------------------------------------- posts

_TARGETS = """
    json_each(outbox.buttons) AS button,
    json_each('["' || replace(json_extract(button.value, '$[1]'), ' ', '","') || '"]') AS target
"""
#: what it is about is there still; an edit or a part of it is; a part beside it is on its way; it tells of a start
_NEEDED_POST = f"""(
    EXISTS (SELECT 1 FROM inbox WHERE id = outbox.about)
    OR EXISTS (SELECT 1 FROM outbox AS other WHERE other.id = outbox.about AND other.seq <> outbox.seq)
    OR (buttons <> '' AND EXISTS (
        SELECT 1 FROM {_TARGETS}
        WHERE EXISTS (SELECT 1 FROM inbox WHERE id = target.value)
            OR EXISTS (SELECT 1 FROM requests WHERE id = target.value)
    ))
    OR EXISTS (SELECT 1 FROM outbox AS edit WHERE edit.edits <> '' AND edit.edits = outbox.id)
    OR EXISTS (SELECT 1 FROM outbox AS part WHERE part.part_of = outbox.seq)
    OR EXISTS (
        SELECT 1 FROM outbox AS part WHERE part.part_of = outbox.part_of AND part.state IN ('pending', 'sending')
    )
    OR starts IN (SELECT value FROM json_each(:instances))
)"""
DROP_OVER_POSTS = f"""
    DELETE FROM outbox WHERE seq IN (
        SELECT seq FROM outbox INDEXED BY outbox_over
        WHERE state NOT IN ('pending', 'sending') AND changed_at < :before AND NOT {_NEEDED_POST}
        ORDER BY changed_at LIMIT :most
    )
"""

# ---------------------------------------------------------------- small things

DROP_COUNTED = (
    "DELETE FROM spoken WHERE rowid IN (SELECT rowid FROM spoken WHERE at < ? LIMIT ?)",
    "DELETE FROM ended_turns WHERE (instance, turn) IN (SELECT instance, turn FROM ended_turns WHERE at < ? LIMIT ?)",
    "DELETE FROM restarts WHERE rowid IN (SELECT rowid FROM restarts WHERE at < ? LIMIT ?)",
)
DROP_REFUSED = """
    DELETE FROM refused_replies WHERE key IN (
        SELECT key FROM refused_replies AS reply
        WHERE NOT EXISTS (SELECT 1 FROM bindings WHERE channel = reply.channel AND thread = reply.thread) LIMIT ?
    )
"""
PAST_ENDS = "SELECT instance FROM ends WHERE due_at IS NULL AND instance NOT IN (SELECT value FROM json_each(?))"
DROP_ENDS = f"DELETE FROM ends WHERE due_at IS NULL AND instance IN {_THESE}"
REPORTERS = """
    WITH RECURSIVE each (instance) AS (
        SELECT min(instance) FROM reports
        UNION ALL
        SELECT (SELECT min(instance) FROM reports WHERE instance > each.instance) FROM each WHERE instance IS NOT NULL
    )
    SELECT instance FROM each WHERE instance IS NOT NULL
"""
DROP_REPORTS = """
    DELETE FROM reports WHERE instance = :instance AND report IN (
        SELECT report FROM reports
        WHERE instance = :instance AND report < :before AND report NOT IN (SELECT value FROM json_each(:spooled))
        LIMIT :most
    )
"""
