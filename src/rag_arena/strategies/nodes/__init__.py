"""The nodes that strategies share, one file per verb: each reads the state and writes what it found or decided into it."""
