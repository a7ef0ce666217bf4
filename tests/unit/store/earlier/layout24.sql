BEGIN TRANSACTION;
CREATE TABLE activities (
            uid TEXT PRIMARY KEY,
            instance TEXT NOT NULL,
            state TEXT NOT NULL,
            since TEXT NOT NULL,
            pending_tasks TEXT NOT NULL,
            detail TEXT NOT NULL,
            turn_started_at TEXT,
            last_report_at TEXT
        , mode TEXT NOT NULL DEFAULT '', turn TEXT NOT NULL DEFAULT '', turn_ended_at TEXT, ended_turn TEXT NOT NULL DEFAULT '', composer_at TEXT, shown TEXT NOT NULL DEFAULT '{}', version TEXT NOT NULL DEFAULT '', untried TEXT NOT NULL DEFAULT '', failed TEXT NOT NULL DEFAULT '', task_names TEXT NOT NULL DEFAULT '{}', cut_off_tasks TEXT NOT NULL DEFAULT '[]', earlier_tasks TEXT NOT NULL DEFAULT '[]', silence TEXT NOT NULL DEFAULT '', silent_since TEXT, silent_why TEXT NOT NULL DEFAULT '', retrying TEXT NOT NULL DEFAULT '') WITHOUT ROWID
        ;
CREATE TABLE announced (
            uid TEXT PRIMARY KEY,
            instance TEXT NOT NULL,
            idle_since TEXT NOT NULL,
            at TEXT NOT NULL
        ) WITHOUT ROWID
        ;
CREATE TABLE attachments (message TEXT PRIMARY KEY, files TEXT NOT NULL, told TEXT) WITHOUT ROWID;
CREATE TABLE bindings (
            channel_kind TEXT NOT NULL,
            team TEXT NOT NULL,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            uid TEXT NOT NULL,
            name TEXT NOT NULL,
            created_at TEXT NOT NULL, cursor TEXT NOT NULL DEFAULT '', shared INTEGER, swept_before TEXT NOT NULL DEFAULT '', begins TEXT NOT NULL DEFAULT '',
            PRIMARY KEY (channel_kind, team, channel, thread),
            UNIQUE (uid, channel_kind)
        ) WITHOUT ROWID
        ;
CREATE TABLE ended_turns (instance TEXT, turn TEXT, at TEXT NOT NULL, PRIMARY KEY (instance, turn)) WITHOUT ROWID;
CREATE TABLE ends (
            instance TEXT PRIMARY KEY,
            uid TEXT NOT NULL,
            by_person INTEGER NOT NULL DEFAULT 0,
            told_at TEXT,
            due_at TEXT,
            counted INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID
        ;
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
        , queued_at TEXT);
