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
INSERT INTO "activities" VALUES('s-asks-by-opinion','i-asks-by-opinion','permission','2026-05-04T12:00:05.123456Z','[]','permission to edit','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-between-turns','i-between-turns','busy','2026-05-04T12:00:00.123456Z','["b1"]','background tasks run, and no turn does','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-busy','i-busy','busy','2026-05-04T12:00:00.123456Z','[]','','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-cut-off','i-cut-off','idle','2026-05-04T12:00:05.123456Z','[]','its turn was cut off in the terminal','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-cut-off-announced','i-cut-off-announced','idle','2026-05-04T12:00:05.123456Z','[]','its turn was cut off in the terminal; idle: it will be stopped at 12:00:05 UTC; any message keeps it','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-dialog','i-dialog','dialog','2026-05-04T12:00:05.123456Z','[]','it shows a dialog: Pick a model','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-dialog-between','i-dialog-between','dialog','2026-05-04T12:00:05.123456Z','[]','it shows a dialog: Settings',NULL,'2026-05-04T12:00:00.123456Z','','',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-dialog-unread','i-dialog-unread','dialog','2026-05-04T12:00:05.123456Z','[]','it shows a dialog: what it shows is not understood: look at its terminal','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-failed','i-failed','idle','2026-05-04T12:00:05.123456Z','[]','rate_limit: API Error: too many requests; wait; its last turn failed: its account has used up its limit (API Error: too many requests; wait); wait, then send it again','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','usage-limit','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-failed-announced','i-failed-announced','idle','2026-05-04T12:00:05.123456Z','[]','rate_limit: API Error: too many requests; wait; its last turn failed: its account has used up its limit (API Error: too many requests; wait); wait, then send it again; idle: it will be stopped at 12:00:05 UTC; any message keeps it','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','usage-limit','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-failed-with-queue','i-failed-with-queue','busy','2026-05-04T12:00:05.123456Z','[]','what its own queue held comes next; its last turn failed: its account has used up its limit (API Error: too many requests; wait); wait, then send it again','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','usage-limit','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-failed-with-tasks','i-failed-with-tasks','busy','2026-05-04T12:00:00.123456Z','["b1"]','background tasks run, and no turn does; rate_limit: API Error: too many requests; wait; its last turn failed: its account has used up its limit (API Error: too many requests; wait); wait, then send it again','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','usage-limit','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-failed-without-a-word','i-failed-without-a-word','idle','2026-05-04T12:00:05.123456Z','[]','; its last turn failed: it did not say why; look at its terminal','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','usage-limit','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-going','i-going','unknown','2026-05-04T12:00:05.123456Z','[]','it is going away: prompt_input_exit','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-idle','i-idle','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,'2026-05-04T12:00:00.123456Z','','',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-idle-announced','i-idle-announced','idle','2026-05-04T12:00:00.123456Z','[]','idle: it will be stopped at 12:00:05 UTC; any message keeps it',NULL,'2026-05-04T12:00:00.123456Z','','',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-mute-folder','i-mute-folder','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','turns','2026-05-04T12:00:00.123456Z','its folder /home/ann/gone is gone, and no hook can start there: make the folder again','');
INSERT INTO "activities" VALUES('s-mute-off','i-mute-off','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','turns','2026-05-04T12:00:00.123456Z','Claude Code runs no hooks there, for disableAllHooks is set in /home/ann/.claude/settings.json: its turns are told late','');
INSERT INTO "activities" VALUES('s-mute-reporter','i-mute-reporter','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','turns','2026-05-04T12:00:00.123456Z','/home/ann/state/hook, which its hooks run, is not there: `the-loop standing restart mute-reporter` writes it again','');
INSERT INTO "activities" VALUES('s-mute-start','i-mute-start','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','turns','2026-05-04T12:00:00.123456Z','its program runs, and its hooks have not said so: look at its terminal, `the-loop standing attach mute-start --write`; `/hooks` lists them there','');
INSERT INTO "activities" VALUES('s-mute-trouble','i-mute-trouble','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','turns','2026-05-04T12:00:00.123456Z','its hooks cannot run (cannot fork): look at its terminal, `the-loop standing attach mute-trouble --write`','');
INSERT INTO "activities" VALUES('s-mute-turns','i-mute-turns','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','turns','2026-05-04T12:00:00.123456Z','its hooks told nothing of the end of a turn: look at its terminal, `the-loop standing attach mute-turns --write`; `/hooks` lists them there','');
INSERT INTO "activities" VALUES('s-mute-untold','i-mute-untold','idle','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','turns','2026-05-04T12:00:00.123456Z','its hooks have not said that it reads, and no other source tells within 60 s: look at its terminal, `the-loop standing attach mute-untold --write`; `/hooks` lists them there','');
INSERT INTO "activities" VALUES('s-of-later','i-of-later','busy','2026-05-04T12:00:00.123456Z','[]','what a release of some other day would say','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-permission','i-permission','permission','2026-05-04T12:00:05.123456Z','[]','Bash: rm -r build','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-question','i-question','question','2026-05-04T12:00:05.123456Z','[]','Which one?','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-queue-left','i-queue-left','busy','2026-05-04T12:00:05.123456Z','[]','what its own queue held comes next','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:05.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-retrying','i-retrying','busy','2026-05-04T12:00:00.123456Z','[]','','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','the model''s server answers 529 (Overloaded); its program tries again by itself, attempt 3 of 10');
INSERT INTO "activities" VALUES('s-silent','i-silent','unknown','2026-05-04T12:00:05.123456Z','[]','its harness was silent for long','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-stalled','i-stalled','busy','2026-05-04T12:00:00.123456Z','[]','no sign of life since 2026-05-04 12:00:00 UTC, and it says that it is busy','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-starting','i-starting','starting','2026-05-04T12:00:00.123456Z','[]','',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-starts-at-dialog','i-starts-at-dialog','starting','2026-05-04T12:00:00.123456Z','[]','it shows a dialog before it reads: Trust it?',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-told-soon','i-told-soon','idle','2026-05-04T12:00:00.123456Z','[]','idle: it will be stopped at 12:05:00 UTC; any message keeps it',NULL,NULL,'','',NULL,'',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
INSERT INTO "activities" VALUES('s-unknown-end','i-unknown-end','idle','2026-05-04T12:00:05.123456Z','[]','its turn is over, and nothing tells how it ended','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','','{}','[]','[]','start','2026-05-04T12:00:00.123456Z','its hooks are off','');
INSERT INTO "activities" VALUES('s-unknown-end-announced','i-unknown-end-announced','idle','2026-05-04T12:00:05.123456Z','[]','its turn is over, and nothing tells how it ended; idle: it will be stopped at 12:00:05 UTC; any message keeps it','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z','','t-1','2026-05-04T12:00:05.123456Z','t-1',NULL,'{}','','','','{}','[]','[]','',NULL,'','');
CREATE TABLE announced (
            uid TEXT PRIMARY KEY,
            instance TEXT NOT NULL,
            idle_since TEXT NOT NULL,
            at TEXT NOT NULL
        ) WITHOUT ROWID
        ;
INSERT INTO "announced" VALUES('s-told-over','told:i-told-over','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z');
INSERT INTO "announced" VALUES('s-told-soon','i-told-soon','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z');
INSERT INTO "announced" VALUES('s-told-taken','taken:i-told-taken','2026-05-04T12:00:00.123456Z','2026-05-04T12:00:00.123456Z');
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
INSERT INTO "bindings" VALUES('slack','T1','C1','1699.000000o','s-other','other','2026-05-04T12:00:00.123456Z','',NULL,'','');
INSERT INTO "bindings" VALUES('slack','T1','C1','1699.000000s','s-scribe','scribe','2026-05-04T12:00:00.123456Z','',NULL,'','');
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
INSERT INTO "inbox" VALUES(1,'m-1','slack:T1:C1:1700.000001','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k1','text 1',0,1,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.000000s','1700.000001','queued','it is paused','2026-05-04T12:00:00.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(2,'m-2','slack:T1:C1:1700.000002','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k2','text 2',0,2,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.000000s','1700.000002','queued','it is paused','2026-05-04T12:00:01.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(3,'m-3','slack:T1:C1:1700.000003','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k3','text 3',0,3,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.000000s','1700.000003','queued','it is paused','2026-05-04T12:00:02.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(4,'m-4','slack:T1:C1:1700.000004','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k4','text 4',0,4,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.late','1700.000004','queued','it waits to be confirmed, for it was sent 3 h ago','2026-05-04T12:00:03.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(5,'m-5','slack:T1:C1:1700.000005','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k5','text 5',0,5,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.late','1700.000005','queued','it waits to be confirmed, for it was sent 3 h ago','2026-05-04T12:00:04.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(6,'m-6','slack:T1:C1:1700.000006','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k6','text 6',0,6,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.busy','1700.000006','queued','a turn is running','2026-05-04T12:00:05.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(7,'m-7','slack:T1:C1:1700.000007','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k7','text 7',0,7,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.unknown','1700.000007','unknown','no record shows it','2026-05-04T12:00:06.123456Z','i-scribe',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(8,'m-8','slack:T1:C1:1700.000008','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k8','text 8',0,8,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.unknown','1700.000008','unknown','no record shows it','2026-05-04T12:00:07.123456Z','i-scribe',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(9,'m-9','slack:T1:C1:1700.000009','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k9','text 9',0,9,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.refused','1700.000009','refused','it was stopped','2026-05-04T12:00:08.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(10,'m-10','slack:T1:C1:1700.000010','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k10','text 10',0,10,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.refused','1700.000010','refused','it was stopped','2026-05-04T12:00:09.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(11,'m-11','slack:T1:C1:1700.000011','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k11','text 11',0,11,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.expired','1700.000011','expired','tmux does not answer','2026-05-04T12:00:10.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(12,'m-12','slack:T1:C1:1700.000012','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k12','text 12',0,12,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.cancelled','1700.000012','cancelled','cancelled by cli:ann','2026-05-04T12:00:11.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(13,'m-13','slack:T1:C1:1700.000013','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k13','text 13',0,13,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.failed','1700.000013','failed','it cannot be pasted','2026-05-04T12:00:12.123456Z','i-scribe',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(14,'m-14','slack:T1:C1:1700.000014','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k14','text 14',0,14,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.turn','1700.000014','confirmed','the model''s server refused it','2026-05-04T12:00:13.123456Z','i-scribe',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(15,'m-15','cli:m-15','s-other','other',1,'say','cli:ann','ann','cli','k15','text 15',0,15,'2026-05-04T12:00:00.123456Z',NULL,NULL,NULL,NULL,NULL,'refused','it is not running','2026-05-04T12:00:14.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(16,'m-16','cli:m-16','s-other','other',1,'say','cli:ann','ann','cli','k16','text 16',0,16,'2026-05-04T12:00:00.123456Z',NULL,NULL,NULL,NULL,NULL,'refused','it is not running','2026-05-04T12:00:15.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(17,'m-17','slack:T1:C1:1700.000017','s-other','other',1,'reply','slack:U1','alice','slack','k17','text 17',0,17,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.000000o','1700.000017','queued','it is paused','2026-05-04T12:00:16.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(18,'m-18','slack:T1:C1:1700.000018','s-other','other',1,'reply','slack:U1','alice','slack','k18','text 18',0,18,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.000000o','1700.000018','queued','it is paused','2026-05-04T12:00:17.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(19,'m-100','again:m-11','s-scribe','scribe',1,'reply','slack:U1','alice','slack','k100','text 100',0,100,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.expired','1700.000099','pending','','2026-05-04T12:00:18.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(20,'m-102','notice:s-scribe:task-7','s-scribe','scribe',1,'notice','cli:ann','ann','cli','k102','text 102',0,102,'2026-05-04T12:00:00.123456Z',NULL,NULL,NULL,NULL,NULL,'pending','','2026-05-04T12:00:18.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(21,'m-103','repeat:i-scribe:2026-05-04T12:00:00+00:00','s-scribe','scribe',1,'notice','cli:ann','ann','cli','k103','text 103',0,103,'2026-05-04T12:00:00.123456Z',NULL,NULL,NULL,NULL,NULL,'pending','','2026-05-04T12:00:18.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(22,'m-101','loop:run-7','s-scribe','scribe',1,'tick','cli:ann','ann','cli','k101','text 101',0,101,'2026-05-04T12:00:00.123456Z',NULL,NULL,NULL,NULL,NULL,'pending','','2026-05-04T12:00:18.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(23,'m-19','slack:T1:C1:1700.000019','s-other','other',1,'reply','slack:U1','alice','slack','k19','text 19',0,19,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.over','1700.000019','queued','it is paused','2026-05-04T12:00:18.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "inbox" VALUES(24,'m-20','slack:T1:C1:1700.000020','s-other','other',1,'reply','slack:U1','alice','slack','k20','text 20',0,20,'2026-05-04T12:00:00.123456Z','slack','T1','C1','1699.over','1700.000020','queued','it is paused','2026-05-04T12:00:19.123456Z',NULL,0,NULL,NULL,NULL,0,0,0,NULL);
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
INSERT INTO "note_waits" VALUES('p-note-m-1-e6e8d20f-1777896000123456-0','m-1','it is paused','resume it','',0);
INSERT INTO "note_waits" VALUES('p-note-m-1-e6e8d20f-1777896000123456-0','m-2','it is paused','resume it','',0);
INSERT INTO "note_waits" VALUES('p-note-m-1-e6e8d20f-1777896000123456-0','m-3','it is paused','resume it','',0);
INSERT INTO "note_waits" VALUES('p-note-m-17-ea3a646f-1777896016123456-0','m-17','it is paused','resume it','',0);
INSERT INTO "note_waits" VALUES('p-note-m-17-ea3a646f-1777896016123456-0','m-18','it is paused','resume it','',0);
INSERT INTO "note_waits" VALUES('p-note-m-19-1b7bbea4-1777896018123456-0','m-19','it is paused','resume it','',0);
INSERT INTO "note_waits" VALUES('p-note-m-19-1b7bbea4-1777896018123456-0','m-20','it is paused','resume it','',0);
INSERT INTO "note_waits" VALUES('p-note-m-4-522c30a4-1777896003123456-0','m-4','it waits to be confirmed, for it was sent 3 h ago','let it in','',0);
INSERT INTO "note_waits" VALUES('p-note-m-4-522c30a4-1777896003123456-0','m-5','it waits to be confirmed, for it was sent 3 h ago','let it in','',0);
INSERT INTO "note_waits" VALUES('p-note-m-6-511fd134-1777896005123456-0','m-6','a turn is running','it goes in when the turn is over','',0);
INSERT INTO "note_waits" VALUES('p-note-m-7-51fa58ef-1777896006123456-0','m-7','no record shows it','look at its terminal','',1);
INSERT INTO "note_waits" VALUES('p-note-m-7-51fa58ef-1777896006123456-0','m-8','no record shows it','look at its terminal','',1);
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
INSERT INTO "outbox" VALUES(1,'p-silent-i-mute-off-e494f3ae','silent:i-mute-off:e494f3ae','note','s-mute-off','mute-off','slack','The hooks of `mute-off` are silent: Claude Code runs no hooks there, for disableAllHooks is set in /home/ann/.claude/settings.json: its turns are told late.','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(2,'p-silent-i-mute-off-e494f3ae-7','silent:i-mute-off:e494f3ae:7','note','s-mute-off','mute-off','slack','The hooks of `mute-off` are silent: Claude Code runs no hooks there, for disableAllHooks is set in /home/ann/.claude/settings.json: its turns are told late.','','','pending',0,NULL,NULL,'',NULL,0,'','p-silent-i-mute-off-e494f3ae','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(3,'p-silent-i-mute-folder-1dddeca1','silent:i-mute-folder:1dddeca1','note','s-mute-folder','mute-folder','slack','The hooks of `mute-folder` are silent: its folder /home/ann/gone is gone, and no hook can start there: make the folder again.','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(4,'p-silent-i-mute-folder-1dddeca1-7','silent:i-mute-folder:1dddeca1:7','note','s-mute-folder','mute-folder','slack','The hooks of `mute-folder` are silent: its folder /home/ann/gone is gone, and no hook can start there: make the folder again.','','','pending',0,NULL,NULL,'',NULL,0,'','p-silent-i-mute-folder-1dddeca1','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(5,'p-silent-i-mute-reporter-d764d846','silent:i-mute-reporter:d764d846','note','s-mute-reporter','mute-reporter','slack','The hooks of `mute-reporter` are silent: /home/ann/state/hook, which its hooks run, is not there: `the-loop standing restart mute-reporter` writes it again.','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(6,'p-silent-i-mute-reporter-d764d846-7','silent:i-mute-reporter:d764d846:7','note','s-mute-reporter','mute-reporter','slack','The hooks of `mute-reporter` are silent: /home/ann/state/hook, which its hooks run, is not there: `the-loop standing restart mute-reporter` writes it again.','','','pending',0,NULL,NULL,'',NULL,0,'','p-silent-i-mute-reporter-d764d846','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(7,'p-silent-i-mute-trouble-47779b2c','silent:i-mute-trouble:47779b2c','note','s-mute-trouble','mute-trouble','slack','The hooks of `mute-trouble` are silent: its hooks cannot run (cannot fork): look at its terminal, `the-loop standing attach mute-trouble --write`.','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(8,'p-silent-i-mute-trouble-47779b2c-7','silent:i-mute-trouble:47779b2c:7','note','s-mute-trouble','mute-trouble','slack','The hooks of `mute-trouble` are silent: its hooks cannot run (cannot fork): look at its terminal, `the-loop standing attach mute-trouble --write`.','','','pending',0,NULL,NULL,'',NULL,0,'','p-silent-i-mute-trouble-47779b2c','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(9,'p-silent-i-mute-start-1d3e1cba','silent:i-mute-start:1d3e1cba','note','s-mute-start','mute-start','slack','The hooks of `mute-start` are silent: its program runs, and its hooks have not said so: look at its terminal, `the-loop standing attach mute-start --write`; `/hooks` lists them there.','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(10,'p-silent-i-mute-start-1d3e1cba-7','silent:i-mute-start:1d3e1cba:7','note','s-mute-start','mute-start','slack','The hooks of `mute-start` are silent: its program runs, and its hooks have not said so: look at its terminal, `the-loop standing attach mute-start --write`; `/hooks` lists them there.','','','pending',0,NULL,NULL,'',NULL,0,'','p-silent-i-mute-start-1d3e1cba','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(11,'p-silent-i-mute-untold-11901119','silent:i-mute-untold:11901119','note','s-mute-untold','mute-untold','slack','The hooks of `mute-untold` are silent: its hooks have not said that it reads, and no other source tells within 60 s: look at its terminal, `the-loop standing attach mute-untold --write`; `/hooks` lists them there.','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(12,'p-silent-i-mute-untold-11901119-7','silent:i-mute-untold:11901119:7','note','s-mute-untold','mute-untold','slack','The hooks of `mute-untold` are silent: its hooks have not said that it reads, and no other source tells within 60 s: look at its terminal, `the-loop standing attach mute-untold --write`; `/hooks` lists them there.','','','pending',0,NULL,NULL,'',NULL,0,'','p-silent-i-mute-untold-11901119','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(13,'p-silent-i-mute-turns-c9aa5369','silent:i-mute-turns:c9aa5369','note','s-mute-turns','mute-turns','slack','The hooks of `mute-turns` are silent: its hooks told nothing of the end of a turn: look at its terminal, `the-loop standing attach mute-turns --write`; `/hooks` lists them there.','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(14,'p-silent-i-mute-turns-c9aa5369-7','silent:i-mute-turns:c9aa5369:7','note','s-mute-turns','mute-turns','slack','The hooks of `mute-turns` are silent: its hooks told nothing of the end of a turn: look at its terminal, `the-loop standing attach mute-turns --write`; `/hooks` lists them there.','','','pending',0,NULL,NULL,'',NULL,0,'','p-silent-i-mute-turns-c9aa5369','','2026-05-04T12:00:00.123456Z','');
INSERT INTO "outbox" VALUES(15,'p-note-m-1-e6e8d20f-1777896000123456-0','note:s-scribe-e6e8d20f:1777896000123456:00000:1:m-1','note','s-scribe','scribe','slack','Your message to `scribe` is waiting: it is paused. To do: resume it','C1','1699.000000s','sent',1,NULL,'1800.000001','',NULL,0,'[["cancel", "m-1", "Cancel", 0, 0, ""]]','','','2026-05-04T12:00:03.123456Z','');
INSERT INTO "outbox" VALUES(16,'p-note-m-1-e6e8d20f-1777896000123456-1','note:s-scribe-e6e8d20f:1777896000123456:00001:2:m-1','note','s-scribe','scribe','slack','2 messages to `scribe` are waiting: it is paused. To do: resume it','C1','1699.000000s','sent',1,NULL,'1800.000001','',NULL,0,'[["cancel", "m-1 m-2", "Cancel all", 0, 0, ""]]','p-note-m-1-e6e8d20f-1777896000123456-0','','2026-05-04T12:00:03.123456Z','');
INSERT INTO "outbox" VALUES(17,'p-note-m-1-e6e8d20f-1777896000123456-2','note:s-scribe-e6e8d20f:1777896000123456:00002:3:m-1','note','s-scribe','scribe','slack','3 messages to `scribe` are waiting: it is paused. To do: resume it','C1','1699.000000s','pending',0,NULL,NULL,'',NULL,0,'[["cancel", "m-1 m-2 m-3", "Cancel all", 0, 0, ""]]','p-note-m-1-e6e8d20f-1777896000123456-0','','2026-05-04T12:00:02.123456Z','');
INSERT INTO "outbox" VALUES(18,'p-note-m-4-522c30a4-1777896003123456-0','note:s-scribe-522c30a4:1777896003123456:00000:1:m-4','note','s-scribe','scribe','slack','Your message to `scribe` is waiting: it waits to be confirmed, for it was sent 3 h ago. To do: let it in','C1','1699.late','sent',1,NULL,'1800.000003','',NULL,0,'[["confirm", "m-4", "Send it", 0, 0, "primary"], ["cancel", "m-4", "Cancel", 0, 0, ""]]','','','2026-05-04T12:00:05.123456Z','');
INSERT INTO "outbox" VALUES(19,'p-note-m-4-522c30a4-1777896003123456-1','note:s-scribe-522c30a4:1777896003123456:00001:2:m-4','note','s-scribe','scribe','slack','2 messages to `scribe` are waiting: they came late, and wait for somebody''s word. To do: `the-loop standing queue scribe` lists them','C1','1699.late','sent',1,NULL,'1800.000003','',NULL,0,'[["confirm", "m-4 m-5", "Send all", 0, 0, "primary"], ["cancel", "m-4 m-5", "Cancel all", 0, 0, ""]]','p-note-m-4-522c30a4-1777896003123456-0','','2026-05-04T12:00:05.123456Z','');
INSERT INTO "outbox" VALUES(20,'p-note-m-6-511fd134-1777896005123456-0','note:s-scribe-511fd134:1777896005123456:00000:1:m-6','note','s-scribe','scribe','slack','Your message to `scribe` is waiting: a turn is running. To do: it goes in when the turn is over','C1','1699.busy','sent',1,NULL,'1800.000005','',NULL,0,'[["cancel", "m-6", "Cancel", 0, 0, ""], ["interrupt", "m-6", "Interrupt the turn", 0, 0, "danger"]]','','','2026-05-04T12:00:06.123456Z','');
INSERT INTO "outbox" VALUES(21,'p-note-m-7-51fa58ef-1777896006123456-0','note:s-scribe-51fa58ef:1777896006123456:00000:1:m-7','note','s-scribe','scribe','slack','Your message to `scribe` may not have been taken: no record shows it. To do: look at its terminal','C1','1699.unknown','sent',1,NULL,'1800.000006','',NULL,0,'[["send-again", "m-7", "Send again", 0, 0, ""]]','','','2026-05-04T12:00:08.123456Z','');
INSERT INTO "outbox" VALUES(22,'p-note-m-7-51fa58ef-1777896006123456-1','note:s-scribe-51fa58ef:1777896006123456:00001:2:m-7','note','s-scribe','scribe','slack','2 messages to `scribe` may not have been taken: no record shows it. To do: look at its terminal','C1','1699.unknown','sent',1,NULL,'1800.000006','',NULL,0,'[["send-again", "m-7 m-8", "Send all again", 0, 0, ""]]','p-note-m-7-51fa58ef-1777896006123456-0','','2026-05-04T12:00:08.123456Z','');
INSERT INTO "outbox" VALUES(23,'p-note-m-9-355af6de-1777896008123456-0','note:s-scribe-355af6de:1777896008123456:00000:1:m-9','note','s-scribe','scribe','slack','Your message to `scribe` was not delivered: it was stopped. To do: start it','C1','1699.refused','sent',1,NULL,'1800.000008','',NULL,0,'[["send-again", "m-9", "Send again", 0, 0, ""], ["start", "m-9", "Start", 0, 0, ""], ["start-and-send", "m-9", "Start and send", 0, 0, "primary"]]','','','2026-05-04T12:00:10.123456Z','');
INSERT INTO "outbox" VALUES(24,'p-note-m-9-355af6de-1777896008123456-1','note:s-scribe-355af6de:1777896008123456:00001:2:m-9','note','s-scribe','scribe','slack','2 messages to `scribe` were not delivered: it was stopped. To do: start it','C1','1699.refused','sent',1,NULL,'1800.000008','',NULL,0,'[["send-again", "m-9 m-10", "Send all again", 0, 0, ""], ["start", "m-9 m-10", "Start", 0, 0, ""], ["start-and-send", "m-9 m-10", "Start and send all", 0, 0, "primary"]]','p-note-m-9-355af6de-1777896008123456-0','','2026-05-04T12:00:10.123456Z','');
INSERT INTO "outbox" VALUES(25,'p-note-m-11-a281cd7c-1777896010123456-0','note:s-scribe-a281cd7c:1777896010123456:00000:1:m-11','note','s-scribe','scribe','slack','Your message to `scribe` expired: tmux does not answer. To do: look at the list','C1','1699.expired','sent',1,NULL,'1800.000010','',NULL,0,'[["send-again", "m-11", "Send again", 0, 0, ""]]','','','2026-05-04T12:00:11.123456Z','');
INSERT INTO "outbox" VALUES(26,'p-note-m-12-12c7bde8-1777896011123456-0','note:s-scribe-12c7bde8:1777896011123456:00000:1:m-12','note','s-scribe','scribe','slack','Your message to `scribe` was cancelled by cli:ann.','C1','1699.cancelled','sent',1,NULL,'1800.000011','',NULL,0,'[["send-again", "m-12", "Send again", 0, 0, ""]]','','','2026-05-04T12:00:12.123456Z','');
INSERT INTO "outbox" VALUES(27,'p-note-m-13-b5da9c09-1777896012123456-0','note:s-scribe-b5da9c09:1777896012123456:00000:1:m-13','note','s-scribe','scribe','slack','Your message to `scribe` could not be delivered: it cannot be pasted. To do: write it anew','C1','1699.failed','sent',1,NULL,'1800.000012','',NULL,0,'','','','2026-05-04T12:00:13.123456Z','');
INSERT INTO "outbox" VALUES(28,'p-note-m-14-20236f86-1777896013123456-0','note:s-scribe-20236f86:1777896013123456:00000:1:m-14','note','s-scribe','scribe','slack','Your message to `scribe` was taken by a turn that failed: the model''s server refused it. To do: wait; then send it again','C1','1699.turn','sent',1,NULL,'1800.000013','',NULL,0,'[["send-again", "m-14", "Send again", 0, 0, ""]]','','','2026-05-04T12:00:14.123456Z','');
INSERT INTO "outbox" VALUES(29,'p-note-m-15-d6a5f2ba-1777896014123456-0','note:s-other-d6a5f2ba:1777896014123456:00000:1:m-15','note','s-other','other','slack','ann''s message to `other`, sent by a command, was not delivered: it is not running. To do: start it','C1','1699.000000o','sent',1,NULL,'1800.000014','',NULL,0,'[["start", "m-15", "Start", 0, 0, ""]]','','','2026-05-04T12:00:16.123456Z','');
INSERT INTO "outbox" VALUES(30,'p-note-m-15-d6a5f2ba-1777896014123456-1','note:s-other-d6a5f2ba:1777896014123456:00001:2:m-15','note','s-other','other','slack','2 messages to `other` were not delivered: it is not running. To do: start it','C1','1699.000000o','sent',1,NULL,'1800.000014','',NULL,0,'[["start", "m-15 m-16", "Start", 0, 0, ""]]','p-note-m-15-d6a5f2ba-1777896014123456-0','','2026-05-04T12:00:16.123456Z','');
INSERT INTO "outbox" VALUES(31,'p-note-m-17-ea3a646f-1777896016123456-0','note:s-other-ea3a646f:1777896016123456:00000:1:m-17','note','s-other','other','slack','Your message to `other` is waiting: it is paused. To do: resume it','C1','1699.000000o','pending',0,NULL,NULL,'',NULL,0,'[["cancel", "m-17", "Cancel", 0, 0, ""]]','','','2026-05-04T12:00:16.123456Z','');
INSERT INTO "outbox" VALUES(32,'p-note-m-17-ea3a646f-1777896016123456-1','note:s-other-ea3a646f:1777896016123456:00001:2:m-17','note','s-other','other','slack','2 messages to `other` are waiting: it is paused. To do: resume it','C1','1699.000000o','pending',0,NULL,NULL,'',NULL,0,'[["cancel", "m-17 m-18", "Cancel all", 0, 0, ""]]','p-note-m-17-ea3a646f-1777896016123456-0','','2026-05-04T12:00:17.123456Z','');
INSERT INTO "outbox" VALUES(33,'p-note-m-11-a281cd7c-1777896010123456-0-send-again','pressed:note:s-scribe-a281cd7c:1777896010123456:00000:1:m-11:send-again','note','s-scribe','scribe','slack','Your message to `scribe` expired: tmux does not answer. To do: look at the list
→ sent again by alice.','C1','1699.expired','pending',0,NULL,NULL,'',NULL,0,'','p-note-m-11-a281cd7c-1777896010123456-0','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(34,'p-root-1','root:i-idle','root','s-idle','idle','slack','standing session `idle` is up','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(35,'p-root-1-anew','root:i-idle:anew','root','s-idle','idle','slack','standing session `idle` is up','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(36,'p-boot-1','boot:i-idle:k1','boot','s-idle','idle','slack','it was started','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(37,'p-edited-1','edited:m-1','note','s-scribe','scribe','slack','Your message was edited','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(38,'p-files-1','files:m-1','note','s-scribe','scribe','slack','its files','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(39,'p-unsent-1','unsent:p-answer-1','note','s-scribe','scribe','slack','An answer could not be posted','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(40,'p-asked-m-1','asked:m-1','asked','s-scribe','scribe','slack','ann: hello','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(41,'p-asked-i-1','asked:i-1:17-1.json','asked','s-scribe','scribe','slack','at the terminal: hello','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(42,'p-announce-s-idle-7','announce:s-idle:7','refresh','s-idle','idle','slack','standing session `idle` is up','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(43,'p-root-down-i-idle-3','root-down:i-idle:3','root-update','s-idle','idle','slack','it is down','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(44,'p-retry-i-busy-1777896000123456','retry:i-busy:1777896000123456','note','s-busy','busy','slack','A turn of `busy` waits','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(45,'p-retry-i-idle-1777896000123456','retry:i-idle:1777896000123456','note','s-idle','idle','slack','A turn of `idle` waits','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(46,'p-retry-i-idle-1777896000123456-over','retry:i-idle:1777896000123456:over','note','s-idle','idle','slack','A turn of `idle` waited','','','pending',0,NULL,NULL,'',NULL,0,'','p-retry-i-idle-1777896000123456','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(47,'p-ended-i-idle','note:ended-i-idle','note','s-idle','idle','slack','`idle` has ended','','','pending',0,NULL,NULL,'',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(48,'p-state-1','state:1','note','s-states','states','slack','text','','','skipped',0,NULL,NULL,'what it tells of was over before it was posted',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(49,'p-state-2','state:2','note','s-states','states','slack','text','','','skipped',0,NULL,NULL,'a later edit says all that it says',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(50,'p-state-3','state:3','note','s-states','states','slack','text','','','skipped',0,NULL,NULL,'the channel''s verbosity leaves it out',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(51,'p-state-4','state:4','note','s-states','states','slack','text','','','failed',0,NULL,NULL,'the session was deleted',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(52,'p-state-5','state:5','note','s-states','states','slack','text','','','failed',0,NULL,NULL,'there is no thread for it, or no message to edit',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(53,'p-state-6','state:6','note','s-states','states','slack','text','','','failed',0,NULL,NULL,'given up after 10 attempts: Slack does not answer',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(54,'p-state-7','state:7','note','s-states','states','slack','text','','','pending',0,NULL,NULL,'its earlier thread is looked for',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(55,'p-state-8','state:8','note','s-states','states','slack','text','','','pending',0,NULL,NULL,'it cannot be told which thread is its own: Slack does not answer',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(56,'p-state-9','state:9','note','s-states','states','slack','text','','','pending',0,NULL,NULL,'Slack does not answer; try again',NULL,0,'','','','2026-05-04T12:00:18.123456Z','');
INSERT INTO "outbox" VALUES(57,'p-note-m-19-1b7bbea4-1777896018123456-0','note:s-other-1b7bbea4:1777896018123456:00000:1:m-19','note','s-other','other','slack','Your message to `other` is waiting: it is paused. To do: resume it','C1','1699.over','skipped',0,NULL,NULL,'what it tells of was over before it was posted',NULL,0,'[["cancel", "m-19", "Cancel", 0, 0, ""]]','','','2026-05-04T12:00:20.123456Z','');
INSERT INTO "outbox" VALUES(58,'p-note-m-19-1b7bbea4-1777896018123456-1','note:s-other-1b7bbea4:1777896018123456:00001:2:m-19','note','s-other','other','slack','2 messages to `other` are waiting: it is paused. To do: resume it','C1','1699.over','pending',0,NULL,NULL,'',NULL,0,'[["cancel", "m-19 m-20", "Cancel all", 0, 0, ""]]','p-note-m-19-1b7bbea4-1777896018123456-0','','2026-05-04T12:00:19.123456Z','');
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
INSERT INTO "sqlite_sequence" VALUES('outbox',58);
INSERT INTO "sqlite_sequence" VALUES('inbox',24);
PRAGMA user_version = 24;
COMMIT;
