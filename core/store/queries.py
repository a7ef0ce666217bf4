"""Every statement that the stores send, by name, with those that remove what is old.

The conditions repeat those of the partial indexes letter by letter: SQLite uses such an index only then. INDEXED BY
stands where it would otherwise choose another index, which also goes through every settled row.
"""

from collections.abc import Mapping

_WAITING = "state IN ('pending', 'queued')"
_OPEN = "state IN ('pending', 'queued', 'claimed', 'pasted', 'submitted') AND final = 0"
_OPEN_MESSAGE = "inbox.state IN ('pending', 'queued', 'claimed', 'pasted', 'submitted') AND inbox.final = 0"
_IN_THREAD = "from_kind = :kind AND from_team = :team AND from_channel = :channel AND from_thread = :thread"
_TICK = "kind IN ('tick', 'keep-alive-tick')"
_MESSAGE = "kind IN ('say', 'reply')"
_OPEN_POST = "state IN ('pending', 'sending')"

# ---------------------------------------------------------------- inbox

ADD_MESSAGE = """
    INSERT INTO inbox (id, key, uid, name, generation, kind, actor, who, via, marker, text, raw, order_us,
                       created_at, from_kind, from_team, from_channel, from_thread, from_ts, again_of, run, task,
                       state, reason, updated_at)
    VALUES (:id, :key, :uid, :name, :generation, :kind, :actor, :who, :via, :marker, :text, :raw, :order_us,
            :created_at, :from_kind, :from_team, :from_channel, :from_thread, :from_ts, :again_of, :run, :task,
            'pending', '', :updated_at)
    ON CONFLICT (key) DO NOTHING
"""
MESSAGE = "SELECT * FROM inbox WHERE id = ?"
MESSAGE_OF_KEY = "SELECT * FROM inbox WHERE key = ?"
UNSETTLED = f"""
    SELECT * FROM inbox INDEXED BY inbox_open WHERE uid = ? AND {_OPEN} ORDER BY {_WAITING}, {_TICK}, order_us, seq
    LIMIT ?
"""
LATEST_MESSAGES = "SELECT * FROM inbox INDEXED BY inbox_of_session WHERE uid = ? ORDER BY seq DESC LIMIT ?"
WITH_STATES = "SELECT * FROM inbox WHERE uid = ? AND state IN ({states}) ORDER BY seq DESC LIMIT ?"
WITH_STATE: Mapping[str, str] = {  #: those that have an index of their own, which serves no parameter
    state: f"""
        SELECT * FROM inbox INDEXED BY inbox_{state} WHERE uid = ? AND state = '{state}' ORDER BY seq DESC LIMIT ?
    """
    for state in ("accepted", "unknown")
}
ATTEMPTED = """
    SELECT * FROM inbox WHERE uid = ? AND state IN ({states}) AND attempt > 0 AND final = 0 ORDER BY seq DESC LIMIT ?
"""
LAST_TAKEN = """
    SELECT * FROM inbox
    WHERE uid = ? AND created_at < ? AND kind <> 'notice' AND state IN ('submitted', 'accepted', 'confirmed', 'unknown')
    ORDER BY seq DESC LIMIT 1
"""
BUSY_UIDS = f"SELECT DISTINCT uid FROM inbox WHERE {_OPEN} ORDER BY uid"
ACCEPTED_UIDS = "SELECT DISTINCT uid FROM inbox WHERE state = 'accepted' ORDER BY uid"
WAITING_COUNTS = f"SELECT uid, count(*) AS waiting FROM inbox WHERE {_OPEN} AND {_WAITING} GROUP BY uid"
WAITING_COUNT = f"SELECT count(*) AS waiting FROM inbox INDEXED BY inbox_open WHERE uid = ? AND {_OPEN} AND {_WAITING}"
STILL = "SELECT id FROM inbox WHERE id IN (SELECT value FROM json_each(?)) AND state = ?"
CHECK_MESSAGES = f"""
    SELECT * FROM inbox WHERE {_OPEN} OR state NOT IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
MESSAGE_TALLY = "SELECT state, count(*) AS rows FROM inbox GROUP BY state"
ADVANCE_MESSAGE = """
    UPDATE inbox SET state = :state, reason = :reason, reason_args = :reason_args, updated_at = :updated_at,
        instance = :instance, attempt = :attempt, attempt_deadline = :attempt_deadline, pasted_at = :pasted_at,
        submitted_at = :submitted_at, submits = :submits, stashed = :stashed, final = :final, queued_at = :queued_at
    WHERE id = :id AND state = :was_state AND attempt = :was_attempt
