"""Retrieval: two lanes, their fusion, a second look, and one node that every strategy shares."""
