"""The parts of the JSONL reader: marks around objects, the objects, their repair, what comes out."""
