"""Scores: deterministic ones of answers and evidence, and the judge's."""
