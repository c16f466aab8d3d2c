-- The tables that all stores have, in the SQL of SQLite; another database says in `SCHEMA_WORDS` what it writes in
-- place of these words. Row ids are given by the one writer; `id` is always a row id, and what users see is a
-- `name`. Foreign keys are checked when a transaction ends, so that rows may be written in any order.
-- What is looked up or stored in another way by each database is in a file of its own, such as
-- `sqlite/schema.sql`: `stated_aliases`, `aliases` and the full text.

CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO settings VALUES ('format', '{FORMAT}');

-- Documents that were inserted and are not visible yet; a killed insert resumes from here. Ids grow
-- and are never used again, so that a later version of a document is told from an earlier one. `file`
-- is a file that was not read yet, `job` the name of the job that brought the document.
CREATE TABLE pending (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL CHECK (json_valid(document)),
    provided TEXT NOT NULL CHECK (json_valid(provided)), -- [records, chunks, chunk size, pictures]
    created_at REAL NOT NULL,
    job TEXT,
    file BLOB
) STRICT;
CREATE INDEX pending_job ON pending (job) WHERE job IS NOT NULL;

-- What clients of a server asked for, in order. `size` is that of the request in bytes.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    size INTEGER NOT NULL CHECK (size >= 0),
    record TEXT NOT NULL CHECK (json_valid(record))
) STRICT;
CREATE INDEX jobs_state ON jobs (state, size);

CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    title TEXT,
    source TEXT,
    date TEXT,
    metadata TEXT NOT NULL CHECK (json_valid(metadata)),
    seen_pictures TEXT NOT NULL CHECK (json_valid(seen_pictures)), -- places of texts that a model read
    content TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('done', 'partial', 'failed')),
    characters INTEGER NOT NULL CHECK (characters >= 0),
    created_at REAL NOT NULL
) STRICT;

-- The texts of pages, compressed by zlib: chunks hold them again, to be searched and quoted.
CREATE TABLE pages (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    number INTEGER NOT NULL CHECK (number >= 1),
    text BLOB NOT NULL,
    PRIMARY KEY (document, number)
) STRICT;

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY CHECK (id >= 1),
    name TEXT NOT NULL UNIQUE,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    position INTEGER NOT NULL CHECK (position >= 0),
    page INTEGER NOT NULL CHECK (page >= 1),
    start INTEGER NOT NULL CHECK (start >= 0),
    stop INTEGER NOT NULL CHECK (stop >= start),
    tokens INTEGER NOT NULL CHECK (tokens >= 0),
    fingerprint TEXT NOT NULL, -- of the text: its copies have the same
    created_at REAL NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ok', 'empty', 'partial', 'failed')),
    error TEXT NOT NULL,
    report TEXT NOT NULL CHECK (json_valid(report)),
    text TEXT NOT NULL,
    heading TEXT NOT NULL,
    extractor TEXT NOT NULL -- what read it; 'person' for an edit by hand
) STRICT;
CREATE INDEX chunks_document ON chunks (document, position);
CREATE INDEX chunks_edited ON chunks (created_at, name) WHERE extractor = 'person';

