"""Projections: pure functions from a recorded event to statements, and the runner that replays them."""