INSERT INTO "inbox" VALUES(1,'m-001-queued-plain','k:m-001-queued-plain','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 1',0,1,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','1.1','queued','','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(2,'m-002-queued-starting','k:m-002-queued-starting','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 2',0,2,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','2.1','queued','it is still starting','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(3,'m-003-queued-busy','k:m-003-queued-busy','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 3',0,3,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','3.1','queued','a turn is running','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(4,'m-004-queued-permission','k:m-004-queued-permission','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 4',0,4,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','4.1','queued','its agent asks for a permission, and what is typed now could answer that','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(5,'m-005-queued-question','k:m-005-queued-question','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 5',0,5,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','5.1','queued','it waits for the answer to its question','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(6,'m-006-queued-dialog','k:m-006-queued-dialog','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 6',0,6,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','6.1','queued','its program shows a dialog, and what is typed now would answer that','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(7,'m-007-queued-down','k:m-007-queued-down','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 7',0,7,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','7.1','queued','it is not running','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(8,'m-008-queued-dead','k:m-008-queued-dead','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 8',0,8,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','8.1','queued','its program has ended','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(9,'m-009-queued-lost','k:m-009-queued-lost','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 9',0,9,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','9.1','queued','its pane is gone','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(10,'m-010-queued-silent','k:m-010-queued-silent','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 10',0,10,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','10.1','queued','tmux does not answer','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(11,'m-011-queued-paused','k:m-011-queued-paused','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 11',0,11,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','11.1','queued','it is paused','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(12,'m-012-queued-paused-ahead','k:m-012-queued-paused-ahead','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 12',0,12,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','12.1','queued','it is paused, 3 ahead','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(13,'m-013-queued-typing','k:m-013-queued-typing','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 13',0,13,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','13.1','queued','somebody is typing in its terminal','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(14,'m-014-queued-half-typed','k:m-014-queued-half-typed','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 14',0,14,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','14.1','queued','somebody has half-typed text in its terminal','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(15,'m-015-queued-stashing','k:m-015-queued-stashing','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 15',0,15,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','15.1','queued','half-typed text is being put aside','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,1,0,NULL);
INSERT INTO "inbox" VALUES(16,'m-016-queued-clearing','k:m-016-queued-clearing','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 16',0,16,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','16.1','queued','its input line is being emptied','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(17,'m-017-queued-tool-call','k:m-017-queued-tool-call','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 17',0,17,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','17.1','queued','a tool call may open a dialog','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(18,'m-018-queued-fetching','k:m-018-queued-fetching','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 18',0,18,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','18.1','queued','its files are being fetched','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(19,'m-019-queued-needs-service','k:m-019-queued-needs-service','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 19',0,19,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','19.1','queued','only the service can ask whether its author may still steer','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(20,'m-020-queued-no-input-line','k:m-020-queued-no-input-line','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 20',0,20,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','20.1','queued','its terminal shows something in the place of its input line','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(21,'m-021-queued-in-mode','k:m-021-queued-in-mode','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 21',0,21,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','21.1','queued','its input line is in vim''s normal mode','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(22,'m-022-queued-in-doubt','k:m-022-queued-in-doubt','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 22',0,22,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','22.1','queued','the message before it may still stand in its input line','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(23,'m-023-queued-confirm','k:m-023-queued-confirm','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 23',0,23,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','23.1','queued','it waits to be confirmed, for it was sent 3 h ago','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(24,'m-024-queued-confirmed-by','k:m-024-queued-confirmed-by','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 24',0,24,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','24.1','queued','confirmed by cli:ann','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(25,'m-025-queued-input-closed','k:m-025-queued-input-closed','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 25',0,25,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','25.1','queued','its pane''s input is switched off','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(26,'m-026-queued-old-configuration','k:m-026-queued-old-configuration','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 26',0,26,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','26.1','queued','the service runs with the configuration of 09:15 UTC, and codex is no harness; `the-loop restart` takes the file''s over','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(27,'m-027-queued-said','k:m-027-queued-said','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 27',0,27,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','27.1','queued','an earlier release said so','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(28,'m-028-queued-never-run','k:m-028-queued-never-run','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 28',0,28,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','28.1','queued','it was never started','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(29,'m-029-queued-stopped','k:m-029-queued-stopped','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 29',0,29,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','29.1','queued','it was stopped','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(30,'m-030-queued-failed','k:m-030-queued-failed','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 30',0,30,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','30.1','queued','it crashed too often, or could not be brought back, and is held as failed','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(31,'m-031-queued-foreign','k:m-031-queued-foreign','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 31',0,31,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','31.1','queued','a tmux session of that name, which is not ours, is in its place','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(32,'m-032-queued-idle','k:m-032-queued-idle','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 32',0,32,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','32.1','queued','it is idle','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(33,'m-033-queued-unknown','k:m-033-queued-unknown','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 33',0,33,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','33.1','queued','nobody can tell what it does','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(34,'m-034-queued-deleting','k:m-034-queued-deleting','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 34',0,34,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','34.1','queued','it is being deleted','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(35,'m-035-pending-plain','k:m-035-pending-plain','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 35',0,35,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','35.1','pending','','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(36,'m-036-pending-pane-ended','k:m-036-pending-pane-ended','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 36',0,36,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','36.1','pending','its pane ended, and the conversation does not know it','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(37,'m-037-pending-taken-back','k:m-037-pending-taken-back','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 37',0,37,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','37.1','pending','it was taken back from its harness''s own queue','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(38,'m-038-pending-harness-ended','k:m-038-pending-harness-ended','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 38',0,38,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','38.1','pending','its harness ended with the text in its queue','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(39,'m-039-pending-held-back','k:m-039-pending-held-back','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 39',0,39,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','39.1','pending','it was held back in the harness''s own queue','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(40,'m-040-pending-silent','k:m-040-pending-silent','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 40',0,40,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','40.1','pending','tmux does not answer','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(41,'m-041-claimed-starting','k:m-041-claimed-starting','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 41',0,41,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','41.1','claimed','','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z',NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(42,'m-042-pasted-plain','k:m-042-pasted-plain','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 42',0,42,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','42.1','pasted','','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z','2026-11-29T12:00:00.000000Z',NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(43,'m-043-submitted-plain','k:m-043-submitted-plain','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 43',0,43,'2026-11-29T12:00:00.000000Z','slack','T1','C1','1.0','43.1','submitted','','2026-11-29T12:00:00.000000Z','i-1',1,'2026-11-29T12:00:05.000000Z','2026-11-29T12:00:00.000000Z','2026-11-29T12:00:00.000000Z',1,0,0,NULL);
INSERT INTO "inbox" VALUES(44,'m-044-submitted-argument','k:m-044-submitted-argument','s-scribe','scribe',3,'boot','slack:U1','alice','slack','k3f9x2','text 44',0,44,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'submitted','given to the program as its argument','2026-11-29T12:00:00.000000Z','i-1',1,NULL,'2026-11-29T12:00:00.000000Z','2026-11-29T12:00:00.000000Z',1,0,0,NULL);
INSERT INTO "inbox" VALUES(45,'m-045-submitted-unproven','k:m-045-submitted-unproven','s-scribe','scribe',3,'say','slack:U1','alice','slack','k3f9x2','text 45',0,45,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'submitted','this harness cannot prove more','2026-11-29T12:00:00.000000Z','i-1',1,NULL,'2026-11-29T12:00:00.000000Z','2026-11-29T12:00:00.000000Z',1,0,1,NULL);
INSERT INTO "inbox" VALUES(46,'m-046-confirmed-as-pasted','k:m-046-confirmed-as-pasted','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 46',0,46,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','46.1','confirmed','its model got it marked as pasted from somewhere else, and may not take it for its sender''s own words','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(47,'m-047-accepted-as-pasted','k:m-047-accepted-as-pasted','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 47',0,47,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','47.1','accepted','its model got it marked as pasted from somewhere else, and may not take it for its sender''s own words','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,'2026-11-29T12:00:00.000000Z');
INSERT INTO "inbox" VALUES(48,'m-048-confirmed-answered','k:m-048-confirmed-answered','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 48',0,48,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','48.1','confirmed','it answered the session''s question','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(49,'m-049-confirmed-plain','k:m-049-confirmed-plain','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 49',0,49,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','49.1','confirmed','','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(50,'m-050-accepted-plain','k:m-050-accepted-plain','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 50',0,50,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','50.1','accepted','','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,'2026-11-29T12:00:00.000000Z');
INSERT INTO "inbox" VALUES(51,'m-051-confirmed-told-by-itself','k:m-051-confirmed-told-by-itself','s-scribe','scribe',3,'notice','slack:U1','alice','slack','k3f9x2','text 51',0,51,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'confirmed','the harness told it by itself','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(52,'m-052-confirmed-repeated','k:m-052-confirmed-repeated','s-scribe','scribe',3,'notice','slack:U1','alice','slack','k3f9x2','text 52',0,52,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'confirmed','the harness repeats a notice that was delivered before','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(53,'m-053-confirmed-left-over','k:m-053-confirmed-left-over','s-scribe','scribe',3,'notice','slack:U1','alice','slack','k3f9x2','text 53',0,53,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'confirmed','the harness tells at its resume of a task that ended with an earlier run','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(54,'m-054-cancelled-outlived','k:m-054-cancelled-outlived','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 54',0,54,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','54.1','cancelled','the session was stopped or deleted after it was sent','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(55,'m-055-cancelled-deleted','k:m-055-cancelled-deleted','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 55',0,55,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','55.1','cancelled','the session was deleted','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(56,'m-056-unknown-deleted','k:m-056-unknown-deleted','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 56',0,56,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','56.1','unknown','the session was deleted','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(57,'m-057-cancelled-queue-cancelled','k:m-057-cancelled-queue-cancelled','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 57',0,57,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','57.1','cancelled','the session was stopped; start it: `the-loop standing start scribe`','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(58,'m-058-cancelled-cancelled-by','k:m-058-cancelled-cancelled-by','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 58',0,58,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','58.1','cancelled','cancelled by cli:ann','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(59,'m-059-cancelled-author-deleted','k:m-059-cancelled-author-deleted','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 59',0,59,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','59.1','cancelled','its author deleted it','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(60,'m-060-cancelled-new-boot','k:m-060-cancelled-new-boot','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 60',0,60,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','60.1','cancelled','a fresh start gave a new one','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(61,'m-061-cancelled-recorded','k:m-061-cancelled-recorded','s-scribe','scribe',3,'notice','slack:U1','alice','slack','k3f9x2','text 61',0,61,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','recorded: the harness brings it again when it is resumed','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(62,'m-062-refused-not-authorized','k:m-062-refused-not-authorized','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 62',0,62,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','62.1','refused','its author is no longer on the allow-list','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(63,'m-063-refused-queue-full','k:m-063-refused-queue-full','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 63',0,63,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','63.1','refused','its queue is full (limits.queuedPerSession is 100) and takes more from here once what waits has gone in','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(64,'m-064-refused-stopped','k:m-064-refused-stopped','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 64',0,64,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','64.1','refused','it was stopped','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(65,'m-065-refused-failed','k:m-065-refused-failed','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 65',0,65,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','65.1','refused','it crashed too often, or could not be brought back, and is held as failed','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(66,'m-066-refused-never-run','k:m-066-refused-never-run','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 66',0,66,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','66.1','refused','it was never started','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(67,'m-067-refused-down','k:m-067-refused-down','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 67',0,67,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','67.1','refused','it is not running','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(68,'m-068-refused-dead','k:m-068-refused-dead','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 68',0,68,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','68.1','refused','its program has ended','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(69,'m-069-refused-lost','k:m-069-refused-lost','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 69',0,69,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','69.1','refused','its pane is gone','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(70,'m-070-refused-foreign','k:m-070-refused-foreign','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 70',0,70,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','70.1','refused','a tmux session of that name, which is not ours, is in its place','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(71,'m-071-refused-deleting','k:m-071-refused-deleting','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 71',0,71,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','71.1','refused','it is being deleted','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(72,'m-072-refused-too-many-wait','k:m-072-refused-too-many-wait','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 72',0,72,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','72.1','refused','100 messages wait already, and limits.queuedPerSession is 100','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(73,'m-073-expired-waited-too-long','k:m-073-expired-waited-too-long','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 73',0,73,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','73.1','expired','it waited too long: half-typed text is being put aside','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(74,'m-074-expired-waited-too-long','k:m-074-expired-waited-too-long','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 74',0,74,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','74.1','expired','it waited too long: its input line is being emptied','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(75,'m-075-expired-waited-too-long','k:m-075-expired-waited-too-long','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 75',0,75,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','75.1','expired','it waited too long: somebody has half-typed text in its terminal','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(76,'m-076-expired-waited-too-long','k:m-076-expired-waited-too-long','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 76',0,76,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','76.1','expired','it waited too long: somebody is typing in its terminal','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(77,'m-077-expired-waited-too-long','k:m-077-expired-waited-too-long','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 77',0,77,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','77.1','expired','it waited too long: tmux does not answer','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(78,'m-078-unknown-not-shown','k:m-078-unknown-not-shown','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 78',0,78,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','78.1','unknown','nothing shows that a turn took it, and it was the program''s argument','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(79,'m-079-unknown-not-shown','k:m-079-unknown-not-shown','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 79',0,79,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','79.1','unknown','nothing shows that a turn took it, and a second Enter changed nothing','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(80,'m-080-unknown-not-shown','k:m-080-unknown-not-shown','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 80',0,80,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','80.1','unknown','nothing shows that a turn took it, and no second Enter was sent, for its agent asks for a permission, and what is typed now could answer that','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(81,'m-081-unknown-not-shown','k:m-081-unknown-not-shown','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 81',0,81,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','81.1','unknown','nothing shows that a turn took it, and no second Enter was sent, for half-typed text was put aside for it','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(82,'m-082-unknown-not-shown','k:m-082-unknown-not-shown','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 82',0,82,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','82.1','unknown','nothing shows that a turn took it, and no second Enter was sent, for somebody typed since','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(83,'m-083-unknown-pane-ended-unshown','k:m-083-unknown-pane-ended-unshown','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 83',0,83,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','83.1','unknown','its pane ended before anything showed that a turn took it','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(84,'m-084-unknown-not-taken','k:m-084-unknown-not-taken','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 84',0,84,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','84.1','unknown','its harness had received it and is idle, and its records do not show that a turn took it','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(85,'m-085-unknown-at-terminal','k:m-085-unknown-at-terminal','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 85',0,85,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','85.1','unknown','it was taken back from its harness''s own queue into the input line of its terminal','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(86,'m-086-unknown-harness-ended','k:m-086-unknown-harness-ended','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 86',0,86,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','86.1','unknown','its harness ended with the text in its queue','2026-11-29T12:00:00.000000Z','i-1',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(87,'m-087-failed-said','k:m-087-failed-said','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 87',0,87,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','87.1','failed','the message is empty: it holds nothing','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(88,'m-088-failed-dead','k:m-088-failed-dead','s-scribe','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 88',0,88,'2026-11-29T12:00:00.000000Z','slack','T1','C1','2.0','88.1','failed','its program has ended','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(89,'m-089-cancelled-run-over','k:m-089-cancelled-run-over','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 89',0,89,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its run is over','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(90,'m-090-cancelled-overtaken','k:m-090-cancelled-overtaken','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 90',0,90,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','the session was stopped after it was due','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(91,'m-091-cancelled-loop-is','k:m-091-cancelled-loop-is','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 91',0,91,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its loop is completed','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(92,'m-092-cancelled-loop-held','k:m-092-cancelled-loop-held','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 92',0,92,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its loop is held: usage-limit','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(93,'m-093-cancelled-loop-stopped','k:m-093-cancelled-loop-stopped','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 93',0,93,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its loop was stopped','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(94,'m-094-cancelled-loop-completed','k:m-094-cancelled-loop-completed','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 94',0,94,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its loop is complete','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(95,'m-095-cancelled-loop-expired','k:m-095-cancelled-loop-expired','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 95',0,95,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its loop has expired','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(96,'m-096-cancelled-loop-paused','k:m-096-cancelled-loop-paused','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 96',0,96,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its loop was paused','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(97,'m-097-cancelled-loop-ended','k:m-097-cancelled-loop-ended','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 97',0,97,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','its loop has ended: its turn ended without schedule_next_run','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(98,'m-098-cancelled-left-by-person','k:m-098-cancelled-left-by-person','s-scribe','scribe',3,'tick','slack:U1','alice','slack','k3f9x2','text 98',0,98,'2026-11-29T12:00:00.000000Z',NULL,NULL,NULL,NULL,NULL,'cancelled','it was left, or ended by itself','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(99,'m-099-queued-ahead','k:m-099-queued-ahead','s-closed','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 99',0,99,'2026-11-29T12:00:00.000000Z','slack','T1','C1','3.0','99.1','queued','a turn is running','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(100,'m-100-refused-queue-full','k:m-100-refused-queue-full','s-closed','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 100',0,100,'2026-11-29T12:00:00.000000Z','slack','T1','C1','3.0','100.1','refused','its queue is full (limits.queuedPerSession is 100) and takes more from here once what waits has gone in','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(101,'m-101-queued-ahead','k:m-101-queued-ahead','s-late','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 101',0,101,'2026-11-29T12:00:00.000000Z','slack','T1','C1','4.0','101.1','queued','it waits to be confirmed, for it was sent 3 h ago','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(102,'m-102-refused-queue-full','k:m-102-refused-queue-full','s-late','scribe',3,'reply','slack:U1','alice','slack','k3f9x2','text 102',0,102,'2026-11-29T12:00:00.000000Z','slack','T1','C1','4.0','102.1','refused','its queue is full (limits.queuedPerSession is 100) and takes more from here once what waits has gone in','2026-11-29T12:00:00.000000Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
CREATE TABLE last_messages (uid TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE left_threads (
            channel_kind TEXT NOT NULL,
            uid TEXT NOT NULL,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            PRIMARY KEY (channel_kind, uid)
        ) WITHOUT ROWID
        ;
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
        ;
INSERT INTO "loop_runs" VALUES('r-0','l-0','s-scribe','2026-11-29T12:05:00.000000Z',1,'sent','c','2026-11-29T12:06:00.000000Z',0,'',NULL,'','','deferred','2026-11-29T12:00:00.000000Z');
INSERT INTO "loop_runs" VALUES('r-1','l-1','s-scribe','2026-11-29T12:05:00.000000Z',1,'sent','c','2026-11-29T12:06:00.000000Z',0,'',NULL,'','','','2026-11-29T12:00:00.000000Z');
INSERT INTO "loop_runs" VALUES('r-2','l-2','s-scribe','2026-11-29T12:05:00.000000Z',1,'over','c','2026-11-29T12:06:00.000000Z',0,'',NULL,'','held','its session was stopped','2026-11-29T12:00:00.000000Z');
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
        , held_at TEXT, asked INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID
        ;
INSERT INTO "loops" VALUES('l-0','s-scribe','scribe','look','interval','cli:ann','2026-11-29T12:00:00.000000Z',300000000,'','',0,NULL,'active',NULL,NULL,0,0,0,NULL,'','','2026-11-29T12:05:00.000000Z','',NULL,'','',0,0,NULL,0);
INSERT INTO "loops" VALUES('l-1','s-scribe','scribe','look','interval','cli:ann','2026-11-29T12:00:00.000000Z',300000000,'','',0,NULL,'active',NULL,NULL,0,0,0,NULL,'','','2026-11-29T12:05:00.000000Z','',NULL,'','',0,0,NULL,0);
INSERT INTO "loops" VALUES('l-2','s-scribe','scribe','look','interval','cli:ann','2026-11-29T12:00:00.000000Z',300000000,'','',0,NULL,'active',NULL,NULL,0,0,0,NULL,'','','2026-11-29T12:05:00.000000Z','',NULL,'','',0,0,NULL,0);
CREATE TABLE marks (
            message TEXT PRIMARY KEY,
            over TEXT NOT NULL DEFAULT '',
            shown TEXT NOT NULL DEFAULT '',
            at TEXT NOT NULL
        , asked TEXT NOT NULL DEFAULT '') WITHOUT ROWID
        ;
CREATE TABLE note_waits (
            note TEXT NOT NULL,
            message TEXT NOT NULL,
            reason TEXT NOT NULL,
            remedy TEXT NOT NULL,
            ended TEXT NOT NULL DEFAULT '', doubtful INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (note, message)
        ) WITHOUT ROWID
        ;
INSERT INTO "note_waits" VALUES('p-note-m-002-queued-starting','m-002-queued-starting','it is still starting','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-003-queued-busy','m-003-queued-busy','a turn is running','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-004-queued-permission','m-004-queued-permission','its agent asks for a permission, and what is typed now could answer that','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-005-queued-question','m-005-queued-question','it waits for the answer to its question','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-006-queued-dialog','m-006-queued-dialog','its program shows a dialog, and what is typed now would answer that','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-007-queued-down','m-007-queued-down','it is not running','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-008-queued-dead','m-008-queued-dead','its program has ended','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-009-queued-lost','m-009-queued-lost','its pane is gone','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-010-queued-silent','m-010-queued-silent','tmux does not answer','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-011-queued-paused','m-011-queued-paused','it is paused','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-012-queued-paused-ahead','m-012-queued-paused-ahead','it is paused','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-013-queued-typing','m-013-queued-typing','somebody is typing in its terminal','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-014-queued-half-typed','m-014-queued-half-typed','somebody has half-typed text in its terminal','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-015-queued-stashing','m-015-queued-stashing','half-typed text is being put aside','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-016-queued-clearing','m-016-queued-clearing','its input line is being emptied','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-017-queued-tool-call','m-017-queued-tool-call','a tool call may open a dialog','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-018-queued-fetching','m-018-queued-fetching','its files are being fetched','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-019-queued-needs-service','m-019-queued-needs-service','only the service can ask whether its author may still steer','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-020-queued-no-input-line','m-020-queued-no-input-line','its terminal shows something in the place of its input line','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-021-queued-in-mode','m-021-queued-in-mode','its input line is in vim''s normal mode','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-022-queued-in-doubt','m-022-queued-in-doubt','the message before it may still stand in its input line','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-023-queued-confirm','m-023-queued-confirm','it waits to be confirmed, for it was sent 3 h ago','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-024-queued-confirmed-by','m-024-queued-confirmed-by','confirmed by cli:ann','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-025-queued-input-closed','m-025-queued-input-closed','its pane''s input is switched off','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-026-queued-old-configuration','m-026-queued-old-configuration','the service runs with the configuration of 09:15 UTC, and codex is no harness; `the-loop restart` takes the file''s over','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-027-queued-said','m-027-queued-said','an earlier release said so','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-028-queued-never-run','m-028-queued-never-run','it was never started','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-029-queued-stopped','m-029-queued-stopped','it was stopped','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-030-queued-failed','m-030-queued-failed','it crashed too often, or could not be brought back, and is held as failed','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-031-queued-foreign','m-031-queued-foreign','a tmux session of that name, which is not ours, is in its place','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-032-queued-idle','m-032-queued-idle','it is idle','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-033-queued-unknown','m-033-queued-unknown','nobody can tell what it does','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-034-queued-deleting','m-034-queued-deleting','it is being deleted','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-056-unknown-deleted','m-056-unknown-deleted','the session was deleted','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-078-unknown-not-shown','m-078-unknown-not-shown','nothing shows that a turn took it, and it was the program''s argument','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-079-unknown-not-shown','m-079-unknown-not-shown','nothing shows that a turn took it, and a second Enter changed nothing','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-080-unknown-not-shown','m-080-unknown-not-shown','nothing shows that a turn took it, and no second Enter was sent, for its agent asks for a permission, and what is typed now could answer that','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-081-unknown-not-shown','m-081-unknown-not-shown','nothing shows that a turn took it, and no second Enter was sent, for half-typed text was put aside for it','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-082-unknown-not-shown','m-082-unknown-not-shown','nothing shows that a turn took it, and no second Enter was sent, for somebody typed since','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-083-unknown-pane-ended-unshown','m-083-unknown-pane-ended-unshown','its pane ended before anything showed that a turn took it','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-084-unknown-not-taken','m-084-unknown-not-taken','its harness had received it and is idle, and its records do not show that a turn took it','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-085-unknown-at-terminal','m-085-unknown-at-terminal','it was taken back from its harness''s own queue into the input line of its terminal','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-086-unknown-harness-ended','m-086-unknown-harness-ended','its harness ended with the text in its queue','do this','',1);
INSERT INTO "note_waits" VALUES('p-note-m-099-queued-ahead','m-099-queued-ahead','a turn is running','do this','',0);
INSERT INTO "note_waits" VALUES('p-note-m-101-queued-ahead','m-101-queued-ahead','it waits to be confirmed, for it was sent 3 h ago','do this','',0);
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
        , part_of INTEGER, part INTEGER NOT NULL DEFAULT 0, buttons TEXT NOT NULL DEFAULT '', edits TEXT NOT NULL DEFAULT '', path TEXT NOT NULL DEFAULT '', changed_at TEXT NOT NULL DEFAULT '', only_for TEXT NOT NULL DEFAULT '');
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
        ;
CREATE TABLE refused_replies (
            key TEXT PRIMARY KEY,
            channel TEXT NOT NULL,
            thread TEXT NOT NULL,
            ts TEXT NOT NULL
        ) WITHOUT ROWID
        ;
CREATE TABLE reports (instance TEXT, report TEXT, PRIMARY KEY (instance, report)) WITHOUT ROWID;
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
        ;
CREATE TABLE requests_heard (
            channel_kind TEXT NOT NULL,
            mark TEXT NOT NULL,
            until TEXT NOT NULL,
            PRIMARY KEY (channel_kind, mark)
        ) WITHOUT ROWID
        ;
CREATE TABLE restarts (uid TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE spoken (uid TEXT NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL DEFAULT 'post');
CREATE INDEX inbox_open ON inbox (uid, order_us, seq) WHERE state IN ('pending', 'queued', 'claimed', 'pasted', 'submitted') AND final = 0;
CREATE INDEX inbox_of_session ON inbox (uid, seq);
CREATE INDEX outbox_open ON outbox (channel_kind, uid, seq) WHERE state IN ('pending', 'sending');
CREATE INDEX ends_due ON ends (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ends_of_session ON ends (uid);
CREATE INDEX restarts_of_session ON restarts (uid, at);
CREATE INDEX inbox_from_chat ON inbox (updated_at) WHERE from_kind IS NOT NULL;
CREATE INDEX marks_at ON marks (at);
CREATE INDEX marks_taken ON marks (message) WHERE shown = 'taken' AND over = '';
CREATE INDEX outbox_buttons ON outbox (ts) WHERE buttons <> '';
CREATE INDEX requests_open ON requests (uid, asked_at) WHERE state = 'open';
CREATE INDEX requests_untold ON requests (asked_at) WHERE state = 'answered' AND told = 0;
CREATE INDEX requests_of_session ON requests (uid);
CREATE INDEX spoken_of_session ON spoken (uid, at);
CREATE INDEX loops_of_session ON loops (uid, created_at);
CREATE INDEX loops_open ON loops (uid) WHERE status IN ('active', 'paused');
CREATE INDEX loops_due ON loops (next_run_at) WHERE status = 'active' AND held IS NULL;
CREATE INDEX loops_ended ON loops (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX loops_declared ON loops (uid, declared) WHERE declared <> '' AND status IN ('active', 'paused');
CREATE UNIQUE INDEX loop_runs_open ON loop_runs (loop_id) WHERE state <> 'over';
CREATE INDEX loop_runs_claimed ON loop_runs (lease_until) WHERE state = 'claimed';
CREATE INDEX loop_runs_of_session ON loop_runs (uid);
CREATE INDEX loop_runs_over ON loop_runs (updated_at) WHERE state = 'over';
CREATE INDEX loops_held ON loops (uid) WHERE status = 'active' AND held IS NOT NULL;
CREATE INDEX loop_runs_going ON loop_runs (uid) WHERE state <> 'over';
CREATE INDEX inbox_ticks ON inbox (updated_at) WHERE kind IN ('tick', 'keep-alive-tick');
CREATE INDEX outbox_over ON outbox (changed_at) WHERE state NOT IN ('pending', 'sending');
CREATE INDEX outbox_edits ON outbox (edits) WHERE edits <> '';
CREATE INDEX outbox_parts ON outbox (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX inbox_over ON inbox (updated_at) WHERE kind NOT IN ('tick', 'keep-alive-tick') AND NOT (state IN ('pending', 'queued', 'claimed', 'pasted', 'submitted') AND final = 0);
CREATE INDEX inbox_accepted ON inbox (uid) WHERE state = 'accepted';
CREATE INDEX inbox_unknown ON inbox (uid, seq) WHERE state = 'unknown';
CREATE INDEX note_waits_of_message ON note_waits (message);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('inbox',102);
PRAGMA user_version = 24;
COMMIT;
