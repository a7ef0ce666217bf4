"""The fleet's schema in PostgreSQL: tables, rights, and the functions by which services ask. SQL only, no connection.

What hosts and gateways do is a function each, which is one statement: it is committed whole, in one round trip, under
PostgreSQL's own time limits. The functions run with the rights of whoever calls them, so the rights are those of the
tables, by row-level security: what a role may not do by a function, it may not do by a statement of its own either.

- Every host has a role of its own, and `the_loop.me()` is the host of the role that has logged in.
- Two groups carry the rights: that of the hosts and that of the gateways. Their names are in `the_loop.fleet`, since
  roles are shared by all databases of a server.
- `LAYOUTS` are the steps in which the schema was made. A step that is released is never changed. A step adds, so that
  services of the release before go on; what nobody needs any more is taken away a release later, and `SERVES_FROM` says
  so.
"""

from __future__ import annotations

from core.fleet.exchange import (
    ANSWER_SECONDS,
    BLOB_SECONDS,
    SILENT_SECONDS,
)

OLDEST_LAYOUT = 1  #: that this release's services can work with

# --- what functions answer with: codes of ours, in a class that SQL does not use --------------------------------------

EVICTED = "TL001"
SECOND = "TL002"  #: detail: how many seconds ago the other incarnation was heard of
LEASE_LOST = "TL003"
UNKNOWN_HOST = "TL004"  #: detail: the host
ELSEWHERE = "TL005"  #: detail: the uid and the host, with a tab between them
PLACE = "TL006"  #: detail: what was refused
NOT_GATEWAY = "TL007"
INVITATION = "TL008"  #: detail: what is wrong with it
WAITING = "TL009"  #: detail: what still waits

# --- layout 1 ---------------------------------------------------------------------------------------------------

_TABLES = """
CREATE TABLE the_loop.fleet (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    id text NOT NULL,               -- a part of the names of the roles
    layout integer NOT NULL,        -- how many steps were made
    serves_from integer NOT NULL    -- services that know at least this layout can work with it
);

CREATE TABLE the_loop.hosts (
    name text PRIMARY KEY,
    role name UNIQUE,               -- that it logs in as; null: it has not joined yet
    state text NOT NULL CHECK (state IN ('invited', 'active', 'evicted', 'left')),
    gateway boolean NOT NULL,
    incarnation text NOT NULL DEFAULT '',
    machine text NOT NULL DEFAULT '',
    version text NOT NULL DEFAULT '',
    seen_at timestamptz,
    stopped boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- Apart from the hosts: only the gateway writes here, and no beat waits for a sending.
CREATE TABLE the_loop.streams (
    host text PRIMARY KEY REFERENCES the_loop.hosts ON DELETE CASCADE,
    next_seq bigint NOT NULL DEFAULT 0,
    served_at timestamptz           -- when the latest of its posts was sent
) WITH (fillfactor = 50);

CREATE TABLE the_loop.invitations (
    role name PRIMARY KEY,
    host text NOT NULL REFERENCES the_loop.hosts ON DELETE CASCADE,
    gateway boolean NOT NULL,
    until timestamptz NOT NULL
);

CREATE TABLE the_loop.lease (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    token text NOT NULL DEFAULT '',
    holder text NOT NULL DEFAULT '',
    epoch bigint NOT NULL DEFAULT 0,
    until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO the_loop.lease DEFAULT VALUES;

-- One JSON object, from its { to its }, with at least one key: lists of everybody are put together of these.
CREATE FUNCTION the_loop.is_row(shown text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT shown ~ '^\\{\\s*"' AND right(shown, 1) = '}' AND json_typeof(shown::json) = 'object'
$$;

CREATE TABLE the_loop.sessions (
    uid text PRIMARY KEY,
    host text NOT NULL REFERENCES the_loop.hosts,
    epoch bigint NOT NULL DEFAULT 1,
    name text NOT NULL,
    shown text NOT NULL CHECK (the_loop.is_row(shown || '}')),  -- its row without the last brace
    members text NOT NULL,
    UNIQUE (uid, host)
);
CREATE INDEX ON the_loop.sessions (host, name);

CREATE TABLE the_loop.routes (
    chat text NOT NULL,
    team text NOT NULL,
    channel text NOT NULL,
    thread text NOT NULL,
    uid text NOT NULL,
    host text NOT NULL,
    cursor text NOT NULL,
    shared boolean,
    facts text NOT NULL,
    PRIMARY KEY (chat, team, channel, thread),
    FOREIGN KEY (uid, host) REFERENCES the_loop.sessions (uid, host) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX ON the_loop.routes (uid);

CREATE TABLE the_loop.calls (
    id text PRIMARY KEY,
    host text NOT NULL REFERENCES the_loop.hosts,
    number bigint NOT NULL,         -- the order; after an older state was restored numbers come again
    uid text NOT NULL,
    kind text NOT NULL,
    body text NOT NULL CHECK (octet_length(body) <= 16777216),
    deadline timestamptz,
    taken_at timestamptz
);
CREATE INDEX ON the_loop.calls (host, number);

CREATE TABLE the_loop.answers (
    call text PRIMARY KEY,
    host text NOT NULL,
    body text NOT NULL CHECK (octet_length(body) <= 16777216),
    until timestamptz NOT NULL
);

CREATE TABLE the_loop.posts (
    host text NOT NULL REFERENCES the_loop.hosts,
    id text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    uid text NOT NULL,
    chat text NOT NULL,
    team text NOT NULL,
    channel text NOT NULL,
    thread text NOT NULL,
    rank integer NOT NULL,
    kind text NOT NULL,
    body text NOT NULL CHECK (octet_length(body) <= 16777216),
    began_at timestamptz,
    result text CHECK (octet_length(result) <= 16777216),
    PRIMARY KEY (host, id)
);
CREATE INDEX ON the_loop.posts (host) WHERE result IS NOT NULL;
CREATE INDEX ON the_loop.posts (number) WHERE result IS NULL;

CREATE TABLE the_loop.blobs (
    host text NOT NULL REFERENCES the_loop.hosts,
    id text NOT NULL,
    piece integer NOT NULL,
    data bytea NOT NULL CHECK (octet_length(data) <= 1048576),
    put_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (host, id, piece)
);
ALTER TABLE the_loop.blobs ALTER data SET STORAGE EXTERNAL;  -- most files are compressed already
"""