"""
OF_THREAD = f"""
    SELECT from_ts, 1 AS waits FROM inbox INDEXED BY inbox_open
    WHERE uid = :uid AND {_OPEN} AND {_WAITING} AND {_IN_THREAD}
    UNION
    SELECT from_ts, 0 AS waits FROM (SELECT * FROM inbox WHERE uid = :uid ORDER BY seq DESC LIMIT :latest)
    WHERE NOT {_WAITING} AND {_IN_THREAD}
    ORDER BY 1
"""
CLOSED = f"""
    SELECT EXISTS (
        SELECT 1 FROM inbox INDEXED BY inbox_of_session
        WHERE uid = :uid AND state = 'refused' AND reason = :full AND {_IN_THREAD} AND seq > (
            SELECT min(seq) FROM inbox INDEXED BY inbox_open
            WHERE uid = :uid AND {_OPEN} AND {_WAITING} AND {_MESSAGE} AND reason <> :confirm
        )
    ) AS closed
"""
WAITING_IDS = (
    f"SELECT id FROM inbox INDEXED BY inbox_open WHERE uid = ? AND {_OPEN} AND {_WAITING} ORDER BY order_us, seq"
)
CANCEL_WAITING = f"""
    UPDATE inbox SET state = 'cancelled', reason = ?, reason_args = ?, updated_at = ?
    WHERE uid = ? AND {_OPEN} AND {_WAITING}
"""

# ---------------------------------------------------------------- outbox

ADD_POST = """
    INSERT INTO outbox (id, key, kind, uid, name, channel_kind, text, channel, thread, buttons, edits, path,
                        only_for, about, starts, note_group, note_start, note_edits, note_count, state, changed_at,
                        added_at)
    VALUES (:id, :key, :kind, :uid, :name, :channel_kind, :text, :channel, :thread, :buttons, :edits, :path,
            :only_for, :about, :starts, :note_group, :note_start, :note_edits, :note_count, 'pending', :now,
            :now)
    ON CONFLICT (key) DO NOTHING
"""
OPEN_POSTS = f"SELECT * FROM outbox WHERE channel_kind = ? AND {_OPEN_POST} ORDER BY seq"
POST = "SELECT * FROM outbox WHERE seq = ?"
POST_OF_ID = "SELECT * FROM outbox WHERE id = ?"
LATEST_POSTS = """
    SELECT * FROM outbox
    WHERE uid = ? AND kind IN ({kinds}) AND part_of IS NULL AND only_for = '' ORDER BY seq DESC LIMIT ?
"""
POST_WITH_BUTTONS = "SELECT * FROM outbox WHERE ts = ? AND buttons <> '' AND channel_kind = ? ORDER BY seq DESC"


def due_posts(ranks: Mapping[str, int]) -> str:
    """Return the query of the first open post of each session. `ranks`: the order among the kinds of posts."""
    rank = f"CASE kind {' '.join(f'WHEN {kind!r} THEN {rank}' for kind, rank in ranks.items())} ELSE 3 END"
    return f"""
        SELECT * FROM (
            SELECT *, {rank} AS rank,
                row_number() OVER (PARTITION BY uid ORDER BY {rank}, coalesce(part_of, seq), part) AS place
            FROM outbox WHERE channel_kind = ? AND {_OPEN_POST} AND seq NOT IN (SELECT value FROM json_each(?))
        )
        WHERE place = 1 AND (not_before IS NULL OR not_before <= ?)
        ORDER BY rank, coalesce(part_of, seq), part
    """


EDIT_INSTEAD = """
    UPDATE outbox SET kind = 'refresh', changed_at = ?
    WHERE channel_kind = ? AND uid = ? AND kind = 'root' AND state = 'pending'
"""
ADD_PART = """
    INSERT INTO outbox (id, key, kind, uid, name, channel_kind, text, channel, thread, state, part_of, part, changed_at)
    VALUES (:id, :key, :kind, :uid, :name, :channel_kind, :text, :channel, :thread, 'pending', :part_of, :part, :now)
"""
LATEST_NOTE = """
    SELECT * FROM outbox WHERE note_group = ? AND note_group <> '' ORDER BY note_start DESC, note_edits DESC LIMIT 1
"""
OVERTAKEN = (
    f"SELECT 1 FROM outbox WHERE channel_kind = ? AND uid = ? AND seq > ? AND {_OPEN_POST} AND edits = ? LIMIT 1"
)
NOTE_WAIT = """
    INSERT INTO note_waits (note, message, reason, reason_args, remedy, doubtful) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (note, message) DO UPDATE
    SET reason = excluded.reason, reason_args = excluded.reason_args, remedy = excluded.remedy, ended = ''
"""
MOVE_WAIT = "UPDATE note_waits SET ended = ? WHERE message = ? AND note <> ? AND doubtful = 0"
TELL_ANEW = """
    UPDATE note_waits SET reason = :reason, reason_args = :reason_args, remedy = :remedy, ended = :anew
    WHERE doubtful AND ended = '' AND reason = :before
        AND message IN (SELECT id FROM inbox WHERE uid = :uid AND state = 'unknown')
