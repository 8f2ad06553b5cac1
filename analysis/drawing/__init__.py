"""Style, colours and output formats that figures share."""