# `me()` tells whose role has logged in, whatever role it takes on afterwards. Null: nobody's of the fleet.
_WHO = f"""
CREATE FUNCTION the_loop.me() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT name FROM the_loop.hosts WHERE role = session_user AND state = 'active'
$$;

CREATE FUNCTION the_loop.entered() RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    who text := the_loop.me();
BEGIN
    IF who IS NULL THEN
        RAISE EXCEPTION 'not in the fleet' USING ERRCODE = '{EVICTED}';
    END IF;
    RETURN who;
END $$;

CREATE FUNCTION the_loop.entered(mine text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    who text := the_loop.entered();
    there the_loop.hosts;
BEGIN
    SELECT * INTO there FROM the_loop.hosts WHERE name = who;
    IF there.incarnation <> mine THEN
        RAISE EXCEPTION 'second incarnation' USING ERRCODE = '{SECOND}',
            DETAIL = coalesce(extract(epoch FROM clock_timestamp() - there.seen_at), 0)::text;
    END IF;
    RETURN who;
END $$;

CREATE FUNCTION the_loop.speaking(mine text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered();
BEGIN
    PERFORM 1 FROM the_loop.lease WHERE token = mine AND mine <> '' FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'lease lost' USING ERRCODE = '{LEASE_LOST}';
    END IF;
    RETURN who;
END $$;

CREATE FUNCTION the_loop.tell(channel text) RETURNS void
LANGUAGE sql AS $$ SELECT pg_notify('the_loop_' || channel, '') $$;
"""