"""
WAITS_IN = """
    SELECT note_waits.* FROM note_waits LEFT JOIN inbox ON inbox.id = note_waits.message
    WHERE note = ? ORDER BY inbox.order_us, inbox.seq
"""
END_WAIT = "UPDATE note_waits SET ended = ? WHERE note = ? AND message = ?"
FORGET_WAIT = "DELETE FROM note_waits WHERE note = ? AND message = ?"
# as core.session.notes tells how a wait ended: what only a hook has received stands as it did
OUTDATED_NOTES = f"""
    SELECT DISTINCT note FROM note_waits JOIN outbox ON outbox.id = note AND outbox.channel_kind = :chat
    WHERE ended IN (:moved, :anew) OR ended IN ('', :queued, :back) AND NOT EXISTS (
        SELECT 1 FROM inbox WHERE inbox.id = message AND CASE
            WHEN inbox.state = 'accepted' THEN ended = :queued OR queued_at IS NULL
            WHEN ended = '' AND doubtful THEN inbox.state = 'unknown'
            ELSE ended <> :queued AND {_OPEN_MESSAGE} END
    )
    ORDER BY note
"""
SAID_AGAIN = (
    f"SELECT 1 FROM outbox WHERE channel_kind = ? AND uid = ? AND seq > ? AND {_OPEN_POST} AND kind = ? AND text = ?"
    " AND edits = '' LIMIT 1"
)
CHECK_POSTS = f"SELECT * FROM outbox WHERE {_OPEN_POST} OR state NOT IN (SELECT value FROM json_each(?)) ORDER BY seq"
POST_TALLY = "SELECT state, count(*) AS rows FROM outbox GROUP BY state"
ADVANCE_POST = """
    UPDATE outbox SET state = :state, ts = :ts, reason = :reason, reason_args = :reason_args,
        not_before = :not_before, attempts = :attempts, changed_at = :now
    WHERE seq = :seq AND state = :was_state AND attempts = :was_attempts
"""
DROP_POSTS = f"""
    UPDATE outbox SET state = 'failed', reason = ?, reason_args = ?, changed_at = ?
    WHERE uid = ? AND {_OPEN_POST} AND kind <> 'closing'
"""

# ---------------------------------------------------------------- bindings

BIND = """
    INSERT INTO bindings (channel_kind, team, channel, thread, uid, name, created_at, begins, link, head)
    VALUES (:channel_kind, :team, :channel, :thread, :uid, :name, :created_at, :begins, :link, :head)
"""
BINDING_OF_THREAD = "SELECT * FROM bindings WHERE channel_kind = ? AND team = ? AND channel = ? AND thread = ?"
BINDING_OF_SESSION = "SELECT * FROM bindings WHERE uid = ? AND channel_kind = ?"
BINDINGS = "SELECT * FROM bindings WHERE channel_kind = ? ORDER BY name, uid"
LATEST_BINDING = "SELECT * FROM bindings WHERE uid = ? ORDER BY created_at DESC LIMIT 1"
ALL_BINDINGS = "SELECT * FROM bindings ORDER BY name, uid, created_at"
UNBIND = "DELETE FROM bindings WHERE uid = ? AND channel_kind = ?"
LEAVE_THREAD = "INSERT OR REPLACE INTO left_threads (channel_kind, uid, channel, thread) VALUES (?, ?, ?, ?)"
LEFT_THREAD = "SELECT 1 FROM left_threads WHERE channel_kind = ? AND uid = ? AND channel = ? AND thread = ?"
LEFT_BY = "SELECT uid FROM left_threads"
FORGET_LEFT = "DELETE FROM left_threads WHERE uid = ?"
_OF_THREAD = "channel_kind = ? AND team = ? AND channel = ? AND thread = ? AND uid = ?"
MOVE_CURSOR = f"UPDATE bindings SET cursor = ? WHERE {_OF_THREAD} AND cursor < ?"
NOTE_SHARING = f"UPDATE bindings SET shared = ? WHERE {_OF_THREAD} AND shared IS NULL"
FORGET_REFUSED = "DELETE FROM refused_replies WHERE channel = ? AND thread = ? AND ts < ?"
NOTE_SWEPT = f"UPDATE bindings SET swept_before = ? WHERE {_OF_THREAD} AND swept_before < ?"
REFUSE_REPLY = "INSERT INTO refused_replies (key, channel, thread, ts) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
REFUSED_REPLY = "SELECT 1 FROM refused_replies WHERE key = ?"

# ---------------------------------------------------------------- files of messages

ADD_FILES = "INSERT INTO attachments (message, files) VALUES (?, ?)"
FILES_OF = "SELECT files, told FROM attachments WHERE message = ?"
FILES_TO_FETCH = """
    SELECT attachments.message, attachments.files, inbox.name
    FROM attachments JOIN inbox ON inbox.id = attachments.message
    WHERE attachments.told IS NULL AND inbox.state = 'queued' AND inbox.from_kind = ?
    ORDER BY inbox.seq
