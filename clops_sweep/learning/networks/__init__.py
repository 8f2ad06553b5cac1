"""Networks that are built in beside the paper's, each a `torch.nn.Module` like those of users."""
