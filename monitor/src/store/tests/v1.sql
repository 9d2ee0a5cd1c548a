CREATE TABLE boots (id INTEGER PRIMARY KEY, boot TEXT NOT NULL UNIQUE);
CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE daemons (
    id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, version TEXT NOT NULL, offset_ns INTEGER NOT NULL,
    started INTEGER NOT NULL, stopped INTEGER
);
CREATE TABLE runs (
    key INTEGER NOT NULL, generation INTEGER NOT NULL, agent TEXT NOT NULL, uid INTEGER NOT NULL,
    pid INTEGER NOT NULL, start INTEGER NOT NULL, invocation TEXT, alive INTEGER NOT NULL,
    boot INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER,
    PRIMARY KEY (key, generation)
) WITHOUT ROWID;
CREATE TABLE servers (
    id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL,
    name TEXT NOT NULL, rule TEXT NOT NULL, processes TEXT,
    owner_pid INTEGER, owner_start INTEGER, owner_name TEXT, owner_uid INTEGER, owner_implied INTEGER,
    key INTEGER, generation INTEGER, since INTEGER NOT NULL,
    judged INTEGER, evidence TEXT, guards TEXT, rss INTEGER, pss INTEGER,
    reaping INTEGER, failed_pid INTEGER, failure TEXT,
    ended INTEGER, how TEXT, signal TEXT, took_ms INTEGER, freed INTEGER, freed_pss INTEGER,
    UNIQUE (boot, pid, start)
);
CREATE INDEX servers_followed ON servers (boot) WHERE ended IS NULL;
CREATE INDEX servers_ended ON servers (ended) WHERE ended IS NOT NULL;
CREATE TABLE losses (
    at INTEGER NOT NULL, forks INTEGER NOT NULL, execs INTEGER NOT NULL, exits INTEGER NOT NULL,
    setsids INTEGER NOT NULL, members INTEGER NOT NULL,
    PRIMARY KEY (at, forks, execs, exits, setsids, members)
) WITHOUT ROWID;
INSERT INTO boots VALUES (1, '0c8a1b9e-0000-4000-8000-000000000001');
INSERT INTO keys VALUES (1, '{"unit":{"manager":"","name":"bot.service"}}');
INSERT INTO daemons VALUES (1, 1, '0.1.0', 1785153600000000000, 1785153600000000, NULL);
INSERT INTO runs VALUES (1, 1, 'claude', 1000, 101, 100, '00000000000000000000000000000001', 0, 1, 1785153601000000, 1785153602000000);
INSERT INTO runs VALUES (1, 2, 'claude', 1000, 102, 200, '00000000000000000000000000000002', 1, 1, 1785153602000000, NULL);
INSERT INTO servers (boot, pid, start, name, rule, processes, owner_pid, owner_start, owner_name, owner_uid, owner_implied, key, generation, since)
VALUES (1, 10, 100, 'server-filesystem', 'npm-mcp', '10@100 11@110', 7, 70, 'claude', 1000, 0, 1, 2, 1785153603000000);
PRAGMA user_version = 1;
