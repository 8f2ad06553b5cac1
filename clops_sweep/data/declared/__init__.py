"""Data sets that users declare: `@dataset`, folders of files, tables of labels, and the checks of what they give."""
