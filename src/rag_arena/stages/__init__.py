"""One module per stage, one pure function each: tables and typed parameters in, tables out."""
