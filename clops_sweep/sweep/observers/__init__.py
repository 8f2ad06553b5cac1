"""Who is told how runs go on: which observers are asked for, the processes they run in, and the built-in ones."""
