"""Figures of beta and s, which CLOPS alone learns."""