_HOST_FUNCTIONS = f"""
CREATE FUNCTION the_loop.beat(mine text, on_machine text, of_version text, OUT at timestamptz, OUT speaks text,
    OUT calls boolean, OUT results boolean, OUT layout integer, OUT serves_from integer)
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered();
BEGIN
    UPDATE the_loop.hosts h
    SET incarnation = mine, machine = on_machine, version = of_version, seen_at = clock_timestamp(), stopped = false
    WHERE h.name = who AND (h.stopped OR h.incarnation IN ('', mine) OR h.machine = on_machine OR h.seen_at IS NULL
        OR h.seen_at < clock_timestamp() - interval '{SILENT_SECONDS} s');
    IF NOT FOUND THEN
        PERFORM the_loop.entered(mine);
    END IF;
    SELECT f.layout, f.serves_from INTO layout, serves_from FROM the_loop.fleet f;
    SELECT l.holder INTO speaks FROM the_loop.lease l WHERE l.until > clock_timestamp();
    calls := EXISTS (SELECT 1 FROM the_loop.calls c WHERE c.host = who);
    results := EXISTS (SELECT 1 FROM the_loop.posts p WHERE p.host = who AND p.result IS NOT NULL);
    at := clock_timestamp();
END $$;

CREATE FUNCTION the_loop.stopped(mine text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    UPDATE the_loop.hosts SET stopped = true WHERE name = who;
END $$;

-- The routes are arrays of one length; each names its session. Returns the sessions that are another host's.
CREATE FUNCTION the_loop.publish(mine text, uids text[], names text[], rows_shown text[], of_members text[],
    gone text[], whole boolean,
    chats text[], teams text[], channels text[], threads text[], route_uids text[], cursors text[], sharings boolean[],
    of_facts text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
    elsewhere text[];
    refused text;
    known jsonb;
BEGIN
    SELECT coalesce(array_agg(n.uid ORDER BY n.at), '{{}}') INTO elsewhere
    FROM unnest(uids) WITH ORDINALITY AS n (uid, at) JOIN the_loop.sessions s ON s.uid = n.uid AND s.host <> who;
    -- What is known of sharing stays where the host does not know it. Only this host's routes are seen here.
    SELECT coalesce(jsonb_object_agg(jsonb_build_array(r.chat, r.team, r.channel, r.thread)::text, r.shared), '{{}}')
    INTO known FROM the_loop.routes r WHERE r.host = who AND r.shared IS NOT NULL;
    DELETE FROM the_loop.sessions s WHERE s.host = who AND s.uid <> ALL (uids) AND (whole OR s.uid = ANY (gone));
    DELETE FROM the_loop.routes r WHERE r.host = who AND r.uid = ANY (uids);
    INSERT INTO the_loop.sessions AS s (uid, host, name, shown, members)
    SELECT n.uid, who, n.name, CASE WHEN right(n.shown, 1) = '}}' THEN left(n.shown, -1) ELSE '' END, n.members
    FROM unnest(uids, names, rows_shown, of_members) AS n (uid, name, shown, members)
    WHERE n.uid <> ALL (elsewhere) ORDER BY n.uid
    ON CONFLICT (uid) DO UPDATE SET name = EXCLUDED.name, shown = EXCLUDED.shown, members = EXCLUDED.members
    WHERE s.host = who;
    DELETE FROM the_loop.routes r USING unnest(chats, teams, channels, threads) AS n (chat, team, channel, thread)
    WHERE r.host = who AND (r.chat, r.team, r.channel, r.thread) = (n.chat, n.team, n.channel, n.thread);
    INSERT INTO the_loop.routes AS r (chat, team, channel, thread, uid, host, cursor, shared, facts)
    SELECT n.chat, n.team, n.channel, n.thread, n.uid, who, n.cursor, coalesce(n.shared,
        (known ->> jsonb_build_array(n.chat, n.team, n.channel, n.thread)::text)::boolean), n.facts
    FROM unnest(chats, teams, channels, threads, route_uids, cursors, sharings, of_facts)
        AS n (chat, team, channel, thread, uid, cursor, shared, facts)
    WHERE n.uid <> ALL (elsewhere) ORDER BY n.chat, n.team, n.channel, n.thread
    ON CONFLICT DO NOTHING;
    SELECT 'thread ' || n.thread || ' of channel ' || n.channel INTO refused
    FROM unnest(chats, teams, channels, threads, route_uids) AS n (chat, team, channel, thread, uid)
    WHERE n.uid <> ALL (elsewhere) AND NOT EXISTS (SELECT 1 FROM the_loop.routes r WHERE r.host = who
        AND (r.chat, r.team, r.channel, r.thread) = (n.chat, n.team, n.channel, n.thread)) LIMIT 1;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'place refused' USING ERRCODE = '{PLACE}', DETAIL = refused;
    END IF;
    PERFORM the_loop.tell('gateway');
    RETURN elsewhere;
END $$;

-- Locks what it returns before it looks, so that a call is either taken or withdrawn.
CREATE FUNCTION the_loop.take(mine text, most integer) RETURNS TABLE (call text, place bigint, of_kind text,
    contents text, session text, remaining double precision, taken_before boolean)
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    RETURN QUERY
    WITH waiting AS (
        SELECT c.* FROM the_loop.calls c WHERE c.host = who ORDER BY c.number LIMIT most FOR UPDATE
    ), marked AS (
        UPDATE the_loop.calls c SET taken_at = clock_timestamp() FROM waiting w
        WHERE c.id = w.id AND w.taken_at IS NULL
    )
    SELECT w.id, w.number, w.kind, w.body, w.uid, extract(epoch FROM w.deadline - clock_timestamp())::double precision,
        w.taken_at IS NOT NULL
    FROM waiting w ORDER BY w.number;
END $$;

CREATE FUNCTION the_loop.done(mine text, calls text[], bodies text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    INSERT INTO the_loop.answers (call, host, body, until)
    SELECT n.call, who, n.body, clock_timestamp() + interval '{ANSWER_SECONDS} s'
    FROM unnest(calls, bodies) AS n (call, body) JOIN the_loop.calls c ON c.id = n.call AND c.host = who
    WHERE n.body IS NOT NULL ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM the_loop.tell('gateway');
    END IF;
    DELETE FROM the_loop.calls c WHERE c.host = who AND c.id = ANY (calls);
END $$;

CREATE FUNCTION the_loop.hand_over(mine text, ids text[], uids text[], chats text[], teams text[], channels text[],
    threads text[], ranks integer[], kinds text[], bodies text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
    refused text;
BEGIN
    SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM the_loop.sessions s WHERE s.uid = n.uid AND s.host = who)
        THEN 'session ' || n.uid ELSE 'thread ' || n.thread || ' of channel ' || n.channel END INTO refused
    FROM unnest(uids, chats, teams, channels, threads) AS n (uid, chat, team, channel, thread)
    WHERE NOT the_loop.is_place(who, n.uid, n.chat, n.team, n.channel, n.thread) LIMIT 1;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'place refused' USING ERRCODE = '{PLACE}', DETAIL = refused;
    END IF;
    INSERT INTO the_loop.posts (host, id, uid, chat, team, channel, thread, rank, kind, body)
    SELECT who, n.id, n.uid, n.chat, n.team, n.channel, n.thread, n.rank, n.kind, n.body
    FROM unnest(ids, uids, chats, teams, channels, threads, ranks, kinds, bodies) WITH ORDINALITY
        AS n (id, uid, chat, team, channel, thread, rank, kind, body, at)
    ORDER BY n.at ON CONFLICT DO NOTHING;
    PERFORM the_loop.tell('gateway');
END $$;

CREATE FUNCTION the_loop.results(mine text, most integer) RETURNS TABLE (post text, contents text)
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    RETURN QUERY SELECT p.id, p.result FROM the_loop.posts p WHERE p.host = who AND p.result IS NOT NULL
    ORDER BY p.number LIMIT most;
END $$;

CREATE FUNCTION the_loop.forget(mine text, ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    DELETE FROM the_loop.posts p
    WHERE p.host = who AND p.id = ANY (ids) AND (p.began_at IS NULL OR p.result IS NOT NULL);
END $$;

CREATE FUNCTION the_loop.put_piece(mine text, blob text, nth integer, contents bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    IF nth = 0 AND EXISTS (SELECT 1 FROM the_loop.blobs b WHERE b.host = who AND b.id = blob) THEN
        RETURN false;
    END IF;
    INSERT INTO the_loop.blobs (host, id, piece, data) VALUES (who, blob, nth, contents) ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

CREATE FUNCTION the_loop.piece(mine text, blob text, nth integer, OUT contents bytea, OUT latest integer)
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    SELECT b.data INTO contents FROM the_loop.blobs b WHERE b.host = who AND b.id = blob AND b.piece = nth;
    SELECT max(b.piece) INTO latest FROM the_loop.blobs b WHERE b.host = who AND b.id = blob;
END $$;

CREATE FUNCTION the_loop.drop_blob(mine text, blob text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    DELETE FROM the_loop.blobs b WHERE b.host = who AND b.id = blob;
END $$;

-- The rows are put together as texts, and none is parsed. The last key of a name counts: no row is of another host.
CREATE FUNCTION the_loop.listed(mine text, of_host text) RETURNS text
LANGUAGE plpgsql SET work_mem = '64MB' AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    IF of_host <> '' AND NOT EXISTS (SELECT 1 FROM the_loop.hosts h WHERE h.name = of_host) THEN
        RAISE EXCEPTION 'unknown host' USING ERRCODE = '{UNKNOWN_HOST}', DETAIL = of_host;
    END IF;
    RETURN (
        WITH tails AS MATERIALIZED (
            SELECT h.name, ',"host":' || to_json(h.name)::text || ',"hostSeen":'
                || coalesce(to_char(h.seen_at AT TIME ZONE 'UTC', '"\\""YYYY-MM-DD"T"HH24:MI:SS.US"Z\\""'), 'null')
                || '}}' AS tail
            FROM the_loop.hosts h
        ), ordered AS (
            SELECT s.shown, t.tail FROM the_loop.sessions s JOIN tails t ON t.name = s.host
            WHERE of_host IN ('', s.host) ORDER BY s.host COLLATE "C", s.name COLLATE "C", s.uid COLLATE "C"
        )
        SELECT '[' || coalesce(string_agg(o.shown || o.tail, ','), '') || ']' FROM ordered o
    );
END $$;

CREATE FUNCTION the_loop.members(mine text) RETURNS TABLE (host text, standing text, may_speak boolean, speaks boolean,
    runs text, seen timestamptz, age double precision, ended boolean)
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered(mine);
BEGIN
    RETURN QUERY SELECT h.name, h.state, h.gateway,
        EXISTS (SELECT 1 FROM the_loop.lease l WHERE l.holder = h.name AND l.until > clock_timestamp()),
        h.version, h.seen_at, coalesce(extract(epoch FROM clock_timestamp() - h.seen_at), 0)::double precision,
        h.stopped
    FROM the_loop.hosts h ORDER BY h.name COLLATE "C";
END $$;
"""

