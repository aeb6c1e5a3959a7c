"""Studies behind the pages of the documentation; not shipped."""