"""
TELL_FILES = "UPDATE attachments SET told = ? WHERE message = ? AND told IS NULL"
EDIT_TEXT = f"""
    UPDATE inbox SET text = ?, attempt = attempt + 1, updated_at = ?
    WHERE id = ? AND {_WAITING} AND state = ? AND attempt = ?
"""

# ---------------------------------------------------------------- activities

ACTIVITY = "SELECT * FROM activities WHERE uid = ?"
ACTIVITIES = "SELECT * FROM activities"
PUT_ACTIVITY = """
    INSERT OR REPLACE INTO activities
        (uid, instance, state, since, pending_tasks, reason, reason_args, remarks, turn_started_at,
        last_report_at, mode, turn, turn_ended_at, ended_turn, shown, version, untried, failed, composer_at,
        task_names, cut_off_tasks, earlier_tasks, silence, silent_since, silent_why, retrying)
    VALUES (:uid, :instance, :state, :since, :pending_tasks, :reason, :reason_args, :remarks,
        :turn_started_at, :last_report_at, :mode, :turn, :turn_ended_at, :ended_turn, :shown, :version,
        :untried, :failed, :composer_at, :task_names, :cut_off_tasks, :earlier_tasks, :silence,
        :silent_since, :silent_why, :retrying)
"""
FORGET_ACTIVITY = "DELETE FROM activities WHERE uid = ?"
WORKING = "SELECT uid, instance, told FROM workings WHERE uid = ?"
WORKINGS = "SELECT uid, instance, told FROM workings"
PUT_WORKING = "INSERT OR REPLACE INTO workings (uid, instance, told) VALUES (?, ?, ?)"
FORGET_WORKING = "DELETE FROM workings WHERE uid = ?"
TOUCH_MESSAGE = """
    INSERT INTO last_messages (uid, at) VALUES (?, ?) ON CONFLICT (uid) DO UPDATE SET at = max(at, excluded.at)
"""
LAST_MESSAGES = "SELECT uid, at FROM last_messages"
FORGET_MESSAGE = "DELETE FROM last_messages WHERE uid = ?"

# ---------------------------------------------------------------- reactions and progress

_MARKED = """
    SELECT inbox.id, inbox.state, inbox.final, inbox.from_channel, inbox.from_ts, coalesce(marks.over, '') AS over,
        coalesce(marks.shown, '') AS shown, max(inbox.updated_at, coalesce(marks.at, '')) AS at,
        coalesce(marks.asked, '') AS asked, (
            SELECT shown || ',' || asked FROM marks AS earlier
            WHERE coalesce(marks.shown, '') = '' AND earlier.message = inbox.again_of
        ) AS earlier
"""
_LATEST = "NOT EXISTS (SELECT 1 FROM inbox AS later WHERE later.again_of = inbox.id AND later.again_of <> '')"
MARKS_CHANGED = f"""
    {_MARKED} FROM inbox LEFT JOIN marks ON marks.message = inbox.id
    WHERE inbox.from_kind = :kind AND inbox.updated_at >= :since AND {_LATEST}
    UNION {_MARKED} FROM marks INDEXED BY marks_at CROSS JOIN inbox ON inbox.id = marks.message
    WHERE inbox.from_kind = :kind AND marks.at >= :since AND {_LATEST}
    ORDER BY at
"""
MARKS_TAKEN = """
    SELECT id FROM inbox LEFT JOIN marks ON marks.message = inbox.id
    WHERE uid = :uid AND instance = :instance AND state = 'confirmed' AND kind IN ('say', 'reply')
        AND updated_at >= :since AND (queued_at IS NULL OR updated_at <= :until) AND coalesce(over, '') = ''
    ORDER BY seq
"""
_GONE = "(activities.uid IS NULL OR activities.instance <> inbox.instance OR ends.told_at IS NOT NULL)"
MARKS_LEFT = f"""
    SELECT inbox.id, {_GONE} OR activities.reason = :cut_off OR activities.failed <> '' AS failed
    FROM (
        SELECT message FROM marks INDEXED BY marks_taken WHERE shown = 'taken' AND over = ''
        UNION SELECT id FROM inbox INDEXED BY inbox_from_chat WHERE from_kind IS NOT NULL AND updated_at >= :since
    ) AS taken
    JOIN inbox ON inbox.id = taken.message AND inbox.state = 'confirmed'
    LEFT JOIN marks ON marks.message = inbox.id
    LEFT JOIN activities ON activities.uid = inbox.uid
    LEFT JOIN ends ON ends.instance = inbox.instance
    WHERE coalesce(marks.over, '') = '' AND ({_GONE} OR (activities.state = 'idle' AND marks.shown = 'taken'))