_GATEWAY_FUNCTIONS = f"""
-- `mine` is made by the asker, so that an answer that was lost can be asked for again.
CREATE FUNCTION the_loop.elect(mine text, seconds double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.entered();
    risen bigint;
BEGIN
    UPDATE the_loop.lease l SET token = mine, holder = who, epoch = l.epoch + 1,
        until = clock_timestamp() + make_interval(secs => seconds)
    WHERE l.until < clock_timestamp() OR l.token = mine RETURNING l.epoch INTO risen;
    RETURN risen;
END $$;

CREATE FUNCTION the_loop.renew(mine text, seconds double precision) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    UPDATE the_loop.lease SET until = clock_timestamp() + make_interval(secs => seconds)
    WHERE token = mine AND mine <> '';
    RETURN FOUND;
END $$;

CREATE FUNCTION the_loop.release(mine text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    UPDATE the_loop.lease SET token = '', until = '-infinity' WHERE token = mine AND mine <> '';
    PERFORM the_loop.tell('gateway');
END $$;

CREATE FUNCTION the_loop.routed(of_chat text, of_team text, of_channel text, of_thread text) RETURNS TABLE (chat text,
    team text, channel text, thread text, cursor text, shared boolean, facts text, host text, uid text, name text,
    members text)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    RETURN QUERY SELECT r.chat, r.team, r.channel, r.thread, r.cursor, r.shared, r.facts, r.host, r.uid, s.name,
        s.members
    FROM the_loop.routes r JOIN the_loop.sessions s ON s.uid = r.uid
    WHERE of_chat IS NULL OR (r.chat, r.team, r.channel, r.thread) = (of_chat, of_team, of_channel, of_thread)
    ORDER BY r.host COLLATE "C", r.chat, r.team COLLATE "C", r.channel COLLATE "C", r.thread COLLATE "C";
END $$;

-- Under the lock of a host's stream its calls get their numbers, so that they are committed in this order.
CREATE FUNCTION the_loop.send(mine text, ids text[], hosts text[], kinds text[], bodies text[], uids text[],
    seconds double precision[],
    chats text[], teams text[], channels text[], threads text[], cursors text[], sharings boolean[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    who text := the_loop.speaking(mine);
    wrong record;
BEGIN
    PERFORM 1 FROM the_loop.streams s WHERE s.host = ANY (hosts) ORDER BY s.host FOR UPDATE;
    SELECT n.host INTO wrong FROM unnest(hosts) AS n (host)
    WHERE NOT EXISTS (SELECT 1 FROM the_loop.streams s WHERE s.host = n.host) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'unknown host' USING ERRCODE = '{UNKNOWN_HOST}', DETAIL = wrong.host;
    END IF;
    SELECT n.uid, n.host INTO wrong FROM unnest(uids, hosts) AS n (uid, host)
    WHERE n.uid <> '' AND NOT EXISTS (SELECT 1 FROM the_loop.sessions s WHERE s.uid = n.uid AND s.host = n.host)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'session elsewhere' USING ERRCODE = '{ELSEWHERE}', DETAIL = wrong.uid || E'\\t' || wrong.host;
    END IF;
    WITH new AS (
        SELECT n.*, row_number() OVER (PARTITION BY n.host ORDER BY n.at) AS nth
        FROM (
            SELECT DISTINCT ON (m.id) m.*
            FROM unnest(ids, hosts, kinds, bodies, uids, seconds) WITH ORDINALITY
                AS m (id, host, kind, body, uid, seconds, at)
            ORDER BY m.id, m.at
        ) AS n
        WHERE NOT EXISTS (SELECT 1 FROM the_loop.calls c WHERE c.id = n.id)
            AND NOT EXISTS (SELECT 1 FROM the_loop.answers a WHERE a.call = n.id)
    ), counted AS (
        UPDATE the_loop.streams s SET next_seq = s.next_seq + k.amount
        FROM (SELECT new.host, count(*) AS amount FROM new GROUP BY new.host) AS k
        WHERE s.host = k.host RETURNING s.host, s.next_seq - k.amount AS before
    )
    INSERT INTO the_loop.calls (id, host, number, uid, kind, body, deadline)
    SELECT new.id, new.host, counted.before + new.nth, new.uid, new.kind, new.body,
        clock_timestamp() + make_interval(secs => new.seconds)
    FROM new JOIN counted USING (host);
    -- A thread may be told of several times: the last word counts.
    UPDATE the_loop.routes r SET cursor = n.cursor, shared = coalesce(n.shared, r.shared)
    FROM (
        SELECT m.chat, m.team, m.channel, m.thread, (array_agg(m.cursor ORDER BY m.at DESC))[1] AS cursor,
            (array_agg(m.shared ORDER BY m.at DESC) FILTER (WHERE m.shared IS NOT NULL))[1] AS shared
        FROM unnest(chats, teams, channels, threads, cursors, sharings) WITH ORDINALITY
            AS m (chat, team, channel, thread, cursor, shared, at)
        GROUP BY m.chat, m.team, m.channel, m.thread
    ) AS n
    WHERE (r.chat, r.team, r.channel, r.thread) = (n.chat, n.team, n.channel, n.thread);
    PERFORM the_loop.tell('host_' || n.host) FROM (SELECT DISTINCT unnest(hosts) AS host) AS n;
END $$;

CREATE FUNCTION the_loop.withdraw(mine text, call text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.speaking(mine);
    DELETE FROM the_loop.calls c WHERE c.id = call AND c.taken_at IS NULL;
    RETURN FOUND;
END $$;

CREATE FUNCTION the_loop.answered(of_call text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    RETURN (SELECT a.body FROM the_loop.answers a WHERE a.call = of_call);
END $$;

-- Of each channel the first so many: by rank, then in turns over the hosts, whoever waits longest first.
CREATE FUNCTION the_loop.waiting(mine text, most integer) RETURNS TABLE (post text, of_host text, uid text, chat text,
    team text, channel text, thread text, rank integer, kind text, body text, sending double precision)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    IF NOT EXISTS (SELECT 1 FROM the_loop.lease WHERE token = mine AND mine <> '') THEN
        RAISE EXCEPTION 'lease lost' USING ERRCODE = '{LEASE_LOST}';
    END IF;
    RETURN QUERY
    WITH turned AS (
        SELECT p.host, p.id, p.number, p.chat, p.team, p.channel, p.rank, st.served_at,
            row_number() OVER (PARTITION BY p.chat, p.team, p.channel, p.host, p.rank ORDER BY p.number) AS turn
        FROM the_loop.posts p JOIN the_loop.hosts h ON h.name = p.host AND h.state <> 'evicted'
            JOIN the_loop.streams st ON st.host = p.host
        WHERE p.result IS NULL
    ), ordered AS (
        SELECT t.*, row_number() OVER (PARTITION BY t.chat, t.team, t.channel
            ORDER BY t.rank, t.turn, t.served_at NULLS FIRST, t.host COLLATE "C") AS nth FROM turned t
    )
    SELECT p.id, p.host, p.uid, p.chat, p.team, p.channel, p.thread, p.rank, p.kind, p.body,
        extract(epoch FROM clock_timestamp() - p.began_at)::double precision
    FROM ordered o JOIN the_loop.posts p ON p.host = o.host AND p.id = o.id WHERE o.nth <= most
    ORDER BY o.rank, o.turn, o.served_at NULLS FIRST, o.host COLLATE "C", o.number;
END $$;

CREATE FUNCTION the_loop.sending(mine text, of_host text, post text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.speaking(mine);
    UPDATE the_loop.posts p SET began_at = clock_timestamp()
    WHERE p.host = of_host AND p.id = post AND p.result IS NULL;
    RETURN FOUND;
END $$;

CREATE FUNCTION the_loop.posted(mine text, of_host text, post text, outcome text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.speaking(mine);
    UPDATE the_loop.posts p SET result = outcome WHERE p.host = of_host AND p.id = post;
    IF FOUND THEN
        UPDATE the_loop.streams s SET served_at = clock_timestamp() WHERE s.host = of_host;
        PERFORM the_loop.tell('host_' || of_host);
    END IF;
END $$;

CREATE FUNCTION the_loop.put_piece_for(of_host text, blob text, nth integer, contents bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    IF NOT EXISTS (SELECT 1 FROM the_loop.hosts h WHERE h.name = of_host) THEN
        RAISE EXCEPTION 'unknown host' USING ERRCODE = '{UNKNOWN_HOST}', DETAIL = of_host;
    END IF;
    IF nth = 0 AND EXISTS (SELECT 1 FROM the_loop.blobs b WHERE b.host = of_host AND b.id = blob) THEN
        RETURN false;
    END IF;
    INSERT INTO the_loop.blobs (host, id, piece, data) VALUES (of_host, blob, nth, contents) ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

CREATE FUNCTION the_loop.piece_of(of_host text, blob text, nth integer, OUT contents bytea, OUT latest integer)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    SELECT b.data INTO contents FROM the_loop.blobs b WHERE b.host = of_host AND b.id = blob AND b.piece = nth;
    SELECT max(b.piece) INTO latest FROM the_loop.blobs b WHERE b.host = of_host AND b.id = blob;
END $$;

CREATE FUNCTION the_loop.drop_blob_of(of_host text, blob text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.entered();
    DELETE FROM the_loop.blobs b WHERE b.host = of_host AND b.id = blob;
END $$;

CREATE FUNCTION the_loop.tidy(mine text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM the_loop.speaking(mine);
    DELETE FROM the_loop.answers WHERE until < clock_timestamp();
    DELETE FROM the_loop.blobs WHERE put_at < clock_timestamp() - interval '{BLOB_SECONDS} s';
END $$;
"""

