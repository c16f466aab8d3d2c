"""The parts of the JSONL reader: marks around objects, the objects, their repair, the outcome."""