"""
MARK_OVER = """
    INSERT INTO marks (message, over, at) VALUES (?, ?, ?)
    ON CONFLICT (message) DO UPDATE SET over = excluded.over, at = excluded.at WHERE over = ''
"""
MARK_FAILED_LATE = """
    INSERT INTO marks (message, over, at) VALUES (?, ?, ?)
    ON CONFLICT (message) DO UPDATE SET over = excluded.over, at = excluded.at WHERE over <> excluded.over
"""
MARK_ASKED = """
    INSERT INTO marks (message, asked, at) VALUES (:message, :asked, :at)
    ON CONFLICT (message) DO UPDATE SET asked = asked || ',' || excluded.asked
"""
MARK_FAILED = "SELECT 1 FROM marks WHERE message = ? AND over = ?"
MARK_SHOWN = """
    INSERT INTO marks (message, shown, at) VALUES (:message, :shown, :at)
    ON CONFLICT (message) DO UPDATE SET shown = excluded.shown, asked = '', at = excluded.at
"""
PROGRESS = "SELECT * FROM progress WHERE uid = ?"
PUT_PROGRESS = """
    INSERT OR REPLACE INTO progress (uid, turn, lines, steps, told, asked, channel, ts)
    VALUES (:uid, :turn, :lines, :steps, :told, :asked, :channel, :ts)
"""
PROGRESS_DUE = "SELECT * FROM progress WHERE told < steps ORDER BY uid"
PROGRESS_ASKED = "UPDATE progress SET asked = 1 WHERE uid = ? AND turn = ?"
PROGRESS_TOLD = "UPDATE progress SET told = ?, channel = ?, ts = ? WHERE uid = ? AND turn = ?"
FORGET_PROGRESS = "DELETE FROM progress WHERE uid = ?"

# ---------------------------------------------------------------- tasks

TASK = "SELECT * FROM tasks WHERE key = ?"
ADD_TASK = """
    INSERT INTO tasks (key, channel_kind, name, asked, state, created_at) VALUES (?, ?, ?, ?, 'pending', ?)
    ON CONFLICT (key) DO NOTHING
"""
OPEN_TASKS = """
    SELECT * FROM tasks WHERE channel_kind = ? AND state IN ('pending', 'withdrawn', 'running') ORDER BY created_at, key
"""
MOVE_TASK = """
    UPDATE tasks SET state = :to, ends_at = :ends_at, asked = :asked, attempts = attempts + 1
    WHERE key = :key AND state = :from
"""
TRIED_TASK = "UPDATE tasks SET attempts = attempts + 1 WHERE key = ?"
ASK_TASK = "UPDATE tasks SET asked = ? WHERE key = ? AND state = 'pending'"
FORGET_TASKS = "DELETE FROM tasks WHERE state IN ('over', 'failed') AND created_at < ?"

# ---------------------------------------------------------------- live posts and the steps of a turn

FORGET_OLD_STEPS = "DELETE FROM turn_steps WHERE uid = ? AND turn <> ?"
FORGET_STEPS = "DELETE FROM turn_steps WHERE uid = ?"
ADD_STEP = """
    INSERT INTO turn_steps (uid, turn, call, tool, detail, state) VALUES (:uid, :turn, :call, :tool, :detail, :state)
"""
END_STEP = """
    UPDATE turn_steps SET state = :state WHERE number = (
        SELECT number FROM turn_steps
        WHERE uid = :uid AND turn = :turn AND state = 'running' AND tool = :tool AND (:call = '' OR call = :call)
        ORDER BY number LIMIT 1
    )
"""
STEPS = "SELECT * FROM turn_steps WHERE uid = ? AND turn = ? ORDER BY number"
LIVE_POSTS = "SELECT * FROM live_posts WHERE channel_kind = ? ORDER BY opened_at, id"
LIVE_POST = "SELECT * FROM live_posts WHERE id = ?"
LIVE_OF_POST = "SELECT * FROM live_posts WHERE post = ? AND post <> ''"
READER = """
    SELECT actor FROM inbox
    WHERE uid = ? AND instance = ? AND from_kind = ? AND kind = 'reply' AND state IN ('accepted', 'confirmed')
        AND updated_at >= ? ORDER BY seq LIMIT 1
