"""What acts on a whole store: compaction beside a sweep, verification, and parts replaced as a whole."""
