"""What trains: native kernels, one module, or several modules in lockstep."""
