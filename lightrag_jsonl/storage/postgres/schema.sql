-- What PostgreSQL stores in its own way, beside the tables of `tables/schema.sql`. A name may be too long for a
-- unique index, so keys are compared by hashes. Constraints that hold at the end of a transaction are deferred.

-- What no document can know: from it the marks in prompts are derived.
INSERT INTO settings VALUES ('mark_secret', replace(gen_random_uuid()::text, '-', ''));

ALTER TABLE entities ADD EXCLUDE USING hash (key WITH =) DEFERRABLE INITIALLY DEFERRED;

-- The keys of these aliases, to look them up.
CREATE TABLE stated_aliases (
    entity bigint NOT NULL REFERENCES entities ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    key text COLLATE "C" NOT NULL
);
CREATE INDEX stated_aliases_key ON stated_aliases USING hash (key);
CREATE INDEX stated_aliases_entity ON stated_aliases (entity);

-- Names that were merged into others, or (target = key) are entities of their own by a person's word: no short
-- forms of longer names, perhaps with a chosen name for display.
CREATE TABLE aliases (
    key text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    display text COLLATE "C",
    EXCLUDE USING hash (key WITH =)
);
CREATE INDEX aliases_target ON aliases USING hash (target);

-- Vectors are stored beside their ids: an exact search is many times as fast.
ALTER TABLE entity_vectors ALTER data SET STORAGE PLAIN;
ALTER TABLE relation_vectors ALTER data SET STORAGE PLAIN;
ALTER TABLE chunk_vectors ALTER data SET STORAGE PLAIN;

-- How often a term occurs in a part of a chunk, which has `length` terms; and the sums for BM25.
CREATE TABLE postings (
    term text COLLATE "C" NOT NULL,
    part bigint NOT NULL,
    occurrences bigint NOT NULL,
    length bigint NOT NULL,
    PRIMARY KEY (term, part) INCLUDE (occurrences, length)
);
CREATE TABLE totals (parts bigint NOT NULL, terms bigint NOT NULL);
INSERT INTO totals VALUES (0, 0);
