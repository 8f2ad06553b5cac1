"""The command `clops-sweep`: one module per subcommand, which parses, calls, prints and exits."""
