-- What SQLite stores in its own way, beside the tables of `tables/schema.sql`.

-- What no document can know: from it the marks in prompts are derived.
INSERT INTO settings VALUES ('mark_secret', lower(hex(randomblob(16))));

-- The keys of these aliases, to look them up.
CREATE TABLE stated_aliases (
    entity INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    key TEXT NOT NULL,
    PRIMARY KEY (entity, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX stated_aliases_key ON stated_aliases (key);

-- Names that were merged into others, or (target = key) are entities of their own by a person's word: no short
-- forms of longer names, perhaps with a chosen name for display.
CREATE TABLE aliases (
    key TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    display TEXT
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE chunk_terms USING fts5 (
    terms, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE chunk_vocabulary USING fts5vocab (chunk_terms, row);
