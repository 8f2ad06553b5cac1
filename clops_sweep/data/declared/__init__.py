"""Custom data sets: `@dataset`, folders of files, tables of labels, and validation."""