"""
ADD_LIVE = """
    INSERT INTO live_posts
        (id, uid, turn, channel_kind, channel, thread, reader, ts, state, opened_at, round, shown, post)
    VALUES (:id, :uid, :turn, :channel_kind, :channel, :thread, :reader, :ts, :state, :opened_at, :round, :shown, :post)
"""
MOVE_LIVE = "UPDATE live_posts SET state = ?, ts = ? WHERE id = ?"
SHOW_LIVE = "UPDATE live_posts SET shown = ? WHERE id = ?"
LIVE_ANSWERED = """
    UPDATE live_posts SET post = ? WHERE uid = ? AND turn = ? AND post = '' AND state IN ('opening', 'open', 'parked')
"""
LIVE_FOLLOWS = "UPDATE live_posts SET post = ? WHERE id = ?"
FORGET_LIVE = "DELETE FROM live_posts WHERE id = ?"
LEAVE_LIVE = "UPDATE live_posts SET state = 'removing' WHERE uid = ?"

# ---------------------------------------------------------------- spool reports

ADD_REPORT = "INSERT INTO reports (instance, report) VALUES (?, ?) ON CONFLICT DO NOTHING"
FORGET_REPORTS = "DELETE FROM reports WHERE instance = ?"
TELL_TURN_ENDED = "INSERT INTO ended_turns (instance, turn, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
FORGET_ENDED_TURNS = "DELETE FROM ended_turns WHERE instance = ?"

# ---------------------------------------------------------------- which requests of a chat were heard

HEAR = "INSERT INTO requests_heard (channel_kind, mark, until) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
UNHEAR = "DELETE FROM requests_heard WHERE channel_kind = ? AND mark = ?"
FORGET_HEARD = "DELETE FROM requests_heard WHERE until < ?"

# ---------------------------------------------------------------- answers to requests under a key

FORGET_ANSWERED = "DELETE FROM answered WHERE begun_at < ?"
BEGIN_ANSWERED = "INSERT INTO answered (who, key, digest, begun_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
ANSWERED = "SELECT digest, status, body FROM answered WHERE who = ? AND key = ?"
KEEP_ANSWERED = "UPDATE answered SET status = ?, body = ? WHERE who = ? AND key = ?"
RELEASE_ANSWERED = "DELETE FROM answered WHERE who = ? AND key = ?"

# ---------------------------------------------------------------- what the supervisor remembers

END = "SELECT * FROM ends WHERE instance = ?"
DUE_ENDS = "SELECT * FROM ends WHERE due_at IS NOT NULL ORDER BY due_at, instance"
LEAVE = """
    INSERT INTO ends (instance, uid, by_person) VALUES (?, ?, 1) ON CONFLICT (instance) DO UPDATE SET by_person = 1
"""
TELL_END = """
    INSERT INTO ends (instance, uid, told_at, due_at, counted) VALUES (:instance, :uid, :at, :due_at, :counted)
    ON CONFLICT (instance) DO UPDATE SET told_at = :at, due_at = :due_at, counted = :counted WHERE told_at IS NULL
"""
DROP_EARLIER_ENDS = "DELETE FROM ends WHERE uid = ? AND instance <> ? AND told_at IS NOT NULL AND due_at IS NULL"
PUT_OFF_END = "UPDATE ends SET due_at = ? WHERE instance = ?"
PLAN_END = "UPDATE ends SET due_at = ?, counted = 1 WHERE instance = ?"
DROP_EARLIER_RESTARTS = "DELETE FROM restarts WHERE uid = ? AND at < ?"
COUNT_RESTART = "INSERT INTO restarts (uid, at) VALUES (?, ?)"
RESTARTS = "SELECT at FROM restarts WHERE uid = ? AND at > ? ORDER BY at"
ANNOUNCED = "SELECT * FROM announced WHERE uid = ?"
ANNOUNCE = "INSERT OR REPLACE INTO announced (uid, instance, idle_since, at, stage) VALUES (?, ?, ?, ?, ?)"
FORGET_WATCHED = (
    "DELETE FROM ends WHERE uid = ?",
    "DELETE FROM restarts WHERE uid = ?",
    "DELETE FROM announced WHERE uid = ?",
)

# ---------------------------------------------------------------- requests

ADD_REQUEST = """
    INSERT INTO requests (id, key, uid, name, instance, agent, kind, payload, state, asked_at, expires_at)
    VALUES (:id, :key, :uid, :name, :instance, :agent, :kind, :payload, 'open', :asked_at, :expires_at)
    ON CONFLICT (instance, key) DO NOTHING
"""
REQUEST = "SELECT * FROM requests WHERE id = ?"
REQUEST_OF_KEY = "SELECT * FROM requests WHERE instance = ? AND key = ?"
OPEN_REQUESTS = """
    SELECT * FROM requests WHERE state = 'open' AND (:uid IS NULL OR uid = :uid) ORDER BY asked_at, id
