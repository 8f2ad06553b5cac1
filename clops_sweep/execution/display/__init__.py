"""What a running sweep shows on a terminal."""
