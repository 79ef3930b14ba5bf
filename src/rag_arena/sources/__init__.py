"""One loader per kind of dataset; each yields the same two tables, corpus and questions."""