"""
UNTOLD_REQUESTS = "SELECT * FROM requests WHERE state = 'answered' AND told = 0 ORDER BY asked_at, id"
MOVE_REQUEST = """
    UPDATE requests SET state = :state, allowed = :allowed, answers = :answers, answered_by = :by, reason = :reason,
        settled_at = :settled_at, told = :told
    WHERE id = :id AND state = :was_state AND json_array_length(answers) = :was_answered AND told = :was_told
"""
FORGET_REQUESTS = "DELETE FROM requests WHERE uid = ?"
DROP_SPOKEN = "DELETE FROM spoken WHERE uid = ? AND at < ? AND kind = ?"
SPOKEN = "SELECT count(*) AS posts FROM spoken WHERE uid = ? AND kind = ?"
SPEAK = "INSERT INTO spoken (uid, at, kind) VALUES (?, ?, ?)"
FORGET_SPOKEN = "DELETE FROM spoken WHERE uid = ?"

# ---------------------------------------------------------------- loops

_OPEN_LOOP = "status IN ('active', 'paused')"
_FIRES = "status = 'active' AND held IS NULL"
_IDLE_LOOP = "NOT EXISTS (SELECT 1 FROM loop_runs WHERE loop_id = loops.id AND state <> 'over')"
#: One that ends far ahead was taken before the clock was set back, and is nobody's who lives.
_LAPSED = "loop_runs.state = 'claimed' AND NOT (loop_runs.lease_until > :now AND loop_runs.lease_until <= :ahead)"

ADD_LOOP = f"""
    INSERT INTO loops (id, uid, name, instruction, mode, created_by, created_at, interval_us, cron, time_zone,
                       keep_alive, max_runs, status, held, held_until, run_count, deferrals, failures, last_run_at,
                       last_result, last_error, next_run_at, reason, ended_at, declared, digest, revision, held_at,
                       asked)
    SELECT :id, :uid, :name, :instruction, :mode, :created_by, :created_at, :interval_us, :cron, :time_zone,
           :keep_alive, :max_runs, :status, :held, :held_until, :run_count, :deferrals, :failures, :last_run_at,
           :last_result, :last_error, :next_run_at, :reason, :ended_at, :declared, :digest, :revision,
           :held_at, :asked
    WHERE (:most_open = 0 OR (SELECT count(*) FROM loops WHERE uid = :uid AND {_OPEN_LOOP}) < :most_open)
        AND NOT EXISTS (
            SELECT 1 FROM loops WHERE uid = :uid AND declared = :declared AND declared <> '' AND {_OPEN_LOOP}
        )
"""
LOOP = "SELECT * FROM loops WHERE id = ?"
LOOPS_OF_SESSION = f"SELECT * FROM loops WHERE uid = ? ORDER BY {_OPEN_LOOP} DESC, created_at, id"
OPEN_LOOPS = f"SELECT * FROM loops INDEXED BY loops_open WHERE {_OPEN_LOOP} ORDER BY uid, created_at, id"
LOOP_COUNTS = f"SELECT uid, count(*) AS loops FROM loops WHERE {_OPEN_LOOP} GROUP BY uid"
HOLDS_OPEN = f"SELECT 1 FROM loops WHERE uid = ? AND {_OPEN_LOOP} AND status = 'active' AND keep_alive = 1 LIMIT 1"
CHANGE_LOOP = """
    UPDATE loops SET name = :name, instruction = :instruction, mode = :mode, interval_us = :interval_us, cron = :cron,
        time_zone = :time_zone, keep_alive = :keep_alive, max_runs = :max_runs, status = :status, held = :held,
        held_until = :held_until, run_count = :run_count, deferrals = :deferrals, failures = :failures,
        last_run_at = :last_run_at, last_result = :last_result, last_error = :last_error, next_run_at = :next_run_at,
        reason = :reason, ended_at = :ended_at, declared = :declared, digest = :digest, revision = :revision + 1,
        held_at = :held_at, asked = :asked
    WHERE id = :id AND revision = :revision
"""
NEXT_DUE = f"""
    SELECT min(at) AS at FROM (
        SELECT * FROM (
            SELECT next_run_at AS at FROM loops INDEXED BY loops_due
            WHERE {_FIRES} AND next_run_at IS NOT NULL AND {_IDLE_LOOP} ORDER BY next_run_at LIMIT 1
        )
        UNION ALL SELECT min(lease_until) FROM loop_runs INDEXED BY loop_runs_claimed WHERE state = 'claimed'
    )
"""
EVERY_DUE = f"""
    SELECT next_run_at AS at FROM loops INDEXED BY loops_due
    WHERE {_FIRES} AND next_run_at IS NOT NULL AND {_IDLE_LOOP}
    UNION ALL SELECT lease_until FROM loop_runs INDEXED BY loop_runs_claimed WHERE state = 'claimed'