# Who may do what. A gateway's role is in both groups. Every policy goes by the role that has logged in, and gives
# nothing to one whose host is not active.
_RIGHTS = """
CREATE FUNCTION the_loop.is_place(who text, session text, of_chat text, of_team text, of_channel text, of_thread text)
RETURNS boolean LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT EXISTS (SELECT 1 FROM the_loop.sessions s WHERE s.uid = session AND s.host = who) AND (of_thread = ''
        OR EXISTS (SELECT 1 FROM the_loop.routes r WHERE r.host = who
            AND (r.chat, r.team, r.channel, r.thread) = (of_chat, of_team, of_channel, of_thread)))
$$;

REVOKE ALL ON SCHEMA the_loop FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA the_loop FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA the_loop FROM PUBLIC;
GRANT USAGE ON SCHEMA the_loop TO {hosts};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA the_loop TO {hosts};
REVOKE EXECUTE ON FUNCTION the_loop.elect, the_loop.renew, the_loop.release, the_loop.routed, the_loop.send,
    the_loop.withdraw, the_loop.answered, the_loop.waiting, the_loop.sending, the_loop.posted, the_loop.tidy,
    the_loop.put_piece_for, the_loop.piece_of, the_loop.drop_blob_of, the_loop.speaking FROM {hosts};
GRANT EXECUTE ON FUNCTION the_loop.elect, the_loop.renew, the_loop.release, the_loop.routed, the_loop.send,
    the_loop.withdraw, the_loop.answered, the_loop.waiting, the_loop.sending, the_loop.posted, the_loop.tidy,
    the_loop.put_piece_for, the_loop.piece_of, the_loop.drop_blob_of, the_loop.speaking TO {gateways};

ALTER TABLE the_loop.fleet ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.hosts ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.streams ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.lease ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.routes ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.calls ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.answers ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.posts ENABLE ROW LEVEL SECURITY;
ALTER TABLE the_loop.blobs ENABLE ROW LEVEL SECURITY;

GRANT SELECT ON the_loop.fleet TO {hosts};
CREATE POLICY read ON the_loop.fleet FOR SELECT TO {hosts} USING (true);

GRANT SELECT ON the_loop.hosts TO {hosts};
GRANT UPDATE (incarnation, machine, version, seen_at, stopped) ON the_loop.hosts TO {hosts};
CREATE POLICY read ON the_loop.hosts FOR SELECT TO {hosts} USING ((SELECT the_loop.me()) IS NOT NULL);
CREATE POLICY own ON the_loop.hosts FOR UPDATE TO {hosts} USING (name = (SELECT the_loop.me()));

GRANT SELECT, UPDATE ON the_loop.streams TO {gateways};
CREATE POLICY gateway ON the_loop.streams TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);

GRANT SELECT (holder, until) ON the_loop.lease TO {hosts};
GRANT SELECT, UPDATE ON the_loop.lease TO {gateways};
CREATE POLICY read ON the_loop.lease FOR SELECT TO {hosts} USING ((SELECT the_loop.me()) IS NOT NULL);
CREATE POLICY gateway ON the_loop.lease FOR UPDATE TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);

GRANT SELECT, INSERT, DELETE, UPDATE (name, shown, members) ON the_loop.sessions TO {hosts};
CREATE POLICY read ON the_loop.sessions FOR SELECT TO {hosts} USING ((SELECT the_loop.me()) IS NOT NULL);
CREATE POLICY own_new ON the_loop.sessions FOR INSERT TO {hosts} WITH CHECK (host = (SELECT the_loop.me()));
CREATE POLICY own_changed ON the_loop.sessions FOR UPDATE TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY own_gone ON the_loop.sessions FOR DELETE TO {hosts} USING (host = (SELECT the_loop.me()));

GRANT SELECT, INSERT, DELETE ON the_loop.routes TO {hosts};
GRANT UPDATE (cursor, shared) ON the_loop.routes TO {gateways};
CREATE POLICY own ON the_loop.routes TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY gateway_reads ON the_loop.routes FOR SELECT TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);
CREATE POLICY gateway_moves ON the_loop.routes FOR UPDATE TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);

GRANT SELECT, DELETE, UPDATE (taken_at) ON the_loop.calls TO {hosts};
GRANT INSERT ON the_loop.calls TO {gateways};
CREATE POLICY own_read ON the_loop.calls FOR SELECT TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY own_taken ON the_loop.calls FOR UPDATE TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY own_done ON the_loop.calls FOR DELETE TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY gateway ON the_loop.calls TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);

GRANT INSERT, SELECT ON the_loop.answers TO {hosts};
GRANT DELETE ON the_loop.answers TO {gateways};
CREATE POLICY own ON the_loop.answers FOR INSERT TO {hosts} WITH CHECK (host = (SELECT the_loop.me())
    AND EXISTS (SELECT 1 FROM the_loop.calls c WHERE c.id = call AND c.host = (SELECT the_loop.me())));
CREATE POLICY own_read ON the_loop.answers FOR SELECT TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY gateway_reads ON the_loop.answers FOR SELECT TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);
CREATE POLICY gateway_tidies ON the_loop.answers FOR DELETE TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);

GRANT SELECT, DELETE, INSERT (host, id, uid, chat, team, channel, thread, rank, kind, body)
    ON the_loop.posts TO {hosts};
GRANT UPDATE (began_at, result) ON the_loop.posts TO {gateways};
CREATE POLICY own_read ON the_loop.posts FOR SELECT TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY own_gone ON the_loop.posts FOR DELETE TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY own_new ON the_loop.posts FOR INSERT TO {hosts} WITH CHECK (host = (SELECT the_loop.me())
    AND the_loop.is_place(host, uid, chat, team, channel, thread));
CREATE POLICY gateway_reads ON the_loop.posts FOR SELECT TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);
CREATE POLICY gateway_sends ON the_loop.posts FOR UPDATE TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);

GRANT SELECT, DELETE, INSERT (host, id, piece, data) ON the_loop.blobs TO {hosts};
CREATE POLICY own ON the_loop.blobs TO {hosts} USING (host = (SELECT the_loop.me()));
CREATE POLICY gateway ON the_loop.blobs TO {gateways} USING ((SELECT the_loop.me()) IS NOT NULL);
"""

