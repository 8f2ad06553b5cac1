"""Built-in networks, each a `torch.nn.Module` like those of users."""