"""
DUE_LOOPS = f"""
    SELECT *, row_number() OVER (PARTITION BY uid ORDER BY next_run_at, id) AS turn FROM loops INDEXED BY loops_due
    WHERE {_FIRES} AND next_run_at <= :now AND {_IDLE_LOOP} ORDER BY turn, next_run_at, id LIMIT :most
"""
COUNT_CLAIM = "UPDATE loops SET claims = claims + 1 WHERE id = ?"
ADD_RUN = """
    INSERT INTO loop_runs (id, loop_id, uid, slot, number, state, claimer, lease_until, updated_at)
    VALUES (:id, :loop_id, :uid, :slot, :number, :state, :claimer, :lease_until, :updated_at)
"""
LAPSED_RUNS = f"""
    SELECT loop_runs.* FROM loop_runs INDEXED BY loop_runs_claimed JOIN loops ON loops.id = loop_runs.loop_id
    WHERE {_LAPSED} AND {_FIRES} ORDER BY loop_runs.lease_until, loop_runs.id LIMIT :most
"""
DROP_LAPSED = f"""
    UPDATE loop_runs SET state = 'over', outcome = 'lapsed', updated_at = :now
    WHERE {_LAPSED} AND NOT EXISTS (SELECT 1 FROM loops WHERE loops.id = loop_runs.loop_id AND {_FIRES})
"""
ANY_LAPSED = f"SELECT 1 FROM loop_runs WHERE {_LAPSED} LIMIT 1"
HELD_LOOPS = "SELECT * FROM loops INDEXED BY loops_held WHERE status = 'active' AND held IS NOT NULL ORDER BY uid, id"
OPEN_RUNS = "SELECT * FROM loop_runs WHERE state <> 'over' ORDER BY slot, id"
OPEN_RUNS_OF = "SELECT * FROM loop_runs INDEXED BY loop_runs_going WHERE uid = ? AND state <> 'over' ORDER BY slot, id"
ANY_OPEN_RUN = "SELECT 1 FROM loop_runs INDEXED BY loop_runs_going WHERE state <> 'over' LIMIT 1"
SETTLED_RUNS = """
    SELECT loop_runs.* FROM loop_runs INDEXED BY loop_runs_going JOIN inbox ON inbox.id = loop_runs.message_id
    WHERE loop_runs.state <> 'over' AND loop_runs.state = 'sent'
        AND NOT (inbox.state IN ('pending', 'queued', 'claimed', 'pasted', 'submitted') AND inbox.final = 0)
    ORDER BY inbox.updated_at, loop_runs.id
"""
RUN = "SELECT * FROM loop_runs WHERE id = ?"
MOVE_RUN = """
    UPDATE loop_runs SET state = :state, claimer = :claimer, lease_until = :lease_until, last = :last,
        message_id = :message_id, taken_at = :taken_at, instance = :instance, outcome = :outcome, detail = :detail,
        deferred = :deferred, updated_at = :updated_at
    WHERE id = :id AND state = :was_state AND claimer = :was_claimer AND lease_until = :was_lease
"""
FORGET_LOOPS = ("DELETE FROM loop_runs WHERE uid = ?", "DELETE FROM loops WHERE uid = ?")
PRUNE_RUNS = "DELETE FROM loop_runs WHERE state = 'over' AND updated_at < ?"
_OVER_TICK = f"""
    {_TICK} AND updated_at < ? AND NOT ({_OPEN})
        AND NOT EXISTS (SELECT 1 FROM loop_runs WHERE uid = inbox.uid AND state <> 'over' AND message_id = inbox.id)
"""
OVER_TICKS = f"SELECT uid, id FROM inbox WHERE {_OVER_TICK}"
PRUNE_TICKS = f"DELETE FROM inbox WHERE {_OVER_TICK}"
PRUNE_LOOPS = """
    DELETE FROM loops WHERE ended_at IS NOT NULL AND ended_at < ?
        AND (declared = '' OR digest = '' OR EXISTS (
            SELECT 1 FROM loops AS later
            WHERE later.uid = loops.uid AND later.declared = loops.declared AND later.created_at > loops.created_at
        ))
"""


_OPEN_STATES = "('pending', 'queued', 'claimed', 'pasted', 'submitted')"
_UNFINISHED = f"(state IN {_OPEN_STATES} AND final = 0)"
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
        WHERE kind NOT IN ('tick', 'keep-alive-tick') AND NOT {_UNFINISHED} AND updated_at < :before
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
    "DELETE FROM answered WHERE (who, key) IN (SELECT who, key FROM answered WHERE begun_at < ? LIMIT ?)",
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