# What a host may change of itself that only an admin may: its role's password when it joins, and its leaving. They run
# with the rights of the admin who made the schema, who therefore must be the one who makes invitations.
_JOINING = f"""
CREATE FUNCTION the_loop.join_as(verifier text) RETURNS TABLE (host text, gateway boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    invited the_loop.invitations;
    earlier name;
BEGIN
    DELETE FROM the_loop.invitations i WHERE i.role = session_user RETURNING * INTO invited;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no invitation' USING ERRCODE = '{INVITATION}', DETAIL = 'it was used already';
    END IF;
    IF invited.until < clock_timestamp() THEN
        RAISE EXCEPTION 'no invitation' USING ERRCODE = '{INVITATION}', DETAIL = 'it is older than an hour';
    END IF;
    IF verifier !~ '^SCRAM-SHA-256\\$[0-9]+:[A-Za-z0-9+/=]+\\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$' THEN
        RAISE EXCEPTION 'no verifier' USING ERRCODE = '{INVITATION}', DETAIL = 'the new secret came unhashed';
    END IF;
    SELECT h.role INTO earlier FROM the_loop.hosts h WHERE h.name = invited.host FOR UPDATE;
    IF earlier IS NOT NULL AND earlier <> session_user THEN
        EXECUTE format('ALTER ROLE %I NOLOGIN', earlier);
    END IF;
    EXECUTE format('ALTER ROLE %I PASSWORD %L VALID UNTIL %L', session_user, verifier, 'infinity');
    UPDATE the_loop.hosts h SET role = session_user, state = 'active', gateway = invited.gateway, incarnation = '',
        machine = '', stopped = true WHERE h.name = invited.host;
    RETURN QUERY SELECT invited.host, invited.gateway;
END $$;

CREATE FUNCTION the_loop.leave() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    who text := the_loop.entered();
    calls bigint := (SELECT count(*) FROM the_loop.calls c WHERE c.host = who);
    posts bigint := (SELECT count(*) FROM the_loop.posts p WHERE p.host = who AND p.result IS NULL);
BEGIN
    IF calls + posts > 0 THEN
        RAISE EXCEPTION 'waiting' USING ERRCODE = '{WAITING}', DETAIL = calls || E'\\t' || posts;
    END IF;
    DELETE FROM the_loop.posts p WHERE p.host = who;
    DELETE FROM the_loop.blobs b WHERE b.host = who;
    DELETE FROM the_loop.sessions s WHERE s.host = who;
    UPDATE the_loop.lease SET token = '', until = '-infinity' WHERE holder = who;
    UPDATE the_loop.hosts h SET state = 'left', stopped = true WHERE h.name = who;
    PERFORM the_loop.tell('gateway');
    EXECUTE format('ALTER ROLE %I NOLOGIN', session_user);
END $$;
"""

_RIGHTS_TO_JOIN = """
REVOKE ALL ON FUNCTION the_loop.join_as, the_loop.leave FROM PUBLIC;
GRANT EXECUTE ON FUNCTION the_loop.join_as, the_loop.leave TO {hosts};
"""

_PLACE, _REST = _RIGHTS.split("\n\n", 1)

#: Step by step. `{hosts}` and `{gateways}` stand for the two groups.
LAYOUTS = (
    "\n".join((_TABLES, _WHO, _PLACE, _HOST_FUNCTIONS, _GATEWAY_FUNCTIONS, _JOINING, _REST, _RIGHTS_TO_JOIN)),
)  # fmt: skip

LAYOUT = len(LAYOUTS)  #: that this release makes
SERVES_FROM = 1  #: the layout that a service must know at least to work with the one that this release makes
