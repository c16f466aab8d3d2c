-- What an index in PostgreSQL has beside the tables of the SQLite store (see `translated`).

CREATE INDEX stated_aliases_entity ON stated_aliases (entity);
CREATE INDEX aliases_target ON aliases USING hash (target);

ALTER TABLE entity_vectors ALTER COLUMN data SET STORAGE PLAIN; -- beside their ids: exact search is
ALTER TABLE relation_vectors ALTER COLUMN data SET STORAGE PLAIN; -- many times as fast
ALTER TABLE chunk_vectors ALTER COLUMN data SET STORAGE PLAIN;

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
