BEGIN TRANSACTION;
CREATE TABLE client (
    id TEXT PRIMARY KEY,
    owner INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "client" VALUES('me',1);
CREATE TABLE consumer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox INTEGER NOT NULL,
    owner INTEGER NOT NULL
);
INSERT INTO "consumer" VALUES(1,1,1);
INSERT INTO "consumer" VALUES(2,2,1);
INSERT INTO "consumer" VALUES(3,3,1);
INSERT INTO "consumer" VALUES(4,4,1);
INSERT INTO "consumer" VALUES(5,5,1);
CREATE TABLE duplicate (
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (generation, key)
) WITHOUT ROWID;
INSERT INTO "duplicate" VALUES(1,'once');
CREATE TABLE duplicate_generation (
    id INTEGER PRIMARY KEY,
    address TEXT NOT NULL,
    ids INTEGER NOT NULL
);
INSERT INTO "duplicate_generation" VALUES(1,'queue:ids',1);
CREATE TABLE mailbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('queue', 'durable', 'shared', 'volatile')),
    name TEXT NOT NULL,
    topic TEXT,
    owner INTEGER,
    shared INTEGER NOT NULL DEFAULT 0,
    selector TEXT,
    no_local TEXT,
    grouped INTEGER NOT NULL DEFAULT 0,
    returns INTEGER NOT NULL DEFAULT 0,
    settings TEXT,
    added INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, name)
);
INSERT INTO "mailbox" VALUES(1,'durable','me.sub','t',NULL,0,'region = ''EU''',NULL,0,0,NULL,1,0);
INSERT INTO "mailbox" VALUES(2,'shared','.shared','t',NULL,1,NULL,NULL,0,0,NULL,1,0);
INSERT INTO "mailbox" VALUES(3,'volatile','dfc566e1aff04e0d92d3600519e299eb','t',1,0,NULL,NULL,0,0,NULL,1,0);
INSERT INTO "mailbox" VALUES(4,'queue','q',NULL,NULL,0,NULL,NULL,0,1,'{"max_deliveries": 5, "dead_letter": ["queue", "dead"], "expiry": null, "exclusive": false}',3,0);
INSERT INTO "mailbox" VALUES(5,'queue','groups',NULL,NULL,0,NULL,NULL,1,0,NULL,1,0);
INSERT INTO "mailbox" VALUES(6,'queue','ids',NULL,NULL,0,NULL,NULL,0,0,NULL,1,0);
INSERT INTO "mailbox" VALUES(7,'queue','temporary.59f3e8154b4d4d05aeb7572626fbae62',NULL,NULL,0,NULL,NULL,0,0,NULL,1,0);
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    owner INTEGER,
    token INTEGER,
    deliveries INTEGER NOT NULL DEFAULT 0,
    due INTEGER,
    expires INTEGER,
    bucket INTEGER,
    digest INTEGER,
    headers TEXT NOT NULL,
    body BLOB
);
INSERT INTO "message" VALUES(1,4,5,NULL,NULL,0,NULL,NULL,NULL,4201616009,'{"kind":"text","id":"ID:ac5f91f56ded4ff08749bc8053bde57e","to":["queue","q"],"mode":2,"priority":4,"time":1795915239393,"p":{"region":"EU"},"t":{}}',X'C3A9');
INSERT INTO "message" VALUES(2,4,5,NULL,NULL,0,NULL,NULL,NULL,4089644412,'{"kind":"bytes","id":"ID:7469f79b66e4475cb19b93cbbe812af4","to":["queue","q"],"mode":2,"priority":4,"time":1795915239394}',X'00FF');
INSERT INTO "message" VALUES(3,4,5,1,1,1,NULL,NULL,NULL,809455589,'{"kind":"text","id":"ID:eed68c09ed6d405280e62fe45073df9b","to":["queue","q"],"mode":2,"priority":4,"time":1795915239394}',X'68656C64');
INSERT INTO "message" VALUES(4,5,5,1,3,1,NULL,NULL,886,2354701498,'{"kind":"text","id":"ID:00dff70b6afd4c90af007cd2f0058a55","to":["queue","groups"],"mode":2,"priority":4,"time":1795915239394,"p":{"JMSXGroupID":"g"},"t":{}}',X'67726F75706564');
INSERT INTO "message" VALUES(5,6,5,NULL,NULL,0,NULL,NULL,NULL,2404172413,'{"kind":"text","id":"ID:0d443f584b9b46679a530670c480752a","to":["queue","ids"],"mode":2,"priority":4,"time":1795915239394,"p":{"_AMQ_DUPL_ID":"once"},"t":{}}',X'6F6E6365');
INSERT INTO "message" VALUES(6,1,5,NULL,NULL,0,NULL,NULL,NULL,4222854693,'{"kind":"text","id":"ID:aff6c8b4654b4112acd28450e40ae224","to":["topic","t"],"mode":2,"priority":4,"time":1795915239394,"p":{"region":"EU"},"t":{}}',X'6E657773');
INSERT INTO "message" VALUES(7,2,5,NULL,NULL,0,NULL,NULL,NULL,4222854693,'{"kind":"text","id":"ID:aff6c8b4654b4112acd28450e40ae224","to":["topic","t"],"mode":2,"priority":4,"time":1795915239394,"p":{"region":"EU"},"t":{}}',X'6E657773');
INSERT INTO "message" VALUES(8,3,5,NULL,NULL,0,NULL,NULL,NULL,4222854693,'{"kind":"text","id":"ID:aff6c8b4654b4112acd28450e40ae224","to":["topic","t"],"mode":2,"priority":4,"time":1795915239394,"p":{"region":"EU"},"t":{}}',X'6E657773');
INSERT INTO "message" VALUES(9,7,5,NULL,NULL,0,NULL,NULL,NULL,3216532754,'{"kind":"text","id":"ID:233f907cc706451eb459a3eae64fbc8e","to":["queue","temporary.59f3e8154b4d4d05aeb7572626fbae62",true],"mode":2,"priority":4,"time":1795915239425}',X'676F6E65');
CREATE TABLE message_group (
    mailbox INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    consumer INTEGER NOT NULL,
    PRIMARY KEY (mailbox, bucket)
) WITHOUT ROWID;
INSERT INTO "message_group" VALUES(5,886,5);
CREATE TABLE owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pid INTEGER NOT NULL,
    bell TEXT NOT NULL
);
INSERT INTO "owner" VALUES(1,30908,'/tmp/jmsjca-jlst206v/bell');
CREATE TABLE setting (
    address TEXT PRIMARY KEY,
    settings TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "setting" VALUES('queue:q','{"max_deliveries": 5, "dead_letter": ["queue", "dead"], "expiry": null, "exclusive": false}');
CREATE TABLE temporary (
    address TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    connection TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "temporary" VALUES('queue:temporary.59f3e8154b4d4d05aeb7572626fbae62',1,'6051ef2b5e41419aac166ba9a9d20300');
CREATE INDEX mailbox_topic ON mailbox (topic) WHERE topic IS NOT NULL;
CREATE INDEX mailbox_owner ON mailbox (owner) WHERE owner IS NOT NULL;
CREATE INDEX message_ready ON message (mailbox, urgency, id) WHERE owner IS NULL AND due IS NULL;
CREATE INDEX message_held ON message (owner, mailbox) WHERE owner IS NOT NULL;
CREATE INDEX message_due ON message (mailbox, due) WHERE due IS NOT NULL;
CREATE INDEX message_expires ON message (expires) WHERE expires IS NOT NULL;
CREATE INDEX consumer_mailbox ON consumer (mailbox, id);
CREATE INDEX consumer_owner ON consumer (owner);
CREATE INDEX message_group_consumer ON message_group (consumer);
CREATE INDEX duplicate_generation_address ON duplicate_generation (address, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('owner',1);
INSERT INTO "sqlite_sequence" VALUES('mailbox',7);
INSERT INTO "sqlite_sequence" VALUES('consumer',5);
INSERT INTO "sqlite_sequence" VALUES('message',9);
COMMIT;
PRAGMA application_id = 0x4A4D5331;
PRAGMA user_version = 4;
