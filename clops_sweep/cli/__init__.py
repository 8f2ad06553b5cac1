"""The command `clops-sweep`: one file a subcommand, which parses, calls, prints and exits."""