CREATE TABLE rejections (
    id INTEGER PRIMARY KEY,
    chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    line INTEGER NOT NULL,
    text TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX rejections_chunk ON rejections (chunk);

-- What is merged from the mentions. `names`, `types`, `attributes`, `aliases`, `keywords` (from the low
-- to the high end), `backward_keywords`, `low_names` and `high_names` are objects that count votes, `attributes` by the
-- name of the attribute; `weight` is in millionths. `edited` holds the values that a person gave, which stand in place of those.
CREATE TABLE entities (
    id INTEGER PRIMARY KEY CHECK (id >= 1),
    key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    description TEXT NOT NULL,
    names TEXT NOT NULL CHECK (json_valid(names)),
    types TEXT NOT NULL CHECK (json_valid(types)),
    attributes TEXT NOT NULL CHECK (json_valid(attributes)),
    aliases TEXT NOT NULL CHECK (json_valid(aliases)),
    mentions INTEGER NOT NULL CHECK (mentions >= 0),
    quoted INTEGER NOT NULL CHECK (quoted >= 0), -- of these, the mentions that only quote
    summary TEXT,
    summarized_to INTEGER NOT NULL,
    summarized_mentions INTEGER NOT NULL,
    created_at REAL NOT NULL,
    edited TEXT NOT NULL CHECK (json_valid(edited))
) STRICT;

CREATE TABLE relations (
    id INTEGER PRIMARY KEY CHECK (id >= 1),
    low INTEGER NOT NULL REFERENCES entities DEFERRABLE INITIALLY DEFERRED,
    high INTEGER NOT NULL REFERENCES entities DEFERRABLE INITIALLY DEFERRED,
    reversed INTEGER NOT NULL CHECK (reversed IN (0, 1)),
    description TEXT NOT NULL,
    keywords TEXT NOT NULL CHECK (json_valid(keywords)),
    backward_keywords TEXT NOT NULL CHECK (json_valid(backward_keywords)),
    low_names TEXT NOT NULL CHECK (json_valid(low_names)),
    high_names TEXT NOT NULL CHECK (json_valid(high_names)),
    forward INTEGER NOT NULL CHECK (forward >= 0),
    backward INTEGER NOT NULL CHECK (backward >= 0),
    weight INTEGER NOT NULL CHECK (weight >= 0),
    mentions INTEGER NOT NULL CHECK (mentions >= 0),
    summary TEXT,
    summarized_to INTEGER NOT NULL,
    summarized_mentions INTEGER NOT NULL,
    created_at REAL NOT NULL,
    edited TEXT NOT NULL CHECK (json_valid(edited)),
    CHECK (low < high),
    UNIQUE (low, high)
) STRICT;
CREATE INDEX relations_high ON relations (high);

-- The facts: one row for each mention in a chunk. `position` orders them by document and text.
-- Deleting an entity or relation does not delete its mentions: it is the other way round. What a
-- person deleted has mentions without an entity or relation, which count for nothing.
CREATE TABLE entity_mentions (
    id INTEGER PRIMARY KEY,
    entity INTEGER REFERENCES entities DEFERRABLE INITIALLY DEFERRED,
    chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    description TEXT NOT NULL,
    grounded INTEGER NOT NULL CHECK (grounded IN (0, 1)),
    quoted INTEGER NOT NULL CHECK (quoted IN (0, 1)), -- whether the description only quotes the chunk
    attributes TEXT CHECK (attributes IS NULL OR json_valid(attributes)),
    aliases TEXT CHECK (aliases IS NULL OR json_valid(aliases)),
    valid_from TEXT NOT NULL, -- from when and until when the mention holds: "2021", "2021-06",
    valid_to TEXT NOT NULL, -- "2021-06-15", or empty
    written TEXT CHECK (written IS NULL OR json_valid(written)) -- the names in the text, if the bearer has another
) STRICT;
CREATE INDEX entity_mentions_entity ON entity_mentions (entity, position, chunk);
CREATE INDEX entity_mentions_chunk ON entity_mentions (chunk, entity);
CREATE INDEX entity_mentions_dated ON entity_mentions (chunk)
    WHERE valid_from <> '' OR valid_to <> '';

CREATE TABLE relation_mentions (
    id INTEGER PRIMARY KEY,
    relation INTEGER REFERENCES relations DEFERRABLE INITIALLY DEFERRED,
    chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    position INTEGER NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    keywords TEXT NOT NULL CHECK (json_valid(keywords)),
    description TEXT NOT NULL,
    strength REAL NOT NULL CHECK (strength >= 0),
    forward INTEGER NOT NULL CHECK (forward IN (0, 1)),
    valid_from TEXT NOT NULL, -- from when and until when the mention holds: "2021", "2021-06",
    valid_to TEXT NOT NULL, -- "2021-06-15", or empty
    written TEXT CHECK (written IS NULL OR json_valid(written))
) STRICT;
CREATE INDEX relation_mentions_relation ON relation_mentions (relation, position, chunk);
CREATE INDEX relation_mentions_chunk ON relation_mentions (chunk, relation);
CREATE INDEX relation_mentions_dated ON relation_mentions (chunk)
    WHERE valid_from <> '' OR valid_to <> '';

-- What people set by hand; each edit is a document of one chunk. `names` is the name of an entity, or
-- the names of a relation's source and target; `changes` is an object of fields and values.
CREATE TABLE overrides (
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    action TEXT NOT NULL CHECK (action IN ('create', 'edit', 'delete')),
    names TEXT NOT NULL CHECK (json_valid(names)),
    changes TEXT NOT NULL CHECK (json_valid(changes)),
    author TEXT NOT NULL,
    made_at REAL NOT NULL,
    reason TEXT NOT NULL
) STRICT;

-- Vectors: float16, little endian, if the database has no type for them. `digest` is that of the text that the vector was made from.
CREATE TABLE entity_vectors (
    id INTEGER PRIMARY KEY REFERENCES entities ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    digest BLOB NOT NULL,
    data BLOB NOT NULL CHECK (length(data) >= 2)
) STRICT;
CREATE TABLE relation_vectors (
    id INTEGER PRIMARY KEY REFERENCES relations ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    digest BLOB NOT NULL,
    data BLOB NOT NULL CHECK (length(data) >= 2)
) STRICT;
CREATE TABLE chunk_vectors (
    id INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    digest BLOB NOT NULL,
    data BLOB NOT NULL CHECK (length(data) >= 2)
) STRICT;
-- Rows whose text the embedder refused: a vector of one zero.
CREATE INDEX entity_vectors_refused ON entity_vectors (id) WHERE data = x'0000';
CREATE INDEX relation_vectors_refused ON relation_vectors (id) WHERE data = x'0000';
CREATE INDEX chunk_vectors_refused ON chunk_vectors (id) WHERE data = x'0000';
CREATE TABLE cached_vectors (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    data BLOB NOT NULL CHECK (length(data) >= 2)
) STRICT;

-- Cached answers, in the order they came, with texts compressed by zlib. `document` is the name of the
-- only document whose text was in the request; null if it may have held others' text.
CREATE TABLE completions (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    text BLOB NOT NULL,
    finish TEXT NOT NULL CHECK (finish IN ('stop', 'length')),
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    document TEXT
) STRICT;

CREATE TABLE reusable_answers (
    id INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    signature TEXT NOT NULL,
    question TEXT NOT NULL,
    vector BLOB NOT NULL, -- float32, little endian
    answer TEXT NOT NULL CHECK (json_valid(answer))
) STRICT;
CREATE INDEX reusable_answers_signature ON reusable_answers (generation, signature);

CREATE TABLE traces (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('complete', 'failed', 'incomplete')),
    mode TEXT NOT NULL,
    question TEXT NOT NULL,
    started_at REAL NOT NULL
) STRICT;
CREATE TABLE trace_events (
    id INTEGER PRIMARY KEY,
    trace INTEGER NOT NULL REFERENCES traces ON DELETE CASCADE,
    event TEXT NOT NULL CHECK (json_valid(event))
) STRICT;
CREATE INDEX trace_events_trace ON trace_events (trace);

-- One row for each visible change: the entities, relations and chunks that it touched, so that
-- indexes in memory catch up; null if these are too many.
CREATE TABLE commits (
    generation INTEGER PRIMARY KEY,
    touched TEXT CHECK (touched IS NULL OR json_valid(touched))
) STRICT;

-- Digests of the ids and texts of purged documents, which stay out until somebody asks for them.
CREATE TABLE purge_marks (digest TEXT PRIMARY KEY) STRICT;

-- The states that people saved as snapshots, and the earlier versions of rows that these have: `content` are the rows
-- with a key, compressed; null if there were none.
CREATE TABLE saved_states (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at REAL NOT NULL,
    generation INTEGER NOT NULL,
    next_ids TEXT NOT NULL CHECK (json_valid(next_ids))
) STRICT;
CREATE TABLE saved_rows (
    state INTEGER NOT NULL REFERENCES saved_states,
    name TEXT NOT NULL,
    key INTEGER NOT NULL,
    content BLOB,
    PRIMARY KEY (state, name, key)
) STRICT, WITHOUT ROWID;
