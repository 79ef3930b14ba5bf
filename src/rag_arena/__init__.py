"""RAG Arena: which retrieval-augmented generation strategy is worth its cost on your data, and the proof of it."""
